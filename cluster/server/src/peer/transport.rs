//! The transport to peers: gRPC, or a simulated network. A channel works the same over both.

use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures::Sink;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use tokio::sync::oneshot;
use tonic::Status;

use super::dial::DialError;
use super::hello::{Hello, Welcome};
use crate::tls::Tls;

/// Accepts the frames of a connection; an error means that it is closed.
pub type Frames = Pin<Box<dyn Sink<Bytes, Error = ()> + Send>>;

/// What a connection receives until it ends.
pub type Heard = BoxStream<'static, Result<Bytes, Status>>;

/// A connection that a channel has opened.
pub struct Call {
    /// The peer's answer.
    pub welcome: Welcome,
    /// Sends frames to the peer.
    pub frames: Frames,
    /// The peer's acknowledgements.
    pub acknowledgements: Heard,
}

/// An incoming connection in a simulated network.
pub struct Offer {
    /// The caller's hello.
    pub hello: Hello,
    /// The frames of the caller.
    pub frames: Heard,
    /// Sends acknowledgements to the caller.
    pub acknowledge: Frames,
    /// Receives the answer.
    pub answer: oneshot::Sender<Result<Welcome, Status>>,
}

/// Opens connections in a simulated network.
pub trait Dial: Debug + Send + Sync {
    /// Calls the process at an address.
    fn dial(&self, address: String, hello: Hello) -> BoxFuture<'static, Result<Call, DialError>>;
}

/// The transport to peers.
#[derive(Debug, Clone)]
pub(super) enum Road {
    /// gRPC, with TLS if there are certificates.
    Grpc(Option<Tls>),
    /// A simulated network in this thread.
    Simulated(Arc<dyn Dial>),
}

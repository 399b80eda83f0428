//! By what peers are reached: gRPC, or a network that is simulated. What a lane does over it is the same.

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

/// Takes the frames of a connection; an error says that it takes no more.
pub type Frames = Pin<Box<dyn Sink<Bytes, Error = ()> + Send>>;

/// What is heard on a connection, until it ends.
pub type Heard = BoxStream<'static, Result<Bytes, Status>>;

/// A connection that a lane has opened.
pub struct Call {
    /// What the peer answered.
    pub welcome: Welcome,
    /// Takes the frames to the peer.
    pub frames: Frames,
    /// What the peer has received.
    pub acknowledgements: Heard,
}

/// A connection that somebody else opens to a process of a simulated network.
pub struct Offer {
    /// Who calls.
    pub hello: Hello,
    /// The frames of the caller.
    pub frames: Heard,
    /// Where it is told what is acknowledged.
    pub acknowledge: Frames,
    /// Where the answer goes.
    pub answer: oneshot::Sender<Result<Welcome, Status>>,
}

/// Opens connections in a simulated network.
pub trait Dial: Debug + Send + Sync {
    /// Calls who listens at an address.
    fn dial(&self, address: String, hello: Hello) -> BoxFuture<'static, Result<Call, DialError>>;
}

/// By what peers are reached.
#[derive(Debug, Clone)]
pub(super) enum Road {
    /// With certificates, where there are any.
    Grpc(Option<Tls>),
    /// In this thread.
    Simulated(Arc<dyn Dial>),
}

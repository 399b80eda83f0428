//! The transport to peers: gRPC, or a simulated network. A channel works the same over both.

use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures::Sink;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use tokio::sync::oneshot;
use tonic::{Code, Status};

use super::hello::{Hello, HelloError, STRANGER, Welcome};
use crate::tls::{Tls, Untrusted};

/// Accepts the frames of a connection; an error means that it is closed.
pub type Frames = Pin<Box<dyn Sink<Bytes, Error = ()> + Send>>;

/// What a connection receives until it ends.
pub type ByteStream = BoxStream<'static, Result<Bytes, Status>>;

/// A connection that a channel has opened.
pub struct Call {
    pub welcome: Welcome,
    pub frames: Frames,
    pub acknowledgements: ByteStream,
}

/// An incoming connection in a simulated network.
pub struct Offer {
    pub hello: Hello,
    pub frames: ByteStream,
    pub acknowledge: Frames,
    pub answer: oneshot::Sender<Result<Welcome, Status>>,
}

/// Why there is no connection with a peer.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    #[error("{address:?} is not an address: {cause}")]
    NoAddress {
        /// What the store says.
        address: String,
        cause: String,
    },
    /// Its machine answers.
    #[error("no process listens there")]
    NobodyListens,
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    #[error(transparent)]
    Untrusted(#[from] Untrusted),
    #[error(transparent)]
    Impostor(#[from] HelloError),
    #[error("{:?}: {}", .0.code(), .0.message())]
    Said(Status),
}

impl DialError {
    /// Whether the error stays until an operator acts.
    pub(super) fn stays(&self) -> bool {
        match self {
            DialError::NoAddress { .. } | DialError::Untrusted(_) | DialError::Impostor(_) => true,
            DialError::NobodyListens | DialError::Unreachable(_) => false,
            DialError::Said(status) => {
                let stays =
                    [Code::FailedPrecondition, Code::InvalidArgument, Code::Unauthenticated];
                stays.contains(&status.code())
            }
        }
    }

    /// Whether the peer does not know this process as a member.
    pub(super) fn says_stranger(&self) -> bool {
        matches!(self, DialError::Said(status) if status.code() == STRANGER)
    }

    /// Whether the machine answers, and no process listens there.
    pub(super) fn nobody_listens(&self) -> bool {
        matches!(self, DialError::NobodyListens)
    }
}

impl From<std::io::Error> for DialError {
    fn from(error: std::io::Error) -> DialError {
        match error.kind() {
            std::io::ErrorKind::ConnectionRefused => DialError::NobodyListens,
            _ => DialError::Unreachable(error.to_string()),
        }
    }
}

impl From<&tonic::transport::Error> for DialError {
    fn from(error: &tonic::transport::Error) -> DialError {
        Untrusted::below(error)
            .map_or_else(|| DialError::Unreachable(error.to_string()), DialError::Untrusted)
    }
}

impl From<Status> for DialError {
    fn from(status: Status) -> DialError {
        // A peer learns only after its own answer that its certificate is refused.
        let untrusted = Untrusted::below(&status);
        untrusted.map_or_else(|| DialError::Said(status), DialError::Untrusted)
    }
}

pub trait Dial: Debug + Send + Sync {
    fn dial(&self, address: String, hello: Hello) -> BoxFuture<'static, Result<Call, DialError>>;
}

#[derive(Debug, Clone)]
pub(super) enum Transport {
    /// gRPC, with TLS if there are certificates.
    Grpc(Option<Tls>),
    /// A simulated network in this thread.
    Simulated(Arc<dyn Dial>),
    /// None: the process is the only one of its cluster.
    None,
}

//! The called side: accepts the streams of peers and passes their messages on, once and in order. A
//! message must never be passed on before the peer's hello and certificate were checked.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use purview::scene::mutants::{self, Mutant};
use purview::wire::peer::roles::Sender;
use purview::wire::peer::{self, MAX_PEER_MSG, PeerMsg};
use tokio::sync::Mutex as AsyncMutex;
use tonic::body::Body;
use tonic::server::{Grpc, StreamingService};
use tonic::{Request, Response, Status, Streaming};
use tower_service::Service;

use super::Identity;
use super::accept::{PeerIdentity, Refusals};
use super::channel::{FRAME_BYTES, Receiving};
use super::codec::{METHOD, Plain};
use super::hello::{Hello, HelloError, Kind, Welcome};
use super::received::{Received, ReceivedGuard, acknowledgements};
use super::router::{Router, follows};
use super::transport::ByteStream;
use crate::admission::{Counters, NotIn};
use crate::executor::Executor;
use crate::socket::Caller;

/// What was received on a channel, over all of its connections.
#[derive(Debug, Default)]
struct Inbox {
    receiving: Receiving,
    connection: u64,
}

type Channels = BTreeMap<(u64, Kind), Arc<AsyncMutex<Inbox>>>;

#[derive(Debug)]
pub(super) struct Inboxes {
    identity: Identity,
    executor: Executor,
    router: Arc<Router>,
    channels: Mutex<Channels>,
    pub(super) refusals: Arc<Refusals>,
    pub(super) connections: Arc<Counters>,
    /// Messages that their senders may not send.
    forbidden: Refusals,
}

impl Inboxes {
    pub(super) fn new(identity: Identity, router: Arc<Router>, executor: Executor) -> Inboxes {
        let (channels, refusals, forbidden, connections) = Default::default();
        Inboxes { identity, executor, router, channels, refusals, connections, forbidden }
    }

    pub(super) fn executor(&self) -> &Executor {
        &self.executor
    }

    pub(super) fn forget(&self, process: u64) {
        let mut channels = self.channels.lock();
        channels.retain(|(from, _), _| *from != process);
    }

    /// The channel that a peer opens, and the version to speak on it.
    fn channel(
        &self,
        hello: &Hello,
        shown: &PeerIdentity,
    ) -> Result<(Arc<AsyncMutex<Inbox>>, u16), HelloError> {
        let Identity { cluster, process: here, versions } = &self.identity;
        let version = hello.check(cluster, *here, *versions)?;
        let member = self.router.member(hello.from).ok_or(HelloError::Stranger(hello.from))?;
        if let Some(shown) = &shown.0 {
            member.check(cluster, shown)?;
        }
        let mut channels = self.channels.lock();
        Ok((channels.entry((hello.from, hello.kind)).or_default().clone(), version))
    }

    fn refused(&self, from: &dyn std::fmt::Display, why: &HelloError) {
        match why {
            // Processes learn of members at different times, so this is normal.
            HelloError::Stranger(_) | HelloError::Process { .. } => {
                tracing::debug!(process = %from, error = %why, "a peer must try again");
            }
            _ => self.refusals.note(&format_args!("process {from}"), why),
        }
    }

    /// Accepts a new connection of a channel; the previous connection is ignored from now on.
    pub(super) async fn open(
        self: Arc<Self>,
        hello: Hello,
        shown: PeerIdentity,
        frames: ByteStream,
    ) -> Result<(Welcome, ByteStream), Status> {
        let opened = self.channel(&hello, &shown);
        let (channel, version) = opened.inspect_err(|why| self.refused(&hello.from, why))?;
        let (connection, want) = {
            let mut inbox = channel.lock().await;
            inbox.connection += 1;
            (inbox.connection, inbox.receiving.want())
        };
        let received = Arc::new(Received::upto(want - 1));
        let guard = ReceivedGuard(received.clone());
        self.executor.clone().spawn(async move {
            if let Err(status) = self.take(frames, &hello, channel, connection, &guard).await {
                tracing::debug!(from = hello.from, %status, "a channel's connection ended");
            }
        });
        Ok((Welcome { version, want }, acknowledgements(received)))
    }

    /// The same over gRPC.
    async fn open_stream(
        self: Arc<Self>,
        request: Request<Streaming<Bytes>>,
    ) -> Result<Response<ByteStream>, Status> {
        let hello = Hello::read(request.metadata()).inspect_err(|why| self.refused(&"?", why))?;
        let caller = request.extensions().get::<Caller<PeerIdentity>>().cloned();
        let shown = caller.as_ref().map(|caller| caller.info.clone()).unwrap_or_default();
        let frames = request.into_inner().boxed();
        let (welcome, acknowledged) = self.open(hello, shown, frames).await?;
        let full = |why: NotIn| Status::resource_exhausted(why.to_string());
        caller.map_or(Ok(()), |caller| caller.log_in()).map_err(full)?;
        let mut response = Response::new(acknowledged);
        welcome.write(response.metadata_mut());
        Ok(response)
    }

    async fn take(
        &self,
        mut frames: ByteStream,
        hello: &Hello,
        channel: Arc<AsyncMutex<Inbox>>,
        connection: u64,
        guard: &ReceivedGuard,
    ) -> Result<(), Status> {
        while let Some(frame) = frames.next().await {
            let frame = frame?;
            let mut inbox = channel.lock().await;
            if inbox.connection != connection {
                return Err(Status::aborted("a newer connection replaced this one"));
            }
            let Some(member) = self.router.member(hello.from) else {
                return Err(HelloError::Stranger(hello.from).into());
            };
            let sender = Sender { process: hello.from, role: member.role() };
            let bytes = frame.len();
            let messages = inbox.receiving.take(frame);
            let mut lasts = false;
            for message in messages.map_err(|e| Status::data_loss(e.to_string()))? {
                let len = message.len();
                match peer::decode(&message) {
                    Ok(message) => match sender.check(&message) {
                        Ok(()) => {
                            lasts |= !is_fleeting(&message);
                            self.router.take(hello.from, hello.kind, message, len).await;
                        }
                        // The channel goes on with the next message.
                        Err(why) => {
                            self.router.metrics().forbidden.fetch_add(1, Relaxed);
                            self.forbidden.note_as("a message was skipped", &member.name, &why);
                        }
                    },
                    Err(error) => self.router.refused(hello.from, &error),
                }
            }
            guard.took(inbox.receiving.want() - 1, bytes, lasts);
        }
        Ok(())
    }
}

/// Whether a message is useless once its receiver is dead. All others are acknowledged at once:
/// after the receiver's death the sender passes unacknowledged ones to the next owner, which asks
/// what the dead process did with them.
fn is_fleeting(message: &PeerMsg) -> bool {
    match message {
        PeerMsg::Frames { .. } => true,
        PeerMsg::Region { input, .. } => !follows(input) || everything_is_late(),
        _ => false,
    }
}

fn everything_is_late() -> bool {
    mutants::has(Mutant::AckedLate) || mutants::has(Mutant::SaidToBoth)
}

#[derive(Debug, Clone)]
pub(super) struct Peers(pub(super) Arc<Inboxes>);

impl StreamingService<Bytes> for Peers {
    type Response = Bytes;
    type ResponseStream = ByteStream;
    type Future = BoxFuture<'static, Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Self::Future {
        Box::pin(self.0.clone().open_stream(request))
    }
}

impl Service<http::Request<Body>> for Peers {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<http::Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let peers = self.clone();
        Box::pin(async move {
            if request.uri().path() != METHOD {
                return Ok(
                    Status::unimplemented("the only method is purview.Peers/Channel").into_http()
                );
            }
            let mut grpc = Grpc::new(Plain)
                .max_decoding_message_size(MAX_PEER_MSG + FRAME_BYTES)
                .max_encoding_message_size(FRAME_BYTES);
            Ok(grpc.streaming(peers, request).await)
        })
    }
}

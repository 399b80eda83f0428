//! The side that calls: one task per lane, which keeps a connection to the peer while the peer is a
//! member of the cluster.

use std::future::{Ready, ready};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::channel::mpsc;
use futures::{SinkExt, StreamExt};
use http::Uri;
use http::uri::PathAndQuery;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};
use tower_service::Service;

use super::accept::Connection;
use super::channel::{FRAME_BYTES, LaneFull, Sending};
use super::codec::{METHOD, Plain};
use super::hello::{Hello, Welcome};
use super::member::Member;
use super::transport::{Call, DialError, Frames, Heard, Road};
use crate::tls::Tls;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(1);
/// How often a connection on which nothing is said is tried, and how long the answer may take.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(2));
/// Time between two tries to connect: the first, and the longest.
const AGAIN: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));
/// Bytes that may be under way without the receiver's leave to send more.
const WINDOW: u32 = 4 << 20;

/// What one lane has done.
#[derive(Debug, Default)]
pub struct LaneMetrics {
    /// Messages taken from regions and sessions.
    pub messages: AtomicU64,
    /// Bytes of these.
    pub bytes: AtomicU64,
    /// Frames sent, each with one or more messages.
    pub frames: AtomicU64,
    /// Messages sent again after a connection was lost.
    pub resent: AtomicU64,
    /// Messages that found no room.
    pub full: AtomicU64,
    /// Connections that came about.
    pub connections: AtomicU64,
    /// The version of the protocol that was agreed on last; 0: none yet.
    pub version: AtomicU64,
}

/// The sender's end of a lane, shared between who sends and the task that carries.
#[derive(Debug)]
pub(super) struct Lane {
    hello: Hello,
    /// What its peer is.
    member: Member,
    sending: Mutex<Sending>,
    more: Notify,
    ended: AtomicBool,
    connected: AtomicBool,
    /// Since its connection was lost the peer's machine has said that nobody listens there.
    refused: AtomicBool,
    /// The peer, which had let this process in, says that it is no member any more.
    disowned: AtomicBool,
    /// Told when one of both is so.
    told: Told,
    pub(super) metrics: LaneMetrics,
}

/// Who is told of what peers' machines, and peers, say of who is there.
#[derive(Debug, Clone)]
pub(super) struct Told {
    /// A peer's machine says that nobody listens there any more.
    pub(super) suspects: Arc<Notify>,
    /// A peer says that this process is no member any more.
    pub(super) disowned: Arc<Notify>,
}

impl Lane {
    /// The process to which it leads.
    pub(super) fn peer(&self) -> u64 {
        self.hello.to
    }

    pub(super) fn new(hello: Hello, member: Member, told: Told) -> Lane {
        Lane {
            hello,
            member,
            sending: Mutex::default(),
            more: Notify::new(),
            ended: AtomicBool::new(false),
            connected: AtomicBool::new(false),
            refused: AtomicBool::new(false),
            disowned: AtomicBool::new(false),
            told,
            metrics: LaneMetrics::default(),
        }
    }

    fn sending(&self) -> MutexGuard<'_, Sending> {
        self.sending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is room for a message.
    pub(super) fn has_room(&self) -> bool {
        let room = self.sending().has_room();
        if !room {
            self.metrics.full.fetch_add(1, Relaxed);
        }
        room
    }

    /// Takes a message.
    pub(super) fn push(&self, message: Bytes) -> Result<(), LaneFull> {
        let len = message.len() as u64;
        self.sending().push(message)?;
        self.metrics.messages.fetch_add(1, Relaxed);
        self.metrics.bytes.fetch_add(len, Relaxed);
        self.more.notify_one();
        Ok(())
    }

    /// Whether the peer is no member of the cluster any more.
    pub(super) fn is_ended(&self) -> bool {
        self.ended.load(Relaxed)
    }

    /// Whether a connection stands.
    pub(super) fn is_connected(&self) -> bool {
        self.connected.load(Relaxed)
    }

    /// Whether the peer was connected, and its machine says by now that nobody listens there.
    pub(super) fn is_refused(&self) -> bool {
        self.refused.load(Relaxed)
    }

    /// Whether the peer had let this process in, and says by now that it is no member.
    pub(super) fn is_disowned(&self) -> bool {
        self.disowned.load(Relaxed)
    }

    /// Bytes that are not acknowledged.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.sending().bytes()
    }

    /// The peer is no more: nothing is sent to it from now on. What it did not acknowledge.
    pub(super) fn end(&self) -> Vec<Bytes> {
        self.ended.store(true, Relaxed);
        self.more.notify_one();
        self.sending().end()
    }

    /// Carries until the lane ends. `address` is the peer's, host:port; where there are certificates it must show
    /// one of that host.
    pub(super) async fn carry(self: Arc<Self>, address: String, road: Road) {
        let (mut wait, mut told) = (AGAIN.0, None);
        while !self.is_ended() {
            match self.connect(&address, &road).await {
                Ok(never) => match never {},
                Err(Lost { was_open, error }) => {
                    if was_open {
                        (wait, told) = (AGAIN.0, None);
                    }
                    self.heed(&error);
                    let (to, text) = (self.hello.to, error.to_string());
                    // What does not pass by itself is told once, and again when it changes.
                    match error.stays() && told.as_ref() != Some(&text) {
                        true => {
                            purview::log_limited!(warn, to, %address, error = text, "a peer cannot be talked to")
                        }
                        false => {
                            tracing::debug!(to, %address, error = text, "no connection to a peer")
                        }
                    }
                    told = Some(text);
                }
            }
            tokio::select! {
                biased;
                () = tokio::time::sleep(wait) => wait = (wait * 2).min(AGAIN.1),
                () = self.ended() => {}
            }
        }
    }

    /// Notes what an error says of who is there, and who was. A peer that has not heard yet that this process is a member
    /// says the same as one that has heard that it is none any more: only who had let it in before counts.
    fn heed(&self, error: &DialError) {
        if self.metrics.connections.load(Relaxed) == 0 {
            return;
        }
        if error.nobody_listens() {
            self.refused.store(true, Relaxed);
            self.told.suspects.notify_one();
        }
        if error.says_stranger() {
            self.disowned.store(true, Relaxed);
            self.told.disowned.notify_one();
        }
    }

    async fn ended(&self) {
        while !self.is_ended() {
            self.more.notified().await;
        }
    }

    async fn connect(&self, address: &str, road: &Road) -> Result<std::convert::Infallible, Lost> {
        let call = match road {
            Road::Grpc(tls) => call(address, &self.hello, &self.member, tls.as_ref()).await,
            Road::Simulated(dial) => dial.dial(address.to_owned(), self.hello.clone()).await,
        };
        let Call { welcome, frames, acknowledgements } =
            call.map_err(|error| Lost { was_open: false, error })?;
        tracing::debug!(to = self.hello.to, ?welcome, "a lane is open");
        let again = self.sending().reconnected(welcome.want);
        self.metrics.resent.fetch_add(again as u64, Relaxed);
        self.metrics.connections.fetch_add(1, Relaxed);
        self.metrics.version.store(welcome.version.into(), Relaxed);
        self.connected.store(true, Relaxed);
        self.refused.store(false, Relaxed);
        self.disowned.store(false, Relaxed);
        let ended = self.pump(frames, acknowledgements).await;
        self.connected.store(false, Relaxed);
        Err(Lost { was_open: true, error: ended.into() })
    }

    /// Sends and hears acknowledgements until the connection ends; says why it did.
    async fn pump(&self, mut frames: Frames, mut acknowledgements: Heard) -> Status {
        let send = async {
            loop {
                let frame = self.sending().next_frame();
                match frame {
                    Some(frame) => {
                        self.metrics.frames.fetch_add(1, Relaxed);
                        if frames.send(frame).await.is_err() {
                            return Status::aborted("the stream took no more");
                        }
                    }
                    None if self.is_ended() => return Status::aborted("the peer is no member"),
                    None => self.more.notified().await,
                }
            }
        };
        let hear = async {
            loop {
                match acknowledgements.next().await {
                    Some(Ok(upto)) => {
                        let Ok(upto) = <[u8; 8]>::try_from(&upto[..]) else {
                            return Status::data_loss("an acknowledgement is no number");
                        };
                        self.sending().acknowledged(u64::from_be_bytes(upto));
                    }
                    None => return Status::aborted("the peer ended the stream"),
                    Some(Err(status)) => return status,
                }
            }
        };
        tokio::select! {
            biased;
            status = send => status,
            status = hear => status,
        }
    }
}

/// A connection that is no more, or never was.
#[derive(Debug)]
struct Lost {
    was_open: bool,
    error: DialError,
}

/// Opens a lane's connection to a peer, host:port.
async fn call(
    address: &str,
    hello: &Hello,
    member: &Member,
    tls: Option<&Tls>,
) -> Result<Call, DialError> {
    let channel = channel(address, &hello.cluster, member, tls).await?;
    let mut grpc = Grpc::new(channel).max_encoding_message_size(usize::MAX);
    grpc.ready().await.map_err(|e| DialError::from(&e))?;
    let (frames, outgoing) = mpsc::channel::<Bytes>(1);
    let mut request = Request::new(outgoing);
    hello.write(request.metadata_mut());
    let response = grpc.streaming(request, PathAndQuery::from_static(METHOD), Plain).await?;
    let welcome = Welcome::read(response.metadata()).map_err(Status::from)?;
    let frames = Box::pin(frames.sink_map_err(|_| ()));
    let acknowledgements = response.into_inner().boxed();
    Ok(Call { welcome, frames, acknowledgements })
}

/// Connects to a peer, host:port. Its certificate must be that of this member.
async fn channel(
    address: &str,
    cluster: &str,
    member: &Member,
    tls: Option<&Tls>,
) -> Result<Channel, DialError> {
    let no_address = |cause: String| DialError::NoAddress { address: address.to_owned(), cause };
    let endpoint = Endpoint::from_shared(format!("http://{address}"))
        .map_err(|e| no_address(e.to_string()))?
        .http2_keep_alive_interval(KEEP_ALIVE.0)
        .keep_alive_timeout(KEEP_ALIVE.1)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW);
    let host = endpoint.uri().host().ok_or_else(|| no_address("want host:port".into()))?;
    let call = async {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok::<_, DialError>(Connection::call(stream, host, tls).await?)
    };
    let late = |_| DialError::Unreachable(format!("no connection within {CONNECT:?}"));
    let connection = tokio::time::timeout(CONNECT, call).await.map_err(late)??;
    if let Some(shown) = connection.named().0 {
        member.check(cluster, &shown)?;
    }
    let stands = Stands(Some(TokioIo::new(connection)));
    endpoint.connect_with_connector(stands).await.map_err(|e| DialError::from(&e))
}

/// A connection that stands already, for a client that wants to make it. It is had once.
struct Stands(Option<TokioIo<Connection>>);

impl Service<Uri> for Stands {
    type Response = TokioIo<Connection>;
    type Error = std::io::Error;
    type Future = Ready<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), std::io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        ready(self.0.take().ok_or_else(|| std::io::ErrorKind::NotConnected.into()))
    }
}

const _: () = assert!(FRAME_BYTES < WINDOW as usize);

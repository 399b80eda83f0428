//! The calling side: one task per channel, which keeps a connection to the peer while the peer is a
//! member of the cluster. The links start it.

use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::channel::mpsc;
use futures::{SinkExt, StreamExt};
use http::Uri;
use http::uri::PathAndQuery;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::Instant;
use tonic::client::Grpc;
use tonic::transport::Endpoint;
use tonic::{Request, Status};
use tower_service::Service;

use super::accept::{self, Connection};
use super::channel::{ChannelFull, FRAME_BYTES, Sending};
use super::codec::{METHOD, Plain};
use super::hello::{Hello, Welcome};
use super::member::Member;
use super::transport::{ByteStream, Call, DialError, Frames, Transport};
use crate::tls::Tls;

/// How long a connection attempt may take.
const CONNECT: Duration = Duration::from_secs(1);
/// After which silence a connection is probed, and how long the answer may take.
const KEEP_ALIVE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(2));
/// Shortest and longest time between two attempts to connect.
const AGAIN: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));
/// How long a peer may be unreached before the log says so, and how often it says so again.
const UNREACHED: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(60));
/// Flow-control window in bytes.
const WINDOW: u32 = 4 << 20;

#[derive(Debug, Default)]
pub struct ChannelMetrics {
    pub messages: AtomicU64,
    pub bytes: AtomicU64,
    /// Frames sent, each with one or more messages.
    pub frames: AtomicU64,
    /// Messages sent again after a connection was lost.
    pub resent: AtomicU64,
    /// Messages refused because the channel was full.
    pub full: AtomicU64,
    pub connections: AtomicU64,
    /// The last negotiated version of the protocol; 0: none yet.
    pub version: AtomicU64,
}

/// The sending end of a channel, shared between the senders and the task that carries the messages.
#[derive(Debug)]
pub(super) struct Channel {
    hello: Hello,
    member: Member,
    sending: Mutex<Sending>,
    more: Notify,
    ended: AtomicBool,
    connected: AtomicBool,
    /// After a lost connection the peer's machine has refused a connection: no process listens
    /// there.
    refused: AtomicBool,
    /// The peer, which had accepted this process before, says that it is no longer a member.
    disowned: AtomicBool,
    /// Notified when one of the two becomes true.
    told: SharedReports,
    pub(super) metrics: ChannelMetrics,
}

/// Notifications about membership, as peers and their machines report it.
#[derive(Debug, Clone)]
pub(super) struct SharedReports {
    /// A peer's machine refuses connections: the peer may be dead.
    pub(super) suspects: Arc<Notify>,
    /// A peer says that this process is no longer a member.
    pub(super) disowned: Arc<Notify>,
}

impl Channel {
    pub(super) fn peer(&self) -> u64 {
        self.hello.to
    }

    pub(super) fn new(hello: Hello, member: Member, told: SharedReports) -> Channel {
        Channel {
            hello,
            member,
            sending: Mutex::default(),
            more: Notify::new(),
            ended: AtomicBool::new(false),
            connected: AtomicBool::new(false),
            refused: AtomicBool::new(false),
            disowned: AtomicBool::new(false),
            told,
            metrics: ChannelMetrics::default(),
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.sending.lock().has_room()
    }

    /// Whether there is room for a message that is refused otherwise, which counts.
    pub(super) fn accepts(&self) -> bool {
        let room = self.has_room();
        if !room {
            self.count_refused();
        }
        room
    }

    /// Counts a message that is not sent because the channel is full.
    pub(super) fn count_refused(&self) {
        self.metrics.full.fetch_add(1, Relaxed);
    }

    pub(super) fn push(&self, message: Bytes) -> Result<(), ChannelFull> {
        let len = message.len() as u64;
        let pushed = self.sending.lock().push(message);
        pushed.inspect_err(|_| self.count_refused())?;
        self.metrics.messages.fetch_add(1, Relaxed);
        self.metrics.bytes.fetch_add(len, Relaxed);
        self.more.notify_one();
        Ok(())
    }

    /// Whether the peer is no longer a member of the cluster.
    pub(super) fn is_ended(&self) -> bool {
        self.ended.load(Relaxed)
    }

    pub(super) fn is_connected(&self) -> bool {
        self.connected.load(Relaxed)
    }

    /// Whether the peer was connected and its machine refuses connections now.
    pub(super) fn is_refused(&self) -> bool {
        self.refused.load(Relaxed)
    }

    /// Whether the peer had accepted this process and now says that it is no longer a member.
    pub(super) fn is_disowned(&self) -> bool {
        self.disowned.load(Relaxed)
    }

    pub(super) fn waiting_bytes(&self) -> usize {
        self.sending.lock().bytes()
    }

    /// Ends the channel because the peer is gone; returns the unacknowledged messages.
    pub(super) fn end(&self) -> Vec<Bytes> {
        self.ended.store(true, Relaxed);
        self.more.notify_one();
        self.sending.lock().end()
    }

    /// Keeps the channel connected until it ends. `address` is the peer's, host:port; with TLS its
    /// certificate must name that host.
    pub(super) async fn carry(self: Arc<Self>, address: String, transport: Transport) {
        let (mut wait, mut told, mut due) = (AGAIN.0, None, Instant::now() + UNREACHED.0);
        while !self.is_ended() {
            match self.connect(&address, &transport).await {
                Ok(never) => match never {},
                Err(ConnectionEnd { was_open, error }) => {
                    if was_open {
                        (wait, told, due) = (AGAIN.0, None, Instant::now() + UNREACHED.0);
                    }
                    self.heed(&error);
                    let (to, text) = (self.hello.to, error.to_string());
                    // A permanent error is logged once, and again when it changes; any other when it lasts.
                    let lasts = Instant::now() >= due;
                    if lasts {
                        due = Instant::now() + UNREACHED.1;
                    }
                    match lasts || error.stays() && told.as_ref() != Some(&text) {
                        true => {
                            purview::log_limited!(warn, to, name = self.member.name, advertised = %address, error = text, "cannot connect to a peer")
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

    /// Evaluates what an error says about membership. A peer that has not yet learned that this
    /// process is a member answers the same as a peer that learned that it no longer is; therefore
    /// only a peer that had accepted this process counts.
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

    async fn connect(
        &self,
        address: &str,
        transport: &Transport,
    ) -> Result<std::convert::Infallible, ConnectionEnd> {
        let call = match transport {
            Transport::Grpc(tls) => call(address, &self.hello, &self.member, tls.as_ref()).await,
            Transport::Simulated(dial) => dial.dial(address.to_owned(), self.hello.clone()).await,
            Transport::None => Err(DialError::NobodyListens),
        };
        let Call { welcome, frames, acknowledgements } =
            call.map_err(|error| ConnectionEnd { was_open: false, error })?;
        tracing::debug!(to = self.hello.to, ?welcome, "a channel is open");
        let again = self.sending.lock().reconnected(welcome.want);
        self.metrics.resent.fetch_add(again as u64, Relaxed);
        self.metrics.connections.fetch_add(1, Relaxed);
        self.metrics.version.store(welcome.version.into(), Relaxed);
        self.connected.store(true, Relaxed);
        self.refused.store(false, Relaxed);
        self.disowned.store(false, Relaxed);
        let ended = self.pump(frames, acknowledgements).await;
        self.connected.store(false, Relaxed);
        Err(ConnectionEnd { was_open: true, error: ended.into() })
    }

    /// Sends frames and receives acknowledgements until the connection ends; returns the reason.
    async fn pump(&self, mut frames: Frames, mut acknowledgements: ByteStream) -> Status {
        let send = async {
            loop {
                let frame = self.sending.lock().next_frame();
                match frame {
                    Some(frame) => {
                        self.metrics.frames.fetch_add(1, Relaxed);
                        if frames.send(frame).await.is_err() {
                            return Status::aborted("the stream is closed");
                        }
                    }
                    None if self.is_ended() => {
                        return Status::aborted("the peer is not a member any more");
                    }
                    None => self.more.notified().await,
                }
            }
        };
        let receive = async {
            loop {
                match acknowledgements.next().await {
                    Some(Ok(upto)) => {
                        let Ok(upto) = <[u8; 8]>::try_from(&upto[..]) else {
                            return Status::data_loss("an acknowledgement is not a number");
                        };
                        self.sending.lock().acknowledged(u64::from_be_bytes(upto));
                    }
                    None => return Status::aborted("the peer ended the stream"),
                    Some(Err(status)) => return status,
                }
            }
        };
        tokio::select! {
            biased;
            status = send => status,
            status = receive => status,
        }
    }
}

/// A connection that ended, or was never established.
#[derive(Debug)]
struct ConnectionEnd {
    was_open: bool,
    error: DialError,
}

/// Opens a channel's connection to a peer, host:port.
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

/// Connects to a peer, host:port. Its certificate must belong to this member.
async fn channel(
    address: &str,
    cluster: &str,
    member: &Member,
    tls: Option<&Tls>,
) -> Result<tonic::transport::Channel, DialError> {
    let no_address = |cause: String| DialError::NoAddress { address: address.to_owned(), cause };
    let endpoint = Endpoint::from_shared(format!("http://{address}"))
        .map_err(|e| no_address(e.to_string()))?
        .http2_keep_alive_interval(KEEP_ALIVE.0)
        .keep_alive_timeout(KEEP_ALIVE.1)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW);
    let host = endpoint.uri().host().ok_or_else(|| no_address("write host:port".into()))?;
    let call = async {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok::<_, DialError>(accept::call(stream, host, tls).await?)
    };
    let late = |_| DialError::Unreachable(format!("no connection within {CONNECT:?}"));
    let connection = tokio::time::timeout(CONNECT, call).await.map_err(late)??;
    if let Some(shown) = &connection.info().0 {
        member.check(cluster, shown)?;
    }
    let stands = Stands(Some(TokioIo::new(connection)));
    endpoint.connect_with_connector(stands).await.map_err(|e| DialError::from(&e))
}

/// Hands an established connection to a client that expects to connect itself. It can be taken
/// once.
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

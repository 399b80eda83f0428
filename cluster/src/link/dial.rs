//! The side that calls: one task per lane, which keeps a connection to the peer while the peer is a
//! member of the cluster.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::SinkExt;
use futures::channel::mpsc;
use http::uri::PathAndQuery;
use tokio::sync::Notify;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status, Streaming};

use super::codec::Plain;
use super::hello::{Hello, read_want};
use super::lane::{FRAME_BYTES, LaneFull, Sending};
use super::serve::METHOD;

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
}

/// The sender's end of a lane, shared between who sends and the task that carries.
#[derive(Debug)]
pub(super) struct Lane {
    hello: Hello,
    sending: Mutex<Sending>,
    more: Notify,
    ended: AtomicBool,
    connected: AtomicBool,
    /// Since its connection was lost the peer's machine has said that nobody listens there.
    refused: AtomicBool,
    /// Told when that is so.
    suspects: Arc<Notify>,
    pub(super) metrics: LaneMetrics,
}

impl Lane {
    pub(super) fn new(hello: Hello, suspects: Arc<Notify>) -> Lane {
        Lane {
            hello,
            sending: Mutex::default(),
            more: Notify::new(),
            ended: AtomicBool::new(false),
            connected: AtomicBool::new(false),
            refused: AtomicBool::new(false),
            suspects,
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

    /// Carries until the lane ends. `address` is the peer's, host:port.
    pub(super) async fn carry(self: Arc<Self>, address: String) {
        let mut wait = AGAIN.0;
        while !self.is_ended() {
            match self.connect(&address).await {
                Ok(never) => match never {},
                Err(Lost { was_open, refused, status }) => {
                    if was_open {
                        wait = AGAIN.0;
                    }
                    if refused && self.metrics.connections.load(Relaxed) > 0 {
                        self.refused.store(true, Relaxed);
                        self.suspects.notify_one();
                    }
                    tracing::debug!(to = self.hello.to, %address, ?status, "a lane lost its connection");
                }
            }
            tokio::select! {
                () = tokio::time::sleep(wait) => wait = (wait * 2).min(AGAIN.1),
                () = self.ended() => {}
            }
        }
    }

    async fn ended(&self) {
        while !self.is_ended() {
            self.more.notified().await;
        }
    }

    async fn connect(&self, address: &str) -> Result<std::convert::Infallible, Lost> {
        let lost = |was_open| move |status: Status| Lost { was_open, refused: false, status };
        let channel = self.channel(address).await?;
        let mut grpc = Grpc::new(channel).max_encoding_message_size(usize::MAX);
        let refused = |e: tonic::transport::Error| Status::unavailable(e.to_string());
        grpc.ready().await.map_err(refused).map_err(lost(false))?;
        let (frames, outgoing) = mpsc::channel::<Bytes>(1);
        let mut request = Request::new(outgoing);
        self.hello.write(request.metadata_mut());
        let path = PathAndQuery::from_static(METHOD);
        let response = grpc.streaming(request, path, Plain).await.map_err(lost(false))?;
        let want = read_want(response.metadata()).map_err(Status::from).map_err(lost(false))?;
        let again = self.sending().reconnected(want);
        self.metrics.resent.fetch_add(again as u64, Relaxed);
        self.metrics.connections.fetch_add(1, Relaxed);
        self.connected.store(true, Relaxed);
        self.refused.store(false, Relaxed);
        let result = self.pump(frames, response.into_inner()).await;
        self.connected.store(false, Relaxed);
        Err(lost(true)(result))
    }

    /// Sends and hears acknowledgements until the connection ends; says why it did.
    async fn pump(
        &self,
        mut frames: mpsc::Sender<Bytes>,
        mut acknowledgements: Streaming<Bytes>,
    ) -> Status {
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
                match acknowledgements.message().await {
                    Ok(Some(upto)) => {
                        let Ok(upto) = <[u8; 8]>::try_from(&upto[..]) else {
                            return Status::data_loss("an acknowledgement is no number");
                        };
                        self.sending().acknowledged(u64::from_be_bytes(upto));
                    }
                    Ok(None) => return Status::aborted("the peer ended the stream"),
                    Err(status) => return status,
                }
            }
        };
        tokio::select! {
            status = send => status,
            status = hear => status,
        }
    }

    async fn channel(&self, address: &str) -> Result<Channel, Lost> {
        let no_address = |e| {
            let status = Status::invalid_argument(format!("{address:?} is no address: {e}"));
            Lost { was_open: false, refused: false, status }
        };
        let endpoint = Endpoint::from_shared(format!("http://{address}"))
            .map_err(no_address)?
            .tcp_nodelay(true)
            .connect_timeout(CONNECT)
            .http2_keep_alive_interval(KEEP_ALIVE.0)
            .keep_alive_timeout(KEEP_ALIVE.1)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW);
        endpoint.connect().await.map_err(|e| {
            let (refused, status) = (is_refusal(&e), Status::unavailable(e.to_string()));
            Lost { was_open: false, refused, status }
        })
    }
}

/// Whether the machine answered that nobody listens there.
fn is_refusal(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let io = error.downcast_ref::<std::io::Error>();
        if io.is_some_and(|io| io.kind() == std::io::ErrorKind::ConnectionRefused) {
            return true;
        }
        next = error.source();
    }
    false
}

/// A connection that is no more, or never was.
#[derive(Debug)]
struct Lost {
    was_open: bool,
    /// The machine answers, and says that nobody listens there.
    refused: bool,
    status: Status,
}

const _: () = assert!(FRAME_BYTES < WINDOW as usize);

//! Regions and sessions of other processes, as addresses for local actors.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

use actix::dev::SendError;
use bytes::Bytes;
use parking_lot::Mutex;
use purview::actor::address::{Passing, RemoteError, RemoteGateway, RemoteRegion};
use purview::actor::messages::ToRegion;
use purview::scene::messages::{FrameBatch, Input, Notice, Subset};
use purview::scene::{Epoch, RegionId, SessionId};
use purview::wire::peer::{self, MoveMsg, PeerMsg, speaker};

use super::backlog::Busy;
use super::dial::Channel;
use super::router::Router;

/// Most ended sessions that are remembered until a region asks for them.
const MAX_GONE: usize = 65_536;

/// Largest scratch buffer that is kept for the next message, in bytes.
const SCRATCH: usize = 1 << 20;

/// Encodes into one allocation of the right size.
fn written<E>(write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<Bytes, E> {
    thread_local! {
        static OUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    let mut out = OUT.take();
    out.clear();
    write(&mut out)?;
    let bytes = Bytes::copy_from_slice(&out);
    if out.capacity() <= SCRATCH {
        OUT.set(out);
    }
    Ok(bytes)
}

pub(super) fn encoded(message: &PeerMsg) -> Bytes {
    written(|out| peer::encode(message, out)).unwrap_or_else(|error| {
        // No value of these types is outside MessagePack's range.
        purview::log_limited!(error, %error, "a message for a peer cannot be encoded");
        Bytes::new()
    })
}

/// A region of another process; implements its address.
#[derive(Debug)]
pub(super) struct Remote {
    pub(super) channel: Arc<Channel>,
    pub(super) router: Arc<Router>,
    pub(super) region: RegionId,
    pub(super) busy: Arc<Busy>,
}

impl Remote {
    fn push(&self, message: &PeerMsg) -> Result<(), RemoteError> {
        match () {
            () if self.channel.is_ended() => Err(RemoteError::Closed),
            () if self.busy.is(self.region) || !self.channel.accepts() => Err(RemoteError::Full),
            // A concurrent sender may have used the room; a channel accepts one message more than
            // it has room for.
            () => self.channel.push(encoded(message)).map_err(|_| RemoteError::Full),
        }
    }

    /// The region epoch in which the sender of an input acts, if the input has one.
    fn epoch(&self, input: &Input) -> Epoch {
        speaker(input).map(|region| self.router.epoch(region)).unwrap_or_default()
    }
}

/// Returns an unsent message to its sender.
fn given_back<T>(error: RemoteError, what: T) -> SendError<T> {
    match error {
        RemoteError::Full => SendError::Full(what),
        RemoteError::Closed => SendError::Closed(what),
    }
}

impl RemoteRegion for Remote {
    fn try_send(&self, msg: ToRegion) -> Result<(), SendError<ToRegion>> {
        let ToRegion { input, client } = msg;
        // The other end finds the session by its id.
        let message = PeerMsg::Region { to: self.region, epoch: self.epoch(&input), input };
        let Err(error) = self.push(&message) else { return Ok(()) };
        let PeerMsg::Region { input, .. } = message else { return Ok(()) };
        Err(given_back(error, ToRegion { input, client }))
    }

    fn process(&self) -> Option<u64> {
        Some(self.channel.peer())
    }

    fn pass_on(&self, passing: Passing) -> Result<(), SendError<Passing>> {
        let region = self.region;
        let (msg, client) = match passing {
            Passing::Mark(mark) => (MoveMsg::Marked { region, mark }, None),
            Passing::Message(ToRegion { input, client }) => {
                (MoveMsg::Passed { region, epoch: self.epoch(&input), input }, client)
            }
        };
        let message = PeerMsg::Move(Box::new(msg));
        let Err(error) = self.push(&message) else { return Ok(()) };
        let PeerMsg::Move(msg) = message else { return Ok(()) };
        let passing = match *msg {
            MoveMsg::Passed { input, .. } => Passing::Message(ToRegion { input, client }),
            MoveMsg::Marked { mark, .. } => Passing::Mark(mark),
            _ => return Ok(()),
        };
        Err(given_back(error, passing))
    }
}

#[derive(Debug)]
pub(super) struct Gateway {
    process: u64,
    channel: Arc<Channel>,
    /// Sessions that the process reported as ended.
    gone: Mutex<HashSet<SessionId>>,
}

impl Gateway {
    pub(super) fn new(process: u64, channel: Arc<Channel>) -> Gateway {
        Gateway { process, channel, gone: Mutex::default() }
    }

    pub(super) fn are_gone(&self, sessions: &[SessionId]) {
        let mut gone = self.gone.lock();
        if gone.len() + sessions.len() > MAX_GONE {
            // No region asked for most of them; the others are reported again.
            gone.clear();
        }
        gone.extend(sessions.iter().take(MAX_GONE));
    }

    fn push(&self, bytes: Bytes) -> Result<(), RemoteError> {
        self.channel.push(bytes).map_err(|_| RemoteError::Full)
    }

    fn check(&self) -> Result<(), RemoteError> {
        match () {
            () if self.channel.is_ended() => Err(RemoteError::Closed),
            () if !self.channel.accepts() => Err(RemoteError::Full),
            () => Ok(()),
        }
    }
}

impl RemoteGateway for Gateway {
    fn process(&self) -> u64 {
        self.process
    }

    fn frames(&self, from: RegionId, batch: &FrameBatch, which: &[u32]) -> Result<(), RemoteError> {
        self.check()?;
        let written = written(|out| match which.len() == batch.sessions.len() {
            true => peer::encode_frames(from, batch, out),
            false => {
                thread_local! {
                    static SUBSET: RefCell<Subset> = RefCell::default();
                }
                let mut subset = SUBSET.take();
                let written = peer::encode_frames(from, subset.of(batch, which), out);
                SUBSET.set(subset);
                written
            }
        });
        match written {
            Ok(bytes) => self.push(bytes),
            Err(error) => {
                purview::log_limited!(error, %error, "frames for a peer cannot be encoded");
                Err(RemoteError::Full)
            }
        }
    }

    fn notice(&self, session: SessionId, notice: &Notice) -> Result<(), RemoteError> {
        self.check()?;
        self.push(encoded(&PeerMsg::Notice { session, notice: notice.clone() }))
    }

    fn connected(&self, session: SessionId) -> bool {
        // Returned once; the caller then removes the entity.
        let gone = self.gone.lock().remove(&session);
        !gone && !self.channel.is_ended()
    }
}

//! What the processes of a cluster say to each other, for their regions and their sessions. Each
//! message is one MessagePack value; `docs/cluster.md` says how they travel.

use serde::{Deserialize, Serialize};

use crate::scene::effects::{Input, Notice};
use crate::scene::frames::FrameBatch;
use crate::scene::{Epoch, RegionId, SessionId};

/// Version of these messages. Processes of different versions do not talk.
pub const PEER_VERSION: u16 = 1;

/// Longest message between processes, bytes: all ghosts of a region in a full batch fit many times.
pub const MAX_PEER_MSG: usize = 64 << 20;

/// A message from one process to another.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum PeerMsg {
    /// Something for a region.
    Region {
        /// For whom.
        to: RegionId,
        /// The region epoch of the region that speaks, where one does (see [`speaker`]).
        epoch: Epoch,
        /// What it is told.
        input: Input,
    },
    /// Frames for sessions of the receiver.
    Frames {
        /// The region that made them.
        from: RegionId,
        /// The frames, all of sessions of the receiver.
        batch: FrameBatch,
    },
    /// News for a session of the receiver.
    Notice {
        /// For whom.
        session: SessionId,
        /// What.
        notice: Notice,
    },
    /// Sessions that were to get frames or news from the receiver and are no more.
    Gone(Vec<SessionId>),
}

/// A message that is not understood.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// It is longer than [`MAX_PEER_MSG`].
    #[error("a peer's message of {0} bytes: at most {MAX_PEER_MSG} are allowed")]
    TooBig(usize),
    /// It is none of the messages of this version, or has values that no such message has.
    #[error("a peer's message is not understood: {0}")]
    Malformed(#[from] rmp_serde::decode::Error),
    /// An index in a batch of frames points at nothing.
    #[error("a peer's batch of frames is torn: session {0} points beyond its end")]
    Torn(usize),
    /// Something stands after the message.
    #[error("{0} bytes stand after a peer's message")]
    Trailing(usize),
}

/// The region that speaks in an input, where one does: only its owner may.
pub fn speaker(input: &Input) -> Option<RegionId> {
    match input {
        Input::Border(batch) => Some(batch.from),
        Input::Settle(batch) => Some(batch.from),
        Input::View(msg) => Some(msg.from_region),
        Input::Handoff(handoff) => Some(handoff.from),
        Input::BorderLost(neighbour) => Some(*neighbour),
        Input::Recovered(news) => Some(news.region),
        Input::Claims(claims) => Some(claims.from),
        _ => None,
    }
}

/// Bytes of a message for a region, appended to `out`.
///
/// # Errors
/// A value that MessagePack cannot hold; there is none in these types.
pub fn encode(msg: &PeerMsg, out: &mut Vec<u8>) -> Result<(), rmp_serde::encode::Error> {
    rmp_serde::encode::write(out, msg)
}

/// The same of frames that are not owned.
///
/// # Errors
/// As [`encode`].
pub fn encode_frames(
    from: RegionId,
    batch: &FrameBatch,
    out: &mut Vec<u8>,
) -> Result<(), rmp_serde::encode::Error> {
    #[derive(Serialize)]
    enum PeerMsg<'a> {
        Frames { from: RegionId, batch: &'a FrameBatch },
    }
    rmp_serde::encode::write(out, &PeerMsg::Frames { from, batch })
}

/// Reads one message.
///
/// # Errors
/// [`PeerError`] says what is wrong with it.
pub fn decode(bytes: &[u8]) -> Result<PeerMsg, PeerError> {
    if bytes.len() > MAX_PEER_MSG {
        return Err(PeerError::TooBig(bytes.len()));
    }
    let mut rest = bytes;
    let msg: PeerMsg = rmp_serde::decode::from_read(&mut rest)?;
    if !rest.is_empty() {
        return Err(PeerError::Trailing(rest.len()));
    }
    if let PeerMsg::Frames { batch, .. } = &msg {
        check(batch)?;
    }
    Ok(msg)
}

/// Whether every session's part lies within the batch.
fn check(batch: &FrameBatch) -> Result<(), PeerError> {
    let within = |at: u32, count: u32, len: usize| {
        (at as usize).checked_add(count as usize).is_some_and(|end| end <= len)
    };
    for (i, s) in batch.sessions.iter().enumerate() {
        let counts = [s.enters, s.moves, s.courses, s.acts];
        let refs = counts.iter().try_fold(0u32, |sum, n| sum.checked_add(*n));
        let lists = refs.is_some_and(|n| within(s.refs_at, n, batch.refs.len()))
            && within(s.leaves_at, s.leaves, batch.leaves.len())
            && within(s.refused_at, s.refused, batch.refused.len())
            && within(s.own_at, s.own, batch.owns.len());
        if !lists {
            return Err(PeerError::Torn(i));
        }
        let lens =
            [batch.entering.len(), batch.moving.len(), batch.coursing.len(), batch.acting.len()];
        let sound = |(list, len): (&[u32], usize)| list.iter().all(|r| (*r as usize) < len);
        if !batch.refs_of(s).into_iter().zip(lens).all(sound) {
            return Err(PeerError::Torn(i));
        }
    }
    Ok(())
}

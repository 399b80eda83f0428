//! The messages between processes of a cluster, for their regions and sessions.
//!
//! The peer links encode and decode them. Each message is one MessagePack value.
//! `docs/contributing/cluster.md` says how messages travel and what the next release may change. A
//! decoded batch of frames must never point outside itself.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::scene::messages::{CommandResult, FrameBatch, Input, Notice};
use crate::scene::{EntityId, Epoch, RegionId, SessionId};

use super::query::{Answer, Question};
use super::workers::WorkerMsg;
use crate::wire::msgpack::fast::{self, Limits, Unreadable};

/// Version of these messages: the newest that this release speaks. Two processes use the newest
/// version that both speak.
pub const PEER_VERSION: u16 = 5;

/// The oldest version that this release still speaks: the previous release's.
pub const PEER_VERSION_MIN: u16 = 5;

/// Longest message between processes, bytes: many times the ghosts of a region in a full batch.
pub const MAX_PEER_MSG: usize = 64 << 20;

/// Most memory that the lists of one message between processes take, bytes.
pub const MAX_PEER_MEMORY: usize = 512 << 20;

/// What a message may cost.
const LIMITS: Limits = Limits { per_byte: 64, most: MAX_PEER_MEMORY };

/// A message from one process to another.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum PeerMsg {
    /// An input for a region.
    Region {
        /// The receiving region.
        to: RegionId,
        /// Epoch of the sending region, if a region sends it (see [`speaker`]).
        epoch: Epoch,
        /// The input.
        input: Input,
    },
    /// Frames for sessions of the receiving process.
    Frames {
        /// The region that made them.
        from: RegionId,
        /// The frames, all for sessions of the receiving process.
        batch: Box<FrameBatch>,
    },
    /// A notice for a session of the receiving process.
    Notice {
        /// The session.
        session: SessionId,
        /// The notice.
        notice: Notice,
    },
    /// Sessions of the sender that no longer exist; the receiver sends them frames or notices.
    Gone(Vec<SessionId>),
    /// A step of a region's migration between processes.
    Move(Box<MoveMsg>),
    /// A region of the sender stops or resumes taking input; the receiver holds back what is for
    /// it. A release that does not know this message keeps sending.
    Busy {
        /// The region.
        region: RegionId,
        /// Whether it takes no input.
        busy: bool,
    },
    /// A member's machine reports that no process listens there any more.
    Suspect(u64),
    /// A query from the admin console or the balance of lines.
    Ask {
        /// Identifies the answer.
        ticket: u64,
        /// The query.
        question: Question,
    },
    /// The answer to a query.
    Answered {
        /// Identifies the query.
        ticket: u64,
        /// The answer.
        answer: Answer,
    },
    /// What has become of a command that a call of the receiving process has given.
    CommandResult(CommandResult),
    /// About logic workers.
    Worker(Box<WorkerMsg>),
}

/// The state of a region's actor beside the region itself.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ActorState {
    /// The sessions of its players, and their entities.
    pub clients: Vec<(SessionId, EntityId)>,
    /// Inputs that it could not deliver to regions yet, in order.
    pub outbox: Vec<(RegionId, Input)>,
    /// Notices that it could not deliver to sessions yet.
    pub notices: Vec<(SessionId, Notice)>,
}

/// A sender's statement that it has received all messages that a migrated region sent on one
/// channel, and sends it nothing more by the old route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Mark {
    /// The sender's process id.
    pub process: u64,
    /// The channel is that of sessions, not that of regions.
    pub sessions: bool,
}

/// A migration that the sender knows of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownMove {
    /// The region.
    pub region: RegionId,
    /// The epoch under which its old process owned it.
    pub epoch: Epoch,
    /// The new process.
    pub to: u64,
}

/// The messages of a region's migration. The *old* process owns the region until it has frozen it,
/// the *new* process from its lease on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum MoveMsg {
    /// Old to new: the region is about to come.
    Prepare {
        /// The region.
        region: RegionId,
        /// The epoch under which the old process owns it.
        epoch: Epoch,
    },
    /// New to old: input for the region is held here from now on.
    Ready {
        /// The region.
        region: RegionId,
        /// The epoch under which the old process owns it.
        epoch: Epoch,
    },
    /// Old to new: the frozen region.
    Cargo {
        /// The region.
        region: RegionId,
        /// The epoch under which the old process owned it.
        epoch: Epoch,
        /// The marks that must arrive before the region sends anything.
        waits: Vec<Mark>,
        /// The encoded region, see
        /// [`RegionSnapshot::encode`](crate::scene::region::RegionSnapshot::encode).
        snapshot: Bytes,
        /// The actor's state.
        actor_state: ActorState,
        /// Other regions' migrations of which the new process must have heard before: the region has sent messages to their
        /// new processes.
        #[serde(default)]
        moves: Vec<KnownMove>,
    },
    /// Old to all, on both channels: the region sends nothing more from here, and lives there.
    Moved {
        /// The region.
        region: RegionId,
        /// The epoch under which the old process owned it.
        epoch: Epoch,
        /// Process id of the new owner.
        to: u64,
    },
    /// From a process that has received everything on one channel and sends nothing more to the
    /// region by the old route: to the old process, which passes it on to the new one.
    Marked {
        /// The region.
        region: RegionId,
        /// The mark.
        mark: Mark,
    },
    /// Old to new: an input that arrived by the old route.
    Passed {
        /// The region.
        region: RegionId,
        /// Epoch of the sending region, if a region sends it.
        epoch: Epoch,
        /// The input.
        input: Input,
    },
}

/// Why bytes are not a message of this version. They changed nothing.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// The message is longer than [`MAX_PEER_MSG`].
    #[error("peer message of {0} bytes; at most {MAX_PEER_MSG} are allowed")]
    TooBig(usize),
    /// The message is of a kind that only a later release knows.
    #[error("unknown kind of peer message: {0}")]
    Unknown(String),
    /// The bytes are not a message of this version, or a value is out of range.
    #[error("malformed peer message: {0}")]
    Malformed(Unreadable),
    /// An index in a batch of frames points outside the batch.
    #[error("invalid batch of frames from a peer: session {0} points outside the batch")]
    Torn(usize),
    /// Bytes follow the message.
    #[error("{0} bytes follow a peer message")]
    Trailing(usize),
}

/// The region that sends an input, if a region sends it: only its owner may send in its name.
pub fn speaker(input: &Input) -> Option<RegionId> {
    match input {
        Input::Border(batch) => Some(batch.from),
        Input::BorderRound(batch) => Some(batch.from),
        Input::View(msg) => Some(msg.from_region),
        Input::Handoff(handoff) => Some(handoff.from),
        Input::BorderLost(neighbour) => Some(*neighbour),
        Input::Recovered(news) => Some(news.region),
        Input::Claims(claims) => Some(claims.from),
        Input::Map(news) => Some(news.from),
        Input::Enter(_)
        | Input::Leave(_)
        | Input::Client { .. }
        | Input::Bonds { .. }
        | Input::Tell { .. }
        | Input::Group(_)
        | Input::Hold { .. }
        | Input::Release { .. }
        | Input::Resync { .. }
        | Input::Present(_)
        | Input::Disconnected { .. }
        | Input::Kicked { .. }
        | Input::Resume(_)
        | Input::Elsewhere { .. }
        | Input::Scene(_)
        | Input::Command(_)
        | Input::Locate(_)
        | Input::CommandResult(_) => None,
    }
}

/// Encodes a message and appends it to `out`.
///
/// # Errors
/// A value that MessagePack cannot hold; these types contain none.
pub fn encode(msg: &PeerMsg, out: &mut Vec<u8>) -> Result<(), rmp_serde::encode::Error> {
    written(out, msg)
}

fn written<T: Serialize>(out: &mut Vec<u8>, value: &T) -> Result<(), rmp_serde::encode::Error> {
    if fast::write(out, value) { Ok(()) } else { rmp_serde::encode::write(out, value) }
}

/// Encodes borrowed frames.
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
    written(out, &PeerMsg::Frames { from, batch })
}

impl From<Unreadable> for PeerError {
    fn from(error: Unreadable) -> PeerError {
        match error {
            Unreadable::Unknown(name) => PeerError::Unknown(name),
            error @ (Unreadable::TooDeep | Unreadable::TooLarge(_) | Unreadable::Form(_)) => {
                PeerError::Malformed(error)
            }
        }
    }
}

/// Decodes one message. Fields that a later release has added are skipped. Depth and memory are
/// bounded.
///
/// # Errors
/// [`PeerError`] says what is wrong with it.
pub fn decode(bytes: &[u8]) -> Result<PeerMsg, PeerError> {
    if bytes.len() > MAX_PEER_MSG {
        return Err(PeerError::TooBig(bytes.len()));
    }
    let (msg, rest) = fast::read_compat::<PeerMsg>(bytes, LIMITS)?;
    if !rest.is_empty() {
        return Err(PeerError::Trailing(rest.len()));
    }
    if let PeerMsg::Frames { batch, .. } = &msg {
        check(batch)?;
    }
    Ok(msg)
}

/// Checks that every session's part lies within the batch.
fn check(batch: &FrameBatch) -> Result<(), PeerError> {
    let within = |at: u32, count: u32, len: usize| {
        (at as usize).checked_add(count as usize).is_some_and(|end| end <= len)
    };
    for (i, s) in batch.sessions.iter().enumerate() {
        let refs = s.counts().iter().try_fold(0u32, |sum, n| sum.checked_add(*n));
        let lists = refs.is_some_and(|n| within(s.refs_at, n, batch.refs.len()))
            && within(s.leaves_at, s.leaves, batch.leaves.len())
            && within(s.refused_at, s.refused, batch.refused.len())
            && within(s.told_at, s.told, batch.told.len())
            && within(s.own_at, s.own, batch.owns.len())
            && within(s.crowd_at, s.crowd, batch.crowds.len());
        if !lists {
            return Err(PeerError::Torn(i));
        }
        let lens = batch.lens_of_lists();
        let sound = |(list, len): (&[u32], usize)| list.iter().all(|r| (*r as usize) < len);
        if !batch.refs_of(s).into_iter().zip(lens).all(sound) {
            return Err(PeerError::Torn(i));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::messages::SessionFrame;

    #[test]
    fn errors_say_what_is_wrong() {
        let session = SessionFrame { enters: 1, ..SessionFrame::default() };
        let batch = FrameBatch { sessions: vec![session], ..FrameBatch::default() };
        let mut bytes = Vec::new();
        encode_frames(RegionId(3), &batch, &mut bytes).unwrap();
        assert!(matches!(decode(&bytes), Err(PeerError::Torn(0))));
        let mut bytes = Vec::new();
        encode(&PeerMsg::Gone(vec![SessionId(4)]), &mut bytes).unwrap();
        assert!(matches!(decode(&bytes), Ok(PeerMsg::Gone(gone)) if gone == [SessionId(4)]));
        bytes.push(0);
        assert!(matches!(decode(&bytes), Err(PeerError::Trailing(1))));
        assert!(matches!(decode(&bytes[..3]), Err(PeerError::Malformed(_))));
    }
}

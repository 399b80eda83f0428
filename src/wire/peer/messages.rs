//! What the processes of a cluster say to each other, for their regions and their sessions. Each
//! message is one MessagePack value; `docs/cluster-inside.md` says how they travel, and what a next release may
//! change of them.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::scene::messages::{FrameBatch, Input, Notice};
use crate::scene::{EntityId, Epoch, RegionId, SessionId};

use super::query::{Answer, Question};
use crate::wire::msgpack::{fast, forward_compat};

/// Version of these messages: the newest that this release speaks. Two processes talk in the newest that both
/// speak.
pub const PEER_VERSION: u16 = 1;

/// The oldest version that this release still speaks: that of the release before it.
pub const PEER_VERSION_MIN: u16 = 1;

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
        batch: Box<FrameBatch>,
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
    /// A region moves from one process to another.
    Move(Box<MoveMsg>),
    /// A region of the sender takes nothing now, or does again: what is for it waits at the receiver. A release that does
    /// not know this goes on to send.
    Busy {
        /// Which.
        region: RegionId,
        /// Whether it takes nothing.
        busy: bool,
    },
    /// The machine of a member says that nobody listens there any more.
    Suspect(u64),
    /// A question of somebody who looks after the cluster.
    Ask {
        /// By which the answer is known.
        ticket: u64,
        /// What is asked.
        question: Question,
    },
    /// The answer to one.
    Told {
        /// Of which question.
        ticket: u64,
        /// What is told.
        answer: Answer,
    },
}

/// What a region's actor has beside the region.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Baggage {
    /// The sessions of its players, and who these are.
    pub clients: Vec<(SessionId, EntityId)>,
    /// What it could not say to regions yet, in order.
    pub outbox: Vec<(RegionId, Input)>,
    /// What it could not say to sessions yet.
    pub notices: Vec<(SessionId, Notice)>,
}

/// A sender has heard everything on one lane that a region which has left had to say, and says nothing more
/// to it by the old way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Mark {
    /// The sender's process.
    pub process: u64,
    /// The lane is that of sessions, not that of regions.
    pub sessions: bool,
}

/// What processes say to each other of a region that moves. *Old* owns it until it has frozen it,
/// *new* from its grant on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum MoveMsg {
    /// Old to new: it is about to come.
    Prepare {
        /// Which.
        region: RegionId,
        /// Under which epoch old owns it.
        epoch: Epoch,
    },
    /// New to old: what comes for it waits here from now on.
    Ready {
        /// Which.
        region: RegionId,
        /// Under which epoch old owns it.
        epoch: Epoch,
    },
    /// Old to new: the frozen region.
    Cargo {
        /// Which.
        region: RegionId,
        /// Under which epoch old owned it.
        epoch: Epoch,
        /// From whom a mark must come before it says anything.
        waits: Vec<Mark>,
        /// The region, as [`RegionSnapshot::encode`](crate::scene::region::RegionSnapshot::encode) has it.
        snapshot: Bytes,
        /// What its actor had.
        baggage: Baggage,
    },
    /// Old to everybody, on both lanes: it says nothing more from here, and lives there.
    Moved {
        /// Which.
        region: RegionId,
        /// Under which epoch old owned it.
        epoch: Epoch,
        /// New's process.
        to: u64,
    },
    /// From a process that has heard everything that came on one lane, and says nothing more to the region
    /// by the old way: to old, and by its hands to new.
    Marked {
        /// Which region.
        region: RegionId,
        /// Whose mark.
        mark: Mark,
    },
    /// Old to new: what has come by the old way.
    Passed {
        /// For which region.
        region: RegionId,
        /// The epoch of the region that speaks, where one does.
        epoch: Epoch,
        /// What it is told.
        input: Input,
    },
}

/// A message that is not understood.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// It is longer than [`MAX_PEER_MSG`].
    #[error("a peer's message of {0} bytes: at most {MAX_PEER_MSG} are allowed")]
    TooBig(usize),
    /// It is of a kind that a next release has.
    #[error("a peer's message of a kind that is not known here: {0}")]
    Unknown(String),
    /// It is none of the messages of this version, or has values that no such message has.
    #[error("a peer's message is not understood: {0}")]
    Malformed(rmp_serde::decode::Error),
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
    written(out, msg)
}

fn written<T: Serialize>(out: &mut Vec<u8>, value: &T) -> Result<(), rmp_serde::encode::Error> {
    if fast::write(out, value) { Ok(()) } else { rmp_serde::encode::write(out, value) }
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
    written(out, &PeerMsg::Frames { from, batch })
}

impl From<rmp_serde::decode::Error> for PeerError {
    fn from(error: rmp_serde::decode::Error) -> PeerError {
        match error {
            // The only way in which serde tells of it.
            rmp_serde::decode::Error::Syntax(text) if text.starts_with("unknown variant") => {
                PeerError::Unknown(text)
            }
            error => PeerError::Malformed(error),
        }
    }
}

/// Reads one message. Fields that a next release has added are passed over.
///
/// # Errors
/// [`PeerError`] says what is wrong with it.
pub fn decode(bytes: &[u8]) -> Result<PeerMsg, PeerError> {
    if bytes.len() > MAX_PEER_MSG {
        return Err(PeerError::TooBig(bytes.len()));
    }
    let (msg, rest) = forward_compat::read::<PeerMsg>(bytes)?;
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scene::messages::{Entering, SessionFrame};
    use crate::scene::{EntityId, Kind, Pos, Seq, Tick};
    use crate::wire::EncodedBatch;

    /// Frames of a few sessions, each of which is told some of what there is.
    fn batches() -> impl Strategy<Value = FrameBatch> {
        let told = prop::collection::vec(0u32..6, 0..6);
        let session = (told.clone(), told.clone(), told, prop::collection::vec(0u64..50, 0..4));
        prop::collection::vec(session, 1..8).prop_map(|sessions| {
            let pos = |i: u64| Pos::ground(i as i32, 7);
            let entering = |i| {
                let look = bytes::Bytes::from(vec![i as u8; i as usize]);
                let (id, kind) = (EntityId(i), Kind::PLAYER);
                Entering { id, kind, pos: pos(i), course: None, look }
            };
            let mut batch = FrameBatch { tick: Tick(9), ..FrameBatch::default() };
            batch.entering = (0..6).map(entering).collect();
            batch.moving = (0..6).map(|i| (EntityId(10 + i), pos(i))).collect();
            batch.acting = (0..6).map(|i| (EntityId(20 + i), vec![3; i as usize].into())).collect();
            for (i, (enters, moves, acts, leaves)) in sessions.into_iter().enumerate() {
                let (refs_at, leaves_at) = (batch.refs.len() as u32, batch.leaves.len() as u32);
                batch.sessions.push(SessionFrame {
                    session: SessionId(i as u64),
                    ack: Seq(i as u32),
                    refs_at,
                    enters: enters.len() as u32,
                    moves: moves.len() as u32,
                    acts: acts.len() as u32,
                    leaves_at,
                    leaves: leaves.len() as u32,
                    ..SessionFrame::default()
                });
                batch.refs.extend(enters.into_iter().chain(moves).chain(acts));
                batch.leaves.extend(leaves.into_iter().map(EntityId));
            }
            batch
        })
    }

    /// The bytes that each session's client gets.
    fn frames(batch: FrameBatch) -> Vec<(SessionId, Vec<u8>)> {
        let encoded = EncodedBatch::new(batch);
        let frame = |(i, s): (usize, &SessionFrame)| {
            let mut out = Vec::new();
            encoded.write_frame(i, &mut out);
            (s.session, out)
        };
        encoded.batch().sessions.iter().enumerate().map(frame).collect()
    }

    proptest! {
        #[test]
        fn a_gateway_gets_of_a_batch_what_its_sessions_are_told(batch in batches(), keep in any::<u8>()) {
            let count = batch.sessions.len() as u32;
            let which: Vec<u32> = (0..count).filter(|i| keep >> i & 1 == 1).collect();
            let part = batch.subset(&which);
            let mut bytes = Vec::new();
            encode_frames(RegionId(3), &part, &mut bytes).unwrap();
            let Ok(PeerMsg::Frames { from, batch: there }) = decode(&bytes) else {
                panic!("something else came")
            };
            prop_assert_eq!(from, RegionId(3));
            prop_assert!(there.entering.len() <= batch.entering.len());
            let all = frames(batch);
            let want: Vec<_> = which.iter().map(|i| all[*i as usize].clone()).collect();
            prop_assert_eq!(frames(*there), want);
        }

        #[test]
        fn any_bytes_are_a_message_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(PeerMsg::Frames { batch, .. }) = decode(&bytes) {
                frames(*batch);
            }
        }

        #[test]
        fn a_batch_that_is_changed_on_its_way_is_refused_or_harmless(
            batch in batches(),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let mut bytes = Vec::new();
            encode_frames(RegionId(3), &batch, &mut bytes).unwrap();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(PeerMsg::Frames { batch, .. }) = decode(&bytes) {
                frames(*batch);
            }
        }
    }

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

//! The state of one client in the oracle.

use std::collections::VecDeque;

use purview::scene::movement::{ServerMs, Trajectory};
use purview::scene::{EntityId, Epoch, Kind, Pos, Seq};
use purview::wire::Frame;
use purview::wire::client::Joined;
use rustc_hash::FxHashMap;

use super::{ClientId, Sent};

pub(super) const NO_SLOT: u32 = u32::MAX;

/// An input without an acknowledgement.
#[derive(Debug)]
pub(super) struct Pending {
    pub seq: Seq,
    pub what: Sent,
    /// The last tick that the client had received when it sent the input.
    pub at: u64,
    /// Whether another client has received this action.
    pub told: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct SeenEntity {
    pub kind: Kind,
    /// The slot of the entity at its last lookup; the id must be compared.
    pub slot: u32,
    /// The position shown in the present tick.
    pub pos: Pos,
    pub trajectory: Option<Trajectory>,
    pub since: u64,
    /// The tick of the last update of its position.
    pub told: u64,
    /// The last tick at which it truly was at the position shown.
    pub fresh: u64,
    /// The longest update interval of its rings since then, ticks.
    pub span: u64,
    pub due: Option<u64>,
    pub stale: bool,
    /// The number of ticks for which it has been farther off than the scene tolerates.
    pub wrong: u64,
    /// The number of ticks for which it has been shown out of range.
    pub extra: u64,
    /// The number of ticks for which it has not been shown this client.
    pub alone: u32,
}

impl SeenEntity {
    /// Where its client shows it at a server time.
    pub fn place(&self, at: ServerMs) -> Pos {
        self.trajectory.map_or(self.pos, |trajectory| trajectory.position(at))
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Parted {
    pub id: EntityId,
    pub at: u64,
    /// Whether it has stayed in range while neither list was full: then it should not have left.
    pub calm: bool,
    /// How many players both lists had in that tick.
    pub lists: [usize; 2],
}

#[derive(Debug, Default)]
pub(super) struct Player {
    pub client: ClientId,
    pub id: EntityId,
    pub in_scene: bool,
    /// The first tick at which the client is judged.
    pub from: u64,
    /// The client has received everything up to this tick.
    pub received: u64,
    pub last_frame: Option<u64>,
    pub inbox: VecDeque<Box<Frame>>,
    /// The frames of the tick being judged.
    pub now: Vec<Frame>,
    pub joins: VecDeque<Box<Joined>>,
    pub pending: VecDeque<Pending>,
    pub sent_last: Seq,
    pub ack: Seq,
    /// The first and last numbers of inputs of which not all viewers may have been told.
    pub unconfirmed: Vec<(Seq, Seq)>,
    pub epochs: Option<(Epoch, Epoch)>,
    pub shown: FxHashMap<EntityId, SeenEntity>,
    pub parted: Vec<Parted>,
    /// The number of ticks for which the list has been above the cap.
    pub over_cap: u64,
    pub left_at: Option<u64>,
    /// The client ended without leaving, so its entity may live on.
    pub vanished: bool,
    pub silent: bool,
}

impl Player {
    pub fn joining(client: ClientId, received: u64) -> Player {
        Player { client, received, ..Player::default() }
    }

    pub fn is_live(&self, t: u64) -> bool {
        self.in_scene && self.from <= t && self.left_at.is_none_or(|left| t < left)
    }

    pub fn listed(&self) -> usize {
        self.shown.values().filter(|e| e.kind == Kind::PLAYER).count()
    }
}

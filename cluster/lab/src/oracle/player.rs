//! What the oracle keeps of one client.

use std::collections::VecDeque;

use purview::scene::movement::Course;
use purview::scene::{EntityId, Epoch, Kind, Pos, Seq};
use purview::wire::Frame;
use purview::wire::client::Joined;
use rustc_hash::FxHashMap;

use super::{ClientId, Sent};

pub(super) const NOBODY: u32 = u32::MAX;

/// An input on its way.
#[derive(Debug)]
pub(super) struct Pending {
    pub seq: Seq,
    pub what: Sent,
    /// The tick that its client had heard of last when it was sent.
    pub at: u64,
    /// An act that somebody was told of already.
    pub told: bool,
}

/// Somebody whom a client is shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub kind: Kind,
    /// Its slot when last looked up; to be checked against its id.
    pub slot: u32,
    /// Where it is shown in the present tick.
    pub pos: Pos,
    /// What it was told to do, where moves are judged.
    pub course: Option<Course>,
    /// The tick of its enter.
    pub since: u64,
    /// The tick at which its place was told last.
    pub told: u64,
    /// The last tick at which it truly was where it is shown.
    pub fresh: u64,
    /// The longest update interval of its rings since then, in ticks.
    pub span: u64,
    /// Since when another update is due.
    pub due: Option<u64>,
    /// Counted as stale already.
    pub stale: bool,
    /// For how many ticks it has been shown out of range.
    pub extra: u64,
    /// For how many ticks it has not been shown this client.
    pub alone: u32,
}

/// A player who went out of view lately.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parted {
    pub id: EntityId,
    pub at: u64,
    /// In range since then, while neither list was full: it should not have gone.
    pub calm: bool,
}

#[derive(Debug)]
pub(super) struct Player {
    pub client: ClientId,
    pub id: EntityId,
    /// Whether it has joined.
    pub in_scene: bool,
    /// The first tick at which it is judged.
    pub from: u64,
    /// Everything up to this tick has come from it.
    pub heard: u64,
    pub last_frame: Option<u64>,
    pub inbox: VecDeque<Box<Frame>>,
    /// Frames of the tick being judged.
    pub now: Vec<Frame>,
    pub joins: VecDeque<Box<Joined>>,
    pub pending: VecDeque<Pending>,
    pub sent_last: Seq,
    pub ack: Seq,
    pub epochs: Option<(Epoch, Epoch)>,
    pub shown: FxHashMap<EntityId, Entry>,
    pub parted: Vec<Parted>,
    /// For how many ticks its list has been above the cap.
    pub over_cap: u64,
    pub left_at: Option<u64>,
    /// It ended without leaving, so that its entity may live on.
    pub vanished: bool,
    /// Counted as left without frames already.
    pub silent: bool,
}

impl Player {
    pub fn joining(client: ClientId, heard: u64) -> Player {
        Player {
            client,
            id: EntityId(0),
            in_scene: false,
            from: 0,
            heard,
            last_frame: None,
            inbox: VecDeque::new(),
            now: Vec::new(),
            joins: VecDeque::new(),
            pending: VecDeque::new(),
            sent_last: Seq(0),
            ack: Seq(0),
            epochs: None,
            shown: FxHashMap::default(),
            parted: Vec::new(),
            over_cap: 0,
            left_at: None,
            vanished: false,
            silent: false,
        }
    }

    /// Whether it is judged at tick `t`.
    pub fn is_live(&self, t: u64) -> bool {
        self.in_scene && self.from <= t && self.left_at.is_none_or(|left| t < left)
    }

    /// Players in its list.
    pub fn listed(&self) -> usize {
        self.shown.values().filter(|e| e.kind == Kind::PLAYER).count()
    }
}

//! What regions tell each other: ghosts as levels, entities that move over, and steps of a layout
//! change.
//!
//! A batch of ghosts may be lost or repeated: the next full one heals the receiver. A [`Handoff`] must
//! arrive, once.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::frame::InputRefused;
use super::order::{Deed, Spawn};
use crate::scene::movement::{Course, Mover};
use crate::scene::terrain::SavedDoors;
use crate::scene::views::{PeerState, Ties, ViewMsg};
use crate::scene::{EntityId, Epoch, Kind, Plane, Pos, RangeSet, RegionId, SceneId, Seq, Tick};

/// Everything that a region knows of an entity which lives in another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GhostState {
    /// Who.
    pub id: EntityId,
    /// The entity's epoch: what carries a lower one than known is late.
    pub epoch: Epoch,
    /// Its kind.
    pub kind: Kind,
    /// Its plane.
    pub plane: Plane,
    /// Where it is.
    pub pos: Pos,
    /// What it does; where it is in a tick the receiver computes by itself. `None`: it is where it was said
    /// to be.
    pub course: Option<Course>,
    /// Its range.
    pub range: RangeSet,
    /// Its opaque appearance.
    pub look: Bytes,
    /// Its bonds and fights.
    pub ties: Ties,
    /// Rank of the worst entry of its full view list; `u64::MAX` while it has room.
    pub thr: u64,
}

/// A ghost's changing part, as levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GhostChange {
    /// Who.
    pub id: EntityId,
    /// The entity's epoch.
    pub epoch: Epoch,
    /// Where it is.
    pub pos: Pos,
    /// As [`GhostState::course`].
    pub course: Option<Course>,
    /// As [`GhostState::thr`].
    pub thr: u64,
}

/// The sender mirrors an entity no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GhostLeave {
    /// Who.
    pub id: EntityId,
    /// The entity's epoch under the sender.
    pub epoch: Epoch,
    /// The region that owns it from now on and mirrors it if it is still near; `None` when it is
    /// gone or too far away.
    pub next: Option<RegionId>,
}

/// What a region mirrors to one neighbour in a tick. One per neighbour and tick, even when empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BorderBatch {
    /// The sender.
    pub from: RegionId,
    /// The sender's region epoch; a lower one than known is late.
    pub epoch: Epoch,
    /// The sender's lineage: since this region epoch nothing of it was lost. A higher one than known
    /// says that the region has died since and was put together anew.
    pub lineage: Epoch,
    /// The tick whose state this is.
    pub tick: Tick,
    /// The tick of the batch before this one; another than the receiver's last means that one was
    /// lost and only a full batch helps.
    pub prev: Tick,
    /// Whether `enters` is everything that the sender mirrors.
    pub full: bool,
    /// New ghosts.
    pub enters: Vec<GhostState>,
    /// Ghosts that changed.
    pub changes: Vec<GhostChange>,
    /// Ghosts that are mirrored no more.
    pub leaves: Vec<GhostLeave>,
    /// Acts of mirrored entities in this tick.
    pub acts: Vec<(EntityId, Deed)>,
}

impl BorderBatch {
    /// Takes the acts out, as a batch of the same tick that has nothing else.
    pub(in crate::scene) fn take_acts(&mut self) -> BorderBatch {
        let (enters, changes, leaves) = Default::default();
        let acts = std::mem::take(&mut self.acts);
        let BorderBatch { from, epoch, lineage, tick, prev, .. } = *self;
        BorderBatch { from, epoch, lineage, tick, prev, full: false, enters, changes, leaves, acts }
    }
}

/// What the players of a region say to those of one neighbour in a round of settling a tick.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettleBatch {
    /// The sender.
    pub from: RegionId,
    /// The sender's region epoch.
    pub epoch: Epoch,
    /// The tick that is settled.
    pub tick: Tick,
    /// The round, from 0.
    pub round: u32,
    /// The sender makes its frames of the tick now: it takes no part in later rounds.
    pub done: bool,
    /// What they say.
    pub letters: Vec<ViewMsg>,
    /// Ranks that a pair must beat to interest them, where these have changed; as
    /// [`GhostState::thr`].
    pub thrs: Vec<(EntityId, u64)>,
    /// Whether any of these is higher than it was: somebody has room for others.
    pub rises: bool,
}

/// An entry of what a player sees beside players.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenState {
    /// Who is seen.
    pub id: EntityId,
    /// The tick of the last update that the client was sent.
    pub sent: Tick,
}

/// An entity on its way to another region: its whole state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handoff {
    /// The region that it leaves.
    pub from: RegionId,
    /// That region's epoch.
    pub from_epoch: Epoch,
    /// What it is and where, without its bonds.
    pub state: Spawn,
    /// Its bonds and fights.
    pub ties: Ties,
    /// Its epoch under the new owner.
    pub epoch: Epoch,
    /// The last input that was applied.
    pub last_applied: Seq,
    /// The last tick in which it lived at the sender.
    pub tick: Tick,
    /// Its registers of the view negotiation.
    pub peers: Vec<PeerState>,
    /// The counter that numbers its requests.
    pub view_counter: u32,
    /// What else it sees.
    pub seen: Vec<SeenState>,
    /// Entities that its client was shown and must still be told have left.
    pub gone: Vec<EntityId>,
    /// Refused inputs that its client must still be told of.
    pub refused: Vec<InputRefused>,
    /// The account of its movement, where that is judged: course, debts, grants, rulings.
    pub mover: Option<Box<Mover>>,
    /// Whether its client is held.
    pub held: bool,
    /// Whether its client must be told everything anew.
    pub resync: bool,
    /// Whether it comes by a jump and not by walking, or its session has not been told of a jump before.
    pub jumped: bool,
    /// Its client is away; the tick in which it leaves unless it is back.
    #[serde(default)]
    pub absent_until: Option<Tick>,
    /// The sender's scene; `None`: an older release did not say.
    #[serde(default)]
    pub scene: Option<SceneId>,
    /// The region map has changed and it stands on another region's ground: it goes on there in the first
    /// tick by the new map.
    #[serde(default)]
    pub by_map: bool,
    /// Since when its session has it: see [`Resume::since_ms`](super::session::Resume::since_ms).
    #[serde(default)]
    pub since_ms: u64,
}

impl Handoff {
    /// The same without what it has to do with others, and without what its client was told.
    pub fn alone(&self) -> Handoff {
        let (peers, seen, gone, refused) = Default::default();
        let Handoff { from, from_epoch, epoch, last_applied, tick, view_counter, .. } = *self;
        let Handoff { held, resync, absent_until, jumped, scene, by_map, since_ms, .. } = *self;
        Handoff {
            from,
            from_epoch,
            state: self.state.clone(),
            ties: self.ties.clone(),
            epoch,
            last_applied,
            tick,
            peers,
            view_counter,
            seen,
            gone,
            refused,
            mover: self.mover.clone(),
            held,
            resync,
            jumped,
            absent_until,
            scene,
            by_map,
            since_ms,
        }
    }
}

/// A region has died and goes on from a checkpoint: what it holds, so that others say what they know
/// better.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovered {
    /// The region.
    pub region: RegionId,
    /// Its epoch from now on; what an older one says is late.
    pub epoch: Epoch,
    /// Who lives there by the checkpoint, and under which epoch.
    pub holds: Vec<(EntityId, Epoch)>,
}

/// Where an entity lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Who.
    pub id: EntityId,
    /// Its epoch; the highest one counts.
    pub epoch: Epoch,
    /// Where; it is gone when that region does not have it.
    pub region: RegionId,
}

/// What a region knows of entities that another one may believe to have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// Who says so.
    pub from: RegionId,
    /// The epoch of the recovered region that asked; `None`: nobody has asked.
    pub answer: Option<Epoch>,
    /// The sender's last closed tick.
    pub tick: Tick,
    /// Who lives elsewhere.
    pub lives: Vec<Claim>,
    /// Who was handed to the recovered region of late, as it was then, without what it had to do with
    /// others.
    pub handed: Vec<Handoff>,
}

/// What regions tell each other in a change of the map.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// Everything was said that belongs to the old map.
    Ended,
    /// Everybody was handed over who stands on ground that is the receiver's by the new map.
    Ceded {
        /// The doors as the sender knows them, for one that is new.
        doors: Option<SavedDoors>,
    },
}

/// A region's word in a change of the map.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapNews {
    /// The sender.
    pub from: RegionId,
    /// The version of the new map.
    pub version: u64,
    /// What it says.
    pub change: Change,
}

//! The whole of a region as it can be kept and taken elsewhere.
//!
//! Two depths of one form. A *frozen* region ([`Region::freeze`](crate::scene::Region::freeze)) is complete: its
//! ghosts, what its clients were told, what neighbours have sent that was not due. A region that goes on from
//! it goes on as if nothing had happened. A *checkpoint* ([`Region::checkpoint`](crate::scene::Region::checkpoint))
//! leaves out what is of no use once time has passed without it.

use serde::{Deserialize, Serialize};

use crate::scene::contents::SavedContents;
use crate::scene::messages::{Departed, GhostState, Handoff, Input, Spawn};
use crate::scene::region::border::{Mirror, Neighbour};
use crate::scene::region::custody::HandedOn;
use crate::scene::region::group_messages::GroupMessages;
use crate::scene::region::logic::SavedOutbox;
use crate::scene::region::recent_actions::RecentActions;
use crate::scene::region::views::SavedViewQueue;
use crate::scene::terrain::SavedDoors;
use crate::scene::views::GroupRelation;
use crate::scene::{
    EntityId, Epoch, Kind, Plane, Pos, RegionId, SceneId, Seq, SessionId, Tick, TickStamp,
};

/// An entity that lives in the region.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SavedReal {
    /// Its state, under its present epoch.
    pub state: Handoff,
    /// The first tick of which its client gets a frame.
    pub frames_from: Tick,
    /// Tick of the last change that viewers are told.
    pub changed: TickStamp,
    /// A door has closed in its way.
    pub cut: bool,
    /// Neighbours that mirror it, a bit each, in the order of [`RegionSnapshot::outbound`].
    pub mirrors: u32,
    /// Neighbours must be told everything of it again.
    pub restate: bool,
    /// The rank as neighbours were told.
    pub threshold_told: u64,
    /// Where a teleport takes it.
    pub bound: Option<(RegionId, Plane)>,
    /// The first tick of which its client was told nothing because it was held; 0: none.
    #[serde(default)]
    pub missed_from: Tick,
}

/// An entity that another region owns.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SavedGhost {
    pub state: GhostState,
    pub owner: RegionId,
    pub orphan_since: Option<TickStamp>,
    pub changed: TickStamp,
}

/// A region at the end of a tick. Its bytes: `encode` and `decode` in `wire`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RegionSnapshot {
    pub(in crate::scene::region) scene: SceneId,
    pub(in crate::scene::region) region: RegionId,
    pub(in crate::scene::region) epoch: Epoch,
    pub(in crate::scene::region) lineage: Epoch,
    pub(in crate::scene::region) tick: Tick,
    /// Nothing is left out.
    pub(in crate::scene::region) whole: bool,
    pub(in crate::scene::region) reals: Vec<SavedReal>,
    pub(in crate::scene::region) ghosts: Vec<SavedGhost>,
    pub(in crate::scene::region) doors: Option<SavedDoors>,
    /// How groups stand to each other.
    pub(in crate::scene::region) relations: Vec<GroupRelation>,
    /// What is known of the scene's contents, if there are any.
    pub(in crate::scene::region) contents: Option<Box<SavedContents>>,
    pub(in crate::scene::region) moved: Vec<(EntityId, HandedOn)>,
    pub(in crate::scene::region) inbox: Vec<Input>,
    pub(in crate::scene::region) arrivals: Vec<Spawn>,
    pub(in crate::scene::region) incoming: Vec<Handoff>,
    pub(in crate::scene::region) view_queue: SavedViewQueue,
    pub(in crate::scene::region) inbound: Vec<Neighbour>,
    pub(in crate::scene::region) swept: Tick,
    pub(in crate::scene::region) crashed: Vec<RegionId>,
    pub(in crate::scene::region) outbound: Vec<Mirror>,
    /// Entities that were handed on recently, the receivers and ticks, with the state of that time.
    pub(in crate::scene::region) escrow: Vec<(Tick, RegionId, Handoff)>,
    /// Entities that have arrived recently, and when.
    pub(in crate::scene::region) came: Vec<(Tick, EntityId, Epoch)>,
    /// Players of an earlier checkpoint that no session had presented yet.
    pub(in crate::scene::region) unclaimed: Vec<Handoff>,
    /// Messages for groups that came of late.
    pub(in crate::scene::region) group_messages: GroupMessages,
    /// Regions that have died once, and since which of their epochs they are believed again.
    pub(in crate::scene::region) fences: Vec<(RegionId, Epoch)>,
    /// Players that have left and whose last state is not stored yet.
    pub(in crate::scene::region) departing: Vec<Departed>,
    /// What the game's logic keeps beside the region.
    #[serde(default)]
    pub(in crate::scene::region) logic: Vec<u8>,
    /// Actions of late, which some may have missed.
    #[serde(default)]
    pub(in crate::scene::region) recent_actions: RecentActions,
    /// Its commands for entities that live elsewhere.
    #[serde(default)]
    pub(in crate::scene::region) outbox: SavedOutbox,
}

/// An entity of a snapshot: what one may want to know of it without a region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedEntity {
    /// The entity.
    pub id: EntityId,
    /// Its kind.
    pub kind: Kind,
    /// Its epoch.
    pub epoch: Epoch,
    /// Its plane.
    pub plane: Plane,
    /// Its last position.
    pub pos: Pos,
    /// The session of a player's client.
    pub session: Option<SessionId>,
    /// The last input that was applied.
    pub last_applied: Seq,
}

impl RegionSnapshot {
    /// What is left of a region of which there is no checkpoint, after an epoch that some owner may
    /// have had: players are presented, and other regions return entities that were handed to it
    /// recently.
    pub fn nothing(scene: SceneId, region: RegionId, epoch: Epoch) -> RegionSnapshot {
        RegionSnapshot { scene, region, epoch, lineage: epoch, ..RegionSnapshot::default() }
    }

    /// Contents that a list of another form has left are no entities of this scene any more.
    pub(super) fn forget_contents_but(&mut self, print: u64) {
        if self.contents.as_ref().is_none_or(|contents| contents.print == print) {
            return;
        }
        self.contents = None;
        self.reals.retain(|real| real.state.state.id.content().is_none());
        self.incoming.retain(|handoff| handoff.state.id.content().is_none());
        self.escrow.retain(|(.., handoff)| handoff.state.id.content().is_none());
    }

    /// The scene.
    pub fn scene(&self) -> SceneId {
        self.scene
    }

    /// The region.
    pub fn region(&self) -> RegionId {
        self.region
    }

    /// The region's epoch when this was taken.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The last tick that is in it.
    pub fn tick(&self) -> Tick {
        self.tick
    }

    /// Whether nothing is left out: it is a frozen region's and no checkpoint.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// Entities that live in the region or are about to arrive.
    pub fn entities(&self) -> impl Iterator<Item = SavedEntity> + '_ {
        let reals = self.reals.iter().map(|r| (&r.state, r.state.epoch));
        let others = self.incoming.iter().chain(&self.unclaimed).map(|h| (h, h.epoch));
        reals.chain(others).map(|(h, epoch)| SavedEntity {
            id: h.state.id,
            kind: h.state.kind,
            epoch,
            plane: h.state.plane,
            pos: h.state.pos,
            session: h.state.session,
            last_applied: h.last_applied,
        })
    }
}

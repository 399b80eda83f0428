//! What people may look at: copies of a region's state for the console and for tests.

pub mod why;

use serde::{Deserialize, Serialize};

use super::terrain::DoorState;
use super::views::{Ties, ViewRules};
use super::{
    EntityId, Epoch, Kind, Plane, Pos, RangeSet, Rect, RegionId, SceneId, Seq, SessionId, Tick,
};

/// An entity as a region has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntitySnapshot {
    /// Who.
    pub id: EntityId,
    /// Its kind.
    pub kind: Kind,
    /// Its plane.
    pub plane: Plane,
    /// Where it is.
    pub pos: Pos,
    /// The region that owns it.
    pub owner: RegionId,
    /// Whether this region only mirrors it.
    pub ghost: bool,
    /// Players in its view list (0 for a ghost).
    pub views: u32,
}

/// A region at the end of a tick.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionSnapshot {
    /// Its scene.
    pub scene: SceneId,
    /// Which region.
    pub region: RegionId,
    /// Its epoch.
    pub epoch: Epoch,
    /// Its ground.
    pub rect: Rect,
    /// The tick.
    pub tick: Tick,
    /// Entities that live here and ghosts.
    pub entities: Vec<EntitySnapshot>,
    /// The doors that are not as the map has them, sorted; of the plane that was asked for.
    pub doors: Vec<DoorState>,
}

/// A player that acts in a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActingPlayer {
    /// Who.
    pub id: EntityId,
    /// Its epoch.
    pub epoch: Epoch,
    /// Its plane.
    pub plane: Plane,
    /// Where it is.
    pub pos: Pos,
    /// The last input of its client that was applied.
    pub last_applied: Seq,
    /// Its client's session, if it has one.
    pub session: Option<SessionId>,
}

/// Another player, on a player's view list or asked to be on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewEntry {
    /// The other.
    pub id: EntityId,
    /// Bond class of the pair; 255 = none.
    pub class: u8,
    /// Ground distance, centimetres; `None` when the region does not know where the other is. Such
    /// an entry counts as the worst and goes with the next evaluation.
    pub dist_cm: Option<u32>,
    /// Both said YES. Otherwise the other is asked, which reserves its place, and its answer is under
    /// way.
    pub linked: bool,
}

/// A player with all that it sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlayerSnapshot {
    /// Who.
    pub id: EntityId,
    /// Its epoch.
    pub epoch: Epoch,
    /// The scene that it is in.
    pub scene: SceneId,
    /// The region that owns it.
    pub region: RegionId,
    /// The region's tick.
    pub tick: Tick,
    /// Its plane.
    pub plane: Plane,
    /// Where it is.
    pub pos: Pos,
    /// Its range (Patches).
    pub range: RangeSet,
    /// Its bonds and fights.
    pub ties: Ties,
    /// The rules of its scene's view lists.
    pub rules: ViewRules,
    /// Its view list: players that it sees and that see it, the best first.
    pub view: Vec<ViewEntry>,
    /// Players whom it has asked and who have not answered yet, the best first.
    pub asked: Vec<ViewEntry>,
    /// Whom it would give up first for somebody better; `None` while it has room.
    pub worst: Option<ViewEntry>,
    /// What else it sees.
    pub seen: Vec<EntityId>,
}

impl PlayerSnapshot {
    /// The place of another in the view list, from 1, the best; `None` when it is not on the list.
    pub fn place_of(&self, other: EntityId) -> Option<usize> {
        self.view.iter().position(|e| e.id == other).map(|ix| ix + 1)
    }

    /// Whether it sees another player: whether that is on its view list.
    pub fn sees(&self, other: EntityId) -> bool {
        self.place_of(other).is_some()
    }
}

/// An entity, as the region in which it lives has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Resident {
    /// A player.
    Player(Box<PlayerSnapshot>),
    /// Something of another kind.
    Other(EntitySnapshot),
}

impl Resident {
    /// Who.
    pub fn id(&self) -> EntityId {
        match self {
            Resident::Player(p) => p.id,
            Resident::Other(e) => e.id,
        }
    }
}

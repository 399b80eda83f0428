//! Read-only copies of a region's state, for the console, explanations ([`why`]) and
//! tests. Taking one must not change the region.

pub mod why;

use serde::{Deserialize, Serialize};

use super::properties::Properties;
use super::terrain::DoorState;
use super::views::{Relations, Ties, ViewRules};
use super::{
    EntityId, Epoch, Facing, Kind, Plane, Pos, RangeSet, Rect, RegionId, SceneId, Seq, SessionId,
    Tick,
};

/// An entity as a region knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntityDetails {
    /// The entity's id.
    pub id: EntityId,
    /// Its kind.
    pub kind: Kind,
    /// Its plane.
    pub plane: Plane,
    /// Its position.
    pub pos: Pos,
    /// The region that owns it.
    pub owner: RegionId,
    /// Whether this region only mirrors it.
    pub ghost: bool,
    /// Number of links in its view list (0 for a ghost).
    pub views: u32,
    /// The way it faces.
    pub facing: Facing,
    /// Its properties, as far as they are known here.
    pub properties: Properties,
}

/// A region at the end of a tick.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionDetails {
    /// The region's scene.
    pub scene: SceneId,
    /// The region.
    pub region: RegionId,
    /// The region's epoch.
    pub epoch: Epoch,
    /// The region's rectangle.
    pub rect: Rect,
    /// The tick.
    pub tick: Tick,
    /// Real entities and ghosts.
    pub entities: Vec<EntityDetails>,
    /// The doors of the requested plane that differ from the map's state, sorted.
    pub doors: Vec<DoorState>,
    /// Which entities have which others in their watch radius, of the requested plane.
    pub sighted: Vec<(EntityId, EntityId)>,
}

/// A player that is real in a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActingPlayer {
    /// The player.
    pub id: EntityId,
    /// Its epoch.
    pub epoch: Epoch,
    /// Its plane.
    pub plane: Plane,
    /// Its position.
    pub pos: Pos,
    /// The last input of its client that was applied.
    pub last_applied: Seq,
    /// Its client's session; `None` while disconnected.
    pub session: Option<SessionId>,
}

/// Another player, on a player's view list or asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewEntry {
    /// The other player.
    pub id: EntityId,
    /// Bond class of the pair; 255 = none.
    pub class: u8,
    /// Ground distance, centimetres; `None` if the region does not know the other player's
    /// position. Such an entry counts as the worst and is removed by the next evaluation.
    pub dist_cm: Option<u32>,
    /// Whether both said YES. Otherwise the other player is asked, which reserves its place, and
    /// the answer is in flight.
    pub linked: bool,
}

/// A player with all entities that it sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlayerDetails {
    /// The player.
    pub id: EntityId,
    /// Its epoch.
    pub epoch: Epoch,
    /// The player's scene.
    pub scene: SceneId,
    /// The region that owns the player.
    pub region: RegionId,
    /// The region's tick.
    pub tick: Tick,
    /// Its plane.
    pub plane: Plane,
    /// Its position.
    pub pos: Pos,
    /// The rings in which it is shown what is not a player (Patches).
    pub sight: RangeSet,
    /// Its bonds and fights.
    pub ties: Ties,
    /// How its groups stand to others.
    pub relations: Relations,
    /// The rules of its scene's view lists.
    pub rules: ViewRules,
    /// Its view list, best first.
    pub view: Vec<ViewEntry>,
    /// Players that it has asked and that have not answered yet, best first.
    pub asked: Vec<ViewEntry>,
    /// The entry that it would give up first for a better one; `None` while it has room.
    pub worst: Option<ViewEntry>,
    /// Entities of other kinds that it sees.
    pub seen: Vec<EntityId>,
    /// The way it faces.
    pub facing: Facing,
    /// Its properties.
    pub properties: Properties,
}

impl PlayerDetails {
    /// The place of another player in the view list, from 1 (best); `None` if it is not on the
    /// list.
    pub fn place_of(&self, other: EntityId) -> Option<usize> {
        self.view.iter().position(|e| e.id == other).map(|ix| ix + 1)
    }

    /// Whether another player is on the view list.
    pub fn sees(&self, other: EntityId) -> bool {
        self.place_of(other).is_some()
    }
}

/// An entity, as the region that owns it knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum InspectedEntity {
    /// A player.
    Player(Box<PlayerDetails>),
    /// An entity of another kind.
    Other(EntityDetails),
}

impl InspectedEntity {
    /// The entity's id.
    pub fn id(&self) -> EntityId {
        match self {
            InspectedEntity::Player(p) => p.id,
            InspectedEntity::Other(e) => e.id,
        }
    }
}

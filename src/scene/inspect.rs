//! What people may look at: copies of a region's state for the console and for tests.

use serde::{Deserialize, Serialize};

use super::terrain::DoorState;
use super::{EntityId, Epoch, Kind, Plane, Pos, RangeSet, Rect, RegionId, SceneId, Tick};

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

/// A player with all that it sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlayerSnapshot {
    /// Who.
    pub id: EntityId,
    /// Its epoch.
    pub epoch: Epoch,
    /// The region that owns it.
    pub region: RegionId,
    /// Its plane.
    pub plane: Plane,
    /// Where it is.
    pub pos: Pos,
    /// Its range (Patches).
    pub range: RangeSet,
    /// Its view list: players that it sees and that see it.
    pub view: Vec<EntityId>,
    /// What else it sees.
    pub seen: Vec<EntityId>,
}

//! The state of a terrain's doors, per plane.
//!
//! Every region of a scene owns a copy inside its [`Ground`](super::Ground). Door orders reach
//! regions by message: late, twice, or out of order. So each order carries a version that grows
//! with every order of the scene, and the newest due version wins, whatever arrived last. Regions
//! that received the same orders must have the same doors.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::{Door, DoorId, Terrain, UnknownDoor};
use crate::scene::{Plane, Tick};

/// Most orders that wait for their tick; each takes about 40 bytes.
const MAX_PENDING: usize = 65_536;

/// Most planes whose doors differ from the map's.
const MAX_PLANES: usize = 65_536;

/// Ticks for which the reset of a plane is remembered, so that orders older than the reset and
/// arriving later change nothing.
const RESET_TICKS: u64 = 1_000;

/// What an order changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DoorChange {
    /// Open or close one door.
    Set {
        /// The door.
        door: DoorId,
        /// Open (free) or closed (blocked).
        open: bool,
    },
    /// Put all doors of the plane back to the map's state, and forget the plane: for an instance
    /// that has ended.
    Reset,
}

/// An order for the doors of one plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DoorOrder {
    /// The plane.
    pub plane: Plane,
    /// What to change.
    pub change: DoorChange,
    /// The tick at whose start it takes effect. If that tick is past: the next tick.
    pub at: Tick,
    /// Greater than the version of every earlier order of the scene.
    pub version: u64,
}

/// Why a door order cannot be applied. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DoorError {
    /// The scene has no map.
    #[error("the scene has no map, so it has no doors")]
    NoTerrain,
    /// No door has this name.
    #[error(transparent)]
    Unknown(#[from] UnknownDoor),
    /// No door has this id.
    #[error("there is no door {}; this map has {doors}, numbered from 0", .door.0)]
    UnknownId {
        /// The id in the order.
        door: DoorId,
        /// Number of doors of the map.
        doors: usize,
    },
    /// The limbo plane holds no entities and no doors.
    #[error("the limbo plane has no doors; name a plane of the scene")]
    Limbo,
    /// Too many orders are waiting.
    #[error("{MAX_PENDING} door orders are already waiting for their ticks; try again later")]
    Pending,
    /// Too many planes have doors that differ from the map's.
    #[error(
        "{MAX_PLANES} planes already have doors that differ from the map's; reset planes that are not \
         in use any more"
    )]
    Planes,
}

/// A door that an order has set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Set {
    door: DoorId,
    open: bool,
    version: u64,
}

/// The doors of one plane that orders have set, sorted by id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct PlaneDoors {
    set: Vec<Set>,
    /// Version of the last reset: orders with a lower version are stale.
    reset: u64,
    reset_at: Tick,
}

/// A door in a plane, as an order has set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DoorState {
    /// The plane.
    pub plane: Plane,
    /// The door.
    pub door: DoorId,
    /// Open or closed.
    pub open: bool,
}

/// The doors of a terrain, all in the map's state until orders arrive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DoorStates {
    planes: FxHashMap<Plane, PlaneDoors>,
    /// Orders not due yet, sorted by tick and version.
    pending: Vec<DoorOrder>,
}

impl DoorStates {
    /// Whether a door is open in a plane.
    pub fn is_open(&self, plane: Plane, id: DoorId, door: &Door) -> bool {
        let set = self.planes.get(&plane).and_then(|p| p.find(id).ok().map(|at| p.set[at].open));
        set.unwrap_or(door.open)
    }

    /// Queues an order until its tick.
    pub fn order(&mut self, terrain: &Terrain, order: DoorOrder) -> Result<(), DoorError> {
        if order.plane == Plane::LIMBO {
            return Err(DoorError::Limbo);
        }
        if let DoorChange::Set { door, .. } = order.change
            && terrain.door(door).is_none()
        {
            return Err(DoorError::UnknownId { door, doors: terrain.doors.len() });
        }
        if self.pending.len() >= MAX_PENDING {
            return Err(DoorError::Pending);
        }
        if !self.planes.contains_key(&order.plane) && self.planes.len() >= MAX_PLANES {
            return Err(DoorError::Planes);
        }
        self.planes.entry(order.plane).or_default();
        let at = self.pending.partition_point(|o| (o.at, o.version) <= (order.at, order.version));
        self.pending.insert(at, order);
        Ok(())
    }

    /// Applies the orders due in tick `now`. Returns whether there were any.
    pub fn turn(&mut self, now: Tick) -> bool {
        let due = self.pending.partition_point(|o| o.at <= now);
        for order in self.pending.drain(..due) {
            self.planes.entry(order.plane).or_default().apply(&order, now);
        }
        if now.0.is_multiple_of(RESET_TICKS) {
            self.planes.retain(|_, p| {
                !p.set.is_empty() || now.0 < p.reset_at.0.saturating_add(RESET_TICKS)
            });
        }
        due > 0
    }

    /// The doors that orders have set, sorted by plane and door; of one plane, or of all.
    pub fn states(&self, plane: Option<Plane>) -> Vec<DoorState> {
        let states = |(plane, doors): (&Plane, &PlaneDoors)| {
            let plane = *plane;
            let set = doors.set.clone().into_iter();
            set.map(move |s| DoorState { plane, door: s.door, open: s.open })
        };
        let mut all: Vec<_> = match plane {
            Some(p) => self.planes.get_key_value(&p).into_iter().flat_map(states).collect(),
            None => self.planes.iter().flat_map(states).collect(),
        };
        all.sort_unstable();
        all
    }
}

impl PlaneDoors {
    fn find(&self, door: DoorId) -> Result<usize, usize> {
        self.set.binary_search_by_key(&door, |s| s.door)
    }

    fn apply(&mut self, order: &DoorOrder, now: Tick) {
        let version = order.version;
        if version < self.reset {
            return;
        }
        match order.change {
            DoorChange::Reset => {
                (self.reset, self.reset_at) = (version, now);
                self.set.retain(|s| s.version > version);
            }
            DoorChange::Set { door, open } => match self.find(door) {
                Ok(at) if version < self.set[at].version => {}
                Ok(at) => self.set[at] = Set { door, open, version },
                Err(at) => self.set.insert(at, Set { door, open, version }),
            },
        }
    }
}

/// A door in a checkpoint, by name: names outlive changes of the map.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SavedDoor {
    /// The plane.
    pub plane: Plane,
    /// The door's name.
    pub door: String,
    /// Open or closed.
    pub open: bool,
    /// Version of the order that set it.
    pub version: u64,
}

/// An order in a checkpoint that was not due yet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SavedOrder {
    /// The tick at whose start it takes effect.
    pub at: Tick,
    /// Version of the order.
    pub version: u64,
    /// The plane.
    pub plane: Plane,
    /// The door and whether to open it; `None` resets the plane.
    pub door: Option<(String, bool)>,
}

/// The state of all doors, for a checkpoint or another node. Equal states serialise equally.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedDoors {
    /// The doors that orders have set.
    pub doors: Vec<SavedDoor>,
    /// Planes that were reset recently: version and tick of the reset.
    pub resets: Vec<(Plane, u64, Tick)>,
    /// Orders not due yet.
    pub orders: Vec<SavedOrder>,
}

impl DoorStates {
    /// The whole state, with doors by name.
    pub fn save(&self, terrain: &Terrain) -> SavedDoors {
        let name = |id| terrain.door(id).map(|d| d.name.clone()).unwrap_or_default();
        let mut saved = SavedDoors::default();
        for (plane, doors) in &self.planes {
            let door = |s: &Set| SavedDoor {
                plane: *plane,
                door: name(s.door),
                open: s.open,
                version: s.version,
            };
            saved.doors.extend(doors.set.iter().map(door));
            if doors.reset > 0 {
                saved.resets.push((*plane, doors.reset, doors.reset_at));
            }
        }
        saved.doors.sort_unstable();
        saved.resets.sort_unstable();
        let order = |o: &DoorOrder| SavedOrder {
            at: o.at,
            version: o.version,
            plane: o.plane,
            door: match o.change {
                DoorChange::Set { door, open } => Some((name(door), open)),
                DoorChange::Reset => None,
            },
        };
        saved.orders = self.pending.iter().map(order).collect();
        saved
    }

    /// Restores a saved state.
    pub fn restore(terrain: &Terrain, saved: &SavedDoors) -> Result<DoorStates, DoorError> {
        let mut doors = DoorStates::default();
        doors.merge(terrain, saved)?;
        Ok(doors)
    }

    /// Merges another copy's state: for each door the newest order wins.
    pub fn merge(&mut self, terrain: &Terrain, saved: &SavedDoors) -> Result<(), DoorError> {
        for (plane, reset, reset_at) in &saved.resets {
            let (version, change) = (*reset, DoorChange::Reset);
            let order = DoorOrder { plane: *plane, change, at: *reset_at, version };
            let doors = self.planes.entry(*plane).or_default();
            if version > doors.reset {
                doors.apply(&order, *reset_at);
            }
        }
        for s in &saved.doors {
            let change = DoorChange::Set { door: terrain.door_named(&s.door)?, open: s.open };
            let order = DoorOrder { plane: s.plane, change, at: Tick(0), version: s.version };
            self.planes.entry(s.plane).or_default().apply(&order, Tick(0));
        }
        for o in &saved.orders {
            let change = match &o.door {
                Some((name, open)) => {
                    DoorChange::Set { door: terrain.door_named(name)?, open: *open }
                }
                None => DoorChange::Reset,
            };
            let order = DoorOrder { plane: o.plane, change, at: o.at, version: o.version };
            if !self.pending.contains(&order) {
                self.order(terrain, order)?;
            }
        }
        Ok(())
    }
}

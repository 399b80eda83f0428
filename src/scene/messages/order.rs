//! What an entity is ordered to do, and what it begins as.
//!
//! Clients and the game's logic give orders; a region applies them. The types hold no rule: whether an
//! order is legal, the region decides.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::scene::movement::{Flags, GrantId, Move, MoveCommand, ServerMs};
use crate::scene::portals::Journey;
use crate::scene::properties::{Properties, PropertyId, Value};
use crate::scene::terrain::{DoorChange, DoorOrder};
use crate::scene::views::{GroupRelation, KeptBonds, Relation};
use crate::scene::{
    Account, EntityId, Facing, Kind, Plane, Pos, RegionId, SceneId, SessionId, SubjectHash, Tick,
    ViewLimits,
};

/// A change of what all regions of a scene have in common, as logic orders it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SceneChange {
    /// Of the doors of a plane.
    Doors(Plane, DoorChange),
    /// Of how two groups of this class stand to each other.
    Relation(u8, [u64; 2], Relation),
}

/// The same with its tick and version, as every region of the scene is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SceneOrder {
    /// Of the doors of a plane.
    Doors(DoorOrder),
    /// Of how two groups stand to each other.
    Relation(GroupRelation),
    /// No order: what a region knows of relations, as [`Relations::digest`](crate::scene::views::Relations::digest)
    /// says.
    RelationsKnown {
        /// The region.
        by: RegionId,
        /// The digest.
        digest: u64,
    },
}

impl SceneOrder {
    /// The change, to take effect with the start of a tick.
    pub fn new(change: SceneChange, at: Tick, version: u64) -> SceneOrder {
        match change {
            SceneChange::Doors(plane, change) => {
                SceneOrder::Doors(DoorOrder { plane, change, at, version })
            }
            SceneChange::Relation(class, groups, relation) => {
                SceneOrder::Relation(GroupRelation { class, groups, relation, at, version })
            }
        }
    }

    /// Its tick and version; 0 of what is no order.
    pub fn when(&self) -> (Tick, u64) {
        match self {
            SceneOrder::Doors(order) => (order.at, order.version),
            SceneOrder::Relation(order) => (order.at, order.version),
            SceneOrder::RelationsKnown { .. } => (Tick(0), 0),
        }
    }
}

/// Where a teleport goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Destination {
    /// The scene.
    pub scene: SceneId,
    /// The region of that scene that owns the place.
    pub region: RegionId,
    /// The plane.
    pub plane: Plane,
    /// The place.
    pub pos: Pos,
}

/// What a player orders, or the game logic on behalf of any entity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Be elsewhere: for a client where places are trusted, for game logic anywhere.
    Move(Pos),
    /// A move command, where moves are judged.
    Walk(MoveCommand),
    /// Teleport.
    Teleport(Destination),
    /// Teleport to a scene that is named, by the game's logic.
    Travel(Journey),
    /// Do something that all viewers are told once.
    Act(EntityAction),
    /// Face another way, walking or standing.
    Face(Facing),
    /// Give a property a value.
    Set(SetProperty),
}

/// A property that is given a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetProperty {
    /// The property.
    pub id: PropertyId,
    /// The value.
    pub value: Value,
}

/// An order of the game logic about an entity's movement, where moves are judged. The entity's client is
/// told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Motion {
    /// The entity walks from where it is, as far as its way is clear and for at most a minute, whatever its
    /// client wishes: a monster's walk, a knock-back.
    Walk(Move),
    /// The entity stands where it is.
    Stop,
    /// What keeps the entity from moving; a new reason stops it.
    Flags(Flags),
    /// Another speed of the entity's own, centimetres per second.
    Speed(u32),
    /// A speed beyond the entity's own: a mount, a dash.
    Grant {
        /// The grant's name, above 0, by which it is taken back; a grant of the same name is replaced.
        id: GrantId,
        /// Centimetres per second.
        speed_cm_s: u32,
        /// For how many milliseconds of walking; `None`: until it is taken back.
        lasts_ms: Option<u32>,
    },
    /// A grant without an end is taken back.
    Revoke(GrantId),
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Speaker {
    /// The entity's own client.
    #[default]
    Client,
    /// The game's logic.
    Logic,
}

/// An action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntityAction {
    /// What it is; opaque, at most 1,024 bytes.
    pub payload: Bytes,
    /// The player at which the action is aimed: if that player is in range, the two fight for a while,
    /// which is a bond (see [`crate::scene::spec::BondSpec`]).
    pub aim: Option<EntityId>,
    /// Who speaks: the region that applies the action says so, and no client can claim to be the logic.
    pub by: Speaker,
}

impl EntityAction {
    /// An action that is aimed at no player.
    pub fn new(payload: impl Into<Bytes>) -> EntityAction {
        EntityAction { payload: payload.into(), aim: None, by: Speaker::Client }
    }
}

/// A new entity.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spawn {
    /// Its id; not in use.
    pub id: EntityId,
    /// Its kind, one of the scene's.
    pub kind: Kind,
    /// Its plane.
    pub plane: Plane,
    /// Its place, on the region's ground.
    pub pos: Pos,
    /// What a player is shown.
    pub sight: ViewLimits,
    /// When an earlier session left the player at `pos`, by the server's clock: it owes all the walking
    /// that may be owed, but for what time has paid since. `None`: it owes nothing.
    pub left_at: Option<ServerMs>,
    /// The way it faces.
    pub facing: Facing,
    /// Its properties.
    pub properties: Properties,
    /// The session of the player's client; `None` for an entity without a client.
    pub session: Option<SessionId>,
    /// Whose it is.
    pub subject: SubjectHash,
    /// The same for game logic.
    pub account: Account,
    /// Its bonds. In a region's own state: those of kinds that the scene does not have.
    pub bonds: KeptBonds,
}

impl Spawn {
    /// An entity of nobody at a place of plane 0, which faces east and sees as far as its scene allows.
    pub fn new(id: EntityId, kind: Kind, pos: Pos) -> Spawn {
        Spawn { id, kind, pos, ..Spawn::default() }
    }
}

//! What an entity is ordered to do, and what it begins as.
//!
//! Clients and the game's logic give orders; a region applies them. The types hold no rule: whether an
//! order is legal, the region decides.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::scene::movement::{Flags, GrantId, Move, MoveOrder};
use crate::scene::views::Bond;
use crate::scene::{EntityId, Kind, Plane, Pos, RangeSet, RegionId, SceneId, SessionId};

/// Where a jump goes.
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

/// What a player, or the server's logic on behalf of any entity, orders it to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Be elsewhere: for a client where places are trusted, for the server's logic anywhere.
    Move(Pos),
    /// A word about its movement, where moves are judged.
    Walk(MoveOrder),
    /// Teleport.
    Jump(Destination),
    /// Do something that all who see it are told.
    Act(Deed),
}

/// What the server's logic makes of an entity's movement, where moves are judged. An entity's client is
/// told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Motion {
    /// It walks, as far as its way is clear and for at most a minute, whatever its client wishes: a
    /// beast's walk, a knock-back. It begins where the entity is.
    Walk(Move),
    /// It stands where it is.
    Stop,
    /// What keeps it from moving; more than before stops it.
    Flags(Flags),
    /// Another top speed of its own, centimetres per second.
    Speed(u32),
    /// A speed beyond its own: a mount, a dash.
    Grant {
        /// Its name, above 0, by which it is taken back; a grant of that name is replaced.
        id: GrantId,
        /// Centimetres per second.
        speed_cm_s: u32,
        /// For how many milliseconds of walking; `None`: until it is taken back.
        lasts_ms: Option<u32>,
    },
    /// A grant without an end is taken back.
    Revoke(GrantId),
}

/// What somebody does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deed {
    /// What it is; opaque, at most 1,024 bytes.
    pub payload: Bytes,
    /// The player that it is aimed at: if that one is in range, the two fight for a while, which is
    /// a bond (see [`crate::scene::spec::BondSpec`]).
    pub aim: Option<EntityId>,
}

impl Deed {
    /// Something that is aimed at nobody.
    pub fn new(payload: impl Into<Bytes>) -> Deed {
        Deed { payload: payload.into(), aim: None }
    }
}

/// A new entity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spawn {
    /// Its name; not in use.
    pub id: EntityId,
    /// Its kind, one of the scene's.
    pub kind: Kind,
    /// Its plane.
    pub plane: Plane,
    /// Its place, on the region's ground.
    pub pos: Pos,
    /// Its range (Patches).
    pub range: RangeSet,
    /// Its opaque appearance.
    pub look: Bytes,
    /// The session of the player's client; `None` for what no client steers.
    pub session: Option<SessionId>,
    /// Its bonds, at most [`MAX_BONDS`](crate::scene::views::MAX_BONDS).
    pub bonds: Vec<Bond>,
}

//! What is added to a world.

use bytes::Bytes;

use crate::scene::messages::NamedBond;
use crate::scene::properties::{Properties, PropertyId, Value};
use crate::scene::{Facing, Kind, Plane, Pos, RangeSet, ViewCap};

/// An entity to add: a builder.
#[derive(Debug, Clone)]
pub struct Entity {
    pub(super) kind: Kind,
    pub(super) pos: Pos,
    pub(super) plane: Plane,
    pub(super) sight: Option<RangeSet>,
    pub(super) view_cap: ViewCap,
    pub(super) facing: Facing,
    pub(super) appearance: Bytes,
    pub(super) properties: Properties,
    pub(super) bonds: Vec<NamedBond>,
}

impl Entity {
    /// A player: it views, and other players view it.
    pub fn player(pos: Pos) -> Entity {
        Entity::of(Kind::PLAYER, pos)
    }

    /// An entity of another kind of the scene: players view it, and it views nothing.
    pub fn of(kind: Kind, pos: Pos) -> Entity {
        let (plane, sight, view_cap) = (Plane(0), None, ViewCap::SCENE);
        let (facing, appearance, properties, bonds) = Default::default();
        Entity { kind, pos, plane, sight, view_cap, facing, appearance, properties, bonds }
    }

    /// The plane; 0 unless set. Entities of different planes never see each other.
    pub fn plane(mut self, plane: Plane) -> Entity {
        self.plane = plane;
        self
    }

    /// The rings in which the player is shown what is not a player (patches only); the scene's range
    /// unless set. Players see each other by the scene's range alone.
    pub fn sight(mut self, sight: RangeSet) -> Entity {
        self.sight = Some(sight);
        self
    }

    /// Most players in the player's view list, if fewer than the scene's cap.
    pub fn view_cap(mut self, view_cap: ViewCap) -> Entity {
        self.view_cap = view_cap;
        self
    }

    /// Opaque bytes that every viewer receives with the entity.
    pub fn appearance(mut self, appearance: impl Into<Bytes>) -> Entity {
        self.appearance = appearance.into();
        self
    }

    /// The value of a property. The kind must declare it: see [`WorldBuilder::spec`](super::WorldBuilder::spec).
    pub fn property(mut self, id: PropertyId, value: Value) -> Entity {
        self.properties.begin_with(id, value);
        self
    }

    /// The way it faces; east unless set.
    pub fn facing(mut self, facing: Facing) -> Entity {
        self.facing = facing;
        self
    }

    /// A bond: players of one group see each other before all other players.
    pub fn bond(mut self, bond: NamedBond) -> Entity {
        self.bonds.push(bond);
        self
    }
}

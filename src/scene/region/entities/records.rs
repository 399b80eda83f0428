//! What is known of one entity: three records in three arrays, by how often a tick touches them.
//!
//! [`Body`] is touched by every rule, [`Location`] by every range query, [`Record`] rarely.
//! [`EntityStore`](super::EntityStore) keeps them in step and is alone in writing them.

use std::collections::BTreeSet;

use crate::scene::geo::dist2;
use crate::scene::index::Patch;
use crate::scene::messages::{GhostState, Spawn, WatchState};
use crate::scene::movement::Mover;
use crate::scene::mutants::{self, Mutant};
use crate::scene::properties::Properties;
use crate::scene::views::Ties;
use crate::scene::{
    EntityId, Epoch, Facing, Kind, Plane, Pos, RangeSet, RegionId, Tick, TickStamp, ViewCap,
    ViewLimits,
};

/// No slot.
pub const NO_SLOT: u32 = u32::MAX;

/// New slots, by the old ones.
#[derive(Debug)]
pub struct Renumbering(pub(super) Vec<u32>);

impl Renumbering {
    /// The new slot of the entity that was at `slot`; [`NO_SLOT`] for a slot that was never used.
    #[inline]
    pub fn apply(&self, slot: &mut u32) {
        *slot = self.0.get(*slot as usize).copied().unwrap_or(NO_SLOT);
    }

    /// The new slots of all these.
    pub fn applied(&self, slots: &BTreeSet<u32>) -> BTreeSet<u32> {
        let mut slots: Vec<u32> = slots.iter().copied().collect();
        slots.iter_mut().for_each(|slot| self.apply(slot));
        slots.into_iter().collect()
    }
}

/// Bits of a tag: the entity's sight, from this one on the cap of its view list, and whether it has bonds
/// or fights.
const TAG_CAP: u32 = 16;

/// See [`TAG_CAP`].
pub const TAG_BONDED: u32 = 1 << 8;

/// What the tick touches of every entity: one cache line, which a test checks.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub struct Body {
    pub id: EntityId,
    pub pos: Pos,
    /// Tick of the last change of its place, trajectory or facing.
    pub changed: TickStamp,
    /// Tick of the last change that viewers are told. Before `changed` where viewers extrapolate: a
    /// change that they foresee is none to them.
    pub shown: TickStamp,
    /// Tick of the last of the changes that viewers are told that was more than a turn.
    pub moved: TickStamp,
    /// Tick of the last change of a property.
    pub properties: TickStamp,
    /// Tick of its last act.
    pub acted: TickStamp,
    /// Index into the region's viewers, for a player that lives here.
    pub viewer: u32,
    /// Rank that a pair must beat to interest this player; `u64::MAX` while it has room.
    pub threshold: u64,
    pub facing: Facing,
    pub kind: Kind,
    /// Whether it lives here; as its [`Role`] says.
    pub(super) real: bool,
}

impl Body {
    /// Whether it lives here.
    #[inline]
    pub fn is_real(&self) -> bool {
        self.real
    }
}

/// What others look at of an entity in every tick to see whether it is in range: as small as can be,
/// since sixty of these are looked at for each player.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location {
    /// Position, as in [`Body::pos`], centimetres.
    pub x: i32,
    pub y: i32,
    pub z: i32,
    /// Patch in the grid of its own kind; equal coordinates in every grid of its layer.
    pub patch: Patch,
    /// Index of its plane; [`NOWHERE`] while the slot is free.
    pub plane_ix: u32,
    pub tag: u32,
}

/// The plane of a free slot.
pub(super) const NOWHERE: u32 = u32::MAX;

impl Location {
    /// The rings in which the entity, a player, is shown what is not a player.
    #[inline]
    pub fn rings(&self) -> RangeSet {
        RangeSet::from_bits((self.tag & 7) as u8).unwrap_or(RangeSet::NONE)
    }

    /// The same with the cap of its view list.
    pub fn sight(&self) -> ViewLimits {
        let is_lost = mutants::has(Mutant::CapForgotten);
        ViewLimits { rings: self.rings(), cap: if is_lost { ViewCap::SCENE } else { self.cap() } }
    }

    /// Most players in the view list of the entity, a player.
    #[inline]
    pub fn cap(&self) -> ViewCap {
        ViewCap::new((self.tag >> TAG_CAP) as u16)
    }

    /// The entity may share bonds with others.
    pub fn is_bonded(&self) -> bool {
        self.tag & TAG_BONDED != 0
    }

    /// The slot is free.
    #[inline]
    pub fn is_free(&self) -> bool {
        self.plane_ix == NOWHERE
    }

    /// The position.
    #[inline]
    pub fn pos(&self) -> Pos {
        Pos { x: self.x, y: self.y, z: self.z }
    }

    /// Squared ground distance to `other`, in square centimetres.
    #[inline]
    pub fn dist2(&self, other: &Location) -> u64 {
        dist2(self.x, self.z, other.x, other.z)
    }
}

/// An entity that lives here.
#[derive(Debug, Clone, Default)]
pub struct Real {
    /// Neighbours that mirror it, a bit each.
    pub mirrors: u32,
    /// Neighbours must be told everything of it again.
    pub restate: bool,
    /// The rank as neighbours were told.
    pub threshold_told: u64,
    /// It has teleported and goes where another region rules.
    pub bound_for: Option<Bound>,
    /// One of the scene's contents that was removed: it is nowhere until this tick.
    pub asleep_until: Option<Tick>,
    /// The account of its movement, where that is judged.
    pub mover: Option<Box<Mover>>,
    /// What it has in its radius, if it watches and has ever had anything.
    pub watch: Option<Box<WatchState>>,
}

/// Where a teleport out of the region goes.
#[derive(Debug, Clone, Copy)]
pub struct Bound {
    pub region: RegionId,
    pub plane: Plane,
}

/// An entity that lives in another region. It is shown and negotiated with, never simulated.
#[derive(Debug, Clone)]
pub struct Ghost {
    /// The owner.
    pub owner: RegionId,
    /// Since when no region mirrors it, though its owner should.
    pub orphan_since: Option<TickStamp>,
}

/// Whose an entity is. Two types and not a flag: a ghost has no handler for what only a real may do.
#[derive(Debug, Clone)]
pub enum Role {
    Real(Real),
    Ghost(Ghost),
    /// The slot is free.
    Free,
}

/// The rest of an entity.
#[derive(Debug, Clone)]
pub struct Record {
    pub epoch: Epoch,
    pub plane: Plane,
    pub properties: Properties,
    pub ties: Ties,
    pub role: Role,
}

/// An entity that the store does not have yet. Its plane and kind are legal.
#[derive(Debug)]
pub struct NewEntity {
    pub id: EntityId,
    pub kind: Kind,
    pub plane: Plane,
    pub pos: Pos,
    pub facing: Facing,
    pub sight: ViewLimits,
    pub properties: Properties,
    pub ties: Ties,
    pub epoch: Epoch,
}

impl NewEntity {
    /// An entity that begins to live here.
    pub fn of_spawn(spawn: &Spawn, ties: Ties, epoch: Epoch) -> NewEntity {
        let Spawn { id, kind, plane, pos, facing, sight, ref properties, .. } = *spawn;
        let properties = properties.clone();
        NewEntity { id, kind, plane, pos, facing, sight, properties, ties, epoch }
    }

    /// An entity that its owner mirrors here.
    pub fn of_ghost(state: GhostState) -> NewEntity {
        let GhostState { id, epoch, kind, plane, pos, facing, properties, ties, cap, .. } = state;
        // Its owner shows it what it sees.
        let sight = ViewLimits { rings: RangeSet::NONE, cap };
        NewEntity { id, kind, plane, pos, facing, sight, properties, ties, epoch }
    }

    /// The three records, beside the role; the entity stands on no plane yet.
    pub(super) fn into_records(self, role: Role, now: Tick) -> (Body, Location, Record) {
        let NewEntity { id, kind, plane, pos, facing, sight, properties, ties, epoch } = self;
        let (viewer, real) = (u32::MAX, matches!(role, Role::Real(_)));
        // The caller decides whether viewers are told: until then nothing is new.
        let before = TickStamp::of(Tick(now.0.wrapping_sub(1)));
        let (changed, shown, moved, acted) = (before, before, before, before);
        let threshold = u64::MAX;
        let told = properties.last_change().unwrap_or(before);
        let body = Body {
            id,
            pos,
            changed,
            shown,
            moved,
            properties: told,
            acted,
            viewer,
            threshold,
            facing,
            kind,
            real,
        };
        let tag = tag_of(sight, &ties);
        let patch = Patch { x: 0, z: 0 };
        let Pos { x, y, z } = pos;
        let place = Location { x, y, z, patch, plane_ix: NOWHERE, tag };
        (body, place, Record { epoch, plane, properties, ties, role })
    }
}

pub(super) fn tag_of(sight: ViewLimits, ties: &Ties) -> u32 {
    let cap = u32::from(sight.cap.players()) << TAG_CAP;
    u32::from(sight.rings.bits()) | cap | if ties.is_empty() { 0 } else { TAG_BONDED }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_one_cache_line() {
        assert_eq!(size_of::<Body>(), 64);
    }
}

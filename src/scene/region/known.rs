//! What the game's logic may read of the entities that a region knows, without a copy.

use super::Region;
use crate::scene::messages::Bond;
use crate::scene::properties::Properties;
use crate::scene::spec::BondSpec;
use crate::scene::views::Ties;
use crate::scene::{Account, EntityId, Epoch, Facing, Kind, Plane, Pos, Tick};

/// An entity that lives in a region or is mirrored there.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// Its id.
    pub id: EntityId,
    /// Its epoch, which grows with every handoff and death.
    pub epoch: Epoch,
    /// Its kind.
    pub kind: Kind,
    /// Its plane.
    pub plane: Plane,
    /// Where it is.
    pub pos: Pos,
    /// The way it faces.
    pub facing: Facing,
    /// It lives here; otherwise it is a ghost, whose properties are as its region has told them last.
    pub is_real: bool,
    /// Its properties, also those that no client is told.
    pub properties: &'a Properties,
    /// Its bonds of the kinds that the scene has.
    pub bonds: KnownBonds<'a>,
    /// It is a player that lives here and whose client is disconnected.
    pub is_disconnected: bool,
    /// Whose it is, if it is a player that lives here.
    pub account: Option<&'a Account>,
}

/// Bonds of a player, read by the names of their kinds.
#[derive(Debug, Clone, Copy)]
pub struct KnownBonds<'a> {
    /// The tick in which logic has set them last, of a player that lives here; 0: not since it joined.
    pub since: Tick,
    spec: &'a BondSpec,
    bonds: &'a [Bond],
}

impl<'a> KnownBonds<'a> {
    /// The kind and the group of each.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, u64)> {
        self.bonds.iter().filter_map(move |bond| self.spec.name_of(bond))
    }

    /// The group of its first bond of a kind.
    pub fn group(self, kind: &str) -> Option<u64> {
        self.iter().find(|(of, _)| *of == kind).map(|(_, group)| group)
    }
}

impl Region {
    fn known_bonds<'a>(&'a self, ties: &'a Ties, since: Tick) -> KnownBonds<'a> {
        KnownBonds { since, spec: &self.identity.scene().spec.bonds, bonds: &ties.bonds }
    }

    /// The entity with this id, if it lives here or is mirrored here.
    pub fn known(&self, id: EntityId) -> Option<Known<'_>> {
        let slot = self.entities.slot(id).filter(|slot| self.asleep_until(*slot).is_none());
        slot.map(|slot| self.known_at(slot))
    }

    /// The entities of a kind that live here, in an order that depends on nothing but
    /// what has happened to them.
    pub fn lives_here(&self, kind: Kind) -> impl Iterator<Item = Known<'_>> + '_ {
        let slots = self.resident_slots().filter(move |s| self.entities.body(*s).kind == kind);
        slots.map(|slot| self.known_at(slot))
    }

    /// All entities that live here, in the same order.
    pub fn residents(&self) -> impl Iterator<Item = Known<'_>> + '_ {
        self.resident_slots().map(|slot| self.known_at(slot))
    }

    /// The slots of all entities that live here.
    pub(super) fn resident_slots(&self) -> impl Iterator<Item = u32> + '_ {
        let lives_here =
            |slot: &u32| self.entities.body(*slot).is_real() && self.asleep_until(*slot).is_none();
        self.entities.slots().filter(lives_here)
    }

    /// Entities that have come from other regions and live here from the next tick on.
    pub fn arriving(&self) -> impl Iterator<Item = Known<'_>> + '_ {
        self.custody.incoming().map(|handoff| Known {
            id: handoff.state.id,
            epoch: handoff.epoch,
            kind: handoff.state.kind,
            plane: handoff.state.plane,
            pos: handoff.state.pos,
            facing: handoff.state.facing,
            is_real: true,
            properties: &handoff.state.properties,
            bonds: self.known_bonds(&handoff.ties, handoff.state.bonds.at),
            is_disconnected: handoff.disconnected_until.is_some(),
            account: handoff.state.session.map(|_| &handoff.state.account),
        })
    }

    pub(super) fn known_at(&self, slot: u32) -> Known<'_> {
        let (body, record) = (self.entities.body(slot), self.entities.record(slot));
        let viewer = self.views.get(body.viewer).filter(|_| body.is_real());
        let bound = viewer.map(|viewer| viewer.other_bonds.at);
        Known {
            id: body.id,
            epoch: record.epoch,
            kind: body.kind,
            plane: record.plane,
            pos: body.pos,
            facing: body.facing,
            is_real: body.is_real(),
            properties: &record.properties,
            bonds: self.known_bonds(&record.ties, bound.unwrap_or_default()),
            is_disconnected: viewer.is_some_and(|viewer| viewer.disconnected_until.is_some()),
            account: viewer.map(|viewer| &viewer.account),
        }
    }
}

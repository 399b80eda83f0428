//! Properties in frames: which client is told which property, and when.
//!
//! An entering entity's piece is shared by all viewers and has what every viewer may see. All else
//! is told property by property; each that is told to anybody is one piece, shared by all frames
//! that refer to it. Nothing here runs for an entity without a changed property.
//!
//! A client knows the levels that had changed up to the viewer's `properties_told`. Of an entry, an
//! update may be *withheld*, because the property is not told so far away, or because a frame had no
//! room: the entry keeps the farthest ring in which that happened, and when the entity comes nearer
//! than that, the client is told what it may have missed.

use super::{FrameEntry, FramePart, FrameReader, NO_PIECE, PART_BYTES, PROPERTY_BYTES};
use crate::scene::Scene;
use crate::scene::messages::PropertyUpdate;
use crate::scene::mutants::{self, Mutant};
use crate::scene::properties::{Audience, Level, Properties, Schema};
use crate::scene::region::entities::EntityStore;
use crate::scene::region::views::Viewer;

/// Withheld for want of room: all is told anew. Above every ring.
const NO_ROOM: u8 = u8::MAX;

/// Those properties of the entity at `slot` that every viewer may see.
pub(super) fn for_all(scene: &Scene, entities: &EntityStore, slot: u32) -> Properties {
    let properties = &entities.record(slot).properties;
    let Some(schema) = schema(scene, entities, slot).filter(|_| !properties.is_empty()) else {
        return Properties::default();
    };
    let all = mutants::has(Mutant::SecretsTold);
    properties.select(|level| all || schema.audience(level.id) == Audience::Viewers)
}

/// Most bytes of an entering entity's properties.
#[inline]
pub(super) fn entering_bytes(entities: &EntityStore, slot: u32) -> usize {
    let properties = &entities.record(slot).properties;
    if properties.is_empty() {
        return 0;
    }
    properties.value_bytes() + properties.levels().len() * PROPERTY_BYTES
}

fn schema<'a>(scene: &'a Scene, entities: &EntityStore, slot: u32) -> Option<&'a Schema> {
    scene.schema(entities.body(slot).kind)
}

/// Whether a client whose player is at `viewer` may see what bonded players see of the entity at `slot`.
fn bonded(entities: &EntityStore, viewer: u32, slot: u32) -> bool {
    let (mine, other) = (&entities.record(viewer).ties.bonds, &entities.record(slot).ties.bonds);
    mine.iter().any(|bond| other.contains(bond))
}

impl FramePart {
    /// Tells of an entering entity what this client may see and not every viewer. Gives what is withheld.
    #[inline]
    pub(super) fn tell_entering_properties(
        &mut self,
        reader: FrameReader<'_>,
        entities: &EntityStore,
        slot: u32,
    ) -> u8 {
        if entities.record(slot).properties.is_empty() {
            return 0;
        }
        self.tell_selected(reader, entities, slot, |_, audience| audience == Audience::Bonded)
    }

    /// Tells those properties that the client may see and that are selected. Gives what is withheld.
    fn tell_selected(
        &mut self,
        reader: FrameReader<'_>,
        entities: &EntityStore,
        slot: u32,
        selected: impl Fn(&Level, Audience) -> bool,
    ) -> u8 {
        let Some(schema) = schema(reader.scene, entities, slot) else { return 0 };
        let is_bonded = bonded(entities, reader.slot, slot);
        let mut withheld = 0;
        for (ix, level) in entities.record(slot).properties.levels().iter().enumerate() {
            let audience = schema.audience(level.id);
            let told = audience.admits_viewer(is_bonded) && selected(level, audience);
            if told && !self.tell_property(reader, entities, slot, ix) {
                withheld = NO_ROOM;
            }
        }
        withheld
    }

    /// Tells what is new to the client of the properties of an entity that it sees already. Gives what is
    /// withheld from now on.
    #[cold]
    pub(super) fn tell_properties(
        &mut self,
        reader: FrameReader<'_>,
        entities: &EntityStore,
        e: FrameEntry,
    ) -> u8 {
        let Some(schema) = schema(reader.scene, entities, e.slot) else { return 0 };
        let is_bonded = bonded(entities, reader.slot, e.slot);
        let mut withheld = 0;
        for (ix, level) in entities.record(e.slot).properties.levels().iter().enumerate() {
            let (audience, detail) = (schema.audience(level.id), schema.detail(level.id));
            let anew = e.withheld == NO_ROOM
                || (reader.bonds_changed && audience == Audience::Bonded)
                || level.changed.is_after(reader.properties_told);
            let late = e.withheld > 0 && !detail.reaches(e.withheld);
            let is_untold = mutants::has(Mutant::ChangeUntold) && level.version.is_multiple_of(8);
            if !audience.admits_viewer(is_bonded) || !(anew || late) || is_untold {
                continue;
            }
            if !detail.reaches(e.ring) {
                let since = if anew { e.ring } else { e.withheld.min(e.ring) };
                withheld = withheld.max(since);
            } else if !self.tell_property(reader, entities, e.slot, ix) {
                withheld = NO_ROOM;
            }
        }
        withheld
    }

    /// Tells a player's session and client what is new to them of the player's own properties, and which way it
    /// faces if another's word has turned it.
    #[inline]
    pub(super) fn tell_own_properties(
        &mut self,
        reader: FrameReader<'_>,
        entities: &EntityStore,
        viewer: &mut Viewer,
    ) {
        if std::mem::take(&mut viewer.turned) {
            self.turning(reader.tick, entities, viewer.slot);
        }
        let all = std::mem::take(&mut viewer.own_properties_due);
        if all || entities.body(viewer.slot).properties.is_after(reader.properties_told) {
            viewer.own_properties_due = !self.tell_owner(reader, entities, all);
        }
    }

    /// Tells a player's own properties: all, or those that have changed. False when there is no room for all.
    fn tell_owner(&mut self, reader: FrameReader<'_>, entities: &EntityStore, all: bool) -> bool {
        let Some(schema) = schema(reader.scene, entities, reader.slot) else { return true };
        let mut done = true;
        for (ix, level) in entities.record(reader.slot).properties.levels().iter().enumerate() {
            if !all && !level.changed.is_after(reader.properties_told) {
                continue;
            }
            if schema.audience(level.id).admits_owner() {
                done &= self.tell_property(reader, entities, reader.slot, ix);
            } else {
                let piece = self.property(reader, entities, reader.slot, ix);
                self.kept.push(piece);
            }
        }
        done
    }

    /// Adds the level at `ix` of the entity at `slot` to the frame; false when there is no room.
    fn tell_property(
        &mut self,
        reader: FrameReader<'_>,
        entities: &EntityStore,
        slot: u32,
        ix: usize,
    ) -> bool {
        let level = &entities.record(slot).properties.levels()[ix];
        let bytes = PROPERTY_BYTES + level.value.bytes().len();
        let fits = self.property_bytes + bytes <= PART_BYTES;
        if !fits || self.act_bytes + self.property_bytes >= self.room {
            return false;
        }
        self.property_bytes += bytes;
        let piece = self.property(reader, entities, slot, ix);
        self.property_refs.push(piece);
        true
    }

    /// The piece of the level at `ix` of the entity at `slot`: one for all frames of the tick.
    fn property(
        &mut self,
        reader: FrameReader<'_>,
        entities: &EntityStore,
        slot: u32,
        ix: usize,
    ) -> u32 {
        let levels = entities.record(slot).properties.levels();
        let noted = &mut self.told[slot as usize].properties;
        if noted.0 != reader.tick || noted.1 == NO_PIECE {
            *noted = (reader.tick, self.cells.len() as u32);
            self.cells.extend(levels.iter().map(|_| NO_PIECE));
        }
        let cell = &mut self.cells[noted.1 as usize + ix];
        if *cell == NO_PIECE {
            *cell = self.batch.properties.len() as u32;
            let Level { id, version, ref value, .. } = levels[ix];
            let (entity, value) = (entities.body(slot).id, value.clone());
            self.batch.properties.push(PropertyUpdate { entity, id, version, value });
            self.slots.properties.push((slot, ix as u32, levels.len() as u32));
        }
        *cell
    }
}

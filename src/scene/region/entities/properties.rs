//! The properties of the entities that a region knows.
//!
//! Every change is stamped with the tick in whose frames viewers are told, on the level and on the
//! entity's body: so a frame looks at levels only where the body says that one has changed.

use super::EntityStore;
use crate::scene::TickStamp;
use crate::scene::properties::{Properties, PropertyId, PropertyRefusal, Value};

impl EntityStore {
    /// Gives a property of the entity at `slot` a value. Viewers are told in the frames of `at`.
    ///
    /// # Errors
    /// [`PropertyRefusal::Full`].
    pub fn set_property(
        &mut self,
        slot: u32,
        id: PropertyId,
        value: Value,
        at: TickStamp,
    ) -> Result<(), PropertyRefusal> {
        if self.records[slot as usize].properties.set(id, value, at)? {
            self.hot[slot as usize].properties = at;
        }
        Ok(())
    }

    /// Takes levels of the entity at `slot` that are newer than the known ones.
    pub fn merge_properties(&mut self, slot: u32, levels: &Properties, at: TickStamp) {
        if self.records[slot as usize].properties.merge(levels, at) {
            self.hot[slot as usize].properties = at;
        }
    }

    /// Takes the levels of a later life of the entity at `slot`.
    pub fn replace_properties(&mut self, slot: u32, levels: &Properties, at: TickStamp) {
        if self.records[slot as usize].properties.replace(levels, at) {
            self.hot[slot as usize].properties = at;
        }
    }

    /// Tells all properties of the entity at `slot`, which was not known here, in the frames of `at`.
    pub fn stamp_properties(&mut self, slot: u32, at: TickStamp) {
        let properties = &mut self.records[slot as usize].properties;
        if !properties.is_empty() {
            properties.stamp(at);
            self.hot[slot as usize].properties = at;
        }
    }

    /// The properties of the entity at `slot` go on as a snapshot has them, with their stamps.
    pub fn restore_properties(&mut self, slot: u32, properties: Properties) {
        if let Some(last) = properties.last_change() {
            self.hot[slot as usize].properties = last;
        }
        self.records[slot as usize].properties = properties;
    }

    /// Tells those properties of the entity at `slot` that `wanted` selects again, in the frames of `at`.
    pub fn tell_properties_again(
        &mut self,
        slot: u32,
        at: TickStamp,
        wanted: impl Fn(PropertyId) -> bool,
    ) {
        if self.records[slot as usize].properties.stamp_if(at, wanted) {
            self.hot[slot as usize].properties = at;
        }
    }
}

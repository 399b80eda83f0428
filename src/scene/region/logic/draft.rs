//! A region as it will be: what was commanded in this call counts before what the region knows.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::super::{Known, Region};
use super::Commands;
use crate::scene::properties::{PropertyId, Value};
use crate::scene::{EntityId, Kind, Tick};

/// One call of a game's logic. Commands are applied after the call; a rule that reads what another rule has just
/// set, or removed, reads it here.
#[derive(Debug)]
pub struct Draft<'a> {
    /// The region as it was when the call began.
    pub region: &'a Region,
    /// All that is not about properties and the end of entities.
    pub commands: &'a mut Commands,
    changes: BTreeMap<(EntityId, PropertyId), Value>,
    gone: BTreeSet<EntityId>,
}

impl<'a> Draft<'a> {
    /// A call in which nothing was commanded yet.
    pub fn new(region: &'a Region, commands: &'a mut Commands) -> Draft<'a> {
        Draft { region, commands, changes: BTreeMap::new(), gone: BTreeSet::new() }
    }

    /// The tick.
    pub fn now(&self) -> Tick {
        self.region.current_tick()
    }

    /// The entity with this id, if it lives here or is mirrored here and was not removed in this call. Its properties
    /// are those before the call.
    pub fn find(&self, id: EntityId) -> Option<Known<'a>> {
        self.region.known(id).filter(|_| !self.gone.contains(&id))
    }

    /// The same, if it lives here and is of this kind.
    pub fn here(&self, id: EntityId, kind: Kind) -> Option<Known<'a>> {
        self.find(id).filter(|known| known.is_real && known.kind == kind)
    }

    /// The ids of all entities of a kind that live here and were not removed in this call.
    pub fn all(&self, kind: Kind) -> Vec<EntityId> {
        let here = self.region.lives_here(kind).map(|known| known.id);
        here.filter(|id| !self.gone.contains(id)).collect()
    }

    /// A property; its type's default if it was never set, or is of another type.
    pub fn get<T: DeserializeOwned + Default>(&self, id: EntityId, property: PropertyId) -> T {
        let known = || Some(&self.region.known(id)?.properties.get(property)?.value);
        let value = self.changes.get(&(id, property)).or_else(known);
        value.and_then(|value| value.read().ok()).unwrap_or_default()
    }

    /// Gives a property a value. One that is no legal value is refused at the tick, as every command is.
    pub fn set<T: Serialize + ?Sized>(&mut self, id: EntityId, property: PropertyId, value: &T) {
        let value = Value::of(value).unwrap_or(Value::NIL);
        self.changes.insert((id, property), value.clone());
        self.commands.set(id, property, value);
    }

    /// Removes an entity.
    pub fn despawn(&mut self, id: EntityId) -> u64 {
        self.gone.insert(id);
        self.commands.despawn(id)
    }
}

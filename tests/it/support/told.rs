//! What a client knows of facings and properties, by its frames alone.

use std::collections::BTreeMap;

use purview::scene::messages::{FrameBatch, LogicMessage, SessionFrame};
use purview::scene::properties::{PropertyId, Value};
use purview::scene::{EntityId, Facing};

/// The facings and properties that a client was told.
#[derive(Debug, Clone, Default)]
pub struct Told {
    pub facings: BTreeMap<EntityId, Facing>,
    pub properties: BTreeMap<EntityId, BTreeMap<PropertyId, (u32, Value)>>,
    /// Messages of the game's logic.
    pub messages: Vec<LogicMessage>,
    /// Properties that came in frames beside enters.
    pub updates: usize,
    /// Turns that came beside moves.
    pub turns: usize,
}

impl Told {
    /// Applies the frame of the player `me`.
    pub fn frame(&mut self, me: EntityId, batch: &FrameBatch, part: &SessionFrame) {
        let [enters, moves, trajectories, turns, _, properties, _] = batch.refs_of(part);
        self.messages.extend(batch.told_of(part).iter().cloned());
        if part.resync {
            self.facings.clear();
            self.properties.clear();
        }
        for id in batch.leaves_of(part) {
            self.facings.remove(id);
            self.properties.remove(id);
        }
        for e in enters.iter().map(|at| &batch.entering[*at as usize]) {
            let levels = e.properties.levels().iter();
            let levels = levels.map(|l| (l.id, (l.version, l.value.clone()))).collect();
            self.properties.insert(e.id, levels);
            self.facings.insert(e.id, e.facing);
        }
        let moves = moves.iter().map(|at| batch.moving[*at as usize]).map(|m| (m.id, m.facing));
        let trajectories = trajectories.iter().map(|at| batch.trajectories[*at as usize]);
        self.facings.extend(moves.chain(trajectories.map(|t| (t.id, t.facing))));
        for (id, facing) in turns.iter().map(|at| batch.turning[*at as usize]) {
            assert!(id == me || self.facings.contains_key(&id), "{me}: {id} turned unseen");
            self.facings.insert(id, facing);
            self.turns += 1;
        }
        for update in properties.iter().map(|at| &batch.properties[*at as usize]) {
            let id = update.entity;
            assert!(id == me || self.properties.contains_key(&id), "{me}: {id} changed unseen");
            let known = self.properties.entry(id).or_default();
            known.insert(update.id, (update.version, update.value.clone()));
            self.updates += 1;
        }
    }

    /// The value of a property, as the client knows it.
    pub fn value(&self, id: EntityId, property: u8) -> Option<&Value> {
        self.properties.get(&id)?.get(&PropertyId(property)).map(|(_, value)| value)
    }
}

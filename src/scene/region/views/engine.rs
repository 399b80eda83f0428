//! Evaluates views: every tick each player's registers are brought up to date (`refresh`), and the lists to what is
//! stable over the positions of that tick (`matching`).

use super::ViewEngine;
use crate::scene::region::entities::EntityStore;
use crate::scene::workers::Workers;
use crate::scene::{Scene, Tick, TickStamp};

impl ViewEngine {
    /// Evaluates every player's view over the positions of this tick.
    pub fn evaluate_all(
        &mut self,
        tick: Tick,
        entities: &mut EntityStore,
        scene: &Scene,
        workers: &dyn Workers,
    ) {
        self.view_tick = TickStamp::of(tick);
        self.refresh_all(entities, scene, workers);
        self.deliver_local(entities, scene);
        self.match_all(entities, scene, workers);
        entities.reuse_slots();
        self.still = true;
    }

    /// Entities have moved since views were evaluated.
    pub fn positions_change(&mut self) {
        self.still = false;
        self.queue.forget_changes();
    }

    /// The tick whose views count, after a restore.
    pub fn restore_tick(&mut self, tick: Tick) {
        self.view_tick = TickStamp::of(tick);
    }

    /// Brings one player that has just come up to the positions as they are, with what it sees beside players.
    pub fn bring_up(&mut self, ix: usize, entities: &mut EntityStore, scene: &Scene) {
        self.refresh(ix, entities, scene);
        self.deliver_local(entities, scene);
    }
}

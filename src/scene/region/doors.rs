//! The ground under a region's entities, and the orders that open and close its doors.

use super::Region;
use crate::scene::effects::{Effect, Input};
use crate::scene::terrain::{DoorError, DoorOrder, Ground};

impl Region {
    /// Where one can walk, with the doors as they are in the present tick; `None`: everywhere.
    pub fn ground(&self) -> Option<&Ground> {
        self.ground.as_ref()
    }

    /// Takes an order; it waits for its tick, as it does in every other region of the scene.
    pub(super) fn take_door_order(&mut self, order: DoorOrder, fx: &mut Vec<Effect>) {
        let taken = self.ground.as_mut().map_or(Err(DoorError::NoTerrain), |g| g.order(order));
        if let Err(why) = taken {
            crate::log_limited!(at self.log_ms(); warn, region = %self.id, ?order, %why, "an order about a door was refused");
            return;
        }
        for heir in self.heirs() {
            fx.push(Effect::Forward(*heir, Box::new(Input::Door(order))));
        }
    }

    /// Begins a tick: doors turn before anybody moves, and who walks finds them so.
    pub(super) fn turn_doors(&mut self) {
        if self.ground.as_mut().is_some_and(|ground| ground.turn(self.tick)) {
            self.look_at_ways();
        }
    }
}

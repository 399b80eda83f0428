//! The ground under a region's entities, and the orders that open and close its doors.
//!
//! Every region of a scene receives every order, and turns its doors at the beginning of the same
//! tick.

use super::Region;
use super::entities::Floor;
use crate::scene::messages::{Effect, Input, SceneOrder};
use crate::scene::terrain::{DoorChange, DoorError, DoorOrder, Ground, SavedDoors};
use crate::scene::{Scene, Tick};

/// Where entities can walk, with the doors as they are in the present tick.
#[derive(Debug)]
pub struct RegionDoors {
    /// `None`: the scene has no terrain, and every place is free.
    ground: Option<Ground>,
}

impl RegionDoors {
    /// The doors as the scene's terrain has them.
    pub fn new(scene: &Scene) -> RegionDoors {
        RegionDoors { ground: scene.terrain.clone().map(Ground::new) }
    }

    /// The doors of a snapshot.
    ///
    /// # Errors
    /// The doors are not those of the scene's terrain.
    pub fn restored(scene: &Scene, saved: Option<&SavedDoors>) -> Result<RegionDoors, DoorError> {
        let ground = match (&scene.terrain, saved) {
            (Some(terrain), Some(doors)) => Some(Ground::restore(terrain.clone(), doors)?),
            (Some(terrain), None) => Some(Ground::new(terrain.clone())),
            (None, _) => None,
        };
        Ok(RegionDoors { ground })
    }

    /// The terrain with its doors, if the scene has one.
    #[inline]
    pub fn ground(&self) -> Option<&Ground> {
        self.ground.as_ref()
    }

    /// What entities walk on.
    #[inline]
    pub fn floor(&self, scene: &Scene) -> Floor<'_> {
        Floor::of(scene, self.ground.as_ref())
    }

    /// Takes an order; it waits for its tick.
    fn order(&mut self, order: DoorOrder) -> Result<(), DoorError> {
        self.ground.as_mut().map_or(Err(DoorError::NoTerrain), |ground| ground.order(order))
    }

    /// Turns the doors whose orders are due. Says whether any door has turned.
    fn turn(&mut self, tick: Tick) -> bool {
        self.ground.as_mut().is_some_and(|ground| ground.turn(tick))
    }

    /// Takes over what another region knows of the doors.
    ///
    /// # Errors
    /// The doors are not those of the scene's terrain.
    pub fn merge(&mut self, doors: &SavedDoors) -> Result<(), DoorError> {
        self.ground.as_mut().map_or(Ok(()), |ground| ground.merge(doors))
    }

    /// The doors for a snapshot.
    pub fn save(&self) -> Option<SavedDoors> {
        self.ground.as_ref().map(Ground::save)
    }
}

impl Region {
    /// Where one can walk, with the doors as they are in the present tick; `None`: everywhere.
    pub fn ground(&self) -> Option<&Ground> {
        self.doors.ground()
    }

    /// Takes an order; it waits for its tick, as it does in every other region of the scene.
    pub(super) fn take_scene_order(&mut self, order: SceneOrder, fx: &mut Vec<Effect>) {
        let is_taken = match order {
            SceneOrder::Doors(order) => self.take_door_order(order),
            SceneOrder::Relation(relation) => self.entities.relations_mut().order(relation),
            SceneOrder::RelationsKnown { by, digest } => {
                return self.answer_relations(by, digest, fx);
            }
        };
        if !is_taken {
            crate::log_limited!(at self.log_ms(); warn, region = %self.identity.id(), ?order, "an order for the scene was refused");
            return;
        }
        for heir in self.layout.pass_on(order, self.clock.tick()) {
            fx.push(Effect::Forward(*heir, Box::new(Input::Scene(order))));
        }
    }

    fn take_door_order(&mut self, order: DoorOrder) -> bool {
        let resets = order.change == DoorChange::Reset;
        let has_contents = !self.identity.scene().contents().is_empty();
        if resets && has_contents && !self.contents.order(order) {
            crate::log_limited!(at self.log_ms(); warn, region = %self.identity.id(), ?order, "too many resets of planes wait");
        }
        let has_doors = self.doors.ground().is_some() || !resets;
        if let Err(why) = if has_doors { self.doors.order(order) } else { Ok(()) } {
            crate::log_limited!(at self.log_ms(); warn, region = %self.identity.id(), ?order, %why, "an order about a door was refused");
            return false;
        }
        true
    }

    /// Begins a tick: doors turn before any entity moves.
    pub(super) fn turn_doors(&mut self) {
        if self.doors.turn(self.clock.tick()) {
            self.recheck_paths();
        }
    }
}

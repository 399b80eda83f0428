//! Handles: where the viewers of a region are, for inputs that come with the handle of their player.
//!
//! Slots are given out anew by place now and then; a handle stays as long as the player lives here. A session learns
//! it from each frame, and its inputs carry it, so that a region looks nothing up for them. *Must never happen here:* an
//! answer that is not checked against the id of the player. Ids are never used twice, so the id takes the place of a
//! generation.

use super::ViewEngine;
use crate::scene::region::entities::{EntityStore, NO_SLOT};
use crate::scene::{EntityHandle, EntityId};

/// The slot of each handle; handle 1 is the first.
#[derive(Debug, Default)]
pub struct Handles {
    slots: Vec<u32>,
    free: Vec<EntityHandle>,
}

impl Handles {
    /// A handle for the player at `slot`.
    pub(super) fn give(&mut self, slot: u32) -> EntityHandle {
        let handle = self.free.pop().unwrap_or_else(|| {
            self.slots.push(NO_SLOT);
            EntityHandle(self.slots.len() as u32)
        });
        self.follow(handle, slot);
        handle
    }

    /// The player lives here no more; another one gets the handle.
    pub(super) fn take_back(&mut self, handle: EntityHandle) {
        self.follow(handle, NO_SLOT);
        self.free.push(handle);
    }

    /// The player is at `slot` from now on.
    pub(super) fn follow(&mut self, handle: EntityHandle, slot: u32) {
        let at = handle.0.checked_sub(1).and_then(|at| self.slots.get_mut(at as usize));
        if let Some(at) = at {
            *at = slot;
        }
    }

    fn slot(&self, handle: EntityHandle) -> Option<u32> {
        self.slots.get(handle.0.checked_sub(1)? as usize).copied()
    }
}

impl ViewEngine {
    /// The slot of the player `id` that lives here, if the handle is its handle.
    #[inline]
    pub fn slot_of(
        &self,
        handle: EntityHandle,
        id: EntityId,
        entities: &EntityStore,
    ) -> Option<u32> {
        self.handles.slot(handle).filter(|slot| entities.is_at(*slot, id))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::scene::messages::{Effect, Input};
    use crate::scene::region::entities::lookups;
    use crate::scene::region::{Region, fixtures};
    use crate::scene::{EntityHandle, EntityId, Pos, SceneSpec, Seq, Tick};

    /// A region with the clients of its players.
    struct World {
        region: Region,
        tick: Tick,
        seqs: BTreeMap<u64, (Seq, EntityHandle)>,
        fx: Vec<Effect>,
    }

    /// A place of a player in a tick; such places are a patch and more apart, so that slots change.
    fn place(player: u64, tick: Tick) -> Pos {
        Pos::ground(10_000 + (player * 7 + tick.0 * 3) as i32 % 27 * 1_500, 20_000)
    }

    impl World {
        fn new(players: u64) -> World {
            let spec = SceneSpec {
                width_cm: 51_200,
                depth_cm: 51_200,
                region_lands_x: 1,
                region_lands_z: 1,
                spawn_x_cm: 0,
                spawn_z_cm: 0,
                ..SceneSpec::default()
            };
            let region = fixtures::region(spec, 0);
            let mut world = World { region, tick: Tick(0), seqs: BTreeMap::new(), fx: Vec::new() };
            (1..=players).for_each(|player| world.enter(player));
            world.tick();
            world
        }

        fn enter(&mut self, player: u64) {
            self.seqs.insert(player, (Seq(0), EntityHandle(0)));
            fixtures::enter(&mut self.region, player, place(player, self.tick));
        }

        fn leave(&mut self, player: u64) {
            self.seqs.remove(&player);
            self.region.handle(Input::Leave(EntityId(player)), &mut self.fx);
        }

        /// Every client moves its player.
        fn move_all(&mut self) {
            for (player, (seq, handle)) in &mut self.seqs {
                *seq = seq.next();
                fixtures::go(&mut self.region, *player, *seq, place(*player, self.tick), *handle);
            }
        }

        /// Ends a tick.
        fn tick(&mut self) {
            self.tick = self.tick.next();
            self.region.tick(self.tick, &mut self.fx);
            for effect in self.fx.drain(..) {
                let Effect::Frames(batch) = effect else { continue };
                for frame in &batch.sessions {
                    if let Some(client) = self.seqs.get_mut(&frame.session.0) {
                        client.1 = frame.handle;
                    }
                }
                self.region.recycle(batch);
            }
        }

        /// All players are where their clients have told them to go.
        fn assert_moved(&self) {
            for (player, (seq, _)) in &self.seqs {
                let slot = self.region.entities.slot(EntityId(*player)).unwrap();
                let told = place(*player, Tick(self.tick.0 - 1));
                assert_eq!(self.region.entities.body(slot).pos, told, "{player}");
                let viewer = self.region.views.of(&self.region.entities, slot).unwrap();
                assert_eq!(viewer.last_applied, *seq, "{player}");
            }
        }
    }

    #[test]
    fn inputs_of_steady_clients_need_no_lookup() {
        let mut world = World::new(50);
        // Slots are given out anew every 16 ticks.
        for _ in 0..40 {
            world.move_all();
            lookups::take();
            world.tick();
            assert_eq!(lookups::take(), 0, "tick {}", world.tick);
            world.assert_moved();
        }
        // Without a handle each of them needs one, and one to have its memory ready.
        world.seqs.values_mut().for_each(|(_, handle)| *handle = EntityHandle(0));
        world.move_all();
        lookups::take();
        world.tick();
        assert!(lookups::take() >= 50);
        world.assert_moved();
    }

    #[test]
    fn under_a_wrong_handle_an_input_still_reaches_its_own_player() {
        let mut world = World::new(20);
        let handles = [0, 1, 7, 20, 21, 500, u32::MAX];
        for (tick, wrong) in (0_u64..).zip(handles) {
            // A place in the table is given to a player that comes after another has left.
            world.leave(tick + 1);
            world.enter(tick + 21);
            world.tick();
            let right: Vec<_> = world.seqs.values().map(|(_, handle)| handle.0).collect();
            world.seqs.values_mut().for_each(|(_, handle)| *handle = EntityHandle(wrong));
            world.move_all();
            world.tick();
            world.assert_moved();
            let mut distinct = right.clone();
            distinct.sort_unstable();
            distinct.dedup();
            assert_eq!(distinct.len(), 20, "each player has a handle of its own: {right:?}");
            assert!(distinct.iter().all(|handle| (1..=20).contains(handle)), "{right:?}");
        }
    }
}

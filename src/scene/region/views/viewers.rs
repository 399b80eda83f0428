//! The viewers of a region: one of each player that lives here, in the order of the players' slots.
//!
//! A player's [`Body`](crate::scene::region::entities::Body) has the index of its viewer, and the viewer has the slot of
//! its player: both are written here together.

use super::{ViewEngine, Viewer, range_query};
use crate::scene::messages::Handoff;
use crate::scene::region::entities::{EntityStore, NO_SLOT, Renumbering};
use crate::scene::views::{Key, Registers};
use crate::scene::{Account, EntityId, Scene, SessionId, SubjectHash, Tick};

impl ViewEngine {
    /// The viewer at an index, as bodies have it.
    #[inline]
    pub fn get(&self, viewer: u32) -> Option<&Viewer> {
        self.viewers.get(viewer as usize)
    }

    /// The same, to change it.
    #[inline]
    pub fn get_mut(&mut self, viewer: u32) -> Option<&mut Viewer> {
        self.viewers.get_mut(viewer as usize)
    }

    /// The viewer of the entity at `slot`, if a player lives there.
    #[inline]
    pub fn of(&self, entities: &EntityStore, slot: u32) -> Option<&Viewer> {
        self.get(entities.body(slot).viewer)
    }

    /// The same, to change it.
    #[inline]
    pub fn of_mut(&mut self, entities: &EntityStore, slot: u32) -> Option<&mut Viewer> {
        self.get_mut(entities.body(slot).viewer)
    }

    /// All viewers.
    #[inline]
    pub fn viewers(&self) -> &[Viewer] {
        &self.viewers
    }

    /// All viewers, to make frames for them.
    #[inline]
    pub fn viewers_mut(&mut self) -> &mut [Viewer] {
        &mut self.viewers
    }

    /// A player begins to live at `slot`.
    pub fn add_viewer(
        &mut self,
        entities: &mut EntityStore,
        id: EntityId,
        slot: u32,
        whose: (Option<SessionId>, SubjectHash, Account),
    ) {
        entities.set_viewer(slot, self.viewers.len() as u32);
        self.queue.changed.push((slot, Key::WORST));
        let handle = self.handles.give(slot);
        let mut viewer = Viewer::new(id, (slot, handle), whose);
        viewer.registers = viewer.registers.capped(entities.place(slot).cap());
        self.viewers.push(viewer);
    }

    /// Takes the viewer of a player that lives here no more.
    pub fn take_viewer(&mut self, entities: &mut EntityStore, slot: u32) -> Option<Viewer> {
        let ix = entities.set_viewer(slot, u32::MAX) as usize;
        if ix >= self.viewers.len() {
            return None;
        }
        let viewer = self.viewers.swap_remove(ix);
        self.queue.changed.push((slot, Key::WORST));
        self.handles.take_back(viewer.handle);
        if let Some(moved) = self.viewers.get(ix) {
            entities.set_viewer(moved.slot, ix as u32);
        }
        Some(viewer)
    }

    /// Puts viewers into the order of slots that were numbered anew.
    pub fn renumber(&mut self, entities: &mut EntityStore, new: &Renumbering) {
        self.queue.renumber(new);
        self.matching.renumber(new);
        for viewer in &mut self.viewers {
            new.apply(&mut viewer.slot);
            self.handles.follow(viewer.handle, viewer.slot);
            viewer.registers.peers_mut().iter_mut().for_each(|p| new.apply(&mut p.slot));
            viewer.seen.iter_mut().for_each(|s| new.apply(&mut s.slot));
        }
        self.viewers.sort_unstable_by_key(|v| v.slot);
        // The registers of one player after those of the one before it, too.
        let fresh: Vec<_> = self.viewers.iter().map(|v| v.registers.moved()).collect();
        for (viewer, registers) in self.viewers.iter_mut().zip(fresh) {
            viewer.registers = registers;
        }
        for (ix, viewer) in self.viewers.iter().enumerate() {
            entities.set_viewer(viewer.slot, ix as u32);
        }
    }

    /// The client of the player at `slot` must be told of its own movement.
    pub fn own_is_due(&mut self, entities: &EntityStore, slot: u32) {
        if let Some(viewer) = self.of_mut(entities, slot) {
            viewer.own_due = true;
        }
    }

    /// A player goes on with what its last region knew of its view, and of what its client was told.
    pub fn restore_viewer(
        &mut self,
        slot: u32,
        handoff: &Handoff,
        tick: Tick,
        entities: &EntityStore,
        scene: &Scene,
    ) {
        let ViewEngine { viewers, rules, .. } = self;
        let (body, me) = (entities.body(slot), entities.place(slot));
        let Some(viewer) = viewers.get_mut(body.viewer as usize) else { return };
        let registers = &mut viewer.registers;
        *registers =
            Registers::restored(body.id, &handoff.peers, handoff.view_counter, NO_SLOT, tick)
                .capped(me.cap());
        for ix in 0..registers.peers().len() {
            // Others may speak to it before its first evaluation here, which drops peers that are out of
            // range; until then these count as the worst.
            let vis = &scene.spec.visibility;
            if !range_query::refresh(entities, vis, rules, slot, me, registers, ix) {
                registers.peers_mut()[ix].dist_cm = u32::MAX;
            }
        }
        viewer.restore(handoff, tick);
    }

    /// The threshold of the player at `slot` follows from its registers.
    pub fn renew_threshold(&mut self, slot: u32, entities: &mut EntityStore) {
        let ViewEngine { viewers, rules, .. } = self;
        let Some(viewer) = viewers.get_mut(entities.body(slot).viewer as usize) else { return };
        viewer.threshold = viewer.registers.threshold(rules);
        entities.set_threshold(slot, viewer.threshold.rank);
    }
}

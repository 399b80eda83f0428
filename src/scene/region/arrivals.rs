//! Entities that begin to live here.

use super::Region;
use super::bodies::Role;
use super::present::counter;
use super::viewer::Viewer;
use crate::scene::effects::{Effect, Notice, Spawn};
use crate::scene::frames::Refusal;
use crate::scene::views::Ties;
use crate::scene::{EntityId, Epoch, Kind, Plane, SessionId, TickStamp};

/// Longest look of an entity, bytes.
const MAX_LOOK: usize = 16 * 1_024;

impl Region {
    /// The session of a player that lives here or is about to.
    fn session_of(&self, id: EntityId) -> Option<SessionId> {
        if let Some(h) = self.incoming.iter().find(|h| h.state.id == id) {
            return h.state.session;
        }
        let viewer = self.bodies.hot[self.real_slot(id)? as usize].viewer;
        self.viewers.get(viewer as usize)?.session
    }

    /// Adds an entity, or refuses it and tells its session.
    pub(super) fn add(&mut self, mut spawn: Spawn, fx: &mut Vec<Effect>) {
        let legal = self.bodies.has_kind(spawn.kind)
            && self.scene.map.bounds.contains(spawn.pos)
            && spawn.plane != Plane::LIMBO
            && spawn.look.len() <= MAX_LOOK;
        let known = self.bodies.slot(spawn.id).is_some() || self.is_incoming(spawn.id);
        let lives_here = self.real_slot(spawn.id).is_some() || self.is_incoming(spawn.id);
        let is_here = lives_here && self.session_of(spawn.id) == spawn.session;
        let was_here = !lives_here && (known || self.knows_moved(spawn.id));
        if spawn.session.is_some() && (is_here || was_here) {
            // Told twice; the first time counted. It may have gone on since, and its session is told by who has it.
            return;
        }
        if !legal || known {
            crate::log_limited!(at self.log_ms(); warn, region = %self.id, entity = %spawn.id, "an entity was not added: its id is in use, its look too long, or its kind, plane or place is none of the scene's");
            if let Some(session) = spawn.session {
                fx.push(Effect::Notice(session, Notice::Refused(Refusal::OutOfBounds)));
            }
            return;
        }
        let ties = Ties::of(std::mem::take(&mut spawn.bonds));
        // A checkpoint may know it from before its session was told that it is here.
        let before = self.wake(spawn.id);
        let birth = self.lineage.of_birth();
        let epoch = before.as_ref().map_or(birth, |before| before.epoch.next_life(self.lineage));
        let slot = self.place_real(&spawn, ties, epoch);
        if spawn.kind == Kind::PLAYER {
            self.give_mover(slot, None);
            if self.recovering.is_some() {
                self.mail.reborn.insert(spawn.id);
            }
            let ix = self.bodies.hot[slot as usize].viewer as usize;
            if let Some(viewer) = self.viewers.get_mut(ix).filter(|_| epoch.lives() > 0) {
                let last = before.map_or(0, |before| before.view_counter);
                viewer.registers.counter = counter(epoch, last);
            }
        }
        self.bodies.hot[slot as usize].changed = TickStamp::of(self.tick);
        self.notice_route(slot, true, fx);
    }

    /// Makes the entity a real of this region, in its ghost's slot if there is one.
    pub(super) fn place_real(&mut self, spawn: &Spawn, ties: Ties, epoch: Epoch) -> u32 {
        let role = Role::Real(Default::default());
        let slot = match self.bodies.slot(spawn.id) {
            Some(slot) => {
                self.bodies.set_plane(slot, spawn.plane);
                self.bodies.set_pos(slot, spawn.pos);
                self.bodies.set_traits(slot, spawn.range, ties);
                self.bodies.set_role(slot, role, epoch);
                slot
            }
            None => self.bodies.add(
                spawn.id,
                spawn.kind,
                spawn.plane,
                spawn.pos,
                spawn.range,
                spawn.look.clone(),
                ties,
                epoch,
                role,
            ),
        };
        self.counts.reals += 1;
        if spawn.kind == Kind::PLAYER {
            self.bodies.hot[slot as usize].viewer = self.viewers.len() as u32;
            self.viewers.push(Viewer::new(spawn.id, slot, spawn.session));
            self.counts.players += u64::from(spawn.session.is_some());
        }
        slot
    }
}

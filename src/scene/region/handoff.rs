//! Entities that move from one region to another of the same process.
//!
//! The source decides when a tick is done: the entity's frame of that tick is made, its whole state
//! goes to the target, and a ghost stays. The target installs it before it closes a later tick, so
//! that its client gets one frame per tick, the last from the source and the next from the target.
//! What else is told meanwhile follows it: orders and negotiation are forwarded, a client's inputs
//! are sent again by its session when it hears of the new route.

use super::Region;
use super::bodies::{Ghost, NO_SLOT, Role};
use super::viewer::{self, Seen, Viewer};
use super::{Kind, Phase};
use crate::scene::border::{Handoff, SeenState};
use crate::scene::effects::{Effect, Spawn};
use crate::scene::{RegionId, Tick};

impl Region {
    /// Hands off whoever has gone too far past the border, or has jumped away.
    pub(super) fn send_handoffs(&mut self, fx: &mut Vec<Effect>) {
        let margin = self.scene.spec.handoff_margin_cm;
        for slot in 0..self.bodies.hot.len() as u32 {
            let Role::Real(real) = &self.bodies.cold[slot as usize].role else { continue };
            let pos = self.bodies.hot[slot as usize].pos;
            match real.bound_for {
                Some(bound) => self.hand_off(slot, bound.region, fx),
                None if self.rect.outside_by(pos) > margin => {
                    let owner = self.owner_of(pos);
                    if owner != self.id {
                        self.hand_off(slot, owner, fx);
                    }
                }
                None => {}
            }
        }
    }

    fn hand_off(&mut self, slot: u32, to: RegionId, fx: &mut Vec<Effect>) {
        let handoff = self.pack(slot);
        let here = self.scene.map.get(to).is_some();
        self.sign_off(slot, here.then_some(to));
        self.counts.reals -= 1;
        self.counts.handoffs += 1;
        let pos = handoff.state.pos;
        if here && self.rect.outside_by(pos) <= self.scene.band_cm {
            // Mirrored by the new owner from its next tick on.
            let orphan_since = Some(self.tick.0 as u32);
            let cold = &mut self.bodies.cold[slot as usize];
            cold.role = Role::Ghost(Ghost { owner: to, orphan_since });
            self.bodies.set_plane(slot, handoff.state.plane);
        } else {
            self.bodies.remove(slot);
        }
        fx.push(Effect::Handoff(to, Box::new(handoff)));
    }

    fn pack(&mut self, slot: u32) -> Handoff {
        let viewer = self.take_viewer(slot);
        let (body, cold) = (&self.bodies.hot[slot as usize], &self.bodies.cold[slot as usize]);
        let bound = match &cold.role {
            Role::Real(real) => real.bound_for,
            _ => None,
        };
        let state = Spawn {
            id: body.id,
            kind: body.kind,
            plane: bound.map_or(cold.plane, |b| b.plane),
            pos: body.pos,
            range: body.range(),
            look: cold.look.clone(),
            session: viewer.as_ref().and_then(|v| v.session),
            bonds: cold.bonds.clone(),
        };
        let viewer = viewer.unwrap_or_else(|| Viewer::new(body.id, slot, None));
        Handoff {
            from: self.id,
            state,
            epoch: cold.epoch.next(),
            last_applied: viewer.last_applied,
            tick: self.tick,
            peers: viewer.registers.peers.iter().map(viewer::pack).collect(),
            view_counter: viewer.registers.counter,
            seen: viewer
                .seen
                .iter()
                .filter(|s| s.shown)
                .map(|s| SeenState { id: s.id, sent: Tick(s.sent.into()) })
                .collect(),
            gone: viewer.gone,
            refused: viewer.refused,
            held: viewer.held,
            resync: viewer.resync,
            jumped: bound.is_some(),
        }
    }

    /// Takes an entity that comes to live here: at once if its old owner's last tick is over here
    /// too, else before the next tick.
    pub(super) fn receive(&mut self, handoff: Handoff, fx: &mut Vec<Effect>) {
        if self.phase == Phase::Open && handoff.tick < self.tick {
            self.install(handoff, fx);
        } else {
            self.incoming.push(handoff);
        }
    }

    /// Installs who has come since the last tick.
    pub(super) fn install_incoming(&mut self, fx: &mut Vec<Effect>) {
        for handoff in std::mem::take(&mut self.incoming) {
            if handoff.tick < self.tick {
                self.install(handoff, fx);
            } else {
                self.incoming.push(handoff);
            }
        }
    }

    fn install(&mut self, handoff: Handoff, fx: &mut Vec<Effect>) {
        let id = handoff.state.id;
        let known = self.bodies.slot(id);
        let newer = known.is_some_and(|s| {
            let cold = &self.bodies.cold[s as usize];
            cold.epoch > handoff.epoch
                || (cold.epoch == handoff.epoch && matches!(cold.role, Role::Real(_)))
        });
        if newer || !self.bodies.has_kind(handoff.state.kind) {
            tracing::error!(region = %self.id, from = %handoff.from, entity = %id, epoch = %handoff.epoch, "a late handoff, or one of an unknown kind, was refused");
            return;
        }
        let slot = self.place_real(&handoff.state, handoff.epoch);
        if known.is_none() || handoff.jumped {
            self.bodies.hot[slot as usize].changed = self.tick.0 as u32;
        }
        if handoff.state.kind == Kind::PLAYER {
            self.restore_viewer(slot, &handoff);
        }
        self.notice_route(slot, handoff.jumped, fx);
    }

    fn restore_viewer(&mut self, slot: u32, handoff: &Handoff) {
        let ix = self.bodies.hot[slot as usize].viewer as usize;
        let Some(viewer) = self.viewers.get_mut(ix) else { return };
        viewer.registers.peers = handoff.peers.iter().map(viewer::unpack).collect();
        viewer.registers.counter = handoff.view_counter;
        viewer.seen = handoff
            .seen
            .iter()
            .map(|s| Seen { id: s.id, slot: NO_SLOT, sent: s.sent.0 as u32, ring: 0, shown: true })
            .collect();
        viewer.gone.clone_from(&handoff.gone);
        viewer.refused.clone_from(&handoff.refused);
        viewer.last_applied = handoff.last_applied;
        (viewer.held, viewer.resync) = (handoff.held, handoff.resync);
    }
}

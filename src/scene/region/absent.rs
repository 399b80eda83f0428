//! Players whose clients are away for a while, and come back by another session.
//!
//! ```text
//!            Absent, of its session                     its time is over
//!   present ------------------------> absent_until(T) -------------------> gone
//!      ^                                   |
//!      |     Resume: another session       |
//!      +-----------------------------------+
//! ```
//!
//! Whoever is absent is what it was for everybody else: it is shown, mirrored, negotiated with and handed off; it
//! stands, since nobody says where it goes, and no frames are made for it. Each `Resume` raises the entity's
//! epoch, so that of two sessions which present it the later one counts.
//!
//! | `Resume` of a player that | outcome |
//! |---|---|
//! | lives here, absent or not | its session is the new one, which is told everything anew; the old one is told that it was replaced |
//! | comes here and is not installed yet | waits until it is |
//! | sleeps, since the region goes on from a checkpoint | goes on as the checkpoint has it, once every region has said that it knows no better; until then nothing is said |
//! | was handed on | the question follows it |
//! | is not known | `Nowhere` |

use super::Region;
use crate::scene::effects::{Effect, Input, Motion, Notice, Presented, Resume, Resumed};
use crate::scene::mutants::{self, Mutant};
use crate::scene::{EntityId, SessionId, Tick};

impl Region {
    /// Whether an absence is told of a session that is none any more.
    pub(super) fn is_anothers(&self, input: &Input) -> bool {
        let Input::Absent { id, session, .. } = *input else { return false };
        let viewer = self.real_slot(id).map(|s| self.bodies.hot[s as usize].viewer as usize);
        let viewer = viewer.and_then(|ix| self.viewers.get(ix));
        viewer.is_some_and(|v| v.session != Some(session))
    }

    /// A player's client is away.
    pub(super) fn make_absent(&mut self, input: Input, fx: &mut Vec<Effect>) {
        let Input::Absent { id, session, ms } = input else { return };
        let ms = if mutants::has(Mutant::NoLinger) { 1 } else { ms };
        let Some(slot) = self.real_slot(id) else {
            // One that sleeps waits for its client as it is.
            if !self.is_dormant(id) {
                self.forward(id, input, fx);
            }
            return;
        };
        let ticks = u64::from(ms.div_ceil(self.scene.tick_ms.max(1)));
        let until = Tick(self.tick.0 + ticks);
        let ix = self.bodies.hot[slot as usize].viewer as usize;
        let Some(viewer) = self.viewers.get_mut(ix) else { return };
        if viewer.session == Some(session) && viewer.absent_until.is_none() {
            viewer.absent_until = Some(until);
            self.absent.push((until, id));
            self.stand(slot);
        }
    }

    /// Nobody says any more where it goes. Its client hears of it as of any ruling.
    fn stand(&mut self, slot: u32) {
        if self.scene.judged.is_some()
            && let Err(why) = self.set_in_motion(slot, Motion::Stop)
        {
            tracing::warn!(region = %self.id, ?why, "a player without its client cannot be stopped");
        }
    }

    /// Whoever's client has not come back in time leaves.
    pub(super) fn end_absences(&mut self, fx: &mut Vec<Effect>) {
        let now = self.tick;
        if self.absent.iter().all(|(until, _)| *until > now) {
            return;
        }
        let mut over: Vec<EntityId> = Vec::new();
        self.absent.retain(|(until, id)| {
            if *until <= now {
                over.push(*id);
            }
            *until > now
        });
        for id in over {
            let Some(slot) = self.real_slot(id) else { continue };
            let viewer = self.viewers.get(self.bodies.hot[slot as usize].viewer as usize);
            if viewer.and_then(|v| v.absent_until).is_some_and(|until| until <= now) {
                self.remove_real(slot, fx);
            }
        }
    }

    /// A player's client has come back.
    pub(super) fn resume(&mut self, resume: Resume, fx: &mut Vec<Effect>) {
        if let Some(slot) = self.real_slot(resume.id) {
            return self.resume_here(slot, resume, fx);
        }
        if self.is_dormant(resume.id) && !self.have_all_answered() {
            // It may live in a region that is down, which will know better. The session asks again.
            return;
        }
        if let Some(slot) = self.wake_for(resume, fx) {
            return self.tell_resumed(slot, resume.session, fx);
        }
        match self.whereabouts(resume.id) {
            Some(owner) => fx.push(Effect::Forward(owner, Box::new(Input::Resume(resume)))),
            None => nowhere(resume, fx),
        }
    }

    fn resume_here(&mut self, slot: u32, resume: Resume, fx: &mut Vec<Effect>) {
        let ix = self.bodies.hot[slot as usize].viewer as usize;
        let Some(viewer) = self.viewers.get_mut(ix) else { return nowhere(resume, fx) };
        let session = resume.session;
        if viewer.replaced == Some(session) {
            return fx.push(Effect::Notice(session, Notice::Replaced));
        }
        if viewer.session != Some(session) {
            let before = viewer.session.replace(session);
            (viewer.replaced, viewer.absent_until) = (before, None);
            (viewer.held, viewer.resync, viewer.own_due) = (false, true, true);
            viewer.last_applied = viewer.last_applied.max(resume.acked);
            self.counts.players += u64::from(before.is_none());
            let cold = &mut self.bodies.cold[slot as usize];
            cold.epoch = cold.epoch.next();
            fx.extend(before.map(|before| Effect::Notice(before, Notice::Replaced)));
            self.stand(slot);
        }
        self.tell_resumed(slot, session, fx);
    }

    /// A player that sleeps goes on for its client, as the checkpoint has it.
    fn wake_for(&mut self, resume: Resume, fx: &mut Vec<Effect>) -> Option<u32> {
        let Resume { id, session, acked, .. } = resume;
        let known = self.dormant().find(|known| known.state.id == id)?;
        let state = &known.state;
        let before = state.session.filter(|before| *before != session);
        let presented = Presented {
            id,
            session,
            to: self.id,
            epoch: known.epoch,
            acked: acked.max(known.last_applied),
            plane: state.plane,
            pos: state.pos,
            placed_by: known.last_applied,
            own: None,
            tick: known.tick,
            range: state.range,
            look: state.look.clone(),
            leap: None,
        };
        self.bring_back(presented, fx);
        fx.extend(before.map(|before| Effect::Notice(before, Notice::Replaced)));
        let slot = self.real_slot(id)?;
        let viewer = self.bodies.hot[slot as usize].viewer as usize;
        self.viewers.get_mut(viewer)?.replaced = before;
        Some(slot)
    }

    /// Tells a session all that it has to know of its player.
    fn tell_resumed(&self, slot: u32, session: SessionId, fx: &mut Vec<Effect>) {
        let (body, cold) = (&self.bodies.hot[slot as usize], &self.bodies.cold[slot as usize]);
        let Some(viewer) = self.viewers.get(body.viewer as usize) else { return };
        let resumed = Resumed {
            scene: self.scene.id,
            region: self.id,
            epoch: cold.epoch,
            last_applied: viewer.last_applied,
            tick: self.tick,
            plane: cold.plane,
            pos: body.pos,
            own: self.own_of(slot).map(Box::new),
            range: self.bodies.places[slot as usize].range(),
            look: cold.look.clone(),
        };
        fx.push(Effect::Notice(session, Notice::Resumed(Box::new(resumed))));
    }
}

fn nowhere(resume: Resume, fx: &mut Vec<Effect>) {
    let asked = resume.asked;
    fx.push(Effect::Notice(resume.session, Notice::Nowhere { asked }));
}

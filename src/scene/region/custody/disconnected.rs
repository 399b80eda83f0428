//! Disconnected players: the client is gone, for a while or for good, and the player stays for its time.
//!
//! ```text
//!            Disconnected, of its session               its time is over
//!   present ------------------------> disconnected -------------------> departing
//!      ^                                   |                                 ^
//!      |     Resume: another session       |                                 |
//!      +-----------------------------------+                                 |
//!      '----- Kicked, kick, despawn; Disconnected where nothing keeps it ----'
//! ```
//!
//! A disconnected player stays visible to others: it is shown, mirrored, negotiated with and handed off; it
//! stands, and no frames are made for it. Its time is over when three times are, which overlap: the grace
//! period of its session, the linger time of the scene, and what the game's logic says (`Hold`). The last
//! two are one tick, `stays_until`: linger time is a hold by the scene.
//!
//! Each `Resume` gives its session a later time than the one before had, so that of two sessions which
//! present the player the later one counts. A question of a session whose subject joins anew
//! ([`ResumeFor::Leave`]) finds the player by the same ways. It leaves where it is found; if it has to stay,
//! the session is told so (`Stays`) and resumes it. A session that has left, and whose player stays, is told
//! the same: so the session outlives a death of the region.
//!
//! | `Resume` of a player that | outcome |
//! |---|---|
//! | lives here, disconnected or not | its session is the new one, which is told everything anew; the old one is told that it was replaced |
//! | comes here and is not installed yet | waits until it is |
//! | is unclaimed, since the region recovers from a checkpoint | goes on as the checkpoint has it, once every region has said that it knows no better; until then nothing is said |
//! | was away by the checkpoint from which the region goes on | the same; meanwhile it is there, and away as it was, once that is said |
//! | is another subject's | its session is told so, and nothing changes |
//! | was handed on | the question follows it |
//! | has left, and its last state is not stored yet | nothing is said until it is |
//! | is not known | `Nowhere`; where the region goes on from a checkpoint, nothing until every region has said what it knows, and after that for itself alone, not for the region that passed the question on |

use crate::scene::messages::{Effect, Handoff, Input, LeaveCause, LogicEvent};
use crate::scene::messages::{Motion, Notice, Presented, Resume, ResumeFor, Resumed};
use crate::scene::mutants::{self, Mutant};
use crate::scene::region::views::Viewer;
use crate::scene::region::{PATIENCE, Region};
use crate::scene::{EntityId, Epoch, RegionId, SessionId, Tick};

impl Region {
    /// A player's client is gone.
    pub(in crate::scene::region) fn disconnect(&mut self, input: Input, fx: &mut Vec<Effect>) {
        let Input::Disconnected { id, session, ms } = input else { return };
        let Some(slot) = self.entities.real_slot(id) else {
            return match ms {
                0 => self.cancel_arrival(input, fx),
                // An unclaimed player already waits for its client.
                _ if self.is_unclaimed(id) => {}
                _ => self.forward(id, input, fx),
            };
        };
        if !self.is_of_session(slot, session) {
            return;
        }
        let ms = if mutants::has(Mutant::NoGracePeriod) { 1.min(ms) } else { ms };
        let (until, lingers_until) = (self.in_ms(ms), self.lingers_until());
        let Some(viewer) = self.views.of_mut(&self.entities, slot) else { return };
        let before = viewer.leaves_at();
        let is_new = viewer.disconnect(until, lingers_until);
        let held = !mutants::has(Mutant::LeavesAtOnce);
        let leaves_at = if held { until.max(viewer.stays_until) } else { until };
        if leaves_at <= self.clock.tick() {
            return self.remove_real(slot, LeaveCause::Left, fx);
        }
        if before != Some(leaves_at) {
            self.custody.disconnected.push((leaves_at, id));
        }
        if is_new {
            self.logic.note(LogicEvent::Disconnected { id });
            self.stop_moving(slot);
        }
        if leaves_at > until {
            self.tell_stays(slot, session, fx);
        }
    }

    /// The client of an unclaimed player is gone for good. True while the player has to stay: it is disconnected when
    /// it returns.
    pub(in crate::scene::region) fn disconnect_unclaimed(
        &mut self,
        id: EntityId,
        session: Option<SessionId>,
    ) -> bool {
        let (now, lingers_until) = (self.clock.tick(), self.lingers_until());
        let Some(known) = self.unclaimed_mut(id).filter(|known| known.state.session == session)
        else {
            return false;
        };
        if known.disconnected_until.is_none() {
            known.stays_until = known.stays_until.max(lingers_until);
        }
        known.disconnected_until = Some(now);
        known.stays_until > now
    }

    /// Logic lets the player at `slot` stay, or lets it go.
    pub(in crate::scene::region) fn hold(&mut self, slot: u32, ms: u32, fx: &mut Vec<Effect>) {
        let (now, until) = (self.clock.tick(), self.in_ms(ms));
        let Some(viewer) = self.views.of_mut(&self.entities, slot) else { return };
        let before = viewer.leaves_at();
        viewer.stays_until = if ms == 0 { now } else { viewer.stays_until.max(until) };
        let (session, Some(leaves_at)) = (viewer.session, viewer.leaves_at()) else { return };
        if leaves_at <= now {
            return self.remove_real(slot, LeaveCause::Expired, fx);
        }
        // A later end is found when the one before comes.
        if Some(leaves_at) < before {
            self.custody.disconnected.push((leaves_at, self.entities.body(slot).id));
        }
        if let Some(session) = session.filter(|_| Some(leaves_at) != before) {
            self.tell_stays(slot, session, fx);
        }
    }

    /// The tick that is so many milliseconds from now.
    fn in_ms(&self, ms: u32) -> Tick {
        let ticks = u64::from(ms.div_ceil(self.identity.scene().tick_ms.max(1)));
        Tick(self.clock.tick().0.saturating_add(ticks))
    }

    /// Until when a player lingers whose client goes now.
    fn lingers_until(&self) -> Tick {
        self.in_ms(self.identity.scene().spec.linger_ms)
    }

    /// Whether a player has to stay although its subject joins anew: it lingers, or would, or logic holds it.
    fn must_stay(&self, stays_until: Tick, has_client: bool) -> bool {
        stays_until > self.clock.tick() || (has_client && self.identity.scene().spec.linger_ms > 0)
    }

    /// Tells a session that the player at `slot` stays.
    fn tell_stays(&self, slot: u32, session: SessionId, fx: &mut Vec<Effect>) {
        let (body, now) = (self.entities.body(slot), self.clock.tick());
        let Some(viewer) = self.views.get(body.viewer) else { return };
        let until = viewer.leaves_at().unwrap_or(viewer.stays_until).max(now);
        let epoch = self.entities.record(slot).epoch;
        self.say_stays((body.id, epoch), until, session, fx);
    }

    fn say_stays(
        &self,
        (id, epoch): (EntityId, Epoch),
        until: Tick,
        session: SessionId,
        fx: &mut Vec<Effect>,
    ) {
        let ticks = until.0.saturating_sub(self.clock.tick().0);
        let ms = ticks.saturating_mul(self.identity.scene().tick_ms.into());
        let ms = u32::try_from(ms).unwrap_or(u32::MAX);
        fx.push(Effect::Notice(session, Notice::Stays { id, epoch, until, ms }));
    }

    /// No client steers the player any more: it stops. Its client learns of that as of any
    /// correction.
    fn stop_moving(&mut self, slot: u32) {
        if self.identity.scene().judged.is_some()
            && let Err(why) = self.set_in_motion(slot, Motion::Stop)
        {
            crate::log_limited!(at self.log_ms(); warn, region = %self.identity.id(), ?why, "a player without its client cannot be stopped");
        }
    }

    /// Players whose clients have not come back in time leave.
    pub(in crate::scene::region) fn end_grace_periods(&mut self, fx: &mut Vec<Effect>) {
        let now = self.clock.tick();
        if self.custody.disconnected.iter().all(|(until, _)| *until > now) {
            return;
        }
        let mut over: Vec<EntityId> = Vec::new();
        self.custody.disconnected.retain(|(until, id)| {
            if *until <= now {
                over.push(*id);
            }
            *until > now
        });
        for id in over {
            let Some(slot) = self.entities.real_slot(id) else { continue };
            let viewer = self.views.of(&self.entities, slot);
            match viewer.and_then(Viewer::leaves_at) {
                Some(at) if at <= now => self.remove_real(slot, LeaveCause::Expired, fx),
                Some(at) => self.custody.disconnected.push((at, id)),
                None => {}
            }
        }
    }

    /// A player's client has come back.
    pub(in crate::scene::region) fn resume(&mut self, resume: Resume, fx: &mut Vec<Effect>) {
        if self.is_of_other_subject(resume.id, resume.subject) {
            return fx.push(Effect::Notice(resume.session, Notice::OtherSubject));
        }
        if self.custody.departing().has(resume.id) {
            // The session asks again, and the answer comes when the player's last state is stored.
            return;
        }
        if let Some(slot) = self.entities.real_slot(resume.id) {
            return self.resume_here(slot, resume, fx);
        }
        if self.is_unclaimed(resume.id) && !self.may_return(resume.id) {
            // It may live in a region that is down, which will know better. The session asks again.
            return;
        }
        let is_late = |known: &Handoff| {
            known.state.session != Some(resume.session)
                && (1..known.since_ms).contains(&resume.since_ms)
        };
        if self.unclaimed_of(resume.id).is_some_and(is_late) {
            return fx.push(Effect::Notice(resume.session, Notice::Replaced));
        }
        if resume.purpose == ResumeFor::Leave
            && let Some(known) = self.unclaimed_of(resume.id)
        {
            let (epoch, has_client) = (known.epoch, known.disconnected_until.is_none());
            let until = known.stays_until;
            return match self.must_stay(until, has_client) {
                true => self.say_stays((resume.id, epoch), until, resume.session, fx),
                false => self.forget_unclaimed(resume.id, None, fx),
            };
        }
        if let Some(slot) = self.resume_unclaimed(resume, fx) {
            return self.tell_resumed(slot, resume.session, fx);
        }
        match self.whereabouts(resume.id) {
            // It is not known there, if what handed it over was lost.
            _ if self.may_have_lost(resume.id) => {}
            Some(_) if !self.may_pass_on() => {}
            Some(owner) => fx.push(Effect::Forward(owner, Box::new(Input::Resume(resume)))),
            // A region that has handed it here after the checkpoint may yet hand it back.
            None if !self.have_all_answered() => {}
            // A former owner may have forwarded the question, and the next owner may have the
            // player unclaimed: the next owner answers for itself.
            None if self.custody.recovering.is_some() => {
                nowhere(Resume { asked: self.identity.id(), ..resume }, fx)
            }
            None => nowhere(resume, fx),
        }
    }

    fn resume_here(&mut self, slot: u32, resume: Resume, fx: &mut Vec<Effect>) {
        let Some(viewer) = self.views.of_mut(&self.entities, slot) else {
            return nowhere(resume, fx);
        };
        let session = resume.session;
        let earlier = (1..viewer.since_ms).contains(&resume.since_ms);
        if viewer.replaced == Some(session) || (earlier && viewer.session != Some(session)) {
            // A question that was late, and has come by where the player has been since.
            return fx.push(Effect::Notice(session, Notice::Replaced));
        }
        if resume.purpose == ResumeFor::Leave {
            let (stays_until, has_client) =
                (viewer.stays_until, viewer.disconnected_until.is_none());
            return match viewer.session == Some(session) {
                // It has resumed the player since it has asked.
                true => {}
                false if self.must_stay(stays_until, has_client) => {
                    self.tell_stays(slot, session, fx);
                }
                false => self.remove_real(slot, LeaveCause::Left, fx),
            };
        }
        if viewer.session != Some(session) {
            let before = viewer.resume(&resume);
            self.counts.players += u64::from(before.is_none());
            let epoch = self.entities.record(slot).epoch;
            self.entities.set_epoch(slot, epoch.next());
            fx.extend(before.map(|before| Effect::Notice(before, Notice::Replaced)));
            self.logic.note(LogicEvent::Resumed { id: resume.id });
            self.stop_moving(slot);
        }
        self.tell_resumed(slot, session, fx);
    }

    /// The player at `slot` is dropped here since it lives in `owner` under a higher epoch. Its session may be a
    /// later one than the owner knows of, which went on from an older checkpoint.
    pub(in crate::scene::region) fn displace(&mut self, slot: u32, owner: RegionId) {
        let body = self.entities.body(slot);
        let Some(viewer) = self.views.get(body.viewer) else { return };
        let (id, acked, asked, since_ms) = (body.id, viewer.last_applied, owner, viewer.since_ms);
        let subject = viewer.subject;
        let is_there = viewer.disconnected_until.is_none() && since_ms > 0;
        let purpose = ResumeFor::Play;
        let resume =
            |session| (owner, Resume { id, session, subject, acked, asked, since_ms, purpose });
        self.custody.displaced.extend(viewer.session.filter(|_| is_there).map(resume));
    }

    /// Asks in the name of those sessions: the later one has the player, and the other one is told so.
    pub(in crate::scene::region) fn resume_displaced(&mut self, fx: &mut Vec<Effect>) {
        for (owner, resume) in std::mem::take(&mut self.custody.displaced) {
            match owner == self.identity.id() {
                true => self.inbox.push(Input::Resume(resume)),
                false => fx.push(Effect::Forward(owner, Box::new(Input::Resume(resume)))),
            }
        }
    }

    /// An unclaimed player resumes for its client, as the checkpoint has it.
    fn resume_unclaimed(&mut self, resume: Resume, fx: &mut Vec<Effect>) -> Option<u32> {
        let Resume { id, session, acked, since_ms, .. } = resume;
        let known = self.unclaimed_of(id)?;
        let before = known.state.session.filter(|before| *before != session);
        let as_it_was = self.presented_by_checkpoint(known, session);
        let acked = acked.max(as_it_was.acked);
        let since_ms = since_ms.max(as_it_was.since_ms.saturating_add(1));
        self.reclaim(Presented { acked, since_ms, ..as_it_was }, fx);
        self.repeat_nothing_for(id);
        fx.extend(before.map(|before| Effect::Notice(before, Notice::Replaced)));
        let slot = self.entities.real_slot(id)?;
        let viewer = self.entities.body(slot).viewer;
        self.views.get_mut(viewer)?.replaced = before;
        Some(slot)
    }

    /// Players that were disconnected when the checkpoint was made go on disconnected: no session presents them.
    /// So do players that logic held then, if no session presents them for [`PATIENCE`] ticks. Not before every
    /// region has said that it knows no better, since they may have come back.
    pub(in crate::scene::region) fn return_disconnected(&mut self, fx: &mut Vec<Effect>) {
        if self.counts.unclaimed == 0 || self.is_recovering() || !self.have_all_answered() {
            return;
        }
        let now = self.clock.tick();
        let since = self.custody.recovering.as_ref().and_then(|r| r.since).unwrap_or(now);
        let are_late = now.0 >= since.0.saturating_add(PATIENCE);
        let disconnected = self.unclaimed().filter_map(|known| {
            let until = known.disconnected_until.or(are_late.then_some(now))?;
            if until.max(known.stays_until) <= now || !self.may_return(known.state.id) {
                return None;
            }
            Some((until, self.presented_by_checkpoint(known, known.state.session?)))
        });
        for (until, known) in disconnected.collect::<Vec<_>>() {
            let id = known.id;
            self.reclaim(known, fx);
            self.repeat_nothing_for(id);
            // Whose client has come back since is presented yet.
            let until = until.max(Tick(now.0.saturating_add(PATIENCE)));
            let slot = self.entities.real_slot(id).map(|s| self.entities.body(s).viewer);
            if let Some(viewer) = slot.and_then(|ix| self.views.get_mut(ix)) {
                viewer.disconnected_until = Some(until);
                self.custody.disconnected.push((until, id));
            }
        }
    }

    /// What a session would present that knows no more than the checkpoint.
    fn presented_by_checkpoint(&self, known: &Handoff, session: SessionId) -> Presented {
        let state = &known.state;
        Presented {
            id: state.id,
            session,
            subject: state.subject,
            account: state.account.clone(),
            to: self.identity.id(),
            epoch: known.epoch,
            acked: known.last_applied,
            plane: state.plane,
            pos: state.pos,
            placed_by: known.last_applied,
            own: None,
            tick: known.tick,
            sight: state.sight,
            facing: state.facing,
            properties: state.properties.clone(),
            bonds: self.kept_bonds(&known.ties, &state.bonds),
            teleport: None,
            since_ms: known.since_ms,
        }
    }

    /// Tells a session all that it has to know of its player.
    fn tell_resumed(&self, slot: u32, session: SessionId, fx: &mut Vec<Effect>) {
        let (body, record) = (self.entities.body(slot), self.entities.record(slot));
        let Some(viewer) = self.views.get(body.viewer) else { return };
        let resumed = Resumed {
            subject: viewer.subject,
            scene: self.identity.scene().id,
            region: self.identity.id(),
            epoch: record.epoch,
            last_applied: viewer.last_applied,
            tick: self.clock.tick(),
            plane: record.plane,
            pos: body.pos,
            own: self.own_of(slot).map(Box::new),
            sight: self.entities.place(slot).sight(),
            facing: body.facing,
            properties: record.properties.clone(),
            since_ms: viewer.since_ms,
            unconfirmed: viewer.unconfirmed,
        };
        fx.push(Effect::Notice(session, Notice::Resumed(Box::new(resumed))));
        self.tell_bonds(slot, fx);
    }
}

fn nowhere(resume: Resume, fx: &mut Vec<Effect>) {
    let asked = resume.asked;
    fx.push(Effect::Notice(resume.session, Notice::Nowhere { asked }));
}

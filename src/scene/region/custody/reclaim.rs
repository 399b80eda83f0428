//! Sessions present their players to a region that goes on from a checkpoint.
//!
//! | known to the checkpoint, or to the region that handed it here since | outcome |
//! |---|---|
//! | yes, and the session knows of a later place | it stands there; debts and grants as they were |
//! | yes, and the session knows of none | it stands where it was |
//! | no | it stands where the session says |
//! | lives here already | its session is told so again |
//! | has a later session ([`Resume::since_ms`](crate::scene::messages::Resume::since_ms)) | the earlier one is told that it was replaced |
//! | lives elsewhere under a higher epoch | its session's message goes there |
//! | is another subject's | its session is told so, and nothing changes |
//! | came here under a higher epoch and has left | its session is told that it has |
//!
//! It has the bonds that were set last, as far as the two know. It counts every input as applied that either of the two knows to have been, and its epoch is
//! above both. Its view list is built anew: its client is told everything once.

use crate::scene::messages::{Claim, Destination, EnterCause, Handoff, LogicEvent};
use crate::scene::messages::{Effect, Input, Notice, Presented, Spawn};
use crate::scene::movement::{Mover, Own, ServerMs};
use crate::scene::mutants::{self, Mutant};
use crate::scene::properties::Properties;
use crate::scene::region::{PATIENCE, Region};
use crate::scene::views::{NUMBERS_LEFT, Ties};
use crate::scene::{Account, Epoch, Kind, Plane, Pos, Seq, Tick, TickStamp};

/// Requests of a player, or corrections, between two of its lives: more than there are in one.
const COUNTED: u32 = 1 << 20;

/// Incarnations after which a player of unknown numbers begins from below: by then no peer remembers the old ones.
const LIVES: u64 = 1 << 11;

/// From where the requests are numbered of a player that goes on: above all that it may have said, and so its
/// corrections. Where the numbers end it begins from below, as after so many lives.
pub fn counter(epoch: Epoch, last: u32) -> u32 {
    let lives = (epoch.lives() % LIVES) as u32;
    let above = last.checked_add(COUNTED).filter(|above| u32::MAX - above >= NUMBERS_LEFT);
    above.unwrap_or(0).max(lives * COUNTED)
}

impl Region {
    /// A session presents its player.
    pub(in crate::scene::region) fn present(&mut self, presented: Presented, fx: &mut Vec<Effect>) {
        if self.is_of_other_subject(presented.id, presented.subject) {
            return fx.push(Effect::Notice(presented.session, Notice::OtherSubject));
        }
        if let Some(slot) = self.entities.real_slot(presented.id) {
            return self.reclaim_here(slot, presented, fx);
        }
        if self.custody.is_incoming(presented.id) || self.custody.departing().has(presented.id) {
            // Its session was told, or will be.
            return;
        }
        let gone =
            |claim: &Claim| claim.region == self.identity.id() && !self.is_unclaimed(claim.id);
        let newer = |claim: &Claim| {
            claim.epoch > presented.epoch || (claim.epoch == presented.epoch && gone(claim))
        };
        match self.claim(presented.id).filter(newer) {
            Some(claim) if claim.region != self.identity.id() => {
                let epoch = claim.epoch;
                let input = Input::Present(Box::new(Presented { epoch, ..presented }));
                if self.may_pass_on() {
                    fx.push(Effect::Forward(claim.region, Box::new(input)));
                }
            }
            Some(claim) if gone(&claim) => {
                // It came here since, and has left.
                let (tick, epoch) = (self.clock.tick(), Epoch(u64::MAX));
                let properties = Properties::default();
                let left = Notice::Left { tick, epoch, properties };
                fx.push(Effect::Notice(presented.session, left));
            }
            _ => self.reclaim(presented, fx),
        }
    }

    /// It lives here already, but its session may know of inputs that were applied where it lived before.
    fn reclaim_here(&mut self, slot: u32, presented: Presented, fx: &mut Vec<Effect>) {
        let Some(viewer) = self.views.of_mut(&self.entities, slot) else { return };
        let owns = viewer.session == Some(presented.session);
        if !owns && presented.since_ms <= viewer.since_ms {
            // Its client has come back by another connection since.
            return fx.push(Effect::Notice(presented.session, Notice::Replaced));
        }
        if !owns {
            let before = viewer.present(presented.session, presented.since_ms);
            fx.extend(before.map(|before| Effect::Notice(before, Notice::Replaced)));
        } else if viewer.disconnected_until.take().is_some() {
            // The checkpoint has brought it back before its session spoke, which will say if its client is gone.
            (viewer.resync, viewer.own_properties_due) = (true, true);
            self.logic.note(LogicEvent::Resumed { id: presented.id });
        }
        let before = viewer.last_applied;
        viewer.last_applied = before.max(presented.acked);
        if before < presented.acked {
            viewer.unconfirmed = Some((before, presented.acked));
        }
        let known = self.entities.record(slot).epoch;
        // A route of the same epoch, or of what may be an earlier owner's, would be old news.
        let above = if presented.to == self.identity.id() {
            self.identity.epoch().of_birth()
        } else {
            Epoch(0)
        };
        let epoch = presented.epoch.max(known).next().max(above);
        viewer.resync |= presented.epoch.is_of_a_life_before(epoch);
        self.take_properties(slot, known, &presented.properties);
        self.take_newer_bonds(slot, &presented.bonds);
        self.entities.set_epoch(slot, epoch);
        let mut moved = None;
        if presented.acked > before {
            self.entities.set_facing(slot, presented.facing, TickStamp::of(self.clock.tick()));
            let (plane, pos) = self.last_position(&presented, None);
            moved = Some((slot, plane, pos));
            self.entities.set_plane(slot, plane);
            self.take_told_movement(slot, &presented);
            self.place_at(slot, pos);
            if let Some(real) = self.entities.real_mut(slot) {
                real.restate = true;
            }
        }
        self.notice_route(slot, false, fx);
        if let Some(moved) = moved {
            self.send_home(moved, fx);
        }
    }

    /// What was known of a player that goes on here may be so old that it was on a plane of another plane group then.
    fn send_home(&mut self, (slot, plane, pos): (u32, Plane, Pos), fx: &mut Vec<Effect>) {
        if self.identity.hosts(plane) {
            return;
        }
        let (scene, region) = (self.identity.scene().id, self.identity.owner_of(plane, pos));
        self.teleport_on(slot, Destination { scene, region, plane, pos }, fx);
    }

    /// A player that goes on here is on its way elsewhere.
    fn teleport_on(&mut self, slot: u32, to: Destination, fx: &mut Vec<Effect>) {
        if let Err(why) = self.teleport(slot, to, fx) {
            let id = self.entities.body(slot).id;
            crate::log_limited!(at self.log_ms(); warn, region = %self.identity.id(), entity = %id, ?why, "a teleport that was under way cannot be made");
        }
    }

    pub(in crate::scene::region) fn reclaim(&mut self, presented: Presented, fx: &mut Vec<Effect>) {
        let later = |known: &Handoff| {
            known.state.session.is_some_and(|session| session != presented.session)
                && known.since_ms > presented.since_ms
        };
        if self.unclaimed_of(presented.id).is_some_and(later) {
            // Its client had come back by another connection when the checkpoint was made.
            return fx.push(Effect::Notice(presented.session, Notice::Replaced));
        }
        let known = self.take_unclaimed(presented.id);
        let (is_known, under) = (known.is_some(), known.as_ref().map_or(Epoch(0), |k| k.epoch));
        let epoch = under.max(presented.epoch).next_life(self.identity.lineage());
        let (plane, pos) = self.last_position(&presented, known.as_ref());
        let Presented { id, session, subject, sight, facing, ref properties, .. } = presented;
        let account = account_of(known.as_ref(), &presented);
        let mut properties = properties.clone();
        if let Some(known) = &known {
            properties.merge(&known.state.properties, TickStamp::of(self.clock.tick()));
        }
        let mut ties = known.as_ref().map_or_else(Ties::default, |known| known.ties.clone());
        let mut bonds = known.as_ref().map(|known| known.state.bonds.clone()).unwrap_or_default();
        self.newer_bonds(&mut ties, &mut bonds, &presented.bonds);
        let spawn = Spawn {
            plane,
            sight,
            facing,
            properties,
            session: Some(session),
            subject,
            account,
            bonds,
            ..Spawn::new(id, Kind::PLAYER, pos)
        };
        let slot = self.place_real(&spawn, ties, epoch);
        self.views.note_new_incarnation(id);
        // The region that had handed it here may say so again, long after the player has left.
        self.custody.escrow.note(self.clock.tick(), id, epoch);
        let mover = self.mover_of(&presented, known.as_ref(), (pos, epoch));
        if let Some(mover) = mover {
            self.give_mover(slot, Some(mover));
            self.place_at(slot, pos);
        }
        self.restore_watch(slot, known.as_ref().and_then(|known| known.watch.clone()));
        self.custody.moved.remove(&id);
        self.logic.entered(id, EnterCause::Recovered);
        self.views.expect_ends(slot, &self.entities);
        self.tell_all_neighbours(slot);
        self.entities.set_changed(slot, TickStamp::of(self.clock.tick()));
        self.resume_view(slot, epoch, &presented, known.as_ref());
        if let Some(known) = &known {
            self.take_actions_along(known);
        }
        // It was handed here by a teleport, and its session knows of no tick since: its client does
        // not know where it is.
        let arrives = known.is_some_and(|known| known.teleported && presented.tick <= known.tick);
        self.notice_route(slot, arrives, fx);
        if !is_known {
            // No region was asked about it, and it may be unclaimed where it lived before, if that region died, too.
            self.custody.unasked.push(Claim { id, epoch, region: self.identity.id() });
        }
        match presented.teleport {
            Some(to) => self.teleport_on(slot, to, fx),
            None => self.send_home((slot, plane, pos), fx),
        }
    }

    /// The view of a player that goes on begins anew: its client is told everything once.
    fn resume_view(
        &mut self,
        slot: u32,
        epoch: Epoch,
        presented: &Presented,
        known: Option<&Handoff>,
    ) {
        let tick = self.clock.tick();
        let Some(viewer) = self.views.of_mut(&self.entities, slot) else { return };
        let applied = known.map_or(Seq(0), |known| known.last_applied);
        let acked = if mutants::has(Mutant::OldPlace) { Seq(0) } else { presented.acked };
        viewer.last_applied = applied.max(acked);
        viewer.unconfirmed = (applied < acked).then_some((applied, acked));
        viewer.since_ms = presented.since_ms;
        viewer.stays_until = known.map_or(Tick(0), |known| known.stays_until);
        let last = known.map_or(0, |known| known.view_counter);
        viewer.registers.counter = counter(epoch, last);
        viewer.resync = true;
        // Actions that neighbours tell again, of a tick of which the old owner has made a frame, were shown.
        let latest = Tick(tick.0.saturating_add(PATIENCE));
        viewer.frames_from = presented.tick.next().min(latest);
        self.repeat_actions(presented.id);
    }

    /// What its client was told of its movement counts, though it was lost here.
    fn take_told_movement(&mut self, slot: u32, presented: &Presented) {
        let (now, own) = (self.now(), presented.own.as_ref());
        let mover = self.entities.real_mut(slot).and_then(|real| real.mover.as_deref_mut());
        if let (Some(mover), Some((_, own))) = (mover, own) {
            mover.go_on(now, own.correction, Some((own.speed_cm_s, own.flags)));
        }
    }

    /// Whether the session knows more of a player's place than the checkpoint.
    fn knows_more(presented: &Presented, known: &Handoff) -> bool {
        let told = presented.own.as_ref().is_some_and(|(tick, _)| *tick > known.tick);
        presented.epoch > known.epoch || presented.placed_by > known.last_applied || told
    }

    /// Where a player was last.
    fn last_position(&self, presented: &Presented, known: Option<&Handoff>) -> (Plane, Pos) {
        let old = mutants::has(Mutant::OldPlace);
        let older = known.filter(|known| old || !Region::knows_more(presented, known));
        let at = older.map_or(presented.tick, |known| known.tick.max(presented.tick));
        let at = ServerMs(at.0.saturating_mul(self.identity.scene().tick_ms.into()));
        let (plane, pos) = match older {
            Some(known) => {
                let trajectory = known.mover.as_ref().map(|mover| mover.trajectory());
                let pos = trajectory.map_or(known.state.pos, |trajectory| trajectory.position(at));
                (known.state.plane, pos)
            }
            None => {
                let own = presented.own.as_ref().filter(|_| self.identity.scene().judged.is_some());
                let pos = own.map_or(presented.pos, |(_, own)| own.trajectory.position(at));
                (presented.plane, pos)
            }
        };
        (plane, self.legal(pos))
    }

    /// The nearest place of the scene.
    fn legal(&self, pos: Pos) -> Pos {
        let bounds = self.identity.scene().map.bounds;
        let (x, z) = (pos.x.clamp(bounds.x0, bounds.x1 - 1), pos.z.clamp(bounds.z0, bounds.z1 - 1));
        Pos { x, z, ..pos }
    }

    /// The account of a player's movement: the checkpoint's, with what its client was told since.
    fn mover_of(
        &self,
        presented: &Presented,
        known: Option<&Handoff>,
        (pos, epoch): (Pos, Epoch),
    ) -> Option<Box<Mover>> {
        self.identity.scene().judged.as_ref()?;
        let now = self.now();
        let speed = self.identity.scene().speed_of(Kind::PLAYER);
        let before = known.and_then(|known| known.mover.clone());
        let mut mover = before.unwrap_or_else(|| Box::new(Mover::new(now, pos, speed)));
        let Some((_, own)) = &presented.own else {
            // Its client may have followed later corrections, and follows only newer ones.
            mover.go_on(now, counter(epoch, mover.correction()), None);
            return Some(mover);
        };
        let Own { correction, speed_cm_s, flags, .. } = **own;
        let newer = known.is_none_or(|known| Region::knows_more(presented, known));
        mover.go_on(now, correction, newer.then_some((speed_cm_s, flags)));
        Some(mover)
    }
}

/// The account with which a player has joined, if that is known here; else that of its session.
fn account_of(known: Option<&Handoff>, presented: &Presented) -> Account {
    let known =
        known.map(|known| &known.state.account).filter(|account| **account != Account::NONE);
    known.unwrap_or(&presented.account).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_goes_on_has_numbers_left_whatever_it_has_said() {
        for last in [0, 1, COUNTED, 1 << 31, u32::MAX - 2 * NUMBERS_LEFT, u32::MAX - 1, u32::MAX] {
            for epoch in [0, 1, 1 << 20, 1 << 41, u64::MAX] {
                let counter = counter(Epoch(epoch), last);
                assert!(u32::MAX - counter >= NUMBERS_LEFT, "{counter} after {last} in {epoch}");
                let ends = last >= u32::MAX - 2 * NUMBERS_LEFT;
                assert!(ends || counter > last, "{counter} after {last} in {epoch}");
            }
        }
    }
}

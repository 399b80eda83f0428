//! What regions tell the session beside frames: where the player lives, and whether it still does.
//!
//! Every notice carries an epoch. A notice of a lower epoch than the known one is late, and changes
//! nothing.

use super::Player;
use super::client::refuse;
use super::io::{End, PlayerEffect, Problem, Reply, State};
use super::link::Route;
use crate::scene::messages::{Claim, Input, Notice, RouteNotice};
use crate::scene::mutants::{self, Mutant};
use crate::scene::properties::Properties;
use crate::scene::{Epoch, RegionId, Seq, Tick};

impl Player {
    pub(super) fn notice(&mut self, now_ms: u64, notice: Notice, out: &mut Vec<PlayerEffect>) {
        self.link.unblock();
        match notice {
            Notice::Route(route) if route.subject != self.subject => {
                crate::log_limited!(at now_ms; error, player = %self.id, "a region told a session of another subject's player");
            }
            Notice::Route(route) if self.state == State::Resuming => {
                // The player was found and handed off at once, and the new owner's route came first.
                self.search.keep_early(route);
            }
            Notice::Route(route) => self.lives_in(now_ms, route, out),
            Notice::Left { tick, epoch, properties } => {
                self.left(now_ms, tick, (epoch, &properties), out);
            }
            Notice::Present { region, owner, epoch } => {
                self.asked_to_present((region, owner), epoch, out);
            }
            Notice::Bonds { epoch, bonds } if !self.is_old(epoch) => self.memory.take_bonds(bonds),
            Notice::Bonds { .. } => {}
            Notice::Resumed(found) => self.resumed(now_ms, *found, out),
            Notice::Nowhere { asked } => self.nowhere(asked),
            Notice::Replaced => {
                self.lose_player("the client has come back by another connection", out);
            }
            Notice::Stays { id, .. } if self.state == State::Claiming => {
                self.resume_instead(now_ms, id);
            }
            Notice::Stays { epoch, until, ms, .. } if !self.is_old(epoch) => {
                self.stays(now_ms, (until, ms), out);
            }
            Notice::Stays { .. } => {}
            Notice::OtherSubject => self.is_of_other_subject(now_ms, out),
            Notice::Refused(why) => self.join_refused(now_ms, Problem::Region(why), out),
            Notice::Kicked => {
                self.dismiss(now_ms, End::Kicked, "the game has ended the session", out);
            }
        }
    }

    /// The player lives in a region.
    fn lives_in(&mut self, now_ms: u64, route: RouteNotice, out: &mut Vec<PlayerEffect>) {
        let RouteNotice { scene, region, epoch, last_applied, tick, plane, .. } = route;
        let RouteNotice { pos, facing, own, arrived, unconfirmed, .. } = route;
        let before = self.link.epoch();
        if !self.reroute(now_ms, (region, epoch), last_applied) {
            return;
        }
        self.tell_unconfirmed(unconfirmed, out);
        self.tick = self.tick.max(tick);
        let anew = before.is_some_and(|before| before.is_of_a_life_before(epoch));
        if anew {
            // What the client was told no longer counts. A region that has just added the player does not
            // resync the client by itself.
            if arrived { self.slow_client.arrived() } else { self.slow_client.expect(now_ms) }
        }
        self.memory.route((scene, plane, pos, facing), last_applied, (tick, own.as_deref()));
        // If both regions of the teleport have died, only this session can tell the client that it
        // has arrived.
        let arrived = arrived || (anew && self.memory.has_landed(scene, last_applied));
        let joining = self.state == State::Joining;
        if joining {
            self.state = State::InWorld;
        }
        if !joining && !arrived {
            return;
        }
        self.memory.landed();
        let teleported = self.line_places.take_teleport(last_applied);
        if self.state != State::Disconnected {
            self.line_places.occupy((scene, plane), teleported, out);
        }
        if matches!(self.state, State::InWorld | State::Leaving) {
            let (sight, ack) = (self.sight, last_applied);
            let joined = Reply::Joined { scene, plane, pos, facing, tick, sight, own, ack };
            out.push(PlayerEffect::Reply(joined));
        }
    }

    /// The client is told once which of its inputs a region had applied that has died.
    pub(super) fn tell_unconfirmed(
        &mut self,
        range: Option<(Seq, Seq)>,
        out: &mut Vec<PlayerEffect>,
    ) {
        if matches!(self.state, State::InWorld | State::Leaving)
            && let Some((first, last)) = range.and_then(|range| self.inputs.take_unconfirmed(range))
        {
            out.push(PlayerEffect::Reply(Reply::Unconfirmed { first, last }));
        }
    }

    /// Adopts a route; false when the route is late.
    fn reroute(
        &mut self,
        now_ms: u64,
        (region, epoch): (RegionId, Epoch),
        last_applied: Seq,
    ) -> bool {
        let is_over = matches!(
            self.state,
            State::Connected | State::Greeted | State::Claiming | State::Resuming | State::Closed
        );
        let Some(Route { epoch: known, .. }) = self.link.route().filter(|_| !is_over) else {
            return false;
        };
        let waits = self.memory.is_presented();
        let is_old = known.is_some_and(|known| epoch < known || (epoch == known && waits));
        if is_old || self.memory.has_outlived(region, epoch) {
            return false;
        }
        self.acknowledge(now_ms, last_applied);
        if known.is_none_or(|known| epoch > known) {
            self.link.reroute(Route::new(region, Some(epoch)));
            self.inputs.reroute(now_ms, last_applied);
            self.slow_client.rerouted();
            self.memory.note_answer();
            if last_applied < self.memory.acked() {
                // The region knows less than was acknowledged, and waits for inputs that are not kept any
                // more.
                self.memory.present();
            }
        }
        true
    }

    /// Whether news under this epoch come from a former owner of the player.
    fn is_old(&self, epoch: Epoch) -> bool {
        let old = |r: Route| {
            r.epoch.is_some_and(|known| epoch < known) || self.memory.has_outlived(r.region, epoch)
        };
        self.link.route().is_some_and(old)
    }

    fn left(
        &mut self,
        now_ms: u64,
        tick: Tick,
        (epoch, properties): (Epoch, &Properties),
        out: &mut Vec<PlayerEffect>,
    ) {
        if self.is_old(epoch) {
            return;
        }
        if !properties.is_empty() {
            self.memory.begin_with(properties);
        }
        match self.state {
            State::Connected
            | State::Greeted
            | State::Claiming
            | State::Resuming
            | State::Closed => {}
            State::Joining | State::InWorld | State::Leaving => {
                out.push(PlayerEffect::Reply(Reply::Left { tick }));
                self.close(now_ms, End::Normal, "left", out);
                self.finish(out);
            }
            State::Disconnected | State::Parting => self.finish(out),
        }
    }

    fn join_refused(&mut self, now_ms: u64, problem: Problem, out: &mut Vec<PlayerEffect>) {
        // Once the entity lives in a region, a refusal has no meaning.
        if !self.link.is_entering() {
            return;
        }
        match self.state {
            State::Joining => {
                self.state = State::Greeted;
                self.deadline_ms = now_ms.saturating_add(self.config.handshake_ms);
                self.link.enter_refused();
                self.line_places.leave(out);
                refuse(problem, None, out);
            }
            State::Leaving => {
                self.close(now_ms, End::Normal, "left", out);
                self.finish(out);
            }
            State::Parting => self.finish(out),
            State::Connected
            | State::Greeted
            | State::Claiming
            | State::Resuming
            | State::InWorld
            | State::Disconnected
            | State::Closed => {}
        }
    }

    /// The region has a new owner, which continues from a checkpoint under this epoch.
    pub(super) fn owner_is_new(&mut self, region: RegionId, owner: Epoch) {
        if self.state == State::Resuming && !mutants::has(Mutant::OwnerPassedOver) {
            return self.search.note_owner(region, owner);
        }
        let here = self.link.route().is_some_and(|route| route.region == region);
        if here && self.memory.outlives(region, owner) {
            self.link.owner_changed();
            self.memory.present();
        }
    }

    /// A region continues from a checkpoint in which the entity lives.
    fn asked_to_present(
        &mut self,
        (region, owner): (RegionId, Epoch),
        epoch: Epoch,
        out: &mut Vec<PlayerEffect>,
    ) {
        if let Some(Route { region: before, epoch: Some(known), .. }) = self.link.route()
            && epoch > known
        {
            // The entity was handed off there, and the session does not know of that.
            self.link.found(Route::new(region, Some(epoch)));
            if before != region && self.memory.is_presented() {
                tracing::info!(player = %self.id, %before, %region, %epoch, %known, "a player was presented to a region that it had left");
                let claim = Claim { id: self.id, epoch, region };
                let (session, subject) = (self.session, self.subject);
                let elsewhere = Input::Elsewhere { claim, session, subject };
                out.push(PlayerEffect::ToRegion(before, elsewhere));
            }
        }
        self.owner_is_new(region, owner);
    }

    /// Another session has the player.
    pub(super) fn lose_player(&mut self, why: &str, out: &mut Vec<PlayerEffect>) {
        if self.client_is_here() {
            out.push(PlayerEffect::Close(End::Replaced, why.into()));
        }
        self.finish(out);
    }
}

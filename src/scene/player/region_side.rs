//! What regions tell a session, and what it has to tell them.

use super::{Answer, End, Place, Player, PlayerEffect, Problem, Route, State, refuse};
use crate::scene::messages::{Claim, FrameBatch, Input, Notice, SessionFrame};
use crate::scene::mutants::{self, Mutant};
use crate::scene::{Epoch, RegionId, Seq, Tick};

impl Player {
    pub(super) fn frame(
        &mut self,
        now_ms: u64,
        batch: &FrameBatch,
        index: usize,
        queued: usize,
        out: &mut Vec<PlayerEffect>,
    ) {
        let Some(part) = batch.sessions.get(index).filter(|s| s.session == self.session) else {
            return;
        };
        self.blocked = false;
        self.tick = self.tick.max(batch.tick);
        self.flow.heard(now_ms);
        if self
            .route
            .and_then(|r| r.epoch)
            .is_some_and(|epoch| part.epoch.is_of_a_life_before(epoch))
        {
            // Whoever goes on with the player tells the client everything anew.
            return;
        }
        // An owner that is none any more may go on for a while: what it applies after the player was
        // presented elsewhere was never applied.
        let known = self.route.and_then(|r| r.epoch);
        let late = known.is_none_or(|epoch| part.epoch < epoch || self.known.is_presented());
        if !matches!(self.state, State::InWorld | State::Absent | State::Leaving) || late {
            if self.state == State::Resuming {
                self.overheard = self.overheard.max(Some(part.epoch));
            }
            return self.flow.lost();
        }
        // What its first owner told anew goes before what the next one has said meanwhile, which was not passed on.
        if self.overheard.take_if(|heard| part.epoch >= *heard).is_some() && !part.resync {
            self.flow.lost();
        }
        for refused in batch.refused_of(part) {
            self.known.refused(refused.seq);
        }
        self.acknowledged(now_ms, part.ack);
        self.known.own(batch.tick, batch.own_of(part));
        for refused in batch.refused_of(part) {
            if let Some((_, (scene, plane))) = self.leap.take_if(|(seq, _)| *seq == refused.seq) {
                out.push(PlayerEffect::GiveBack(scene, plane));
            }
        }
        if self.state == State::Absent {
            // It was made before the region had heard, or the region has not.
            let again = self.config.resend_ms;
            self.leave_sent_ms.take_if(|sent| now_ms.saturating_sub(*sent) >= again);
        } else if self.flow.admit(now_ms, queued, part.resync) {
            self.show(batch, part);
            out.push(PlayerEffect::Forward);
        }
    }

    /// Keeps the list of whom the client is shown.
    fn show(&mut self, batch: &FrameBatch, part: &SessionFrame) {
        if part.resync {
            self.shown.clear();
        }
        for id in batch.leaves_of(part) {
            if let Ok(at) = self.shown.binary_search(id) {
                self.shown.remove(at);
            }
        }
        for &entering in batch.refs_of(part)[0] {
            let id = batch.entering[entering as usize].id;
            if let Err(at) = self.shown.binary_search(&id) {
                self.shown.insert(at, id);
            }
        }
    }

    pub(super) fn notice(&mut self, now_ms: u64, notice: Notice, out: &mut Vec<PlayerEffect>) {
        self.blocked = false;
        if self.state == State::Resuming
            && let Notice::Route { epoch, .. } = notice
        {
            // It was found where it was, and handed on at once: that news came by a shorter way.
            if self.early.as_ref().is_none_or(|(known, _)| *known < epoch) {
                self.early = Some((epoch, Box::new(notice)));
            }
            return;
        }
        match notice {
            Notice::Route {
                scene,
                region,
                epoch,
                last_applied,
                tick,
                plane,
                pos,
                own,
                arrived,
            } => {
                let before = self.route.and_then(|r| r.epoch);
                if !self.reroute(now_ms, Route { region, epoch: Some(epoch) }, epoch, last_applied)
                {
                    return;
                }
                self.tick = self.tick.max(tick);
                let anew = before.is_some_and(|before| before.is_of_a_life_before(epoch));
                if anew {
                    // What the client was told counts no more. Whom the region has just added it does not
                    // tell so by itself.
                    if arrived { self.flow.lost() } else { self.flow.expect(now_ms) }
                }
                self.known.route((scene, plane, pos), last_applied, (tick, own.as_deref()));
                // Both regions may have died between which it has jumped: nobody else tells its client so.
                let arrived = arrived || (anew && self.known.has_landed(scene, last_applied));
                let joining = self.state == State::Joining;
                if joining {
                    self.state = State::InWorld;
                }
                if joining || arrived {
                    self.known.landed();
                    let leapt =
                        self.leap.take_if(|(seq, _)| *seq <= last_applied).map(|(_, place)| place);
                    if self.state != State::Absent {
                        self.occupy((scene, plane), leapt, out);
                    }
                    let range = self.range;
                    if matches!(self.state, State::InWorld | State::Leaving) {
                        let ack = last_applied;
                        let joined = Answer::Joined { scene, plane, pos, tick, range, own, ack };
                        out.push(PlayerEffect::Answer(joined));
                    }
                }
            }
            Notice::Left { tick, epoch } => self.left(now_ms, tick, epoch, out),
            Notice::Present { region, owner, epoch } => {
                self.asked_to_present((region, owner), epoch, out);
            }
            Notice::Resumed(found) => self.resumed(now_ms, *found, out),
            Notice::Nowhere { asked } => self.nowhere(asked),
            Notice::Replaced => self.replaced(out),
            Notice::Refused(why) => self.join_refused(now_ms, Problem::Region(why), out),
        }
    }

    /// Adopts a route; false when it is old news.
    fn reroute(&mut self, now_ms: u64, route: Route, epoch: Epoch, last_applied: Seq) -> bool {
        let known = match (self.state, self.route) {
            (State::Connected | State::Greeted | State::Resuming | State::Closed, _)
            | (_, None) => {
                return false;
            }
            (_, Some(known)) => known.epoch,
        };
        let waits = self.known.is_presented();
        let is_old = known.is_some_and(|known| epoch < known || (epoch == known && waits));
        if is_old || self.known.has_outlived(route.region, epoch) {
            return false;
        }
        self.acknowledged(now_ms, last_applied);
        if known.is_none_or(|known| epoch > known) {
            self.entering = None;
            self.route = Some(route);
            if !mutants::has(Mutant::SaysOnce) {
                self.next_send = Seq(last_applied.0.saturating_add(1));
            }
            self.progress_ms = now_ms;
            self.leave_sent_ms = None;
            self.flow.rerouted();
            self.known.heard();
            if last_applied < self.known.acked() {
                // It knows of less than was acknowledged, and waits for what is not kept any more.
                self.known.present();
            }
        }
        true
    }

    /// Keeps exactly one place: the one where the entity is now.
    pub(super) fn occupy(&mut self, now: Place, leapt: Option<Place>, out: &mut Vec<PlayerEffect>) {
        let mut held = false;
        for place in self.place.take().into_iter().chain(leapt) {
            if place == now && !held {
                held = true;
            } else {
                out.push(PlayerEffect::GiveBack(place.0, place.1));
            }
        }
        if !held {
            out.push(PlayerEffect::Take(now.0, now.1));
        }
        self.place = Some(now);
    }

    fn left(&mut self, now_ms: u64, tick: Tick, epoch: Epoch, out: &mut Vec<PlayerEffect>) {
        let old = |r: Route| {
            r.epoch.is_some_and(|known| epoch < known) || self.known.has_outlived(r.region, epoch)
        };
        if self.route.is_some_and(old) {
            // Of an owner that is none any more.
            return;
        }
        match self.state {
            State::Connected | State::Greeted | State::Resuming | State::Closed => {}
            State::Joining | State::InWorld | State::Leaving => {
                out.push(PlayerEffect::Answer(Answer::Left { tick }));
                self.close(now_ms, End::Normal, "left", out);
                self.finish(out);
            }
            State::Absent | State::Parting => self.finish(out),
        }
    }

    fn join_refused(&mut self, now_ms: u64, problem: Problem, out: &mut Vec<PlayerEffect>) {
        // Once the entity lives somewhere a refusal is about nothing any more.
        if self.entering.is_none() {
            return;
        }
        match self.state {
            State::Joining => {
                self.state = State::Greeted;
                self.deadline_ms = now_ms.saturating_add(self.config.handshake_ms);
                self.route = None;
                self.entering = None;
                if let Some((scene, plane)) = self.place.take() {
                    out.push(PlayerEffect::GiveBack(scene, plane));
                }
                refuse(problem, None, out);
            }
            State::Leaving => {
                self.close(now_ms, End::Normal, "left", out);
                self.finish(out);
            }
            State::Parting => self.finish(out),
            State::Connected
            | State::Greeted
            | State::Resuming
            | State::InWorld
            | State::Absent
            | State::Closed => {}
        }
    }

    fn acknowledged(&mut self, now_ms: u64, upto: Seq) {
        let waiting = self.unacknowledged.len();
        while self.unacknowledged.front().is_some_and(|(seq, _)| *seq <= upto) {
            if let Some((seq, order)) = self.unacknowledged.pop_front() {
                self.known.applied(seq, &order);
            }
        }
        self.known.acknowledged(upto);
        if self.unacknowledged.len() < waiting {
            self.progress_ms = now_ms;
        }
        if self.unacknowledged.is_empty() {
            // A burst's memory is not kept through a long session.
            self.unacknowledged.shrink_to(8);
        }
        self.next_send = self.next_send.max(Seq(upto.0.saturating_add(1)));
        // What a client's earlier session had under way counts, too.
        if upto > self.last_seq {
            self.earlier = (self.last_seq.next(), upto.next());
            self.last_seq = upto;
        }
    }

    pub(super) fn resend_if_stalled(&mut self, now_ms: u64) {
        let waits = now_ms.saturating_sub(self.progress_ms) < self.config.resend_ms;
        if waits || mutants::has(Mutant::SaysOnce) {
            return;
        }
        if let Some((oldest, _)) = self.unacknowledged.front() {
            self.next_send = *oldest;
            self.progress_ms = now_ms;
        }
    }

    /// The region has another owner, from whom on its epoch is this.
    pub(super) fn owner_is_new(&mut self, region: RegionId, owner: Epoch) {
        if self.state == State::Resuming && !mutants::has(Mutant::OwnerPassedOver) {
            return self.search.note_owner(region, owner);
        }
        let here = self.route.is_some_and(|route| route.region == region);
        if here && self.known.outlives(region, owner) {
            self.enter_sent = false;
            self.leave_sent_ms = None;
            self.known.present();
        }
    }

    /// A region goes on from a checkpoint in which the entity lives.
    fn asked_to_present(
        &mut self,
        (region, owner): (RegionId, Epoch),
        epoch: Epoch,
        out: &mut Vec<PlayerEffect>,
    ) {
        let known = self.route.and_then(|route| Some((route.region, route.epoch?)));
        if let Some((before, known)) = known.filter(|(_, known)| epoch > *known) {
            // It was handed there, which this session has not heard.
            self.route = Some(Route { region, epoch: Some(epoch) });
            if before != region && self.known.is_presented() {
                tracing::info!(player = %self.id, %before, %region, %epoch, %known, "a player was presented where it has gone on from");
                let claim = Claim { id: self.id, epoch, region };
                out.push(PlayerEffect::ToRegion(before, Input::Elsewhere(claim)));
            }
        }
        self.owner_is_new(region, owner);
    }

    pub(super) fn present_again_if_unheard(&mut self, now_ms: u64) {
        self.known.present_again(now_ms, self.config.resend_ms);
    }

    pub(super) fn undelivered(&mut self, input: &Input) {
        self.blocked = true;
        match input {
            Input::Enter(_) => self.enter_sent = false,
            Input::Client { seq, .. } => self.next_send = self.next_send.min(*seq),
            Input::Leave(_) | Input::Absent { .. } => self.leave_sent_ms = None,
            Input::Present(_) => self.known.present(),
            other => self.flow.undelivered(other),
        }
    }

    /// Sends the region everything that it has not been sent yet.
    pub(super) fn settle(&mut self, now_ms: u64, out: &mut Vec<PlayerEffect>) {
        if self.state == State::Resuming {
            return self.search(now_ms, out);
        }
        let Some(Route { region, epoch }) = self.route else { return };
        if self.blocked {
            return;
        }
        let playing = matches!(self.state, State::InWorld | State::Absent | State::Leaving);
        if let Some(epoch) = epoch.filter(|_| playing && self.known.is_to_present(now_ms)) {
            let (who, to) = ((self.id, self.session, self.since_ms), (region, epoch));
            let presented = self.known.presented(who, to, self.range, self.tick);
            out.push(PlayerEffect::ToRegion(region, Input::Present(Box::new(presented))));
        }
        if playing && self.known.is_presented() {
            return;
        }
        let mut tell = |input| out.push(PlayerEffect::ToRegion(region, input));
        match self.state {
            State::Connected | State::Greeted | State::Resuming | State::Closed => return,
            State::Joining => {
                if let Some(spawn) = self.entering.as_ref().filter(|_| !self.enter_sent) {
                    self.enter_sent = true;
                    tell(Input::Enter(spawn.clone()));
                }
                return;
            }
            State::InWorld | State::Leaving => {
                self.flow.settle(now_ms, self.id, &mut tell);
                let sent = self.unacknowledged.partition_point(|(seq, _)| *seq < self.next_send);
                for (seq, order) in self.unacknowledged.range(sent..) {
                    self.next_send = Seq(seq.0.saturating_add(1));
                    tell(Input::Client { id: self.id, seq: *seq, order: order.clone() });
                }
                if self.state == State::InWorld {
                    return;
                }
            }
            State::Absent if self.leave_sent_ms.is_some() => return,
            State::Absent => return self.tell_absent(now_ms, out),
            State::Parting => {}
        }
        let again = self.config.resend_ms;
        if self.leave_sent_ms.is_none_or(|sent| now_ms.saturating_sub(sent) >= again) {
            self.leave_sent_ms = Some(now_ms);
            tell(Input::Leave(self.id));
        }
    }
}

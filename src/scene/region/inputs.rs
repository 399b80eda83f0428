//! What inputs do: some at once, most in the next tick.
//!
//! The actor calls [`Region::handle`]. An input for an entity that has moved on follows the entity, or is sent again by its
//! session; it is never applied to a ghost.

use super::Region;
use super::actions::PendingAction;
use super::entities::Bound;
use super::views::Viewer;
use crate::scene::messages::{
    CommandError, InputRefused, LeaveCause, LogicEvent, Refusal, Spawn, Speaker,
};
use crate::scene::messages::{Departed, Destination, Effect, EntityAction, Input, Order};
use crate::scene::mutants::{self, Mutant};
use crate::scene::{EntityId, Kind, Plane, Seq, SessionId, Tick, TickStamp, prefetch};

/// Refused inputs of which a client is not told yet; more of its inputs wait until it is.
const MAX_REFUSED: usize = 256;

impl Region {
    /// Takes an input. Most wait for the next tick; ghosts may close the present one, and messages
    /// of the view negotiation are answered at once while the tick is closed.
    pub fn handle(&mut self, input: Input, fx: &mut Vec<Effect>) {
        if !self.is_plausible(&input) {
            return;
        }
        let Some(input) = self.hold_early(input) else { return };
        match input {
            Input::Border(batch) => {
                self.fence(batch.from, batch.lineage);
                let here = self.identity.id();
                self.counts.fenced += u64::from(self.border.keep(*batch, here, fx));
                self.evaluate_when_complete(fx);
            }
            Input::BorderLost(neighbour) => self.border.lost(neighbour),
            Input::BorderRound(batch) if self.is_late(batch.from, batch.epoch) => {}
            Input::BorderRound(batch) => self.take_round(*batch, fx),
            Input::View(msg) => {
                self.views.enqueue(msg);
                if self.clock.is_closed() {
                    self.read_view_queue(fx);
                }
            }
            Input::Handoff(handoff) if self.is_late(handoff.from, handoff.from_epoch) => {}
            Input::Handoff(handoff) => self.receive(*handoff, fx),
            Input::Elsewhere { claim, session, subject } => {
                self.take_elsewhere(claim, (session, subject));
            }
            Input::Recovered(news) => self.answer_recovered(&news, fx),
            Input::Claims(claims) => self.take_claims(*claims, fx),
            Input::Map(news) => self.take_layout_news(*news, fx),
            Input::Scene(order) => self.take_scene_order(order, fx),
            other => self.queue(other, fx),
        }
        self.resume_displaced(fx);
    }

    /// Keeps an input for the next tick.
    fn queue(&mut self, input: Input, fx: &mut Vec<Effect>) {
        let command = match &input {
            Input::Command(sent) => Some(sent.id),
            _ => None,
        };
        if !self.inbox.accept(input) {
            if let Some(id) = command {
                self.answer_command(id, Err(CommandError::Busy), fx);
            }
            self.counts.inputs_refused += 1;
            let refused = self.counts.inputs_refused;
            crate::log_limited!(at self.log_ms(); warn, region = %self.identity.id(), refused, "too many inputs wait for the next tick");
        }
    }

    /// Applies the inputs that have waited for this tick.
    pub(super) fn apply_inputs(&mut self, fx: &mut Vec<Effect>) {
        let mut queued = self.inbox.take();
        let mut inputs = queued.drain(..);
        while let Some(input) = inputs.next() {
            if let Some(later) = inputs.as_slice().get(prefetch::INPUTS) {
                self.entities.fetch(self.slot_by_handle(later), later.entity());
            }
            let id = input.entity();
            let slot = self.slot_by_handle(&input);
            let slot = slot.or_else(|| id.and_then(|id| self.entities.real_slot(id)));
            // An input for an entity that is not installed yet waits with the entity.
            match id {
                Some(id) if self.waits(id, slot, &input) => self.inbox.push(input),
                _ => self.apply(input, slot, fx),
            }
        }
        drop(inputs);
        self.inbox.reuse(queued);
        self.ask_about_unknown(fx);
    }

    /// The slot of the player of a client's input, where the input's handle is right.
    #[inline]
    fn slot_by_handle(&self, input: &Input) -> Option<u32> {
        match *input {
            Input::Client { id, handle, .. } => self.views.slot_of(handle, id, &self.entities),
            _ => None,
        }
    }

    /// Applies an input. `slot`: of the entity that it is for, if that lives here.
    fn apply(&mut self, input: Input, slot: Option<u32>, fx: &mut Vec<Effect>) {
        match input {
            Input::Enter(spawn) => self.inbox.announce(*spawn),
            // An input for an entity that has moved on is sent again by its session, which is told the new owner.
            Input::Client { session, seq, order, .. } => {
                if let Some(slot) = slot.filter(|slot| self.is_of_session(*slot, session)) {
                    self.apply_client(slot, seq, order, fx);
                }
            }
            Input::Leave(_) => match slot {
                Some(slot) => self.remove_real(slot, LeaveCause::Left, fx),
                None => self.cancel_arrival(input, fx),
            },
            Input::Bonds { id, ref bonds } => match slot {
                Some(slot) => self.set_bonds(slot, bonds.clone(), fx),
                None => self.forward(id, input, fx),
            },
            Input::Tell { id, ref payload } => match slot {
                Some(slot) => self.tell_player(slot, payload.clone()),
                None => self.forward(id, input, fx),
            },
            Input::Group(message) => self.tell_group(*message),
            Input::Hold { id, .. } => {
                let first_missed = self.clock.next_frame();
                self.with_viewer(slot, input, fx, |v| v.hold(first_missed));
                self.tell_missed_actions_to(id);
            }
            Input::Release { .. } => self.with_viewer(slot, input, fx, |v| v.held = false),
            Input::Resync { id, session, told, question } => match slot {
                Some(slot) if self.is_of_session(slot, session) => {
                    self.resync(slot, (told, question), fx);
                }
                Some(_) => {}
                None => self.forward(id, input, fx),
            },
            Input::Present(presented) => self.present(*presented, fx),
            Input::Kicked { session, .. } => match slot {
                Some(slot) if self.is_of_session(slot, session) => {
                    self.remove_real(slot, LeaveCause::Left, fx);
                }
                Some(_) => {}
                None => self.cancel_arrival(input, fx),
            },
            Input::Disconnected { .. } => self.disconnect(input, fx),
            Input::Command(sent) => self.take_command_of_logic(*sent, fx),
            Input::Locate(locate) => self.take_locate(locate, fx),
            Input::CommandResult(ended) => self.take_result(ended),
            Input::Resume(resume) => self.resume(resume, fx),
            Input::Border(_)
            | Input::Elsewhere { .. }
            | Input::Recovered(_)
            | Input::Claims(_)
            | Input::BorderLost(_)
            | Input::BorderRound(_)
            | Input::View(_)
            | Input::Handoff(_)
            | Input::Map(_)
            | Input::Scene(_) => {
                // `handle` takes these at once; they never wait in the inbox.
            }
        }
    }

    /// Whether an input waits with its entity, which is not installed yet or is between two scenes.
    fn waits(&self, id: EntityId, slot: Option<u32>, input: &Input) -> bool {
        match slot {
            Some(slot) => {
                let orders = matches!(input, Input::Client { .. } | Input::Resume(_));
                orders && self.entities.record(slot).plane == Plane::LIMBO
            }
            None if self.custody.is_incoming(id) => true,
            None if self.is_unclaimed(id) => {
                matches!(input, Input::Bonds { .. } | Input::Tell { .. })
            }
            None if matches!(
                input,
                Input::Leave(_) | Input::Kicked { .. } | Input::Disconnected { ms: 0, .. }
            ) =>
            {
                false
            }
            None => self.inbox.is_announced(id),
        }
    }

    /// An entity that leaves before it was added never was here; one that has moved on is followed.
    /// A session cancels only its own player.
    pub(super) fn cancel_arrival(&mut self, leave: Input, fx: &mut Vec<Effect>) {
        let (Some(id), session) = (leave.entity(), leave.session()) else { return };
        match self.inbox.cancel(id, session) {
            Some(spawn) => {
                let Spawn { id, kind, plane, pos, properties, session, bonds, .. } = spawn;
                let (tick, epoch) = (self.clock.tick(), self.identity.lineage().of_birth());
                if kind == Kind::PLAYER {
                    let (as_of, bonds) = (tick, bonds.named);
                    let departed =
                        Departed { id, session, tick, epoch, as_of, plane, pos, properties, bonds };
                    self.depart(departed, fx);
                }
            }
            None if self.inbox.is_announced(id) => {}
            None if self.is_unclaimed(id) => {
                let stays = matches!(leave, Input::Disconnected { .. })
                    && self.disconnect_unclaimed(id, session);
                if !stays && !self.asks_before_it_leaves(id, session, fx) {
                    self.forget_unclaimed(id, session, fx);
                }
            }
            None => self.forward(id, leave, fx),
        }
    }

    /// Changes the viewer of the session that has sent the input, if it still has the player.
    fn with_viewer(
        &mut self,
        slot: Option<u32>,
        input: Input,
        fx: &mut Vec<Effect>,
        change: impl Fn(&mut Viewer),
    ) {
        let (Some(id), session) = (input.entity(), input.session()) else { return };
        match slot {
            Some(slot) => {
                let viewer = self.views.of_mut(&self.entities, slot);
                if let Some(viewer) = viewer.filter(|viewer| viewer.session == session) {
                    change(viewer);
                }
            }
            None => self.forward(id, input, fx),
        }
    }

    /// A client's frames after that of tick `told` were lost; 0: that tick is not known.
    fn resync(&mut self, slot: u32, (told, question): (Tick, u32), fx: &mut Vec<Effect>) {
        self.tell_bonds(slot, fx);
        let id = self.entities.body(slot).id;
        let viewer = self.views.of_mut(&self.entities, slot);
        if viewer.is_some_and(|viewer| viewer.miss_frames(told, question)) {
            self.tell_missed_actions_to(id);
        }
    }

    /// Whether the player at `slot` is a session's. What another session says of it is dropped:
    /// that session was replaced, or its process speaks for players of others.
    pub(super) fn is_of_session(&mut self, slot: u32, session: SessionId) -> bool {
        let viewer = self.views.of(&self.entities, slot);
        let is_its = viewer.is_some_and(|viewer| viewer.session == Some(session));
        self.counts.fenced += u64::from(!is_its);
        is_its
    }

    /// Sends an input after an entity that has moved to another region.
    pub(super) fn forward(&mut self, id: EntityId, input: Input, fx: &mut Vec<Effect>) {
        if let Some(owner) = self.whereabouts(id).filter(|_| self.may_pass_on()) {
            fx.push(Effect::Forward(owner, Box::new(input)));
        }
    }

    fn apply_client(&mut self, slot: u32, seq: Seq, order: Order, fx: &mut Vec<Effect>) {
        // One out of order waits to be sent again.
        let viewer = self.entities.body(slot).viewer;
        match self.views.get_mut(viewer) {
            Some(v) if v.refused.len() >= MAX_REFUSED => return,
            Some(v) if seq == v.last_applied => return,
            Some(v) if seq == v.last_applied.next() || mutants::has(Mutant::AnyNumber) => {
                v.last_applied = seq;
            }
            _ => return,
        }
        if mutants::has(Mutant::AckUnapplied) && seq.0.is_multiple_of(16) {
            return;
        }
        let done = match order {
            Order::Move(_) if self.identity.scene().judged.is_some() => Err(Refusal::WrongForm),
            Order::Walk(ref command) => self.take_command(slot, seq, command),
            order => self.execute(slot, order, Speaker::Client, fx),
        };
        if let Err(why) = done
            && let Some(viewer) = self.views.of_mut(&self.entities, slot)
        {
            viewer.refused.push(InputRefused { seq, why });
        }
    }

    pub(super) fn execute(
        &mut self,
        slot: u32,
        order: Order,
        by: Speaker,
        fx: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        match order {
            Order::Move(pos) if !self.identity.scene().contains(pos) => Err(Refusal::OutOfBounds),
            Order::Move(pos) => {
                self.place_at(slot, pos);
                Ok(())
            }
            Order::Act(content) => self.act(slot, content, by),
            Order::Face(facing) => self.face(slot, facing, by),
            Order::Set(property) => self.set_property(slot, property, by),
            Order::Walk(_) | Order::Travel(_) => Err(Refusal::WrongForm),
            Order::Teleport(to) => {
                let (tick, tick_ms) = (self.clock.tick(), self.identity.scene().tick_ms);
                let viewer = self.views.of_mut(&self.entities, slot);
                let viewer = viewer.filter(|_| by == Speaker::Client);
                match viewer.is_none_or(|viewer| viewer.pace.teleport(tick, tick_ms)) {
                    true => self.teleport(slot, to, fx),
                    false => Err(Refusal::TooOften),
                }
            }
        }
    }

    pub(super) fn teleport(
        &mut self,
        slot: u32,
        to: Destination,
        fx: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        let elsewhere = to.scene != self.identity.scene().id;
        let legal = self.identity.scene().contains(to.pos);
        let is_content = self.entities.body(slot).id.content().is_some();
        if to.plane == Plane::LIMBO || (!elsewhere && !legal) || (elsewhere && is_content) {
            return Err(Refusal::OutOfBounds);
        }
        let owner = if elsewhere { to.region } else { self.identity.owner_of(to.plane, to.pos) };
        // Between two scenes an entity is nowhere.
        let plane = if elsewhere { Plane::LIMBO } else { to.plane };
        self.entities.set_plane(slot, plane);
        if elsewhere {
            // The other scene judges it from there on.
            self.entities.drop_trajectory(slot);
            self.entities.set_pos(slot, to.pos);
        } else {
            self.place_at(slot, to.pos);
        }
        if !elsewhere {
            self.mark_put_down(slot, to.pos);
        }
        self.entities.set_changed(slot, TickStamp::of(self.clock.tick()));
        let Some(real) = self.entities.real_mut(slot) else { return Ok(()) };
        real.restate = true;
        real.bound_for =
            (owner != self.identity.id()).then_some(Bound { region: owner, plane: to.plane });
        if real.bound_for.is_none() {
            self.logic.note(LogicEvent::Arrived { id: self.entities.body(slot).id });
            self.notice_route(slot, true, fx);
        }
        Ok(())
    }

    /// An entity has acted; all its viewers are told.
    pub(super) fn note_action(&mut self, slot: u32, content: EntityAction, here: bool, of: Tick) {
        let id = self.entities.set_acted(slot, TickStamp::of(self.clock.tick()));
        if here && self.logic.is_there() {
            let EntityAction { payload, aim, by } = content.clone();
            self.logic.note(LogicEvent::Acted { id, by, payload, aim });
        }
        self.actions.note(PendingAction { slot, id, content, here, of, only: None });
    }
}

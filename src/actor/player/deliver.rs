//! What regions say to the session: frames, notices, and that a region has a new owner.
//!
//! Messages of regions in several processes may arrive in the wrong order: the reorder buffer
//! corrects that before the machine receives them.

use actix::{Context, Handler};

use super::PlayerActor;
use super::reorder::ReorderBuffer;
use crate::actor::address::{Beside, Delivery};
use crate::clock;
use crate::scene::mutants::{self, Mutant};
use crate::scene::player::PlayerInput;

impl Handler<Delivery> for PlayerActor {
    type Result = ();

    fn handle(&mut self, msg: Delivery, ctx: &mut Context<Self>) {
        let Some(reorder) = &mut self.reorder else { return self.deliver(msg, ctx) };
        let mut due = std::mem::take(&mut self.due);
        reorder.take(clock::now, msg, &mut due);
        self.deliver_due(due, ctx);
    }
}

impl PlayerActor {
    /// What has waited for too long for its turn has its turn.
    pub(super) fn deliver_overdue(&mut self, ctx: &mut Context<Self>) {
        if let Some(reorder) = self.reorder.as_mut().filter(|reorder| reorder.is_waiting()) {
            let mut due = Vec::new();
            reorder.poll(clock::now(), &mut due);
            self.deliver_due(due, ctx);
        }
    }

    fn deliver_due(&mut self, mut due: Vec<Delivery>, ctx: &mut Context<Self>) {
        if self.reorder.as_mut().is_some_and(ReorderBuffer::has_given_up) {
            self.handle(PlayerInput::Lost, None, ctx);
        }
        due.drain(..).for_each(|delivery| self.deliver(delivery, ctx));
        self.due = due;
    }

    fn deliver(&mut self, msg: Delivery, ctx: &mut Context<Self>) {
        match msg {
            Delivery::Frame(encoded, index) => {
                let beside = match mutants::has(Mutant::GapShown) {
                    true => Beside::Before,
                    false => self.lost.beside(encoded.batch().tick),
                };
                if beside != Beside::Before {
                    self.handle(PlayerInput::Lost, None, ctx);
                }
                let index = index as usize;
                let queued = self.sink.queued();
                let input = PlayerInput::Frame { batch: encoded.batch(), index, queued };
                self.handle(input, Some((&encoded, index)), ctx);
                if beside == Beside::Among {
                    self.handle(PlayerInput::Lost, None, ctx);
                }
            }
            Delivery::Notice(notice) => self.handle(PlayerInput::Notice(notice), None, ctx),
            Delivery::Owner(region, epoch) => {
                self.handle(PlayerInput::Owner(region, epoch), None, ctx);
            }
        }
    }
}

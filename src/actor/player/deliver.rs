//! What regions say to the session: frames, notices, and that a region has a new owner.
//!
//! Messages of regions in several processes may arrive in the wrong order: the reorder buffer
//! corrects that before the machine receives them.

use super::Session;
use super::reorder::ReorderBuffer;
use crate::actor::address::{Delivery, GapPosition};
use crate::clock;
use crate::scene::Tick;
use crate::scene::mutants::{self, Mutant};
use crate::scene::player::PlayerInput;

impl Session {
    /// Takes what a region says.
    pub(super) fn take_delivery(&mut self, msg: Delivery) {
        let Some(reorder) = &mut self.reorder else { return self.deliver(msg) };
        let mut due = std::mem::take(&mut self.due);
        reorder.take(clock::now, msg, &mut due);
        self.deliver_due(due);
    }

    /// What has waited for too long for its turn has its turn.
    pub(super) fn deliver_overdue(&mut self) {
        if let Some(reorder) = self.reorder.as_mut().filter(|reorder| reorder.is_waiting()) {
            let mut due = Vec::new();
            reorder.poll(clock::now(), &mut due);
            self.deliver_due(due);
        }
    }

    fn deliver_due(&mut self, mut due: Vec<Delivery>) {
        if self.reorder.as_mut().is_some_and(ReorderBuffer::has_given_up) {
            self.handle(PlayerInput::Lost, None);
        }
        due.drain(..).for_each(|delivery| self.deliver(delivery));
        self.due = due;
    }

    fn deliver(&mut self, msg: Delivery) {
        match msg {
            Delivery::Frame(encoded, index) => {
                let position = match mutants::has(Mutant::GapShown) {
                    true => GapPosition::Before,
                    false => self.gap_position(encoded.batch().tick),
                };
                if position != GapPosition::Before {
                    self.handle(PlayerInput::Lost, None);
                }
                let index = index as usize;
                let queued = self.sink.queued();
                let input = PlayerInput::Frame { batch: encoded.batch(), index, queued };
                self.handle(input, Some((&encoded, index)));
                if position == GapPosition::Among {
                    self.handle(PlayerInput::Lost, None);
                }
            }
            Delivery::Notice(notice) => self.handle(PlayerInput::Notice(notice), None),
            Delivery::Owner(region, epoch) => {
                self.handle(PlayerInput::Owner(region, epoch), None);
            }
        }
    }

    /// How a frame of this tick stands to those that found no room.
    fn gap_position(&self, tick: Tick) -> GapPosition {
        self.address().map_or(GapPosition::Before, |to| to.gap_position(tick))
    }
}

//! Border rounds: the part of a tick in which neighbours negotiate views across their borders, in rounds,
//! before any of them makes frames of the tick.
//!
//! In a round each region sends each neighbour one batch with what its players have to say to
//! theirs (often nothing), waits for the batches of that round from all of them, and lets its
//! players handle them. When a round in which it said nothing brought nothing from any neighbour,
//! it is done, makes its frames, and says so; neighbours that go on do not wait for it any more.
//! What is said later than that is handled at once and shown in the next tick.
//!
//! So what two clients on the two sides of a border are shown in a tick is the outcome over the same
//! positions, save for chains longer than [`MAX_ROUNDS`] or that reach beyond the neighbours.

use super::ViewEngine;
use crate::scene::messages::{BorderRoundBatch, Effect};
use crate::scene::region::Region;
use crate::scene::region::clock::Phase;
use crate::scene::region::entities::EntityStore;

/// Rounds after which a tick is done even if there is more to say, which is then shown a tick later.
pub const MAX_ROUNDS: u32 = 24;

impl Region {
    /// Begins the border rounds of the tick whose views have just been evaluated.
    pub(in crate::scene::region) fn begin_rounds(&mut self, fx: &mut Vec<Effect>) {
        self.border.begin_rounds(self.clock.tick());
        self.clock.begin_border_rounds();
        self.send_round(fx);
        self.go_on_with_rounds(fx);
    }

    /// Takes a neighbour's batch of a round.
    pub(in crate::scene::region) fn take_round(
        &mut self,
        batch: BorderRoundBatch,
        fx: &mut Vec<Effect>,
    ) {
        self.border.note_round(&batch);
        self.views.enqueue_thresholds(batch.thresholds);
        for msg in batch.view_messages {
            self.views.enqueue(msg);
        }
        match self.clock.phase() {
            Phase::Open => {}
            Phase::BorderRounds => self.go_on_with_rounds(fx),
            Phase::Closed => self.read_view_queue(fx),
        }
    }

    /// Goes through all rounds for which everything has come.
    fn go_on_with_rounds(&mut self, fx: &mut Vec<Effect>) {
        while self.clock.phase() == Phase::BorderRounds {
            let tick = self.clock.tick();
            if !self.border.has_round(tick) {
                return;
            }
            let quiet = self.border.was_quiet(tick);
            self.handle_view_queue(fx);
            if self.border.round() == 0 {
                self.end_predictions(fx);
            }
            let last = self.border.round() + 1 >= MAX_ROUNDS;
            if last || (quiet && !self.views.has_outgoing()) {
                return self.finish_tick(fx);
            }
            self.border.next_round();
            self.send_round(fx);
        }
    }

    fn send_round(&mut self, fx: &mut Vec<Effect>) {
        let spoke = self.views.has_outgoing();
        let quiet = !self.send_batches(false, fx) && !spoke;
        self.border.set_quiet(quiet);
    }

    /// Tells the neighbours that this region makes its frames now.
    pub(in crate::scene::region) fn send_done(&mut self, fx: &mut Vec<Effect>) {
        self.send_batches(true, fx);
    }

    /// Sends every neighbour its part; says whether any player has, or may have, more room than before.
    fn send_batches(&mut self, done: bool, fx: &mut Vec<Effect>) -> bool {
        let (from, epoch) = (self.identity.id(), self.identity.epoch());
        let (tick, round) = (self.clock.tick(), self.border.round());
        // What was predicted in vain shows when the first round is over: then there may be more to say.
        let may_err = round == 0 && !done && self.views.has_predicted();
        let empty = |_: &_| BorderRoundBatch {
            from,
            epoch,
            tick,
            round,
            done,
            view_messages: Vec::new(),
            thresholds: Vec::new(),
            recovers: may_err,
        };
        let neighbours = self.border.neighbour_ids();
        let mut batches: Vec<_> = neighbours.iter().map(empty).collect();
        for (to, msg) in self.take_outgoing() {
            match neighbours.iter().position(|id| *id == to) {
                Some(i) => batches[i].view_messages.push(msg),
                None => fx.push(Effect::View(to, msg)),
            }
        }
        let bits = self.border.mirror_bits();
        let recovers = self.views.tell_thresholds(&mut self.entities, &bits, &mut batches);
        let batches = neighbours.into_iter().zip(batches);
        fx.extend(batches.map(|(to, batch)| Effect::BorderRound(to, Box::new(batch))));
        recovers || may_err
    }
}

impl ViewEngine {
    /// Puts changed thresholds of mirrored players into the batches. `bits` has for each batch's neighbour the bit that
    /// says whether it mirrors a player.
    fn tell_thresholds(
        &self,
        entities: &mut EntityStore,
        bits: &[Option<u32>],
        batches: &mut [BorderRoundBatch],
    ) -> bool {
        let mut any = false;
        for viewer in &self.viewers {
            let (id, threshold) =
                (entities.body(viewer.slot).id, entities.body(viewer.slot).threshold);
            let Some(real) = entities.real_mut(viewer.slot) else { continue };
            if real.mirrors == 0 || real.threshold_told == threshold {
                continue;
            }
            let recovers = threshold > real.threshold_told;
            any |= recovers;
            real.threshold_told = threshold;
            for (bit, batch) in bits.iter().zip(batches.iter_mut()) {
                if bit.is_some_and(|bit| real.mirrors >> bit & 1 == 1) {
                    batch.thresholds.push((id, threshold));
                    batch.recovers |= recovers;
                }
            }
        }
        any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::region::fixtures;
    use crate::scene::{EntityId, Pos, RegionId, SceneSpec, Tick};

    /// A region with neighbours on three sides, and a player near the western one.
    fn region() -> Region {
        let mut region = fixtures::region(SceneSpec::default(), 1);
        fixtures::enter(&mut region, 7, Pos::ground(102_500, 20_000));
        region.tick(Tick(1), &mut Vec::new());
        region
    }

    /// The regions that receive a new threshold of the player.
    fn told(region: &mut Region) -> Vec<RegionId> {
        let slot = region.entities.slot(EntityId(7)).unwrap();
        region.entities.set_threshold(slot, 4_711);
        let mut fx = Vec::new();
        region.send_done(&mut fx);
        let to = |effect| match effect {
            Effect::BorderRound(to, batch) if !batch.thresholds.is_empty() => Some(to),
            _ => None,
        };
        fx.into_iter().filter_map(to).collect()
    }

    #[test]
    fn thresholds_are_told_to_who_mirrors_a_player_in_whatever_order_neighbours_are_kept() {
        assert_eq!(told(&mut region()), [RegionId(0)]);
        let mut turned = region();
        turned.border.reverse();
        assert_eq!(told(&mut turned), [RegionId(0)]);
    }
}

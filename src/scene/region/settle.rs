//! Settling: the part of a tick in which neighbours negotiate views across their borders, in rounds,
//! before any of them makes frames of the tick.
//!
//! In a round each region sends each neighbour one batch with what its players have to say to theirs
//! (often nothing), waits for the batches of that round from all of them, and lets its players hear
//! them. When a round in which it said nothing brought nothing from anybody, it is done, makes its
//! frames, and says so; whoever goes on does not wait for it any more. What is said later than that
//! is heard at once and shown in the next tick.
//!
//! So what two clients on the two sides of a border are shown in a tick is the outcome over the same
//! positions, save for chains longer than [`MAX_ROUNDS`] or that reach beyond the neighbours.

use serde::{Deserialize, Serialize};

use super::bodies::Role;
use super::{Phase, Region};
use crate::scene::border::SettleBatch;
use crate::scene::effects::Effect;
use crate::scene::{RegionId, Tick};

/// Rounds after which a tick is done even if there is more to say, which is then shown a tick later.
pub const MAX_ROUNDS: u32 = 24;

/// How far a neighbour has come with settling.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Progress {
    tick: Tick,
    /// Rounds whose batches have come.
    rounds: u32,
    /// A bit for each of these that was empty.
    quiet: u32,
    done: bool,
    /// Whether this tick's settling counts on it.
    takes_part: bool,
}

impl Progress {
    fn note(&mut self, batch: &SettleBatch) {
        if batch.tick < self.tick {
            return;
        }
        if batch.tick > self.tick {
            let takes_part = self.takes_part;
            *self = Progress { tick: batch.tick, takes_part, ..Progress::default() };
        }
        if batch.done {
            self.done = true;
        } else if batch.round < 32 {
            self.rounds = self.rounds.max(batch.round + 1);
            let quiet = batch.letters.is_empty() && !batch.rises;
            self.quiet |= u32::from(quiet) << batch.round;
        }
    }

    fn has_come(&self, tick: Tick, round: u32) -> bool {
        self.tick > tick || (self.tick == tick && (self.done || self.rounds > round))
    }

    fn was_quiet(&self, tick: Tick, round: u32) -> bool {
        self.tick > tick || (self.done && self.rounds <= round) || self.quiet >> round & 1 == 1
    }
}

impl Region {
    /// Begins to settle the tick whose views have just been evaluated.
    pub(super) fn begin_settling(&mut self, fx: &mut Vec<Effect>) {
        let tick = self.tick;
        for n in &mut self.inbound.neighbours {
            // One that has gone past this tick, or is silent, will not settle it.
            n.progress.takes_part = n.settles(tick);
        }
        self.phase = Phase::Settling;
        self.round = 0;
        self.send_round(fx);
        self.settle_on(fx);
    }

    /// Takes a neighbour's batch.
    pub(super) fn settle(&mut self, batch: SettleBatch, fx: &mut Vec<Effect>) {
        if let Some(n) = self.inbound.neighbours.iter_mut().find(|n| n.id == batch.from) {
            n.progress.note(&batch);
            n.supersede_thrs(batch.tick, &batch.thrs);
        }
        self.counts.letters_lost += self.mail.post_thrs(batch.thrs);
        for letter in batch.letters {
            self.counts.letters_lost += self.mail.post(letter);
        }
        match self.phase {
            Phase::Open => {}
            Phase::Settling => self.settle_on(fx),
            Phase::Closed => self.read_mail(fx),
        }
    }

    /// Goes through all rounds for which everything has come.
    fn settle_on(&mut self, fx: &mut Vec<Effect>) {
        while self.phase == Phase::Settling {
            let (tick, round) = (self.tick, self.round);
            let mut others = self.inbound.neighbours.iter().filter(|n| n.progress.takes_part);
            if !others.clone().all(|n| n.progress.has_come(tick, round)) {
                return;
            }
            let quiet = self.said_nothing && others.all(|n| n.progress.was_quiet(tick, round));
            self.hear_mail(fx);
            if round + 1 >= MAX_ROUNDS || (quiet && !self.mail.has_letters()) {
                return self.finish(fx);
            }
            self.round += 1;
            self.send_round(fx);
        }
    }

    fn send_round(&mut self, fx: &mut Vec<Effect>) {
        let spoke = self.mail.has_letters();
        self.said_nothing = !self.send_letters(false, fx) && !spoke;
    }

    /// Tells the neighbours that this region makes its frames now.
    pub(super) fn send_done(&mut self, fx: &mut Vec<Effect>) {
        self.send_letters(true, fx);
    }

    /// Sends every neighbour its part; tells whether anybody has more room than before.
    fn send_letters(&mut self, done: bool, fx: &mut Vec<Effect>) -> bool {
        let (from, epoch, tick, round) = (self.id, self.epoch, self.tick, self.round);
        let empty = |_: &_| SettleBatch {
            from,
            epoch,
            tick,
            round,
            done,
            letters: Vec::new(),
            thrs: Vec::new(),
            rises: false,
        };
        let mut batches: Vec<_> = self.inbound.neighbours.iter().map(empty).collect();
        for (to, msg) in self.take_letters() {
            match self.inbound.neighbours.iter().position(|n| n.id == to) {
                Some(i) => batches[i].letters.push(msg),
                None => fx.push(Effect::View(to, msg)),
            }
        }
        let rises = self.tell_thrs(&mut batches);
        let ids: Vec<RegionId> = self.inbound.neighbours.iter().map(|n| n.id).collect();
        let batches = ids.into_iter().zip(batches);
        fx.extend(batches.map(|(to, batch)| Effect::Settle(to, Box::new(batch))));
        rises
    }

    /// Puts changed thresholds of mirrored players into the batches, which are in the order of the neighbours that
    /// are heard; the bits of who mirrors a player are in that of those who are told.
    fn tell_thrs(&mut self, batches: &mut [SettleBatch]) -> bool {
        let mut any = false;
        let bits: Vec<_> =
            self.inbound.neighbours.iter().map(|n| self.outbound.bit_of(n.id)).collect();
        for viewer in &self.viewers {
            let body = &self.bodies.hot[viewer.slot as usize];
            let Role::Real(real) = &mut self.bodies.cold[viewer.slot as usize].role else {
                continue;
            };
            if real.mirrors == 0 || real.thr_told == body.thr {
                continue;
            }
            let rises = body.thr > real.thr_told;
            any |= rises;
            real.thr_told = body.thr;
            for (bit, batch) in bits.iter().zip(batches.iter_mut()) {
                if bit.is_some_and(|bit| real.mirrors >> bit & 1 == 1) {
                    batch.thrs.push((body.id, body.thr));
                    batch.rises |= rises;
                }
            }
        }
        any
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;

    use super::*;
    use crate::scene::effects::{Input, Spawn};
    use crate::scene::{
        EntityId, Kind, Plane, Pos, RangeSet, Scene, SceneId, SceneSpec, SessionId,
    };

    /// A region with neighbours on three sides, and a player near the western one.
    fn region() -> Region {
        let scene = Scene::new(SceneId(0), SceneSpec::default(), 100, RegionId(0)).unwrap();
        let mut region = Region::new(Arc::new(scene), RegionId(1)).unwrap();
        let spawn = Spawn {
            id: EntityId(7),
            kind: Kind::PLAYER,
            plane: Plane(0),
            pos: Pos::ground(102_500, 20_000),
            range: RangeSet::FULL,
            look: Bytes::new(),
            session: Some(SessionId(1)),
            bonds: Vec::new(),
        };
        region.handle(Input::Enter(Box::new(spawn)), &mut Vec::new());
        region.tick(Tick(1), &mut Vec::new());
        region
    }

    /// To whom a new threshold of the player is told.
    fn told(region: &mut Region) -> Vec<RegionId> {
        let slot = region.bodies.slot(EntityId(7)).unwrap();
        region.bodies.set_thr(&region.rules, slot, 4_711);
        let mut fx = Vec::new();
        region.send_done(&mut fx);
        let to = |effect| match effect {
            Effect::Settle(to, batch) if !batch.thrs.is_empty() => Some(to),
            _ => None,
        };
        fx.into_iter().filter_map(to).collect()
    }

    #[test]
    fn thresholds_are_told_to_who_mirrors_a_player_in_whatever_order_neighbours_are_kept() {
        assert_eq!(told(&mut region()), [RegionId(0)]);
        let mut turned = region();
        turned.inbound.neighbours.reverse();
        assert_eq!(told(&mut turned), [RegionId(0)]);
    }
}

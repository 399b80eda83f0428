//! How far the neighbours have come with the border rounds of a tick.
//!
//! `views::border_rounds` drives the rounds; this file only keeps count.

use serde::{Deserialize, Serialize};

use super::BorderLinks;
use crate::scene::messages::BorderRoundBatch;
use crate::scene::{RegionId, Tick};

/// How far a neighbour has come with the border rounds.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Progress {
    tick: Tick,
    /// Rounds whose batches have come.
    rounds: u32,
    /// A bit for each of these that was empty.
    quiet: u32,
    done: bool,
    /// Whether this tick's border rounds wait for it.
    takes_part: bool,
}

impl Progress {
    pub(super) fn note(&mut self, batch: &BorderRoundBatch) {
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
            let quiet = batch.view_messages.is_empty() && !batch.recovers;
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

/// The round under way.
#[derive(Debug)]
pub(super) struct Round {
    number: u32,
    /// This region had nothing to say in it.
    quiet: bool,
}

impl Default for Round {
    fn default() -> Round {
        Round { number: 0, quiet: true }
    }
}

impl BorderLinks {
    /// Begins the rounds of a tick: neighbours that have gone past the tick, or are silent, take no part.
    pub fn begin_rounds(&mut self, tick: Tick) {
        for n in &mut self.inbound.neighbours {
            n.progress.takes_part = n.has_rounds(tick);
        }
        self.round.number = 0;
    }

    /// Takes note of a neighbour's batch.
    pub fn note_round(&mut self, batch: &BorderRoundBatch) {
        if let Some(n) = self.inbound.neighbours.iter_mut().find(|n| n.id == batch.from) {
            n.progress.note(batch);
            n.supersede_thresholds(batch.tick, &batch.thresholds);
        }
    }

    /// The number of the round.
    pub fn round(&self) -> u32 {
        self.round.number
    }

    /// The next round begins.
    pub fn next_round(&mut self) {
        self.round.number += 1;
    }

    /// Whether this region has said nothing in the round.
    pub fn set_quiet(&mut self, quiet: bool) {
        self.round.quiet = quiet;
    }

    /// Whether the round's batches have come from all neighbours that take part.
    pub fn has_round(&self, tick: Tick) -> bool {
        let round = self.round.number;
        self.taking_part().all(|progress| progress.has_come(tick, round))
    }

    /// Whether no region has said anything in the round, of which all batches have come.
    pub fn was_quiet(&self, tick: Tick) -> bool {
        let round = self.round.number;
        self.round.quiet && self.taking_part().all(|progress| progress.was_quiet(tick, round))
    }

    fn taking_part(&self) -> impl Iterator<Item = &Progress> {
        self.inbound.neighbours.iter().map(|n| &n.progress).filter(|progress| progress.takes_part)
    }

    /// The neighbours that are not silent.
    pub fn neighbour_ids(&self) -> Vec<RegionId> {
        self.inbound.neighbours.iter().map(|n| n.id).collect()
    }

    /// For each neighbour that is not silent, in their order: which bit says that it mirrors an
    /// entity.
    pub fn mirror_bits(&self) -> Vec<Option<u32>> {
        self.inbound.neighbours.iter().map(|n| self.outbound.bit_of(n.id)).collect()
    }

    /// Turns the order of the neighbours around, which must change nothing.
    #[cfg(test)]
    pub fn reverse(&mut self) {
        self.inbound.neighbours.reverse();
    }
}

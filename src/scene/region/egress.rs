//! The byte budget of a client: two token buckets. One is for moves alone, and gets half of the budget; all
//! else draws on the other one, and moves on what is left of it. So nothing that is told starves moves.
//!
//! The frame builder charges every frame in full. Enters, leaves and the client's own movement always go and may
//! leave a debt. Actions and properties go while the debt is small: then actions are not told, and properties
//! wait. Sizes are those of the client protocol.

use crate::scene::TickStamp;
use crate::scene::messages::{FrameBatch, SessionFrame};
use crate::scene::pieces::{self, array, bin, uint};

/// The budget of a scene's clients, bytes per tick.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    bytes_per_tick: u32,
}

/// What a client may still be sent.
#[derive(Debug, Clone, Copy, Default)]
pub struct Allowance {
    /// Bytes for all but moves; negative: a debt.
    left: i64,
    /// Bytes for moves, never negative.
    moves: i64,
    filled: Option<TickStamp>,
}

/// Longest debt, in ticks of the budget: a client that enters a crowd must see it move some day.
const DEBT_TICKS: i64 = 100;

/// The part of the budget that is kept for moves: one in so many.
const MOVES_PART: u32 = 2;

/// Debt up to which actions and properties are told, in ticks of the budget that is not kept for moves.
const SPOKEN_TICKS: i64 = 10;

impl Budget {
    /// Bytes per tick that are kept for moves.
    fn of_moves(&self) -> i64 {
        i64::from(self.bytes_per_tick / MOVES_PART)
    }

    /// Bytes per tick of all else.
    fn of_others(&self) -> i64 {
        i64::from(self.bytes_per_tick) - self.of_moves()
    }

    /// Bytes of actions and properties that a client may be told now.
    pub fn room(&self, allowance: &Allowance) -> usize {
        usize::try_from(allowance.left + SPOKEN_TICKS * self.of_others()).unwrap_or(0)
    }

    /// A budget of so many bits per second; `None`: no limit.
    pub fn of(bits_s: u32, tick_ms: u32) -> Option<Budget> {
        let bytes = u64::from(bits_s) * u64::from(tick_ms) / 8_000;
        (bits_s > 0).then_some(Budget { bytes_per_tick: bytes.clamp(1, 1 << 30) as u32 })
    }

    /// Fills a client's allowance up to `tick`. What a client does not use in a tick is lost after the next
    /// one.
    pub fn fill(&self, allowance: &mut Allowance, tick: TickStamp) {
        let ticks = allowance.filled.map_or(1, |filled| tick.ticks_since(filled).min(1 << 16));
        let (ticks, per_tick) = (i64::from(ticks), self.of_others());
        let left = allowance.left.max(-DEBT_TICKS * per_tick) + per_tick * ticks;
        allowance.left = left.min(2 * per_tick);
        // While all else is in debt there is room for a long move, however small the share.
        let most = 2 * i64::from(self.bytes_per_tick) - allowance.left.max(0);
        allowance.moves = (allowance.moves + self.of_moves() * ticks).min(most);
        allowance.filled = Some(tick);
    }
}

impl Allowance {
    /// Charges bytes that go anyway.
    pub fn charge(&mut self, bytes: usize) {
        self.left -= bytes as i64;
    }

    /// Whether there is something left.
    pub fn is_open(&self) -> bool {
        self.left > 0
    }

    /// Charges bytes of a move, if they are left.
    pub fn take(&mut self, bytes: usize) -> bool {
        let bytes = bytes as i64;
        let fits = self.moves + self.left.max(0) >= bytes;
        if fits {
            let kept = self.moves.min(bytes);
            self.moves -= kept;
            self.left -= bytes - kept;
        }
        fits
    }
}

/// Most bytes of a client's own movement: a path of 64 steps and eight grants.
const OWN_BYTES: usize = 250;

/// Bytes of a frame without its moves, trajectories, turns and crowd; its lists are counted as they are in `frame`. The
/// client's own movement counts as much as it may at most.
pub fn fixed_len(batch: &FrameBatch, frame: &SessionFrame) -> usize {
    let [enters, .., acts, properties, _] = batch.refs_of(frame);
    let [counts @ .., _] = frame.counts();
    let written = pieces::len(|out| {
        [batch.tick.0, frame.ack.0.into(), frame.epoch.0].into_iter().for_each(|n| uint(out, n));
        let heads = counts.into_iter().chain([frame.leaves, frame.told, frame.refused]);
        heads.for_each(|count| array(out, count as usize));
        enters.iter().for_each(|i| pieces::entering(out, &batch.entering[*i as usize]));
        batch.leaves_of(frame).iter().for_each(|id| uint(out, id.0));
        acts.iter().for_each(|i| pieces::acting(out, &batch.acting[*i as usize]));
        properties.iter().for_each(|i| pieces::property(out, &batch.properties[*i as usize]));
        batch.told_of(frame).iter().for_each(|told| bin(out, &told.payload));
        batch.refused_of(frame).iter().for_each(|refused| uint(out, refused.seq.0.into()));
    });
    // Heads and kinds of messages; heads and codes of refusals; the frame's head and flags, and the crowd's place, empty.
    let others = 2 * frame.told as usize + 4 * frame.refused as usize + 4 + 1;
    written + others + if frame.own == 0 { 1 } else { OWN_BYTES }
}

/// How urgent a move is under a budget: farther entities wait longer. A move twice as far away must be twice
/// as urgent.
pub fn weighted(urgency: u64, distance2: u64) -> u64 {
    // As if 8 m farther, so that the nearest do not starve each other.
    let distance_cm = distance2.isqrt() + 800;
    urgency * (1 << 24) / distance_cm
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::Tick;

    #[test]
    fn what_is_not_used_is_lost_and_a_debt_is_paid_back() {
        let budget = Budget::of(8_000, 100).unwrap();
        let (mut client, tick) = (Allowance::default(), |t| TickStamp::of(Tick(t)));
        budget.fill(&mut client, tick(1));
        assert!(client.take(100) && !client.take(1) && !client.is_open());
        budget.fill(&mut client, tick(9));
        assert!(client.take(200) && !client.take(1));
        client.charge(250);
        budget.fill(&mut client, tick(11));
        assert!(!client.is_open() && budget.room(&client) == 350);
        assert!(client.take(100) && !client.take(1), "half is kept for moves");
        budget.fill(&mut client, tick(12));
        assert!(client.take(50) && !client.take(1));
        client.charge(1_000_000);
        assert_eq!(budget.room(&client), 0);
        budget.fill(&mut client, tick(200));
        assert!(client.is_open(), "a debt of ten seconds at most");
        assert!(Budget::of(0, 100).is_none());
    }

    #[test]
    fn a_farther_move_goes_first_only_when_it_is_more_urgent() {
        let near = weighted(300, 0);
        assert!(near > weighted(500, 800 * 800));
        assert!(near < weighted(700, 800 * 800));
    }
}

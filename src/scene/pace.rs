//! How often, and at which length, a client may make its player do what others are told: act, turn,
//! set properties, teleport.
//!
//! The session's limit counts all messages; this one keeps a client from spending all of them on what
//! costs others most. A client that was cut off for a while sends then what it could not send: being
//! late is no offence, so each limit has a burst of [`BURST_MS`].

use serde::{Deserialize, Serialize};

use crate::scene::Tick;
use crate::scene::spec::PaceSpec;

/// Most turns of a client in a second.
pub const TURNS_PER_S: u32 = 30;

/// Most properties that a client sets in a second.
pub const SETS_PER_S: u32 = 10;

/// Most teleports of a client in a second: each may bring all its viewers an enter and a leave.
pub const TELEPORTS_PER_S: u32 = 10;

/// A client that has rested may do at once what it might have done in this time, milliseconds.
pub const BURST_MS: u64 = 10_000;

/// When a client will have done so much as its rate allows, microseconds by the scene's clock: a virtual
/// scheduling algorithm (ITU-T I.371).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Spent(u64);

impl Spent {
    /// Counts so much, unless it is too much. What is refused costs nothing.
    fn take(&mut self, now: ServerUs, amount: u64, per_s: u32) -> bool {
        let cost = amount.saturating_mul(1_000_000).checked_div(per_s.into()).unwrap_or(u64::MAX);
        let after = self.0.max(now).saturating_add(cost);
        let fits = after <= now.saturating_add(BURST_MS * 1_000);
        if fits {
            self.0 = after;
        }
        fits
    }
}

/// Microseconds by the scene's clock.
type ServerUs = u64;

/// What a client has done lately. It goes with the player from region to region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Pace {
    turns: Spent,
    sets: Spent,
    teleports: Spent,
    acts: Spent,
    /// Bytes of its actions and of the properties that it has set.
    bytes: Spent,
}

fn at(now: Tick, tick_ms: u32) -> ServerUs {
    now.0.saturating_mul(tick_ms.into()).saturating_mul(1_000)
}

impl Pace {
    /// Counts a turn; false when there were too many.
    pub fn turn(&mut self, now: Tick, tick_ms: u32) -> bool {
        self.turns.take(at(now, tick_ms), 1, TURNS_PER_S)
    }

    /// Counts a property that is set to so many bytes; false when there were too many.
    pub fn set(&mut self, now: Tick, tick_ms: u32, most: &PaceSpec, bytes: usize) -> bool {
        let (now, mut after) = (at(now, tick_ms), *self);
        let fits = after.sets.take(now, 1, SETS_PER_S)
            && after.bytes.take(now, bytes as u64, most.bytes_per_s);
        self.keep(after, fits)
    }

    /// Counts an action of so many bytes; false when there were too many.
    pub fn act(&mut self, now: Tick, tick_ms: u32, most: &PaceSpec, bytes: usize) -> bool {
        let (now, mut after) = (at(now, tick_ms), *self);
        let fits = after.acts.take(now, 1, most.acts_per_s)
            && after.bytes.take(now, bytes as u64, most.bytes_per_s);
        self.keep(after, fits)
    }

    /// What one limit refuses costs nothing at the other.
    fn keep(&mut self, after: Pace, fits: bool) -> bool {
        if fits {
            *self = after;
        }
        fits
    }

    /// Counts a teleport; false when there were too many.
    pub fn teleport(&mut self, now: Tick, tick_ms: u32) -> bool {
        self.teleports.take(at(now, tick_ms), 1, TELEPORTS_PER_S)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: PaceSpec = PaceSpec { acts_per_s: 3, bytes_per_s: 1_100 };
    const TICK_MS: u32 = 100;

    /// How many of so many attempts in a tick are taken.
    fn taken(times: u64, mut attempt: impl FnMut() -> bool) -> u64 {
        (0..times).filter(|_| attempt()).count() as u64
    }

    #[test]
    fn what_a_client_could_not_send_for_ten_seconds_is_taken_at_once_and_no_more() {
        let mut pace = Pace::default();
        let now = Tick(1_000);
        assert_eq!(taken(400, || pace.turn(now, TICK_MS)), 300);
        assert_eq!(taken(200, || pace.set(now, TICK_MS, &MOST, 1)), 100);
        assert_eq!(taken(200, || pace.teleport(now, TICK_MS)), 100);
        assert_eq!(taken(200, || pace.act(now, TICK_MS, &MOST, 1)), 30);
        // A second later there is room for a second's.
        let now = Tick(1_010);
        assert_eq!(taken(400, || pace.turn(now, TICK_MS)), 30);
        assert_eq!(taken(200, || pace.set(now, TICK_MS, &MOST, 1)), 10);
        assert_eq!(taken(200, || pace.act(now, TICK_MS, &MOST, 1)), 3);
    }

    #[test]
    fn a_steady_client_at_the_rate_is_never_refused() {
        let mut pace = Pace::default();
        for tick in 0..10_000 {
            assert_eq!(taken(3, || pace.turn(Tick(tick), TICK_MS)), 3);
            assert!(pace.set(Tick(tick), TICK_MS, &MOST, 10));
            assert!(tick % 4 > 0 || pace.act(Tick(tick), TICK_MS, &MOST, 100));
        }
    }

    #[test]
    fn actions_and_properties_share_their_bytes() {
        let mut pace = Pace::default();
        let now = Tick(500);
        assert_eq!(taken(20, || pace.act(now, TICK_MS, &MOST, 1_000)), 11);
        // These cost nothing, so that the next one is taken.
        assert_eq!(taken(200, || pace.set(now, TICK_MS, &MOST, 1)), 0);
        assert!(
            pace.set(Tick(501), TICK_MS, &MOST, 110) && !pace.act(Tick(501), TICK_MS, &MOST, 1)
        );
    }
}

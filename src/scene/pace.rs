//! How often, and at which length, a client may make its player do what others are told: act, turn,
//! set properties, teleport.
//!
//! The session's limit counts all messages; this one keeps a client from spending all of them on what
//! costs others most. A client whose region was silent for a while repeats what it has said since:
//! actions, bytes and teleports are counted over [`PERIOD_S`] seconds, so that this is not refused.

use serde::{Deserialize, Serialize};

use crate::scene::Tick;
use crate::scene::spec::PaceSpec;

/// Most turns of a client in a second.
pub const TURNS_PER_S: u8 = 30;

/// Most properties that a client sets in a second.
pub const SETS_PER_S: u8 = 10;

/// Teleports of a client, per second on average over [`PERIOD_S`]: each may bring all its viewers an
/// enter and a leave.
pub const TELEPORTS_PER_S: u32 = 10;

/// The seconds over which actions, bytes and teleports are counted.
pub const PERIOD_S: u32 = 3;

/// What a client has done in the second and in the period under way. It goes with the player from
/// region to region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Pace {
    /// The second, by the scene's clock.
    second: u64,
    turns: u8,
    sets: u8,
    /// The period, by the scene's clock.
    period: u64,
    teleports: u32,
    acts: u32,
    /// Bytes of its actions and of the properties that it has set.
    bytes: u32,
}

impl Pace {
    fn begin(&mut self, now: Tick, tick_ms: u32) {
        let second = now.0.saturating_mul(tick_ms.into()) / 1_000;
        if second != self.second {
            (self.second, self.turns, self.sets) = (second, 0, 0);
        }
        let period = second / u64::from(PERIOD_S);
        if period != self.period {
            (self.period, self.teleports, self.acts, self.bytes) = (period, 0, 0, 0);
        }
    }

    /// Counts a turn; false when there were too many.
    pub fn turn(&mut self, now: Tick, tick_ms: u32) -> bool {
        self.begin(now, tick_ms);
        self.turns = self.turns.saturating_add(1);
        self.turns <= TURNS_PER_S
    }

    /// Counts a property that is set to so many bytes; false when there were too many.
    pub fn set(&mut self, now: Tick, tick_ms: u32, most: &PaceSpec, bytes: usize) -> bool {
        self.begin(now, tick_ms);
        self.sets = self.sets.saturating_add(1);
        self.sets <= SETS_PER_S && self.has_room(most, bytes)
    }

    /// Counts an action of so many bytes; false when there were too many.
    pub fn act(&mut self, now: Tick, tick_ms: u32, most: &PaceSpec, bytes: usize) -> bool {
        self.begin(now, tick_ms);
        self.acts = self.acts.saturating_add(1);
        self.acts <= most.acts_per_s.saturating_mul(PERIOD_S) && self.has_room(most, bytes)
    }

    /// Counts a teleport; false when there were too many.
    pub fn teleport(&mut self, now: Tick, tick_ms: u32) -> bool {
        self.begin(now, tick_ms);
        self.teleports = self.teleports.saturating_add(1);
        self.teleports <= TELEPORTS_PER_S * PERIOD_S
    }

    /// Counts bytes, unless there were too many. What is refused costs others nothing.
    fn has_room(&mut self, most: &PaceSpec, bytes: usize) -> bool {
        let after = u32::try_from(bytes).unwrap_or(u32::MAX).saturating_add(self.bytes);
        let fits = after <= most.bytes_per_s.saturating_mul(PERIOD_S);
        if fits {
            self.bytes = after;
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: PaceSpec = PaceSpec { acts_per_s: 3, bytes_per_s: 1_100 };

    #[test]
    fn actions_are_limited_by_number_and_with_properties_by_length() {
        let mut pace = Pace::default();
        // Three periods that begin at the seconds 3, 6 and 9, with room for 9 actions and 3300 bytes.
        assert!((0..9).all(|_| pace.act(Tick(30), 100, &MOST, 1)));
        assert!(!pace.act(Tick(59), 100, &MOST, 1));
        assert!(pace.act(Tick(60), 100, &MOST, 3_200) && !pace.act(Tick(60), 100, &MOST, 101));
        assert!(pace.set(Tick(61), 100, &MOST, 90) && !pace.set(Tick(89), 100, &MOST, 11));
        assert!(pace.act(Tick(89), 100, &MOST, 10) && !pace.act(Tick(89), 100, &MOST, 1));
        let teleports = (0..40).filter(|_| pace.teleport(Tick(90), 100)).count();
        assert_eq!(teleports, 30);
    }

    #[test]
    fn each_second_has_its_turns_and_its_sets() {
        let mut pace = Pace::default();
        let sets = |pace: &mut Pace, tick| {
            (0..12).filter(|_| pace.set(Tick(tick), 100, &MOST, 20)).count()
        };
        assert_eq!([sets(&mut pace, 20), sets(&mut pace, 29), sets(&mut pace, 30)], [10, 0, 10]);
        let turns = (0..40).filter(|_| pace.turn(Tick(39), 100)).count();
        assert_eq!(turns, 30);
        assert!(!pace.set(Tick(39), 100, &MOST, 20));
    }
}

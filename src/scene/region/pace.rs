//! How often a client may turn its player and set its properties.
//!
//! Both are inputs that every viewer is told of. The session's limit counts all messages; this one
//! keeps a client from spending all of them on what costs others most.

use crate::scene::Tick;

/// Most turns of a client in a second.
pub const TURNS_PER_S: u8 = 30;

/// Most properties that a client sets in a second.
pub const SETS_PER_S: u8 = 10;

/// What a client has done in the second under way.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pace {
    /// The second, by the scene's clock.
    second: u64,
    turns: u8,
    sets: u8,
}

impl Pace {
    fn begin(&mut self, now: Tick, tick_ms: u32) {
        let second = now.0.saturating_mul(tick_ms.into()) / 1_000;
        if second != self.second {
            *self = Pace { second, ..Pace::default() };
        }
    }

    /// Counts a turn; false when there were too many.
    pub fn turn(&mut self, now: Tick, tick_ms: u32) -> bool {
        self.begin(now, tick_ms);
        self.turns = self.turns.saturating_add(1);
        self.turns <= TURNS_PER_S
    }

    /// Counts a property that is set; false when there were too many.
    pub fn set(&mut self, now: Tick, tick_ms: u32) -> bool {
        self.begin(now, tick_ms);
        self.sets = self.sets.saturating_add(1);
        self.sets <= SETS_PER_S
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_has_its_turns_and_its_sets() {
        let mut pace = Pace::default();
        let sets = |pace: &mut Pace, tick| (0..12).filter(|_| pace.set(Tick(tick), 100)).count();
        assert_eq!([sets(&mut pace, 20), sets(&mut pace, 29), sets(&mut pace, 30)], [10, 0, 10]);
        let turns = (0..40).filter(|_| pace.turn(Tick(39), 100)).count();
        assert_eq!(turns, 30);
        assert!(!pace.set(Tick(39), 100));
    }
}

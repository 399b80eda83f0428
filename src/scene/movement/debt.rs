//! A debt that only time pays: the rate limiter behind movement.
//!
//! [`Mover`](super::Mover) keeps one debt for claimed walking time and one for inexact starts. Idle
//! time must never become credit, or a client could stand still and then jump ahead.

use serde::{Deserialize, Serialize};

use super::ServerMs;

/// An amount owed that time pays at a steady rate, down to zero. Idle time earns no credit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Debt {
    owed: u64,
    at: ServerMs,
}

impl Debt {
    /// Nothing owed; time starts to pay at `at`.
    pub fn new(at: ServerMs) -> Debt {
        Debt { owed: 0, at }
    }

    /// So much owed at `at`.
    pub fn owing(at: ServerMs, owed: u64) -> Debt {
        Debt { owed, at }
    }

    /// How much more can be charged at `now` without owing more than `most`, when each millisecond
    /// pays `rate`.
    pub fn room(&self, now: ServerMs, rate: u64, most: u64) -> u64 {
        most.saturating_add(self.paid(now, rate)).saturating_sub(self.owed)
    }

    /// Subtracts what time has paid since the last call and adds `more`. Returns the new debt.
    pub fn charge(&mut self, now: ServerMs, rate: u64, more: u64) -> u64 {
        self.owed = self.owed.saturating_add(more).saturating_sub(self.paid(now, rate));
        self.at = self.at.max(now);
        self.owed
    }

    fn paid(&self, now: ServerMs, rate: u64) -> u64 {
        now.since(self.at).saturating_mul(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_pays_but_gives_no_credit() {
        let mut debt = Debt::new(ServerMs(100));
        assert_eq!(debt.charge(ServerMs(1_000), 2, 50), 0);
        assert_eq!(debt.charge(ServerMs(1_010), 2, 50), 30);
        // A clock that goes back pays nothing.
        assert_eq!(debt.charge(ServerMs(500), 2, 5), 35);
        assert_eq!((debt.room(ServerMs(1_010), 2, 40), debt.room(ServerMs(1_020), 2, 40)), (5, 25));
        assert_eq!(debt.charge(ServerMs(9_000), 2, 0), 0);
        assert_eq!(debt.charge(ServerMs(9_000), 2, 7), 7);
    }
}

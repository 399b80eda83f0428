//! A debt that only time pays.

use serde::{Deserialize, Serialize};

use super::ServerMs;

/// A debt that time pays off, at a steady rate and down to nothing: having been idle is no credit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Debt {
    owed: u64,
    at: ServerMs,
}

impl Debt {
    /// None, at the moment from which on time pays.
    pub fn new(at: ServerMs) -> Debt {
        Debt { owed: 0, at }
    }

    /// How much more can be taken on at `now` so that no more than `most` is owed, when a millisecond pays
    /// `rate`.
    pub fn room(&self, now: ServerMs, rate: u64, most: u64) -> u64 {
        most.saturating_add(self.paid(now, rate)).saturating_sub(self.owed)
    }

    /// Takes on `more`, for which the time since the last call has paid its part. Returns what is owed
    /// then.
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

//! Which commands for the scene were given already. A worker numbers them, but gives them by whichever of its regions,
//! whose ticks are not in order.

use std::collections::BTreeSet;

/// Most numbers that are known one by one.
const MOST: usize = 4_096;

/// The numbers of commands that were given.
#[derive(Debug, Default)]
pub struct Taken {
    /// All numbers up to this one were given, or are too old to be given.
    floor: u64,
    /// Numbers above it that were given.
    above: BTreeSet<u64>,
}

impl Taken {
    /// Whether a number is new; it counts as given from now on.
    pub fn take(&mut self, number: u64) -> bool {
        if number <= self.floor || !self.above.insert(number) {
            return false;
        }
        if self.above.len() > MOST {
            self.floor = self.above.pop_first().unwrap_or(self.floor);
        }
        while let Some(next) = self.floor.checked_add(1)
            && self.above.remove(&next)
        {
            self.floor = next;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_new_once_in_whichever_order_the_numbers_come() {
        let mut taken = Taken::default();
        assert!(taken.take(2) && !taken.take(2));
        assert!(taken.take(1) && taken.take(4) && taken.take(3));
        assert!((1..5).all(|number| !taken.take(number)));
        assert_eq!((taken.floor, taken.above.len()), (4, 0));
    }

    #[test]
    fn the_highest_number_is_a_number_like_any_other() {
        let mut taken = Taken::default();
        let last = MOST as u64 + 4;
        (0..=last).for_each(|n| assert!(taken.take(u64::MAX - last + n)));
        assert!(!taken.take(u64::MAX) && !taken.take(1));
    }

    #[test]
    fn only_so_many_numbers_are_known_one_by_one() {
        let mut taken = Taken::default();
        // Number 1 never comes.
        (2..=20_000).for_each(|number| assert!(taken.take(number)));
        assert!(taken.above.len() <= MOST && !taken.take(20_000) && !taken.take(1));
    }
}

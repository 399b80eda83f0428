//! The stability of lists: how often a player enters a list, and how much of that is flicker.

use super::Lists;

/// An entry has flickered if it comes back within so many ticks after it left: 2 s.
pub const FLICKER_TICKS: u64 = 20;

/// The changes of all lists.
#[derive(Debug, Default)]
pub struct Calm {
    tick: u64,
    before: Option<Lists>,
    /// For each player: the entries that left its list lately, and in which tick.
    left: Vec<Vec<(u32, u64)>>,
    /// The number of new entries.
    pub enters: u64,
    /// Of these, entries that had left the same list within the last 2 s.
    pub flickers: u64,
}

impl Calm {
    /// Takes the lists of the next tick. The entries of the first tick do not count as new.
    pub fn see(&mut self, lists: &Lists) {
        self.tick += 1;
        self.left.resize_with(lists.players(), Vec::new);
        if let Some(before) = self.before.take() {
            for i in 0..lists.players().min(before.players()) {
                self.compare(i, before.of(i), lists.of(i));
            }
        }
        self.before = Some(lists.clone());
    }

    /// Resets the counts; entries that left lately are remembered.
    pub fn restart(&mut self) {
        (self.enters, self.flickers) = (0, 0);
    }

    fn compare(&mut self, player: usize, before: &[u32], now: &[u32]) {
        let left = &mut self.left[player];
        left.retain(|(_, at)| at + FLICKER_TICKS >= self.tick);
        for who in now.iter().filter(|who| before.binary_search(who).is_err()) {
            self.enters += 1;
            if let Some(at) = left.iter().position(|(other, _)| other == who) {
                left.swap_remove(at);
                self.flickers += 1;
            }
        }
        let gone = before.iter().filter(|who| now.binary_search(who).is_err());
        left.extend(gone.map(|who| (*who, self.tick)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The list of one player among ten, tick by tick.
    fn history(ticks: &[&[u32]]) -> Calm {
        let mut calm = Calm::default();
        let mut lists = Lists::default();
        for tick in ticks {
            lists.copy(std::iter::once(tick.iter().copied()));
            calm.see(&lists);
        }
        calm
    }

    fn counts(ticks: &[&[u32]]) -> (u64, u64) {
        let calm = history(ticks);
        (calm.enters, calm.flickers)
    }

    #[test]
    fn the_first_lists_contain_no_new_entries() {
        assert_eq!(counts(&[&[1, 2], &[1, 2], &[2]]), (0, 0));
        assert_eq!(counts(&[&[], &[1, 2], &[2, 3]]), (3, 0));
    }

    #[test]
    fn an_entry_that_comes_back_within_2_s_has_flickered_each_time() {
        assert_eq!(counts(&[&[1], &[], &[1], &[], &[], &[1]]), (2, 2));
        // Another entry in its place does not count as flicker.
        assert_eq!(counts(&[&[1], &[2], &[3], &[2]]), (3, 1));
    }

    #[test]
    fn the_twentieth_tick_after_a_leave_is_the_last_that_counts() {
        let gap = |ticks: usize| {
            let mut all: Vec<&[u32]> = vec![&[7]];
            all.extend(vec![&[][..]; ticks]);
            all.push(&[7]);
            counts(&all)
        };
        assert_eq!((gap(1), gap(20), gap(21)), ((1, 1), (1, 1), (1, 0)));
    }

    #[test]
    fn a_restart_resets_counts_but_remembers_leaves() {
        let mut calm = history(&[&[1], &[], &[1], &[]]);
        calm.restart();
        let mut lists = Lists::default();
        lists.copy(std::iter::once([1]));
        calm.see(&lists);
        assert_eq!((calm.enters, calm.flickers), (1, 1));
    }
}

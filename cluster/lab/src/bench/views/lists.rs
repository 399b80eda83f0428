//! View lists as the judge of the benchmark reads them, and the check that they are symmetric and within the cap.

use std::collections::BTreeMap;

/// For each player the listed players, in ascending order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lists(Vec<Vec<u32>>);

impl Lists {
    /// Takes the lists of all players, in the order of players.
    pub fn copy(&mut self, lists: impl Iterator<Item = impl IntoIterator<Item = u32>>) {
        let mut n = 0;
        for list in lists {
            if self.0.len() <= n {
                self.0.push(Vec::new());
            }
            let to = &mut self.0[n];
            to.clear();
            to.extend(list);
            to.sort_unstable();
            n += 1;
        }
        self.0.truncate(n);
    }

    /// The number of players.
    pub fn players(&self) -> usize {
        self.0.len()
    }

    /// The list of player `i`, in ascending order.
    pub fn of(&self, i: usize) -> &[u32] {
        &self.0[i]
    }

    /// Whether `a` lists `b`.
    pub fn has(&self, a: u32, b: u32) -> bool {
        self.0[a as usize].binary_search(&b).is_ok()
    }

    /// All lists, in the order of players.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        self.0.iter().map(Vec::as_slice)
    }

    /// Pairs of which only the first lists the second.
    pub fn one_sided(&self) -> Vec<(u32, u32)> {
        let all = self.iter().zip(0..);
        all.flat_map(|(list, a)| list.iter().map(move |b| (a, *b)))
            .filter(|(a, b)| !self.has(*b, *a))
            .collect()
    }
}

/// Checks that lists are symmetric and within the cap.
#[derive(Debug, Default)]
pub struct Soundness {
    cap: usize,
    /// The number of ticks in a row for which a pair may be one-sided.
    patience: u32,
    odd: BTreeMap<(u32, u32), u32>,
    /// Pairs that were one-sided at the end of a tick, summed over ticks.
    pub one_sided: u64,
    /// Pairs that were one-sided for too long, and lists above the cap.
    pub faults: u64,
}

impl Soundness {
    /// Lists may have `cap` entries, and pairs may be one-sided for `patience` ticks in a row.
    pub fn new(cap: usize, patience: u32) -> Soundness {
        Soundness { cap, patience, ..Soundness::default() }
    }

    /// Takes the lists of the next tick.
    pub fn see(&mut self, lists: &Lists) {
        self.faults += lists.iter().filter(|list| list.len() > self.cap).count() as u64;
        let odd = lists.one_sided();
        self.one_sided += odd.len() as u64;
        let spell = |pair: &(u32, u32)| 1 + self.odd.get(pair).copied().unwrap_or(0);
        let odd: BTreeMap<_, _> = odd.into_iter().map(|pair| (pair, spell(&pair))).collect();
        self.faults += odd.values().filter(|ticks| **ticks == self.patience + 1).count() as u64;
        self.odd = odd;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists<const N: usize>(of: [&[u32]; N]) -> Lists {
        let mut lists = Lists::default();
        lists.copy(of.iter().map(|list| list.iter().copied()));
        lists
    }

    #[test]
    fn a_list_entry_without_its_counterpart_is_one_sided() {
        let odd = lists([&[2, 1], &[0], &[], &[2]]);
        assert_eq!((odd.of(0), odd.players()), (&[1, 2][..], 4));
        assert_eq!(odd.one_sided(), [(0, 2), (3, 2)]);
    }

    #[test]
    fn a_copy_replaces_the_old_lists() {
        let mut all = lists([&[1], &[0], &[]]);
        all.copy([vec![], vec![]].into_iter());
        assert_eq!(all, lists([&[], &[]]));
    }

    #[test]
    fn only_a_pair_that_stays_one_sided_is_a_fault_and_counts_once() {
        let (odd, even) = (lists([&[1], &[]]), lists([&[], &[]]));
        let mut sound = Soundness::new(1, 1);
        for seen in [&odd, &even, &odd] {
            sound.see(seen);
        }
        assert_eq!((sound.one_sided, sound.faults), (2, 0));
        [&odd, &odd].into_iter().for_each(|seen| sound.see(seen));
        assert_eq!((sound.one_sided, sound.faults), (4, 1));
        let mut strict = Soundness::new(1, 0);
        strict.see(&odd);
        assert_eq!(strict.faults, 1);
    }

    #[test]
    fn a_list_above_the_cap_is_a_fault_in_every_tick() {
        let mut sound = Soundness::new(1, 0);
        let triangle = lists([&[1, 2], &[0], &[0]]);
        sound.see(&triangle);
        sound.see(&triangle);
        assert_eq!((sound.one_sided, sound.faults), (0, 2));
    }
}

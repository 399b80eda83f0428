//! Memory for the patches of a grid, row after row, where somebody stands: most of a map is empty, and around each
//! player many patches are looked at for every one in which somebody stands.
//!
//! Patches are kept in runs of 64 neighbours in a row. A run is a word with a bit for each patch that holds anything,
//! and memory for the 64 patches while any of them does. So an empty grid takes a quarter of a byte per patch, and what
//! nobody uses any more is released.

/// Patches of a run.
const RUN: u32 = u64::BITS;

type Cells<T> = Box<[T; RUN as usize]>;

#[derive(Debug, Clone)]
struct Run<T> {
    /// A bit for each patch that holds anything.
    taken: u64,
    /// There while any does.
    cells: Option<Cells<T>>,
}

/// What the patches of a grid hold, by their numbers.
#[derive(Debug, Clone)]
pub struct Runs<T> {
    runs: Vec<Run<T>>,
    /// Released last: whoever walks from run to run takes its memory along.
    spare: Option<Cells<T>>,
}

impl<T: Default> Runs<T> {
    /// Bytes that a grid of so many patches takes while nothing is in it.
    pub const fn bytes_empty(patches: u64) -> u64 {
        patches.div_ceil(RUN as u64) * size_of::<Run<T>>() as u64
    }

    /// So many patches that hold nothing.
    pub fn of(patches: usize) -> Runs<T> {
        let empty = || Run { taken: 0, cells: None };
        let runs = std::iter::repeat_with(empty).take(patches.div_ceil(RUN as usize));
        Runs { runs: runs.collect(), spare: None }
    }

    /// What a patch holds, if there is memory for it.
    #[inline]
    pub fn get(&self, patch: u32) -> Option<&T> {
        let cells = self.runs.get((patch / RUN) as usize)?.cells.as_ref()?;
        Some(&cells[(patch % RUN) as usize])
    }

    /// The same, to be changed.
    #[inline]
    pub fn get_mut(&mut self, patch: u32) -> Option<&mut T> {
        let cells = self.runs.get_mut((patch / RUN) as usize)?.cells.as_mut()?;
        Some(&mut cells[(patch % RUN) as usize])
    }

    /// The patch holds something from now on.
    #[inline]
    pub fn take(&mut self, patch: u32) -> &mut T {
        let Runs { runs, spare } = self;
        let run = &mut runs[(patch / RUN) as usize];
        run.taken |= 1 << (patch % RUN);
        let cells = run.cells.get_or_insert_with(|| {
            spare.take().unwrap_or_else(|| Box::new(std::array::from_fn(|_| T::default())))
        });
        &mut cells[(patch % RUN) as usize]
    }

    /// The patch holds nothing from now on. When no patch of its run does, the run's memory is released, after
    /// `clean` has made each of them like new.
    pub fn release(&mut self, patch: u32, clean: impl FnMut(&mut T)) {
        let run = &mut self.runs[(patch / RUN) as usize];
        run.taken &= !(1 << (patch % RUN));
        if run.taken == 0
            && let Some(mut cells) = run.cells.take()
        {
            cells.iter_mut().for_each(clean);
            self.spare = Some(cells);
        }
    }

    /// Everything for which there is memory, with the patches' numbers.
    pub fn all_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        let runs = (0u32..).zip(&mut self.runs);
        let cells = runs.filter_map(|(run, Run { cells, .. })| Some((run, cells.as_mut()?)));
        cells.flat_map(|(run, cells)| (run * RUN..).zip(cells.iter_mut()))
    }

    /// Patches for which there is memory.
    #[cfg(test)]
    pub fn allocated(&self) -> usize {
        let runs = self.runs.iter().filter(|run| run.cells.is_some()).count();
        (runs + usize::from(self.spare.is_some())) * RUN as usize
    }

    /// Calls `visit` with those from `first` to `last`, both included, that hold anything, in their order.
    #[inline]
    pub fn each(&self, first: u32, last: u32, mut visit: impl FnMut(u32, &T)) {
        let (mut at, end) = (first / RUN, last / RUN);
        let mut from = !0 << (first % RUN);
        while at <= end {
            let to = if at == end { !0 >> (RUN - 1 - last % RUN) } else { !0 };
            let run = &self.runs[at as usize];
            let mut bits = run.taken & from & to;
            if let Some(cells) = run.cells.as_ref().filter(|_| bits != 0) {
                while bits != 0 {
                    let bit = bits.trailing_zeros() % RUN;
                    visit(at * RUN + bit, &cells[bit as usize]);
                    bits &= bits - 1;
                }
            }
            (at, from) = (at + 1, !0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn those_between_two_are_visited_in_order_with_what_they_hold(
            changes in proptest::collection::vec((0u32..300, 0u32..4), 0..200),
            (a, b) in (0u32..300, 0u32..300),
        ) {
            let (mut runs, mut model) = (Runs::<u32>::of(300), BTreeMap::new());
            for (patch, holds) in changes {
                if holds > 0 {
                    *runs.take(patch) = holds;
                    model.insert(patch, holds);
                } else if model.remove(&patch).is_some() {
                    *runs.take(patch) = 0;
                    runs.release(patch, |cell| *cell = 0);
                }
                prop_assert_eq!(runs.get(patch).copied().unwrap_or(0), holds);
            }
            let (first, last, mut got) = (a.min(b), a.max(b), Vec::new());
            runs.each(first, last, |patch, holds| got.push((patch, *holds)));
            let want: Vec<_> = model.range(first..=last).map(|(p, h)| (*p, *h)).collect();
            prop_assert_eq!(got, want);
            let used: std::collections::BTreeSet<_> = model.keys().map(|p| p / RUN).collect();
            prop_assert!(runs.allocated() <= (used.len() + 1) * RUN as usize);
            let there = runs.all_mut().filter(|(_, holds)| **holds > 0);
            prop_assert_eq!(there.map(|(p, h)| (p, *h)).collect::<BTreeMap<_, _>>(), model);
        }
    }
}

//! Sparse memory for the patches of a grid. Most of a map is empty, and around each player many
//! patches are read for every one that holds an entity.
//!
//! [`Grid`](super::Grid) owns one. An empty patch must cost a quarter of a byte, and memory is
//! freed when its last entity leaves.
//!
//! Patches are kept in runs of 64 neighbours of a row. A run is a word with a bit per non-empty
//! patch, and memory for the 64 patches while any of them holds an entity.

/// Patches of a run.
const RUN: u32 = u64::BITS;

type Cells<T> = Box<[T; RUN as usize]>;

#[derive(Debug, Clone)]
struct Run<T> {
    /// A bit for each patch that holds an entity.
    taken: u64,
    /// Present while any bit is set.
    cells: Option<Cells<T>>,
}

/// The contents of a grid's patches, by patch number.
#[derive(Debug, Clone)]
pub struct Runs<T> {
    runs: Vec<Run<T>>,
    /// The cells released last: an entity that walks from run to run reuses them.
    spare: Option<Cells<T>>,
}

impl<T: Default> Runs<T> {
    /// Bytes that an empty grid of `patches` patches takes.
    pub const fn bytes_empty(patches: u64) -> u64 {
        patches.div_ceil(RUN as u64) * size_of::<Run<T>>() as u64
    }

    /// `patches` empty patches.
    pub fn of(patches: usize) -> Runs<T> {
        let empty = || Run { taken: 0, cells: None };
        let runs = std::iter::repeat_with(empty).take(patches.div_ceil(RUN as usize));
        Runs { runs: runs.collect(), spare: None }
    }

    /// The contents of a patch, if it has memory.
    #[inline]
    pub fn get(&self, patch: u32) -> Option<&T> {
        let cells = self.runs.get((patch / RUN) as usize)?.cells.as_ref()?;
        Some(&cells[(patch % RUN) as usize])
    }

    /// Mutable contents of a patch, if it has memory.
    #[inline]
    pub fn get_mut(&mut self, patch: u32) -> Option<&mut T> {
        let cells = self.runs.get_mut((patch / RUN) as usize)?.cells.as_mut()?;
        Some(&mut cells[(patch % RUN) as usize])
    }

    /// Marks the patch as non-empty and returns its contents.
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

    /// Marks the patch as empty. If its whole run is empty, the run's memory is released.
    pub fn release(&mut self, patch: u32) {
        let run = &mut self.runs[(patch / RUN) as usize];
        run.taken &= !(1 << (patch % RUN));
        if run.taken == 0 {
            self.spare = run.cells.take().or(self.spare.take());
        }
    }

    /// All patches that have memory.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.runs.iter_mut().filter_map(|run| run.cells.as_mut()).flat_map(|cells| cells.iter_mut())
    }

    /// Number of patches that have memory.
    #[cfg(test)]
    pub fn allocated(&self) -> usize {
        let runs = self.runs.iter().filter(|run| run.cells.is_some()).count();
        (runs + usize::from(self.spare.is_some())) * RUN as usize
    }

    /// Calls `visit` with the non-empty patches from `first` to `last` (inclusive), in order.
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
        fn patches_in_a_span_are_visited_in_order_with_their_contents(
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
                    runs.release(patch);
                }
                prop_assert_eq!(runs.get(patch).copied().unwrap_or(0), holds);
            }
            let (first, last, mut got) = (a.min(b), a.max(b), Vec::new());
            runs.each(first, last, |patch, holds| got.push((patch, *holds)));
            let want: Vec<_> = model.range(first..=last).map(|(p, h)| (*p, *h)).collect();
            prop_assert_eq!(got, want);
            let used: std::collections::BTreeSet<_> = model.keys().map(|p| p / RUN).collect();
            prop_assert!(runs.allocated() <= (used.len() + 1) * RUN as usize);
            let there = runs.all_mut().filter(|holds| **holds > 0).map(|holds| *holds);
            prop_assert!(there.eq(model.into_values()));
        }
    }
}

//! Which patches of a grid hold anything: a bit each, row after row. Most of a map is empty, and around each player many
//! patches are looked at for every one in which somebody stands.

/// The patches of a grid that hold anything, by their numbers.
#[derive(Debug, Clone)]
pub struct Taken {
    words: Vec<u64>,
}

const BITS: u32 = u64::BITS;

impl Taken {
    /// None of so many patches.
    pub fn none_of(patches: usize) -> Taken {
        Taken { words: vec![0; patches.div_ceil(BITS as usize)] }
    }

    /// The patch holds something from now on, or nothing.
    #[inline]
    pub fn set(&mut self, patch: u32, taken: bool) {
        let (word, bit) = (&mut self.words[(patch / BITS) as usize], 1 << (patch % BITS));
        if taken { *word |= bit } else { *word &= !bit }
    }

    /// Calls `visit` with those from `first` to `last`, both included, in their order.
    #[inline]
    pub fn each(&self, first: u32, last: u32, mut visit: impl FnMut(u32)) {
        let (mut word, end) = (first / BITS, last / BITS);
        let mut from = !0 << (first % BITS);
        while word <= end {
            let to = if word == end { !0 >> (BITS - 1 - last % BITS) } else { !0 };
            let mut bits = self.words[word as usize] & from & to;
            while bits != 0 {
                visit(word * BITS + bits.trailing_zeros());
                bits &= bits - 1;
            }
            (word, from) = (word + 1, !0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn those_between_two_are_visited_in_order(
            changes in proptest::collection::vec((0u32..300, any::<bool>()), 0..200),
            (a, b) in (0u32..300, 0u32..300),
        ) {
            let (mut taken, mut model) = (Taken::none_of(300), BTreeSet::new());
            for (patch, is) in changes {
                taken.set(patch, is);
                if is { model.insert(patch) } else { model.remove(&patch) };
            }
            let (first, last, mut got) = (a.min(b), a.max(b), Vec::new());
            taken.each(first, last, |patch| got.push(patch));
            prop_assert_eq!(got, model.range(first..=last).copied().collect::<Vec<_>>());
        }
    }
}

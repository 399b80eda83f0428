//! A pairwise sample of runs: what the seed of a run says of its shape.

use std::time::Duration;

use clap::ValueEnum;
use purview_demo::rng::Rng;

use super::faults::{Fault, Faults};
use super::options::{Logic, Options};

/// The faults in which a store breaks its promise; `docs/guarantees.md` says what still holds then.
const BROKEN_STORES: [Fault; 3] = [Fault::Lease, Fault::Twice, Fault::Checkpoint];

/// The number of games that a sampled run may have, and none.
const LOGICS: u64 = 7;

/// The number of seeds in a row within which each fault meets each logic.
pub const PERIOD: u64 = 26 * LOGICS;

impl Options {
    /// These options with faults, logic, scenes, NPCs and the rest of the run's shape by its seed. Of [`PERIOD`] seeds in a
    /// row each has another pair of faults (each kind alone, all whose stores keep their promises, or all) and logic; the
    /// other pairs of levels are among a few times as many.
    #[must_use]
    pub fn sampled(self) -> Options {
        let kinds = Fault::value_variants();
        let faults = kinds.len() as u64 + 2;
        let row = self.seed % PERIOD;
        let (fault, logic) = (row % faults, (row / faults + row % faults) % LOGICS);
        let alone = kinds.get(fault as usize);
        let logic = match logic.checked_sub(1) {
            _ if alone.is_some_and(Fault::is_of_workers) => Some(Logic::Workers),
            drawn => drawn.map(|of| Logic::value_variants()[of as usize]),
        };
        let fits = |kind: &&Fault| logic == Some(Logic::Workers) || !kind.is_of_workers();
        let kept = |kind: &&Fault| fault > kinds.len() as u64 || !BROKEN_STORES.contains(kind);
        let mix = || kinds.iter().filter(fits).filter(kept).copied().collect();
        let faults = Faults(alone.map_or_else(mix, |alone| vec![*alone]));
        let drawn = Rng::new(self.seed).next();
        let bit = |n: u32| drawn >> n & 1 == 1;
        let (judged, npcs) = (bit(0), bit(1));
        let stairs = bit(2) && !judged && !npcs && logic.is_none();
        Options {
            faults,
            logic,
            judged,
            npcs,
            stairs,
            portals: judged && bit(3),
            walls: judged && bit(4) && logic.is_none(),
            scenes: 1 + u32::from(bit(5)),
            plane_groups: 1 + u32::from(bit(6)),
            view_cap: bit(7).then_some(4),
            gateways: if bit(8) && bit(9) { 0 } else { self.gateways },
            cut: bit(10),
            balance: bit(11),
            beat: bit(12).then_some(Duration::from_millis(50)),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The keys of a run, each with its level.
    fn levels(of: Options) -> Vec<String> {
        let off = ["logic", "judged", "npcs", "cut", "balance", "scenes", "plane_groups", "cap"];
        let keys = of.sampled().keys();
        let mut keys: Vec<_> = keys.into_iter().filter(|(key, _)| *key != "seed").collect();
        for key in off {
            if keys.iter().all(|(known, _)| *known != key) {
                keys.push((key, false.into()));
            }
        }
        // Those are for runs without logic alone, and seldom.
        keys.retain(|(key, _)| !["walls", "stairs"].contains(key));
        keys.into_iter().map(|(key, value)| format!("{key} {value}")).collect()
    }

    fn pairs(seeds: std::ops::Range<u64>) -> BTreeSet<(String, String)> {
        let (mut pairs, any) = (BTreeSet::new(), Options::default());
        for levels in seeds.map(|seed| levels(Options { seed, ..any.clone() })) {
            for (n, one) in levels.iter().enumerate() {
                let others = levels[n + 1..].iter();
                pairs.extend(others.map(|two| (one.min(two).clone(), one.max(two).clone())));
            }
        }
        pairs
    }

    #[test]
    fn all_pairs_of_levels_are_among_the_seeds_of_a_few_periods() {
        assert_eq!(Fault::value_variants().len() as u64 + 2, PERIOD / LOGICS);
        assert_eq!(Logic::value_variants().len() as u64 + 1, LOGICS);
        let is_first =
            |(one, two): &(String, String)| one.starts_with("faults ") && two.starts_with("logic ");
        let first = |seeds| pairs(seeds).into_iter().filter(is_first).collect::<BTreeSet<_>>();
        assert_eq!(first(5_000..5_000 + PERIOD), first(0..PERIOD));
        let (some, many) = (pairs(5_000..5_000 + 16 * PERIOD), pairs(0..20 * PERIOD));
        let missing: Vec<_> = many.difference(&some).collect();
        assert!(many.len() > 500 && missing.is_empty(), "{} {missing:?}", many.len());
    }
}

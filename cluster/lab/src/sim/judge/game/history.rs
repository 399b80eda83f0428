//! What the deaths of regions have undone: a region that goes on from a checkpoint has lost what was done after it, and
//! nothing else.

use std::collections::BTreeMap;

use purview::scene::{Epoch, Region, RegionId, Tick};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct When {
    pub region: RegionId,
    pub epoch: Epoch,
    pub tick: Tick,
}

impl When {
    /// In this region, in its present tick.
    pub fn now_in(region: &Region) -> When {
        When { region: region.id(), epoch: region.epoch(), tick: region.current_tick() }
    }
}

/// The owners of regions, and from which states they went on.
#[derive(Debug, Default)]
pub(in super::super) struct History(BTreeMap<(RegionId, Epoch), Option<Tick>>);

impl History {
    pub fn acts(&mut self, region: &Region) -> bool {
        let key = (region.id(), region.epoch());
        let is_new = !self.0.contains_key(&key);
        if is_new {
            self.0.insert(key, region.lost_since());
        }
        is_new
    }

    /// Whether a later owner of the region went on from an older state.
    pub fn is_undone(&self, when: When) -> bool {
        let later = (when.region, when.epoch.next())..=(when.region, Epoch(u64::MAX));
        self.0.range(later).any(|(_, since)| since.is_some_and(|since| since < when.tick))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_later_than_the_checkpoint_of_the_next_owner_is_undone() {
        let at = |region, epoch, tick| When {
            region: RegionId(region),
            epoch: Epoch(epoch),
            tick: Tick(tick),
        };
        let mut history = History::default();
        for (epoch, since) in [(3, Some(Tick(0))), (4, None), (6, Some(Tick(50)))] {
            history.0.insert((RegionId(1), Epoch(epoch)), since);
        }
        let undone = [at(1, 4, 51), at(1, 3, 51), at(1, 3, 50), at(1, 6, 90), at(2, 3, 90)];
        let undone = undone.map(|when| history.is_undone(when));
        assert_eq!(undone, [true, true, false, false, false]);
    }
}

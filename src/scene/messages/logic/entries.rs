//! Commands for entities of other regions. The region of the logic that gives one keeps it as an entry of its outbox, and
//! sends it until the entity's region says that it is done; the entity takes each entry once, in order, however often
//! it comes and wherever the entity lives by then.

use serde::{Deserialize, Serialize};

use super::CommandError;
use crate::scene::{Epoch, RegionId};

/// Most regions whose last entries an entity keeps; the one that was silent for longest gives way.
pub const MAX_SOURCES: usize = 64;

/// Names an entry among those of its region. It never recurs, whatever dies: the number grows within an epoch.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Mark {
    /// The epoch of the region.
    pub epoch: Epoch,
    /// The number of the command.
    pub number: u64,
}

/// Where an entry stands among those of its region for the same entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct After {
    /// The entry before it; the default: there is none.
    pub prev: Mark,
    /// The oldest one: the region knows what has become of all earlier ones.
    pub oldest: Mark,
}

/// For which batch of a logic worker a command was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Asked {
    /// The worker's session: a number that no other session has had or will have.
    pub session: u64,
    /// The epoch of the lease.
    pub epoch: Epoch,
    /// The number of the lease in the epoch.
    pub lease: u64,
    /// The number of the batch in the lease.
    pub seq: u64,
    /// The place of the command in the batch, from 0 on.
    pub place: u32,
}

/// The last entries that an entity has taken: those of regions that spoke last are at the end. Part of its state.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Taken(Vec<TakenOf>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct TakenOf {
    region: RegionId,
    last: Mark,
    /// Entries up to it that were refused, as long as their region may ask.
    refused: Vec<(Mark, CommandError)>,
}

/// What an entity makes of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// It takes the entry.
    New,
    /// It has taken the entry before, with this result.
    Before(Result<(), CommandError>),
    /// An earlier entry is missing: nothing changes.
    Early,
}

impl Taken {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The last entry of a region.
    pub fn last(&self, region: RegionId) -> Mark {
        self.0.iter().rev().find(|of| of.region == region).map_or(Mark::default(), |of| of.last)
    }

    /// What becomes of an entry of a region. One that is new counts as taken from now on.
    pub fn see(&mut self, region: RegionId, mark: Mark, after: After) -> Sight {
        let known = self.0.iter().rposition(|of| of.region == region);
        let at = known.unwrap_or(self.0.len());
        let last = self.0.get(at).map_or(Mark::default(), |of| of.last);
        if mark <= last {
            let refused = self.0[at].refused.iter().find(|(of, _)| *of == mark);
            return Sight::Before(refused.map_or(Ok(()), |(_, why)| Err(*why)));
        }
        if after.prev > last {
            return Sight::Early;
        }
        let mut of = match known {
            Some(at) => self.0.remove(at),
            None => TakenOf { region, last, refused: Vec::new() },
        };
        if self.0.len() >= MAX_SOURCES {
            self.0.remove(0);
        }
        of.last = mark;
        of.refused.retain(|(refused, _)| *refused >= after.oldest);
        self.0.push(of);
        Sight::New
    }

    /// The entry that was taken last was refused.
    pub fn refuse(&mut self, mark: Mark, why: CommandError) {
        if let Some(of) = self.0.last_mut() {
            of.refused.push((mark, why));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(number: u64) -> Mark {
        Mark { epoch: Epoch(3), number }
    }

    fn after(prev: u64, oldest: u64) -> After {
        let of = |number| if number == 0 { Mark::default() } else { mark(number) };
        After { prev: of(prev), oldest: of(oldest) }
    }

    #[test]
    fn an_entry_is_taken_once_and_after_the_one_before_it() {
        let (mut taken, region) = (Taken::default(), RegionId(4));
        assert_eq!(taken.see(region, mark(7), after(5, 5)), Sight::Early);
        assert_eq!(taken.see(region, mark(5), after(0, 5)), Sight::New);
        taken.refuse(mark(5), CommandError::NoIds);
        assert_eq!(taken.see(region, mark(7), after(5, 5)), Sight::New);
        assert_eq!(
            taken.see(region, mark(5), after(0, 5)),
            Sight::Before(Err(CommandError::NoIds))
        );
        assert_eq!(taken.see(region, mark(7), after(5, 5)), Sight::Before(Ok(())));
        // The region knows what has become of entry 5.
        assert_eq!(taken.see(region, mark(9), after(7, 7)), Sight::New);
        assert_eq!(taken.see(region, mark(5), after(0, 5)), Sight::Before(Ok(())));
        assert_eq!((taken.last(region), taken.last(RegionId(5))), (mark(9), Mark::default()));
        let next_life = Mark { epoch: Epoch(4), number: 1 };
        assert_eq!(taken.see(region, next_life, After::default()), Sight::New);
    }

    #[test]
    fn the_region_that_was_silent_for_longest_is_forgotten_first() {
        let mut taken = Taken::default();
        let regions = u32::try_from(MAX_SOURCES).unwrap();
        for region in (0..regions).chain([0, regions]) {
            let number = 1 + u64::from(region) + taken.last(RegionId(region)).number;
            assert_eq!(taken.see(RegionId(region), mark(number), after(0, 0)), Sight::New);
        }
        let last = |region| taken.last(RegionId(region)).number;
        assert_eq!((last(0), last(1), last(2), last(regions)), (2, 0, 3, u64::from(regions) + 1));
    }
}

//! The trail of each player: its positions with their epochs. A client may be shown no position where the player
//! never was, and none older than the position shown last.

use std::collections::VecDeque;

use purview::scene::{Epoch, Pos};

/// How many positions of a player are kept: more than any view is late.
const REMEMBERED: usize = 400;

/// A position in a trail. Of two positions the one with the higher epoch is later, then the one with the higher
/// number. The default is the earliest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Mark {
    epoch: Epoch,
    number: u64,
}

/// Why a position is not one of the trail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffTrail {
    /// The player never was there, as far as the trail goes back.
    Never,
    /// The player was there before the position shown last.
    Older,
}

/// The positions of a player, in the order in which they were noted.
#[derive(Debug, Default)]
pub struct Trail {
    places: VecDeque<(Epoch, Pos)>,
    first: u64,
}

impl Trail {
    /// Notes a position. A player that stands has one position.
    pub fn note(&mut self, epoch: Epoch, pos: Pos) {
        if self.places.back() == Some(&(epoch, pos)) {
            return;
        }
        if self.places.len() == REMEMBERED {
            self.places.pop_front();
            self.first += 1;
        }
        self.places.push_back((epoch, pos));
    }

    /// The first position at `pos` that is not earlier than `since`.
    pub fn find(&self, pos: Pos, since: Mark) -> Result<Mark, OffTrail> {
        let known = since.number.saturating_sub(self.first) as usize;
        let known = known.min(self.places.len());
        let mut never = OffTrail::Never;
        // Mostly one of the next positions. Those of a former owner come later in the list, with a lower epoch.
        for (from, to) in [(known, self.places.len()), (0, known)] {
            for (at, (epoch, there)) in self.places.range(from..to).enumerate() {
                if *there == pos {
                    let mark = Mark { epoch: *epoch, number: self.first + (from + at) as u64 };
                    if mark >= since {
                        return Ok(mark);
                    }
                    never = OffTrail::Older;
                }
            }
        }
        Err(never)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(x: i32) -> Pos {
        Pos::ground(x, 0)
    }

    #[test]
    fn a_position_is_found_that_is_no_older_than_the_last_one() {
        let mut trail = Trail::default();
        (0..5).for_each(|x| trail.note(Epoch(1), at(x)));
        let second = trail.find(at(1), Mark::default()).unwrap();
        assert_eq!(trail.find(at(1), second), Ok(second), "it stands");
        let fourth = trail.find(at(3), second).unwrap();
        assert!(fourth > second);
        assert_eq!(trail.find(at(2), fourth), Err(OffTrail::Older));
        assert_eq!(trail.find(at(9), fourth), Err(OffTrail::Never));
        trail.note(Epoch(1), at(2));
        assert!(trail.find(at(2), fourth).unwrap() > fourth, "it went back");
    }

    #[test]
    fn a_position_of_a_former_owner_is_older() {
        let mut trail = Trail::default();
        trail.note(Epoch(1), at(1));
        trail.note(Epoch(9), at(2));
        trail.note(Epoch(1), at(3));
        let old = trail.find(at(3), Mark::default()).unwrap();
        let new = trail.find(at(2), old).unwrap();
        assert!(new > old);
        assert_eq!(trail.find(at(3), new), Err(OffTrail::Older));
    }

    #[test]
    fn old_positions_are_forgotten_and_numbers_stay() {
        let mut trail = Trail::default();
        (0..1_000).for_each(|x| trail.note(Epoch(1), at(x)));
        assert_eq!(trail.find(at(5), Mark::default()), Err(OffTrail::Never));
        let last = trail.find(at(999), Mark::default()).unwrap();
        trail.note(Epoch(1), at(1_000));
        assert!(trail.find(at(1_000), last).unwrap() > last);
        assert_eq!(trail.find(at(998), last), Err(OffTrail::Older));
    }
}

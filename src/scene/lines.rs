//! Lines: the planes (channels) of a busy scene over which automatic joins are spread, as many as there is demand for.
//!
//! ```text
//!  open    as many lines as players fill to 80 %, and one more, from `min` to `max`: the fullest ones
//!  closing all other lines with players: nobody new is sent there, until no open line has room
//!  a join  enters the fullest open line with room
//! ```
//!
//! All follows from the numbers of players, so that processes that know the same numbers agree. The scene's directory
//! asks it on every join and leave. A join without a plane must never exceed a line's capacity, as far as counts of
//! other processes are known.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::{Plane, SceneSpec};

/// Open lines are filled to so many per cent before another one opens.
const FULL_PERCENT: u64 = 80;

/// Lines, each with its players.
type Filled = Vec<(Plane, u32)>;

/// The number of players per plane of a scene, and the line for the next one.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    min: i32,
    max: i32,
    capacity: u32,
    players: FxHashMap<Plane, u32>,
    /// Players that other processes let in, as last reported.
    elsewhere: FxHashMap<Plane, u32>,
}

impl Lines {
    /// The lines of a scene, without players.
    pub fn new(spec: &SceneSpec) -> Lines {
        let max = spec.lines.max(1);
        let min = spec.lines_open.clamp(1, max);
        Lines { min, max, capacity: spec.line_capacity, ..Lines::default() }
    }

    /// Takes a place: in `plane` if given, which may be any plane, even a full one or none of the
    /// lines; otherwise in the line for the next player. `None` if no line has room.
    pub fn take(&mut self, plane: Option<Plane>) -> Option<Plane> {
        let plane = match plane {
            Some(plane) => plane,
            None => self.next()?,
        };
        *self.players.entry(plane).or_default() += 1;
        Some(plane)
    }

    /// The line for a player that must enter one: as [`Lines::take`] without a plane, and the emptiest open one where
    /// none has room. Takes no place.
    pub fn for_next(&self) -> Plane {
        let emptiest = || self.ranked().0.last().map_or(Plane(0), |(plane, _)| *plane);
        self.next().unwrap_or_else(emptiest)
    }

    /// The line for the next player.
    fn next(&self) -> Option<Plane> {
        let (open, closing) = self.ranked();
        let mut all = open.iter().chain(&closing);
        all.find(|(_, players)| *players < self.capacity).map(|(plane, _)| *plane)
    }

    /// The open lines and the closing ones, each with its players, the fullest ones first.
    fn ranked(&self) -> (Filled, Filled) {
        let is_line = |plane: &&Plane| (0..self.max).contains(&plane.0);
        let taken = self.players.keys().chain(self.elsewhere.keys());
        let mut lines: Vec<Plane> = taken.filter(is_line).copied().collect();
        lines.sort_unstable();
        lines.dedup();
        let mut lines: Filled =
            lines.into_iter().map(|plane| (plane, self.players(plane))).collect();
        lines.sort_by_key(|(plane, players)| (Reverse(*players), *plane));
        let total: u64 = lines.iter().map(|(_, players)| u64::from(*players)).sum();
        let per_line = u64::from(self.capacity).max(1) * FULL_PERCENT;
        let wanted = i32::try_from(total * 100 / per_line).unwrap_or(i32::MAX).saturating_add(1);
        let wanted = wanted.clamp(self.min, self.max) as usize;
        let closing = lines.split_off(wanted.min(lines.len()));
        let is_empty = |plane: &Plane| self.players(*plane) == 0;
        let empty = (0..self.max).map(Plane).filter(is_empty);
        let more: Vec<Plane> = empty.take(wanted - lines.len()).collect();
        lines.extend(more.into_iter().map(|plane| (plane, 0)));
        (lines, closing)
    }

    /// Whether a plane is a line of too many, which nobody new should enter.
    pub fn is_closing(&self, plane: Plane) -> bool {
        self.ranked().1.iter().any(|(closing, _)| *closing == plane)
    }

    /// Releases a place.
    pub fn give_back(&mut self, plane: Plane) {
        if let Some(n) = self.players.get_mut(&plane) {
            *n = n.saturating_sub(1);
            if *n == 0 {
                self.players.remove(&plane);
            }
        }
    }

    /// Players in a plane, including those that other processes let in.
    pub fn players(&self, plane: Plane) -> u32 {
        let of = |players: &FxHashMap<Plane, u32>| players.get(&plane).copied().unwrap_or(0);
        of(&self.players).saturating_add(of(&self.elsewhere))
    }

    /// The open lines, and those with players, of `most` at most: each with its players, in order.
    pub fn open(&self, most: usize) -> Vec<(Plane, u32)> {
        let (mut open, closing) = self.ranked();
        open.extend(closing);
        open.sort_unstable();
        open.truncate(most);
        open
    }

    /// The planes with players that this process let in, and their number.
    pub fn here(&self) -> impl Iterator<Item = (Plane, u32)> {
        self.players.iter().map(|(plane, players)| (*plane, *players))
    }

    /// Replaces the counts of players that other processes let in.
    pub fn set_elsewhere(&mut self, taken: impl Iterator<Item = (Plane, u32)>) {
        self.elsewhere.clear();
        for (plane, players) in taken {
            let known = self.elsewhere.entry(plane).or_default();
            *known = known.saturating_add(players);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(open: i32, max: i32, capacity: u32) -> Lines {
        let spec = SceneSpec {
            lines_open: open,
            lines: max,
            line_capacity: capacity,
            ..SceneSpec::default()
        };
        Lines::new(&spec)
    }

    #[test]
    fn lines_without_room_are_not_searched() {
        assert_eq!(lines(1, i32::MAX, 0).take(None), None);
    }

    #[test]
    fn a_player_that_must_enter_a_line_enters_the_emptiest_one_where_none_has_room() {
        let mut lines = lines(1, 3, 2);
        let mut enters = |most| {
            (0..most).for_each(|_| assert!(lines.take(Some(lines.for_next())).is_some()));
            [0, 1, 2].map(|line| lines.players(Plane(line)))
        };
        assert_eq!([enters(3), enters(3), enters(2)], [[2, 1, 0], [2, 2, 2], [2, 3, 3]]);
    }

    /// The rule, by a plain list of the planes of all players.
    struct Plain {
        min: usize,
        max: i32,
        capacity: u32,
        all: Vec<i32>,
    }

    impl Plain {
        fn count(&self, plane: i32) -> u32 {
            self.all.iter().filter(|other| **other == plane).count() as u32
        }

        /// All lines, the fullest ones first.
        fn ranked(&self) -> Vec<i32> {
            let mut lines: Vec<i32> = (0..self.max).collect();
            lines.sort_by_key(|line| (Reverse(self.count(*line)), *line));
            lines
        }

        /// How many lines are open: the fewest that are not filled to 80 % by all players.
        fn wanted(&self) -> usize {
            let total: u32 = (0..self.max).map(|line| self.count(line)).sum();
            let fits = |n: &usize| total as usize * 100 < n * 80 * self.capacity.max(1) as usize;
            let wanted = (1..).find(fits).unwrap();
            wanted.max(self.min).min(self.max as usize)
        }

        fn next(&self) -> Option<i32> {
            let (ranked, wanted) = (self.ranked(), self.wanted());
            let has_room = |line: &&i32| self.count(**line) < self.capacity;
            let closing = ranked[wanted..].iter().filter(|line| self.count(**line) > 0);
            ranked[..wanted].iter().chain(closing).find(has_room).copied()
        }

        fn open(&self) -> Vec<i32> {
            let (ranked, wanted) = (self.ranked(), self.wanted());
            let closing = ranked[wanted..].iter().filter(|line| self.count(**line) > 0);
            let mut open: Vec<i32> = ranked[..wanted].iter().chain(closing).copied().collect();
            open.sort_unstable();
            open
        }
    }

    proptest! {
        #[test]
        fn any_history_agrees_with_a_plain_list(
            (min, max, capacity) in (1i32..4, 1i32..6, 0u32..6),
            history in prop::collection::vec((any::<bool>(), prop::option::of(-1i32..7)), 0..80),
        ) {
            let mut ours = lines(min, max, capacity);
            let least = min.min(max) as usize;
            let mut plain = Plain { min: least, max, capacity, all: Vec::new() };
            for (takes, plane) in history {
                if takes {
                    let want = plane.or(plain.next());
                    prop_assert_eq!(ours.take(plane.map(Plane)), want.map(Plane));
                    plain.all.extend(want);
                } else if let Some(plane) = plane {
                    ours.give_back(Plane(plane));
                    if let Some(at) = plain.all.iter().position(|p| *p == plane) {
                        plain.all.swap_remove(at);
                    }
                }
                for p in -1..7 {
                    prop_assert_eq!(ours.players(Plane(p)), plain.count(p));
                    let closes = plain.ranked().iter().skip(plain.wanted()).any(|line| *line == p);
                    prop_assert_eq!(ours.is_closing(Plane(p)), closes && plain.count(p) > 0);
                }
                let open = plain.open().into_iter().map(|p| (Plane(p), plain.count(p)));
                let open: Vec<_> = open.collect();
                prop_assert_eq!(&ours.open(2), &open[..open.len().min(2)]);
                prop_assert_eq!(ours.open(9), open);
            }
        }
    }

    /// The lines that players enter one after another, and how many lines are told of each time.
    fn joined(lines: &mut Lines, players: usize) -> Vec<(i32, usize)> {
        let join = |_| lines.take(None).map(|plane| (plane.0, lines.open(99).len()));
        (0..players).filter_map(join).collect()
    }

    #[test]
    fn another_line_opens_when_the_open_ones_are_four_fifths_full() {
        let mut lines = lines(1, 3, 5);
        let first = joined(&mut lines, 6);
        assert_eq!(first, [(0, 1), (0, 1), (0, 1), (0, 2), (0, 2), (1, 2)]);
        assert_eq!(joined(&mut lines, 12).len(), 9, "three lines of five have room for nine more");
    }

    #[test]
    fn a_line_of_too_many_is_left_to_empty() {
        let mut all = lines(1, 3, 5);
        joined(&mut all, 11);
        assert_eq!(all.open(9), [(Plane(0), 5), (Plane(1), 5), (Plane(2), 1)]);
        for _ in 0..4 {
            all.give_back(Plane(0));
        }
        // Seven players are for two lines: new ones fill lines 1 and 0, and line 2 empties.
        assert_eq!([0, 1, 2].map(|line| all.is_closing(Plane(line))), [false, false, true]);
        assert_eq!(all.take(None), Some(Plane(0)));
        all.give_back(Plane(2));
        assert_eq!(all.open(9), [(Plane(0), 2), (Plane(1), 5)]);
        // With two lines that are always open none of them closes.
        let mut two = lines(2, 3, 5);
        two.take(Some(Plane(1)));
        assert_eq!(two.open(9), [(Plane(0), 0), (Plane(1), 1)]);
        assert_eq!((two.take(None), two.is_closing(Plane(1))), (Some(Plane(1)), false));
    }

    #[test]
    fn places_of_other_processes_count_until_the_next_report() {
        let mut lines = lines(1, 3, 2);
        let taken = [(Plane(0), 1), (Plane(1), 1), (Plane(1), 1)];
        lines.set_elsewhere(taken.into_iter());
        assert_eq!([0, 1, 2].map(|p| lines.players(Plane(p))), [1, 2, 0]);
        let taken: Vec<_> = (0..4).map(|_| lines.take(None)).collect();
        assert_eq!(taken, [Some(Plane(0)), Some(Plane(2)), Some(Plane(2)), None]);
        lines.give_back(Plane(1));
        assert_eq!(lines.take(None), None, "another process assigned that place");
        let mut here: Vec<_> = lines.here().collect();
        here.sort_unstable();
        assert_eq!(here, [(Plane(0), 1), (Plane(2), 2)]);
        lines.set_elsewhere(std::iter::empty());
        assert_eq!(lines.take(None), Some(Plane(0)));
    }

    #[test]
    fn a_named_plane_is_taken_even_if_full_or_not_a_line() {
        let mut lines = lines(1, 1, 1);
        assert_eq!(lines.take(Some(Plane(0))), Some(Plane(0)));
        assert_eq!(lines.take(Some(Plane(0))), Some(Plane(0)));
        assert_eq!(lines.take(Some(Plane(77))), Some(Plane(77)));
        assert_eq!(lines.players(Plane(0)), 2);
        lines.give_back(Plane(77));
        lines.give_back(Plane(77));
        assert_eq!(lines.players(Plane(77)), 0);
    }
}

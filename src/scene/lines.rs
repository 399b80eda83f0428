//! Lines: the planes (channels) of a busy scene that automatic joins fill one after another.
//!
//! The scene's directory asks it on every join and leave. A join without a plane must never exceed
//! a line's capacity, as far as counts of other processes are known.

use rustc_hash::FxHashMap;

use super::Plane;

/// The number of players per plane of a scene, and the line for the next one.
#[derive(Debug, Clone, Default)]
pub struct Lines {
    lines: i32,
    capacity: u32,
    players: FxHashMap<Plane, u32>,
    /// Players that other processes let in, as last reported.
    elsewhere: FxHashMap<Plane, u32>,
}

impl Lines {
    /// Lines 0 to `lines` - 1 (at least one), each for `capacity` players.
    pub fn new(lines: i32, capacity: u32) -> Lines {
        Lines { lines: lines.max(1), capacity, ..Lines::default() }
    }

    /// Takes a place: in `plane` if given, which may be any plane, even a full one or none of the
    /// lines; otherwise in the first line with room. `None` if no line has room.
    pub fn take(&mut self, plane: Option<Plane>) -> Option<Plane> {
        let plane = match plane {
            Some(plane) => plane,
            None => self.first_with_room()?,
        };
        *self.players.entry(plane).or_default() += 1;
        Some(plane)
    }

    /// The first line with room.
    fn first_with_room(&self) -> Option<Plane> {
        // Of the first n + 1 lines one is empty if n planes are not: the search is short.
        let mut all = (0..self.lines).map(Plane).take_while(|_| self.capacity > 0);
        all.find(|plane| self.players(*plane) < self.capacity)
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

    /// The lines with players, and the first one with room, of `most` at most: each with its players, in order.
    pub fn open(&self, most: usize) -> Vec<(Plane, u32)> {
        let is_line = |plane: &&Plane| (0..self.lines).contains(&plane.0);
        let taken = self.players.keys().chain(self.elsewhere.keys());
        let mut open: Vec<Plane> = taken.filter(is_line).copied().collect();
        open.extend(self.first_with_room());
        open.sort_unstable();
        open.dedup();
        open.into_iter().map(|plane| (plane, self.players(plane))).take(most).collect()
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

    #[test]
    fn lines_without_room_are_not_searched() {
        assert_eq!(Lines::new(i32::MAX, 0).take(None), None);
    }

    proptest! {
        #[test]
        fn any_history_agrees_with_a_plain_list(
            (lines, capacity) in (1i32..5, 0u32..4),
            history in prop::collection::vec((any::<bool>(), prop::option::of(-1i32..6)), 0..80),
        ) {
            let mut ours = Lines::new(lines, capacity);
            let mut list: Vec<i32> = Vec::new();
            let count = |list: &[i32], p: i32| list.iter().filter(|q| **q == p).count() as u32;
            for (takes, plane) in history {
                if takes {
                    let room = (0..lines).find(|p| count(&list, *p) < capacity);
                    let want = plane.or(room);
                    prop_assert_eq!(ours.take(plane.map(Plane)), want.map(Plane));
                    list.extend(want);
                } else if let Some(plane) = plane {
                    ours.give_back(Plane(plane));
                    if let Some(at) = list.iter().position(|p| *p == plane) {
                        list.swap_remove(at);
                    }
                }
                for p in -1..6 {
                    prop_assert_eq!(ours.players(Plane(p)), count(&list, p));
                }
                let room = (0..lines).find(|p| count(&list, *p) < capacity);
                let open = (0..lines).filter(|p| count(&list, *p) > 0 || Some(*p) == room);
                let open: Vec<_> = open.map(|p| (Plane(p), count(&list, p))).collect();
                prop_assert_eq!(&ours.open(2), &open[..open.len().min(2)]);
                prop_assert_eq!(ours.open(9), open);
            }
        }
    }

    #[test]
    fn automatic_joins_fill_one_line_after_another() {
        let mut lines = Lines::new(2, 2);
        let taken: Vec<_> = (0..5).map(|_| lines.take(None)).collect();
        assert_eq!(taken, [Some(Plane(0)), Some(Plane(0)), Some(Plane(1)), Some(Plane(1)), None]);
        lines.give_back(Plane(0));
        assert_eq!(lines.take(None), Some(Plane(0)));
    }

    #[test]
    fn places_of_other_processes_count_until_the_next_report() {
        let mut lines = Lines::new(3, 2);
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
        let mut lines = Lines::new(1, 1);
        assert_eq!(lines.take(Some(Plane(0))), Some(Plane(0)));
        assert_eq!(lines.take(Some(Plane(0))), Some(Plane(0)));
        assert_eq!(lines.take(Some(Plane(77))), Some(Plane(77)));
        assert_eq!(lines.players(Plane(0)), 2);
        lines.give_back(Plane(77));
        lines.give_back(Plane(77));
        assert_eq!(lines.players(Plane(77)), 0);
    }
}

//! Lines: the planes of a busy scene that automatic joins fill one after another.

use rustc_hash::FxHashMap;

use super::Plane;

/// How many players are in each plane of a scene, and where the next one fits.
#[derive(Debug, Clone)]
pub struct Lines {
    lines: i32,
    capacity: u32,
    players: FxHashMap<Plane, u32>,
}

impl Lines {
    /// Lines 0 to `lines` - 1 (at least one), each with room for `capacity` players.
    pub fn new(lines: i32, capacity: u32) -> Lines {
        Lines { lines: lines.max(1), capacity, players: FxHashMap::default() }
    }

    /// Takes a place: in `plane` if named, which may be any plane, line or not, full or not; else in
    /// the first line with room. `None` when no line has room.
    pub fn take(&mut self, plane: Option<Plane>) -> Option<Plane> {
        let plane = match plane {
            Some(plane) => plane,
            None => (0..self.lines).map(Plane).find(|p| self.players(*p) < self.capacity)?,
        };
        *self.players.entry(plane).or_default() += 1;
        Some(plane)
    }

    /// Gives a place back.
    pub fn give_back(&mut self, plane: Plane) {
        if let Some(n) = self.players.get_mut(&plane) {
            *n = n.saturating_sub(1);
            if *n == 0 {
                self.players.remove(&plane);
            }
        }
    }

    /// Players in a plane.
    pub fn players(&self, plane: Plane) -> u32 {
        self.players.get(&plane).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn automatic_joins_fill_one_line_after_another() {
        let mut lines = Lines::new(2, 2);
        let taken: Vec<_> = (0..5).map(|_| lines.take(None)).collect();
        assert_eq!(taken, [Some(Plane(0)), Some(Plane(0)), Some(Plane(1)), Some(Plane(1)), None]);
        lines.give_back(Plane(0));
        assert_eq!(lines.take(None), Some(Plane(0)));
    }

    #[test]
    fn a_named_plane_is_taken_even_when_full_or_no_line() {
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

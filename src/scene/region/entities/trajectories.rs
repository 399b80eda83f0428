//! Trajectories of the entities that move, real or mirrored, in a dense array of their own: a tick goes
//! through this array to bring every entity to its present position.

use super::Renumbering;
use crate::scene::movement::{ServerMs, Trajectory};

/// No track.
const NONE: u32 = u32::MAX;

/// An entity that has a trajectory.
#[derive(Debug, Clone)]
pub struct MovingEntity {
    pub slot: u32,
    /// It has come to its end: its place is the same until the next trajectory.
    pub rests: bool,
    /// A door has closed in its way, which its client may not know.
    pub cut: bool,
    /// When its owner ends it when no command comes; for a mirrored entity never.
    pub lapses_at: ServerMs,
    pub trajectory: Trajectory,
}

impl MovingEntity {
    /// How far the entity may still go unless a command arrives, centimetres; at least that. The clock of its client may
    /// be a second ahead.
    pub fn way_cm(&self, now: ServerMs) -> u32 {
        let left_ms = self.trajectory.lasts_ms.saturating_sub(self.trajectory.elapsed_ms(now));
        let left_ms = u64::from(left_ms).min(self.lapses_at.since(now)).saturating_add(1_000);
        let speed = u64::from(self.trajectory.motion.speed_cm_s());
        u32::try_from(left_ms.saturating_mul(speed) / 1_000 + 1).unwrap_or(u32::MAX)
    }
}

/// All trajectories that a region knows.
#[derive(Debug, Default)]
pub struct Trajectories {
    /// By slot: the place in `all`.
    of: Vec<u32>,
    pub(super) all: Vec<MovingEntity>,
}

impl Trajectories {
    /// There are so many slots.
    pub fn grow(&mut self, slots: usize) {
        self.of.resize(slots, NONE);
    }

    /// The trajectory of the entity at `slot`, if it has one.
    #[inline]
    pub fn get(&self, slot: u32) -> Option<&MovingEntity> {
        self.all.get(self.of[slot as usize] as usize)
    }

    /// The entity at `slot` moves like this from now on.
    pub fn set(&mut self, slot: u32, trajectory: Trajectory, lapses_at: ServerMs) {
        let track = MovingEntity { slot, rests: false, cut: false, lapses_at, trajectory };
        match self.all.get_mut(self.of[slot as usize] as usize) {
            Some(old) => {
                *old = MovingEntity { cut: old.cut && old.trajectory == trajectory, ..track }
            }
            None => {
                self.of[slot as usize] = self.all.len() as u32;
                self.all.push(track);
            }
        }
    }

    /// The entity at `slot` has no trajectory any more.
    pub fn drop(&mut self, slot: u32) {
        let at = std::mem::replace(&mut self.of[slot as usize], NONE) as usize;
        if at >= self.all.len() {
            return;
        }
        self.all.swap_remove(at);
        if let Some(moved) = self.all.get(at) {
            self.of[moved.slot as usize] = at as u32;
        }
    }

    /// Whether a door has closed in the way of the entity at `slot`.
    pub fn cut(&mut self, slot: u32, cut: bool) {
        if let Some(track) = self.all.get_mut(self.of[slot as usize] as usize) {
            track.cut = cut;
        }
    }

    /// A mirrored entity's walk ends when its owner says so.
    pub fn mirrored(&mut self, slot: u32) {
        if let Some(track) = self.all.get_mut(self.of[slot as usize] as usize) {
            (track.lapses_at, track.cut) = (ServerMs(u64::MAX), false);
        }
    }

    /// Slots are numbered anew.
    pub fn renumber(&mut self, new: &Renumbering) {
        self.all.iter_mut().for_each(|track| new.apply(&mut track.slot));
        self.all.sort_unstable_by_key(|track| track.slot);
        self.of.fill(NONE);
        for (at, track) in self.all.iter().enumerate() {
            self.of[track.slot as usize] = at as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::Pos;
    use crate::scene::movement::Move;

    fn stand(x: i32) -> Trajectory {
        let motion = Move::stand(Pos::ground(x, 0));
        Trajectory { motion, start: ServerMs(0), lasts_ms: 0 }
    }

    #[test]
    fn each_slot_finds_its_trajectory() {
        let mut trajectories = Trajectories::default();
        trajectories.grow(5);
        (0..5).for_each(|slot| trajectories.set(slot, stand(slot as i32), ServerMs(9)));
        trajectories.drop(1);
        trajectories.drop(1);
        trajectories.drop(4);
        trajectories.set(2, stand(22), ServerMs(9));
        let at = |slot| trajectories.get(slot).map(|t| (t.slot, t.trajectory.motion.start().x));
        let found: Vec<_> = (0..5).map(at).collect();
        assert_eq!(found, [Some((0, 0)), None, Some((2, 22)), Some((3, 3)), None]);
        assert_eq!(trajectories.all.len(), 3);
    }
}

//! The crowd tier: the players around a patch as dots, encoded once and shared by all viewers who stand
//! in the patch, and where heights count at about the same height.
//!
//! The frame builder asks [`Crowds::of_viewer`] for every viewer. Dots have no ids: a client draws them, and
//! knows players by its view list alone. A dot is no more than a player that each of these viewers could see, in
//! a coarse cell: *must never happen here:* a dot beyond the range of a viewer, or one whose place or order says
//! more than its cell. No viewer is told of a crowd more often than the scene says.

use bytes::Bytes;
use rustc_hash::FxHashMap;

use crate::scene::index::Patch;
use crate::scene::messages::Crowd;
use crate::scene::region::entities::EntityStore;
use crate::scene::spec::CrowdSpec;
use crate::scene::{Heights, Pos, RangeSet, Scene, TickStamp, Visibility};

/// A crowd reaches at most this many patch sides from the middle of its patch, along either axis.
const REACH_PATCHES: i64 = 4;

/// Cells per patch side.
const CELLS: i64 = 8;

/// The cell that begins in the middle of the patch.
const MIDDLE: i64 = 128;

/// The crowds of a tick, made when the first viewer needs them.
#[derive(Debug, Default)]
pub struct Crowds {
    spec: Option<CrowdSpec>,
    sees: Sees,
    levels: Levels,
    /// By plane, patch and level: the place in the batch.
    made: FxHashMap<(u32, i32, i32, i32), u32>,
    /// Of the crowd under way: squared distance, id, cell.
    near: Vec<(u64, u64, [u8; 2])>,
}

/// The cell of a coordinate that lies `off` centimetres from the middle of a patch, if it is in reach.
fn cell(off: i64, patch_cm: i64) -> Option<u8> {
    let reach = REACH_PATCHES * patch_cm;
    (-reach..reach).contains(&off).then(|| ((off * CELLS).div_euclid(patch_cm) + MIDDLE) as u8)
}

/// Which players every viewer of a patch could see.
#[derive(Debug, Clone, Copy, Default)]
enum Sees {
    /// Those in these rings around the patch.
    Rings(RangeSet),
    /// Those no farther than this from any place in the patch, centimetres.
    Circle(i32),
    #[default]
    All,
}

impl Sees {
    fn of(scene: &Scene) -> Sees {
        match scene.spec.visibility {
            Visibility::Patches => Sees::Rings(scene.spec.range),
            Visibility::Circle { leave_cm, .. } => Sees::Circle(leave_cm),
            Visibility::All => Sees::All,
        }
    }

    /// Whether it is a player in this ring, so far from the middle of the patch along each axis.
    fn has(self, ring: u32, off: [i64; 2], patch_cm: [i64; 2]) -> bool {
        match self {
            Sees::Rings(range) => range.has_ring(ring),
            Sees::Circle(leave_cm) => {
                let farthest = [0, 1].map(|axis| off[axis].abs() + patch_cm[axis] / 2 + 1);
                let d2 = farthest[0] * farthest[0] + farthest[1] * farthest[1];
                d2 <= i64::from(leave_cm) * i64::from(leave_cm)
            }
            Sees::All => true,
        }
    }
}

/// Heights cut into levels, whose viewers share a crowd.
#[derive(Debug, Clone, Copy)]
struct Levels {
    heights: Heights,
    /// Height of a level, centimetres; at least 1.
    side_cm: i32,
}

impl Default for Levels {
    fn default() -> Levels {
        Levels::of(Heights::ANY)
    }
}

impl Levels {
    /// Half as high as the limit, so that a viewer is told most of what it could see.
    fn of(heights: Heights) -> Levels {
        let side_cm = i32::try_from(heights.enter_cm / 2).unwrap_or(i32::MAX).max(1);
        Levels { heights, side_cm }
    }

    /// Whether there is one level, since heights do not count.
    fn is_one(self) -> bool {
        self.heights == Heights::ANY
    }

    /// The level of a height.
    fn at(self, y: i32) -> i32 {
        if self.is_one() { 0 } else { y.div_euclid(self.side_cm) }
    }

    /// Whether every viewer of a level could see a player at a height.
    fn sees(self, level: i32, y: i32) -> bool {
        let low = level.saturating_mul(self.side_cm);
        let high = low.saturating_add(self.side_cm - 1);
        [low, high].iter().all(|viewer| self.heights.hold(*viewer, y, true))
    }
}

impl Crowds {
    /// Begins a tick.
    pub fn begin(&mut self, scene: &Scene) {
        (self.spec, self.sees) = (scene.spec.crowd, Sees::of(scene));
        self.levels = Levels::of(scene.spec.heights());
        self.made.clear();
    }

    /// The crowd that the viewer at `slot` is to be told of in this tick, if any: its place in `batch`.
    #[inline]
    pub fn of_viewer(
        &mut self,
        tick: TickStamp,
        entities: &EntityStore,
        slot: u32,
        batch: &mut Vec<Crowd>,
    ) -> Option<u32> {
        let spec = self.spec?;
        let place = entities.place(slot);
        // Patches take turns, so that not all crowds are made in one tick.
        let turn = (place.patch.x as u32).wrapping_mul(7).wrapping_add(place.patch.z as u32);
        if !tick.bits().wrapping_add(turn).is_multiple_of(spec.interval) {
            return None;
        }
        let level = self.levels.at(place.y);
        let key = (place.plane_ix, place.patch.x, place.patch.z, level);
        if let Some(ix) = self.made.get(&key) {
            return Some(*ix);
        }
        batch.push(self.make(spec, entities, (place.plane_ix, place.patch, level))?);
        let ix = batch.len() as u32 - 1;
        self.made.insert(key, ix);
        Some(ix)
    }

    /// Adds the crowds of another batch after those of this one, those left out that are there already. Gives the
    /// place of each.
    pub fn append(
        &mut self,
        later: &Crowds,
        crowds: &mut Vec<Crowd>,
        of_later: Vec<Crowd>,
    ) -> Vec<u32> {
        let mut keys: Vec<_> = later.made.iter().map(|(key, ix)| (*ix, *key)).collect();
        keys.sort_unstable();
        let places = keys.into_iter().zip(of_later).map(|((_, key), crowd)| {
            *self.made.entry(key).or_insert_with(|| {
                crowds.push(crowd);
                crowds.len() as u32 - 1
            })
        });
        places.collect()
    }

    /// The players around a patch and at about a level, those nearest to its middle, in the order of their cells.
    fn make(
        &mut self,
        spec: CrowdSpec,
        entities: &EntityStore,
        (plane_ix, patch, level): (u32, Patch, i32),
    ) -> Option<Crowd> {
        let grid = entities.players_of(plane_ix)?;
        let sides = grid.patch_cm().map(i64::from);
        let corner = grid.corner_of(patch);
        let half = grid.patch_cm().map(|side| side / 2);
        let middle =
            Pos::ground(corner.x.saturating_add(half[0]), corner.z.saturating_add(half[1]));
        self.near.clear();
        let (near, sees, levels) = (&mut self.near, self.sees, self.levels);
        grid.rings(patch, REACH_PATCHES as i32, |ring, entries| {
            for e in entries {
                let off = |at: i32, from: i32| i64::from(at) - i64::from(from);
                let off = [off(e.x, middle.x), off(e.z, middle.z)];
                let is_level = || levels.is_one() || levels.sees(level, entities.place(e.slot).y);
                if !sees.has(ring, off, sides) || !is_level() {
                    continue;
                }
                if let [Some(x), Some(z)] = [0, 1].map(|axis| cell(off[axis], sides[axis])) {
                    let id = entities.body(e.slot).id.0;
                    near.push((Pos::ground(e.x, e.z).dist2(middle), id, [x, z]));
                }
            }
        });
        let max = spec.max as usize;
        if near.len() > max {
            near.select_nth_unstable(max - 1);
            near.truncate(max);
        }
        // Not by distance, which would say more than the cells do.
        near.sort_unstable_by_key(|(.., cell)| *cell);
        let dots: Vec<u8> = near.iter().flat_map(|(.., cell)| *cell).collect();
        Some(Crowd { x: middle.x, z: middle.z, dots: Bytes::from(dots) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_cover_the_reach_evenly_and_nothing_beyond() {
        let side = 3_200;
        assert_eq!((cell(0, side), cell(-1, side)), (Some(128), Some(127)));
        assert_eq!((cell(399, side), cell(400, side)), (Some(128), Some(129)));
        assert_eq!((cell(-4 * side, side), cell(4 * side - 1, side)), (Some(96), Some(159)));
        assert_eq!((cell(-4 * side - 1, side), cell(4 * side, side)), (None, None));
        // Patches need not be a multiple of a cell.
        assert_eq!((cell(-401, 100), cell(-400, 100), cell(399, 100)), (None, Some(96), Some(159)));
    }

    #[test]
    fn every_viewer_of_a_level_could_see_each_player_of_its_crowd() {
        let levels = Levels::of(Heights::within(Some(800)));
        // From -400 to -1, and 900 cm from both ends.
        let seen = |y| levels.sees(levels.at(-1), y);
        assert!(seen(-901) && seen(500) && !seen(-902) && !seen(501));
        let fine = Levels::of(Heights::within(Some(1)));
        assert!(fine.sees(fine.at(7), 6) && fine.sees(fine.at(7), 8) && !fine.sees(fine.at(7), 9));
        let flat = Levels::default();
        assert!(
            flat.at(-5) == flat.at(i32::MAX) && flat.sees(0, i32::MAX) && flat.sees(0, i32::MIN)
        );
    }

    #[test]
    fn every_viewer_of_the_patch_could_see_each_player_of_its_crowd() {
        let near = Sees::Rings(RangeSet::NEAR.or(RangeSet::FAR));
        assert!([0, 2].into_iter().all(|ring| near.has(ring, [0, 0], [100; 2])));
        assert!([1, 3].into_iter().all(|ring| !near.has(ring, [0, 0], [100; 2])));
        // From the far corner of a patch of 100: 150 + 50, and 51.
        let circle = Sees::Circle(207);
        assert!(circle.has(9, [149, 0], [100; 2]) && !circle.has(0, [151, 0], [100; 2]));
        assert!(!Sees::Circle(60).has(0, [0, 0], [100; 2]));
        // From the far corner of a patch of 100 x 10: 199 and 51, 8 and 6.
        let oblong = Sees::Circle(250);
        assert!(oblong.has(0, [198, 8], [100, 10]) && !oblong.has(0, [198, 8], [100; 2]));
    }
}

//! The crowd tier: the players around a patch as dots, encoded once and shared by all viewers who stand
//! in the patch.
//!
//! The frame builder asks [`Crowds::of_viewer`] for every viewer. Dots have no ids: a client draws them, and
//! knows players by its view list alone. No viewer is told of a crowd more often than the scene says.

use bytes::Bytes;
use rustc_hash::FxHashMap;

use crate::scene::index::Patch;
use crate::scene::messages::Crowd;
use crate::scene::region::entities::EntityStore;
use crate::scene::spec::CrowdSpec;
use crate::scene::{Pos, TickStamp};

/// A crowd reaches this many patch sides from the middle of its patch, along either axis.
const REACH_PATCHES: i64 = 4;

/// Cells per patch side: 256 cells cover both sides of the reach.
const CELLS: i64 = 128 / REACH_PATCHES;

/// The crowds of a tick, made when the first viewer needs them.
#[derive(Debug, Default)]
pub struct Crowds {
    spec: Option<CrowdSpec>,
    /// By plane and patch: the place in the batch.
    made: FxHashMap<(u32, i32, i32), u32>,
    /// Of the crowd under way: squared distance, id, cell.
    near: Vec<(u64, u64, [u8; 2])>,
}

/// The cell of a coordinate that lies `off` centimetres from the middle of a patch, if it is in reach.
fn cell(off: i64, patch_cm: i64) -> Option<u8> {
    let reach = REACH_PATCHES * patch_cm;
    (-reach..reach).contains(&off).then(|| ((off + reach) * CELLS / patch_cm) as u8)
}

impl Crowds {
    /// Begins a tick.
    pub fn begin(&mut self, spec: Option<CrowdSpec>) {
        self.spec = spec;
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
        let key = (place.plane_ix, place.patch.x, place.patch.z);
        if let Some(ix) = self.made.get(&key) {
            return Some(*ix);
        }
        batch.push(self.make(spec, entities, place.plane_ix, place.patch)?);
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

    /// The players around a patch, the nearest to its middle first.
    fn make(
        &mut self,
        spec: CrowdSpec,
        entities: &EntityStore,
        plane_ix: u32,
        patch: Patch,
    ) -> Option<Crowd> {
        let grid = entities.players_of(plane_ix)?;
        let side = i64::from(grid.patch_cm());
        let corner = grid.corner_of(patch);
        let half = grid.patch_cm() / 2;
        let middle = Pos::ground(corner.x.saturating_add(half), corner.z.saturating_add(half));
        self.near.clear();
        let near = &mut self.near;
        grid.rings(patch, REACH_PATCHES as i32, |_, entries| {
            for e in entries {
                let off = |at: i32, from: i32| i64::from(at) - i64::from(from);
                let cells = (cell(off(e.x, middle.x), side), cell(off(e.z, middle.z), side));
                if let (Some(x), Some(z)) = cells {
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
        near.sort_unstable();
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
        assert_eq!((cell(-4 * side, side), cell(4 * side - 1, side)), (Some(0), Some(255)));
        assert_eq!((cell(-4 * side - 1, side), cell(4 * side, side)), (None, None));
        // Patches need not be a multiple of a cell.
        assert_eq!((cell(-401, 100), cell(-400, 100), cell(399, 100)), (None, Some(0), Some(255)));
    }
}

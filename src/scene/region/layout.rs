//! Where entities are in memory: whoever stands near another has a slot near the other's, so that one
//! player after the next finds in the cache what the one before it has looked at. In a crowd of many
//! thousands most of a tick is spent on waiting for memory.

use super::Region;
use super::bodies::{Bodies, NO_SLOT, Role};

/// Ticks between two sortings.
pub const SORT_TICKS: u64 = 16;

/// Side of the squares by which entities are sorted, in patches.
const SORT_PATCHES: i32 = 8;

/// New slots, by the old ones.
#[derive(Debug)]
pub struct Renumbering(Vec<u32>);

impl Renumbering {
    /// Who was at `slot` is at the new one now; of a slot that was never used nobody says anything.
    #[inline]
    pub fn apply(&self, slot: &mut u32) {
        *slot = self.0.get(*slot as usize).copied().unwrap_or(NO_SLOT);
    }
}

impl Region {
    /// Gives out slots anew by place, square by square, and puts players into the order of theirs.
    /// No act of the tick may have been noted yet.
    pub(super) fn sort_by_place(&mut self) {
        let Bodies { places, cold, .. } = &self.bodies;
        let mut order: Vec<u32> = (0..places.len() as u32).collect();
        order.sort_by_cached_key(|slot| {
            let (place, free) =
                (&places[*slot as usize], matches!(cold[*slot as usize].role, Role::Free));
            let (x, z) = (place.patch.x, place.patch.z);
            let square = (z.div_euclid(SORT_PATCHES), x.div_euclid(SORT_PATCHES));
            (free, place.plane_ix, square, z, x, *slot)
        });
        let mut new = vec![NO_SLOT; order.len()];
        for (to, from) in order.iter().enumerate() {
            new[*from as usize] = to as u32;
        }
        let new = Renumbering(new);
        self.bodies.renumber(&order, &new);
        self.mail.renumber(&new);
        for viewer in &mut self.viewers {
            new.apply(&mut viewer.slot);
            viewer.registers.peers_mut().iter_mut().for_each(|p| new.apply(&mut p.slot));
            viewer.seen.iter_mut().for_each(|s| new.apply(&mut s.slot));
        }
        self.viewers.sort_unstable_by_key(|v| v.slot);
        // The registers of one player after those of the one before it, too.
        let fresh: Vec<_> = self.viewers.iter().map(|v| v.registers.moved()).collect();
        for (viewer, registers) in self.viewers.iter_mut().zip(fresh) {
            viewer.registers = registers;
        }
        for (ix, viewer) in self.viewers.iter().enumerate() {
            self.bodies.hot[viewer.slot as usize].viewer = ix as u32;
        }
    }
}

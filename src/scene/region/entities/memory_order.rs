//! Memory order: entities that stand near each other get slots near each other.
//!
//! Views are evaluated one player after the other: the next player finds in the cache what the last one has read. In a
//! crowd of many thousands most of a tick is spent on waiting for memory. The tick calls this every [`SORT_TICKS`].

use super::{EntityStore, NO_SLOT, Renumbering, Role};

/// Ticks between two sortings.
pub const SORT_TICKS: u64 = 16;

/// Side of the squares by which entities are sorted, in patches.
const SORT_PATCHES: i32 = 8;

impl EntityStore {
    /// Gives out slots anew by place, square by square. No action of the tick may have been noted yet; whatever remembers
    /// slots follows.
    pub fn sort_by_place(&mut self) -> Renumbering {
        let EntityStore { places, records, .. } = &*self;
        let mut order: Vec<u32> = (0..places.len() as u32).collect();
        order.sort_by_cached_key(|slot| {
            let (place, free) =
                (&places[*slot as usize], matches!(records[*slot as usize].role, Role::Free));
            let (x, z) = (place.patch.x, place.patch.z);
            let square = (z.div_euclid(SORT_PATCHES), x.div_euclid(SORT_PATCHES));
            (free, place.plane_ix, square, z, x, *slot)
        });
        let mut new = vec![NO_SLOT; order.len()];
        for (to, from) in order.iter().enumerate() {
            new[*from as usize] = to as u32;
        }
        let new = Renumbering(new);
        self.renumber(&order, &new);
        new
    }
}

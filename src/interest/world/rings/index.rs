//! Which entities are in which patch. Patches come in blocks of 4 x 4, so that the 5 x 5 patches around
//! one are in four blocks.

use std::ops::RangeInclusive;

use rustc_hash::FxHashMap;

/// Patches along a side of a block.
const BLOCK: usize = 4;

/// Patches around one that matter, along an axis.
const REACH: i64 = 2;

/// A patch of a plane, in an order in which the patches of a row are neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell(pub u64);

impl Cell {
    pub fn new(plane: i32, x: i64, z: i64) -> Cell {
        Cell(u64::from(plane as u32) << 32 | (z as u64) << 16 | x as u64)
    }

    pub fn x(self) -> i64 {
        (self.0 & 0xffff) as i64
    }

    pub fn z(self) -> i64 {
        (self.0 >> 16 & 0xffff) as i64
    }

    pub fn plane(self) -> i32 {
        (self.0 >> 32) as u32 as i32
    }

    /// The ring of another patch around this one; `None` if it is in none.
    #[inline]
    pub fn ring(self, other: Cell) -> Option<u32> {
        if self.0 >> 32 != other.0 >> 32 {
            return None;
        }
        let apart = self.x().abs_diff(other.x()).max(self.z().abs_diff(other.z()));
        (apart <= 2).then_some(apart as u32)
    }
}

/// An entity in a patch.
#[derive(Debug, Clone, Copy)]
pub struct Member {
    pub slot: u32,
    pub class: u16,
    /// It is about to change.
    pub is_changing: bool,
}

/// The entities of a patch.
#[derive(Debug, Clone, Default)]
pub struct Patch {
    pub members: Vec<Member>,
    /// How many of them are about to change.
    pub changing: u32,
}

#[derive(Debug, Clone, Default)]
struct Block {
    patches: [Patch; BLOCK * BLOCK],
    /// Number of members.
    count: usize,
}

/// Number of shards, a power of two: more than threads, so that threads have about the same work.
const SHARDS: usize = if cfg!(test) { 4 } else { 64 };

/// A part of the blocks, which one thread changes.
#[derive(Debug, Clone, Default)]
pub struct Shard(FxHashMap<Cell, Box<Block>>);

/// The patches with entities.
#[derive(Debug, Clone)]
pub struct Index(Vec<Shard>);

/// The block of a patch, and the number of the patch in it.
fn split(cell: Cell) -> (Cell, usize) {
    let (x, z) = (cell.x() as usize, cell.z() as usize);
    (block(cell.plane(), cell.x(), cell.z()), z % BLOCK * BLOCK + x % BLOCK)
}

fn block(plane: i32, x: i64, z: i64) -> Cell {
    Cell::new(plane, x / BLOCK as i64, z / BLOCK as i64)
}

fn shard(block: Cell) -> usize {
    (block.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % SHARDS
}

impl Shard {
    /// Adds an entity.
    pub fn insert(&mut self, cell: Cell, slot: u32, class: u16) {
        let (block, at) = split(cell);
        let block = self.0.entry(block).or_default();
        block.patches[at].members.push(Member { slot, class, is_changing: false });
        block.count += 1;
    }

    /// Says whether an entity is about to change.
    pub fn mark(&mut self, cell: Cell, slot: u32, is_changing: bool) {
        let (block, at) = split(cell);
        let Some(block) = self.0.get_mut(&block) else { return };
        let patch = &mut block.patches[at];
        let Some(member) = patch.members.iter_mut().find(|member| member.slot == slot) else {
            return;
        };
        let was_changing = std::mem::replace(&mut member.is_changing, is_changing);
        patch.changing = patch.changing + u32::from(is_changing) - u32::from(was_changing);
    }

    /// Removes an entity.
    pub fn remove(&mut self, cell: Cell, slot: u32) {
        let (key, at) = split(cell);
        let Some(block) = self.0.get_mut(&key) else { return };
        let patch = &mut block.patches[at];
        let Some(place) = patch.members.iter().position(|member| member.slot == slot) else {
            return;
        };
        let gone = patch.members.swap_remove(place);
        patch.changing -= u32::from(gone.is_changing);
        if patch.members.is_empty() {
            patch.members = Vec::new();
        }
        block.count -= 1;
        if block.count == 0 {
            self.0.remove(&key);
        }
    }
}

impl Default for Index {
    fn default() -> Index {
        Index(vec![Shard::default(); SHARDS])
    }
}

impl Index {
    /// The shards, to change.
    pub fn shards(&mut self) -> &mut [Shard] {
        &mut self.0
    }

    /// The number of the shard that has a patch.
    pub fn shard_of(cell: Cell) -> usize {
        shard(split(cell).0)
    }

    fn block(&self, block: Cell) -> Option<&Block> {
        self.0[shard(block)].0.get(&block).map(Box::as_ref)
    }

    /// Calls `visit` for those of the 5 x 5 patches around one that have entities.
    #[inline]
    pub fn around(&self, cell: Cell, mut visit: impl FnMut(Cell, &Patch)) {
        let (xs, zs) = (near(cell.x()), near(cell.z()));
        for z0 in steps(&zs) {
            for x0 in steps(&xs) {
                let Some(block) = self.block(block(cell.plane(), x0, z0)) else { continue };
                for z in within(&zs, z0) {
                    for x in within(&xs, x0) {
                        let patch = &block.patches[(z - z0) as usize * BLOCK + (x - x0) as usize];
                        if !patch.members.is_empty() {
                            visit(Cell::new(cell.plane(), x, z), patch);
                        }
                    }
                }
            }
        }
    }
}

/// The rows or columns around one.
fn near(at: i64) -> RangeInclusive<i64> {
    (at - REACH).max(0)..=(at + REACH).min(0xffff)
}

/// The first rows or columns of the blocks of a range.
fn steps(range: &RangeInclusive<i64>) -> impl Iterator<Item = i64> + use<> {
    let first = range.start() / BLOCK as i64 * BLOCK as i64;
    (first..=*range.end()).step_by(BLOCK)
}

/// The part of a range in the block that begins at `from`.
fn within(range: &RangeInclusive<i64>, from: i64) -> RangeInclusive<i64> {
    from.max(*range.start())..=(from + BLOCK as i64 - 1).min(*range.end())
}

//! Tiles that are occupied: on each stands at least one entity, real or ghost, of a kind that blocks.
//!
//! The store keeps them in step with where entities stand. Movement asks them beside the ground, and of the tiles that
//! were taken since the last tick, so that paths are checked again. In a scene without such kinds nothing is ever here.

use rustc_hash::FxHashMap;

use crate::scene::{Kind, Plane, Pos, Scene, Tile};

/// The tiles that entities occupy, with how many stand on each.
#[derive(Debug)]
pub struct Blockers {
    /// Kinds whose entities occupy their tiles, a bit each.
    kinds: [u64; 4],
    tile_cm: i32,
    tiles: FxHashMap<(Plane, Tile), u32>,
    /// Tiles that an entity has come to occupy since paths were checked.
    taken: Vec<(Plane, Tile)>,
}

impl Blockers {
    /// No entity yet.
    pub fn new(scene: &Scene) -> Blockers {
        let mut kinds = [0; 4];
        for kind in (0..=u8::MAX).filter(|kind| scene.blocks(Kind(*kind))) {
            kinds[usize::from(kind >> 6)] |= 1 << (kind & 63);
        }
        let tile_cm = scene.tile_cm().max(1);
        Blockers { kinds, tile_cm, tiles: FxHashMap::default(), taken: Vec::new() }
    }

    /// Whether entities of a kind occupy their tiles.
    #[inline]
    pub fn has_kind(&self, kind: Kind) -> bool {
        self.kinds[usize::from(kind.0 >> 6)] >> (kind.0 & 63) & 1 != 0
    }

    /// Whether no tile is occupied.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.tiles.is_empty()
    }

    /// An entity of a kind that blocks is at `pos` from now on.
    pub(super) fn enter(&mut self, plane: Plane, pos: Pos) {
        if plane != Plane::LIMBO {
            let at = (plane, Tile::of(pos, self.tile_cm));
            *self.tiles.entry(at).or_default() += 1;
            self.taken.push(at);
        }
    }

    /// An entity of a kind that blocks is no more at `pos`.
    pub(super) fn leave(&mut self, plane: Plane, pos: Pos) {
        let at = (plane, Tile::of(pos, self.tile_cm));
        let Some(count) = self.tiles.get_mut(&at) else { return };
        *count -= 1;
        if *count == 0 {
            self.tiles.remove(&at);
        }
    }

    /// An entity of a kind that blocks goes from a position to another one of its plane.
    pub(super) fn pass(&mut self, plane: Plane, (from, to): (Pos, Pos)) {
        if Tile::of(from, self.tile_cm) != Tile::of(to, self.tile_cm) {
            self.leave(plane, from);
            self.enter(plane, to);
        }
    }

    /// What is in the way of an entity of this kind that stands at `pos`: it does not block itself.
    #[inline]
    pub fn for_entity(&self, kind: Kind, pos: Pos) -> Option<Obstacles<'_>> {
        if self.is_empty() {
            return None;
        }
        let own = self.has_kind(kind).then(|| Tile::of(pos, self.tile_cm));
        Some(Obstacles { blockers: self, own })
    }

    /// The tiles that were taken since this was asked last.
    pub fn take_taken(&mut self) -> Vec<(Plane, Tile)> {
        std::mem::take(&mut self.taken)
    }
}

/// The occupied tiles as one entity meets them.
#[derive(Debug, Clone, Copy)]
pub struct Obstacles<'a> {
    blockers: &'a Blockers,
    /// The tile that the entity itself occupies.
    own: Option<Tile>,
}

impl Obstacles<'_> {
    /// Whether nobody else occupies a tile of the entity's plane.
    pub fn leave_free(&self, plane: Plane, tile: Tile) -> bool {
        let count = self.blockers.tiles.get(&(plane, tile)).copied().unwrap_or(0);
        count <= u32::from(self.own == Some(tile))
    }
}

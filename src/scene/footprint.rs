//! Footprints: which tiles the body of an entity occupies.
//!
//! Regions and clients compute them with the same integers. Movement asks for them; nothing here knows of entities.

use super::{Pos, Tile, TileRect};

/// Most tiles along each side of a footprint.
pub const MAX_FOOTPRINT_TILES: i32 = 16;

/// The size of a body on a grid of tiles. The body is a rectangle around the entity's position, and occupies the tiles
/// whose middles lie in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footprint {
    tile_cm: i32,
    /// From the entity to a point in the first column and row, centimetres; at most 0.
    first: [i32; 2],
    /// From the entity to a point in the last column and row, centimetres; at least 0.
    last: [i32; 2],
}

impl Footprint {
    /// A body with these sides along x and z. A shorter side than a tile's counts as one tile.
    pub fn new(sides_cm: [i32; 2], tile_cm: i32) -> Footprint {
        let tile_cm = tile_cm.max(1);
        // Of the middles on the edges those in the south and east count.
        let beyond = sides_cm.map(|side| side.max(tile_cm) - tile_cm);
        let (first, last) = (beyond.map(|cm| cm / 2 - cm), beyond.map(|cm| cm / 2));
        Footprint { tile_cm, first, last }
    }

    /// The tiles that the body occupies where the entity is at `pos`, on the map or not.
    #[inline]
    pub fn at(&self, pos: Pos) -> TileRect {
        let off = |[x, z]: [i32; 2]| {
            let pos = Pos { x: pos.x.saturating_add(x), z: pos.z.saturating_add(z), ..pos };
            Tile::of(pos, self.tile_cm)
        };
        TileRect { first: off(self.first), last: off(self.last) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn columns(side_cm: i32, tile_cm: i32, x: i32) -> (i32, i32) {
        let TileRect { first, last } = Footprint::new([side_cm, 0], tile_cm).at(Pos::ground(x, 0));
        assert_eq!((first.z, last.z), (0, 0));
        (first.x, last.x)
    }

    #[test]
    fn a_body_of_a_tile_or_less_occupies_the_tile_on_which_it_stands() {
        for side_cm in [i32::MIN, 0, 1, 99, 100] {
            for x in [-101, -100, -1, 0, 49, 50, 51, 99, 100] {
                assert_eq!(columns(side_cm, 100, x), (x.div_euclid(100), x.div_euclid(100)));
            }
        }
    }

    #[test]
    fn a_body_occupies_the_tiles_whose_middles_it_covers() {
        assert_eq!(columns(400, 100, 1_000), (8, 11));
        assert_eq!(columns(400, 100, 1_049), (8, 11));
        assert_eq!(columns(400, 100, 1_050), (9, 12));
        assert_eq!(columns(300, 100, 1_000), (9, 11));
        assert_eq!(columns(300, 100, 1_099), (9, 11));
        // Neither even nor odd: three tiles around the middle of one, else two.
        assert_eq!(columns(250, 100, 1_050), (9, 11));
        assert_eq!(columns(250, 100, 1_010), (9, 10));
        assert_eq!(columns(250, 100, 1_090), (10, 11));
        // Across the map's west edge and beyond it.
        assert_eq!(columns(400, 100, 0), (-2, 1));
        assert_eq!(columns(300, 100, -1), (-2, 0));
        let rect = Footprint::new([800, 200], 100).at(Pos::ground(-100, 250));
        assert_eq!((rect.first, rect.last), (Tile { x: -5, z: 2 }, Tile { x: 2, z: 3 }));
        assert_eq!(rect.tiles().count(), 8 * 2);
    }

    /// The definition, in halves of a centimetre: a middle counts from beyond the west edge to the east edge.
    #[test]
    fn footprints_are_those_of_the_definition_for_all_sides_and_places() {
        for (tile_cm, side_cm) in
            (1..9).flat_map(|tile| (0..5 * tile).map(move |side| (tile, side)))
        {
            for x in -20..20 {
                let is_covered = |n: &i32| {
                    let middle = (2 * n + 1) * tile_cm;
                    2 * x - side_cm < middle && middle <= 2 * x + side_cm
                };
                let mut want: BTreeSet<i32> = (-60..60).filter(is_covered).collect();
                want.insert(x.div_euclid(tile_cm));
                let (first, last) = columns(side_cm, tile_cm, x);
                let what = format!("{side_cm} cm at {x} on tiles of {tile_cm}");
                assert_eq!((first..=last).collect::<BTreeSet<_>>(), want, "{what}");
            }
        }
    }

    #[test]
    fn sides_of_whole_tiles_cover_as_many_everywhere() {
        for (tiles, x) in (1..=16).flat_map(|tiles| (-250..250).map(move |x| (tiles, x))) {
            let (first, last) = columns(tiles * 100, 100, x);
            assert_eq!(last - first + 1, tiles, "at {x}");
        }
    }
}

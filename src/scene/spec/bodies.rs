//! Kinds that block: their check, and how far from others their bodies reach.

use super::{KindSpec, Moves, SceneSpec, SpecError, Visibility};
use crate::scene::MAX_FOOTPRINT_TILES;
use crate::scene::spec_error::{err, m, sides};

pub(super) fn check_bodies(s: &SceneSpec, errors: &mut Vec<SpecError>) {
    let blocks = s.kinds.iter().find(|kind| kind.blocks);
    if let (Some(kind), Moves::Trusted) = (blocks, s.moves.mode) {
        let rule = "has no effect where positions are trusted: set moves = \"judged\"".into();
        err(errors, "kinds.blocks", format!("true (kind {:?})", kind.name), rule);
    }
    for (kind, sides) in s.kinds.iter().filter_map(|kind| Some((kind, kind.size_cm?))) {
        if !kind.blocks {
            let rule = "has no effect on a kind that does not block: set blocks = true".into();
            err(errors, "kinds.size", size_text(kind, sides), rule);
        } else if sides.iter().any(|side| *side < 1) {
            err(errors, "kinds.size", size_text(kind, sides), "must be at least 1 cm".into());
        }
    }
    check_footprints(s, s.moves.tile_cm, errors);
}

fn size_text(kind: &KindSpec, size_cm: [i32; 2]) -> String {
    format!("{} (kind {:?})", sides(size_cm), kind.name)
}

/// No body is larger than the most tiles of a footprint.
fn check_footprints(s: &SceneSpec, tile_cm: i32, errors: &mut Vec<SpecError>) {
    let most_cm = tile_cm.max(1).saturating_mul(MAX_FOOTPRINT_TILES);
    for (kind, sides) in s.kinds.iter().filter_map(|kind| Some((kind, kind.size_cm?))) {
        if kind.blocks && sides.iter().any(|side| *side > most_cm) {
            let (most, tile) = (m(most_cm), m(tile_cm));
            let rule = format!("must be at most {most}: {MAX_FOOTPRINT_TILES} tiles of {tile}");
            err(errors, "kinds.size", size_text(kind, sides), rule);
        }
    }
}

/// What must hold of bodies on a map with tiles of this side, in a scene where entities know of others within `far_cm`.
pub(super) fn check_on_map(s: &SceneSpec, tile_cm: i32, far_cm: i32, errors: &mut Vec<SpecError>) {
    check_footprints(s, tile_cm, errors);
    let near_cm = bodies_reach_cm(s, tile_cm);
    if near_cm > far_cm && s.visibility != Visibility::All {
        let rule = format!(
            "kinds that block must be in range on the next tile: half of the largest body and one and a half tiles are {}, \
             the range is {}",
            m(near_cm),
            m(far_cm)
        );
        err(errors, "tile", m(tile_cm), rule);
    }
}

/// How far along an axis from where an entity stands another may be whose body occupies the next tile, centimetres; 0
/// where no kind blocks.
pub(super) fn bodies_reach_cm(s: &SceneSpec, tile_cm: i32) -> i32 {
    let bodies = s.kinds.iter().filter(|kind| kind.blocks);
    let longest = |kind: &KindSpec| kind.size_cm.map_or(0, |[x, z]| x.max(z)).max(tile_cm);
    // The middle of the next tile is up to one and a half tiles from the one, and up to half a body from the other.
    let reach = |body_cm: i32| (3 * i64::from(tile_cm) + i64::from(body_cm) + 1) / 2;
    bodies.map(longest).max().map_or(0, |body_cm| i32::try_from(reach(body_cm)).unwrap_or(i32::MAX))
}

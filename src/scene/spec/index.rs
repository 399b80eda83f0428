//! Checks the memory of the entity index: a region has one index per kind and plane, over its
//! rectangle and the band around it. A legal scene fits into memory before any player has joined.

use super::{LayerSpec, SceneSpec, SpecError};
use crate::scene::Rect;
use crate::scene::index::{MAX_PATCHES, bytes_empty, patches_of};
use crate::scene::layout::RegionMap;
use crate::scene::spec_error::{err, sides};

/// Checks that no region's index has more than [`MAX_PATCHES`] patches.
pub(super) fn check_index(
    s: &SceneSpec,
    band_cm: i32,
    map: &RegionMap,
    errors: &mut Vec<SpecError>,
) {
    let bounds = map.bounds;
    let grounds: Vec<Rect> =
        map.regions.iter().map(|r| ground_of(r.rect, band_cm, bounds)).collect();
    for layer in &s.layers {
        let count = |patch_cm: [i32; 2]| {
            let patches = |ground: &Rect| {
                let (columns, rows) = patches_of(*ground, patch_cm);
                columns.saturating_mul(rows)
            };
            grounds.iter().map(patches).max().unwrap_or(0)
        };
        let found = count(layer.patch_cm);
        if found > MAX_PATCHES {
            refuse(s, layer, found, count, errors);
        }
    }
}

fn ground_of(rect: Rect, band_cm: i32, bounds: Rect) -> Rect {
    let grown = rect.grown(band_cm);
    Rect {
        x0: grown.x0.max(bounds.x0),
        z0: grown.z0.max(bounds.z0),
        x1: grown.x1.min(bounds.x1),
        z1: grown.z1.min(bounds.z1),
    }
}

fn refuse(
    s: &SceneSpec,
    layer: &LayerSpec,
    found: u64,
    count: impl Fn([i32; 2]) -> u64,
    errors: &mut Vec<SpecError>,
) {
    let twice = |[x, z]: &[i32; 2]| Some([x.checked_mul(2)?, z.checked_mul(2)?]);
    let larger = std::iter::successors(Some(layer.patch_cm), twice);
    let mut legal = larger.take_while(|patch| patch.iter().all(|side| *side <= s.land_cm));
    let enough = legal.find(|patch| count(*patch) <= MAX_PATCHES);
    let patch = enough.map_or(String::new(), |patch| format!("patches of {}, or ", sides(patch)));
    let mib = bytes_empty(MAX_PATCHES) >> 20;
    let rule = format!(
        "makes {found} patches in the index of a region of {} x {} lands, for each kind and plane; at most \
         {MAX_PATCHES} ({mib} MiB) are allowed: choose {patch}smaller regions (region)",
        s.region_lands_x, s.region_lands_z
    );
    err(errors, "patch", format!("{} (layer {:?})", sides(layer.patch_cm), layer.name), rule);
}

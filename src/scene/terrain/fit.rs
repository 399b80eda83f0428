//! Checks that a terrain fits its scene: equal size, and a free spawn point.
//!
//! [`Scene::with_terrain`](crate::scene::Scene::with_terrain) calls it. An error must name figures
//! that would be legal.

use std::sync::Arc;

use super::{Ground, Terrain, Tile};
use crate::scene::spec_error::{SpecError, m};
use crate::scene::{Plane, Pos};

/// The rules that a scene of this width and depth (centimetres) with this spawn point breaks, with the
/// figures that would be right.
pub(in crate::scene) fn misfits(
    (width_cm, depth_cm): (i32, i32),
    spawn: Pos,
    terrain: &Arc<Terrain>,
) -> Vec<SpecError> {
    let sides = [(terrain.width_cm(), width_cm), (terrain.depth_cm(), depth_cm)];
    if sides.iter().any(|(map, scene)| *map != i64::from(*scene)) {
        return vec![wrong_size((width_cm, depth_cm), terrain)];
    }
    let ground = Ground::new(terrain.clone());
    if ground.is_free(Plane(0), ground.tile_of(spawn)) {
        return Vec::new();
    }
    vec![blocked_spawn(spawn, &ground)]
}

/// Heights beyond the limit of a scene.
pub(in crate::scene) fn too_high(limit_cm: i32, terrain: &Terrain) -> Option<SpecError> {
    let most = terrain.farthest_height_cm();
    (most > limit_cm.unsigned_abs()).then(|| {
        let least = m(i32::try_from(most).unwrap_or(i32::MAX));
        let rule = format!("must be at least {least}: so far from height 0 lies a tile of the map");
        SpecError { key: "height_limit", found: m(limit_cm), rule }
    })
}

fn wrong_size((width_cm, depth_cm): (i32, i32), terrain: &Terrain) -> SpecError {
    let tile = terrain.tile_cm();
    let metres = |cm: i64| format!("{:.2} m", cm as f64 / 100.0);
    let rule = match width_cm % tile == 0 && depth_cm % tile == 0 {
        true => format!("that is {} x {} tiles", width_cm / tile, depth_cm / tile),
        false => format!("tiles of {} do not divide it", m(tile)),
    };
    SpecError {
        key: "map",
        found: format!(
            "{} x {} tiles of {} ({} x {})",
            terrain.width(),
            terrain.depth(),
            m(tile),
            metres(terrain.width_cm()),
            metres(terrain.depth_cm())
        ),
        rule: format!("must cover the scene of {} x {} exactly: {rule}", m(width_cm), m(depth_cm)),
    }
}

fn blocked_spawn(spawn: Pos, ground: &Ground) -> SpecError {
    let tile = ground.tile_of(spawn);
    let rule = match nearest_free(ground, tile) {
        Some(free) => {
            let middle = |n: i32| m(n * ground.tile_cm() + ground.tile_cm() / 2);
            format!(
                "lies on tile ({}, {}), which is blocked; the nearest free tile has its middle at \
                 [{}, {}]",
                tile.x,
                tile.z,
                middle(free.x),
                middle(free.z)
            )
        }
        None => "lies on a blocked tile, and the map has no free tile".into(),
    };
    SpecError { key: "spawn", found: format!("[{}, {}]", m(spawn.x), m(spawn.z)), rule }
}

/// The nearest free tile around `from`, ring by ring.
fn nearest_free(ground: &Ground, from: Tile) -> Option<Tile> {
    let (width, depth) = (ground.terrain().width(), ground.terrain().depth());
    (1..width.max(depth)).find_map(|ring| {
        let span = -ring..=ring;
        let sides = |i: i32| [(i, -ring), (i, ring), (-ring, i), (ring, i)];
        span.flat_map(sides)
            .map(|(dx, dz)| Tile { x: from.x + dx, z: from.z + dz })
            .filter(|tile| ground.is_free(Plane(0), *tile))
            .min_by_key(|t| (t.x - from.x).abs() + (t.z - from.z).abs())
    })
}

//! What the page must know of scenes and their regions: plain figures, without asking a region.

use std::sync::atomic::{AtomicU64, Ordering};

use purview::actor::region::metrics::RegionMetrics;
use purview::scene::layout::RegionEntry;
use purview::scene::properties::{Audience, PropertySpec};
use purview::scene::spec::KindSpec;
use purview::scene::{Rect, RegionId, Scene};
use serde::Serialize;

use super::PlayState;
use crate::admin::RegionHandle;

/// `GET /play/scenes`.
#[derive(Debug, Serialize)]
pub struct ScenesShape {
    join: String,
    scenes: Vec<SceneShape>,
}

#[derive(Debug, Serialize)]
struct SceneShape {
    name: String,
    kinds: Vec<KindShape>,
    /// The classes of bonds by their number.
    bonds: Vec<String>,
    regions: Vec<RegionShape>,
}

#[derive(Debug, Serialize)]
struct KindShape {
    name: String,
    properties: Vec<PropertyShape>,
}

#[derive(Debug, Serialize)]
struct PropertyShape {
    id: u8,
    name: String,
}

#[derive(Debug, Serialize)]
struct RegionShape {
    id: RegionId,
    rect: Rect,
    group: u16,
    /// The node that owns it; nil: another process.
    owner: Option<String>,
    /// Entities that the region owns, and copies of entities of its neighbours.
    reals: u64,
    ghosts: u64,
}

pub fn scenes(state: &PlayState) -> ScenesShape {
    let hosted = state.regions.now();
    let shape = |scene: &Scene| SceneShape {
        name: scene.spec.name.clone(),
        kinds: scene.spec.kinds.iter().map(kind).collect(),
        bonds: scene.spec.bonds.kinds.clone(),
        regions: scene.map.regions.iter().map(|r| region(state, &hosted, r)).collect(),
    };
    let scenes: Vec<SceneShape> = state.directory.scenes().map(|scene| shape(&scene)).collect();
    let join = scenes.first().map(|scene| scene.name.clone()).unwrap_or_default();
    ScenesShape { join, scenes }
}

fn kind(spec: &KindSpec) -> KindShape {
    let property = |p: &PropertySpec| PropertyShape { id: p.id.0, name: p.name.clone() };
    // Clients are never told the others.
    let told = spec.properties.iter().filter(|p| p.audience != Audience::Server);
    KindShape { name: spec.name.clone(), properties: told.map(property).collect() }
}

fn region(state: &PlayState, hosted: &[RegionHandle], entry: &RegionEntry) -> RegionShape {
    let here = hosted.iter().find(|handle| handle.region == entry.id);
    let figure = |of: fn(&RegionMetrics) -> &AtomicU64| {
        here.map_or(0, |handle| of(&handle.metrics).load(Ordering::Relaxed))
    };
    RegionShape {
        id: entry.id,
        rect: entry.rect,
        group: entry.group.0,
        owner: here.map(|_| state.node.clone()),
        reals: figure(|metrics| &metrics.reals),
        ghosts: figure(|metrics| &metrics.ghosts),
    }
}

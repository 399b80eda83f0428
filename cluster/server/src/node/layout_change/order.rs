//! The operator's part: a new cut of a scene is worked out, checked, and written down as what may come.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use purview::scene::layout::{Axis, Layout, LayoutError};
use purview::scene::{RegionId, Scene};
use serde::{Deserialize, Serialize};

use super::record::{Proposal, Record, change_map, key};
use crate::node::maps::Maps;
use crate::node::values::read;
use crate::storage::{LeaseError, Leases};
use crate::whole_numbers::whole;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum MapOrder {
    Split {
        #[serde(deserialize_with = "whole")]
        region: u32,
    },
    /// Cut a region in two at a border of lands.
    SplitAt {
        #[serde(deserialize_with = "whole")]
        region: u32,
        axis: Axis,
        /// The border, in lands from the map's western or northern edge.
        #[serde(deserialize_with = "whole")]
        land: i32,
        /// Whether the western or northern part is the new region.
        #[serde(default)]
        first: bool,
    },
    /// Move the common side of two regions.
    Shift {
        #[serde(deserialize_with = "whole")]
        from: u32,
        #[serde(deserialize_with = "whole")]
        to: u32,
        /// How many rows of lands along their common side.
        #[serde(deserialize_with = "whole")]
        lands: i32,
    },
    Merge {
        #[serde(deserialize_with = "whole")]
        region: u32,
        #[serde(deserialize_with = "whole")]
        gone: u32,
    },
    Scale {
        scene: String,
        /// Regions side by side.
        #[serde(deserialize_with = "whole")]
        columns: i32,
        /// Regions from north to south.
        #[serde(deserialize_with = "whole")]
        rows: i32,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum MapError {
    #[error("there is no scene {0:?}; there are: {1}")]
    NoScene(String, String),
    #[error("no scene has a region {0}; `purview ctl status regions` lists them")]
    NoRegion(RegionId),
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// Another change is under way.
    #[error("scene {0:?} is about to change already; when that is done it can change again")]
    Busy(String),
    #[error(transparent)]
    Store(#[from] LeaseError),
}

fn ordered(scenes: &[Arc<Scene>], order: &MapOrder) -> Result<(Arc<Scene>, Layout), MapError> {
    let with = |id: u32| {
        let found = scenes.iter().find(|scene| scene.map.get(RegionId(id)).is_some());
        found.cloned().ok_or(MapError::NoRegion(RegionId(id)))
    };
    let scene = match order {
        MapOrder::Split { region }
        | MapOrder::SplitAt { region, .. }
        | MapOrder::Shift { from: region, .. }
        | MapOrder::Merge { region, .. } => with(*region)?,
        MapOrder::Scale { scene: name, .. } => {
            let found = scenes.iter().find(|scene| scene.spec.name == *name).cloned();
            found.ok_or_else(|| {
                let names: Vec<_> = scenes.iter().map(|s| s.spec.name.as_str()).collect();
                MapError::NoScene(name.clone(), names.join(", "))
            })?
        }
    };
    // The second region of an order must be there, too.
    if let MapOrder::Shift { to: other, .. } | MapOrder::Merge { gone: other, .. } = order {
        with(*other)?;
    }
    let now = scene.map.layout();
    let layout = match *order {
        MapOrder::Split { region } => now.split(RegionId(region)),
        MapOrder::SplitAt { region, axis, land, first } => {
            now.split_at(RegionId(region), axis, land, first)
        }
        MapOrder::Shift { from, to, lands } => now.shift(RegionId(from), RegionId(to), lands),
        MapOrder::Merge { region, gone } => now.merge(RegionId(region), RegionId(gone)),
        MapOrder::Scale { columns, rows, .. } => now.scale(columns, rows),
    }?;
    scene.with_layout(&layout)?;
    Ok((scene, layout))
}

/// Writes an order down. Gives the scene's name and the version that its map will have.
pub(in crate::node) async fn order(
    store: &dyn Leases,
    maps: &Maps,
    order: &MapOrder,
) -> Result<(String, u64), MapError> {
    let mut scenes = maps.scenes();
    for scene in &mut scenes {
        let record: Record = read(store.get(&key(scene)).await?.as_ref());
        if record.next.is_some() {
            continue;
        }
        // No name is given twice, also not one of a map that did not come to be.
        let mut layout = record.layout.unwrap_or_else(|| scene.map.layout());
        layout.next = layout.next.max(RegionId(record.names));
        *scene = Arc::new(scene.with_layout(&layout)?);
    }
    let (scene, layout) = ordered(&scenes, order)?;
    let (name, version) = (scene.spec.name.clone(), layout.version);
    let wanted = Proposal { layout, after: None, promised: BTreeMap::new() };
    let taken = AtomicBool::new(false);
    change_map(store, &key(&scene), |record: &mut Record| {
        let known = record.layout.as_ref().map_or(1, |layout| layout.version);
        let free = record.next.is_none() && known + 1 == version;
        taken.store(free, Ordering::Relaxed);
        if free {
            record.next = Some(wanted.clone());
        }
    })
    .await?;
    if taken.into_inner() { Ok((name, version)) } else { Err(MapError::Busy(name)) }
}

//! What the balancer decides by, from a view of the store, the scenes, and what was reported.

use std::collections::BTreeMap;

use purview::scene::load::RegionReport;
use purview::scene::{RegionId, Scene, Visibility};

use super::wishes::Wishes;
use crate::node::balance::{Input, Limits, SceneInput, Site};
use crate::node::layout_change::record_of;
use crate::node::maps::Maps;
use crate::node::plan::{self, is_drained, moves_of, plan_of};
use crate::node::pools::Pools;
use crate::node::sharing;
use crate::storage::{Incarnation, View};

pub(super) fn input(
    (view, maps): (&View, &Maps),
    wishes: &Wishes,
    reports: BTreeMap<RegionId, RegionReport>,
    now_s: u64,
) -> Input {
    let owners: BTreeMap<RegionId, Incarnation> = view
        .owners
        .iter()
        .filter(|(key, _)| maps.knows(key))
        .map(|(key, owner)| (RegionId(key.region), owner.incarnation))
        .collect();
    Input {
        now_s,
        paused: wishes.paused_s > 0,
        nodes: sites(view),
        scenes: maps.scenes().iter().map(|scene| scene_input(view, scene, wishes)).collect(),
        moving: moving(view, &owners),
        owners,
        reports,
        pins: pins((view, maps), wishes),
    }
}

/// The pins that pools and reservations allow: the plan keeps those, and the balancer must not undo it.
fn pins((view, maps): (&View, &Maps), wishes: &Wishes) -> BTreeMap<RegionId, Incarnation> {
    let scenes = maps.scenes();
    let pools = Pools::new((view, &plan::sites(view)), &scenes, &wishes.reservations);
    let may = |(region, node): &(RegionId, Incarnation)| {
        let ground = |scene: &Scene| scene.map.layout().plots.into_iter().find(|p| p.id == *region);
        let scene = scenes.iter().find_map(|scene| Some((&scene.spec.name, ground(scene)?)));
        let pool = scene.and_then(|(name, plot)| pools.all.get(pools.of(name, Some(&plot))));
        pool.is_none_or(|pool| pool.nodes.contains(&node.0))
    };
    wishes.pinned(view).into_iter().filter(may).collect()
}

fn sites(view: &View) -> Vec<Site> {
    let plan = plan_of(view);
    let takers = view.nodes.iter().filter(|(_, node)| node.regions);
    let site = |(node, info): (&Incarnation, &crate::storage::NodeInfo)| Site {
        node: *node,
        cores: f64::from(info.capacity.max(1)) / 100.0,
        drained: is_drained(view, *node),
        waits: sharing::waits(&plan, node.0),
        labels: info.about.labels.iter().map(|(key, value)| format!("{key}={value}")).collect(),
        zone: info.about.zone.clone(),
    };
    takers.map(site).collect()
}

fn scene_input(view: &View, scene: &Scene, wishes: &Wishes) -> SceneInput {
    let record = record_of(view, scene);
    let mut layout = scene.map.layout();
    layout.next = layout.next.max(RegionId(record.names));
    // A change that this process has not followed yet is under way, too.
    let is_followed = record.layout.as_ref().is_none_or(|now| now.version == layout.version);
    SceneInput {
        name: scene.spec.name.clone(),
        tick_us: scene.tick_ms.saturating_mul(1_000),
        land_cm: scene.spec.land_cm,
        band_cm: scene.border_band_cm(),
        layout,
        changing: record.next.is_some() || !record.retiring.is_empty() || !is_followed,
        limits: limits(scene),
        whole: Vec::new(),
        reserved: wishes.reserved(view, &scene.spec.name),
    }
}

fn limits(scene: &Scene) -> Limits {
    let pool = &scene.spec.pool;
    let min_regions = match pool.min_regions {
        0 => u32::try_from(scene.configured_regions()).unwrap_or(u32::MAX),
        least => least,
    };
    // Where all see all there are no borders.
    let max_regions = match scene.spec.visibility {
        Visibility::All => u32::from(scene.spec.plane_groups.max(1)),
        _ => pool.max_regions,
    };
    Limits {
        labels: pool.labels.iter().map(|(key, value)| format!("{key}={value}")).collect(),
        zone: pool.zone.clone(),
        min_nodes: pool.min_nodes,
        max_nodes: pool.max_nodes,
        min_regions,
        max_regions,
    }
}

/// Regions that are on their way, or are meant for another node than the one that has them.
fn moving(
    view: &View,
    owners: &BTreeMap<RegionId, Incarnation>,
) -> BTreeMap<RegionId, Incarnation> {
    let lives = |node: u64| view.nodes.contains_key(&Incarnation(node));
    let planned = plan_of(view).of.into_iter();
    let under_way = moves_of(view).into_iter().map(|now| (now.region, now.to));
    let meant = planned.chain(under_way).filter(|(_, to)| lives(*to));
    let meant = meant.map(|(id, to)| (RegionId(id), Incarnation(to)));
    meant.filter(|(id, to)| owners.get(id).is_some_and(|owner| owner != to)).collect()
}

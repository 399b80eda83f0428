//! The input in the order of ids, with loads summed up, so that the order of its lists changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use purview::scene::RegionId;
use purview::scene::layout::Plot;
use purview::scene::load::RegionReport;
use rustc_hash::FxHashMap;

use super::input::{Input, SceneInput, Site};
use super::record::Rejection;
use super::settings::Settings;

#[derive(Debug)]
pub(super) struct NodeState<'a> {
    pub(super) site: &'a Site,
    pub(super) share: f64,
    pub(super) regions: Vec<usize>,
    /// Whether all its regions have reported.
    pub(super) reported: bool,
    /// Whether it is to give all regions away.
    pub(super) drained: bool,
    /// The reservations that name it: scene and place in the scene's list.
    reserved: Vec<(usize, usize)>,
}

#[derive(Debug)]
pub(super) struct RegionState<'a> {
    pub(super) id: RegionId,
    pub(super) scene: usize,
    pub(super) plot: Plot,
    pub(super) node: Option<usize>,
    /// Share of a tick, as a mean.
    pub(super) share: f64,
    /// Share of a tick, 99th percentile.
    pub(super) p99: f64,
    pub(super) players: f64,
    pub(super) report: Option<&'a RegionReport>,
}

#[derive(Debug)]
pub(super) struct SceneState<'a> {
    pub(super) input: &'a SceneInput,
    /// Its regions, and how many of them each node has.
    pub(super) regions: Vec<usize>,
    pub(super) nodes: BTreeMap<usize, u32>,
    /// Whether one of its regions moves.
    pub(super) moves: bool,
}

impl SceneState<'_> {
    /// Lands that the mirrored band reaches into; regions are at least as wide.
    pub(super) fn band_lands(&self) -> i32 {
        let land = self.input.land_cm.max(1);
        (self.input.band_cm.max(0) + land - 1) / land
    }

    /// A charge in microseconds of a tick, as a share of it.
    pub(super) fn share(&self, us: f64) -> f64 {
        us / f64::from(self.input.tick_us.max(1))
    }
}

#[derive(Debug)]
pub(super) struct State<'a> {
    pub(super) input: &'a Input,
    pub(super) settings: &'a Settings,
    /// By incarnation.
    pub(super) nodes: Vec<NodeState<'a>>,
    /// By id.
    pub(super) regions: Vec<RegionState<'a>>,
    pub(super) scenes: Vec<SceneState<'a>>,
    pub(super) at: FxHashMap<RegionId, usize>,
    /// The share that each node that takes regions would have if all had the same.
    pub(super) mean: f64,
    /// Cores' worth of all loads.
    pub(super) load: f64,
}

impl<'a> State<'a> {
    pub(super) fn new(input: &'a Input, settings: &'a Settings) -> State<'a> {
        let mut scenes: Vec<&SceneInput> = input.scenes.iter().collect();
        scenes.sort_by(|a, b| a.name.cmp(&b.name));
        let mut state = State {
            input,
            settings,
            nodes: nodes(input),
            regions: Vec::with_capacity(input.owners.len()),
            scenes: Vec::new(),
            at: FxHashMap::default(),
            mean: 0.0,
            load: 0.0,
        };
        for (at, scene) in scenes.into_iter().enumerate() {
            for (place, reserved) in scene.reserved.iter().enumerate() {
                for node in &mut state.nodes {
                    if reserved.nodes.contains(&node.site.node) {
                        node.reserved.push((at, place));
                    }
                }
            }
            let plots = scene.layout.plots.iter();
            state.regions.extend(plots.map(|plot| region(input, scene, at, plot)));
            let (regions, nodes, moves) = (Vec::new(), BTreeMap::new(), false);
            state.scenes.push(SceneState { input: scene, regions, nodes, moves });
        }
        state.regions.sort_by_key(|region| region.id);
        state.sum_up();
        state
    }

    /// Adds regions to their nodes and scenes.
    fn sum_up(&mut self) {
        let at_node: FxHashMap<_, _> =
            self.nodes.iter().enumerate().map(|(i, node)| (node.site.node, i)).collect();
        for (i, region) in self.regions.iter_mut().enumerate() {
            self.at.insert(region.id, i);
            region.node = self.input.owners.get(&region.id).and_then(|n| at_node.get(n)).copied();
            let scene = &mut self.scenes[region.scene];
            scene.regions.push(i);
            scene.moves |= self.input.moving.contains_key(&region.id);
            let Some(at) = region.node else { continue };
            *scene.nodes.entry(at).or_default() += 1;
            let node = &mut self.nodes[at];
            node.regions.push(i);
            node.share += region.share / cores(node.site);
            node.reported &= region.report.is_some();
            self.load += region.share;
        }
        let takers = self.nodes.iter().filter(|node| !node.drained);
        let capacity: f64 = takers.map(|node| cores(node.site)).sum();
        self.mean = if capacity > 0.0 { self.load / capacity } else { 0.0 };
    }

    /// A load of a region as a share of a node.
    pub(super) fn on(&self, node: usize, share: f64) -> f64 {
        share / cores(self.nodes[node].site)
    }

    /// Whether a node may run a region, however much it has to do.
    pub(super) fn may_run(&self, region: usize, node: usize) -> Result<(), Rejection> {
        let (region, node) = (&self.regions[region], (node, &self.nodes[node]));
        let (scene, limits) = (&self.scenes[region.scene], &self.scenes[region.scene].input.limits);
        let site = node.1.site;
        if let Some(pinned) = self.input.pins.get(&region.id) {
            return if *pinned == site.node { Ok(()) } else { Err(Rejection::Pinned) };
        }
        if node.1.drained {
            return Err(Rejection::Drained);
        }
        if !limits.labels.is_subset(&site.labels) {
            return Err(Rejection::Labels);
        }
        if !limits.zone.is_empty() && limits.zone != site.zone {
            return Err(Rejection::Zone);
        }
        let its = self.reservations(region.scene, &region.plot);
        let is_for =
            |(scene, place): &(usize, usize)| *scene == region.scene && its.contains(place);
        let reserved = &node.1.reserved;
        let is_free = reserved.is_empty() && its.is_empty();
        if !is_free && !reserved.iter().any(is_for) {
            return Err(Rejection::Reserved);
        }
        // A node that only has this region of the scene makes room for another one.
        let alone = region.node.is_some_and(|at| scene.nodes.get(&at) == Some(&1));
        let others = scene.nodes.len() - usize::from(alone);
        let full = limits.max_nodes > 0 && others >= limits.max_nodes as usize;
        if full && !scene.nodes.contains_key(&node.0) {
            return Err(Rejection::MaxNodes);
        }
        Ok(())
    }

    pub(super) fn reservations(&self, scene: usize, plot: &Plot) -> BTreeSet<usize> {
        let reserved = self.scenes[scene].input.reserved.iter().enumerate();
        reserved.filter(|(_, r)| meets(&r.ground, plot, 0)).map(|(place, _)| place).collect()
    }
}

/// Whether two plots, one of them grown by some lands, have ground in common, whatever their planes.
pub(super) fn meets(a: &Plot, b: &Plot, grown: i32) -> bool {
    a.x0 < b.x1 + grown && b.x0 < a.x1 + grown && a.z0 < b.z1 + grown && b.z0 < a.z1 + grown
}

/// Capacity; a node of none counts as a hundredth of a core.
fn cores(site: &Site) -> f64 {
    if site.cores.is_finite() { site.cores.max(0.01) } else { 0.01 }
}

fn nodes(input: &Input) -> Vec<NodeState<'_>> {
    // As in a plan: where all are drained, none is.
    let stays = input.nodes.iter().any(|site| !site.drained);
    let node = |site| NodeState {
        site,
        share: 0.0,
        regions: Vec::new(),
        reported: true,
        drained: stays && site.drained,
        reserved: Vec::new(),
    };
    let mut nodes: Vec<NodeState<'_>> = input.nodes.iter().map(node).collect();
    nodes.sort_by_key(|node| node.site.node);
    nodes
}

fn region<'a>(input: &'a Input, scene: &SceneInput, at: usize, plot: &Plot) -> RegionState<'a> {
    let report = input.reports.get(&plot.id);
    let share = |us: f32| {
        let us = if us.is_finite() { f64::from(us.max(0.0)) } else { 0.0 };
        us / f64::from(scene.tick_us.max(1))
    };
    RegionState {
        id: plot.id,
        scene: at,
        plot: *plot,
        node: None,
        share: report.map_or(0.0, |r| share(r.tick_us)),
        p99: report.map_or(0.0, |r| share(r.tick_us_p99)),
        players: report.map_or(0.0, |r| f64::from(r.players)),
        report,
    }
}

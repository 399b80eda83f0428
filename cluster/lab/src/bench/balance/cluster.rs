//! A cluster on paper: a layout, owners, measured loads, and a policy that changes them.

use std::collections::BTreeMap;

use purview::scene::RegionId;
use purview::scene::layout::{FIRST_NEW_REGION, Layout, PlaneGroup, Plot};
use purview_server::node::balance::{
    Action, Input, Limits, Memory, SceneInput, Settings, Site, decide,
};
use purview_server::storage::Incarnation;
use serde::Serialize;

use super::field::{Field, TICK_US};
use crate::rng::Rng;

/// How far a measured load is from the true one, at most.
const NOISE: f64 = 0.08;

/// The weight of a new measurement in the mean.
const NEW: f64 = 0.15;

/// What is done about loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// Nothing: each node has as many regions as any other.
    Counts,
    /// The busiest node gives its heaviest region, or half of it, to the least busy one.
    Halving,
    /// What `purview_server::node::balance` decides.
    Proposed,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct Tally {
    pub moves: u32,
    pub splits: u32,
    pub shifts: u32,
    pub merges: u32,
    /// Moves to a node that the region had left less than 180 s before.
    pub returns: u32,
    /// Players that changed their region or node.
    pub handed: u32,
    /// The times of moves, seconds.
    #[serde(skip)]
    pub times: Vec<u64>,
}

/// A cluster of nodes with a core each, and one scene.
pub(super) struct Cluster {
    pub(super) policy: Policy,
    pub(super) input: Input,
    pub(super) settings: Settings,
    pub(super) tally: Tally,
    memory: Memory,
    noise: Rng,
    measured: BTreeMap<RegionId, f64>,
    left: Vec<(u64, RegionId, Incarnation)>,
}

/// A layout of `columns` x `columns` regions of so many lands each.
pub(super) fn grid(columns: i32, rows: i32, lands: i32, first: u32, next: u32) -> Layout {
    let at = |i: i32| (i % columns * lands, i / columns * lands);
    let plot = |i: i32| {
        let (x0, z0) = at(i);
        let id = RegionId(first + i as u32);
        Plot { id, group: PlaneGroup(0), x0, z0, x1: x0 + lands, z1: z0 + lands }
    };
    Layout { version: 1, next: RegionId(next), plots: (0..columns * rows).map(plot).collect() }
}

/// A scene of this layout whose lands are those of [`super::field`].
pub(super) fn scene(name: String, layout: Layout, min_regions: u32) -> SceneInput {
    SceneInput {
        name,
        tick_us: TICK_US as u32,
        land_cm: 12_800,
        band_cm: 9_600,
        layout,
        changing: false,
        limits: Limits { min_regions, ..Limits::default() },
        whole: Vec::new(),
        reserved: Vec::new(),
    }
}

impl Policy {
    pub const ALL: [Policy; 3] = [Policy::Counts, Policy::Halving, Policy::Proposed];
}

impl Cluster {
    /// `columns` x `columns` regions of so many lands over `nodes` nodes, in blocks.
    pub(super) fn new(policy: Policy, columns: i32, lands: i32, nodes: u64, seed: u64) -> Cluster {
        let layout = grid(columns, columns, lands, 0, FIRST_NEW_REGION);
        let across = (nodes as f64).sqrt().round() as i32;
        let down = nodes as i32 / across;
        let owner =
            |i: i32| (i / columns * down / columns) * across + i % columns * across / columns;
        let owners = (0..columns * columns)
            .map(|i| (RegionId(i as u32), Incarnation(owner(i) as u64)))
            .collect();
        let site = |node| Site { node: Incarnation(node), cores: 1.0, ..Site::default() };
        let least = (columns * columns * 3 / 4) as u32;
        let scenes = vec![scene("world".into(), layout, least)];
        Cluster {
            policy,
            input: Input {
                nodes: (0..nodes).map(site).collect(),
                scenes,
                owners,
                ..Input::default()
            },
            settings: Settings::default(),
            tally: Tally::default(),
            memory: Memory::default(),
            noise: Rng::new(seed),
            measured: BTreeMap::new(),
            left: Vec::new(),
        }
    }

    pub(super) fn plots(&self) -> &[Plot] {
        &self.input.scenes[0].layout.plots
    }

    /// The true loads: of each node, and of the busiest region; milliseconds per tick.
    pub(super) fn loads(&self, field: &Field) -> (Vec<f64>, f64) {
        let mut nodes = vec![0.0; self.input.nodes.len()];
        let mut busiest: f64 = 0.0;
        for plot in self.plots() {
            let ms = field.cost(plot) / 1e3;
            nodes[self.input.owners[&plot.id].0 as usize] += ms;
            busiest = busiest.max(ms);
        }
        (nodes, busiest)
    }

    /// A second passes: loads are measured, and something may be done.
    pub(super) fn step(&mut self, now_s: u64, field: &Field) {
        self.input.now_s = now_s;
        for plot in &self.input.scenes[0].layout.plots {
            let seen = field.cost(plot) * (1.0 + NOISE * (2.0 * self.noise.unit() - 1.0));
            let mean = self.measured.entry(plot.id).or_insert(seen);
            *mean += NEW * (seen - *mean);
        }
        match self.policy {
            Policy::Counts => {}
            Policy::Halving if now_s.is_multiple_of(5) => self.halve(field),
            Policy::Halving => {}
            Policy::Proposed => self.decide(field),
        }
    }

    fn decide(&mut self, field: &Field) {
        let plots = self.plots().to_vec();
        let report = |p: &Plot| (p.id, field.report(p, &plots, self.measured[&p.id]));
        self.input.reports = plots.iter().map(report).collect();
        let decision = decide(&self.input, &self.settings, &mut self.memory);
        for action in decision.actions {
            self.act(action, field);
        }
    }

    /// Carries an action out at once.
    fn act(&mut self, action: Action, field: &Field) {
        let now = self.input.now_s;
        let scene = &mut self.input.scenes[0];
        let before = scene.layout.clone();
        if let Some(layout) = action.layout(&before) {
            scene.layout = layout.expect("a decided layout is legal");
        }
        let players = |id| before.plot(id).map_or(0.0, |plot| field.players_of(plot));
        let after = |id| scene.layout.plot(id).map_or(0.0, |plot| field.players_of(plot));
        let handed = match action {
            Action::Move { region, from, to } => {
                self.left.retain(|(at, ..)| now < at + 180);
                let returns = self.left.iter().any(|(_, id, node)| (*id, *node) == (region, to));
                self.left.push((now, region, from));
                self.tally.moves += 1;
                self.tally.returns += u32::from(returns);
                self.tally.times.push(now);
                self.input.owners.insert(region, to);
                players(region)
            }
            Action::Shift { from, .. } => {
                self.tally.shifts += 1;
                players(from) - after(from)
            }
            Action::Split { region, .. } => {
                self.tally.splits += 1;
                self.input.owners.insert(before.next, self.input.owners[&region]);
                after(before.next)
            }
            Action::Merge { gone, .. } => {
                self.tally.merges += 1;
                self.input.owners.remove(&gone);
                self.measured.remove(&gone);
                players(gone)
            }
        };
        self.tally.handed += handed as u32;
        if !matches!(action, Action::Move { .. }) {
            // A mean of other ground says nothing: a region begins a new one.
            for plot in &scene.layout.plots {
                if before.plot(plot.id) != Some(plot) {
                    self.measured.insert(plot.id, field.cost(plot));
                }
            }
        }
    }

    /// The policy that looks at loads alone.
    fn halve(&mut self, field: &Field) {
        let mut nodes = vec![0.0; self.input.nodes.len()];
        for (region, node) in &self.input.owners {
            nodes[node.0 as usize] += self.measured[region];
        }
        let mean = nodes.iter().sum::<f64>() / nodes.len() as f64;
        let by_load = |a: &usize, b: &usize| nodes[*a].total_cmp(&nodes[*b]);
        let (Some(hot), Some(cold)) =
            ((0..nodes.len()).max_by(by_load), (0..nodes.len()).min_by(by_load))
        else {
            return;
        };
        let its = self.input.owners.iter().filter(|(_, node)| node.0 as usize == hot);
        let heaviest =
            its.map(|(id, _)| *id).max_by(|a, b| self.measured[a].total_cmp(&self.measured[b]));
        let Some(region) = heaviest.filter(|_| nodes[hot] > 1.1 * mean) else { return };
        let [from, to] = [hot, cold].map(|node| Incarnation(node as u64));
        if self.measured[&region] <= 0.5 * (nodes[hot] - nodes[cold]) {
            return self.act(Action::Move { region, from, to }, field);
        }
        let (layout, plot) =
            (&self.input.scenes[0].layout, self.plots().iter().find(|p| p.id == region));
        let Some(plot) = plot.copied() else { return };
        let (axis, part) = (longer(&plot), layout.next);
        let (begin, end) = plot.along(axis);
        if end - begin >= 2 {
            let land = begin + (end - begin) / 2;
            self.act(Action::Split { region, axis, land, first: false }, field);
            self.act(Action::Move { region: part, from, to }, field);
        }
    }
}

fn longer(plot: &Plot) -> purview::scene::layout::Axis {
    use purview::scene::layout::Axis;
    if plot.x1 - plot.x0 >= plot.z1 - plot.z0 { Axis::X } else { Axis::Z }
}

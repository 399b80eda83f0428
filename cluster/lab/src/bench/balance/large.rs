//! Many nodes, regions and players on paper: how long a decision takes, and what it makes others write and send.

use std::collections::BTreeMap;
use std::time::Instant;

use purview::scene::RegionId;
use purview_server::node::balance::{Action, Input, Memory, RegionReport, Settings, Site, decide};
use purview_server::storage::Incarnation;
use serde::Serialize;

use super::cluster::{grid, scene};
use super::field::{Field, LAND, TICK_US};
use crate::bench::percentile;
use crate::rng::Rng;

/// Regions and lands of each scene: 40 x 25 regions of 4 x 4 lands.
const COLUMNS: i32 = 40;
const ROWS: i32 = 25;
const SIDE: i32 = 4;

/// Players per node.
const PLAYERS: usize = 2_000;

/// How long it runs, virtual seconds.
const RUN_S: u64 = 180;

/// A region with less than this share of a tick reports no lands.
const COARSE: f64 = 0.02;

#[derive(Debug, Clone, Default, Serialize)]
pub struct Large {
    pub nodes: u64,
    /// Regions at the start and at the end.
    pub regions: [usize; 2],
    pub players: usize,
    /// The mean load of a node, share of its capacity.
    pub mean: f64,
    /// The busiest node by the mean, at the start and at the end.
    pub busiest: [f64; 2],
    /// The time of a decision, milliseconds: median, 99th percentile, greatest.
    pub decision_ms: [f64; 3],
    /// Actions: moves, changes of layouts.
    pub actions: [usize; 2],
    /// Most actions of one kind in a second.
    pub in_a_second: [usize; 2],
    /// Bytes of the reports of a second, as MessagePack.
    pub report_bytes: usize,
    /// Bytes of the plan, which a move writes anew.
    pub plan_bytes: usize,
}

struct Paper {
    input: Input,
    fields: Vec<Field>,
}

/// Half of the players stand in crowds, the others anywhere; the scenes have as many nodes each.
fn paper(nodes: u64, rng: &mut Rng) -> Paper {
    let per_scene = (COLUMNS * ROWS) as u64;
    let scenes = (nodes * 200).div_ceil(per_scene);
    let mut paper = Paper { input: Input::default(), fields: Vec::new() };
    let site = |node| Site { node: Incarnation(node), cores: 1.0, ..Site::default() };
    paper.input.nodes = (0..nodes).map(site).collect();
    for at in 0..scenes as u32 {
        let players = PLAYERS * nodes as usize / scenes as usize;
        paper.fields.push(crowds(players, rng));
        let layout =
            grid(COLUMNS, ROWS, SIDE, at * COLUMNS as u32 * ROWS as u32, 1_000_000 + at * 10_000);
        for (i, plot) in layout.plots.iter().enumerate() {
            let node = (u64::from(at) * per_scene + i as u64) * nodes / (scenes * per_scene);
            paper.input.owners.insert(plot.id, Incarnation(node));
        }
        paper.input.scenes.push(scene(format!("scene {at}"), layout, 0));
    }
    paper
}

fn crowds(players: usize, rng: &mut Rng) -> Field {
    let (wide, deep) = (COLUMNS * SIDE * LAND, ROWS * SIDE * LAND);
    let mut counts = vec![0; (wide * deep) as usize];
    let mut put = |x: f64, z: f64| {
        let x = x.clamp(0.0, f64::from(wide - 1)) as i32;
        counts[(z.clamp(0.0, f64::from(deep - 1)) as i32 * wide + x) as usize] += 1;
    };
    let mut left = players / 2;
    while left > 0 {
        let crowd = left.min(20 + rng.below(800));
        let (x, z) = (rng.unit() * f64::from(wide), rng.unit() * f64::from(deep));
        let sigma = 1.0 + 5.0 * rng.unit();
        (0..crowd).for_each(|_| put(x + sigma * rng.normal(), z + sigma * rng.normal()));
        left -= crowd;
    }
    (players / 2..players)
        .for_each(|_| put(rng.unit() * f64::from(wide), rng.unit() * f64::from(deep)));
    Field::new(wide, deep, &counts)
}

impl Paper {
    fn report(&mut self, scene: usize) {
        let plots = &self.input.scenes[scene].layout.plots;
        for plot in plots {
            let tick_us = self.fields[scene].cost(plot);
            let mut report = self.fields[scene].report(plot, plots, tick_us);
            if tick_us < COARSE * TICK_US {
                report.lands = None;
            }
            self.input.reports.insert(plot.id, report);
        }
    }

    fn shares(&self) -> Vec<f64> {
        let mut nodes = vec![0.0; self.input.nodes.len()];
        for (region, node) in &self.input.owners {
            let us = self.input.reports.get(region).map_or(0.0, |report| f64::from(report.tick_us));
            nodes[node.0 as usize] += us / TICK_US;
        }
        nodes
    }

    fn act(&mut self, action: Action) {
        let (Action::Move { region: of, .. }
        | Action::Shift { from: of, .. }
        | Action::Split { region: of, .. }
        | Action::Merge { region: of, .. }) = action;
        if let Action::Move { region, to, .. } = action {
            self.input.owners.insert(region, to);
            return;
        }
        let has = |scene: &&mut purview_server::node::balance::SceneInput| {
            scene.layout.plot(of).is_some()
        };
        let scenes = self.input.scenes.iter_mut();
        let Some((at, scene)) = scenes.enumerate().find(|(_, scene)| has(scene)) else { return };
        let Some(Ok(layout)) = action.layout(&scene.layout) else { return };
        let owner = self.input.owners[&of];
        if let Action::Split { .. } = action {
            self.input.owners.insert(scene.layout.next, owner);
        }
        if let Action::Merge { gone, .. } = action {
            self.input.owners.remove(&gone);
            self.input.reports.remove(&gone);
        }
        scene.layout = layout;
        self.report(at);
    }
}

pub(super) fn large(nodes: u64) -> Large {
    let mut rng = Rng::new(1);
    let mut paper = paper(nodes, &mut rng);
    (0..paper.fields.len()).for_each(|scene| paper.report(scene));
    let busiest = |paper: &Paper| {
        let shares = paper.shares();
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        (shares.iter().copied().fold(0.0, f64::max) / mean, mean)
    };
    let (before, mean) = busiest(&paper);
    let bytes =
        |report: &RegionReport| rmp_serde::to_vec(report).map_or(0, |bytes| bytes.len() + 5);
    let plan: BTreeMap<u32, u64> =
        paper.input.owners.iter().map(|(RegionId(id), node)| (*id, node.0 + 1_000_000)).collect();
    let mut result = Large {
        nodes,
        regions: [paper.input.owners.len(); 2],
        players: PLAYERS * nodes as usize,
        mean,
        busiest: [before; 2],
        report_bytes: paper.input.reports.values().map(bytes).sum(),
        plan_bytes: serde_json::to_vec(&plan).map_or(0, |bytes| bytes.len()),
        ..Large::default()
    };
    let (mut memory, mut times) = (Memory::default(), Vec::new());
    for now_s in 0..RUN_S {
        paper.input.now_s = now_s;
        let begin = Instant::now();
        let decision = decide(&paper.input, &Settings::default(), &mut memory);
        times.push(begin.elapsed().as_secs_f64() * 1e3);
        let moves = decision.actions.iter().filter(|a| matches!(a, Action::Move { .. })).count();
        let counts = [moves, decision.actions.len() - moves];
        for (i, count) in counts.into_iter().enumerate() {
            result.actions[i] += count;
            result.in_a_second[i] = result.in_a_second[i].max(count);
        }
        decision.actions.into_iter().for_each(|action| paper.act(action));
    }
    result.decision_ms = [0.5, 0.99, 1.0].map(|share| percentile(times.clone(), share));
    result.busiest[1] = busiest(&paper).0;
    result.regions[1] = paper.input.owners.len();
    result
}

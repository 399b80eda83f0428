//! Decisions on small maps, whose loads are known.

use std::collections::BTreeMap;

use purview::scene::layout::{Layout, Plot};
use purview::scene::spec::LayerSpec;
use purview::scene::{RegionId, Scene, SceneId, SceneSpec};

use super::cost::Window;
use super::*;
use crate::storage::Incarnation;

/// Lands along the side of the map, and their length in centimetres.
pub(super) const LANDS: i32 = 8;
const LAND_CM: i32 = 1_600;

/// What a player costs, microseconds of a tick of 100 ms.
const PLAYER_US: f64 = 100.0;

/// A cluster with one scene of 8 x 8 lands, at first 2 x 2 regions, whose players stand.
pub(super) struct Paper {
    pub(super) scene: Scene,
    pub(super) input: Input,
    pub(super) settings: Settings,
    pub(super) memory: Memory,
    /// The players of each land, row by row.
    pub(super) players: Vec<u32>,
}

fn scene() -> Scene {
    let spec = SceneSpec {
        width_cm: LAND_CM * LANDS,
        depth_cm: LAND_CM * LANDS,
        land_cm: LAND_CM,
        region_lands_x: LANDS / 2,
        region_lands_z: LANDS / 2,
        layers: vec![LayerSpec { name: "common".into(), patch_cm: [400; 2] }],
        handoff_margin_cm: 100,
        spawn_x_cm: 0,
        spawn_z_cm: 0,
        ..SceneSpec::default()
    };
    Scene::new(SceneId(0), spec, 100, RegionId(0)).unwrap()
}

impl Paper {
    /// `nodes` nodes of a core, and the regions 0 to 3 with these owners.
    pub(super) fn new(nodes: u64, owners: [u64; 4]) -> Paper {
        let scene = scene();
        let site = |node| Site { node: Incarnation(node), cores: 1.0, ..Site::default() };
        let scene_input = SceneInput {
            name: "paper".into(),
            tick_us: 100_000,
            land_cm: LAND_CM,
            band_cm: scene.band_cm,
            layout: scene.map.layout(),
            changing: false,
            limits: Limits::default(),
            whole: Vec::new(),
            reserved: Vec::new(),
        };
        let owner = |(region, node): (u32, u64)| (RegionId(region), Incarnation(node));
        let input = Input {
            nodes: (0..nodes).map(site).collect(),
            scenes: vec![scene_input],
            owners: (0..).zip(owners).map(owner).collect(),
            ..Input::default()
        };
        let players = vec![0; (LANDS * LANDS) as usize];
        let (settings, memory) = (Settings::default(), Memory::default());
        Paper { scene, input, settings, memory, players }
    }

    pub(super) fn with(mut self, (x, z): (i32, i32), players: u32) -> Paper {
        self.players[(z * LANDS + x) as usize] = players;
        self
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.input.scenes[0].layout
    }

    /// What a plot costs, land by land: those of the band count by the part of them that it covers.
    fn cost(&self, plot: &Plot) -> f64 {
        let band = f64::from(self.scene.band_cm) / f64::from(LAND_CM);
        let covered = |land: i32, from: i32, to: i32| {
            let gap = (from - land - 1).max(land - to).max(-1);
            if gap < 0 { 1.0 } else { (band - f64::from(gap)).clamp(0.0, 1.0) }
        };
        let mut cost = 0.0;
        for (land, players) in (0..).zip(&self.players) {
            let (x, z) = (land % LANDS, land / LANDS);
            let inside = (plot.x0..plot.x1).contains(&x) && (plot.z0..plot.z1).contains(&z);
            let share = covered(x, plot.x0, plot.x1) * covered(z, plot.z0, plot.z1);
            let share = if inside { 1.0 } else { self.settings.ghost * share };
            cost += share * f64::from(*players) * PLAYER_US;
        }
        cost
    }

    fn lands(&self, plot: &Plot) -> Vec<LandReport> {
        let part = f64::from(self.scene.band_cm % LAND_CM) / f64::from(LAND_CM);
        let lands = (plot.z0..plot.z1).flat_map(|z| (plot.x0..plot.x1).map(move |x| (x, z)));
        let land = |(x, z)| {
            let players = self.players[(z * LANDS + x) as usize];
            let weight = f64::from(players) * PLAYER_US;
            let near_us = [(weight * part) as f32; 4];
            LandReport { x, z, players, weight_us: weight as f32, near_us }
        };
        lands.map(land).filter(|land| land.players > 0).collect()
    }

    pub(super) fn report(&mut self) {
        let scene = self.scene.with_layout(self.layout()).unwrap();
        let plots = self.layout().plots.clone();
        let report = |plot: &Plot| {
            let lands = self.lands(plot);
            let near = scene.map.neighbours(plot.id, scene.band_cm).into_iter();
            let near = near.map(|near| NeighbourReport { region: near.id, pairs: 10, ghosts: 5 });
            let tick_us = self.cost(plot) as f32;
            let players = lands.iter().map(|land| land.players).sum();
            let neighbours = near.collect();
            let lands = Some(lands);
            let report = RegionReport { tick_us, tick_us_p99: tick_us, players, lands, neighbours };
            (plot.id, report)
        };
        self.input.reports = plots.iter().map(report).collect();
    }

    /// Regions report, and a decision is made.
    pub(super) fn decide(&mut self) -> Decision {
        self.report();
        decide(&self.input, &self.settings, &mut self.memory)
    }

    /// Decides every second up to a moment, and carries nothing out. Gives the last decision.
    fn wait(&mut self, until_s: u64) -> Decision {
        let mut decision = Decision::default();
        for now_s in self.input.now_s..=until_s {
            self.input.now_s = now_s;
            decision = self.decide();
            if now_s < until_s {
                assert_eq!(decision.actions, [], "at {now_s} s");
            }
        }
        self.input.now_s += 1;
        decision
    }

    /// Carries an action out. Gives the new layout if there is one.
    pub(super) fn act(&mut self, action: Action) {
        let before = self.layout().clone();
        match action {
            Action::Move { region, to, .. } => _ = self.input.owners.insert(region, to),
            Action::Split { region, .. } => {
                self.input.owners.insert(before.next, self.input.owners[&region]);
            }
            Action::Merge { gone, .. } => _ = self.input.owners.remove(&gone),
            Action::Shift { .. } => {}
        }
        if let Some(layout) = action.layout(&before) {
            self.input.scenes[0].layout = layout.unwrap();
        }
    }
}

fn record(decision: &Decision, rule: Rule) -> &Record {
    decision.records.iter().find(|record| record.rule == rule).unwrap()
}

fn mv(region: u32, from: u64, to: u64) -> Action {
    Action::Move { region: RegionId(region), from: Incarnation(from), to: Incarnation(to) }
}

#[test]
pub(super) fn the_cost_of_any_rectangle_is_that_of_its_lands_and_of_its_band() {
    let mut paper = Paper::new(1, [0; 4]);
    (0..).zip(&mut paper.players).for_each(|(i, players)| *players = i * i % 37);
    for band_cm in [1_600, 1_400, 800, 3_200, 4_000] {
        paper.scene.band_cm = band_cm;
        paper.input.scenes[0].band_cm = band_cm;
        let plots = paper.layout().plots.clone();
        let reports = plots.iter().map(|plot| {
            let lands = Some(paper.lands(plot));
            (plot.id, RegionReport { lands, ..RegionReport::default() })
        });
        paper.input.reports = reports.collect::<BTreeMap<_, _>>();
        let state = State::new(&paper.input, &paper.settings);
        for (x0, z0, x1, z1) in
            [(0, 0, 8, 8), (2, 3, 5, 4), (0, 0, 1, 1), (7, 0, 8, 8), (3, 2, 7, 7)]
        {
            let plot = Plot { x0, z0, x1, z1, ..plots[0] };
            let window = Window::new(&plot, &state.scenes[0], &state.regions, paper.settings.ghost);
            let (found, wanted) = (window.cost(&plot), paper.cost(&plot));
            assert!((found - wanted).abs() < 1e-3 * wanted, "{band_cm} {plot:?}: {found} {wanted}");
        }
    }
}

#[test]
pub(super) fn a_hot_node_gives_a_region_after_ten_seconds_and_the_record_has_the_three_best() {
    let mut paper = Paper::new(3, [0, 0, 1, 2]).with((1, 1), 300).with((6, 1), 280);
    let decision = paper.wait(10);
    assert_eq!(decision.actions, [mv(1, 0, 1)]);
    let record = record(&decision, Rule::Move);
    assert_eq!((record.subject, record.outcome), (Subject::Node(Incarnation(0)), Ok(mv(1, 0, 1))));
    let all: Vec<_> = record.candidates.iter().map(|c| (c.action, c.refusal)).collect();
    assert_eq!(all, [(mv(1, 0, 1), None), (mv(1, 0, 2), None), (mv(0, 0, 1), None)]);
    let best = record.candidates[0];
    assert!((best.gain - 0.28).abs() < 1e-6 && best.charge > 0.0, "{best:?}");
    assert_eq!(record.inputs[0].0, "node");
}

#[test]
fn a_region_with_two_crowds_is_cut_between_them_and_the_smaller_part_is_new() {
    let mut paper = Paper::new(2, [0, 0, 1, 1]).with((1, 1), 310).with((5, 1), 300);
    paper.input.scenes[0].layout = paper.layout().scale(1, 2).unwrap();
    let decision = paper.wait(10);
    let Action::Split { region, axis, land, first } = decision.actions[0] else {
        panic!("{decision:?}");
    };
    assert_eq!((region, axis, first), (RegionId(0), purview::scene::layout::Axis::X, false));
    assert_eq!(land, 3);
    paper.act(decision.actions[0]);
    let decision = paper.wait(11);
    let part = paper.layout().plots.iter().map(|plot| plot.id.0).max().unwrap();
    assert_eq!(decision.actions, [mv(part, 0, 1)]);
}

#[test]
fn a_crowd_that_no_cut_makes_lighter_stays_whole_and_the_record_says_so() {
    let mut paper = Paper::new(2, [0, 0, 1, 1]).with((1, 1), 600);
    let decision = paper.wait(20);
    assert_eq!(decision.actions, []);
    let record = record(&decision, Rule::Split);
    assert_eq!(record.subject, Subject::Region(RegionId(0)));
    assert_eq!(record.outcome, Err(Rejection::LargePart));
    assert_eq!(record.candidates.len(), 3);
    assert!(record.candidates.iter().all(|c| c.after[0].max(c.after[1]) > 0.59));
    assert!(record.inputs.contains(&("players", 600.0)));
}

#[test]
fn a_border_is_shifted_if_no_region_is_worth_a_move() {
    let mut paper = Paper::new(2, [0, 1, 0, 1]).with((0, 1), 350).with((3, 1), 250);
    paper.settings.gather = f64::INFINITY;
    let decision = paper.wait(10);
    let (from, to) = (RegionId(0), RegionId(1));
    assert_eq!(decision.actions, [Action::Shift { from, to, lands: 2 }]);
    assert_eq!(record(&decision, Rule::Move).outcome, Err(Rejection::Gain));
}

#[test]
fn a_border_through_a_crowd_is_shifted_past_it() {
    let mut paper = Paper::new(2, [0, 1, 0, 1]).with((3, 1), 200).with((4, 1), 210);
    let decision = paper.wait(0);
    let (from, to) = (RegionId(0), RegionId(1));
    let [best, ..] = record(&decision, Rule::Gather).candidates[..] else { panic!("none") };
    assert_eq!(
        (decision.actions, best.action),
        (vec![best.action], Action::Shift { from, to, lands: 2 })
    );
    assert!(best.gain > 0.4, "{best:?}");
    // A pinned region keeps its ground.
    let mut paper = Paper::new(2, [0, 1, 0, 1]).with((3, 1), 200).with((4, 1), 210);
    paper.input.pins.insert(from, Incarnation(0));
    let decision = paper.wait(0);
    assert_eq!(decision.actions, []);
    assert_eq!(record(&decision, Rule::Gather).outcome, Err(Rejection::Pinned));
}

#[test]
fn a_border_goes_back_past_a_crowd_that_has_come_to_it() {
    let mut paper = Paper::new(2, [0, 1, 0, 1]).with((0, 1), 350).with((3, 1), 250);
    let gather = std::mem::replace(&mut paper.settings.gather, f64::INFINITY);
    let (from, to, lands) = (RegionId(0), RegionId(1), 2);
    let decision = paper.wait(10);
    assert_eq!(decision.actions, [Action::Shift { from, to, lands }]);
    paper.act(decision.actions[0]);
    paper.settings.gather = gather;
    paper.players.fill(0);
    let mut paper = paper.with((1, 1), 210).with((2, 1), 200);
    let decision = paper.wait(30);
    assert_eq!(decision.actions, [Action::Shift { from: to, to: from, lands }]);
}

#[test]
fn a_border_stays_if_only_errors_of_measurement_make_its_crowd_lighter_in_one_region() {
    let mut paper = Paper::new(2, [0, 1, 0, 1]).with((2, 1), 60).with((3, 1), 140);
    paper = paper.with((4, 1), 140).with((5, 1), 60);
    paper.report();
    for (region, error) in [(0, 1.05), (1, 0.95)] {
        paper.input.reports.get_mut(&RegionId(region)).unwrap().tick_us *= error;
    }
    let decision = decide(&paper.input, &paper.settings, &mut paper.memory);
    assert_eq!(decision.actions, []);
    assert_eq!(record(&decision, Rule::Gather).outcome, Err(Rejection::Heavy));
}

#[test]
fn light_regions_of_a_node_are_merged_down_to_the_least_number() {
    let mut paper = Paper::new(2, [0, 0, 0, 1]).with((1, 1), 20).with((6, 1), 10);
    let (region, gone) = (RegionId(0), RegionId(1));
    let decision = paper.wait(40);
    assert_eq!(decision.actions, [Action::Merge { region, gone }]);
    let mut paper = Paper::new(2, [0, 0, 0, 1]).with((1, 1), 20).with((6, 1), 10);
    paper.input.scenes[0].limits.min_regions = 4;
    assert_eq!(paper.wait(200).actions, []);
}

/// The move of region 1 from node 0 to node 1 under a constraint, and the node to which it goes instead.
fn constrained(with: impl Fn(&mut Input)) -> (Option<Rejection>, Vec<Action>) {
    let mut paper =
        Paper::new(3, [0, 0, 1, 2]).with((1, 1), 310).with((6, 1), 280).with((6, 6), 20);
    with(&mut paper.input);
    let decision = paper.wait(10);
    let found = record(&decision, Rule::Move).candidates.iter().find(|c| c.action == mv(1, 0, 1));
    (found.and_then(|c| c.refusal), decision.actions)
}

#[test]
fn a_move_obeys_each_constraint_and_the_record_names_it() {
    assert_eq!(constrained(|_| {}), (None, vec![mv(1, 0, 1)]));
    type Forbid = (Rejection, fn(&mut Input));
    let elsewhere: [Forbid; 5] = [
        (Rejection::Labels, |input| {
            input.scenes[0].limits.labels.insert("city".into());
            for node in [0, 2] {
                input.nodes[node].labels.insert("city".into());
            }
        }),
        (Rejection::Zone, |input| {
            input.scenes[0].limits.zone = "a".into();
            for node in [0, 2] {
                input.nodes[node].zone = "a".into();
            }
        }),
        (Rejection::MaxNodes, |input| input.scenes[0].limits.max_nodes = 2),
        (Rejection::Drained, |input| input.nodes[1].drained = true),
        (Rejection::Waits, |input| input.nodes[1].waits = true),
    ];
    for (refusal, with) in elsewhere {
        let found = constrained(|input| {
            with(input);
            input.owners.insert(RegionId(2), Incarnation(2));
        });
        assert_eq!(found, (Some(refusal), vec![mv(1, 0, 2)]));
    }
    let reserved = |input: &mut Input| {
        let ground = Plot { x0: 0, z0: 6, x1: 1, z1: 8, ..input.scenes[0].layout.plots[0] };
        input.scenes[0].reserved = vec![Reserved { ground, nodes: [Incarnation(1)].into() }];
    };
    assert_eq!(constrained(reserved), (Some(Rejection::Reserved), vec![mv(1, 0, 2)]));
    let pinned = |input: &mut Input| _ = input.pins.insert(RegionId(1), Incarnation(0));
    let (refusal, actions) = constrained(pinned);
    assert_eq!((refusal, actions), (Some(Rejection::Pinned), vec![mv(0, 0, 1)]));
    let busy = |input: &mut Input| _ = input.moving.insert(RegionId(2), Incarnation(1));
    assert_eq!(constrained(busy).0, Some(Rejection::Busy));
}

#[test]
fn a_receiver_stays_below_the_safety_bound() {
    let mut paper =
        Paper::new(2, [0, 0, 1, 1]).with((1, 1), 900).with((6, 1), 500).with((1, 6), 500);
    let decision = paper.wait(30);
    let record = record(&decision, Rule::Move);
    assert_eq!(record.outcome, Err(Rejection::Safety), "{record:?}");
}

#[test]
fn a_drained_node_empties_one_region_at_a_time_to_where_most_room_is() {
    let mut paper = Paper::new(3, [0, 0, 1, 2]).with((1, 1), 10).with((1, 6), 100);
    paper.input.nodes[0].drained = true;
    let mut moves = Vec::new();
    for now_s in 0..3 {
        paper.input.now_s = now_s;
        for action in paper.decide().actions {
            moves.push(action);
            paper.act(action);
        }
    }
    assert_eq!(moves, [mv(0, 0, 2), mv(1, 0, 2)]);
}

#[test]
fn nothing_is_decided_while_paused_and_a_region_without_a_report_keeps_its_node_out() {
    let mut paper = Paper::new(3, [0, 0, 1, 2]).with((1, 1), 300).with((6, 1), 280);
    paper.input.paused = true;
    let decision = paper.wait(30);
    assert_eq!(decision.records[0].outcome, Err(Rejection::Paused));
    paper.input.paused = false;
    paper.report();
    paper.input.reports.remove(&RegionId(2));
    let decision = decide(&paper.input, &paper.settings, &mut paper.memory);
    assert_eq!(decision.actions, [mv(1, 0, 2)]);
}

#[test]
fn more_nodes_are_wanted_at_once_and_fewer_after_ten_minutes() {
    let mut paper = Paper::new(2, [0, 0, 1, 1]).with((1, 1), 650).with((6, 6), 650);
    assert_eq!(paper.decide().nodes_wanted, 3);
    paper.players.fill(0);
    for (now_s, wanted) in [(1, 3), (599, 3), (600, 1)] {
        paper.input.now_s = now_s;
        assert_eq!(paper.decide().nodes_wanted, wanted, "at {now_s} s");
    }
    paper.input.scenes[0].limits.min_nodes = 2;
    assert_eq!(paper.decide().nodes_wanted, 2);
}

//! What the balancer sees of the store, and what it leaves there.

use std::collections::BTreeMap;

use bytes::Bytes;
use purview::scene::layout::Axis;
use purview::scene::{Epoch, RegionId, Scene, SceneId, SceneSpec, Visibility};

use super::act::{Outcome, act};
use super::*;
use crate::node::balance::{Action, NeighbourReport, RegionReport};
use crate::node::layout_change::{Record, key, record_now};
use crate::node::plan::{MOVES, Move, PLAN, Plan};
use crate::node::reservations::Reservation;
use crate::storage::leases::embedded::Embedded;
use crate::storage::{Event, Incarnation, NodeInfo, Owner, RegionKey, Revision, Value};

/// Two by two regions, each of four by four lands.
fn scene(visibility: Visibility) -> Arc<Scene> {
    let lands = if visibility == Visibility::All { 8 } else { 4 };
    let spec = SceneSpec {
        name: "city".into(),
        width_cm: 8 * 6_400,
        depth_cm: 8 * 6_400,
        land_cm: 6_400,
        region_lands_x: lands,
        region_lands_z: lands,
        visibility,
        spawn_x_cm: 0,
        spawn_z_cm: 0,
        ..SceneSpec::default()
    };
    Arc::new(Scene::new(SceneId(0), spec, 50, RegionId(0)).unwrap())
}

const NEAR: Visibility = Visibility::Circle { enter_cm: 4_000, leave_cm: 4_400 };

fn node(name: &str, regions: bool, capacity: u32) -> NodeInfo {
    NodeInfo { regions, gateway: !regions, capacity, ..NodeInfo::for_test(name) }
}

const A: Incarnation = Incarnation(3);
const B: Incarnation = Incarnation(7);

/// Nodes `a` and `b`; `a` owns all regions.
fn view() -> View {
    let owner = |region: u32| {
        let key = RegionKey { scene: "city".into(), region, planes: 0 };
        let epoch = Epoch(10 + u64::from(region));
        (key, Owner { node: "a".into(), incarnation: A, epoch, lineage: epoch })
    };
    View {
        nodes: [(A, node("a", true, 100)), (B, node("b", true, 250)), (GATE, node("g", false, 1))]
            .into(),
        owners: (0..4).map(owner).collect(),
        ..View::default()
    }
}

const GATE: Incarnation = Incarnation(9);

fn value(data: &impl serde::Serialize) -> Value {
    Value { revision: Revision(1), data: Bytes::from(serde_json::to_vec(data).unwrap()) }
}

fn seen(view: &View, maps: &Maps) -> Input {
    let pins = [(RegionId(2), "b".into())].into();
    let wishes = Wishes { paused_s: 3, pins, ..Wishes::default() };
    let reports = [(RegionId(1), RegionReport::default())].into();
    input::input((view, maps), &wishes, reports, 17)
}

#[test]
fn the_balancer_sees_nodes_owners_and_what_is_under_way() {
    let scene = scene(NEAR);
    let (maps, mut view) = (Maps::new(std::slice::from_ref(&scene)), view());
    let now = seen(&view, &maps);
    assert_eq!((now.now_s, now.paused, now.reports.len()), (17, true, 1));
    let cores: Vec<(Incarnation, f64)> = now.nodes.iter().map(|s| (s.node, s.cores)).collect();
    assert_eq!(cores, [(A, 1.0), (B, 2.5)]);
    assert_eq!(now.owners.len(), 4);
    assert_eq!(now.pins, [(RegionId(2), B)].into());
    assert_eq!(now.moving.len(), 0);
    let [city] = now.scenes.as_slice() else { panic!("{:?}", now.scenes) };
    assert_eq!((city.tick_us, city.land_cm, city.changing), (50_000, 6_400, false));
    assert_eq!(city.band_cm, scene.bonded_band_cm);
    assert_eq!((city.limits.min_regions, city.limits.max_regions), (4, 0));
    // Region 1 is meant for another node, region 2 is on its way, and region 3 is meant for none that is there.
    let plan = Plan { of: [(0, A.0), (1, B.0), (3, 99)].into(), ..Plan::default() };
    view.values.insert(PLAN.into(), value(&plan));
    let way = Move { region: 2, epoch: 12, from: A.0, to: B.0 };
    view.values.insert(MOVES.into(), value(&[way]));
    assert_eq!(seen(&view, &maps).moving, [(RegionId(1), B), (RegionId(2), B)].into());
    // Names that were given are not given again, and a change that is not over yet is under way.
    let record = Record { names: 1_000_007, ..Record::default() };
    view.values.insert(key(&scene), value(&record));
    let scenes = seen(&view, &maps).scenes;
    assert_eq!((scenes[0].layout.next, scenes[0].changing), (RegionId(1_000_007), false));
    let mut record = Record::default();
    record.retiring.insert(5, Default::default());
    view.values.insert(key(&scene), value(&record));
    assert!(seen(&view, &maps).scenes[0].changing);
    let layout = scene.map.layout().split(RegionId(0)).unwrap();
    let record = Record { layout: Some(layout), ..Record::default() };
    view.values.insert(key(&scene), value(&record));
    assert!(seen(&view, &maps).scenes[0].changing, "not followed yet");
}

#[test]
fn a_pin_to_a_node_that_is_reserved_for_other_ground_does_not_count() {
    let maps = Maps::new(&[scene(NEAR)]);
    let pinned = |lands| {
        let (scene, nodes) = ("city".into(), ["b".to_owned()].into());
        let reservation = Reservation { scene, lands, nodes, until_ms: 1 };
        let pins = [(RegionId(2), "b".into())].into();
        let wishes = Wishes { pins, reservations: vec![reservation], ..Wishes::default() };
        input::input((&view(), &maps), &wishes, BTreeMap::new(), 0).pins
    };
    // Region 2 is in the south-west, and has four by four lands.
    assert_eq!(pinned([0, 4, 4, 8]), [(RegionId(2), B)].into());
    assert_eq!(pinned([4, 0, 8, 4]), BTreeMap::new());
}

#[test]
fn a_scene_in_which_all_see_all_stays_one_region() {
    let now = seen(&view(), &Maps::new(&[scene(Visibility::All)]));
    let limits = &now.scenes[0].limits;
    assert_eq!((limits.min_regions, limits.max_regions), (1, 1));
}

#[test]
fn a_scene_without_borders_has_the_band_that_it_would_need() {
    let spec = SceneSpec { region_lands_x: 8, region_lands_z: 8, ..scene(NEAR).spec.clone() };
    let whole = Arc::new(Scene::new(SceneId(0), spec, 50, RegionId(0)).unwrap());
    assert_eq!((whole.band_cm, whole.configured_regions()), (0, 1));
    let now = seen(&view(), &Maps::new(&[whole]));
    assert_eq!(now.scenes[0].band_cm, scene(NEAR).band_cm);
}

async fn view_of(store: &Embedded) -> View {
    match store.another().watch().next().await {
        Some(Ok(Event::Snapshot(view))) => view,
        other => panic!("{other:?}"),
    }
}

fn decision(actions: &[Action]) -> Decision {
    Decision { actions: actions.to_vec(), ..Decision::default() }
}

const AWAY: Action = Action::Move { region: RegionId(1), from: A, to: B };

#[tokio::test]
async fn a_move_is_planned_only_if_the_balancer_is_on_and_the_plan_is_the_one_it_has_seen() {
    let embedded = Embedded::new(Epoch(0));
    let store: Arc<dyn Leases> = Arc::new(embedded.another());
    let maps = Maps::new(&[scene(NEAR)]);
    let before = view_of(&embedded).await;
    let known = (&before, &maps);
    for mode in [BalanceMode::Off, BalanceMode::Explain] {
        let done = act(&store, known, mode, &decision(&[AWAY])).await;
        assert_eq!(done, [Outcome::Explained]);
        assert!(store.get(PLAN).await.unwrap().is_none());
    }
    let done = act(&store, known, BalanceMode::On, &decision(&[AWAY])).await;
    assert_eq!(done, [Outcome::Ordered]);
    let planned = |value: Option<Value>| {
        serde_json::from_slice::<Plan>(&value.expect("there is a plan").data).unwrap()
    };
    assert_eq!(planned(store.get(PLAN).await.unwrap()).of, [(1, B.0)].into());
    // Another leader has planned meanwhile.
    let back = Action::Move { region: RegionId(1), from: B, to: A };
    let done = act(&store, known, BalanceMode::On, &decision(&[back])).await;
    assert!(matches!(&done[..], [Outcome::Failed(_)]), "{done:?}");
    assert_eq!(planned(store.get(PLAN).await.unwrap()).of, [(1, B.0)].into());
    let none = act(&store, known, BalanceMode::On, &decision(&[])).await;
    assert_eq!(none.len(), 0);
}

#[tokio::test]
async fn changes_of_layouts_become_orders_and_wait_for_each_other() {
    let scene = scene(NEAR);
    let maps = Maps::new(std::slice::from_ref(&scene));
    let now = scene.map.layout();
    let split = Action::Split { region: RegionId(0), axis: Axis::X, land: 2, first: true };
    let shift = Action::Shift { from: RegionId(0), to: RegionId(1), lands: 1 };
    let merge = Action::Merge { region: RegionId(0), gone: RegionId(2) };
    for action in [split, shift, merge] {
        let embedded = Embedded::new(Epoch(0));
        let store: Arc<dyn Leases> = Arc::new(embedded.another());
        let before = view_of(&embedded).await;
        let known = (&before, &maps);
        let done = act(&store, known, BalanceMode::On, &decision(&[action])).await;
        assert_eq!(done, [Outcome::Ordered], "{action:?}");
        let next = record_now(&*store, &scene).await.unwrap().next.expect("a change may come");
        assert_eq!(next.layout, action.layout(&now).unwrap().unwrap(), "{action:?}");
        let again = act(&store, known, BalanceMode::On, &decision(&[action])).await;
        assert!(matches!(&again[..], [Outcome::Failed(_)]), "{again:?}");
    }
}

#[tokio::test]
async fn a_change_that_a_layout_refuses_is_told_as_failed() {
    let scene = scene(NEAR);
    let embedded = Embedded::new(Epoch(0));
    let store: Arc<dyn Leases> = Arc::new(embedded.another());
    let (maps, before) = (Maps::new(std::slice::from_ref(&scene)), view_of(&embedded).await);
    for action in [
        Action::Shift { from: RegionId(0), to: RegionId(3), lands: 1 },
        Action::Shift { from: RegionId(0), to: RegionId(1), lands: 4 },
        Action::Split { region: RegionId(0), axis: Axis::Z, land: 4, first: false },
        Action::Merge { region: RegionId(0), gone: RegionId(77) },
    ] {
        let done = act(&store, (&before, &maps), BalanceMode::On, &decision(&[action])).await;
        assert!(matches!(&done[..], [Outcome::Failed(_)]), "{action:?}: {done:?}");
        assert_eq!(record_now(&*store, &scene).await.unwrap(), Record::default());
    }
}

#[test]
fn what_is_told_has_the_newest_record_of_each_subject_and_the_last_actions() {
    let scene = scene(NEAR);
    let (maps, view, board) = (Maps::new(std::slice::from_ref(&scene)), view(), Board::default());
    assert_eq!((board.survey(), board.json(), board.nodes_wanted()), (None, String::new(), None));
    let mut input = seen(&view, &maps);
    input.paused = false;
    let near = |region, pairs| {
        let neighbours = vec![NeighbourReport { region: RegionId(region), pairs, ghosts: 2 }];
        RegionReport { tick_us: 40_000.0, players: 9, neighbours, ..RegionReport::default() }
    };
    input.reports.insert(RegionId(1), near(0, 5));
    let (mut memory, wishes) = (Memory::default(), Wishes::default());
    let tell = |input: &Input, memory: &mut Memory| {
        let decision = decide(input, &Settings::default(), memory);
        let outcomes = vec![Outcome::Explained; decision.actions.len()];
        board.tell(
            (view.clone(), input.clone(), &wishes),
            BalanceMode::Explain,
            (&decision, &outcomes),
        );
        decision.actions.len()
    };
    let mut actions = 0;
    for _ in 0..30 {
        actions += tell(&input, &mut memory);
        input.now_s += 1;
    }
    let told = board.survey().unwrap();
    assert_eq!(serde_json::from_str::<BalanceSurvey>(&board.json()).unwrap(), told);
    assert!(actions > 0 && told.actions.len() == actions, "{told:#?}");
    let pin = told.actions.iter().find(|line| line.action == "move R2 from a to b").unwrap();
    assert_eq!(pin.outcome, "explained");
    let (a, b) = (&told.nodes[0], &told.nodes[1]);
    assert_eq!((a.share, a.regions, a.unreported), (0.8, 4, 3));
    assert_eq!((b.cores, b.regions), (2.5, 0));
    assert_eq!((told.regions.len(), told.regions.last().unwrap().region), (4, 1));
    assert_eq!(told.regions.last().unwrap().share, Some(0.8));
    assert_eq!(told.borders, [BorderLoad { regions: [0, 1], pairs: 5, ghosts: 2 }]);
    // What is to come needs no time to have passed: the pinned region goes to its node.
    let next: Vec<&str> = told.plan.iter().map(|line| line.action.as_str()).collect();
    assert_eq!((next, told.plan[0].ordered), (vec!["move R2 from a to b"], false), "{told:#?}");
    let mut subjects: Vec<&str> = told.records.iter().map(|r| r.subject.as_str()).collect();
    subjects.sort_unstable();
    let count = subjects.len();
    subjects.dedup();
    assert_eq!(subjects.len(), count, "{told:#?}");
    board.clear();
    assert_eq!(board.survey(), None);
}

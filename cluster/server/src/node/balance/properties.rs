//! What holds of all decisions, however loads, nodes and wishes are.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::Index;
use purview::scene::RegionId;
use purview::scene::layout::Plot;
use purview::scene::mutants::{Mutant, is_noticed_by};

use super::tests::{LANDS, Paper};
use super::*;
use crate::storage::Incarnation;

/// Under a constant load nothing is decided any more after the longest cool-down; at most so many actions until then.
const ACTIONS: usize = 40;

/// Crowds: where, and how many players.
type Crowds = Vec<(i32, i32, u32)>;

fn crowds() -> impl Strategy<Value = Crowds> {
    prop::collection::vec((0..LANDS, 0..LANDS, 0u32..400), 0..12)
}

/// What operators want, in numbers.
type Wishes = (Option<(u32, u64)>, Option<u64>, (u32, u32), Option<(i32, i32)>, Option<u64>);

fn wishes() -> impl Strategy<Value = Wishes> {
    let pin = prop::option::of((0u32..4, 0u64..4));
    let whole = prop::option::of((0..LANDS - 2, 0..LANDS - 2));
    let [drained, labelled] = [(); 2].map(|()| prop::option::of(0u64..4));
    (pin, drained, (1u32..5, 4u32..9), whole, labelled)
}

fn gather(paper: &mut Paper, crowds: &Crowds) {
    paper.players.fill(0);
    for (x, z, players) in crowds {
        paper.players[(z * LANDS + x) as usize] += players;
    }
}

fn with_wishes(paper: &mut Paper, (pin, drained, (least, most), whole, labelled): Wishes) {
    let node = |node: u64| Incarnation(node % paper.input.nodes.len() as u64);
    paper.input.pins.extend(pin.map(|(region, to)| (RegionId(region), node(to))));
    let (drained, labelled) = (drained.map(node), labelled.map(node));
    let scene = &mut paper.input.scenes[0];
    (scene.limits.min_regions, scene.limits.max_regions) = (least, most);
    let ground = |(x0, z0)| Plot { x0, z0, x1: x0 + 2, z1: z0 + 2, ..scene.layout.plots[0] };
    scene.whole.extend(whole.map(ground));
    for site in &mut paper.input.nodes {
        site.drained = Some(site.node) == drained;
        if labelled.is_some_and(|without| without != site.node) {
            site.labels.insert("pool".into());
        }
    }
    if labelled.is_some() {
        scene.limits.labels.insert("pool".into());
    }
}

/// What was done, to judge what comes.
#[derive(Default)]
struct Past {
    left: Vec<(u64, RegionId, Incarnation)>,
    moves: Vec<u64>,
    changes: Vec<u64>,
}

/// Whether a decision is as it must be, before it is carried out.
fn judge(paper: &Paper, past: &mut Past, decision: &Decision) -> Result<(), TestCaseError> {
    let (input, s, now) = (&paper.input, &paper.settings, paper.input.now_s);
    let mut taken = Vec::new();
    for record in decision.records.iter().filter(|record| record.outcome.is_ok()) {
        let best = record.candidates[0];
        prop_assert_eq!(record.outcome, Ok(best.action));
        let misplaced = record.rule == Rule::Misplaced;
        if !misplaced {
            let least = if record.rule == Rule::Merge { 0.0 } else { 1e-9 };
            prop_assert!(best.score() >= least && best.gain >= least, "{best:?}");
        }
        if let Action::Move { region, from, to } = best.action {
            let site = input.nodes.iter().find(|site| site.node == to).unwrap();
            let all = input.nodes.iter().all(|site| site.drained);
            let pin = input.pins.get(&region);
            prop_assert!(pin.is_none_or(|pin| *pin == to), "{best:?}");
            prop_assert!(pin.is_some() || all || !site.drained);
            prop_assert!(pin.is_some() || input.scenes[0].limits.labels.is_subset(&site.labels));
            let lately = |(at, id, node): &(u64, RegionId, Incarnation)| {
                (*id, *node) == (region, to) && now < at + s.tabu_s
            };
            prop_assert!(misplaced || !past.left.iter().any(lately), "a return: {best:?}");
            prop_assert!(misplaced || best.after[1] <= s.safety, "{best:?}");
            taken.extend([from, to]);
            past.left.push((now, region, from));
            past.moves.extend((!misplaced).then_some(now));
        } else {
            prop_assert!(past.changes.iter().all(|at| now >= at + s.layout_s), "at {now}");
            past.changes.push(now);
            judge_layout(paper, best.action)?;
        }
    }
    taken.sort();
    let both = taken.windows(2).any(|pair| pair[0] == pair[1]);
    prop_assert!(!both, "a node twice: {:?}", decision.actions);
    let in_a_minute = past.moves.iter().filter(|at| now < *at + 60).count();
    prop_assert!(in_a_minute <= s.moves_per_min, "{in_a_minute} moves");
    Ok(())
}

/// Whether a layout is legal, keeps whole what must be, and leaves pinned regions as they are.
fn judge_layout(paper: &Paper, action: Action) -> Result<(), TestCaseError> {
    let (scene, before) = (&paper.input.scenes[0], paper.layout());
    let after = action.layout(before).unwrap().unwrap();
    prop_assert!(paper.scene.with_layout(&after).is_ok(), "{action:?}");
    let (limits, regions) = (&scene.limits, after.plots.len());
    let fits = match action {
        Action::Split { .. } => regions <= limits.max_regions as usize,
        Action::Merge { .. } => regions >= limits.min_regions as usize,
        _ => regions == before.plots.len(),
    };
    prop_assert!(fits, "{action:?}: {regions} regions");
    for pinned in paper.input.pins.keys() {
        prop_assert_eq!(after.plot(*pinned), before.plot(*pinned));
    }
    let parts = |plots: &[Plot], ground: &Plot| {
        let meets = |p: &&Plot| {
            p.x0 < ground.x1 && ground.x0 < p.x1 && p.z0 < ground.z1 && ground.z0 < p.z1
        };
        plots.iter().filter(meets).count()
    };
    for ground in &scene.whole {
        let (then, now) = (parts(&after.plots, ground), parts(&before.plots, ground));
        prop_assert!(then <= now, "{action:?} cuts {ground:?}");
    }
    Ok(())
}

#[test]
fn the_planners_deliberate_bugs_are_noticed() {
    use super::tests::{
        a_hot_node_gives_a_region_after_ten_seconds_and_the_record_has_the_three_best as hot,
        the_cost_of_any_rectangle_is_that_of_its_lands_and_of_its_band as cost,
    };
    assert!(is_noticed_by(Mutant::RelievedAtOnce, hot));
    assert!(is_noticed_by(Mutant::GhostsFree, cost));
    let legal = whatever_is_decided_is_legal_within_budgets_and_better_than_nothing;
    assert!(is_noticed_by(Mutant::MovesUnlimited, legal));
    assert!(is_noticed_by(Mutant::NarrowCut, legal));
}

proptest! {
    // Deliberate bugs make them fail, which nobody needs to remember.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn whatever_is_decided_is_legal_within_budgets_and_better_than_nothing(
        nodes in 1u64..5,
        wishes in wishes(),
        phases in prop::collection::vec((crowds(), 20u64..120), 1..6),
        pace in 1u64..4,
    ) {
        let mut paper = Paper::new(nodes, [0, 1, 2, 3].map(|node| node % nodes));
        with_wishes(&mut paper, wishes);
        paper.settings.moves_per_min = 1;
        let mut past = Past::default();
        for (crowds, seconds) in phases {
            gather(&mut paper, &crowds);
            let end = paper.input.now_s + seconds;
            while paper.input.now_s < end {
                let decision = paper.decide();
                judge(&paper, &mut past, &decision)?;
                decision.actions.into_iter().for_each(|action| paper.act(action));
                paper.input.now_s += pace;
            }
        }
    }

    #[test]
    fn the_order_of_lists_changes_nothing(
        crowds in crowds(),
        order in prop::collection::vec(any::<Index>(), 8),
        wishes in wishes(),
    ) {
        let mut one = Paper::new(4, [0, 0, 0, 1]);
        with_wishes(&mut one, wishes);
        gather(&mut one, &crowds);
        let mut other = Paper::new(4, [0, 0, 0, 1]);
        for now_s in 0..60 {
            one.input.now_s = now_s;
            one.report();
            let mut input = one.input.clone();
            for (i, at) in order.iter().enumerate() {
                input.nodes.swap(i % 4, at.index(4));
                let plots = &mut input.scenes[0].layout.plots;
                let (from, to) = (i % plots.len(), at.index(plots.len()));
                plots.swap(from, to);
                for report in input.reports.values_mut() {
                    report.lands.as_mut().unwrap().reverse();
                    let near = report.neighbours.len().max(1);
                    report.neighbours.rotate_left(at.index(near));
                }
            }
            let decision = one.decide();
            prop_assert_eq!(&decide(&input, &other.settings, &mut other.memory), &decision);
            decision.actions.into_iter().for_each(|action| one.act(action));
        }
    }

    #[test]
    fn a_constant_load_comes_to_rest(crowds in crowds(), nodes in 2u64..5) {
        let mut paper = Paper::new(nodes, [0, 1, 2, 3].map(|node| node % nodes));
        gather(&mut paper, &crowds);
        let longest = paper.settings.cool_s[1];
        let mut actions = BTreeMap::new();
        for now_s in 0..longest + 600 {
            paper.input.now_s = now_s;
            for action in paper.decide().actions {
                prop_assert!(now_s <= longest, "at {now_s} s: {action:?}");
                actions.insert((now_s, action), ());
                paper.act(action);
            }
        }
        prop_assert!(actions.len() <= ACTIONS, "{actions:?}");
    }
}

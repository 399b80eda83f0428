//! Rolling upgrades, as the plans of their steps: how often a region moves.

use super::*;

/// A cluster by its plan alone: each region is at once where it is meant to be.
struct Rehearsal {
    plots: Vec<Plot<RegionId>>,
    plan: Plan,
    /// The nodes, in the order in which they joined.
    nodes: Vec<u64>,
    moves: HashMap<RegionId, u32>,
}

impl Rehearsal {
    /// So many nodes, which have started together, and regions in rows of eight.
    fn new(nodes: u64, regions: u32) -> Rehearsal {
        let at = |region: u32| ((region % 8) as i32, (region / 8) as i32);
        let plot = |region: u32| {
            let (x, z) = at(region);
            let near = |other: &u32| {
                let (ox, oz) = at(*other);
                *other != region && (ox - x).abs() <= 1 && (oz - z).abs() <= 1
            };
            let neighbours = (0..regions).filter(near).map(RegionId).collect();
            Plot { region: RegionId(region), middle: (x as u32, z as u32), neighbours, pool: 0 }
        };
        let (plots, nodes) = ((0..regions).map(plot).collect(), (1..=nodes).collect());
        let (plan, moves) = Default::default();
        let mut rehearsal = Rehearsal { plots, plan, nodes, moves };
        rehearsal.step(None, false);
        rehearsal.moves.clear();
        rehearsal
    }

    /// Plans once, and again: nothing more is to be done then.
    fn step(&mut self, drained: Option<u64>, is_settled: bool) {
        for _ in 0..2 {
            let takes = self.nodes.iter().filter(|node| Some(**node) != drained);
            let sites: Vec<Site<u64>> =
                takes.map(|node| Site { node: *node, capacity: 100 }).collect();
            let lives = |node: &u64| sites.iter().any(|site| site.node == *node);
            let kept = self.plan.of.iter().filter(|(_, node)| lives(node));
            let kept = kept.map(|(region, node)| (RegionId(*region), *node)).collect();
            let drained = drained.into_iter().collect();
            let plan = next(
                &self.plan,
                (&sites, &Pools::default(), &drained),
                (&self.plots, &kept),
                is_settled,
            );
            for (region, node) in &plan.of {
                if self.plan.of.get(region).is_some_and(|before| before != node) {
                    *self.moves.entry(RegionId(*region)).or_default() += 1;
                }
            }
            self.plan = plan;
        }
    }

    fn comes(&mut self) -> u64 {
        let node = self.nodes.iter().max().unwrap_or(&0) + 1;
        self.nodes.push(node);
        self.step(None, false);
        node
    }

    fn leaves(&mut self, node: u64) {
        self.step(Some(node), false);
        assert!(self.plan.of.values().all(|owner| *owner != node));
        self.nodes.retain(|known| *known != node);
        self.step(None, false);
    }

    /// As Kubernetes replaces them: a new one comes, then an old one leaves.
    fn replace(&mut self, node: u64) -> u64 {
        let new = self.comes();
        self.leaves(node);
        new
    }

    fn moves(&self) -> u32 {
        self.moves.values().sum()
    }

    fn most(&self) -> u32 {
        self.moves.values().copied().max().unwrap_or(0)
    }

    fn counts(&self) -> Vec<usize> {
        let count = |node: &u64| self.plan.of.values().filter(|owner| *owner == node).count();
        self.nodes.iter().map(count).collect()
    }
}

#[test]
fn a_rolling_upgrade_moves_each_region_about_once() {
    for order in [[1, 2, 3, 4, 5], [5, 4, 3, 2, 1], [3, 1, 5, 2, 4]] {
        let mut cluster = Rehearsal::new(5, 40);
        for node in order {
            cluster.replace(node);
        }
        cluster.step(None, true);
        assert_eq!(cluster.counts(), [8; 5]);
        // 40 must move. The first new node is given its share before it is known that others follow: what it has no room
        // for, when the first old one leaves, moves a second time. Shared out at each step it would be 60 to 64.
        let (moves, most) = (cluster.moves(), cluster.most());
        assert!(moves <= 46 && most <= 2, "{moves} moves of 40 regions, {most} of one: {order:?}");
    }
}

#[test]
fn an_upgrade_that_is_rolled_back_half_way_moves_only_what_it_had_moved() {
    let mut cluster = Rehearsal::new(5, 40);
    let new = [1, 2].map(|node| cluster.replace(node));
    let there = cluster.moves();
    for node in new {
        cluster.replace(node);
    }
    cluster.step(None, true);
    assert_eq!(cluster.counts(), [8; 5]);
    // 16 regions move there, and back.
    let (moves, most) = (cluster.moves(), cluster.most());
    assert!(there <= 21 && moves <= 40 && most <= 3, "{there}, {moves} moves, {most} of one");
}

/// As a unit or a container is restarted: each region has to go, and the first ones go where others are stopped later.
#[test]
fn nodes_that_end_before_their_successors_begin_move_each_region_less_than_twice() {
    let mut cluster = Rehearsal::new(5, 40);
    for node in 1..=5 {
        cluster.leaves(node);
        cluster.comes();
    }
    cluster.step(None, true);
    assert_eq!(cluster.counts(), [8; 5]);
    assert!(cluster.moves() <= 60, "{} moves of 40 regions", cluster.moves());
}

#[test]
fn a_node_that_comes_to_stay_is_given_its_share() {
    let mut cluster = Rehearsal::new(5, 40);
    cluster.comes();
    assert_eq!(cluster.counts().iter().max(), Some(&7), "at once, where none was drained");
    cluster.leaves(1);
    let node = cluster.comes();
    assert!(waits(&cluster.plan, node) && cluster.counts().last() == Some(&0));
    cluster.step(None, true);
    assert!(!waits(&cluster.plan, node));
    assert_eq!(cluster.counts().iter().max(), Some(&7), "after a while, where one was drained");
}

#[test]
fn what_dies_goes_first_to_a_node_that_waits() {
    let mut cluster = Rehearsal::new(3, 30);
    let _first = cluster.replace(1);
    let waiting = cluster.comes();
    cluster.nodes.retain(|node| *node != 2);
    let before = cluster.plan.of.clone();
    cluster.step(None, false);
    let moved = cluster.plan.of.iter().filter(|(region, node)| before[region] != **node);
    assert!(moved.clone().count() >= 9 && moved.clone().all(|(_, node)| *node == waiting));
}

//! Shares, pools, and that nothing moves without need.

use super::*;

const NONE: BTreeSet<u32> = BTreeSet::new();

/// `side` x `side` regions, numbered row by row.
fn grid(side: u32) -> Vec<Plot<u32>> {
    let at = |i: u32| ((i % side) as i32, (i / side) as i32);
    (0..side * side)
        .map(|region| {
            let (x, z) = at(region);
            let near = |other: &u32| {
                let (ox, oz) = at(*other);
                *other != region && (ox - x).abs() <= 1 && (oz - z).abs() <= 1
            };
            let neighbours = (0..side * side).filter(near).collect();
            Plot { region, middle: (x as u32 * 100 + 50, z as u32 * 100 + 50), neighbours, pool: 0 }
        })
        .collect()
}

fn sites(capacities: &[u32]) -> Vec<Site<u32>> {
    let site = |(node, capacity): (usize, &u32)| Site { node: node as u32, capacity: *capacity };
    capacities.iter().enumerate().map(site).collect()
}

fn counts(owners: &BTreeMap<u32, u32>, nodes: usize) -> Vec<usize> {
    (0..nodes).map(|n| owners.values().filter(|o| **o == n as u32).count()).collect()
}

/// Pairs of neighbours with different owners.
fn borders(plots: &[Plot<u32>], owners: &BTreeMap<u32, u32>) -> usize {
    let cut = |plot: &Plot<u32>| {
        plot.neighbours.iter().filter(|n| owners[n] != owners[&plot.region]).count()
    };
    plots.iter().map(cut).sum::<usize>() / 2
}

#[test]
fn everybody_gets_a_share_by_its_capacity_and_neighbours_stay_together() {
    let plots = grid(8);
    let owners = plan((&sites(&[100, 100, 200]), &[]), &NONE, &plots, &HashMap::new());
    assert_eq!(counts(&owners, 3), [16, 16, 32]);
    let scattered = (0..64).map(|region| (region, region % 3)).collect();
    assert!(borders(&plots, &owners) * 3 < borders(&plots, &scattered));
}

#[test]
fn what_is_owned_stays_and_only_what_a_dead_node_had_is_given_away() {
    let plots = grid(6);
    let before = plan((&sites(&[100, 100, 100]), &[]), &NONE, &plots, &HashMap::new());
    let living: HashMap<u32, u32> =
        before.iter().filter(|(_, n)| **n != 1).map(|(r, n)| (*r, *n)).collect();
    let left: Vec<_> = sites(&[100, 100, 100]).into_iter().filter(|s| s.node != 1).collect();
    let after = plan((&left, &[]), &NONE, &plots, &living);
    assert_eq!(after.len(), 36);
    assert!(living.iter().all(|(region, node)| after[region] == *node));
    assert_eq!(counts(&after, 3), [18, 0, 18]);
}

#[test]
fn a_new_node_gets_its_share_and_nothing_else_moves() {
    let plots = grid(8);
    let mut owners = plan((&sites(&[100, 100, 100]), &[]), &NONE, &plots, &HashMap::new());
    let before = owners.clone();
    let four = sites(&[100, 100, 100, 100]);
    rebalance((&four, &[]), &plots, &mut owners);
    assert_eq!(counts(&owners, 4), [16, 16, 16, 16]);
    let moved = owners.iter().filter(|(r, n)| before[r] != **n);
    assert!(moved.clone().all(|(_, n)| *n == 3));
    assert_eq!(moved.count(), 16);
    // Even as it is, nothing moves again.
    let now = owners.clone();
    rebalance((&four, &[]), &plots, &mut owners);
    assert_eq!(owners, now);
}

#[test]
fn shares_follow_capacities_and_small_differences_move_nothing() {
    let plots = grid(6);
    let mut owners: BTreeMap<u32, u32> = (0..36).map(|region| (region, 0)).collect();
    rebalance((&sites(&[100, 200]), &[]), &plots, &mut owners);
    assert_eq!(counts(&owners, 2), [12, 24]);
    let mut odd: BTreeMap<u32, u32> = (0..4).map(|region| (region, region % 3)).collect();
    let before = odd.clone();
    rebalance((&sites(&[100, 100, 100]), &[]), &grid(2), &mut odd);
    assert_eq!(odd, before);
    rebalance::<u32, u32>((&[], &[]), &plots, &mut owners);
}

#[test]
fn nobody_is_asked_to_do_what_nobody_can() {
    assert_eq!(plan::<u32, u32>((&[], &[]), &NONE, &grid(2), &HashMap::new()), BTreeMap::new());
    let owners = plan((&sites(&[1, 1, 1, 1, 1, 1]), &[]), &NONE, &grid(2), &HashMap::new());
    assert_eq!(counts(&owners, 6).iter().sum::<usize>(), 4);
    assert!(counts(&owners, 6).iter().all(|n| *n <= 1));
    let zero = plan((&sites(&[0, 0]), &[]), &NONE, &grid(2), &HashMap::new());
    assert_eq!(counts(&zero, 2), [2, 2]);
}

/// A pool of these nodes. At most `most` of them own regions; 0: all may.
fn pool(nodes: &[u32], most: usize) -> Pool<u32> {
    Pool { nodes: nodes.iter().copied().collect(), most }
}

/// A grid: regions of rows below `row` are in pool 0, all others in pool 1.
fn two_pools(side: u32, row: u32) -> Vec<Plot<u32>> {
    let pool = |plot: &Plot<u32>| usize::from(plot.region >= row * side);
    grid(side).into_iter().map(|plot| Plot { pool: pool(&plot), ..plot }).collect()
}

#[test]
fn regions_stay_in_their_pool_and_others_fill_the_rest() {
    let (plots, nodes) = (two_pools(8, 6), sites(&[100, 100, 100, 100]));
    // Anywhere, and on two nodes only.
    let pools = [pool(&[0, 1, 2, 3], 0), pool(&[2, 3], 0)];
    let owners = plan((&nodes, &pools), &NONE, &plots, &HashMap::new());
    assert!(plots.iter().all(|plot| pools[plot.pool].nodes.contains(&owners[&plot.region])));
    assert_eq!(counts(&owners, 4), [16, 16, 16, 16]);
    // A pool with more than its share of the work has it evenly.
    let pools = [pool(&[0, 1, 2, 3], 0), pool(&[2, 3], 0)];
    let plots = two_pools(8, 2);
    let owners = plan((&nodes, &pools), &NONE, &plots, &HashMap::new());
    assert_eq!(counts(&owners, 4), [8, 8, 24, 24]);
}

#[test]
fn what_a_pool_forbids_moves_and_nothing_else_does() {
    let (plots, nodes) = (two_pools(6, 3), sites(&[100, 100, 100]));
    let before = plan((&nodes, &[]), &NONE, &plots, &HashMap::new());
    let owned: HashMap<u32, u32> = before.iter().map(|(r, n)| (*r, *n)).collect();
    let pools = [pool(&[0, 1, 2], 0), pool(&[2], 0)];
    let after = plan((&nodes, &pools), &NONE, &plots, &owned);
    for plot in &plots {
        let stays = plot.pool == 0 || owned[&plot.region] == 2;
        assert_eq!(after[&plot.region] == owned[&plot.region], stays);
        assert!(plot.pool == 0 || after[&plot.region] == 2);
    }
    // Sharing out keeps the pool, too: node 2 gives the other nodes its regions of pool 0.
    let mut shared = after.clone();
    rebalance((&nodes, &pools), &plots, &mut shared);
    assert_eq!(counts(&shared, 3), [9, 9, 18]);
    assert!(plots.iter().all(|plot| plot.pool == 0 || shared[&plot.region] == 2));
}

#[test]
fn a_pool_has_no_more_nodes_than_it_may() {
    let (plots, nodes) = (two_pools(6, 3), sites(&[100, 100, 100]));
    let used = |owners: &BTreeMap<u32, u32>, pool: usize| {
        let its = plots.iter().filter(|plot| plot.pool == pool);
        its.map(|plot| owners[&plot.region]).collect::<BTreeSet<u32>>().len()
    };
    let pools = [pool(&[0, 1, 2], 2), pool(&[0, 1, 2], 1)];
    let mut owners = plan((&nodes, &pools), &NONE, &plots, &HashMap::new());
    assert_eq!((used(&owners, 0), used(&owners, 1)), (2, 1));
    rebalance((&nodes, &pools), &plots, &mut owners);
    assert_eq!((used(&owners, 0), used(&owners, 1)), (2, 1));
    // The node with fewest of them loses them.
    let owned: HashMap<u32, u32> = (0..36)
        .map(|r| {
            (
                r,
                if r < 4 {
                    0
                } else if r < 18 {
                    1
                } else {
                    2
                },
            )
        })
        .collect();
    let pools = [pool(&[0, 1, 2], 1), pool(&[0, 1, 2], 0)];
    let owners = plan((&nodes, &pools), &NONE, &plots, &owned);
    assert_eq!(counts(&owners, 3), [0, 18, 18]);
}

#[test]
fn what_is_shared_out_fills_nodes_to_one_level() {
    let level = |nodes: &[(usize, u64)], more| {
        let level = Level::new(nodes, more);
        nodes.iter().map(|(_, weight)| level.of(*weight)).collect::<Vec<_>>()
    };
    assert_eq!(level(&[(0, 1), (0, 1), (24, 1), (24, 1)], 16), [8, 8, 8, 8]);
    assert_eq!(level(&[(0, 1), (4, 1), (5, 3)], 6), [3, 3, 9]);
    assert_eq!(level(&[(2, 1)], 0), [2]);
    assert_eq!(level(&[], 5).len(), 0);
}

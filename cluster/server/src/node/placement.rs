//! Which node should own which region. Pure: nodes and regions in, owners out.
//!
//! Owned regions stay where they are. A region without an owner goes to a node that waits for its share, the one that
//! joined last, as long as that node has room; otherwise where most of its neighbours are, so that borders between
//! machines are few. Shares go by capacity.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use purview::scene::RegionId;
use purview::scene::layout::{RegionEntry, RegionMap};

/// A node that takes regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Site<N> {
    /// Which.
    pub node: N,
    /// How much it carries, against the others; 0 counts as 1.
    pub capacity: u32,
}

/// A region and those that border on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plot<R> {
    /// Which.
    pub region: R,
    /// Its middle, for a walk over the map on which neighbours follow each other.
    pub middle: (u32, u32),
    /// Regions that share a border or a corner with it.
    pub neighbours: Vec<R>,
}

/// The regions of a map.
pub fn plots(map: &RegionMap) -> Vec<Plot<RegionId>> {
    let middle = |a: i32, b: i32| (i64::from(a) + i64::from(b)).unsigned_abs() as u32 / 2;
    let plot = |entry: &RegionEntry| Plot {
        region: entry.id,
        middle: (middle(entry.rect.x0, entry.rect.x1), middle(entry.rect.z0, entry.rect.z1)),
        neighbours: map.neighbours(entry.id, 1).iter().map(|n| n.id).collect(),
    };
    map.regions.iter().map(plot).collect()
}

/// Owners for all regions: those in `owned` keep theirs if it is one of `sites`. Empty without a site. `waiting`: sites
/// among which regions have not been shared out.
pub fn plan<N: Copy + Ord + std::hash::Hash, R: Copy + Ord + std::hash::Hash>(
    sites: &[Site<N>],
    waiting: &BTreeSet<N>,
    plots: &[Plot<R>],
    owned: &HashMap<R, N>,
) -> BTreeMap<R, N> {
    let mut owners: BTreeMap<R, N> = BTreeMap::new();
    let mut load: BTreeMap<N, usize> = sites.iter().map(|site| (site.node, 0)).collect();
    for plot in plots {
        if let Some(node) = owned.get(&plot.region)
            && let Some(load) = load.get_mut(node)
        {
            *load += 1;
            owners.insert(plot.region, *node);
        }
    }
    let weight = |site: &Site<N>| u64::from(site.capacity.max(1));
    let all: u64 = sites.iter().map(weight).sum();
    let share = |site: &Site<N>| (plots.len() as u64 * weight(site)).div_ceil(all.max(1)) as usize;
    let mut free: Vec<&Plot<R>> =
        plots.iter().filter(|p| !owners.contains_key(&p.region)).collect();
    free.sort_by_key(|plot| along(plot.middle));
    for plot in free {
        let near = |node: &N| {
            plot.neighbours.iter().filter(|n| owners.get(n).is_some_and(|o| o == node)).count()
        };
        let room = |site: &Site<N>| share(site) as i64 - load[&site.node] as i64;
        let best = sites.iter().max_by_key(|site| {
            let room = room(site);
            // With room first, then what waits and of these what joined last, then among neighbours, then where there is
            // most room of all.
            let has_room = room > 0;
            let near = if has_room { near(&site.node) } else { 0 };
            let waits = waiting.get(&site.node).filter(|_| has_room);
            (has_room, waits.copied(), near, room, std::cmp::Reverse(site.node))
        });
        if let Some(site) = best {
            owners.insert(plot.region, site.node);
            *load.entry(site.node).or_default() += 1;
        }
    }
    owners
}

/// Gives nodes that have too little regions of those that have more, as few as possible: a region moves
/// only if its node is not left with less, by capacity, than the other one has then. Those move that
/// have most neighbours at their new node and fewest at their old one.
pub fn rebalance<N: Copy + Ord + std::hash::Hash, R: Copy + Ord + std::hash::Hash>(
    sites: &[Site<N>],
    plots: &[Plot<R>],
    owners: &mut BTreeMap<R, N>,
) {
    let mut load: BTreeMap<N, u64> = sites.iter().map(|site| (site.node, 0)).collect();
    for owner in owners.values() {
        *load.entry(*owner).or_default() += 1;
    }
    let weight: BTreeMap<N, u64> =
        sites.iter().map(|site| (site.node, u64::from(site.capacity.max(1)))).collect();
    // What each carries, against its capacity, if it had one more or less; as fractions.
    let less = |(an, aw): (u64, u64), (bn, bw): (u64, u64)| {
        (u128::from(an) * u128::from(bw)).cmp(&(u128::from(bn) * u128::from(aw)))
    };
    loop {
        let by = |plus: u64| {
            let (load, weight) = (&load, &weight);
            move |node: &N| (load[node] + plus, weight[node])
        };
        let nodes = || sites.iter().map(|site| site.node);
        let Some(to) = nodes().min_by(|a, b| less(by(1)(a), by(1)(b)).then(a.cmp(b))) else {
            return;
        };
        let Some(from) = nodes().max_by(|a, b| less(by(0)(a), by(0)(b)).then(b.cmp(a))) else {
            return;
        };
        let after = |node: &N| (load[node].saturating_sub(1), weight[node]);
        if from == to || load[&from] == 0 || less(after(&from), by(1)(&to)).is_lt() {
            return;
        }
        let gain = |plot: &&Plot<R>| {
            let at = |node: N| {
                plot.neighbours.iter().filter(|n| owners.get(n) == Some(&node)).count() as i64
            };
            (at(to) - at(from), std::cmp::Reverse(along(plot.middle)))
        };
        let its = plots.iter().filter(|plot| owners.get(&plot.region) == Some(&from));
        let Some(best) = its.max_by_key(gain).map(|plot| plot.region) else { return };
        owners.insert(best, to);
        *load.entry(from).or_default() -= 1;
        *load.entry(to).or_default() += 1;
    }
}

/// A place along a walk over the map by ever smaller quarters.
fn along((x, z): (u32, u32)) -> u64 {
    let spread =
        |v: u32| (0..32).fold(0u64, |out, bit| out | (u64::from(v >> bit & 1) << (2 * bit)));
    spread(x) | spread(z) << 1
}

#[cfg(test)]
mod tests {
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
                Plot { region, middle: (x as u32 * 100 + 50, z as u32 * 100 + 50), neighbours }
            })
            .collect()
    }

    fn sites(capacities: &[u32]) -> Vec<Site<u32>> {
        let site =
            |(node, capacity): (usize, &u32)| Site { node: node as u32, capacity: *capacity };
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
        let owners = plan(&sites(&[100, 100, 200]), &NONE, &plots, &HashMap::new());
        assert_eq!(counts(&owners, 3), [16, 16, 32]);
        let scattered = (0..64).map(|region| (region, region % 3)).collect();
        assert!(borders(&plots, &owners) * 3 < borders(&plots, &scattered));
    }

    #[test]
    fn what_is_owned_stays_and_only_what_a_dead_node_had_is_given_away() {
        let plots = grid(6);
        let before = plan(&sites(&[100, 100, 100]), &NONE, &plots, &HashMap::new());
        let living: HashMap<u32, u32> =
            before.iter().filter(|(_, n)| **n != 1).map(|(r, n)| (*r, *n)).collect();
        let left: Vec<_> = sites(&[100, 100, 100]).into_iter().filter(|s| s.node != 1).collect();
        let after = plan(&left, &NONE, &plots, &living);
        assert_eq!(after.len(), 36);
        assert!(living.iter().all(|(region, node)| after[region] == *node));
        assert_eq!(counts(&after, 3), [18, 0, 18]);
    }

    #[test]
    fn a_new_node_gets_its_share_and_nothing_else_moves() {
        let plots = grid(8);
        let mut owners = plan(&sites(&[100, 100, 100]), &NONE, &plots, &HashMap::new());
        let before = owners.clone();
        let four = sites(&[100, 100, 100, 100]);
        rebalance(&four, &plots, &mut owners);
        assert_eq!(counts(&owners, 4), [16, 16, 16, 16]);
        let moved = owners.iter().filter(|(r, n)| before[r] != **n);
        assert!(moved.clone().all(|(_, n)| *n == 3));
        assert_eq!(moved.count(), 16);
        // Even as it is, nothing moves again.
        let now = owners.clone();
        rebalance(&four, &plots, &mut owners);
        assert_eq!(owners, now);
    }

    #[test]
    fn shares_follow_capacities_and_small_differences_move_nothing() {
        let plots = grid(6);
        let mut owners: BTreeMap<u32, u32> = (0..36).map(|region| (region, 0)).collect();
        rebalance(&sites(&[100, 200]), &plots, &mut owners);
        assert_eq!(counts(&owners, 2), [12, 24]);
        let mut odd: BTreeMap<u32, u32> = (0..4).map(|region| (region, region % 3)).collect();
        let before = odd.clone();
        rebalance(&sites(&[100, 100, 100]), &grid(2), &mut odd);
        assert_eq!(odd, before);
        rebalance::<u32, u32>(&[], &plots, &mut owners);
    }

    #[test]
    fn nobody_is_asked_to_do_what_nobody_can() {
        assert_eq!(plan::<u32, u32>(&[], &NONE, &grid(2), &HashMap::new()), BTreeMap::new());
        let owners = plan(&sites(&[1, 1, 1, 1, 1, 1]), &NONE, &grid(2), &HashMap::new());
        assert_eq!(counts(&owners, 6).iter().sum::<usize>(), 4);
        assert!(counts(&owners, 6).iter().all(|n| *n <= 1));
        let zero = plan(&sites(&[0, 0]), &NONE, &grid(2), &HashMap::new());
        assert_eq!(counts(&zero, 2), [2, 2]);
    }
}

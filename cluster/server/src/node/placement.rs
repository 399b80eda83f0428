//! Which node should own which region. Pure: nodes and regions in, owners out.
//!
//! Owned regions stay where they are, if their pool allows it. A region without an owner goes to a node that waits for
//! its share, the one that joined last, as long as that node has room; otherwise where most of its neighbours are, so
//! that borders between machines are few. Shares go by capacity. Regions with the smallest choice of nodes go first.

mod owners;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use purview::scene::RegionId;
use purview::scene::layout::{RegionEntry, RegionMap};

use owners::Owners;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Site<N> {
    pub node: N,
    /// How much it carries, against the others; 0 counts as 1.
    pub capacity: u32,
}

/// A region and those that border on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plot<R> {
    pub region: R,
    /// Its middle, for a walk over the map on which neighbours follow each other.
    pub middle: (u32, u32),
    /// Regions that share a border or a corner with it.
    pub neighbours: Vec<R>,
    /// The index of its pool; one that is not there: every node may own it.
    pub pool: usize,
}

/// The nodes that may own some regions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pool<N> {
    pub nodes: BTreeSet<N>,
    /// Most of them that own any; 0: all may.
    pub most: usize,
}

pub fn plots(map: &RegionMap) -> Vec<Plot<RegionId>> {
    let middle = |a: i32, b: i32| (i64::from(a) + i64::from(b)).unsigned_abs() as u32 / 2;
    let plot = |entry: &RegionEntry| Plot {
        region: entry.id,
        middle: (middle(entry.rect.x0, entry.rect.x1), middle(entry.rect.z0, entry.rect.z1)),
        neighbours: map.neighbours(entry.id, 1).iter().map(|n| n.id).collect(),
        pool: usize::MAX,
    };
    map.regions.iter().map(plot).collect()
}

pub trait Name: Copy + Ord + std::hash::Hash {}

impl<T: Copy + Ord + std::hash::Hash> Name for T {}

/// Owners for all regions: those in `owned` keep theirs if it is one of `sites` and of their pool. Empty without a site.
/// `waiting`: sites among which regions have not been shared out.
pub fn plan<N: Name, R: Name>(
    (sites, pools): (&[Site<N>], &[Pool<N>]),
    waiting: &BTreeSet<N>,
    plots: &[Plot<R>],
    owned: &HashMap<R, N>,
) -> BTreeMap<R, N> {
    let mut owners = Owners::new((sites, pools), plots, owned);
    let mut free: Vec<&Plot<R>> = plots.iter().filter(|plot| !owners.has(plot)).collect();
    free.sort_by_key(|plot| {
        let choice = pools.get(plot.pool).map_or(usize::MAX, |pool| pool.nodes.len());
        (choice, plot.pool, along(plot.middle))
    });
    let mut level = None;
    for (at, plot) in free.iter().enumerate() {
        // `free` has one pool after the other: the level is that of the present one.
        let is_new = |(pool, _): &(usize, Level)| *pool != plot.pool;
        if level.as_ref().is_none_or(is_new) {
            let rest = free[at..].iter().take_while(|other| other.pool == plot.pool).count();
            level = Some((plot.pool, Level::new(&owners.open(sites, plot.pool), rest)));
        }
        let share = |site: &Site<N>| level.as_ref().map_or(0, |(_, level)| level.of(weight(site)));
        let room = |site: &Site<N>| share(site) as i64 - owners.load(site.node) as i64;
        let may = sites.iter().filter(|site| owners.may(plot.pool, site.node));
        let best = may.max_by_key(|site| {
            let room = room(site);
            // With room first, then what waits and of these what joined last, then among neighbours, then where there is
            // most room of all.
            let has_room = room > 0;
            let near = if has_room { owners.near(plot, site.node) } else { 0 };
            let waits = waiting.get(&site.node).filter(|_| has_room);
            (has_room, waits.copied(), near, room, Reverse(site.node))
        });
        if let Some(node) = best.map(|site| site.node) {
            owners.give(plot, node);
        }
    }
    owners.of
}

/// Gives nodes that have too little regions of those that have more, as few as possible: a region moves
/// only if its node is not left with less, by capacity, than the other one has then. Those move that
/// have most neighbours at their new node and fewest at their old one.
pub fn rebalance<N: Name, R: Name>(
    (sites, pools): (&[Site<N>], &[Pool<N>]),
    plots: &[Plot<R>],
    of: &mut BTreeMap<R, N>,
) {
    let owned = of.iter().map(|(region, node)| (*region, *node)).collect();
    let mut owners = Owners::new((sites, pools), plots, &owned);
    while let Some((plot, to)) = next_move(sites, &owners, plots) {
        owners.give(plot, to);
    }
    of.extend(owners.of);
}

/// The next region that moves, and to which node: to the one with least, from the one with most, as far as pools let it.
fn next_move<'p, N: Name, R: Name>(
    sites: &[Site<N>],
    owners: &Owners<'_, N, R>,
    plots: &'p [Plot<R>],
) -> Option<(&'p Plot<R>, N)> {
    // What a node carries, against its capacity, if it had some more or less; as fractions.
    let share = |site: &Site<N>, more: i64| {
        (owners.load(site.node) as i64 + more, i64::try_from(weight(site)).unwrap_or(i64::MAX))
    };
    let compare = |(a, aw): (i64, i64), (b, bw): (i64, i64)| {
        (i128::from(a) * i128::from(bw)).cmp(&(i128::from(b) * i128::from(aw)))
    };
    let (mut takes, mut gives): (Vec<&Site<N>>, Vec<&Site<N>>) =
        (sites.iter().collect(), sites.iter().collect());
    takes.sort_by(|a, b| compare(share(a, 1), share(b, 1)).then(a.node.cmp(&b.node)));
    gives.sort_by(|a, b| compare(share(b, 0), share(a, 0)).then(a.node.cmp(&b.node)));
    for to in takes {
        for from in &gives {
            if compare(share(from, -1), share(to, 1)).is_lt() {
                break;
            }
            if !owners.may_give(from.node, to.node) {
                continue;
            }
            let gain = |plot: &&Plot<R>| {
                let near = |node| owners.near(plot, node) as i64;
                (near(to.node) - near(from.node), Reverse(along(plot.middle)))
            };
            let its = plots.iter().filter(|plot| owners.of.get(&plot.region) == Some(&from.node));
            let may = its.filter(|plot| owners.may(plot.pool, to.node));
            if let Some(best) = may.max_by_key(gain) {
                return Some((best, to.node));
            }
        }
    }
    None
}

fn weight<N>(site: &Site<N>) -> u64 {
    u64::from(site.capacity.max(1))
}

fn is_of<N: Ord>(pools: &[Pool<N>], pool: usize, node: N) -> bool {
    pools.get(pool).is_none_or(|pool| pool.nodes.contains(&node))
}

/// How many regions nodes have for each unit of their weight when some more are shared out evenly; a fraction.
struct Level {
    regions: u64,
    weight: u64,
}

impl Level {
    /// With so many more regions for nodes of these loads and weights. Those with more than the level get none.
    fn new(nodes: &[(usize, u64)], more: usize) -> Level {
        let mut nodes = nodes.to_vec();
        let product = |load: usize, weight: u64| load as u128 * u128::from(weight);
        nodes.sort_by(|(a, aw), (b, bw)| product(*a, *bw).cmp(&product(*b, *aw)));
        let mut level = Level { regions: more as u64, weight: 0 };
        for (load, weight) in nodes {
            let is_above =
                u128::from(level.regions) * u128::from(weight) <= product(load, level.weight);
            if level.weight > 0 && is_above {
                break;
            }
            level.regions += load as u64;
            level.weight += weight;
        }
        level
    }

    fn of(&self, weight: u64) -> u64 {
        (self.regions * weight).div_ceil(self.weight.max(1))
    }
}

/// A place along a walk over the map by ever smaller quarters.
fn along((x, z): (u32, u32)) -> u64 {
    let spread =
        |v: u32| (0..32).fold(0u64, |out, bit| out | (u64::from(v >> bit & 1) << (2 * bit)));
    spread(x) | spread(z) << 1
}

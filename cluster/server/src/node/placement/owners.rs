//! Owners of regions as they are assigned, and which nodes may own which.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::{Name, Plot, Pool, Site, is_of, weight};

pub(super) struct Owners<'a, N, R> {
    pools: &'a [Pool<N>],
    pub(super) of: BTreeMap<R, N>,
    load: BTreeMap<N, usize>,
    /// The same of each pool.
    used: BTreeMap<usize, BTreeMap<N, usize>>,
}

impl<'a, N: Name, R: Name> Owners<'a, N, R> {
    /// Those in `owned` that are legal. Where more nodes own regions of a pool than may, those with fewest own none.
    pub(super) fn new(
        (sites, pools): (&[Site<N>], &'a [Pool<N>]),
        plots: &[Plot<R>],
        owned: &HashMap<R, N>,
    ) -> Owners<'a, N, R> {
        let load = sites.iter().map(|site| (site.node, 0)).collect();
        let (of, used) = Default::default();
        let mut owners = Owners { pools, of, load, used };
        for plot in plots {
            if let Some(node) = owned.get(&plot.region)
                && owners.load.contains_key(node)
                && is_of(pools, plot.pool, *node)
            {
                owners.give(plot, *node);
            }
        }
        let crowded = pools.iter().enumerate().filter(|(_, pool)| pool.most > 0);
        for (at, pool) in crowded {
            let used = owners.used.get(&at).cloned().unwrap_or_default();
            let mut by_count: Vec<(N, usize)> = used.into_iter().collect();
            by_count.sort_by_key(|(node, count)| (Reverse(*count), *node));
            let beyond: Vec<N> = by_count.into_iter().skip(pool.most).map(|(n, _)| n).collect();
            for plot in plots.iter().filter(|plot| plot.pool == at) {
                if owners.of.get(&plot.region).is_some_and(|node| beyond.contains(node)) {
                    owners.take(plot);
                }
            }
        }
        owners
    }

    pub(super) fn has(&self, plot: &Plot<R>) -> bool {
        self.of.contains_key(&plot.region)
    }

    pub(super) fn load(&self, node: N) -> usize {
        self.load.get(&node).copied().unwrap_or(0)
    }

    pub(super) fn near(&self, plot: &Plot<R>, node: N) -> usize {
        plot.neighbours.iter().filter(|other| self.of.get(other) == Some(&node)).count()
    }

    pub(super) fn may(&self, pool: usize, node: N) -> bool {
        let most = self.pools.get(pool).map_or(0, |pool| pool.most);
        let has_place = match self.used.get(&pool) {
            Some(used) if most > 0 => used.contains_key(&node) || used.len() < most,
            _ => true,
        };
        has_place && is_of(self.pools, pool, node)
    }

    /// Loads and weights of the nodes to which regions of a pool go: no more of them than may own any.
    pub(super) fn open(&self, sites: &[Site<N>], pool: usize) -> Vec<(usize, u64)> {
        let most = self.pools.get(pool).map_or(0, |pool| pool.most);
        let uses = |node: N| self.used.get(&pool).is_some_and(|used| used.contains_key(&node));
        let mut open: Vec<&Site<N>> =
            sites.iter().filter(|site| is_of(self.pools, pool, site.node)).collect();
        open.sort_by_key(|site| (!uses(site.node), self.load(site.node), site.node));
        open.truncate(if most > 0 { most } else { usize::MAX });
        open.into_iter().map(|site| (self.load(site.node), weight(site))).collect()
    }

    pub(super) fn may_give(&self, from: N, to: N) -> bool {
        let has = |(pool, used): (&usize, &BTreeMap<N, usize>)| {
            used.contains_key(&from) && self.may(*pool, to)
        };
        from != to && self.used.iter().any(has)
    }

    /// A node owns a region from now on, and no other one does.
    pub(super) fn give(&mut self, plot: &Plot<R>, node: N) {
        self.take(plot);
        self.of.insert(plot.region, node);
        *self.load.entry(node).or_default() += 1;
        *self.used.entry(plot.pool).or_default().entry(node).or_default() += 1;
    }

    fn take(&mut self, plot: &Plot<R>) {
        let Some(node) = self.of.remove(&plot.region) else { return };
        *self.load.entry(node).or_default() -= 1;
        if let Some(used) = self.used.get_mut(&plot.pool)
            && let Some(count) = used.get_mut(&node)
        {
            *count -= 1;
            if *count == 0 {
                used.remove(&node);
            }
        }
    }
}

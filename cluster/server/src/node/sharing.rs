//! Which node each region is meant for, after nodes have come, have gone, or are to give their regions away. Pure.
//!
//! A node that comes is given its share at once. It waits for it where another node has been drained since regions were
//! shared out: nodes are replaced one by one, and the next one is drained soon. Its regions then go to the node that
//! waits, so that a rolling upgrade moves each region once and not at every step. Once no node has come for a while,
//! regions are shared out; so they are when a reservation begins or ends.
//!
//! ```text
//!          a node comes: shared out              a node comes, and waits
//!  even ◄───────────────────────────┐        ┌───────────────────────────┐
//!   │                               │        ▼                           │
//!   └── a node is drained ──► replacing ── another is drained: its regions go to the node that waits
//!                                   │
//!                                   └── no node has come for a while: shared out ──► even
//! ```
//!
//! The order of incarnations is the order in which nodes joined, by the store's revision: no clock of a machine counts.
//! The balancer asks [`waits`], too, and gives such a node nothing meanwhile.

use std::collections::{BTreeSet, HashMap};

use purview::scene::RegionId;

use super::placement::{Plot, Site, plan, rebalance};
use super::plan::Plan;
use super::pools::Pools;

/// Whether a node waits for the regions of one that will be drained.
pub(super) fn waits(plan: &Plan, node: u64) -> bool {
    plan.replacing && !plan.among.contains(&node)
}

/// The next plan. `sites`: the nodes that may own regions; `drained`: nodes that live and must own nothing; `kept`: where
/// regions are meant to stay, if their pools allow it; `is_settled`: no node has come for a while.
pub(super) fn next(
    old: &Plan,
    (sites, pools, drained): (&[Site<u64>], &Pools, &BTreeSet<u64>),
    (plots, kept): (&[Plot<RegionId>], &HashMap<RegionId, u64>),
    is_settled: bool,
) -> Plan {
    let present: BTreeSet<u64> = sites.iter().map(|site| site.node).collect();
    let replacing = old.replacing || !old.among.is_disjoint(drained);
    let is_new = |node: &u64| !old.among.contains(node);
    let newcomers: BTreeSet<u64> = present.iter().copied().filter(is_new).collect();
    let shares_out =
        old.reserved != pools.reserved || !newcomers.is_empty() && (is_settled || !replacing);
    let waiting = if shares_out { BTreeSet::new() } else { newcomers.clone() };
    let mut of = plan((sites, &pools.all), &waiting, plots, kept);
    if shares_out {
        rebalance((sites, &pools.all), plots, &mut of);
    }
    let among = match shares_out {
        true => present,
        false => present.difference(&newcomers).copied().collect(),
    };
    let of = of.into_iter().map(|(region, node)| (region.0, node)).collect();
    let reserved = pools.reserved.clone();
    Plan { of, among, reserved, replacing: replacing && !shares_out }
}

#[cfg(test)]
mod tests;

//! The leader's plan as the store has it: which node each region is meant for, which regions move now, and which
//! nodes are to own nothing.
//!
//! The leader and operators write it, every node reads it. Plain data: nothing here decides.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::placement::Site;
use super::values::read;
use crate::storage::{Incarnation, View};

pub(super) const PLAN: &str = "plan";

/// The value that holds the moves that are under way.
pub(super) const MOVES: &str = "moves";

/// The value that lists nodes that must own nothing.
pub(super) const DRAINS: &str = "drains";

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Plan {
    /// The incarnation of each.
    pub(super) of: BTreeMap<u32, u64>,
    /// The incarnations among which regions were shared out.
    pub(super) among: BTreeSet<u64>,
    pub(super) reserved: BTreeSet<u64>,
    /// Another node has been drained since: see [`super::sharing`].
    pub(super) replacing: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Move {
    pub(super) region: u32,
    /// The epoch of its owner.
    pub(super) epoch: u64,
    /// The incarnations.
    pub(super) from: u64,
    pub(super) to: u64,
}

pub(super) fn plan_of(view: &View) -> Plan {
    read(view.values.get(PLAN))
}

pub(super) fn moves_of(view: &View) -> Vec<Move> {
    read(view.values.get(MOVES))
}

pub(super) fn is_drained(view: &View, who: Incarnation) -> bool {
    read::<BTreeSet<u64>>(view.values.get(DRAINS)).contains(&who.0)
}

/// The nodes that may own regions: those that are not to be drained, or all where there are no others.
pub(super) fn sites(view: &View) -> Vec<Site<u64>> {
    let drained: BTreeSet<u64> = read(view.values.get(DRAINS));
    let owns = || view.nodes.iter().filter(|(_, node)| node.regions);
    let stays = owns().any(|(i, _)| !drained.contains(&i.0));
    let takes = owns().filter(|(i, _)| !stays || !drained.contains(&i.0));
    takes.map(|(i, node)| Site { node: i.0, capacity: node.capacity }).collect()
}

pub(super) fn drained(view: &View) -> BTreeSet<u64> {
    let takes: BTreeSet<u64> = sites(view).into_iter().map(|site| site.node).collect();
    let drained = view.nodes.keys().filter(|i| is_drained(view, **i));
    drained.map(|i| i.0).filter(|node| !takes.contains(node)).collect()
}

/// Whether any node but `who` may own regions, that is, is not drained too.
pub(super) fn has_others(view: &View, who: Incarnation) -> bool {
    let mut others = view.nodes.iter().filter(|(i, node)| node.regions && **i != who);
    others.any(|(i, _)| !is_drained(view, *i))
}

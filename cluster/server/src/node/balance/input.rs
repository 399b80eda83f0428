//! What the balancer decides by: nodes, scenes, owners, reports, and what operators want.

use std::collections::{BTreeMap, BTreeSet};

use purview::scene::RegionId;
use purview::scene::layout::{Layout, Plot};
use purview::scene::load::RegionReport;

use crate::storage::Incarnation;

/// All that a decision depends on, beside [`super::Memory`]. The order of lists changes nothing.
#[derive(Debug, Clone, Default)]
pub struct Input {
    /// Seconds since any moment; never decreases.
    pub now_s: u64,
    pub paused: bool,
    pub nodes: Vec<Site>,
    pub scenes: Vec<SceneInput>,
    pub owners: BTreeMap<RegionId, Incarnation>,
    /// The newest report of each region, not older than a few seconds.
    pub reports: BTreeMap<RegionId, RegionReport>,
    /// Regions that move now, and to which node.
    pub moving: BTreeMap<RegionId, Incarnation>,
    /// Regions that operators have pinned, and to which node. A pinned region keeps its ground.
    pub pins: BTreeMap<RegionId, Incarnation>,
}

#[derive(Debug, Clone, Default)]
pub struct Site {
    pub node: Incarnation,
    /// How many cores' worth of ticks it carries; more than 0.
    pub cores: f64,
    /// Whether it is to give all regions away.
    pub drained: bool,
    /// Whether it waits for the regions of a node that will be drained, as the next one of an upgrade.
    pub waits: bool,
    pub labels: BTreeSet<String>,
    /// Where it runs; empty: anywhere.
    pub zone: String,
}

#[derive(Debug, Clone)]
pub struct SceneInput {
    pub name: String,
    /// The length of a tick, microseconds; more than 0.
    pub tick_us: u32,
    /// The side of a land, centimetres; more than 0.
    pub land_cm: i32,
    /// The mirrored band that the scene has, or would have if it had borders, centimetres.
    pub band_cm: i32,
    pub layout: Layout,
    /// Whether a change of the layout is under way.
    pub changing: bool,
    pub limits: Limits,
    /// Ground that must not be cut; ids and groups of these do not count.
    pub whole: Vec<Plot>,
    /// Ground that has nodes of its own.
    pub reserved: Vec<Reserved>,
}

#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// Labels that a node must have to run its regions.
    pub labels: BTreeSet<String>,
    /// The zone in which its regions run; empty: any.
    pub zone: String,
    /// The least number of nodes that should be there for it.
    pub min_nodes: u32,
    /// The greatest number of nodes that run its regions; 0: any.
    pub max_nodes: u32,
    /// The least number of regions, over all groups of planes.
    pub min_regions: u32,
    /// The greatest number of regions, over all groups of planes; 0: any.
    pub max_regions: u32,
}

/// Ground that has nodes of its own for a while.
#[derive(Debug, Clone)]
pub struct Reserved {
    /// The ground; id and group do not count.
    pub ground: Plot,
    /// The nodes, which run nothing else.
    pub nodes: BTreeSet<Incarnation>,
}

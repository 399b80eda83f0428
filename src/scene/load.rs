//! What a region reports of its load, for those who share regions out among nodes.
//!
//! Weights are CPU time per tick that the region's *own* entities cause; what ghosts cost comes on top and is
//! predicted. A report may leave `lands` out (a region with little to do does): its load then counts as spread evenly
//! over its ground.

use serde::{Deserialize, Serialize};

use super::RegionId;

/// What a ghost costs, against its original: the best single number for crowds that borders cut in two or four, as
/// `purview-lab bench prediction` measures them. Borders negotiate what a region settles by itself.
pub const GHOST: f32 = 1.2;

/// The load of a region.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RegionReport {
    /// CPU time per tick, microseconds: an exponential mean over about 7 s.
    pub tick_us: f32,
    /// The 99th percentile of the CPU time per tick in the last seconds, microseconds.
    pub tick_us_p99: f32,
    /// Players.
    pub players: u32,
    /// Its lands that are not empty; `None`: left out. Lands outside of the region do not count.
    pub lands: Option<Vec<LandReport>>,
    /// Its neighbours, each once.
    pub neighbours: Vec<NeighbourReport>,
}

/// The load of a land.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LandReport {
    /// Lands from the map's western edge.
    pub x: i32,
    /// Lands from the map's northern edge.
    pub z: i32,
    /// Players.
    pub players: u32,
    /// The weight of its entities, microseconds per tick.
    pub weight_us: f32,
    /// The weight of those that are near its western, eastern, northern and southern border: not farther than the
    /// mirrored band, less as many whole lands as fit into it. A border there would make ghosts of them.
    pub near_us: [f32; 4],
}

/// What a region shares with a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct NeighbourReport {
    /// The neighbour.
    pub region: RegionId,
    /// Pairs in view lists of an entity here and one there; of many players an estimate.
    pub pairs: u32,
    /// Entities of the neighbour that are ghosts here.
    pub ghosts: u32,
}

//! The parameters of the balancer. Shares are of a node's capacity, or of a tick where a single region is meant.

use purview::scene::load::GHOST;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// A node is hot above this many times the mean ...
    pub start: f64,
    /// ... until it is below this many times the mean ...
    pub stop: f64,
    /// ... and above this share.
    pub floor: f64,
    /// For how long a node is hot, or a region heavy, before anything is done, seconds.
    pub hot_s: u64,
    /// Greatest share of a node that receives a region.
    pub safety: f64,
    /// Least gain of an action, as a share of the mean.
    pub min_gain: f64,
    /// What a ghost costs, as a share of what its original costs.
    pub ghost: f64,
    /// The charge for each player that changes its node or region, microseconds of a tick.
    pub player_us: f64,
    /// The charge for each pair that crosses a border between nodes, microseconds of a tick.
    pub pair_us: f64,
    /// The charge for CPU time that all nodes spend more, for each unit of it.
    pub waste: f64,
    /// Least load that a border past a crowd saves, as a share of the mean.
    pub gather: f64,
    /// A region of more than this share of a tick is heavy.
    pub heavy: f64,
    /// A region of a hot node may be cut if it has more than this share of the mean.
    pub heavy_by_mean: f64,
    /// A region of more than this share of a tick is in an emergency.
    pub emergency: f64,
    /// The greatest part of a region's load that a cut may leave in one part; in an emergency.
    pub largest_part: [f64; 2],
    /// The greatest load of both parts, by the load before; in an emergency.
    pub both_parts: [f64; 2],
    /// Two regions may be merged if each has less than this share of a tick.
    pub light: f64,
    /// ... and together not more than this.
    pub light_together: f64,
    /// ... for this long, seconds.
    pub light_s: u64,
    /// Between two moves from or to a node, seconds.
    pub node_s: u64,
    /// Most moves in a minute for every eight nodes that have begun.
    pub moves_per_min: usize,
    /// Between two changes of a scene's layout, seconds.
    pub layout_s: u64,
    /// For how long a region that has moved or changed stays, seconds; at most, after repeated moves.
    pub cool_s: [u64; 2],
    /// For how long nothing goes back to where it was, seconds.
    pub tabu_s: u64,
    /// The share that nodes should have on average.
    pub wanted: f64,
    /// For how long more nodes are wanted than needed, seconds.
    pub wanted_s: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            start: 1.15,
            stop: 1.08,
            floor: 0.25,
            hot_s: 10,
            safety: 0.85,
            min_gain: 0.06,
            ghost: f64::from(GHOST),
            player_us: 0.8,
            pair_us: 0.25,
            waste: 0.35,
            gather: 0.15,
            heavy: 0.3,
            heavy_by_mean: 0.35,
            emergency: 0.8,
            largest_part: [0.85, 0.9],
            both_parts: [1.6, 1.9],
            light: 0.06,
            light_together: 0.1,
            light_s: 40,
            node_s: 4,
            moves_per_min: 10,
            layout_s: 20,
            cool_s: [60, 480],
            tabu_s: 180,
            wanted: 0.6,
            wanted_s: 600,
        }
    }
}

//! What a scene asks of the nodes of a cluster.

use serde::{Deserialize, Serialize};

use super::SceneSpec;
use crate::scene::spec_error::{SpecError, err};

/// The nodes that run a scene, and the number of its regions. Only a cluster reads it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolSpec {
    /// Labels that a node needs to run regions of the scene.
    pub labels: Vec<(String, String)>,
    /// The zone of these nodes; empty: any.
    pub zone: String,
    /// How many nodes should be there for the scene.
    pub min_nodes: u32,
    /// Most nodes that run its regions; 0: any number.
    pub max_nodes: u32,
    /// Fewest regions to which balancing may merge the scene; 0: as many as its `region` makes.
    pub min_regions: u32,
    /// Most regions into which balancing may split the scene; 0: any number.
    pub max_regions: u32,
}

pub(super) fn check_pool(s: &SceneSpec, errors: &mut Vec<SpecError>) {
    let PoolSpec { min_nodes, max_nodes, min_regions, max_regions, .. } = s.pool;
    for (key, least, most) in
        [("pool.nodes", min_nodes, max_nodes), ("pool.regions", min_regions, max_regions)]
    {
        if most > 0 && least > most {
            let rule = "max must be at least min, or 0 for any number".into();
            err(errors, key, format!("min {least} and max {most}"), rule);
        }
    }
}

//! The names of nodes, regions and values in the whole cluster.

use std::collections::BTreeMap;

use bytes::Bytes;
use purview::scene::Epoch;
use purview::scene::names::is_name;
use serde::{Deserialize, Serialize};

use super::Result;
use crate::storage::LeaseError;
use crate::storage::ids::{Incarnation, Revision};

/// Longest name of a node, a scene or a value, in bytes.
pub const NAME_MAX: usize = 255;

/// Largest value of the lease store, in bytes: enough for plans and layouts, not for snapshots.
pub const VALUE_MAX: usize = 512 << 10;

/// What a node says of itself to the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeInfo {
    /// The node's name, 1 to 255 bytes; unique among running nodes.
    pub name: String,
    /// The process number, unique among all processes of the cluster's history; entity ids of this
    /// node begin with it.
    pub process: u64,
    pub address: String,
    pub regions: bool,
    pub gateway: bool,
    /// Capacity relative to other nodes: a node of 200 gets twice as much load as a node of 100.
    pub capacity: u32,
    /// What operators know the process by.
    pub about: About,
}

/// What operators know a process by. Nothing of it is judged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Where it runs: a zone of a cloud, a rack.
    pub zone: String,
    pub labels: BTreeMap<String, String>,
    pub release: String,
}

/// Numbers from here on are those of gateways. A gateway counts them on a key of its own, so that
/// its user of the store cannot use up the numbers of nodes.
pub const GATEWAY_NUMBERS: u64 = 1 << 20;

impl NodeInfo {
    /// Refuses a description that no store accepts.
    pub fn check(&self) -> Result<()> {
        name("a node's name", &self.name)
    }

    /// Checks a description against its place in the store: whether it stands among the nodes. A
    /// gateway may write only among the gateways, and must not become a node there, nor take the
    /// number of one.
    pub(super) fn check_place(&self, is_among_nodes: bool) -> Result<(), &'static str> {
        let has_gateway_number = self.process >= GATEWAY_NUMBERS;
        match (is_among_nodes, self.regions, has_gateway_number) {
            (true, true, false) | (false, false, true) => Ok(()),
            (true, false, _) => Err("a process without regions must stand below `gateways/`"),
            (false, true, _) => Err("a process with regions must stand below `nodes/`"),
            (true, true, true) => Err("the number of a node must be below 1048576"),
            (false, false, false) => Err("the number of a gateway must be at least 1048576"),
        }
    }
}

#[cfg(test)]
impl NodeInfo {
    /// A process that runs regions.
    pub(crate) fn for_test(name: &str) -> NodeInfo {
        let (address, about) = (String::new(), About::default());
        let (process, regions, gateway, capacity) = (1, true, false, 100);
        NodeInfo { name: name.into(), process, address, regions, gateway, capacity, about }
    }
}

/// A region's name in the whole cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RegionKey {
    /// The scene's name, 1 to 255 bytes.
    pub scene: String,
    pub region: u32,
    pub planes: u16,
}

impl RegionKey {
    /// Refuses a key that no store accepts.
    pub fn check(&self) -> Result<()> {
        name("a scene's name", &self.scene)
    }
}

impl std::fmt::Display for RegionKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.planes, self.region, self.scene)
    }
}

impl std::str::FromStr for RegionKey {
    type Err = LeaseError;

    /// Parses the form of `Display`: planes, region and scene, separated by slashes.
    fn from_str(text: &str) -> Result<RegionKey> {
        let mut parts = text.splitn(3, '/');
        let mut next = || parts.next().unwrap_or_default();
        match (next().parse(), next().parse(), next()) {
            (Ok(planes), Ok(region), scene) if !scene.is_empty() => {
                Ok(RegionKey { scene: scene.into(), region, planes })
            }
            _ => Err(LeaseError::BadData {
                key: text.into(),
                rule: "write planes/region/scene, for example 0/12/city".into(),
            }),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub node: String,
    pub incarnation: Incarnation,
    pub epoch: Epoch,
    /// The epoch of the last claim while the region had no owner: then it began empty or from a
    /// checkpoint. Every later owner took it over from its predecessor with all its entities.
    pub lineage: Epoch,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    /// The revision of its last change; the next change must name it.
    pub revision: Revision,
    pub data: Bytes,
}

pub(super) fn name(what: &str, name: &str) -> Result<()> {
    if is_name(name, NAME_MAX) {
        return Ok(());
    }
    Err(LeaseError::Illegal {
        what: what.into(),
        found: format!("{name:.64?} of {} bytes", name.len()),
        rule: format!("must have 1 to {NAME_MAX} bytes of printable text"),
    })
}

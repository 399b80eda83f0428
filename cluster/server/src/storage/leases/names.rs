//! Nodes, regions and values by the names under which the cluster knows them.

use bytes::Bytes;
use purview::scene::Epoch;
use serde::{Deserialize, Serialize};

use crate::storage::LeaseError;
use crate::storage::ids::{Incarnation, Revision};

/// Longest name of a node, a scene or a value, bytes.
pub const NAME_MAX: usize = 255;

/// Largest value that the lease store keeps, bytes: it is for plans and layouts, not for snapshots.
pub const VALUE_MAX: usize = 512 << 10;

/// What a node says of itself to the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeInfo {
    /// Its name, 1 to 255 bytes; unique among the nodes that run at a time.
    pub name: String,
    /// Its number among all processes that ever were: names that it gives out begin with it.
    pub process: u64,
    /// Where its peers reach it: `host:port`.
    pub address: String,
    /// Whether it takes regions.
    pub regions: bool,
    /// Whether it holds clients' sessions.
    pub gateway: bool,
    /// How much it can carry, against the others: a node of 200 gets twice the load of one of 100.
    pub capacity: u32,
    /// The version of the protocol between nodes that it speaks.
    pub protocol: u32,
}

impl NodeInfo {
    /// Refuses what no store can keep.
    ///
    /// # Errors
    /// [`LeaseError::Illegal`]: the name is empty or too long.
    pub fn check(&self) -> Result<(), LeaseError> {
        name("a node's name", &self.name)
    }
}

/// A region as the whole cluster knows it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RegionKey {
    /// The scene's name, 1 to 255 bytes.
    pub scene: String,
    /// The region's id.
    pub region: u32,
    /// The group of planes that it carries.
    pub planes: u16,
}

impl RegionKey {
    /// Refuses what no store can keep.
    ///
    /// # Errors
    /// [`LeaseError::Illegal`]: the scene's name is empty or too long.
    pub fn check(&self) -> Result<(), LeaseError> {
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

    /// Reads what `Display` writes: planes, region, scene, parted by slashes.
    fn from_str(text: &str) -> Result<RegionKey, LeaseError> {
        let mut parts = text.splitn(3, '/');
        let mut next = || parts.next().unwrap_or_default();
        match (next().parse(), next().parse(), next()) {
            (Ok(planes), Ok(region), scene) if !scene.is_empty() => {
                Ok(RegionKey { scene: scene.into(), region, planes })
            }
            _ => Err(LeaseError::BadData {
                key: text.into(),
                rule: "want planes/region/scene, for example 0/12/city".into(),
            }),
        }
    }
}

/// Who owns a region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The node's name.
    pub node: String,
    /// Which join of that node.
    pub incarnation: Incarnation,
    /// The epoch of its grant.
    pub epoch: Epoch,
    /// The epoch under which it was claimed when it was nobody's: there it began, or went on from a checkpoint. Since
    /// then each owner has taken it over from the one before with all that lives there.
    pub lineage: Epoch,
}

/// A value of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    /// The revision of its last change, which a change of it must name.
    pub revision: Revision,
    /// What it says.
    pub data: Bytes,
}

/// Refuses names that are empty or too long.
pub(super) fn name(what: &str, name: &str) -> Result<(), LeaseError> {
    if (1..=NAME_MAX).contains(&name.len()) {
        return Ok(());
    }
    Err(LeaseError::Illegal {
        what: what.into(),
        found: format!("{} bytes", name.len()),
        rule: format!("must have 1 to {NAME_MAX} bytes"),
    })
}

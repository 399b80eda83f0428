//! The keys of the lease store and their JSON data, readable for people. Unknown keys and fields
//! are ignored: a newer release may have written them.
//!
//! | key | data | lease |
//! |---|---|---|
//! | `nodes/NAME` | the node's description | the node's |
//! | `gateways/NAME` | the description of a process that owns no regions | its own |
//! | `regions/PLANES/REGION/SCENE` | owner | the owner's |
//! | `leader` | owner | the leader's |
//! | `values/KEY` | bytes | none |

use std::collections::BTreeMap;

use bytes::Bytes;
use purview::scene::Epoch;
use serde::{Deserialize, Serialize};

use super::Result;
use super::store::{Listing, Step, StoreEntry};
use super::view::{Change, Leader, View, What};
use crate::storage::{Incarnation, LeaseError, NodeInfo, Owner, RegionKey, Revision, Value};

pub const NODES: &str = "nodes/";
pub const GATEWAYS: &str = "gateways/";
pub const REGIONS: &str = "regions/";
pub const LEADER: &str = "leader";
pub const VALUES: &str = "values/";

/// The owner of a region, or the leader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub node: String,
    pub incarnation: Incarnation,
    /// For a region that was taken over: the epoch of the first owner in its lineage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Epoch>,
}

/// The key of a member: one living member for each name. Gateways have a prefix of their own, so that their user of
/// the store may write there and not where nodes are.
pub fn member(node: &NodeInfo) -> String {
    let prefix = if node.regions { NODES } else { GATEWAYS };
    format!("{prefix}{}", node.name)
}

pub fn region(key: &RegionKey) -> String {
    format!("{REGIONS}{key}")
}

pub fn value(key: &str) -> String {
    format!("{VALUES}{key}")
}

pub fn encode<T: Serialize>(key: &str, data: &T) -> Result<Bytes> {
    serde_json::to_vec(data).map(Bytes::from).map_err(|e| bad(key, &e))
}

pub fn decode<'a, T: Deserialize<'a>>(entry: &'a StoreEntry) -> Result<T> {
    serde_json::from_slice(&entry.data).map_err(|e| bad(&entry.key, &e))
}

fn bad(key: &str, cause: &serde_json::Error) -> LeaseError {
    LeaseError::BadData { key: key.into(), rule: cause.to_string() }
}

pub fn owner(entry: &StoreEntry, epochs_above: u64) -> Result<Owner> {
    let Holder { node, incarnation, since } = decode(entry)?;
    let epoch = Epoch(epochs_above + entry.changed);
    Ok(Owner { node, incarnation, epoch, lineage: since.unwrap_or(epoch) })
}

/// Decodes what a follower receives. It remembers the incarnation of each node key, because the
/// store sends only the name of a removed key.
#[derive(Debug, Default)]
pub struct KeyReader {
    epochs_above: u64,
    nodes: BTreeMap<String, Incarnation>,
}

impl KeyReader {
    pub fn new(epochs_above: u64) -> KeyReader {
        KeyReader { epochs_above, nodes: BTreeMap::new() }
    }

    /// The whole state, and the errors of unreadable entries.
    pub fn view(&mut self, listing: Listing) -> (View, Vec<LeaseError>) {
        self.nodes.clear();
        let keys = listing.entries.into_iter().map(|entry| (entry.key.clone(), Some(entry)));
        let (change, errors) =
            self.change(Step { revision: listing.revision, keys: keys.collect() });
        let (revision, epochs_above) = (change.revision, self.epochs_above);
        let mut view = View { revision, epochs_above, ..View::default() };
        for what in change.what {
            view.take(what);
        }
        (view, errors)
    }

    /// One step, and the errors of unreadable entries. An unreadable entry counts as removed,
    /// because the former value is no longer valid.
    pub fn change(&mut self, step: Step) -> (Change, Vec<LeaseError>) {
        let (mut what, mut errors) = (Vec::new(), Vec::new());
        for (key, entry) in step.keys {
            let read = self.read(&key, entry.as_ref()).or_else(|e| {
                errors.push(e);
                self.read(&key, None)
            });
            // Only the key itself can be wrong here, and that was reported when it was set.
            what.extend(read.ok().flatten());
        }
        (Change { revision: Revision(step.revision), what }, errors)
    }

    fn read(&mut self, key: &str, entry: Option<&StoreEntry>) -> Result<Option<What>> {
        if key.starts_with(NODES) || key.starts_with(GATEWAYS) {
            self.read_node(key, entry)
        } else if let Some(text) = key.strip_prefix(REGIONS) {
            let region: RegionKey = text.parse()?;
            Ok(Some(match entry {
                Some(entry) => What::Owned(region, owner(entry, self.epochs_above)?),
                None => What::Freed(region),
            }))
        } else if key == LEADER {
            Ok(Some(match entry {
                Some(entry) => What::Leads(leader(entry)?),
                None => What::LeadsNoMore,
            }))
        } else if let Some(key) = key.strip_prefix(VALUES) {
            Ok(Some(match entry {
                Some(entry) => What::Set(key.into(), entry.into()),
                None => What::Unset(key.into()),
            }))
        } else {
            Ok(None)
        }
    }

    fn read_node(&mut self, key: &str, entry: Option<&StoreEntry>) -> Result<Option<What>> {
        let Some(entry) = entry else {
            return Ok(self.nodes.remove(key).map(What::Gone));
        };
        let node: NodeInfo = decode(entry)?;
        node.check_place(key.starts_with(NODES))
            .map_err(|rule| LeaseError::BadData { key: key.into(), rule: rule.into() })?;
        let incarnation = Incarnation(entry.created);
        self.nodes.insert(key.into(), incarnation);
        Ok(Some(What::Joined(incarnation, node)))
    }
}

fn leader(entry: &StoreEntry) -> Result<Leader> {
    let Holder { node, incarnation, .. } = decode(entry)?;
    Ok(Leader { node, incarnation, revision: Revision(entry.created) })
}

impl From<&StoreEntry> for Value {
    fn from(entry: &StoreEntry) -> Value {
        Value { revision: Revision(entry.changed), data: entry.data.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &str, data: &str, created: u64, changed: u64) -> StoreEntry {
        StoreEntry { key: key.into(), data: data.to_owned().into(), created, changed, lease: 7 }
    }

    const NODE: &str = r#"{"name":"a","address":"h:1","regions":true,"gateway":false,
        "capacity":100,"process":7,"about":{"zone":"","labels":{},"release":""},"of a newer release":{}}"#;
    const HOLDER: &str = r#"{"node":"a","incarnation":3}"#;

    #[test]
    fn additions_of_newer_releases_are_ignored() {
        let mut reader = KeyReader::new(100);
        let (mut view, errors) = reader.view(Listing {
            revision: 9,
            entries: vec![
                entry("leader", HOLDER, 4, 4),
                entry("nodes/0007", NODE, 3, 3),
                entry("regions/1/12/a/b", HOLDER, 5, 8),
                entry("something/new", "?", 6, 6),
                entry("values/plan", "x", 6, 7),
            ],
        });
        assert_eq!(errors, []);
        assert_eq!(view.revision, Revision(9));
        assert_eq!(view.nodes[&Incarnation(3)].name, "a");
        let key = RegionKey { scene: "a/b".into(), region: 12, planes: 1 };
        let (incarnation, epoch) = (Incarnation(3), Epoch(108));
        let owner = Owner { node: "a".into(), incarnation, epoch, lineage: epoch };
        assert_eq!(view.owners.clone().into_iter().collect::<Vec<_>>(), [(key, owner)]);
        assert_eq!(view.leader.clone().map(|leader| leader.revision), Some(Revision(4)));
        assert_eq!(view.values["plan"], Value { revision: Revision(7), data: "x".into() });
        let step = Step { revision: 10, keys: vec![("nodes/0007".into(), None)] };
        let (change, _) = reader.change(step);
        assert_eq!(change.what, [What::Gone(Incarnation(3))]);
        assert!(view.knows_of(Epoch(109)) && !view.knows_of(Epoch(110)), "granted at 10");
        view.apply(&change);
        assert!(view.knows_of(Epoch(110)) && !view.knows_of(Epoch(111)));
    }

    #[test]
    fn what_stands_below_gateways_is_never_a_node_nor_has_the_number_of_one() {
        let gateway =
            NODE.replace("true", "false").replace(r#""process":7"#, r#""process":1048583"#);
        let mut reader = KeyReader::new(0);
        let mut read = |key: &str, data: &str| {
            let entries = vec![entry(key, data, 3, 3)];
            let (view, errors) = reader.view(Listing { revision: 3, entries });
            (view.nodes.len(), errors.len())
        };
        assert_eq!(read("nodes/7", NODE), (1, 0));
        assert_eq!(read("gateways/7", &gateway), (1, 0));
        // By what a gateway's user of the store may write.
        assert_eq!(read("gateways/7", NODE), (0, 1), "regions");
        let number = gateway.replace("1048583", "7");
        assert_eq!(read("gateways/7", &number), (0, 1), "a node's number");
        assert_eq!(read("nodes/7", &gateway), (0, 1));
    }

    #[test]
    fn unreadable_entries_are_reported_and_count_as_removed() {
        let mut reader = KeyReader::new(0);
        reader.view(Listing { revision: 3, entries: vec![entry("nodes/7", NODE, 3, 3)] });
        let keys = ["nodes/7", "leader", "regions/0/1/city", "regions/nonsense"];
        let keys = keys.map(|key| (key.to_owned(), Some(entry(key, "{", 3, 4))));
        let (change, errors) = reader.change(Step { revision: 4, keys: keys.into() });
        let city = RegionKey { scene: "city".into(), region: 1, planes: 0 };
        let gone = [What::Gone(Incarnation(3)), What::LeadsNoMore, What::Freed(city)];
        assert_eq!(change.what, gone);
        assert_eq!(errors.len(), 4);
        assert!(errors.iter().all(|e| matches!(e, LeaseError::BadData { .. })), "{errors:?}");
    }
}

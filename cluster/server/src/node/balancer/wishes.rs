//! What operators want of balancing, in the store: a pause, regions that are pinned to nodes, and reservations.

use std::collections::BTreeMap;
use std::time::Duration;

use purview::scene::RegionId;
use serde::{Deserialize, Serialize};

use crate::node::balance::Reserved;
use crate::node::orders::{OrderError, Orders};
use crate::node::reservations::{Reservation, reservations};
use crate::node::values::{change, read};
use crate::storage::{Incarnation, View};

const WISHES: &str = "balance";

/// Most regions that are pinned at once.
const MAX_PINS: usize = 10_000;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct StoredWishes {
    /// Until when nothing is decided, milliseconds since 1970.
    paused_until_ms: u64,
    pins: BTreeMap<u32, String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Wishes {
    /// For how long nothing is decided, whole seconds; 0: it is not paused.
    pub(super) paused_s: u64,
    pub(super) pins: BTreeMap<RegionId, String>,
    pub(super) now: Duration,
    pub(super) reservations: Vec<Reservation>,
}

impl Wishes {
    /// As a view of the store has them, at a time of day.
    pub(super) fn of(view: &View, now: Duration) -> Wishes {
        let kept: StoredWishes = read(view.values.get(WISHES));
        let paused_s = kept.paused_until_ms.saturating_sub(ms(now)).div_ceil(1_000);
        let pins = kept.pins.into_iter().map(|(id, node)| (RegionId(id), node)).collect();
        Wishes { paused_s, pins, now, reservations: reservations(view, now) }
    }

    /// Ground of a scene that nodes which are there run alone.
    pub(super) fn reserved(&self, view: &View, scene: &str) -> Vec<Reserved> {
        let its = self.reservations.iter().filter(|reservation| reservation.scene == scene);
        let its = its.map(|of| Reserved { ground: of.ground(), nodes: of.nodes_of(view) });
        its.filter(|reserved| !reserved.nodes.is_empty()).collect()
    }

    /// The pins to nodes that are there. One to another node does not count until that is there.
    pub(super) fn pinned(&self, view: &View) -> BTreeMap<RegionId, Incarnation> {
        let node = |name: &str| {
            let named = view.nodes.iter().rev().find(|(_, node)| node.regions && node.name == name);
            named.map(|(incarnation, _)| *incarnation)
        };
        self.pins.iter().filter_map(|(id, name)| Some((*id, node(name)?))).collect()
    }
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Orders {
    /// Nothing is balanced for so long; zero ends a pause.
    pub async fn pause_balancing(&self, time: Duration) -> Result<(), OrderError> {
        let until_ms = match ms(time) {
            0 => 0,
            time => ms(self.time_of_day()).saturating_add(time),
        };
        Ok(change(self.store(), WISHES, |kept: &mut StoredWishes| kept.paused_until_ms = until_ms)
            .await?)
    }

    /// The region moves to this node and stays there, whatever there is to do; `None`: it may move again.
    pub async fn pin(&self, region: RegionId, node: Option<&str>) -> Result<(), OrderError> {
        if let Some(node) = node {
            self.move_region(region, node).await?;
        }
        let kept: StoredWishes = read(self.store().get(WISHES).await?.as_ref());
        if node.is_some() && kept.pins.len() >= MAX_PINS && !kept.pins.contains_key(&region.0) {
            return Err(OrderError::TooManyPins(MAX_PINS));
        }
        let pin = |kept: &mut StoredWishes| match node {
            Some(node) => _ = kept.pins.insert(region.0, node.to_owned()),
            None => _ = kept.pins.remove(&region.0),
        };
        Ok(change(self.store(), WISHES, pin).await?)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::storage::{NodeInfo, Revision, Value};

    fn node(name: &str, regions: bool) -> NodeInfo {
        NodeInfo { regions, gateway: !regions, ..NodeInfo::for_test(name) }
    }

    #[test]
    fn a_pause_ends_by_itself_and_a_pin_counts_while_its_node_is_there() {
        let kept = StoredWishes {
            paused_until_ms: 10_500,
            pins: [(4, "a".into()), (5, "gone".into()), (6, "gateway".into())].into(),
        };
        let data = Bytes::from(serde_json::to_vec(&kept).unwrap());
        let value = Value { revision: Revision(1), data };
        let nodes = [
            (Incarnation(3), node("a", true)),
            (Incarnation(7), node("a", true)),
            (Incarnation(8), node("gateway", false)),
        ];
        let view = View {
            values: [(WISHES.to_owned(), value)].into(),
            nodes: nodes.into(),
            ..View::default()
        };
        let at = |ms| Wishes::of(&view, Duration::from_millis(ms));
        assert_eq!((at(9_000).paused_s, at(10_499).paused_s, at(10_500).paused_s), (2, 1, 0));
        assert_eq!(at(0).pinned(&view), [(RegionId(4), Incarnation(7))].into());
        let now = Duration::MAX;
        assert_eq!(Wishes::of(&View::default(), now), Wishes { now, ..Wishes::default() });
    }
}

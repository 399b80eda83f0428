//! Ground that operators reserve: for a while some nodes run the regions that meet it, and nothing else.

use std::collections::BTreeSet;
use std::time::Duration;

use purview::scene::RegionId;
use purview::scene::layout::{PlaneGroup, Plot};
use serde::{Deserialize, Serialize};

use super::values::read;
use crate::storage::{Incarnation, Value, View};

pub(super) const RESERVATIONS: &str = "reservations";

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reservation {
    pub(super) scene: String,
    /// Its ground in lands: west, north, east and south edge, the last two exclusive.
    pub(super) lands: [i32; 4],
    pub(super) nodes: BTreeSet<String>,
    /// Until when it counts, milliseconds since 1970.
    pub(super) until_ms: u64,
}

impl Reservation {
    pub(super) fn ground(&self) -> Plot {
        let [x0, z0, x1, z1] = self.lands;
        Plot { id: RegionId(0), group: PlaneGroup(0), x0, z0, x1, z1 }
    }

    /// Whether ground of its scene has something in common with it.
    pub(super) fn meets(&self, plot: &Plot) -> bool {
        let its = self.ground();
        plot.x0 < its.x1 && its.x0 < plot.x1 && plot.z0 < its.z1 && its.z0 < plot.z1
    }

    pub(super) fn nodes_of(&self, view: &View) -> BTreeSet<Incarnation> {
        let its = view.nodes.iter().filter(|(_, node)| node.regions);
        its.filter(|(_, node)| self.nodes.contains(&node.name)).map(|(i, _)| *i).collect()
    }

    /// For how long it counts, whole seconds.
    pub(super) fn rest_s(&self, now: Duration) -> u64 {
        self.until_ms.saturating_sub(ms(now)).div_ceil(1_000)
    }
}

pub(super) fn reservations(view: &View, now: Duration) -> Vec<Reservation> {
    standing(view.values.get(RESERVATIONS), now)
}

/// The same of a value of the store.
pub(super) fn standing(kept: Option<&Value>, now: Duration) -> Vec<Reservation> {
    let kept: Vec<Reservation> = read(kept);
    kept.into_iter().filter(|of| of.until_ms > ms(now)).collect()
}

pub(super) fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

//! A scene's map in the store: the present map, the next one, the promises. Plain data and how it
//! changes.

use std::collections::BTreeMap;

use bytes::Bytes;
use purview::scene::layout::{Layout, PlaneGroup};
use purview::scene::{RegionId, Scene};
use serde::{Deserialize, Serialize};

use crate::node::maps::Maps;
use crate::node::values::{change, read};
use crate::storage::{LeaseError, Leases, View};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::node) struct Record {
    /// The present map; `None`: the configuration's.
    pub(in crate::node) layout: Option<Layout>,
    /// The last tick by the map before.
    pub(in crate::node) after: u64,
    pub(in crate::node) next: Option<Proposal>,
    /// Names of regions below this one were given.
    pub(in crate::node) names: u32,
    /// Regions that were given up and have not handed on all entities yet, or still forward
    /// messages; with their planes.
    pub(in crate::node) retiring: BTreeMap<u32, PlaneGroup>,
    /// Grows with every change of this.
    pub(in crate::node) change: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::node) struct Proposal {
    pub(in crate::node) layout: Layout,
    /// The last tick by the present layout, once it is decided.
    pub(in crate::node) after: Option<u64>,
    /// The regions that have promised, and under which epochs.
    pub(in crate::node) promised: BTreeMap<u32, u64>,
}

impl Proposal {
    pub(in crate::node) fn is(&self, version: u64, after: Option<u64>) -> bool {
        self.layout.version == version && self.after == after
    }
}

impl Record {
    /// Whether a region is about to be made, or has not handed on all entities yet.
    pub(in crate::node) fn comes(&self, id: RegionId) -> bool {
        let is_next = self.next.as_ref().is_some_and(|next| next.layout.plot(id).is_some());
        is_next || self.retiring.contains_key(&id.0)
    }

    /// What of it outlives the store: a change that is under way does not, but the names that it gave do.
    pub(in crate::node) fn completed(&self) -> Record {
        let mut completed = self.clone();
        if let Some(next) = completed.next.take() {
            completed.names = completed.names.max(next.layout.next.0);
        }
        completed
    }

    /// Promises are asked for, to stop after this tick, if none are yet.
    pub(super) fn ask(&mut self, after: u64) {
        if let Some(next) = self.next.as_mut().filter(|next| next.after.is_none()) {
            next.after = Some(after);
        }
    }

    /// A change takes effect at its tick; `old` is the layout until then.
    pub(super) fn decide(&mut self, version: u64, after: u64, old: &Layout) {
        let Some(next) = self.next.take_if(|next| next.is(version, Some(after))) else { return };
        let gone = old.plots.iter().filter(|plot| next.layout.plot(plot.id).is_none());
        self.retiring.extend(gone.map(|plot| (plot.id.0, plot.group)));
        self.layout = Some(next.layout);
        self.after = after;
    }

    /// A change did not take effect at its tick: it is tried again with another one, or it
    /// `is_over`.
    pub(in crate::node) fn fail(&mut self, version: u64, after: Option<u64>, is_over: bool) {
        let Some(next) = self.next.as_mut().filter(|next| next.is(version, after)) else { return };
        if is_over {
            self.names = next.layout.next.0;
            self.next = None;
        } else {
            next.after = None;
            next.promised.clear();
        }
    }
}

pub(in crate::node) fn key(scene: &Scene) -> String {
    key_of(&scene.spec.name)
}

fn key_of(scene: &str) -> String {
    format!("map/{scene}")
}

pub(in crate::node) fn written(record: &Record) -> Bytes {
    // It is plain data.
    serde_json::to_vec(record).unwrap_or_default().into()
}

/// Changes a record, however often others change it meanwhile, and counts that.
pub(in crate::node) async fn change_map(
    store: &dyn Leases,
    key: &str,
    with: impl Fn(&mut Record),
) -> Result<(), LeaseError> {
    let counted = |record: &mut Record| {
        let before = record.clone();
        with(record);
        if *record != before {
            record.change += 1;
        }
    };
    change(store, key, counted).await
}

pub(in crate::node) fn record_of(view: &View, scene: &Scene) -> Record {
    record_named(view, &scene.spec.name)
}

pub(in crate::node) fn record_named(view: &View, scene: &str) -> Record {
    read(view.values.get(&key_of(scene)))
}

pub(in crate::node) fn is_changing(view: &View, maps: &Maps) -> bool {
    maps.scenes().iter().any(|scene| record_of(view, scene).next.is_some())
}

/// A region that was given up has nothing to do any more.
pub(in crate::node) async fn retired(
    store: &dyn Leases,
    scene: &Scene,
    id: RegionId,
) -> Result<(), LeaseError> {
    change_map(store, &key(scene), |record: &mut Record| {
        record.retiring.remove(&id.0);
    })
    .await
}

pub(in crate::node) async fn record_now(
    store: &dyn Leases,
    scene: &Scene,
) -> Result<Record, LeaseError> {
    Ok(read(store.get(&key(scene)).await?.as_ref()))
}

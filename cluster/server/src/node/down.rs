//! Regions that stay down since their checkpoint cannot be read, and what an operator orders of them.
//!
//! ```text
//!           claim: the checkpoint cannot be read
//! no owner ──────────────────────────────────────► down: the grant is kept, nothing runs or is saved
//!                                                    │  restore: read it again ── fails ──► down
//!                                                    │  empty: set the bytes aside
//!                                                    ▼
//!                                                  runs
//! ```
//!
//! Which regions are down stands in the store, where every process sees it: one value, changed by
//! compare-and-swap. An order outlives the process that was to carry it out. A region that never had a
//! checkpoint is not down: it begins empty.

use std::collections::BTreeMap;

use purview::scene::{Epoch, RegionId};
use serde::{Deserialize, Serialize};

use super::orders::{OrderError, Orders};
use super::values::{change, read};
use crate::storage::{CheckpointError, Checkpoints, LeaseError, Leases, RegionKey, View};

/// The value that lists the regions that are down.
pub(super) const DOWN: &str = "down";

/// The value that lists the regions whose checkpoints are overdue.
const OVERDUE: &str = "overdue";

/// What an operator decides of a region that is down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RegionOrder {
    /// Read its checkpoint again: the store was mended, or restored from a copy.
    Restore,
    /// Set its checkpoint aside and go on without.
    Empty,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Down {
    pub(super) node: String,
    pub(super) why: String,
    pub(super) order: Option<RegionOrder>,
}

impl Down {
    pub(super) fn is_ordered(&self) -> bool {
        self.order.is_some()
    }
}

pub(super) type All = BTreeMap<u32, Down>;

pub(super) fn all(view: &View) -> All {
    read(view.values.get(DOWN))
}

/// The regions whose checkpoints are overdue, with their nodes, as a view of the store has it.
pub(super) fn overdue(view: &View) -> BTreeMap<u32, String> {
    read(view.values.get(OVERDUE))
}

impl Orders {
    /// What becomes of a region that is down.
    pub async fn decide(&self, region: RegionId, order: RegionOrder) -> Result<(), OrderError> {
        let now: All = read(self.store().get(DOWN).await?.as_ref());
        if !now.contains_key(&region.0) {
            return Err(OrderError::NotDown(region));
        }
        Ok(change(self.store(), DOWN, |all: &mut All| {
            if let Some(down) = all.get_mut(&region.0) {
                down.order = Some(order);
            }
        })
        .await?)
    }

    /// The regions that are down, as this process knows.
    pub fn down(&self) -> Vec<RegionId> {
        all(&self.view()).into_keys().map(RegionId).collect()
    }
}

#[derive(Debug, Default)]
pub(super) struct Downs(BTreeMap<RegionId, Epoch>);

/// What is to be done with a region that this process was granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Start,
    Wait,
}

impl Downs {
    /// A region cannot start: the store records it, and an operator must decide.
    pub(super) async fn hold(
        &mut self,
        (store, node): (&dyn Leases, &str),
        id: RegionId,
        epoch: Epoch,
        why: String,
    ) {
        self.0.insert(id, epoch);
        tracing::error!(
            region = %id, why,
            "a region stays down: its checkpoint cannot be read; order `purview ctl region {id} restore` or `empty`"
        );
        let told = change(store, DOWN, |all: &mut All| {
            let order = all.get(&id.0).and_then(|down| down.order);
            all.insert(id.0, Down { node: node.to_owned(), why: why.clone(), order });
        });
        if let Err(error) = told.await {
            tracing::warn!(%error, region = %id, "cannot record that the region is down; will retry");
            // It is read again then, which changes nothing.
            self.0.remove(&id);
        }
    }

    fn has(&self, id: RegionId) -> bool {
        self.0.contains_key(&id)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = RegionId> + '_ {
        self.0.keys().copied()
    }

    /// This process is no longer responsible for a region.
    pub(super) fn leave(&mut self, id: RegionId) {
        self.0.remove(&id);
    }

    /// Carries out the order for a region that is down here; `view` may be older.
    pub(super) async fn obey(
        &mut self,
        (store, checkpoints): (&dyn Leases, Option<&dyn Checkpoints>),
        id: RegionId,
        key: &RegionKey,
        view: &View,
    ) -> Result<Next, LeaseError> {
        if !self.has(id) {
            return Ok(Next::Start);
        }
        if all(view).get(&id.0).is_none_or(|down| down.order.is_none()) {
            return Ok(Next::Wait);
        }
        let now: All = read(store.get(DOWN).await?.as_ref());
        let Some(order) = now.get(&id.0).and_then(|down| down.order) else { return Ok(Next::Wait) };
        let failed = match (order, checkpoints) {
            (RegionOrder::Empty, Some(checkpoints)) => set_aside(checkpoints, key).await.err(),
            (RegionOrder::Empty | RegionOrder::Restore, _) => None,
        };
        if let Some(error @ CheckpointError::Unreachable { .. }) = failed {
            tracing::warn!(%error, region = %id, "cannot start the region empty yet");
            return Ok(Next::Wait);
        }
        change(store, DOWN, |all: &mut All| {
            if let Some(down) = all.get_mut(&id.0) {
                down.order = None;
                if let Some(error) = &failed {
                    down.why = format!("its checkpoint cannot be set aside: {error}");
                }
            }
        })
        .await?;
        if failed.is_some() {
            return Ok(Next::Wait);
        }
        self.0.remove(&id);
        Ok(Next::Start)
    }
}

async fn set_aside(checkpoints: &dyn Checkpoints, key: &RegionKey) -> Result<(), CheckpointError> {
    let kept = checkpoints.set_aside(key).await?;
    tracing::warn!(region = %key, kept, "checkpoints were set aside by order: the region starts empty");
    Ok(())
}

/// Takes regions off the list that are down no more.
pub(super) async fn clear(
    store: &dyn Leases,
    is_over: impl Fn(RegionId, &Down) -> bool,
) -> Result<(), LeaseError> {
    change(store, DOWN, |all: &mut All| all.retain(|id, down| !is_over(RegionId(*id), down))).await
}

fn lives(view: &View, name: &str) -> bool {
    view.nodes.values().any(|node| node.name == name)
}

/// Whether the store lists exactly these regions of a node as overdue, and none of a node that is gone.
pub(super) fn is_overdue_told(view: &View, node: &str, now: &[RegionId]) -> bool {
    let told = overdue(view);
    let own = told.iter().filter(|(_, of)| *of == node).map(|(id, _)| RegionId(*id));
    own.eq(now.iter().copied()) && told.values().all(|of| lives(view, of))
}

pub(super) async fn tell_overdue(
    store: &dyn Leases,
    view: &View,
    node: &str,
    now: &[RegionId],
) -> Result<(), LeaseError> {
    change(store, OVERDUE, |all: &mut BTreeMap<u32, String>| {
        all.retain(|_, of| of != node && lives(view, of));
        all.extend(now.iter().map(|id| (id.0, node.to_owned())));
    })
    .await
}

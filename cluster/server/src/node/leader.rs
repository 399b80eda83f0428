//! What the leader decides: which node each region is meant for, and which region moves next. Nodes do
//! the rest: they claim what nobody owns, and hand over what is to move.
//!
//! Both are values of the store, written by compare-and-swap, so that a leader that is none any more
//! changes nothing, and the next one goes on where it was.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use purview::scene::mutants::{self, Mutant};
use purview::scene::{Epoch, RegionId, Scene, Tick};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::layout_change::{self, Change, MapError, MapOrder, is_changing, record_of};
use super::maps::Maps;
use super::placement::{Plot, Site, plan, plots, rebalance};
use crate::executor::Home;
use crate::storage::{
    Incarnation, LeaseError, Leases, Owner, Put, RegionKey, Revision, Value, View,
};

/// The value that holds the plan.
const PLAN: &str = "plan";

/// The value that holds the move that is under way.
const MOVE: &str = "move";

/// The value that lists those who are to own nothing.
const DRAINS: &str = "drains";

/// After a node came, how long the leader waits for others before it plans: what starts together is
/// planned together.
const SETTLES: Duration = Duration::from_millis(1_500);

/// A move that takes longer has failed; its region stays where it is for now, and others have their turn.
const MOVE_LIMIT: Duration = Duration::from_secs(6);

/// How long after a failed move the same one is tried again.
const TRIES_AGAIN: Duration = Duration::from_secs(4);

/// A move that has failed so often is not meant any more, until somebody orders it anew: for over two minutes
/// those two could not agree on it.
const TRIES: u32 = 15;

/// Who each region is meant for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Plan {
    /// The incarnation of each.
    pub(super) of: BTreeMap<u32, u64>,
    /// The incarnations among which regions were shared out.
    among: BTreeSet<u64>,
}

/// A region that is to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Move {
    pub(super) region: u32,
    /// The epoch of its owner.
    pub(super) epoch: u64,
    /// The incarnations.
    pub(super) from: u64,
    pub(super) to: u64,
}

/// Why an order is not given.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// The store says no or nothing.
    #[error(transparent)]
    Store(#[from] LeaseError),
    /// There is no such node.
    #[error("no node {0:?} takes regions; there are: {1}")]
    NoNode(String, String),
    /// There is no such region.
    #[error("no region {0} has an owner; `purview ctl regions` lists them")]
    NoRegion(RegionId),
    /// The region is not down.
    #[error("region {0} is not down; `purview ctl regions` tells which are")]
    NotDown(RegionId),
    /// Nobody else could take its regions.
    #[error("{0:?} is the only node that takes regions: add another one first")]
    OnlyNode(String),
    /// No token names such a subject.
    #[error(
        "the subject has {0} bytes: want 1 to 128, without control characters, as the `sub` of a token"
    )]
    NoSubject(usize),
    /// There is no room for another kick.
    #[error(
        "{0} kicks count already: one goes when its time is over, or with `purview ctl kick SUBJECT --for 0s`"
    )]
    TooManyKicks(usize),
}

pub(super) fn read<T: for<'a> Deserialize<'a> + Default>(value: Option<&Value>) -> T {
    // One that is not understood is none.
    value.and_then(|value| serde_json::from_slice(&value.data).ok()).unwrap_or_default()
}

/// The plan as a view of the store has it.
pub(super) fn plan_of(view: &View) -> Plan {
    read(view.values.get(PLAN))
}

/// The move that is under way.
pub(super) fn move_of(view: &View) -> Option<Move> {
    read(view.values.get(MOVE))
}

/// Whether a node is to own nothing.
pub(super) fn is_drained(view: &View, who: Incarnation) -> bool {
    read::<BTreeSet<u64>>(view.values.get(DRAINS)).contains(&who.0)
}

/// The nodes that may own regions: those that are not to be drained, or all where there are no others.
fn sites(view: &View) -> Vec<Site<u64>> {
    let drained: BTreeSet<u64> = read(view.values.get(DRAINS));
    let owns = || view.nodes.iter().filter(|(_, node)| node.regions);
    let stays = owns().any(|(i, _)| !drained.contains(&i.0));
    let takes = owns().filter(|(i, _)| !stays || !drained.contains(&i.0));
    takes.map(|(i, node)| Site { node: i.0, capacity: node.capacity }).collect()
}

/// Whether anybody but `who` could own regions who is not to be drained, too.
pub(super) fn has_others(view: &View, who: Incarnation) -> bool {
    let mut others = view.nodes.iter().filter(|(i, node)| node.regions && **i != who);
    others.any(|(i, _)| !is_drained(view, *i))
}

async fn put<T: Serialize>(
    store: &dyn Leases,
    key: &str,
    expected: Option<Revision>,
    value: &T,
) -> Result<bool, LeaseError> {
    // These types are plain data.
    let data = Bytes::from(serde_json::to_vec(value).unwrap_or_default());
    Ok(matches!(store.put_if(key, expected, data).await?, Put::Done { .. }))
}

/// Changes a value of the store, however often others change it meanwhile.
pub(super) async fn change<T: Serialize + Default + for<'a> Deserialize<'a>>(
    store: &dyn Leases,
    key: &str,
    with: impl Fn(&mut T),
) -> Result<(), LeaseError> {
    loop {
        let now = store.get(key).await?;
        let mut value: T = read(now.as_ref());
        with(&mut value);
        if put(store, key, now.map(|now| now.revision), &value).await? {
            return Ok(());
        }
    }
}

/// What an operator may order, at any process.
#[derive(Clone)]
pub struct Orders {
    pub(super) store: Arc<dyn Leases>,
    pub(super) maps: Maps,
    pub(super) view: Arc<std::sync::RwLock<View>>,
    pub(super) home: Home,
}

impl std::fmt::Debug for Orders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Orders").finish_non_exhaustive()
    }
}

impl Orders {
    fn node(&self, view: &View, name: &str) -> Result<Incarnation, OrderError> {
        let takes = || view.nodes.iter().filter(|(_, node)| node.regions);
        let named = takes().find(|(_, node)| node.name == name).map(|(i, _)| *i);
        named.ok_or_else(|| {
            let all: Vec<&str> = takes().map(|(_, node)| node.name.as_str()).collect();
            OrderError::NoNode(name.to_owned(), all.join(", "))
        })
    }

    /// The scenes as this process knows them.
    pub fn scenes(&self) -> Vec<Arc<Scene>> {
        self.maps.scenes()
    }

    pub(super) fn look(&self) -> View {
        self.view.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// A region is to move to a node, with everybody on it.
    ///
    /// # Errors
    /// There is no such region or node, or the store does not answer.
    pub async fn move_region(&self, region: RegionId, node: &str) -> Result<(), OrderError> {
        let view = self.look();
        let to = self.node(&view, node)?;
        if !view.owners.keys().any(|key| key.region == region.0) {
            return Err(OrderError::NoRegion(region));
        }
        Ok(change(&*self.store, PLAN, |plan: &mut Plan| {
            plan.of.insert(region.0, to.0);
        })
        .await?)
    }

    /// The regions that a node of this name has, and under which epochs.
    pub fn owned_by(&self, node: &str) -> Vec<(RegionKey, Epoch)> {
        let owners = self.look().owners.into_iter();
        owners.filter(|(_, owner)| owner.node == node).map(|(key, o)| (key, o.epoch)).collect()
    }

    /// Regions that are meant for another node than the one that has them, both of which are there: what was ordered
    /// and is not done.
    pub fn outstanding(&self) -> Vec<RegionId> {
        let view = self.look();
        let lives = |node: u64| view.nodes.contains_key(&Incarnation(node));
        let plan = plan_of(&view);
        let elsewhere = |region: u32, owner: &Owner| {
            let meant = plan.of.get(&region).copied().filter(|node| lives(*node));
            lives(owner.incarnation.0) && meant.is_some_and(|node| node != owner.incarnation.0)
        };
        let known = view.owners.iter().filter(|(key, _)| self.maps.knows(key));
        known
            .filter(|(key, owner)| elsewhere(key.region, owner))
            .map(|(key, _)| RegionId(key.region))
            .collect()
    }

    /// A scene is to be cut otherwise, while everybody walks on. Gives the scene's name and the version that
    /// its map will have.
    ///
    /// # Errors
    /// The map cannot be so, another change is under way, or the store does not answer.
    pub async fn change_map(&self, order: &MapOrder) -> Result<(String, u64), MapError> {
        layout_change::order(&*self.store, &self.maps, order).await
    }

    /// A node is to give its regions to others, one by one; when it has none it ends.
    ///
    /// # Errors
    /// There is no such node, no other one that takes regions, or the store does not answer.
    pub async fn drain(&self, node: &str) -> Result<(), OrderError> {
        let view = self.look();
        let who = self.node(&view, node)?;
        if !has_others(&view, who) {
            return Err(OrderError::OnlyNode(node.to_owned()));
        }
        let living: BTreeSet<u64> = view.nodes.keys().map(|i| i.0).collect();
        Ok(change(&*self.store, DRAINS, |drains: &mut BTreeSet<u64>| {
            drains.retain(|i| living.contains(i));
            drains.insert(who.0);
        })
        .await?)
    }
}

/// The leader's part.
pub(super) struct Planner {
    store: Arc<dyn Leases>,
    maps: Maps,
    changes: Change,
    /// The move that was seen last, and since when.
    watched: Option<(Revision, Instant)>,
    failed: Failed,
}

/// Moves that were not made: of which region, to whom; how often, and when last. A leader knows of those under its
/// lead.
#[derive(Debug, Default)]
struct Failed(HashMap<(u32, u64), (u32, Instant)>);

impl Failed {
    /// One was not made once more. Gives how often by now.
    fn note(&mut self, region: u32, to: u64, now: Instant) -> u32 {
        let (times, last) = self.0.entry((region, to)).or_insert((0, now));
        (*times, *last) = (*times + 1, now);
        *times
    }

    /// Whether it may be tried, again or for the first time.
    fn may_try(&self, region: u32, to: u64, now: Instant) -> bool {
        let last = self.0.get(&(region, to)).map(|(_, last)| *last);
        last.is_none_or(|last| {
            now.duration_since(last) >= TRIES_AGAIN && !mutants::has(Mutant::MovedOnce)
        })
    }

    /// Forgets those that nobody wants any more, or that came to pass.
    fn retain(&mut self, is_due: impl Fn(u32, u64) -> bool) {
        self.0.retain(|(region, to), _| is_due(*region, *to));
    }
}

impl Planner {
    pub(super) fn new(store: Arc<dyn Leases>, maps: Maps) -> Planner {
        Planner {
            store,
            maps,
            changes: Change::default(),
            watched: None,
            failed: Failed::default(),
        }
    }

    /// All regions that there are, or are about to be made.
    fn plots(&self, view: &View) -> Vec<Plot<RegionId>> {
        let mut all = Vec::new();
        for scene in self.maps.scenes() {
            all.extend(plots(&scene.map));
            let record = record_of(view, &scene);
            // They need no neighbours any more, only somebody who lets them end.
            let retiring = record.retiring.keys().map(|id| Plot {
                region: RegionId(*id),
                middle: (0, 0),
                neighbours: Vec::new(),
            });
            all.extend(retiring.filter(|plot| scene.map.get(plot.region).is_none()));
            if let Some(next) = record.next.and_then(|next| scene.with_layout(&next.layout).ok()) {
                let is_new = |plot: &Plot<RegionId>| scene.map.get(plot.region).is_none();
                all.extend(plots(&next.map).into_iter().filter(is_new));
            }
        }
        all
    }

    /// The regions that have most of the ground that those will have which are about to be made.
    fn parents(&self, view: &View) -> HashMap<RegionId, RegionId> {
        let mut parents = HashMap::new();
        for scene in self.maps.scenes() {
            let (now, next) = (scene.map.layout(), record_of(view, &scene).next);
            for plot in next.iter().flat_map(|next| &next.layout.plots) {
                if scene.map.get(plot.id).is_none()
                    && let Some(parent) = now.most_of(plot)
                {
                    parents.insert(plot.id, parent);
                }
            }
        }
        parents
    }

    /// Decides what is to be decided. `quiet`: for how long no node has come.
    pub(super) async fn lead(
        &mut self,
        view: &View,
        quiet: Duration,
        now: impl Fn(&Scene) -> Tick,
    ) {
        if quiet < SETTLES {
            return;
        }
        let owners: HashMap<RegionId, Owner> = view
            .owners
            .iter()
            .filter(|(key, _)| self.maps.knows(key))
            .map(|(key, owner)| (RegionId(key.region), owner.clone()))
            .collect();
        let result = match self.plan(view, &owners).await {
            // A move that is under way ends before a map changes, and none begins.
            Ok(()) if is_changing(view, &self.maps) => {
                match self.next_move(view, &owners, false).await {
                    Ok(()) => self.changes.lead(&*self.store, &self.maps, view, now).await,
                    error => error,
                }
            }
            Ok(()) => self.next_move(view, &owners, true).await,
            error => error,
        };
        if let Err(error) = result {
            purview::log_limited!(warn, %error, "what is planned could not be told");
        }
    }

    /// Gives what nobody is meant to own to those who have room, and to those who are new their share.
    async fn plan(&self, view: &View, owners: &HashMap<RegionId, Owner>) -> Result<(), LeaseError> {
        let old = plan_of(view);
        let sites = sites(view);
        let lives = |node: &u64| sites.iter().any(|site| site.node == *node);
        let meant = |region: RegionId| {
            let meant = old.of.get(&region.0).copied().filter(lives);
            let owner = || owners.get(&region).map(|o| o.incarnation.0).filter(lives);
            meant.or_else(owner)
        };
        let (all, parents) = (self.plots(view), self.parents(view));
        // What is cut off stays at first where it was, with everybody on it.
        let settled = |plot: &Plot<RegionId>| {
            let at_parent = || meant(*parents.get(&plot.region)?);
            Some((plot.region, meant(plot.region).or_else(at_parent)?))
        };
        let settled: HashMap<RegionId, u64> = all.iter().filter_map(settled).collect();
        let mut planned = plan(&sites, &all, &settled);
        if planned.is_empty() {
            return Ok(());
        }
        let among: BTreeSet<u64> = sites.iter().map(|site| site.node).collect();
        if !old.among.is_superset(&among) {
            rebalance(&sites, &all, &mut planned);
        }
        let of = planned.into_iter().map(|(id, to)| (id.0, to)).collect();
        let new = Plan { of, among };
        if new != old {
            let expected = view.values.get(PLAN).map(|value| value.revision);
            if put(&*self.store, PLAN, expected, &new).await? {
                tracing::info!(nodes = sites.len(), "a new plan");
            }
        }
        Ok(())
    }

    /// One region at a time moves to where it is meant to be.
    async fn next_move(
        &mut self,
        view: &View,
        owners: &HashMap<RegionId, Owner>,
        may_begin: bool,
    ) -> Result<(), LeaseError> {
        let value = view.values.get(MOVE);
        let expected = value.map(|value| value.revision);
        let now = move_of(view);
        let owner = |region: u32| owners.get(&RegionId(region));
        let lives = |node: u64| view.nodes.contains_key(&Incarnation(node));
        if let (Some(now), Some(revision)) = (now, expected) {
            let since = match self.watched {
                Some((watched, since)) if watched == revision => since,
                _ => self.watched.insert((revision, Instant::now())).1,
            };
            let waits = owner(now.region).is_some_and(|o| o.epoch.0 == now.epoch)
                && lives(now.from)
                && lives(now.to);
            if waits && since.elapsed() < MOVE_LIMIT {
                return Ok(());
            }
            if waits {
                let times = self.failed.note(now.region, now.to, Instant::now());
                let (region, to) = (now.region, now.to);
                if times < TRIES {
                    tracing::warn!(region, to, times, "a region does not move; it is tried again");
                } else {
                    tracing::warn!(
                        region,
                        to,
                        times,
                        "a region does not move; it stays where it is"
                    );
                    change(&*self.store, PLAN, |plan: &mut Plan| {
                        plan.of.insert(now.region, now.from);
                    })
                    .await?;
                }
                self.watched = None;
                put(&*self.store, MOVE, expected, &None::<Move>).await?;
                return Ok(());
            }
        }
        let plan = plan_of(view).of;
        let due = |region: u32, to: u64| {
            let owner = owner(region).filter(|owner| owner.incarnation.0 != to)?;
            let from = owner.incarnation.0;
            (lives(from) && lives(to)).then_some(Move { region, epoch: owner.epoch.0, from, to })
        };
        self.failed
            .retain(|region, to| plan.get(&region) == Some(&to) && due(region, to).is_some());
        let next = plan.iter().filter(|_| may_begin).find_map(|(region, to)| {
            let may = self.failed.may_try(*region, *to, Instant::now());
            due(*region, *to).filter(|_| may)
        });
        if next != now {
            put(&*self.store, MOVE, expected, &next).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_that_failed_is_tried_again_after_a_while_and_others_meanwhile() {
        let begin = Instant::now();
        let mut failed = Failed::default();
        assert_eq!(failed.note(4, 1, begin), 1);
        assert!(!failed.may_try(4, 1, begin));
        assert!(failed.may_try(4, 2, begin) && failed.may_try(5, 1, begin));
        let later = begin + TRIES_AGAIN;
        assert!(failed.may_try(4, 1, later));
        assert_eq!(failed.note(4, 1, later), 2);
        assert!(!failed.may_try(4, 1, later));
        failed.retain(|region, to| (region, to) != (4, 1));
        assert!(failed.may_try(4, 1, later));
        assert_eq!(failed.note(4, 1, later), 1);
    }
}

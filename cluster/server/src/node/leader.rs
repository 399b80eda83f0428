//! What the leader decides: which node each region is meant for, and which region moves next. Nodes
//! do the rest: they claim regions without an owner, and hand over regions that must move.
//!
//! Both are values of the store, written by compare-and-swap, so that a leader that is none any more
//! changes nothing, and the next one goes on where it was.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use purview::scene::layout::{self, RegionMap};
use purview::scene::mutants::{self, Mutant};
use purview::scene::{RegionId, Scene, Tick};
use tokio::time::Instant;

use super::layout_change::{Change, is_changing, record_of};
use super::maps::Maps;
use super::placement::{Plot, plots};
use super::plan::{MOVE, Move, PLAN, Plan, drained, move_of, plan_of, sites};
use super::pools::Pools;
use super::reservations::reservations;
use super::sharing;
use super::values::{change, put};
use crate::executor::Executor;
use crate::storage::{Incarnation, LeaseError, Leases, Owner, Revision, View};

/// After a node came, how long the leader waits for others before it plans: what starts together is
/// planned together.
const STABLE_AFTER: Duration = Duration::from_millis(1_500);

/// A move that takes longer has failed; its region stays where it is for now, and others have their turn.
const MOVE_LIMIT: Duration = Duration::from_secs(6);

/// How long after a failed move the same one is tried again.
const TRIES_AGAIN: Duration = Duration::from_secs(4);

/// A move that has failed so often is dropped until an operator orders it anew: for over two
/// minutes the two nodes could not agree on it.
const TRIES: u32 = 15;

/// The leader's part.
pub(super) struct Planner {
    store: Arc<dyn Leases>,
    executor: Executor,
    maps: Maps,
    /// Once no node has come for so long, regions are shared out in any case.
    settles: Duration,
    changes: Change,
    /// The move that was seen last, and since when.
    watched: Option<(Revision, Instant)>,
    failed: Failed,
}

/// Failed moves: the region, the target, how often, and when last. A leader knows of those under
/// its lead.
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

    /// Forgets those that are no longer planned, or that succeeded.
    fn retain(&mut self, is_due: impl Fn(u32, u64) -> bool) {
        self.0.retain(|(region, to), _| is_due(*region, *to));
    }
}

impl Planner {
    pub(super) fn new(
        (store, executor): (Arc<dyn Leases>, Executor),
        maps: Maps,
        settles: Duration,
    ) -> Planner {
        Planner {
            store,
            executor,
            maps,
            settles,
            changes: Change::default(),
            watched: None,
            failed: Failed::default(),
        }
    }

    /// All regions that there are, or are about to be made.
    fn plots(&self, view: &View, pools: &Pools) -> Vec<Plot<RegionId>> {
        let mut all = Vec::new();
        for scene in self.maps.scenes() {
            let name = &scene.spec.name;
            let of_map = |map: &RegionMap| {
                let grounds: HashMap<RegionId, layout::Plot> =
                    map.layout().plots.into_iter().map(|plot| (plot.id, plot)).collect();
                let pool = |plot: &Plot<RegionId>| pools.of(name, grounds.get(&plot.region));
                let all = plots(map).into_iter();
                all.map(|plot| Plot { pool: pool(&plot), ..plot }).collect::<Vec<_>>()
            };
            all.extend(of_map(&scene.map));
            let record = record_of(view, &scene);
            // They need no neighbours any more, only an owner that lets them end.
            let retiring = record.retiring.keys().map(|id| Plot {
                region: RegionId(*id),
                middle: (0, 0),
                neighbours: Vec::new(),
                pool: pools.of(name, None),
            });
            all.extend(retiring.filter(|plot| scene.map.get(plot.region).is_none()));
            if let Some(next) = record.next.and_then(|next| scene.with_layout(&next.layout).ok()) {
                let is_new = |plot: &Plot<RegionId>| scene.map.get(plot.region).is_none();
                all.extend(of_map(&next.map).into_iter().filter(is_new));
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

    /// Makes all decisions that are due. `quiet`: for how long no node has come.
    pub(super) async fn lead(
        &mut self,
        view: &View,
        quiet: Duration,
        now: impl Fn(&Scene) -> Tick,
    ) {
        if quiet < STABLE_AFTER {
            return;
        }
        let owners: HashMap<RegionId, Owner> = view
            .owners
            .iter()
            .filter(|(key, _)| self.maps.knows(key))
            .map(|(key, owner)| (RegionId(key.region), owner.clone()))
            .collect();
        let result = match self.plan(view, &owners, quiet >= self.settles).await {
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
            purview::log_limited!(warn, %error, "the plan could not be saved");
        }
    }

    /// Assigns regions without a planned owner to nodes with room, and gives new nodes their share.
    async fn plan(
        &self,
        view: &View,
        owners: &HashMap<RegionId, Owner>,
        is_settled: bool,
    ) -> Result<(), LeaseError> {
        let old = plan_of(view);
        let sites = sites(view);
        let lives = |node: &u64| sites.iter().any(|site| site.node == *node);
        let meant = |region: RegionId| {
            let meant = old.of.get(&region.0).copied().filter(lives);
            let owner = || owners.get(&region).map(|o| o.incarnation.0).filter(lives);
            meant.or_else(owner)
        };
        let reserved = reservations(view, self.executor.time_of_day());
        let pools = Pools::new((view, &sites), &self.maps.scenes(), &reserved);
        for scene in &pools.without {
            purview::log_limited!(warn, scene, "no node fits scene.nodes; others run its regions");
        }
        let (all, parents) = (self.plots(view, &pools), self.parents(view));
        // A part that is cut off stays at first on its node, with all its entities.
        let stable = |plot: &Plot<RegionId>| {
            let at_parent = || meant(*parents.get(&plot.region)?);
            Some((plot.region, meant(plot.region).or_else(at_parent)?))
        };
        let stable: HashMap<RegionId, u64> = all.iter().filter_map(stable).collect();
        if sites.is_empty() || all.is_empty() {
            return Ok(());
        }
        let new =
            sharing::next(&old, (&sites, &pools, &drained(view)), (&all, &stable), is_settled);
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
        let expected = view.values.get(MOVE).map(|value| value.revision);
        let now = move_of(view);
        if let (Some(now), Some(revision)) = (now, expected)
            && self.is_under_way(view, owners, (now, revision)).await?
        {
            return Ok(());
        }
        let owner = |region: u32| owners.get(&RegionId(region));
        let lives = |node: u64| view.nodes.contains_key(&Incarnation(node));
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

    /// Whether nothing else is to be decided of moves now: the present one waits, or has just failed.
    async fn is_under_way(
        &mut self,
        view: &View,
        owners: &HashMap<RegionId, Owner>,
        (now, revision): (Move, Revision),
    ) -> Result<bool, LeaseError> {
        let since = match self.watched {
            Some((watched, since)) if watched == revision => since,
            _ => self.watched.insert((revision, Instant::now())).1,
        };
        let lives = |node: u64| view.nodes.contains_key(&Incarnation(node));
        let owner = owners.get(&RegionId(now.region));
        let waits =
            owner.is_some_and(|o| o.epoch.0 == now.epoch) && lives(now.from) && lives(now.to);
        if waits && since.elapsed() >= MOVE_LIMIT {
            self.call_off(now, revision).await?;
        }
        Ok(waits)
    }

    /// A move has failed: it is tried again later, or not meant any more.
    async fn call_off(&mut self, now: Move, revision: Revision) -> Result<(), LeaseError> {
        let times = self.failed.note(now.region, now.to, Instant::now());
        let (region, to) = (now.region, now.to);
        if times < TRIES {
            tracing::warn!(region, to, times, "a region did not move; will retry");
        } else {
            tracing::warn!(region, to, times, "a region did not move; it stays where it is");
            change(&*self.store, PLAN, |plan: &mut Plan| {
                plan.of.insert(now.region, now.from);
            })
            .await?;
        }
        self.watched = None;
        put(&*self.store, MOVE, Some(revision), &None::<Move>).await?;
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

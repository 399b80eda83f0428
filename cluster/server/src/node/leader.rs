//! What the leader decides: which node each region is meant for, and which regions move now. Nodes
//! do the rest: they claim regions without an owner, and hand over regions that must move.
//!
//! Both are values of the store, written by compare-and-swap, so that a leader that is none any more
//! changes nothing, and the next one goes on where it was.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use purview::scene::layout::{self, RegionMap};
use purview::scene::mutants::{self, Mutant};
use purview::scene::{RegionId, Scene, Tick};
use tokio::time::Instant;

use super::layout_change::{Change, is_changing, record_of};
use super::maps::Maps;
use super::placement::{Plot, Site, plots};
use super::plan::{MOVES, Move, PLAN, Plan, drained, moves_of, plan_of, sites};
use super::pools::Pools;
use super::reservations::reservations;
use super::sharing;
use super::values::{change, put};
use crate::executor::Executor;
use crate::storage::{Incarnation, LeaseError, Leases, Owner, View};

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

pub(super) struct Planner {
    store: Arc<dyn Leases>,
    executor: Executor,
    maps: Maps,
    /// Once no node has come for so long, regions are shared out in any case.
    settles: Duration,
    changes: Change,
    /// The moves that are under way, and since when.
    watched: BTreeMap<Move, Instant>,
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
            watched: BTreeMap::new(),
            failed: Failed::default(),
        }
    }

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
        let sites = sites(view);
        let reserved = reservations(view, self.executor.time_of_day());
        let pools = Pools::new((view, &sites), &self.maps.scenes(), &reserved);
        let plots = self.plots(view, &pools);
        let is_settled = quiet >= self.settles;
        let result = match self.plan(view, (&sites, &pools, &plots), &owners, is_settled).await {
            // Moves that are under way end before a map changes, and none begins.
            Ok(()) if is_changing(view, &self.maps) => {
                match self.next_moves(view, &owners, &plots, false).await {
                    Ok(()) => self.changes.lead(&*self.store, &self.maps, view, now).await,
                    error => error,
                }
            }
            Ok(()) => self.next_moves(view, &owners, &plots, true).await,
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
        (sites, pools, all): (&[Site<u64>], &Pools, &[Plot<RegionId>]),
        owners: &HashMap<RegionId, Owner>,
        is_settled: bool,
    ) -> Result<(), LeaseError> {
        let old = plan_of(view);
        let lives = |node: &u64| sites.iter().any(|site| site.node == *node);
        let meant = |region: RegionId| {
            let meant = old.of.get(&region.0).copied().filter(lives);
            let owner = || owners.get(&region).map(|o| o.incarnation.0).filter(lives);
            meant.or_else(owner)
        };
        for scene in &pools.without {
            purview::log_limited!(warn, scene, "no node fits scene.nodes; others run its regions");
        }
        let parents = self.parents(view);
        // A part that is cut off stays at first on its node, with all its entities.
        let stable = |plot: &Plot<RegionId>| {
            let at_parent = || meant(*parents.get(&plot.region)?);
            Some((plot.region, meant(plot.region).or_else(at_parent)?))
        };
        let stable: HashMap<RegionId, u64> = all.iter().filter_map(stable).collect();
        if sites.is_empty() || all.is_empty() {
            return Ok(());
        }
        let new = sharing::next(&old, (sites, pools, &drained(view)), (all, &stable), is_settled);
        if new != old {
            let expected = view.values.get(PLAN).map(|value| value.revision);
            if put(&*self.store, PLAN, expected, &new).await? {
                tracing::info!(nodes = sites.len(), "a new plan");
            }
        }
        Ok(())
    }

    /// Regions move to where they are meant to be, at the same time those that share no neighbour and no pair of nodes.
    async fn next_moves(
        &mut self,
        view: &View,
        owners: &HashMap<RegionId, Owner>,
        plots: &[Plot<RegionId>],
        may_begin: bool,
    ) -> Result<(), LeaseError> {
        let expected = view.values.get(MOVES).map(|value| value.revision);
        let (before, now) = (moves_of(view), Instant::now());
        let owner = |region: u32| owners.get(&RegionId(region));
        let lives = |node: u64| view.nodes.contains_key(&Incarnation(node));
        let waits = |of: &Move| {
            owner(of.region).is_some_and(|o| o.epoch.0 == of.epoch)
                && lives(of.from)
                && lives(of.to)
        };
        let mut moves: Vec<Move> = before.iter().copied().filter(waits).collect();
        self.watched.retain(|of, _| moves.contains(of));
        for of in std::mem::take(&mut moves) {
            match now - *self.watched.entry(of).or_insert(now) < MOVE_LIMIT {
                true => moves.push(of),
                false => self.call_off(of).await?,
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
        let mut ground = Ground::new(plots, &moves);
        for (region, to) in plan.iter().filter(|_| may_begin) {
            if self.failed.may_try(*region, *to, now)
                && let Some(of) = due(*region, *to)
                && ground.take(of)
            {
                moves.push(of);
            }
        }
        if moves != before {
            put(&*self.store, MOVES, expected, &moves).await?;
        }
        Ok(())
    }

    /// A move has failed: it is tried again later, or not meant any more.
    async fn call_off(&mut self, of: Move) -> Result<(), LeaseError> {
        let times = self.failed.note(of.region, of.to, Instant::now());
        let (region, to) = (of.region, of.to);
        self.watched.remove(&of);
        if times < TRIES {
            tracing::warn!(region, to, times, "a region did not move; will retry");
            return Ok(());
        }
        tracing::warn!(region, to, times, "a region did not move; it stays where it is");
        change(&*self.store, PLAN, |plan: &mut Plan| {
            plan.of.insert(of.region, of.from);
        })
        .await
    }
}

/// Regions and pairs of nodes that moves at the same time concern.
struct Ground<'a> {
    neighbours: HashMap<RegionId, &'a [RegionId]>,
    regions: BTreeSet<RegionId>,
    pairs: BTreeSet<[u64; 2]>,
}

impl<'a> Ground<'a> {
    fn new(plots: &'a [Plot<RegionId>], moves: &[Move]) -> Ground<'a> {
        let neighbours = plots.iter().map(|plot| (plot.region, &*plot.neighbours)).collect();
        let (regions, pairs) = Default::default();
        let mut ground = Ground { neighbours, regions, pairs };
        for of in moves {
            ground.take(*of);
        }
        ground
    }

    /// Whether a move concerns nothing that another one does; from now on both do.
    fn take(&mut self, of: Move) -> bool {
        let region = RegionId(of.region);
        let near = self.neighbours.get(&region).copied().unwrap_or_default();
        let its: Vec<RegionId> = near.iter().copied().chain([region]).collect();
        let pair = [of.from.min(of.to), of.from.max(of.to)];
        if self.pairs.contains(&pair) || its.iter().any(|id| self.regions.contains(id)) {
            return false;
        }
        self.pairs.insert(pair);
        self.regions.extend(its);
        true
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

    #[test]
    fn moves_at_the_same_time_share_no_neighbour_and_no_pair_of_nodes() {
        // A row of six regions.
        let plots: Vec<Plot<RegionId>> = (0..6u32)
            .map(|id| {
                let near = [id.wrapping_sub(1), id + 1].into_iter().filter(|near| *near < 6);
                let (neighbours, middle) = (near.map(RegionId).collect(), (id, 0));
                Plot { region: RegionId(id), middle, neighbours, pool: usize::MAX }
            })
            .collect();
        let of = |region, from, to| Move { region, epoch: 1, from, to };
        let mut ground = Ground::new(&plots, &[of(0, 1, 2)]);
        assert!(!ground.take(of(1, 3, 4)), "a neighbour");
        assert!(!ground.take(of(2, 3, 4)), "a neighbour of a neighbour");
        assert!(!ground.take(of(3, 2, 1)), "the same pair of nodes");
        assert!(ground.take(of(3, 1, 3)));
        assert!(!ground.take(of(5, 4, 5)));
        assert!(ground.take(of(77, 4, 5)), "a region of another scene");
    }
}

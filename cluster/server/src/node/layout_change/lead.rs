//! The leader's part: takes the next step of a change that is under way.

use std::collections::BTreeMap;
use std::time::Duration;

use purview::scene::{RegionId, Scene, SceneId, Tick};
use tokio::time::Instant;

use super::record::{Proposal, change_map, key, record_of};
use crate::node::maps::Maps;
use crate::node::plan::moves_of;
use crate::storage::{LeaseError, Leases, Owner, View};

/// Between the decision to ask for promises and the last tick by the old map.
const LEAD: Duration = Duration::from_secs(2);

/// How long before that tick the change is called off if a promise is missing: regions that have promised would
/// stand still after it.
const CALLED_OFF: Duration = Duration::from_secs(1);

/// How long a change may take before it is called off. Until then regions that were too slow are
/// asked again.
const LIMIT: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(in crate::node) struct Change {
    /// Since when a change is seen, by scene and version.
    since: BTreeMap<(SceneId, u64), Instant>,
}

impl Change {
    /// Takes the next step of every change that is under way.
    pub(in crate::node) async fn lead(
        &mut self,
        store: &dyn Leases,
        maps: &Maps,
        view: &View,
        now: impl Fn(&Scene) -> Tick,
    ) -> Result<(), LeaseError> {
        for scene in maps.scenes() {
            let record = record_of(view, &scene);
            let Some(next) = record.next else { continue };
            let version = (scene.id, next.layout.version);
            let since = *self.since.entry(version).or_insert_with(Instant::now);
            let (now, is_over) = (now(&scene), since.elapsed() > LIMIT);
            let (scene, next, last) = (&scene, &next, Tick(record.after));
            let change = UnderWay { scene, next, last, maps, view, now };
            change.step(store, is_over).await?;
        }
        Ok(())
    }
}

struct UnderWay<'a> {
    scene: &'a Scene,
    next: &'a Proposal,
    /// The last tick before the present map.
    last: Tick,
    maps: &'a Maps,
    view: &'a View,
    now: Tick,
}

impl UnderWay<'_> {
    /// Takes the next step; `is_over`: it has been tried for long enough.
    async fn step(&self, store: &dyn Leases, is_over: bool) -> Result<(), LeaseError> {
        let (next, key) = (self.next, key(self.scene));
        let version = next.layout.version;
        let after = match next.after {
            None if self.may_begin() => {
                let after = self.now.0 + self.ticks(LEAD);
                return change_map(store, &key, |record| record.ask(after)).await;
            }
            Some(after) if self.all().all(|id| self.has_promised(id)) => {
                let old = self.scene.map.layout();
                change_map(store, &key, |record| record.decide(version, after, &old)).await?;
                let scene = &self.scene.spec.name;
                tracing::info!(scene, version, after, "the map changes");
                return Ok(());
            }
            after => after,
        };
        let called_off = |after| self.now.0 + self.ticks(CALLED_OFF) >= after;
        if !after.map_or(is_over, called_off) {
            return Ok(());
        }
        change_map(store, &key, |record| record.fail(version, after, is_over)).await?;
        let missing: Vec<_> = self.all().filter(|id| !self.has_promised(*id)).collect();
        tracing::warn!(
            scene = self.scene.spec.name,
            version,
            ?missing,
            again = !is_over,
            "not every region has promised in time to change its map"
        );
        Ok(())
    }

    /// The present map counts in every region, all regions have owners, and none moves.
    fn may_begin(&self) -> bool {
        let is_done = self.now > self.last;
        is_done && self.all().all(|id| self.owner(id).is_some()) && moves_of(self.view).is_empty()
    }

    fn all(&self) -> impl Iterator<Item = RegionId> + '_ {
        let old = self.scene.map.layout().plots.into_iter();
        old.map(|plot| plot.id).chain(self.next.layout.plots.iter().map(|plot| plot.id))
    }

    fn owner(&self, id: RegionId) -> Option<&Owner> {
        self.view.owners.get(&self.maps.key(id)?)
    }

    fn has_promised(&self, id: RegionId) -> bool {
        let owner = self.owner(id).map(|owner| owner.epoch.0);
        owner.is_some() && self.next.promised.get(&id.0).copied() == owner
    }

    fn ticks(&self, time: Duration) -> u64 {
        (time.as_millis() / u128::from(self.scene.tick_ms)) as u64
    }
}

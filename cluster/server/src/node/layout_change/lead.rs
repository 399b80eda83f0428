//! The leader's part: brings a change that is under way a step further.

use std::collections::BTreeMap;
use std::time::Duration;

use purview::scene::map::Plot;
use purview::scene::{RegionId, Scene, SceneId, Tick};
use tokio::time::Instant;

use super::record::{Record, change_map, key, record_of};
use crate::node::maps::Maps;
use crate::node::plan::move_of;
use crate::storage::{LeaseError, Leases, Owner, View};

/// Between the decision to ask for promises and the last tick by the old map.
const LEAD: Duration = Duration::from_secs(1);

/// How long a change may take before it is called off. Until then whoever was too slow is asked again.
const LIMIT: Duration = Duration::from_secs(10);

/// The leader's part.
#[derive(Debug, Default)]
pub(in crate::node) struct Change {
    /// Since when a change is seen, by scene and version.
    since: BTreeMap<(SceneId, u64), Instant>,
}

impl Change {
    /// Brings every change that is under way a step further.
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
            let version = next.layout.version;
            let since = *self.since.entry((scene.id, version)).or_insert_with(Instant::now);
            let tick = |limit: Duration| (limit.as_millis() / u128::from(scene.tick_ms)) as u64;
            let owner = |id: RegionId| -> Option<&Owner> { view.owners.get(&maps.key(id)?) };
            let old = scene.map.layout();
            let all = || old.plots.iter().chain(&next.layout.plots).map(|plot| plot.id);
            let has_promised = |id: RegionId| {
                let owner = owner(id).map(|owner| owner.epoch.0);
                owner.is_some() && next.promised.get(&id.0).copied() == owner
            };
            let now = now(&scene);
            let key = key(&scene);
            match next.after {
                None if all().all(|id| owner(id).is_some()) && move_of(view).is_none() => {
                    let after = now.0 + tick(LEAD);
                    change_map(store, &key, |record: &mut Record| {
                        if let Some(next) = record.next.as_mut().filter(|n| n.after.is_none()) {
                            next.after = Some(after);
                        }
                    })
                    .await?;
                }
                Some(after) if all().all(has_promised) => {
                    change_map(store, &key, |record: &mut Record| {
                        if let Some(next) = record.next.take_if(|n| n.is(version, Some(after))) {
                            let goes = |plot: &&Plot| next.layout.plot(plot.id).is_none();
                            let gone = old.plots.iter().filter(goes);
                            record.retiring.extend(gone.map(|plot| (plot.id.0, plot.group)));
                            record.layout = Some(next.layout);
                            record.after = after;
                        }
                    })
                    .await?;
                    tracing::info!(scene = scene.spec.name, version, after, "the map changes");
                }
                after => {
                    let is_over = since.elapsed() > LIMIT;
                    let is_late = after.map_or(is_over, |after| now.0 > after + tick(LEAD));
                    if !is_late {
                        continue;
                    }
                    change_map(store, &key, |record: &mut Record| {
                        record.fail(version, after, is_over)
                    })
                    .await?;
                    let missing: Vec<_> = all().filter(|id| !has_promised(*id)).collect();
                    tracing::warn!(
                        scene = scene.spec.name,
                        version,
                        ?missing,
                        again = !is_over,
                        "not every region has promised in time to change its map"
                    );
                }
            }
        }
        Ok(())
    }
}

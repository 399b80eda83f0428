//! Asking regions: concurrently, with a time limit, and never twice at once for the same thing.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::MailboxError;
use futures::future::join_all;
use parking_lot::Mutex;
use purview::actor::messages::{Inspect, InspectEntity};
use purview::scene::inspect::{InspectedEntity, RegionDetails};
use purview::scene::{EntityId, Epoch, Plane, RegionId, SceneId};

use super::hosted::RegionHandle;

/// How long a region may take to answer before it counts as late.
pub const ANSWER_LIMIT: Duration = Duration::from_secs(1);

/// How long what a plane of a scene looked like may be shown again, however many pages look on.
const PLANE_AGE: Duration = Duration::from_millis(80);
/// The same for a whole scene, which costs regions more and is asked only for its planes.
const SCENE_AGE: Duration = Duration::from_secs(3);

/// What the regions of a scene answered.
#[derive(Debug, Default)]
pub struct Survey {
    /// One of each region that answered, in the order of the regions.
    pub regions: Vec<RegionDetails>,
    /// Regions that did not answer in time.
    pub late: Vec<RegionId>,
}

type Key = (SceneId, Option<Plane>);
type Cell = Arc<tokio::sync::Mutex<Option<(Instant, Arc<Survey>)>>>;

/// The latest survey of each scene and plane that a client of the console watches.
#[derive(Debug, Default)]
pub struct Surveys(Mutex<HashMap<Key, Cell>>);

impl Surveys {
    /// A survey of `plane` of `scene` (`None`: all planes), at most a few ticks old. A caller that
    /// asks while a survey is under way gets that survey.
    pub async fn survey(
        &self,
        regions: &[RegionHandle],
        scene: SceneId,
        plane: Option<Plane>,
    ) -> Arc<Survey> {
        let cell = self.cell((scene, plane));
        let mut latest = cell.lock().await;
        let age = if plane.is_some() { PLANE_AGE } else { SCENE_AGE };
        if let Some((at, survey)) = latest.as_ref().filter(|(at, _)| at.elapsed() < age) {
            tracing::trace!(age = ?at.elapsed(), "a survey serves again");
            return survey.clone();
        }
        let survey = Arc::new(ask(regions.iter().filter(|r| r.scene == scene), plane).await);
        *latest = Some((Instant::now(), survey.clone()));
        survey
    }

    /// The cell of `key`, new if need be. Old cells without waiting callers go, so that the table
    /// holds only what was asked for in the last seconds.
    fn cell(&self, key: Key) -> Cell {
        let mut cells = self.0.lock();
        cells.retain(|_, cell| {
            Arc::strong_count(cell) > 1
                || cell.try_lock().is_ok_and(|latest| {
                    latest.as_ref().is_some_and(|(at, _)| at.elapsed() < SCENE_AGE)
                })
        });
        cells.entry(key).or_default().clone()
    }
}

/// Asks `regions` for what lives in `plane` (`None`: in all planes), all at once and each for at most
/// [`ANSWER_LIMIT`].
pub async fn ask(regions: impl Iterator<Item = &RegionHandle>, plane: Option<Plane>) -> Survey {
    let answers = regions
        .map(|r| async move { (r.region, in_time(r.inspect.send(Inspect { plane })).await) });
    let mut survey = Survey::default();
    for (region, answer) in join_all(answers).await {
        match answer {
            Some(snapshot) => survey.regions.push(snapshot),
            None => survey.late.push(region),
        }
    }
    survey
}

/// Asks every region for an entity. Of several answers for a player (it is being handed off) that of
/// the highest epoch counts. Also says which regions did not answer.
pub async fn entity(
    regions: &[RegionHandle],
    id: EntityId,
) -> (Option<(SceneId, InspectedEntity)>, Vec<RegionId>) {
    let answers = regions
        .iter()
        .map(|r| async move { (r, in_time(r.inspect_entity.send(InspectEntity(id))).await) });
    let epoch = |r: &InspectedEntity| match r {
        InspectedEntity::Player(p) => p.epoch,
        InspectedEntity::Other(_) => Epoch(0),
    };
    let mut found: Option<(SceneId, InspectedEntity)> = None;
    let mut late = Vec::new();
    for (r, answer) in join_all(answers).await {
        match answer {
            Some(Some(e)) if found.as_ref().is_none_or(|(_, f)| epoch(&e) > epoch(f)) => {
                found = Some((r.scene, e));
            }
            Some(_) => {}
            None => late.push(r.region),
        }
    }
    (found, late)
}

/// The answer, unless it takes too long or the actor has ended.
pub(super) async fn in_time<T>(answer: impl Future<Output = Result<T, MailboxError>>) -> Option<T> {
    tokio::time::timeout(ANSWER_LIMIT, answer).await.ok()?.ok()
}

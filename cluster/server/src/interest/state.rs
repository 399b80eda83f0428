//! A session without its stream: scenes, batches in, updates out. The time is an argument.
//!
//! ```text
//!  take(batch) ──► work() ──┐
//!                           ├──► draft ──► outbox ──► stream
//!            tick_due() ────┘
//! ```
//!
//! [`State::work`] stops while the outbox is full, between two changes, and goes on later: so a
//! client cannot make the service hold more than it reads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use purview::interest::World;
use purview::scene::workers::Workers;

use super::apply::{self, Refused};
use super::convert::{self, Fault};
use super::draft::{Draft, Place};
use super::metrics::Metrics;
use super::outbox::Outbox;
use super::proto::change::Change as Kind;
use super::proto::{Batch, CreateScene, Reason};
use super::shape::{self, Malformed};
use crate::workers::TickThreads;

/// Most scenes of a session.
const MOST_SCENES: usize = 1 << 16;

/// What a session may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most sessions, with and without a stream.
    pub sessions: usize,
    /// Most entities of all sessions together.
    pub entities: usize,
    /// Bytes of sent updates that a session keeps, so that it can be resumed.
    pub keep_bytes: usize,
    /// How long a session without a stream can be resumed.
    pub resume_within: Duration,
    /// Threads that the end of a tick may use, at least 1.
    pub threads: usize,
}

/// What all sessions share.
#[derive(Debug, Clone)]
pub struct Shared {
    /// What each of them may have.
    pub limits: Limits,
    /// What they count.
    pub metrics: Arc<Metrics>,
    /// Threads that help with the end of a tick.
    pub workers: Arc<dyn Workers>,
}

impl Shared {
    /// Nothing is counted yet.
    pub fn new(limits: Limits) -> Shared {
        let workers = TickThreads::shared(limits.threads);
        Shared { limits, metrics: Arc::default(), workers }
    }
}

/// Why a batch is not taken. The session is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// The batch is malformed.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A batch before it is missing.
    #[error("batch {found} after batch {applied}: batch {} is missing", applied + 1)]
    Missing {
        /// The number of the batch.
        found: u64,
        /// The last batch that was taken.
        applied: u64,
    },
}

#[derive(Debug)]
struct Scene {
    world: World,
    /// Ticks that have ended.
    ticks: u64,
    /// `None`: the client ticks it.
    every: Option<Duration>,
    due: Instant,
}

/// A batch of which changes remain.
#[derive(Debug)]
struct Pending {
    batch: Batch,
    next: usize,
}

/// A session.
#[derive(Debug)]
pub struct State {
    limits: Limits,
    metrics: Arc<Metrics>,
    workers: Arc<dyn Workers>,
    scenes: BTreeMap<u64, Scene>,
    /// Scenes that tick by themselves, by when they are due.
    due: BTreeSet<(Instant, u64)>,
    entities: usize,
    applied: u64,
    pending: Option<Pending>,
    draft: Draft,
    /// What is to be sent.
    pub outbox: Outbox,
}

impl State {
    /// A session without scenes.
    pub fn new(Shared { limits, metrics, workers }: Shared) -> State {
        State {
            limits,
            metrics,
            workers,
            scenes: BTreeMap::new(),
            due: BTreeSet::new(),
            entities: 0,
            applied: 0,
            pending: None,
            draft: Draft::default(),
            outbox: Outbox::new(limits.keep_bytes),
        }
    }

    /// The number of the last batch that was applied.
    pub fn applied(&self) -> u64 {
        self.applied
    }

    /// Whether a batch is not applied completely.
    pub fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Whether a batch or a tick may take long.
    pub fn is_heavy(&self) -> bool {
        let items = |pending: &Pending| pending.batch.changes.iter().map(apply::items).sum();
        self.entities + self.pending.as_ref().map_or(0, items) > 2_000
    }

    /// When the next scene is due.
    pub fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Takes a batch, to be applied by [`State::work`]. A batch that was applied is ignored.
    ///
    /// # Errors
    /// [`BatchError`].
    pub fn take(&mut self, batch: Batch) -> Result<(), BatchError> {
        let (found, applied) = (batch.sequence, self.applied);
        self.outbox.forget(batch.received);
        if found <= applied && found > 0 {
            return Ok(());
        }
        if found != applied + 1 {
            return Err(BatchError::Missing { found, applied });
        }
        shape::check(&batch)?;
        self.metrics.batches.fetch_add(1, Relaxed);
        self.pending = Some(Pending { batch, next: 0 });
        Ok(())
    }

    /// Applies changes of the batch until it is done or too much waits to be sent.
    pub fn work(&mut self, now: Instant) {
        let Some(mut pending) = self.pending.take() else { return };
        while let Some(change) = pending.batch.changes.get(pending.next) {
            if self.outbox.is_full() {
                self.pending = Some(pending);
                return;
            }
            let batch = pending.batch.sequence;
            let place = Place { batch, change: pending.next as u32, scene: change.scene };
            if let Some(kind) = &change.change {
                self.metrics.items.fetch_add(apply::items(change) as u64, Relaxed);
                self.apply(place, kind, now);
            }
            pending.next += 1;
        }
        self.applied = pending.batch.sequence;
        self.draft.finish(self.applied, &mut self.outbox);
    }

    fn apply(&mut self, place: Place, kind: &Kind, now: Instant) {
        let done = match kind {
            Kind::CreateScene(create) => self.create(place.scene, create, now),
            Kind::DeleteScene(_) => self.delete(place.scene),
            Kind::Tick(_) => self.client_tick(place.scene),
            kind => self.change_world(place, kind),
        };
        if let Err(fault) = done {
            self.refuse(place, Refused { item: 0, entity: 0, fault });
        }
    }

    fn refuse(&mut self, place: Place, Refused { item, entity, fault }: Refused) {
        self.metrics.refused.fetch_add(1, Relaxed);
        self.draft.refuse(place, (item, entity), fault);
        self.draft.cut(self.applied, &mut self.outbox);
    }

    fn create(&mut self, scene: u64, create: &CreateScene, now: Instant) -> Result<(), Fault> {
        if self.scenes.contains_key(&scene) {
            let text = format!("a scene with the id {scene} exists");
            return Err(Fault::new(Reason::DuplicateScene, text));
        }
        if self.scenes.len() >= MOST_SCENES {
            let text = format!("the session has {MOST_SCENES} scenes");
            return Err(Fault::new(Reason::TooManyScenes, text));
        }
        let every = convert::tick(create)?;
        let world = World::new(convert::rules(create)?);
        let mut world = world.map_err(|why| Fault::new(Reason::Rules, why.to_string()))?;
        world.set_workers(Arc::clone(&self.workers));
        let due = now + every.unwrap_or_default();
        if every.is_some() {
            self.due.insert((due, scene));
        }
        self.scenes.insert(scene, Scene { world, ticks: 0, every, due });
        self.metrics.scenes.fetch_add(1, Relaxed);
        Ok(())
    }

    fn delete(&mut self, scene: u64) -> Result<(), Fault> {
        let deleted = self.scenes.remove(&scene).ok_or_else(|| unknown(scene))?;
        self.due.remove(&(deleted.due, scene));
        self.count_entities(deleted.world.len(), 0);
        self.metrics.scenes.fetch_sub(1, Relaxed);
        self.draft.deleted(scene);
        Ok(())
    }

    fn count_entities(&mut self, before: usize, after: usize) {
        self.entities = self.entities + after - before;
        if after > before {
            self.metrics.entities.fetch_add(after - before, Relaxed);
        } else {
            self.metrics.entities.fetch_sub(before - after, Relaxed);
        }
    }

    fn change_world(&mut self, place: Place, kind: &Kind) -> Result<(), Fault> {
        let scene = self.scenes.get_mut(&place.scene).ok_or_else(|| unknown(place.scene))?;
        let before = scene.world.len();
        let room = self.limits.entities.saturating_sub(self.metrics.entities.load(Relaxed));
        let mut refused = Vec::new();
        let done = apply::apply(&mut scene.world, kind, room, &mut refused);
        let after = scene.world.len();
        self.count_entities(before, after);
        refused.into_iter().for_each(|one| self.refuse(place, one));
        done
    }

    fn client_tick(&mut self, scene: u64) -> Result<(), Fault> {
        let of = self.scenes.get(&scene).ok_or_else(|| unknown(scene))?;
        if of.every.is_some() {
            let text = format!("scene {scene} ticks by itself");
            return Err(Fault::new(Reason::OwnTick, text));
        }
        self.tick(scene, true);
        Ok(())
    }

    /// Ends a tick. `always`: it is told without events, too.
    fn tick(&mut self, id: u64, always: bool) {
        let Some(scene) = self.scenes.get_mut(&id) else { return };
        scene.ticks += 1;
        scene.world.tick();
        let (events, positions) = (scene.world.events(), scene.world.positions());
        self.metrics.ticked(events.len(), positions.len());
        if always || !events.is_empty() || !positions.is_empty() {
            let (tick, outbox) = ((id, scene.ticks), &mut self.outbox);
            self.draft.tick(tick, (events, positions), self.applied, outbox);
        }
    }

    /// Ends the ticks that are due. Ticks that were due before, while nothing could be done, are
    /// skipped: the events of a tick are net.
    pub fn tick_due(&mut self, now: Instant) {
        while let Some((due, id)) = self.due.first().copied().filter(|(due, _)| *due <= now) {
            if self.outbox.is_full() {
                break;
            }
            self.due.pop_first();
            self.tick(id, false);
            let Some(scene) = self.scenes.get_mut(&id) else { continue };
            let every = scene.every.unwrap_or(Duration::MAX);
            let late = now.saturating_duration_since(due).as_nanos() / every.as_nanos().max(1);
            let late = u32::try_from(late).unwrap_or(u32::MAX);
            self.metrics.late_ticks.fetch_add(late.into(), Relaxed);
            scene.due = due + every.saturating_mul(late.saturating_add(1));
            self.due.insert((scene.due, id));
        }
        self.draft.finish(self.applied, &mut self.outbox);
    }
}

fn unknown(scene: u64) -> Fault {
    Fault::new(Reason::UnknownScene, format!("no scene has the id {scene}"))
}

impl Drop for State {
    fn drop(&mut self) {
        self.metrics.scenes.fetch_sub(self.scenes.len(), Relaxed);
        self.metrics.entities.fetch_sub(self.entities, Relaxed);
    }
}

#[cfg(test)]
mod tests;

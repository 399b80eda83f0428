//! A session without its stream: scenes, batches in, updates out. The time is an argument.
//!
//! ```text
//!  take(batch) ──► work() ──┐
//!                           ├──► job ──► draft ──► outbox ──► stream
//!            tick_due() ────┘
//! ```
//!
//! [`State::work`] stops while the outbox is full, between two changes or two parts of an outcome,
//! and goes on later: so a client cannot make the service hold more than it reads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use purview::interest::{Event, World};
use purview::scene::workers::Workers;

use super::apply::{self, Growth, RefusedItem};
use super::convert::{self, Fault};
use super::draft::{ChangeSource, Draft};
use super::job::Job;
pub use super::limits::{Limits, Most};
use super::limits::{Part, Totals};
use super::metrics::Metrics;
use super::outbox::{Outbox, RewindError};
use super::proto::change::Change as Kind;
use super::proto::{Batch, CreateScene, Reason};
use super::shape::{self, Malformed};
use crate::workers::TickThreads;

mod ask;
mod ticks;

const MOST_SCENES: usize = 1 << 16;

#[derive(Debug, Clone)]
pub struct Shared {
    pub limits: Limits,
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
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("batch {found} after batch {applied}: batch {} is missing", applied + 1)]
    Missing { found: u64, applied: u64 },
    /// The client says to have what it was never sent.
    #[error("batch {batch}: {why}")]
    Received { batch: u64, why: RewindError },
}

#[derive(Debug)]
struct Scene {
    world: World,
    ticks: u64,
    /// `None`: the client ticks it.
    every: Option<Duration>,
    due: Instant,
    /// Its last tick was refused, which was told.
    is_refused: bool,
    /// The bytes of the world that are counted.
    bytes: usize,
}

/// A batch of which changes remain.
#[derive(Debug)]
struct Pending {
    batch: Batch,
    /// The next change, and the next item of it.
    next: (usize, usize),
}

#[derive(Debug)]
pub struct State {
    limits: Limits,
    metrics: Arc<Metrics>,
    workers: Arc<dyn Workers>,
    scenes: BTreeMap<u64, Scene>,
    /// Scenes that tick by themselves, by when they are due.
    due: BTreeSet<(Instant, u64)>,
    entities: Part,
    pairs: Part,
    /// Events of a tick that are not told.
    events: Part,
    bytes: Part,
    applied: u64,
    pending: Option<Pending>,
    job: Option<Job>,
    draft: Draft,
    some: Vec<Event>,
    pub outbox: Outbox,
}

impl State {
    pub fn new(Shared { limits, metrics, workers }: Shared) -> State {
        let Totals { entities, pairs, events, bytes, buffers } = &metrics.totals;
        State {
            limits,
            entities: Part::of(entities),
            pairs: Part::of(pairs),
            events: Part::of(events),
            bytes: Part::of(bytes),
            outbox: Outbox::new(limits.keep_bytes, (buffers, limits.buffer_bytes)),
            metrics,
            workers,
            scenes: BTreeMap::new(),
            due: BTreeSet::new(),
            applied: 0,
            pending: None,
            job: None,
            draft: Draft::default(),
            some: Vec::new(),
        }
    }

    /// Whether there is nothing that a client could want to resume.
    pub fn is_blank(&self) -> bool {
        self.scenes.is_empty() && self.pending.is_none()
    }

    pub fn scenes(&self) -> Vec<u64> {
        self.scenes.keys().copied().collect()
    }

    pub fn applied(&self) -> u64 {
        self.applied
    }

    /// Whether a batch is not applied, or an outcome not told, completely.
    pub fn is_pending(&self) -> bool {
        self.pending.is_some() || self.job.is_some()
    }

    /// Whether a batch or a tick may take long.
    pub fn is_heavy(&self) -> bool {
        let items = |pending: &Pending| pending.batch.changes.iter().map(apply::items).sum();
        self.entities.own() + self.pending.as_ref().map_or(0, items) > 2_000
    }

    pub fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Takes a batch, to be applied by [`State::work`]. A batch that was applied is ignored.
    pub fn take(&mut self, batch: Batch) -> Result<(), BatchError> {
        let (found, applied) = (batch.sequence, self.applied);
        let received = self.outbox.forget(batch.received);
        received.map_err(|why| BatchError::Received { batch: found, why })?;
        if found <= applied && found > 0 {
            return Ok(());
        }
        if found != applied + 1 {
            return Err(BatchError::Missing { found, applied });
        }
        shape::check(&batch)?;
        self.metrics.batches.fetch_add(1, Relaxed);
        self.pending = Some(Pending { batch, next: (0, 0) });
        Ok(())
    }

    /// Tells what is left of an outcome, and applies changes of the batch, until all is done or too
    /// much waits to be sent.
    pub fn work(&mut self, now: Instant) {
        if !self.tell() {
            return;
        }
        let Some(mut pending) = self.pending.take() else {
            return self.draft.finish(self.applied, &mut self.outbox);
        };
        while pending.next.0 < pending.batch.changes.len() {
            if self.outbox.is_full() || !self.apply_next(&mut pending, now) {
                self.pending = Some(pending);
                return;
            }
        }
        self.applied = pending.batch.sequence;
        self.draft.answer(self.applied, &mut self.outbox);
    }

    /// Makes a change, or some items of it; whether all that it leads to is told.
    fn apply_next(&mut self, pending: &mut Pending, now: Instant) -> bool {
        let (at, item) = pending.next;
        let change = &pending.batch.changes[at];
        pending.next = (at + 1, 0);
        let source =
            ChangeSource { change: Some((pending.batch.sequence, at as u32)), scene: change.scene };
        let Some(kind) = &change.change else { return true };
        if item == 0 {
            self.metrics.items.fetch_add(apply::items(change) as u64, Relaxed);
        }
        match self.apply(source, (kind, item), now) {
            Ok(None) => {}
            Ok(Some(next)) => pending.next = (at, next),
            Err(fault) => {
                let entity = ask::entity(kind).filter(|_| fault.reason == Reason::UnknownEntity);
                self.refuse(source, (None, entity), fault);
            }
        }
        self.tell()
    }

    /// Makes a change, from an item on; returns the next item if there is one.
    fn apply(
        &mut self,
        source: ChangeSource,
        (kind, item): (&Kind, usize),
        now: Instant,
    ) -> Result<Option<usize>, Fault> {
        match kind {
            Kind::CreateScene(create) => self.create(source.scene, create, now)?,
            Kind::DeleteScene(_) => self.delete(source.scene)?,
            Kind::Tick(_) => self.client_tick(source.scene)?,
            Kind::Query(query) => self.ask(source, query)?,
            kind => return self.change_world(source, (kind, item)),
        }
        Ok(None)
    }

    fn refuse(&mut self, source: ChangeSource, at: (Option<usize>, Option<u64>), fault: Fault) {
        self.metrics.refused.fetch_add(1, Relaxed);
        self.draft.refuse(source, at, fault);
        self.draft.cut(self.applied, &mut self.outbox);
    }

    /// Tells the outcome in hand until it is done or too much waits to be sent; whether it is done.
    fn tell(&mut self) -> bool {
        while let Some(job) = &mut self.job {
            if self.outbox.is_full() {
                return false;
            }
            let Some(scene) = self.scenes.get_mut(&job.scene()) else { break };
            let is_done = job.tell(&mut scene.world, &mut self.some, &mut self.draft);
            self.draft.cut(self.applied, &mut self.outbox);
            if is_done {
                break;
            }
        }
        self.job = None;
        self.events.set(0);
        true
    }

    /// The client has lost what it knew: the batch is applied to its end, and what it and all before
    /// have led to is forgotten.
    pub fn forget_all(&mut self, now: Instant) {
        loop {
            self.job = None;
            self.events.set(0);
            self.draft = Draft::default();
            self.outbox.skip();
            if self.pending.is_none() {
                return;
            }
            self.work(now);
        }
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
        if world.bytes() > self.bytes.room(self.limits.bytes) {
            return Err(apply::too_many_bytes());
        }
        let bytes = world.bytes();
        self.bytes.set(self.bytes.own() + bytes);
        world.set_workers(Arc::clone(&self.workers));
        let due = now + every.unwrap_or_default();
        if every.is_some() {
            self.due.insert((due, scene));
        }
        let of = Scene { world, ticks: 0, every, due, is_refused: false, bytes };
        self.scenes.insert(scene, of);
        self.metrics.scenes.fetch_add(1, Relaxed);
        Ok(())
    }

    fn delete(&mut self, scene: u64) -> Result<(), Fault> {
        let deleted = self.scenes.remove(&scene).ok_or_else(|| unknown(scene))?;
        self.due.remove(&(deleted.due, scene));
        let world = &deleted.world;
        self.entities.set(self.entities.own() - world.len());
        self.pairs.set(self.pairs.own() - world.pairs());
        self.bytes.set(self.bytes.own() - deleted.bytes);
        self.metrics.scenes.fetch_sub(1, Relaxed);
        self.draft.deleted(scene);
        Ok(())
    }

    fn change_world(
        &mut self,
        source: ChangeSource,
        (kind, item): (&Kind, usize),
    ) -> Result<Option<usize>, Fault> {
        let scene = self.scenes.get_mut(&source.scene).ok_or_else(|| unknown(source.scene))?;
        let (len, bytes) = (scene.world.len(), scene.bytes);
        let room = self.limits.entities.saturating_sub(self.entities.all());
        let growth = Growth {
            entities: len.saturating_add(room),
            bytes: bytes.saturating_add(self.bytes.room(self.limits.bytes)),
        };
        let mut refused = Vec::new();
        let next = apply::apply(&mut scene.world, kind, (item, growth), &mut refused);
        let (now, taken) = (scene.world.len(), scene.world.bytes());
        scene.bytes = taken;
        self.entities.set(self.entities.own() + now - len);
        self.bytes.set(self.bytes.own() + taken - bytes);
        for RefusedItem { item, entity, fault } in refused {
            self.refuse(source, (Some(item), Some(entity)), fault);
        }
        next
    }
}

fn unknown(scene: u64) -> Fault {
    Fault::new(Reason::UnknownScene, format!("no scene has the id {scene}"))
}

impl Drop for State {
    fn drop(&mut self) {
        self.metrics.scenes.fetch_sub(self.scenes.len(), Relaxed);
    }
}

#[cfg(test)]
mod tests;

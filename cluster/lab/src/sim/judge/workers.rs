//! What must hold where the rules are those of logic workers: each action of a client is answered once, whatever happens
//! to workers and regions, and workers know what is there.
//!
//! Workers answer each action of a client, a number, by an action of the same entity, which names the batch that it is
//! part of. [`Judge::actions_applied`] sees both as regions apply them. What was done in a region after the checkpoint from
//! which its next owner goes on is undone ([`History`](super::game)), and nothing else: an answer is undone where it was
//! applied, and where its batch has counted; then the action is answered anew. One that is held is never of a batch that is
//! undone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use purview::scene::messages::{Command, EnterCause, LogicEvent, Order, Speaker};
use purview::scene::properties::PropertyId;
use purview::scene::region::Commands;
use purview::scene::{EntityId, Epoch, Region, RegionId, Tick};

use super::game::{FRESH, SETTLED, When};
use super::{Inner, Invariant, Judge, Wrong};
use crate::sim::workers::rules::{ANSWER, BatchName, DEED, Known, Worker, WorkerNews, read_deed};

/// A command for an entity of another region is done at rest after this time.
const DONE: Duration = Duration::from_secs(5);

const RECENT: Duration = Duration::from_millis(500);

#[derive(Debug)]
struct Model {
    at: Duration,
    source: u64,
    entities: BTreeMap<u64, Known>,
}

#[derive(Debug)]
struct Asked {
    /// How often it was applied: what the death of a region undoes the client repeats.
    times: usize,
    when: When,
    at: Duration,
}

/// What a worker has let an entity of another region do.
#[derive(Debug)]
struct Deed {
    id: EntityId,
    given: When,
    at: Duration,
    done: Option<When>,
}

/// The lease of a region that has begun last: its number, its worker, and the tick.
type Lease = (u64, u64, Tick);

#[derive(Debug, Default)]
pub(super) struct Answers {
    /// By region: how many of the events that its logic was not told are noted already.
    noted: BTreeMap<(RegionId, Epoch), usize>,
    /// The actions of clients, where they were applied, and when.
    asked: BTreeMap<(EntityId, u64), Asked>,
    /// The answers: where each was applied, and its batch.
    answered: BTreeMap<(EntityId, u64), Vec<(When, BatchName)>>,
    deeds: BTreeMap<u64, Deed>,
    /// Batches with commands, and where they have counted.
    batches: BTreeMap<BatchName, When>,
    durable: BTreeSet<BatchName>,
    /// Players that have gone on as their sessions alone knew them.
    unsaved: BTreeSet<EntityId>,
    /// Blocks of ids, and their workers.
    blocks: Vec<(u64, u64, u64)>,
    leases: BTreeMap<(RegionId, Epoch), Lease>,
    /// By region and worker: the last tick in which commands of the worker were given.
    given: BTreeMap<(RegionId, Epoch, u64), Tick>,
    models: BTreeMap<(u32, RegionId), Model>,
}

/// An entity, the number of an action, and of an answer its batch and whether it was held.
type Numbered = (EntityId, u64, Option<(BatchName, bool)>);

/// An action of a client, and the batch of the answer to one, and whether it was held.
fn number_of(event: &LogicEvent) -> Option<Numbered> {
    let LogicEvent::Acted { id, by, payload, .. } = event else { return None };
    match by {
        Speaker::Client => Some((*id, u64::from_be_bytes(payload[..].try_into().ok()?), None)),
        Speaker::Logic => {
            let (number, batch, held) = read_deed(ANSWER, payload)?;
            Some((*id, number, Some((batch, held))))
        }
    }
}

impl Judge {
    /// The logic of a region is told these events: those that are new are noted.
    pub(super) fn actions_told(&self, region: &Region, events: &[LogicEvent]) {
        let key = (region.id(), region.epoch());
        let noted = self.inner().workers.noted.remove(&key).unwrap_or_default();
        self.note_actions(region, events.get(noted..).unwrap_or_default());
    }

    /// A region has begun a tick: what it has applied after it has called its logic is noted.
    pub(super) fn actions_applied(&self, region: &Region) {
        if self.is_outdated(region) {
            return;
        }
        self.note_unsaved(region);
        let events = region.untold();
        let key = (region.id(), region.epoch());
        let noted = self.inner().workers.noted.insert(key, events.len()).unwrap_or_default();
        self.note_presented(region, events.get(noted..).unwrap_or_default());
        self.note_actions(region, events.get(noted..).unwrap_or_default());
        let undone = self.inner().durable_undone(region.id());
        if let Some((batch, when)) = undone.filter(|_| !self.has_lost_checkpoints()) {
            let text = format!("batch {batch:?} counted at {when:?}, was durable, and is undone");
            self.violated(Invariant::Durable, Vec::new(), text);
        }
    }

    /// Players that go on as their sessions alone know them have lost what was commanded.
    pub(super) fn note_unsaved(&self, region: &Region) {
        let unsaved = self.game_begins(region);
        self.inner().workers.unsaved.extend(unsaved);
    }

    fn has_lost_checkpoints(&self) -> bool {
        self.inner().checkpoints_lost.is_some()
    }

    /// A player that is presented to another region than the one that had it last is as its session knows it: the
    /// handoff was lost, or comes too late.
    pub(super) fn note_presented(&self, region: &Region, events: &[LogicEvent]) {
        let Inner { game, workers, .. } = &mut *self.inner();
        for event in events {
            if let LogicEvent::Entered { id, cause: EnterCause::Recovered } = event
                && game.was_elsewhere(*id, region.id())
            {
                workers.unsaved.insert(*id);
            }
        }
    }

    fn note_deeds(&self, region: &Region, events: &[LogicEvent]) {
        let when = When::now_in(region);
        for event in events {
            let LogicEvent::Acted { by: Speaker::Logic, payload, .. } = event else { continue };
            let Some((number, _, held)) = read_deed(DEED, payload) else { continue };
            let wrong = self.inner().deed_done(number, held, when);
            if !self.has_lost_checkpoints() {
                self.wrong_if(wrong);
            }
        }
    }

    fn note_actions(&self, region: &Region, events: &[LogicEvent]) {
        self.note_deeds(region, events);
        let (now, when) = (self.journal.now(), When::now_in(region));
        for (id, number, answer) in events.iter().filter_map(number_of) {
            let mut inner = self.inner();
            let Inner { workers, game, .. } = &mut *inner;
            let times = workers.asked.get(&(id, number)).map_or(0, |asked| asked.times);
            let Some((batch, held)) = answer else {
                let asked = Asked { times: times + 1, when, at: now };
                workers.asked.insert((id, number), asked);
                continue;
            };
            let counted = |batch: &BatchName| {
                workers.batches.get(batch).is_some_and(|when| !game.is_undone(*when))
            };
            let early = held && !counted(&batch);
            let answers = workers.answered.entry((id, number)).or_default();
            answers.retain(|(at, batch)| !game.is_undone(*at) && counted(batch));
            answers.push((when, batch));
            let valid = answers.iter().filter(|(_, batch)| counted(batch)).count();
            let text = format!(
                "action {number} of {id}, applied {times} times, has answers in {answers:?}"
            );
            let is_known = !workers.unsaved.contains(&id);
            drop(inner);
            if early && !self.has_lost_checkpoints() {
                let text = format!("{text}; the last one was held, and its batch is undone");
                self.violated(Invariant::AnsweredOnce, vec![id], text);
            } else if valid > times && is_known {
                self.violated(Invariant::AnsweredOnce, vec![id], text);
            }
        }
    }

    pub(super) fn worker_commands(&self, region: &Region, commands: &Commands) {
        let (key, when) = ((region.id(), region.epoch()), When::now_in(region));
        let at = self.journal.now();
        for (_, command) in commands.given() {
            let Command::Order(id, Order::Act(act)) = command else { continue };
            if let Some((number, ..)) = read_deed(DEED, &act.payload) {
                let deed = Deed { id: *id, given: when, at, done: None };
                self.inner().workers.deeds.insert(number, deed);
            }
        }
        for asked in commands.asked() {
            let mut inner = self.inner();
            let batch = (key.0.0, asked.epoch.0, asked.lease, asked.seq);
            inner.workers.batches.insert(batch, when);
            inner.workers.given.insert((key.0, key.1, asked.session), when.tick);
            let wrong = inner.workers.one_worker(key);
            drop(inner);
            self.wrong_if(wrong);
        }
    }

    pub fn worker_tells(&self, number: u32, worker: &Worker, news: &[WorkerNews]) {
        let now = self.journal.now();
        for news in news {
            let wrong = self.inner().worker_news(worker.id, news);
            self.wrong_if(wrong);
        }
        let regions = self.inner().regions.keys().copied().collect::<Vec<_>>();
        let mut inner = self.inner();
        for region in regions {
            let key = (number, region);
            if !worker.has(region.0) {
                inner.workers.models.remove(&key);
            } else if let Some(entities) = worker.told_now(region.0) {
                let model = Model { at: now, source: worker.id, entities };
                inner.workers.models.insert(key, model);
            }
        }
    }

    pub fn worker_gone(&self, number: u32) {
        self.inner().workers.models.retain(|(of, _), _| *of != number);
    }

    pub(super) fn workers_not_at_rest(&self) -> Option<(Vec<EntityId>, String)> {
        let (now, inner) = (self.journal.now(), self.inner());
        inner.not_answered(now).or_else(|| inner.not_done(now)).or_else(|| {
            let acts = |at: Duration| now.saturating_sub(at) <= FRESH;
            let mut regions = inner.regions.iter().filter(|(_, authority)| acts(authority.at));
            regions.find_map(|(region, _)| inner.model_differs(now, *region))
        })
    }
}

impl Answers {
    /// Players that have gone on as their sessions alone knew them.
    pub(super) fn unsaved(&self) -> &BTreeSet<EntityId> {
        &self.unsaved
    }

    /// No commands of another worker are given after a lease has begun.
    fn one_worker(&self, key: (RegionId, Epoch)) -> Result<(), Wrong> {
        let Some((lease, source, since)) = self.leases.get(&key) else { return Ok(()) };
        let of_region = self.given.range((key.0, key.1, 0)..=(key.0, key.1, u64::MAX));
        let mut others = of_region.filter(|((_, _, of), _)| of != source);
        let Some(((_, _, other), tick)) = others.find(|(_, tick)| **tick > *since) else {
            return Ok(());
        };
        let text = format!(
            "region {} has given commands of worker {other} in tick {tick}, and worker {source} has it by lease {lease} since {since}",
            key.0
        );
        Err((Invariant::OneWorker, Vec::new(), text))
    }
}

impl Inner {
    fn worker_news(&mut self, source: u64, news: &WorkerNews) -> Result<(), Wrong> {
        let workers = &mut self.workers;
        match news {
            WorkerNews::Ids(first, ids) => {
                let other =
                    workers.blocks.iter().find(|(f, n, _)| f + n > *first && first + ids > *f);
                if let Some((of, _, other)) = other {
                    let text = format!(
                        "worker {source} gets the ids from {first} on, worker {other} has those from {of} on"
                    );
                    return Err((Invariant::NewIds, Vec::new(), text));
                }
                workers.blocks.push((*first, *ids, source));
            }
            WorkerNews::Leased(region, epoch, lease, tick) => {
                let key = (RegionId(*region), Epoch(*epoch));
                let new = (*lease, source, Tick(*tick));
                let known = workers.leases.entry(key).or_insert(new);
                if *known < new {
                    *known = new;
                }
                return workers.one_worker(key);
            }
            WorkerNews::Durable(batch) => drop(workers.durable.insert(*batch)),
            WorkerNews::Undone(batch, counted) if self.checkpoints_lost.is_none() => {
                let text = format!(
                    "worker {source} is told that batch {batch:?} is durable, and that {counted:?} is its last one"
                );
                return Err((Invariant::Durable, Vec::new(), text));
            }
            WorkerNews::Undone(..) => {}
            WorkerNews::Wrong(text) => {
                let text = format!("worker {source} is told {text}");
                return Err((Invariant::WorkerTold, Vec::new(), text));
            }
        }
        Ok(())
    }

    /// An entity does what a worker of another region has commanded.
    fn deed_done(&mut self, number: u64, held: bool, when: When) -> Result<(), Wrong> {
        let Inner { workers, game, .. } = self;
        let Some(deed) = workers.deeds.get_mut(&number) else { return Ok(()) };
        let (id, before) = (deed.id, deed.done.replace(when));
        if held && game.is_undone(deed.given) {
            let text = format!("{id} does what was held: its batch is undone: {deed:?}");
            return Err((Invariant::CommandOnce, vec![id], text));
        }
        match before.filter(|before| !game.is_undone(*before)) {
            Some(before) => {
                let text = format!("{id} does the same a second time: {before:?}, {deed:?}");
                Err((Invariant::CommandOnce, vec![id], text))
            }
            None => Ok(()),
        }
    }

    /// A command for an entity of another region that the entity has not done.
    fn not_done(&self, now: Duration) -> Option<(Vec<EntityId>, String)> {
        let due = |deed: &&Deed| {
            let counts = !self.game.is_undone(deed.given);
            let lives = self.game.lives(deed.id, now);
            deed.done.is_none() && counts && lives && deed.at + DONE < now
        };
        let deed = self.workers.deeds.values().find(due)?;
        Some((vec![deed.id], format!("a command has not been done: {deed:?}")))
    }

    /// A durable batch that a region has undone, of this region.
    fn durable_undone(&mut self, region: RegionId) -> Option<(BatchName, When)> {
        let Inner { workers, game, .. } = self;
        let all = (region.0, 0, 0, 0)..=(region.0, u64::MAX, u64::MAX, u64::MAX);
        let mut all = workers.durable.range(all);
        let when = |batch: &BatchName| workers.batches.get(batch).copied();
        let undone =
            all.find_map(|batch| Some((*batch, when(batch).filter(|at| game.is_undone(*at))?)));
        if let Some((batch, _)) = undone {
            workers.durable.remove(&batch);
        }
        undone
    }

    /// An action that no worker has answered. Those that a region had when it died may be lost.
    fn not_answered(&self, now: Duration) -> Option<(Vec<EntityId>, String)> {
        let workers = &self.workers;
        let since = self.game.recovered;
        let lives = |id: &EntityId| self.game.lives(*id, now) && self.clients.contains_key(id);
        let mut asked = workers.asked.iter().filter(|((id, _), asked)| {
            asked.at > since && !self.game.is_undone(asked.when) && lives(id)
        });
        let is_done = |key: &(EntityId, u64)| {
            let answers = workers.answered.get(key).into_iter().flatten();
            answers.into_iter().any(|(when, _)| !self.game.is_undone(*when))
        };
        let ((id, number), asked) = asked.find(|(key, _)| !is_done(key))?;
        Some((vec![*id], format!("action {number} of {id} was not answered: {asked:?}")))
    }

    /// What a worker knows otherwise of a region than it is, or that the region has no worker, or two.
    fn model_differs(&self, now: Duration, region: RegionId) -> Option<(Vec<EntityId>, String)> {
        let models = self
            .workers
            .models
            .iter()
            .filter(|((_, of), model)| *of == region && now.saturating_sub(model.at) <= RECENT);
        let models: Vec<_> = models.collect();
        let [(_, model)] = models[..] else {
            let of: Vec<u64> = models.iter().map(|(_, model)| model.source).collect();
            return Some((Vec::new(), format!("region {region} has the workers {of:?}")));
        };
        let there = self.game.residents_of(region, now);
        let ids = |differ: &EntityId| vec![*differ];
        let known = |id: &EntityId| model.entities.get(&id.0);
        if let Some((id, _)) = there.iter().find(|(id, _)| known(id).is_none()) {
            let text = format!("worker {} does not know {id} of region {region}", model.source);
            return Some((ids(id), text));
        }
        let extra = model.entities.keys().map(|id| EntityId(*id));
        if let Some(id) = extra.into_iter().find(|id| !there.contains_key(id)) {
            let text = format!("worker {} knows {id}, which is not in {region}", model.source);
            return Some((ids(&id), text));
        }
        there.iter().find_map(|(id, seen)| {
            let known = known(id)?;
            let of = |p: u32| known.properties.get(&p).cloned().unwrap_or_default();
            let new = |p: PropertyId| {
                seen.since.get(&p).is_some_and(|at| now.saturating_sub(*at) <= SETTLED)
            };
            let levels = seen.properties.levels();
            let other =
                levels.iter().find(|l| !new(l.id) && of(l.id.0.into())[..] != l.value.bytes()[..]);
            let what = match other {
                Some(level) => format!("another property {}", level.id),
                None if seen.sighted != known.sighted => "other sights".to_owned(),
                None => return None,
            };
            let text = format!("worker {} knows of {id} in {region} {what}", model.source);
            Some((ids(id), text))
        })
    }
}

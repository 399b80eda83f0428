//! What must hold where the rules are those of logic workers: each action of a client is answered once, whatever happens
//! to workers and regions, and workers know what is there.
//!
//! Workers answer each action of a client, a number, by an action of the same entity. [`Judge::actions_applied`] sees
//! both as regions apply them. What was done in a region after the checkpoint from which its next owner goes on is undone
//! ([`History`](super::game)), and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use purview::scene::messages::{Command, LogicEvent, Speaker};
use purview::scene::properties::PropertyId;
use purview::scene::region::Commands;
use purview::scene::{EntityId, Epoch, Region, RegionId, Tick};

use super::game::{FRESH, SETTLED, When};
use super::{Inner, Invariant, Judge};
use crate::sim::workers::rules::{ANSWER, Known, News, Worker};

/// How long after a region has got a new owner the order of two regions' news may be wrong: a region waits so long for
/// the news of the other one.
const ORDER: Duration = Duration::from_secs(2);

/// The age of a worker's knowledge at rest.
const RECENT: Duration = Duration::from_millis(500);

/// What a worker knows of a region, and the numbers of its last commands.
#[derive(Debug)]
struct Model {
    at: Duration,
    source: u64,
    entities: BTreeMap<u64, Known>,
    numbers: BTreeMap<u64, u64>,
}

/// An action of a client.
#[derive(Debug)]
struct Asked {
    /// How often it was applied: what the death of a region undoes the client repeats.
    times: usize,
    when: When,
    at: Duration,
}

/// The lease of a region that has begun last: its number, its worker, and the tick.
type Lease = (u64, u64, Tick);

/// What the judge knows of workers.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// By region: how many of the events that its logic was not told are noted already.
    noted: BTreeMap<(RegionId, Epoch), usize>,
    /// The actions of clients, where they were applied, and when.
    asked: BTreeMap<(EntityId, u64), Asked>,
    /// The answers.
    answered: BTreeMap<(EntityId, u64), Vec<When>>,
    /// By entity and worker: the last command that was acknowledged as durable.
    durable: BTreeMap<EntityId, BTreeMap<u64, u64>>,
    /// Players that have gone on as their sessions alone knew them.
    unsaved: BTreeSet<EntityId>,
    /// Blocks of ids, and their workers.
    blocks: Vec<(u64, u64, u64)>,
    leases: BTreeMap<(RegionId, Epoch), Lease>,
    /// By region and worker: the last tick in which commands of the worker were given.
    given: BTreeMap<(RegionId, Epoch, u64), Tick>,
    models: BTreeMap<(u32, RegionId), Model>,
}

type Wrong = (Invariant, Vec<EntityId>, String);

/// An action of a client, and whether it is the answer to one.
fn number_of(event: &LogicEvent) -> Option<(EntityId, u64, bool)> {
    let LogicEvent::Acted { id, by, payload, .. } = event else { return None };
    let (number, is_answer) = match by {
        Speaker::Client => (&payload[..], false),
        Speaker::Logic => (payload.strip_prefix(ANSWER)?, true),
    };
    Some((*id, u64::from_be_bytes(number.try_into().ok()?), is_answer))
}

impl Judge {
    fn wrong_if(&self, result: Result<(), Wrong>) {
        if let Err((invariant, who, text)) = result {
            self.violated(invariant, who, text);
        }
    }

    /// The logic of a region is told these events: those that are new are noted.
    pub(super) fn actions_told(&self, region: &Region, events: &[LogicEvent]) {
        self.note_unsaved(region);
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
        self.note_actions(region, events.get(noted..).unwrap_or_default());
        let durable = self.inner().workers.durable.clone();
        for (id, numbers) in durable {
            let Some(known) = region.known(id).filter(|known| known.is_real) else { continue };
            let lost = numbers.iter().find(|(source, n)| region.last_number(id, **source) < **n);
            if let Some((source, number)) = lost.filter(|_| !self.has_lost_checkpoints()) {
                let has = region.last_number(id, *source);
                let text = format!(
                    "region {}: {id} ({}) has command {has} of worker {source}, and {number} was durable",
                    region.id(),
                    known.epoch
                );
                self.violated(Invariant::Durable, vec![id], text);
            }
        }
    }

    /// The numbers of workers begin anew for players that go on as their sessions alone know them.
    fn note_unsaved(&self, region: &Region) {
        let unsaved = self.game_begins(region);
        let workers = &mut self.inner().workers;
        workers.durable.retain(|id, _| !unsaved.contains(id));
        workers.unsaved.extend(unsaved);
    }

    fn has_lost_checkpoints(&self) -> bool {
        self.inner().checkpoints_lost.is_some()
    }

    fn note_actions(&self, region: &Region, events: &[LogicEvent]) {
        let (now, when) = (self.journal.now(), When::now_in(region));
        for (id, number, is_answer) in events.iter().filter_map(number_of) {
            let mut inner = self.inner();
            let Inner { workers, game, .. } = &mut *inner;
            let times = workers.asked.get(&(id, number)).map_or(0, |asked| asked.times);
            if !is_answer {
                let asked = Asked { times: times + 1, when, at: now };
                workers.asked.insert((id, number), asked);
                continue;
            }
            let answers = workers.answered.entry((id, number)).or_default();
            answers.retain(|before| !game.is_undone(*before));
            answers.push(when);
            if answers.len() > times && !workers.unsaved.contains(&id) {
                let text = format!(
                    "action {number} of {id}, applied {times} times, has answers in {answers:?}"
                );
                drop(inner);
                self.violated(Invariant::AnsweredOnce, vec![id], text);
            }
        }
    }

    /// A region gives the commands of its worker.
    pub(super) fn worker_commands(&self, region: &Region, commands: &Commands) {
        let (key, tick) = ((region.id(), region.epoch()), region.current_tick());
        let sources = commands.given().filter_map(|(_, command)| match command {
            Command::Numbered(numbered) => Some(numbered.source),
            _ => None,
        });
        for source in sources {
            let mut inner = self.inner();
            inner.workers.given.insert((key.0, key.1, source), tick);
            let wrong = inner.workers.one_worker(key);
            drop(inner);
            self.wrong_if(wrong);
        }
    }

    /// A worker has taken a response.
    pub fn worker_tells(&self, number: u32, worker: &Worker, news: &[News]) {
        let now = self.journal.now();
        for news in news {
            let wrong = self.inner().worker_news(now, worker.id, news);
            self.wrong_if(wrong);
        }
        let regions = self.inner().regions.keys().copied().collect::<Vec<_>>();
        let mut inner = self.inner();
        for region in regions {
            let key = (number, region);
            if !worker.has(region.0) {
                inner.workers.models.remove(&key);
            } else if let Some(entities) = worker.told_now(region.0) {
                let numbers = worker.numbers(region.0);
                let model = Model { at: now, source: worker.id, entities, numbers };
                inner.workers.models.insert(key, model);
            }
        }
    }

    /// The workers that have regions.
    pub(super) fn sources(&self) -> Vec<u64> {
        self.inner().workers.models.values().map(|model| model.source).collect()
    }

    /// A worker is dead.
    pub fn worker_gone(&self, number: u32) {
        self.inner().workers.models.retain(|(of, _), _| *of != number);
    }

    /// What is wrong with workers at rest.
    pub(super) fn workers_not_at_rest(&self) -> Option<(Vec<EntityId>, String)> {
        let (now, inner) = (self.journal.now(), self.inner());
        inner.not_answered(now).or_else(|| {
            let acts = |at: Duration| now.saturating_sub(at) <= FRESH;
            let mut regions = inner.regions.iter().filter(|(_, authority)| acts(authority.at));
            regions.find_map(|(region, _)| inner.model_differs(now, *region))
        })
    }
}

impl Answers {
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
    fn worker_news(&mut self, now: Duration, source: u64, news: &News) -> Result<(), Wrong> {
        let workers = &mut self.workers;
        match news {
            News::Ids(first, ids) => {
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
            News::Leased(region, epoch, lease, tick) => {
                let key = (RegionId(*region), Epoch(*epoch));
                let new = (*lease, source, Tick(*tick));
                let known = workers.leases.entry(key).or_insert(new);
                if *known < new {
                    *known = new;
                }
                return workers.one_worker(key);
            }
            // What a dead process has told arrives late, and counts no more.
            News::Durable(id, _) if workers.unsaved.contains(&EntityId(*id)) => {}
            News::Durable(id, number) => {
                let durable = workers.durable.entry(EntityId(*id)).or_default();
                let known = durable.entry(source).or_default();
                *known = (*known).max(*number);
            }
            News::ComesEarly(id, from, to) => {
                let process = |region| self.regions.get(&RegionId(region)).map(|a| a.process);
                let same = process(*from) == process(*to);
                let calm = now > self.cut.max(self.game.upset_at()) + ORDER;
                if same && calm {
                    let text = format!(
                        "worker {source} is told that {id} has come from region {from} to {to}, and not before that it has left"
                    );
                    return Err((Invariant::WorkerTold, vec![EntityId(*id)], text));
                }
            }
            News::Wrong(text) => {
                let text = format!("worker {source} is told {text}");
                return Err((Invariant::WorkerTold, Vec::new(), text));
            }
        }
        Ok(())
    }

    /// An action that no worker has answered. Those that a region had when it died may be lost.
    fn not_answered(&self, now: Duration) -> Option<(Vec<EntityId>, String)> {
        let workers = &self.workers;
        let since = self.game.recovered_at();
        let lives = |id: &EntityId| self.game.lives(*id, now) && self.clients.contains_key(id);
        let mut asked = workers.asked.iter().filter(|((id, _), asked)| {
            asked.at > since && !self.game.is_undone(asked.when) && lives(id)
        });
        let is_done = |key: &(EntityId, u64)| {
            let answers = workers.answered.get(key).into_iter().flatten();
            answers.into_iter().any(|when| !self.game.is_undone(*when))
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
            let new =
                |p: PropertyId| seen.since(p).is_some_and(|at| now.saturating_sub(at) <= SETTLED);
            let levels = seen.levels();
            let other =
                levels.iter().find(|l| !new(l.id) && of(l.id.0.into())[..] != l.value.bytes()[..]);
            let number = model.numbers.get(&id.0).copied().unwrap_or_default();
            let has = seen.number(model.source).filter(|_| !self.workers.unsaved.contains(id));
            let has = has.unwrap_or(number);
            let what = match other {
                Some(level) => format!("another property {}", level.id),
                None if has != number => format!("{number} commands, and {has} are applied"),
                None if !seen.has_sighted(&known.sighted) => "other sights".to_owned(),
                None => return None,
            };
            let text = format!("worker {} knows of {id} in {region} {what}", model.source);
            Some((ids(id), text))
        })
    }
}

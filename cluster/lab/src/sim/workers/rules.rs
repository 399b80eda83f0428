//! A logic worker without any connection: what it is told, and what it asks for. It keeps the protocol of
//! `logic.proto` as a worker of a game would, and answers each action of a client by an action of its entity.
//!
//! ```text
//!   Response ──► Worker ──► requests: a batch for each tick of a lease
//!                  └──────► news for the judge
//! ```

mod play;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use purview_server::simulation::workers::proto::{
    self, Acted, Applied, Batch, Command, Dropped, Entity, Event, Events, Received, Recovered,
    Refused, Started, command, event, request, response,
};

use crate::rng::Rng;

/// Ticks after which a command that was not applied is sent again.
const AGAIN_TICKS: u64 = 30;

/// Batches that may still be refused.
const BATCHES: usize = 64;

/// What a worker answers to an action begins so.
pub const ANSWER: &[u8] = b"answer ";

/// What the judge is told.
#[derive(Debug, Clone, PartialEq)]
pub enum News {
    /// A block of ids: the first one and how many.
    Ids(u64, u64),
    /// A lease has begun: region, epoch, lease and tick.
    Leased(u32, u64, u64, u64),
    /// A command is durable: entity and number.
    Durable(u64, u64),
    /// An entity has come from a region in which it still is: entity, from, to.
    ComesEarly(u64, u32, u32),
    /// The server has said what it must not say.
    Wrong(String),
}

/// An entity as it was told last.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Known {
    /// Where it lives.
    pub region: u32,
    /// Its kind.
    pub kind: u32,
    /// Its properties.
    pub properties: BTreeMap<u32, Bytes>,
    /// What it has in sight.
    pub sighted: BTreeSet<u64>,
    at: (i32, i32),
    plane: i32,
}

#[derive(Debug, Clone)]
struct Sent {
    command: Command,
    tick: u64,
    /// The region and tick in which it was applied.
    applied: Option<(u32, u64)>,
}

#[derive(Debug, Clone, Copy)]
struct Lease {
    epoch: u64,
    lease: u64,
    rect: (i32, i32, i32, i32),
}

/// A batch: epoch and number of its lease, its tick, and entity and number of the commands that were new in it.
type SentBatch = ((u64, u64, u64), Vec<(u64, u64)>);

/// A worker and its session.
#[derive(Debug)]
pub struct Worker {
    rng: Rng,
    /// The name of its session, and the number of the last response.
    pub session: (Bytes, u64),
    /// Its number; 0 before it has a session.
    pub id: u64,
    /// Whether it gives commands of its own accord.
    pub acts: bool,
    /// The size of the scene, centimetres.
    size: (i32, i32),
    ids: VecDeque<(u64, u64)>,
    leases: BTreeMap<u32, Lease>,
    entities: BTreeMap<u64, Known>,
    sent: BTreeMap<u64, VecDeque<Sent>>,
    next: BTreeMap<u64, u64>,
    /// By region: commands for its next batch, and whether each is sent for the first time.
    queue: BTreeMap<u32, Vec<(Command, bool)>>,
    /// By region: batches that may not be counted, and the commands that were sent in each for the first time.
    batches: BTreeMap<u32, VecDeque<SentBatch>>,
    saved: BTreeMap<u32, u64>,
    tick: u64,
    /// The region of which the last response has told all.
    told: Option<u32>,
    requests: Vec<request::Message>,
    news: Vec<News>,
}

impl Worker {
    /// A worker that knows nothing, of a scene of this size.
    pub fn new(seed: u64, size: (i32, i32)) -> Worker {
        Worker {
            rng: Rng::new(seed),
            session: Default::default(),
            id: 0,
            acts: true,
            size,
            ids: VecDeque::new(),
            leases: BTreeMap::new(),
            entities: BTreeMap::new(),
            sent: BTreeMap::new(),
            next: BTreeMap::new(),
            queue: BTreeMap::new(),
            batches: BTreeMap::new(),
            saved: BTreeMap::new(),
            tick: 0,
            told: None,
            requests: Vec::new(),
            news: Vec::new(),
        }
    }

    fn forget(&mut self) {
        let rng = Rng::new(self.rng.seed());
        *self = Worker { rng, acts: self.acts, ..Worker::new(0, self.size) };
    }

    /// Takes a response. Gives requests and news.
    pub fn take(&mut self, response: proto::Response) -> (Vec<request::Message>, Vec<News>) {
        use response::Message;
        self.told = None;
        if response.sequence > 0 {
            self.session.1 = response.sequence;
        }
        match response.message {
            Some(Message::Opened(opened)) => self.opened(opened),
            Some(Message::Started(started)) => self.started(started),
            Some(Message::Events(events)) => self.events(events),
            Some(Message::Ended(ended)) => self.ended(ended),
            Some(Message::Applied(applied)) => self.applied(applied),
            Some(Message::Durable(durable)) => self.durable((durable.region, durable.tick)),
            Some(Message::Recovered(recovered)) => self.recovered(recovered),
            Some(Message::Refused(refused)) => self.refused(refused),
            Some(Message::Dropped(Dropped {})) => self.dropped(),
            Some(Message::Ids(ids)) => self.more_ids((ids.first_id, ids.ids)),
            Some(Message::Question(_) | Message::Planes(_)) | None => {}
        }
        let is_answered = self.requests.iter().any(|r| matches!(r, request::Message::Batch(_)));
        if response.sequence > 0 && !is_answered {
            let received = self.session.1;
            self.requests.push(request::Message::Received(Received { received }));
        }
        (std::mem::take(&mut self.requests), std::mem::take(&mut self.news))
    }

    /// The entities of a leased region.
    fn model(&self, region: u32) -> BTreeMap<u64, Known> {
        let here = self.entities.iter().filter(|(_, known)| known.region == region);
        here.map(|(id, known)| (*id, known.clone())).collect()
    }

    /// Whether the worker has a region.
    pub fn has(&self, region: u32) -> bool {
        self.leases.contains_key(&region)
    }

    /// The entities of a region of which the last response has told.
    pub fn told_now(&self, region: u32) -> Option<BTreeMap<u64, Known>> {
        (self.told == Some(region)).then(|| self.model(region))
    }

    /// The number of the last command for each entity of a region, if there was one.
    pub fn numbers(&self, region: u32) -> BTreeMap<u64, u64> {
        let given = self.next.iter().filter(|(_, next)| **next > 1);
        let here = |id: &u64| self.entities.get(id).is_some_and(|known| known.region == region);
        given.filter(|(id, _)| here(id)).map(|(id, next)| (*id, next - 1)).collect()
    }

    fn opened(&mut self, opened: proto::Opened) {
        if !opened.resumed {
            self.forget();
            self.session = (opened.session, 0);
            self.more_ids((opened.first_id, opened.ids));
        }
        self.id = opened.worker;
        self.send_again(|sent| sent.applied.is_none());
    }

    fn more_ids(&mut self, (first, ids): (u64, u64)) {
        self.news.push(News::Ids(first, ids));
        self.ids.push_back((first, ids));
    }

    fn new_id(&mut self) -> Option<u64> {
        // So that blocks are used up.
        if self.rng.one_in(8) {
            self.requests.push(request::Message::MoreIds(proto::MoreIds {}));
            self.ids.pop_front();
        }
        let (first, left) = self.ids.front_mut()?;
        *first += 1;
        *left -= 1;
        let id = *first - 1;
        if *left == 0 {
            self.ids.pop_front();
        }
        Some(id)
    }

    fn give(&mut self, entity: u64, region: Option<u32>, command: command::Command) {
        let next = self.next.entry(entity).or_insert(1);
        let command = Command { entity, number: *next, command: Some(command) };
        *next += 1;
        let sent = Sent { command: command.clone(), tick: self.tick, applied: None };
        self.sent.entry(entity).or_default().push_back(sent);
        self.send((command, true), region);
    }

    fn send(&mut self, command: (Command, bool), region: Option<u32>) {
        let lives = self.entities.get(&command.0.entity).map(|known| known.region);
        let leased = region.or(lives).filter(|region| self.leases.contains_key(region));
        let by = leased.or_else(|| self.leases.keys().next().copied());
        if let Some(by) = by {
            self.queue.entry(by).or_default().push(command);
        }
    }

    fn send_again(&mut self, wanted: impl Fn(&Sent) -> bool) {
        let mut again = Vec::new();
        for sent in self.sent.values_mut().flatten().filter(|sent| wanted(sent)) {
            (sent.applied, sent.tick) = (None, self.tick);
            again.push((sent.command.clone(), false));
        }
        again.into_iter().for_each(|command| self.send(command, None));
    }

    fn started(&mut self, started: Started) {
        let Started { region, epoch, lease, tick, .. } = started;
        let rect = started.rect.unwrap_or_default();
        let is_next =
            self.leases.get(&region).is_some_and(|l| (l.epoch, l.lease) == (epoch, lease));
        if !is_next {
            self.entities.retain(|_, known| known.region != region);
            let Started { counted_epoch, counted_lease, counted_tick, .. } = started;
            self.not_counted(region, (counted_epoch, counted_lease, counted_tick));
            let rect = (rect.x0, rect.z0, rect.x1, rect.z1);
            self.leases.insert(region, Lease { epoch, lease, rect });
        }
        self.tick = self.tick.max(tick);
        started.entities.into_iter().for_each(|entity| self.meet(entity, (region, tick)));
        started.acted.iter().for_each(|act| self.answer(region, act));
        if !started.more {
            self.news.push(News::Leased(region, epoch, lease, tick));
            self.batch((region, tick));
        }
    }

    fn meet(&mut self, told: Entity, (region, tick): (u32, u64)) {
        let position = told.position.unwrap_or_default();
        let known = Known {
            region,
            kind: told.kind,
            properties: told.properties.into_iter().map(|p| (p.id, p.value)).collect(),
            sighted: told.sighted.into_iter().collect(),
            at: (position.x, position.z),
            plane: told.plane,
        };
        self.entities.insert(told.id, known);
        let next = self.next.entry(told.id).or_insert(1);
        *next = (*next).max(told.applied + 1);
        self.note_applied(told.id, told.applied, (region, tick));
    }

    fn events(&mut self, events: Events) {
        let Events { region, epoch, lease, tick, more, .. } = events;
        let holds = self.leases.get(&region).is_some_and(|l| (l.epoch, l.lease) == (epoch, lease));
        if !holds {
            let text = format!(
                "events of region {region}, epoch {epoch}, lease {lease}, which is not the worker's"
            );
            self.news.push(News::Wrong(text));
        }
        self.tick = self.tick.max(tick);
        for Event { event } in events.events {
            event.into_iter().for_each(|event| self.event((region, tick), event));
        }
        for (id, (x, z)) in events.moved.into_iter().zip(events.x.into_iter().zip(events.z)) {
            self.entities.get_mut(&id).into_iter().for_each(|known| known.at = (x, z));
        }
        for changed in events.changed {
            let Some(known) = self.entities.get_mut(&changed.entity) else { continue };
            known.properties.extend(changed.properties.into_iter().map(|p| (p.id, p.value)));
        }
        if more {
            return;
        }
        if self.acts {
            self.play(region);
        }
        if tick.is_multiple_of(AGAIN_TICKS) {
            let now = self.tick;
            self.send_again(|sent| sent.applied.is_none() && sent.tick + AGAIN_TICKS < now);
        }
        self.batch((region, tick));
    }

    fn event(&mut self, at: (u32, u64), event: event::Event) {
        let region = at.0;
        match event {
            event::Event::Entered(entered) => {
                let Some(entity) = entered.entity else { return };
                let was = self.entities.get(&entity.id).map(|known| known.region);
                if let Some(from) =
                    entered.from.filter(|from| was == Some(*from) && *from != region)
                    && self.leases.contains_key(&from)
                {
                    self.news.push(News::ComesEarly(entity.id, from, region));
                }
                self.meet(entity, at);
            }
            event::Event::Arrived(arrived) => {
                arrived.entity.into_iter().for_each(|entity| self.meet(entity, at));
            }
            event::Event::Left(left) => {
                if self.entities.get(&left.entity).is_some_and(|known| known.region == region) {
                    self.entities.remove(&left.entity);
                }
            }
            event::Event::Sighted(sighted) => {
                let id = sighted.entity.map(|entity| entity.id);
                if let Some(watcher) = self.entities.get_mut(&sighted.watcher) {
                    watcher.sighted.extend(id);
                }
            }
            event::Event::Lost(lost) => {
                if let Some(watcher) = self.entities.get_mut(&lost.watcher) {
                    watcher.sighted.remove(&lost.entity);
                }
            }
            event::Event::Acted(act) => self.answer(region, &act),
            event::Event::Disconnected(_) | event::Event::Resumed(_) => {}
        }
    }

    /// Answers an action of a client, which is a number, once. The answer goes by the region that tells of the action,
    /// also if its entity has gone elsewhere since: so both count in the same batch.
    fn answer(&mut self, region: u32, act: &Acted) {
        if act.by_logic || act.payload.len() != 8 {
            return;
        }
        let payload = [ANSWER, &act.payload[..]].concat().into();
        let act_of = command::Command::Act(proto::Act { payload, aim: 0 });
        self.give(act.entity, Some(region), act_of);
    }

    fn batch(&mut self, (region, tick): (u32, u64)) {
        let Some(Lease { epoch, lease, .. }) = self.leases.get(&region).copied() else { return };
        let commands = self.queue.remove(&region).unwrap_or_default();
        let batches = self.batches.entry(region).or_default();
        let new = commands.iter().filter(|(_, is_new)| *is_new);
        let names = new.map(|(c, _)| (c.entity, c.number)).collect();
        let commands = commands.into_iter().map(|(command, _)| command).collect();
        batches.push_back(((epoch, lease, tick), names));
        if batches.len() > BATCHES {
            batches.pop_front();
        }
        self.told = Some(region);
        let received = self.session.1;
        let batch = Batch { region, epoch, lease, handled: tick, received, commands };
        self.requests.push(request::Message::Batch(batch));
    }

    fn ended(&mut self, ended: proto::Ended) {
        self.leases.remove(&ended.region);
        self.entities.retain(|_, known| known.region != ended.region);
    }

    /// Leases that go on begin anew.
    fn dropped(&mut self) {
        self.leases.clear();
        self.entities.clear();
        self.queue.clear();
        self.send_again(|sent| sent.applied.is_none());
    }

    /// Batches for earlier leases of a region that are later than this one were not counted: the next worker of the
    /// region is told again of what their commands were answers to.
    fn not_counted(&mut self, region: u32, last: (u64, u64, u64)) {
        let batches = self.batches.remove(&region).unwrap_or_default();
        let lost = batches.into_iter().filter(|(name, _)| *name > last).flat_map(|batch| batch.1);
        lost.for_each(|(entity, number)| self.take_back(entity, number));
    }

    /// The same of one batch.
    fn refused(&mut self, refused: Refused) {
        let batches = self.batches.entry(refused.region).or_default();
        let name = (refused.epoch, refused.lease, refused.handled);
        let Some(at) = batches.iter().position(|(of, _)| *of == name) else { return };
        let names = batches.remove(at).map(|batch| batch.1).unwrap_or_default();
        names.into_iter().for_each(|(entity, number)| self.take_back(entity, number));
    }

    /// A command was not given, nor any after it.
    fn take_back(&mut self, entity: u64, number: u64) {
        let sent = self.sent.entry(entity).or_default();
        while sent.back().is_some_and(|sent| sent.command.number >= number) {
            sent.pop_back();
        }
        let next = self.next.entry(entity).or_insert(1);
        *next = (*next).min(number);
    }

    /// The numbers of a player begin anew if two regions have died with it: see `docs/logic-workers.md`.
    fn number_anew(&mut self, entity: u64, expected: u64) {
        let sent = self.sent.entry(entity).or_default();
        if sent.front().is_none_or(|first| first.command.number <= expected) {
            return;
        }
        for (sent, number) in sent.iter_mut().zip(expected..) {
            sent.command.number = number;
            sent.applied = None;
        }
        self.next.insert(entity, expected + sent.len() as u64);
    }

    fn note_applied(&mut self, entity: u64, number: u64, at: (u32, u64)) {
        for sent in self.sent.get_mut(&entity).into_iter().flatten() {
            if sent.command.number <= number && sent.applied.is_none() {
                sent.applied = Some(at);
            }
        }
    }

    fn applied(&mut self, applied: Applied) {
        for (entity, number) in applied.entities.iter().zip(&applied.numbers) {
            self.note_applied(*entity, *number, (applied.region, applied.tick));
        }
        let mut gaps = BTreeMap::new();
        for result in applied.refused {
            let (entity, number) = (result.entity, result.number);
            match result.reason() {
                proto::Reason::Gap => drop(gaps.insert(entity, result.expected)),
                proto::Reason::Busy => {}
                proto::Reason::UnknownEntity => self.take_back(entity, number),
                _ => {}
            }
        }
        gaps.iter().for_each(|(entity, expected)| self.number_anew(*entity, *expected));
        // Each command behind a gap is refused: they are sent again once in a tick.
        let now = self.tick;
        self.send_again(|sent| {
            let from = gaps.get(&sent.command.entity);
            sent.tick < now && from.is_some_and(|from| sent.command.number >= *from)
        });
    }

    fn durable(&mut self, (region, tick): (u32, u64)) {
        self.saved.insert(region, tick);
        for (entity, sent) in &mut self.sent {
            let is_durable = |sent: &Sent| {
                let (region, tick) = sent.applied?;
                (self.saved.get(&region)? >= &tick).then_some(sent.command.number)
            };
            while let Some(number) = sent.front().and_then(is_durable) {
                sent.pop_front();
                self.news.push(News::Durable(*entity, number));
            }
        }
        self.sent.retain(|_, sent| !sent.is_empty());
    }

    fn recovered(&mut self, recovered: Recovered) {
        let Recovered { region, since, .. } = recovered;
        self.saved.remove(&region);
        // What was counted is not known any more: commands are repeated, and applied once.
        self.batches.remove(&region);
        self.send_again(|sent| sent.applied.is_some_and(|(of, at)| of == region && at > since));
    }
}

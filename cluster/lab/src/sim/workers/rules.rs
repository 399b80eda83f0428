//! A logic worker without any connection: what it is told, and what it asks for. It keeps the protocol of
//! `logic.proto` as a worker of a game would, and answers each action of a client by an action of its entity.
//!
//! ```text
//!   Response ──► Worker ──► requests: an answer to each `Told`
//!                  └──────► news for the judge
//! ```

mod play;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use purview_server::simulation::workers::proto::{
    self, Acted, Answer, Batch, Command, Entity, Got, Lease, Refused, Told, command, request,
    response,
};

use crate::rng::Rng;

/// What a worker answers to an action begins so; the action, the batch and whether the answer is held follow.
pub const ANSWER: &[u8] = b"answer ";

/// What a worker lets an entity of another region do begins so; the same follows.
pub const DEED: &[u8] = b"deed ";

/// Names a batch: region, epoch, lease, seq.
pub type BatchName = (u32, u64, u64, u64);

#[derive(Debug, Clone, PartialEq)]
pub enum WorkerNews {
    /// A block of ids: the first one and how many.
    Ids(u64, u64),
    /// A lease has begun: region, epoch, lease and tick.
    Leased(u32, u64, u64, u64),
    Durable(BatchName),
    /// A batch that was told to be durable is undone: what the worker is told to have counted is below it.
    Undone(BatchName, Option<BatchName>),
    /// The server has said what it must not say.
    Wrong(String),
}

/// An entity as it was told last.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Known {
    pub epoch: u64,
    pub kind: u32,
    pub properties: BTreeMap<u32, Bytes>,
    pub sighted: BTreeSet<u64>,
    at: (i32, i32),
    plane: i32,
    ghost: bool,
}

/// A region as it was told last.
#[derive(Debug, Clone, Default)]
struct Picture {
    lease: (u64, u64),
    seq: u64,
    rect: (i32, i32, i32, i32),
    entities: BTreeMap<u64, Known>,
    /// When the last message came.
    heard: Duration,
}

#[derive(Debug)]
pub struct Worker {
    rng: Rng,
    /// Its number; 0 before it has a session.
    pub id: u64,
    /// Whether it gives commands of its own accord.
    pub acts: bool,
    /// The size of the scene, centimetres.
    size: (i32, i32),
    ids: VecDeque<(u64, u64)>,
    regions: BTreeMap<u32, Picture>,
    /// By region: the last batch that was told to be durable.
    durable: BTreeMap<u32, BatchName>,
    /// After this time of silence a region is forgotten.
    patience: Duration,
    /// The region of which the last response has told all.
    told: Option<u32>,
    commands: Vec<Command>,
    requests: Vec<request::Message>,
    news: Vec<WorkerNews>,
}

fn name_of(batch: &Batch) -> BatchName {
    let Lease { region, epoch, number } = batch.lease.unwrap_or_default();
    (region, epoch, number, batch.seq)
}

/// The parts of an answer or a deed: its number, the batch, and whether it was held.
pub fn read_deed(prefix: &[u8], payload: &[u8]) -> Option<(u64, BatchName, bool)> {
    let rest = payload.strip_prefix(prefix)?;
    let number = |at: usize| Some(u64::from_be_bytes(rest.get(at..at + 8)?.try_into().ok()?));
    let batch = (u32::try_from(number(8)?).ok()?, number(16)?, number(24)?, number(32)?);
    Some((number(0)?, batch, *rest.get(40)? == 1))
}

impl Worker {
    /// A worker that knows nothing, of a scene of this size.
    pub fn new(seed: u64, size: (i32, i32)) -> Worker {
        Worker {
            rng: Rng::new(seed),
            id: 0,
            acts: true,
            size,
            ids: VecDeque::new(),
            regions: BTreeMap::new(),
            durable: BTreeMap::new(),
            patience: Duration::MAX,
            told: None,
            commands: Vec::new(),
            requests: Vec::new(),
            news: Vec::new(),
        }
    }

    /// Takes a response that comes at this time. Gives requests and news.
    pub fn take(
        &mut self,
        now: Duration,
        response: proto::Response,
    ) -> (Vec<request::Message>, Vec<WorkerNews>) {
        use response::Message;
        self.told = None;
        match response.message {
            Some(Message::Opened(opened)) => self.opened(&opened),
            Some(Message::Told(told)) => self.told(now, told),
            Some(Message::Ended(ended)) => self.ended(ended.lease.unwrap_or_default()),
            Some(Message::Refused(refused)) => self.refused(&refused),
            Some(Message::Ids(ids)) => self.more_ids((ids.first_id, ids.ids)),
            Some(Message::Question(_) | Message::Planes(_)) | None => {}
        }
        let patience = self.patience;
        self.regions.retain(|_, picture| now.saturating_sub(picture.heard) <= patience);
        (std::mem::take(&mut self.requests), std::mem::take(&mut self.news))
    }

    pub fn has(&self, region: u32) -> bool {
        self.regions.contains_key(&region)
    }

    /// The entities of a region, if the last response has told all of it.
    pub fn told_now(&self, region: u32) -> Option<BTreeMap<u64, Known>> {
        let picture = self.regions.get(&region).filter(|_| self.told == Some(region))?;
        let live = picture.entities.iter().filter(|(_, known)| !known.ghost);
        Some(live.map(|(id, known)| (*id, known.clone())).collect())
    }

    /// Whether an entity is in a region: no other one tells of it under a higher epoch.
    fn is_in(&self, id: u64, region: u32) -> bool {
        let of = |picture: &Picture| {
            picture.entities.get(&id).filter(|known| !known.ghost).map(|known| known.epoch)
        };
        let best = self.regions.iter().filter_map(|(region, p)| Some((of(p)?, *region))).max();
        best.is_some_and(|(_, best)| best == region)
    }

    fn opened(&mut self, opened: &proto::Opened) {
        let rng = Rng::new(self.rng.seed());
        *self = Worker { rng, acts: self.acts, ..Worker::new(0, self.size) };
        self.id = opened.worker;
        self.patience = 3 * Duration::from_millis(opened.takeover_ms);
        self.more_ids((opened.first_id, opened.ids));
    }

    fn more_ids(&mut self, (first, ids): (u64, u64)) {
        self.news.push(WorkerNews::Ids(first, ids));
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

    fn give(&mut self, entity: u64, held: bool, command: command::Command) {
        let command = Some(command);
        self.commands.push(Command { entity, held, command, ..Command::default() });
    }

    fn told(&mut self, now: Duration, told: Told) {
        let Lease { region, epoch, number } = told.lease.unwrap_or_default();
        let lease = (epoch, number);
        let known = self.regions.get(&region).map(|picture| (picture.lease, picture.seq));
        match known {
            _ if told.seq == 1 && known.is_none_or(|(of, _)| lease > of) => {
                let rect = told.rect.unwrap_or_default();
                let rect = (rect.x0, rect.z0, rect.x1, rect.z1);
                self.regions.insert(region, Picture { lease, rect, ..Picture::default() });
                self.news.push(WorkerNews::Leased(region, epoch, number, told.tick));
            }
            Some((of, seq)) if of == lease && seq + 1 == told.seq => {}
            // It is late, or its beginning was lost with a region that was forgotten.
            _ => return,
        }
        self.apply(now, region, &told);
        self.counted(region, &told);
        let batch = (region, epoch, number, told.seq);
        told.acts.iter().for_each(|act| self.answer(batch, act));
        if !told.more {
            self.told = Some(region);
            if self.acts {
                self.play(batch);
            }
        }
        let commands = std::mem::take(&mut self.commands);
        let answer = Answer { lease: told.lease, seq: told.seq, commands };
        self.requests.push(request::Message::Answer(answer));
    }

    /// The difference becomes part of what is known of the region.
    fn apply(&mut self, now: Duration, region: u32, told: &Told) {
        let Some(picture) = self.regions.get_mut(&region) else { return };
        (picture.seq, picture.heard) = (told.seq, now);
        for id in &told.gone {
            if picture.entities.remove(id).is_none() {
                let text = format!("that {id} has left region {region}, where it was not");
                self.news.push(WorkerNews::Wrong(text));
            }
        }
        for entity in &told.entities {
            picture.entities.insert(entity.id, known(entity));
        }
        for (id, (x, z)) in told.moved.iter().zip(told.x.iter().zip(&told.z)) {
            match picture.entities.get_mut(id) {
                Some(known) => known.at = (*x, *z),
                None => {
                    let text = format!("where {id} is, which is not known in region {region}");
                    self.news.push(WorkerNews::Wrong(text));
                }
            }
        }
        for changed in &told.changed {
            let Some(known) = picture.entities.get_mut(&changed.entity) else { continue };
            let properties = changed.properties.iter();
            known.properties.extend(properties.map(|p| (p.id, p.value.clone())));
        }
    }

    fn counted(&mut self, region: u32, told: &Told) {
        let counted = told.counted.as_ref().map(name_of);
        if let Some(durable) = self.durable.get(&region).filter(|_| counted.is_some())
            && counted < Some(*durable)
        {
            self.news.push(WorkerNews::Undone(*durable, counted));
        }
        if let Some(durable) = told.durable.as_ref().map(name_of) {
            self.durable.insert(region, durable);
            self.news.push(WorkerNews::Durable(durable));
        }
    }

    /// Answers an action of a client, which is a number, once.
    fn answer(&mut self, batch: BatchName, act: &Acted) {
        if act.by_logic || act.payload.len() != 8 {
            return;
        }
        self.act(act.entity, batch, (ANSWER, &act.payload));
    }

    fn act(&mut self, entity: u64, batch: BatchName, (prefix, number): (&[u8], &[u8])) {
        let held = self.rng.one_in(2);
        let mut payload = BytesMut::from(prefix);
        payload.put_slice(number);
        for number in [u64::from(batch.0), batch.1, batch.2, batch.3] {
            payload.put_u64(number);
        }
        payload.put_u8(held.into());
        let act = command::Command::Act(proto::Act { payload: payload.freeze(), aim: 0 });
        self.give(entity, held, act);
    }

    fn ended(&mut self, lease: Lease) {
        let of = (lease.epoch, lease.number);
        if self.regions.get(&lease.region).is_some_and(|picture| picture.lease == of) {
            self.regions.remove(&lease.region);
        }
    }

    fn refused(&mut self, refused: &Refused) {
        let Refused { region, epoch, last, .. } = *refused;
        self.requests.push(request::Message::Got(Got { region, epoch, last }));
    }
}

fn known(entity: &Entity) -> Known {
    let position = entity.position.unwrap_or_default();
    Known {
        epoch: entity.epoch,
        kind: entity.kind,
        properties: entity.properties.iter().map(|p| (p.id, p.value.clone())).collect(),
        sighted: entity.sighted.iter().copied().collect(),
        at: (position.x, position.z),
        plane: entity.plane,
        ghost: entity.ghost,
    }
}

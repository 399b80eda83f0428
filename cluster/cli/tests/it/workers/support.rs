//! A server whose rules are those of workers, workers that answer every tick, and players.

use std::collections::{BTreeMap, BTreeSet};

use purview_server::config::Config;
use purview_server::gateway::Tokens;
use purview_server::interest::client::{Address, ClientError};
use purview_server::logic::client::Stream;
use purview_server::logic::proto::{self, command, response};
use purview_server::process::{Background, ServerReach};
use tokio::time::timeout;

pub use crate::common::{PATIENCE, runtime};

pub const MONSTER: u32 = 1;
pub const HP: u32 = 1;

/// The configuration of most tests: four regions, whose borders are at 256 m.
pub const CONFIG: &str = include_str!("../../../../../examples/hunt/hunt.toml");

/// Runs a test with a server of further lines of configuration, and a worker that has all regions.
pub fn with_worker(more: &str, test: impl AsyncFnOnce(&Background, Worker)) {
    let server = server(more);
    runtime().block_on(async {
        let worker = Worker::begin_with_all(server.reach(), "one").await;
        test(&server, worker).await;
    });
}

/// A server with further lines of configuration.
pub fn server(more: &str) -> Background {
    let listen = if more.contains("[logic]") { "" } else { "[logic]\nlisten = \"127.0.0.1:0\"\n" };
    let config = Config::parse(&format!("{CONFIG}\n{listen}{more}")).expect("a configuration");
    Background::start(config, Tokens::dev()).expect("a server")
}

pub fn address(reach: &ServerReach) -> Address {
    Address::new(&format!("http://{}", reach.logic.expect("workers can connect")))
}

/// What a new worker says first.
pub fn open(name: &str) -> proto::Open {
    proto::Open { scene: "wood".into(), name: name.into(), ..proto::Open::default() }
}

/// A position on the ground.
pub fn at(x: i32, z: i32) -> Option<proto::Position> {
    Some(proto::Position { x, y: 0, z })
}

/// A small whole number as a value.
pub fn int(n: u8) -> bytes::Bytes {
    assert!(n < 0x80);
    vec![n].into()
}

pub fn set(id: u32, n: u8) -> command::Command {
    command::Command::SetProperty(proto::Property { id, value: int(n), version: 0 })
}

pub fn place(x: i32, z: i32) -> command::Command {
    command::Command::Place(proto::Place { position: at(x, z) })
}

pub fn act(payload: &'static [u8]) -> command::Command {
    command::Command::Act(proto::Act { payload: bytes::Bytes::from_static(payload), aim: 0 })
}

/// What happens to an entity, as a worker finds out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happened {
    Entered(u64, u32),
    Left(u64, u32),
    Acted(u64, Vec<u8>),
    Sighted(u64, u64),
    Lost(u64, u64),
}

/// A region as a worker knows it.
#[derive(Debug, Clone, Default)]
pub struct Picture {
    pub lease: proto::Lease,
    pub seq: u64,
    pub entities: BTreeMap<u64, proto::Entity>,
}

/// An answer that was sent, and the commands in it by their numbers.
#[derive(Debug, Clone)]
struct Answered {
    batch: BatchName,
    commands: Vec<(u64, proto::Command)>,
}

/// A worker that answers all it is told.
pub struct Worker {
    pub stream: Stream,
    /// The regions of which it was told all.
    pub leases: BTreeMap<u32, proto::Lease>,
    pub pictures: BTreeMap<u32, Picture>,
    /// The entities where they are, by the highest epoch; of ghosts those that live in no region of the worker.
    pub entities: BTreeMap<u64, proto::Entity>,
    /// In which regions they are.
    pub homes: BTreeMap<u64, u32>,
    /// Commands for the next answer to a region.
    pub queued: BTreeMap<u32, Vec<(u64, proto::Command)>>,
    /// By region: answers of which it is not known that they are durable.
    answered: BTreeMap<u32, Vec<Answered>>,
    /// By region and batch: the numbers of its commands.
    sent: BTreeMap<(u32, BatchName), Vec<u64>>,
    given: u64,
    pub counted: BTreeSet<u64>,
    pub durable: BTreeSet<u64>,
    /// Commands that have counted and are undone, and those that never counted.
    pub undone: BTreeSet<u64>,
    pub happened: Vec<Happened>,
    /// Positions that were told.
    pub moved: BTreeMap<u64, (i32, i32)>,
    pub results: Vec<(u64, proto::Reason)>,
    pub ended: Vec<proto::Lease>,
    pub questions: Vec<proto::Question>,
    /// Open planes, and the subjects that may enter them.
    pub planes: BTreeMap<i32, Vec<String>>,
    /// Actions that were told: of which entity, under which epoch of its region, and what.
    pub acts: Vec<(u64, u64, Vec<u8>)>,
    /// Regions that get no answers.
    pub silent: BTreeSet<u32>,
    /// Regions that get none from when they tell of an action.
    pub deaf: BTreeSet<u32>,
    /// Entities that live nowhere any more.
    pub dead: BTreeSet<u64>,
    pub ticks: u64,
    /// How many parts were told.
    pub parts: u64,
    pub next_id: u64,
}

/// Names a batch of a region: epoch, number and seq.
type BatchName = (u64, u64, u64);

fn name(batch: &proto::Batch) -> BatchName {
    let lease = batch.lease.unwrap_or_default();
    (lease.epoch, lease.number, batch.seq)
}

impl Worker {
    pub fn new(stream: Stream) -> Worker {
        Worker {
            next_id: stream.opened.first_id,
            stream,
            leases: BTreeMap::new(),
            pictures: BTreeMap::new(),
            entities: BTreeMap::new(),
            homes: BTreeMap::new(),
            queued: BTreeMap::new(),
            answered: BTreeMap::new(),
            sent: BTreeMap::new(),
            given: 0,
            counted: BTreeSet::new(),
            durable: BTreeSet::new(),
            undone: BTreeSet::new(),
            happened: Vec::new(),
            moved: BTreeMap::new(),
            results: Vec::new(),
            ended: Vec::new(),
            questions: Vec::new(),
            planes: BTreeMap::new(),
            acts: Vec::new(),
            silent: BTreeSet::new(),
            deaf: BTreeSet::new(),
            dead: BTreeSet::new(),
            ticks: 0,
            parts: 0,
        }
    }

    pub async fn begin(reach: &ServerReach, name: &str) -> Worker {
        Worker::begin_at(&address(reach), name).await
    }

    pub async fn begin_at(address: &Address, name: &str) -> Worker {
        Worker::new(Stream::begin(address, open(name)).await.expect("a session"))
    }

    /// Takes responses while something else is done.
    pub async fn serve_while<T>(&mut self, done: impl Future<Output = T>) -> T {
        tokio::select! {
            () = self.until(|_| false) => unreachable!("it never holds"),
            done = done => done,
        }
    }

    /// Waits for all four regions.
    pub async fn begin_with_all(reach: &ServerReach, name: &str) -> Worker {
        let mut worker = Worker::begin(reach, name).await;
        worker.until(|worker| worker.leases.len() == 4).await;
        worker
    }

    /// Queues a command for an entity, in the next answer to a region; its number.
    pub fn give(&mut self, region: u32, entity: u64, command: command::Command) -> u64 {
        let command = Some(command);
        self.queue(region, proto::Command { entity, command, ..proto::Command::default() })
    }

    /// Gives a command with the next answer to a region; its number.
    pub fn queue(&mut self, region: u32, command: proto::Command) -> u64 {
        self.given += 1;
        self.queued.entry(region).or_default().push((self.given, command));
        self.given
    }

    /// Creates an entity in a region; its id.
    pub fn spawn(&mut self, region: u32, kind: u32, x: i32, z: i32) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let spawn = proto::Spawn { kind, position: at(x, z), ..proto::Spawn::default() };
        self.give(region, id, command::Command::Spawn(spawn));
        id
    }

    /// Creates a monster in a region, and waits for it.
    pub async fn monster(&mut self, region: u32, x: i32, z: i32) -> u64 {
        let monster = self.spawn(region, MONSTER, x, z);
        self.until(|worker| worker.has(monster)).await;
        monster
    }

    /// Takes responses until something holds.
    pub async fn until(&mut self, holds: impl Fn(&Worker) -> bool) {
        let all = async {
            while !holds(self) {
                assert!(self.step().await.expect("a response"), "the stream has ended");
            }
        };
        let holds_at_last = timeout(PATIENCE, all).await.is_ok();
        let told = (self.ticks, &self.leases, &self.ended, &self.results, &self.homes);
        assert!(holds_at_last, "it does not hold: {told:?}");
    }

    /// Takes responses until so many more ticks are over.
    pub async fn ticks(&mut self, ticks: u64) {
        let end = self.ticks + ticks;
        self.until(|worker| worker.ticks >= end).await;
    }

    /// Takes a response, and answers. False: the stream has ended.
    pub async fn step(&mut self) -> Result<bool, ClientError> {
        match self.stream.next().await? {
            None => return Ok(false),
            Some(response::Message::Told(told)) => self.told(&told).await?,
            Some(response::Message::Refused(refused)) => {
                self.stream.got(&refused).await?;
                self.refused(&refused);
            }
            Some(other) => self.note(other),
        }
        Ok(true)
    }

    fn note(&mut self, message: response::Message) {
        match message {
            response::Message::Ended(ended) => {
                let lease = ended.lease.unwrap();
                if self.pictures.get(&lease.region).is_some_and(|known| known.lease == lease) {
                    self.forget(lease.region);
                }
                self.ended.push(lease);
            }
            response::Message::Planes(planes) => {
                for plane in planes.planes {
                    self.planes.remove(&plane.plane);
                    if plane.open {
                        self.planes.insert(plane.plane, plane.subjects);
                    }
                }
            }
            response::Message::Question(question) => self.questions.push(question),
            _ => {}
        }
    }

    fn forget(&mut self, region: u32) {
        self.leases.remove(&region);
        let known = self.pictures.remove(&region).unwrap_or_default();
        known.entities.into_keys().for_each(|id| self.see(id));
    }

    async fn told(&mut self, told: &proto::Told) -> Result<(), ClientError> {
        let lease = told.lease.unwrap();
        let known = self.pictures.entry(lease.region).or_default();
        let is_new = (lease.epoch, lease.number) > (known.lease.epoch, known.lease.number);
        if told.seq == 1 && is_new {
            self.forget(lease.region);
            let picture = Picture { lease, ..Picture::default() };
            self.pictures.insert(lease.region, picture);
        } else if (known.lease, known.seq + 1) != (lease, told.seq) {
            return Ok(());
        }
        self.parts += 1;
        self.apply(lease, told);
        self.count(lease.region, told);
        for act in &told.acts {
            let payload = act.payload.to_vec();
            self.acts.push((act.entity, lease.epoch, payload.clone()));
            self.happened.push(Happened::Acted(act.entity, payload));
        }
        if !told.more {
            self.ticks += 1;
            self.leases.insert(lease.region, lease);
        }
        if self.deaf.contains(&lease.region) && !told.acts.is_empty() {
            self.silent.insert(lease.region);
        }
        if self.silent.contains(&lease.region) {
            return Ok(());
        }
        let commands = self.queued.remove(&lease.region).unwrap_or_default();
        let batch = (lease.epoch, lease.number, told.seq);
        let numbers = commands.iter().map(|(number, _)| *number).collect();
        self.sent.insert((lease.region, batch), numbers);
        let sent = commands.iter().map(|(_, command)| command.clone()).collect();
        self.answered.entry(lease.region).or_default().push(Answered { batch, commands });
        self.stream.answer(told, sent).await
    }

    fn apply(&mut self, lease: proto::Lease, told: &proto::Told) {
        let picture = self.pictures.get_mut(&lease.region).unwrap();
        picture.seq = told.seq;
        let mut touched: BTreeSet<u64> = told.gone.iter().copied().collect();
        for id in &told.gone {
            assert!(picture.entities.remove(id).is_some(), "what is gone was known");
        }
        self.dead.extend(&told.ended);
        for entity in &told.entities {
            touched.insert(entity.id);
            picture.entities.insert(entity.id, entity.clone());
        }
        for changed in &told.changed {
            let entity = picture.entities.get_mut(&changed.entity).expect("it is known");
            for property in &changed.properties {
                entity.properties.retain(|known| known.id != property.id);
                entity.properties.push(property.clone());
            }
            touched.insert(changed.entity);
        }
        for (at, id) in told.moved.iter().enumerate() {
            assert!(picture.entities.contains_key(id), "what moves is known");
            self.moved.insert(*id, (told.x[at], told.z[at]));
        }
        touched.into_iter().for_each(|id| self.see(id));
    }

    /// Shows an entity where it is told under its highest epoch.
    fn see(&mut self, id: u64) {
        let told = self.pictures.iter().filter_map(|(region, picture)| {
            picture.entities.get(&id).map(|entity| (*region, entity))
        });
        let best = told.max_by_key(|(_, entity)| (!entity.ghost, entity.epoch));
        let best = best.map(|(region, entity)| (region, entity.clone()));
        let home = best.as_ref().filter(|(_, entity)| !entity.ghost).map(|(region, _)| *region);
        let before = self.homes.get(&id).copied();
        if before != home {
            self.happened.extend(before.map(|region| Happened::Left(id, region)));
            self.happened.extend(home.map(|region| Happened::Entered(id, region)));
        }
        let sights = |entity: Option<&proto::Entity>| -> BTreeSet<u64> {
            entity.into_iter().flat_map(|entity| entity.sighted.iter().copied()).collect()
        };
        let new = sights(best.as_ref().map(|(_, entity)| entity));
        let old = sights(self.entities.get(&id));
        self.happened.extend(new.difference(&old).map(|other| Happened::Sighted(id, *other)));
        self.happened.extend(old.difference(&new).map(|other| Happened::Lost(id, *other)));
        self.homes.remove(&id);
        self.entities.remove(&id);
        if let Some((_, entity)) = best {
            self.entities.insert(id, entity);
            self.homes.extend(home.map(|home| (id, home)));
        }
    }

    /// What has become of answers.
    fn count(&mut self, region: u32, told: &proto::Told) {
        let counted = told.counted.as_ref().map(name).unwrap_or_default();
        let durable = told.durable.as_ref().map(name).unwrap_or_default();
        for Answered { batch, commands } in self.answered.remove(&region).unwrap_or_default() {
            let numbers = commands.iter().map(|(number, _)| *number);
            if batch <= counted {
                self.counted.extend(numbers.clone());
                if batch <= durable {
                    self.durable.extend(numbers);
                    continue;
                }
                self.answered.entry(region).or_default().push(Answered { batch, commands });
            } else {
                // It never counted, or is undone: its commands are given anew.
                self.undone.extend(numbers);
                self.counted.retain(|number| commands.iter().all(|(n, _)| n != number));
                self.queued.entry(region).or_default().extend(commands);
            }
        }
    }

    fn refused(&mut self, refused: &proto::Refused) {
        for refusal in &refused.refusals {
            let batch = refusal.batch.as_ref().map(name).unwrap_or_default();
            let numbers = self.sent.get(&(refused.region, batch));
            let number = numbers.map_or(0, |numbers| numbers[refusal.place as usize]);
            if !self.results.iter().any(|(known, _)| *known == number && number > 0) {
                self.results.push((number, refusal.reason()));
            }
        }
    }

    /// A property of an entity as a small number.
    pub fn property(&self, entity: u64, id: u32) -> Option<u8> {
        let known = self.entities.get(&entity)?.properties.iter().find(|known| known.id == id)?;
        known.value.first().copied()
    }

    /// A property of an entity as a number of three bytes; 0: it has none.
    pub fn number(&self, entity: u64, id: u32) -> u64 {
        let properties = self.entities.get(&entity).map(|entity| &entity.properties[..]);
        let known = properties.unwrap_or_default().iter().find(|known| known.id == id);
        match known.map(|known| &known.value[..]) {
            Some([0xcd, high, low]) => u64::from(*high) << 8 | u64::from(*low),
            _ => 0,
        }
    }

    /// The commands in answers to a region that are not known to be durable.
    fn open(&self, region: u32) -> impl Iterator<Item = u64> {
        self.answered.get(&region).into_iter().flatten().flat_map(|a| &a.commands).map(|(n, _)| *n)
    }

    /// Whether all that was given for a region is known to have counted.
    pub fn is_idle(&self, region: u32) -> bool {
        !self.queued.contains_key(&region) && self.open(region).all(|n| self.counted.contains(&n))
    }

    /// How many commands for a region have counted and are not durable.
    pub fn at_risk(&self, region: u32) -> usize {
        self.open(region).filter(|n| self.counted.contains(n)).count()
    }

    /// Whether an entity lives in a region of the worker.
    pub fn has(&self, entity: u64) -> bool {
        self.homes.contains_key(&entity)
    }
}

//! A server whose rules are those of workers, workers that answer every tick, and players.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use purview::scene::{EntityId, Pos};
use purview::wire::ErrorCode;
use purview_client::{Client, Event, Receiver, Sender, View, join_at};
use purview_server::config::Config;
use purview_server::gateway::Tokens;
use purview_server::interest::client::{Address, ClientError};
use purview_server::logic::client::{Lease, Stream};
use purview_server::logic::proto::{self, command, event, response};
use purview_server::process::{Background, Reach};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::sent::Sent;

/// How long anything may take.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub const MONSTER: u32 = 1;
pub const HP: u32 = 1;

/// The configuration of most tests: four regions, whose borders are at 256 m.
pub const CONFIG: &str = include_str!("../../../../../examples/hunt/hunt.toml");

/// A server with further lines of configuration.
pub fn server(more: &str) -> Background {
    let listen = if more.contains("[logic]") { "" } else { "[logic]\nlisten = \"127.0.0.1:0\"\n" };
    let config = Config::parse(&format!("{CONFIG}\n{listen}{more}")).expect("a configuration");
    Background::start(config, Tokens::dev()).expect("a server")
}

pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

pub fn address(reach: &Reach) -> Address {
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

/// What happens to an entity, as a worker is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happened {
    Entered(u64, u32, proto::EnterCause),
    Left(u64, u32, proto::LeaveCause),
    Acted(u64, Vec<u8>),
    Sighted(u64, u64),
    Lost(u64, u64),
}

/// A worker that answers every tick.
pub struct Worker {
    pub stream: Stream,
    pub leases: BTreeMap<u32, Lease>,
    pub entities: BTreeMap<u64, proto::Entity>,
    /// The number of the last command for each entity.
    pub numbers: BTreeMap<u64, u64>,
    /// Commands for the next batch of a region.
    pub queued: BTreeMap<u32, Vec<proto::Command>>,
    pub happened: Vec<Happened>,
    /// Positions that were told.
    pub moved: BTreeMap<u64, (i32, i32)>,
    /// The last number of each entity that was applied, with the region and the tick.
    pub applied: BTreeMap<u64, (u64, u32, u64)>,
    pub results: Vec<proto::Result>,
    pub durable: BTreeMap<u32, u64>,
    pub refused: Vec<proto::Refused>,
    pub ended: Vec<proto::Ended>,
    pub recovered: Vec<proto::Recovered>,
    pub questions: Vec<proto::Question>,
    /// How often responses were dropped.
    pub dropped: u64,
    /// Open planes, and the subjects that may enter them.
    pub planes: BTreeMap<i32, Vec<String>>,
    /// Actions that were told: of which entity, under which epoch of its region, and what.
    pub acts: Vec<(u64, u64, Vec<u8>)>,
    /// Commands that are not durable.
    pub sent: Sent,
    /// Whether it sends commands again that may be lost.
    pub repeats: bool,
    /// Regions whose ticks are not answered.
    pub silent: BTreeSet<u32>,
    pub ticks: u64,
    next_id: u64,
}

impl Worker {
    pub fn new(stream: Stream) -> Worker {
        Worker {
            next_id: stream.opened.first_id,
            stream,
            leases: BTreeMap::new(),
            entities: BTreeMap::new(),
            numbers: BTreeMap::new(),
            queued: BTreeMap::new(),
            happened: Vec::new(),
            moved: BTreeMap::new(),
            applied: BTreeMap::new(),
            results: Vec::new(),
            durable: BTreeMap::new(),
            refused: Vec::new(),
            ended: Vec::new(),
            recovered: Vec::new(),
            questions: Vec::new(),
            dropped: 0,
            planes: BTreeMap::new(),
            acts: Vec::new(),
            sent: Sent::default(),
            repeats: true,
            silent: BTreeSet::new(),
            ticks: 0,
        }
    }

    pub async fn begin(reach: &Reach, name: &str) -> Worker {
        Worker::begin_at(&address(reach), name).await
    }

    pub async fn begin_at(address: &Address, name: &str) -> Worker {
        Worker::new(Stream::begin(address, open(name)).await.expect("a session"))
    }

    /// Waits for all four regions.
    pub async fn begin_with_all(reach: &Reach, name: &str) -> Worker {
        let mut worker = Worker::begin(reach, name).await;
        worker.until(|worker| worker.leases.len() == 4).await;
        worker
    }

    /// Queues the next command for an entity, in the batch of a region; its number.
    pub fn give(&mut self, region: u32, entity: u64, command: command::Command) -> u64 {
        let number = self.numbers.entry(entity).or_default();
        *number += 1;
        let number = *number;
        let command = proto::Command { entity, number, command: Some(command) };
        self.sent.add(command.clone(), self.ticks);
        self.queued.entry(region).or_default().push(command);
        number
    }

    /// Sends commands again, by whichever region.
    fn again(&mut self, commands: Vec<proto::Command>) {
        if let Some(region) = self.leases.keys().next().filter(|_| self.repeats) {
            self.queued.entry(*region).or_default().extend(commands);
        }
    }

    /// Goes on with another stream of its session.
    pub fn resume(&mut self, stream: Stream) {
        self.stream = stream;
        let unanswered = self.sent.unanswered(self.ticks);
        self.again(unanswered);
    }

    /// Creates an entity in a region; its id.
    pub fn spawn(&mut self, region: u32, kind: u32, x: i32, z: i32) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let spawn = proto::Spawn { kind, position: at(x, z), ..proto::Spawn::default() };
        self.give(region, id, command::Command::Spawn(spawn));
        id
    }

    /// Takes responses until something holds.
    pub async fn until(&mut self, holds: impl Fn(&Worker) -> bool) {
        let all = async {
            while !holds(self) {
                assert!(self.step().await.expect("a response"), "the stream has ended");
            }
        };
        let holds_at_last = timeout(PATIENCE, all).await.is_ok();
        let told = (self.ticks, self.dropped, &self.leases, &self.ended, &self.refused);
        assert!(holds_at_last, "it does not hold: {told:?}");
    }

    /// Takes responses until so many more ticks are over.
    pub async fn ticks(&mut self, ticks: u64) {
        let end = self.ticks + ticks;
        self.until(|worker| worker.ticks >= end).await;
    }

    /// Takes a response, and answers a tick. False: the stream has ended.
    pub async fn step(&mut self) -> Result<bool, ClientError> {
        let Some(message) = self.stream.next().await? else { return Ok(false) };
        let due = match message {
            response::Message::Started(started) => self.started(started),
            response::Message::Events(events) => self.events(events),
            other => {
                self.note(other);
                self.stream.acknowledge().await?;
                None
            }
        };
        if let Some(lease) = due.filter(|lease| !self.silent.contains(&lease.region)) {
            let overdue = self.sent.overdue(self.ticks);
            self.again(overdue);
            let commands = self.queued.remove(&lease.region).unwrap_or_default();
            self.stream.send(lease, commands).await?;
        }
        Ok(true)
    }

    fn note(&mut self, message: response::Message) {
        match message {
            response::Message::Ended(ended) => {
                self.leases.remove(&ended.region);
                self.ended.push(ended);
            }
            response::Message::Applied(applied) => {
                let at = (applied.region, applied.tick);
                for (entity, number) in applied.entities.iter().zip(&applied.numbers) {
                    self.applied.insert(*entity, (*number, at.0, at.1));
                    self.sent.applied((*entity, *number), at);
                }
                for gap in applied.refused.iter().filter(|result| result.expected > 0) {
                    let missing = self.sent.gap(self.ticks, gap.entity, gap.expected);
                    self.again(missing);
                }
                self.results.extend(applied.refused);
            }
            response::Message::Durable(durable) => {
                self.durable.insert(durable.region, durable.tick);
                self.sent.durable(durable.region, durable.tick);
            }
            response::Message::Recovered(recovered) => {
                let lost = self.sent.recovered(self.ticks, recovered.region, recovered.since);
                self.again(lost);
                self.recovered.push(recovered);
            }
            response::Message::Planes(planes) => {
                for plane in planes.planes {
                    self.planes.remove(&plane.plane);
                    if plane.open {
                        self.planes.insert(plane.plane, plane.subjects);
                    }
                }
            }
            response::Message::Refused(refused) => self.refused.push(refused),
            response::Message::Question(question) => self.questions.push(question),
            response::Message::Dropped(_) => {
                self.dropped += 1;
                self.leases.clear();
                self.planes.clear();
            }
            _ => {}
        }
    }

    fn started(&mut self, started: proto::Started) -> Option<Lease> {
        let proto::Started { region, epoch, lease, tick, more, .. } = started;
        for entity in started.entities {
            self.sent.applied((entity.id, entity.applied), (region, tick));
            self.entities.insert(entity.id, entity);
        }
        for act in started.acted {
            let payload = act.payload.to_vec();
            self.acts.push((act.entity, epoch, payload.clone()));
            self.happened.push(Happened::Acted(act.entity, payload));
        }
        let lease = Lease { region, epoch, lease, tick };
        self.leases.insert(region, lease);
        (!more).then_some(lease)
    }

    fn events(&mut self, events: proto::Events) -> Option<Lease> {
        let proto::Events { region, tick, .. } = events;
        for event in events.events.into_iter().filter_map(|event| event.event) {
            if let event::Event::Acted(act) = &event {
                self.acts.push((act.entity, events.epoch, act.payload.to_vec()));
            }
            self.event(region, event);
        }
        for (at, id) in events.moved.iter().enumerate() {
            self.moved.insert(*id, (events.x[at], events.z[at]));
        }
        for changed in events.changed {
            let Some(entity) = self.entities.get_mut(&changed.entity) else { continue };
            for property in changed.properties {
                entity.properties.retain(|known| known.id != property.id);
                entity.properties.push(property);
            }
        }
        if events.more {
            return None;
        }
        self.ticks += 1;
        let lease = self.leases.get_mut(&region)?;
        assert_eq!((lease.epoch, lease.lease), (events.epoch, events.lease), "one lease at a time");
        lease.tick = tick;
        Some(*lease)
    }

    fn event(&mut self, region: u32, event: event::Event) {
        let happened = match event {
            event::Event::Entered(entered) => {
                let (cause, entity) = (entered.cause(), entered.entity.unwrap());
                let id = entity.id;
                self.entities.insert(id, entity);
                Happened::Entered(id, region, cause)
            }
            event::Event::Left(left) => Happened::Left(left.entity, region, left.cause()),
            event::Event::Acted(acted) => Happened::Acted(acted.entity, acted.payload.to_vec()),
            event::Event::Sighted(sighted) => {
                Happened::Sighted(sighted.watcher, sighted.entity.unwrap().id)
            }
            event::Event::Lost(lost) => Happened::Lost(lost.watcher, lost.entity),
            event::Event::Arrived(_) | event::Event::Disconnected(_) | event::Event::Resumed(_) => {
                return;
            }
        };
        self.happened.push(happened);
    }

    /// A property of an entity as a small number.
    pub fn property(&self, entity: u64, id: u32) -> Option<u8> {
        let known = self.entities.get(&entity)?.properties.iter().find(|known| known.id == id)?;
        known.value.first().copied()
    }

    pub fn has_happened(&self, what: &Happened) -> bool {
        self.happened.contains(what)
    }

    /// Whether a command was applied.
    pub fn is_applied(&self, entity: u64, number: u64) -> bool {
        self.applied.get(&entity).is_some_and(|applied| applied.0 >= number)
    }
}

/// A player with a client.
pub struct Player {
    pub id: EntityId,
    pub sender: Sender,
    receiver: Receiver,
    pub view: View,
    pub frames: u64,
    pub refused: Vec<ErrorCode>,
}

impl Player {
    pub async fn join(reach: &Reach, x: i32, z: i32) -> Player {
        let token = Tokens::dev().mint(&format!("p{x}-{z}"), Some(PATIENCE)).expect("a token");
        let url = reach.url().expect("the server has a listener for clients");
        let mut client = Client::connect(&url, &token).await.expect("a session");
        let joined = client.join(join_at("wood", Pos::ground(x, z))).await.expect("a player");
        let (view, id) = (View::of(&joined), joined.id);
        let (sender, receiver) = client.split();
        Player { id, sender, receiver, view, frames: 0, refused: Vec::new() }
    }

    pub async fn act(&mut self, payload: &[u8]) {
        self.sender.act(payload.to_vec()).await.expect("the session goes on");
    }

    /// Receives frames until something holds.
    pub async fn until(&mut self, holds: impl Fn(&Player) -> bool) {
        let all = async {
            while !holds(self) {
                if let Event::Frame(frame) = self.receiver.next().await.expect("a frame") {
                    self.view.apply(&frame).expect("a frame that fits");
                    self.frames += 1;
                    self.refused.extend(frame.refused.iter().map(|refused| refused.code));
                }
            }
        };
        timeout(PATIENCE, all).await.expect("it holds at last");
    }

    /// A property of an entity that it sees, as a small number.
    pub fn property(&self, entity: u64, id: u32) -> Option<u8> {
        let seen = self.view.get(EntityId(entity))?;
        let id = purview::scene::properties::PropertyId(id as u8);
        seen.properties.get(&id)?.bytes().first().copied()
    }
}

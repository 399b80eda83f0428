//! The real actors on real arbiters; the test plays every client: bytes in, bytes out.
//!
//! A tick of the stage is over when every region has closed it and all messages have arrived, so
//! that a test can say what each client must have been told by then.

mod book;
mod client;
mod gate;
mod rest;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use actix::prelude::*;
use actix_rt::Arbiter;
use actix_rt::time::sleep;
use futures::channel::oneshot;
use purview::actor::directory::Directory;
use purview::actor::messages::{Inspect, RunTick, ToRegion};
use purview::actor::player::{FromSocket, Login, Pass, Passes, Planes, PlayerActor, PlayerSetup};
use purview::actor::player_store::PlayerStore;
use purview::actor::region::metrics::RegionMetrics;
use purview::actor::region::{Clock, RegionRef, start_regions};
use purview::scene::messages::Input;
use purview::scene::player::PlayerConfig;
use purview::scene::{
    EntityId, Plane, Pos, RegionId, Scene, SceneId, SceneSpec, Seq, SubjectHash, Tick,
};
use purview::wire::client::{Act, Hello, Join, Leave, Move, Resume, Teleport};
use purview::wire::{ClientMsg, FirstProperty, PROTOCOL_VERSION};
use serde_bytes::ByteBuf;

pub use self::book::Book;
pub use self::client::Client;

use self::gate::{Flush, Gate, Shut};
use crate::support::small_scene;

/// Upper bound of all waits; only a message that never comes takes longer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Index of one of the stage's clients.
pub type Who = usize;

/// Nine regions of 16 m, patches of 4 m, every ring in every tick.
pub fn nine_regions(name: &str) -> SceneSpec {
    SceneSpec {
        name: name.into(),
        kinds: SceneSpec::default().kinds,
        patch_margin_cm: Some(50),
        view_margin_cm: SceneSpec::default().view_margin_cm,
        client_teleports: true,
        ..small_scene((3, 3), 1_600, 400)
    }
}

/// Limits that a test does not reach unintentionally. No input is repeated for lack of an
/// acknowledgement, so what arrives has come the direct way.
pub fn calm() -> PlayerConfig {
    PlayerConfig {
        rate_limit: 1_000_000,
        rate_burst: 1_000_000,
        resend_ms: 600_000,
        ..PlayerConfig::default()
    }
}

pub struct Stage {
    pub directory: Arc<Directory>,
    pub regions: Vec<RegionRef>,
    pub clients: Vec<Client>,
    pub tick: Tick,
    /// How often sessions that connect from now on run their checks.
    pub check_every: Duration,
    /// Most players in the view lists of clients that join from now on; 0: the scene's cap.
    pub view_cap: u16,
    opened: u64,
    arbiters: Vec<Arbiter>,
    gates: Vec<Addr<Gate>>,
    shut: BTreeMap<usize, oneshot::Sender<()>>,
}

/// A client whose session has a thread of its own, which can be blocked or stopped.
pub struct Alone {
    pub who: Who,
    arbiter: Arbiter,
}

impl Alone {
    /// Blocks the session's thread until the sender is dropped.
    pub fn hold_up(&self) -> std::sync::mpsc::Sender<()> {
        let (go_on, held) = std::sync::mpsc::channel();
        let held_up = self.arbiter.spawn_fn(move || assert!(held.recv().is_err()));
        assert!(held_up, "the thread is there");
        go_on
    }
}

/// Readable resume tickets, no two alike.
struct Plain(AtomicU32);

impl Passes for Plain {
    fn write(&self, pass: &Pass, _: &Login, _: Duration) -> Option<String> {
        let number = self.0.fetch_add(1, Relaxed);
        Some(format!("{} {} {} {number}", pass.entity.0, pass.subject, pass.scene))
    }

    fn read(&self, token: &str) -> Result<Pass, String> {
        let wrong = || format!("{token:?} is not a token");
        let mut parts = token.split(' ');
        let mut part = || parts.next().map(str::to_owned).ok_or_else(wrong);
        let entity = EntityId(part()?.parse().map_err(|_| wrong())?);
        Ok(Pass { entity, subject: part()?, scene: part()? })
    }
}

/// Whose the players of a subject are.
fn whose(subject: &str) -> SubjectHash {
    let mut hash = [0; 16];
    subject.bytes().zip(&mut hash).for_each(|(byte, to)| *to = byte);
    SubjectHash::new(hash)
}

impl Stage {
    /// Regions of these scenes, in turn on two arbiters, with a manual clock.
    pub fn new(specs: Vec<SceneSpec>) -> Stage {
        Stage::build(specs, false, |directory| directory)
    }

    /// As [`Stage::new`], with gates in front of the regions.
    pub fn gated(specs: Vec<SceneSpec>) -> Stage {
        Stage::build(specs, true, |directory| directory)
    }

    /// As [`Stage::new`], with this grace period for players whose sessions are gone.
    pub fn with_grace_period(specs: Vec<SceneSpec>, grace_period: Duration) -> Stage {
        Stage::with(specs, |directory| directory.with_grace_period(grace_period))
    }

    /// As [`Stage::new`], with a directory that has more.
    pub fn with(specs: Vec<SceneSpec>, with: impl FnOnce(Directory) -> Directory) -> Stage {
        Stage::build(specs, false, with)
    }

    /// As [`Stage::new`], where players' records are kept.
    pub fn keeping(specs: Vec<SceneSpec>, book: Arc<dyn PlayerStore>) -> Stage {
        Stage::with(specs, |directory| directory.with_player_store(book))
    }

    fn build(
        specs: Vec<SceneSpec>,
        gated: bool,
        with: impl FnOnce(Directory) -> Directory,
    ) -> Stage {
        let mut first = 0;
        let mut scenes = Vec::new();
        for spec in specs {
            let id = SceneId(scenes.len() as u16);
            let scene = Scene::new(id, spec, 100, RegionId(first)).expect("a legal scene");
            first += scene.map.regions.len() as u32;
            scenes.push(Arc::new(scene));
        }
        let directory = Arc::new(with(Directory::new(scenes)));
        let doors: Vec<Arc<OnceLock<_>>> = (0..first).map(|_| Arc::default()).collect();
        let doors_with_gates = if gated { &doors[..] } else { &[] };
        let gates: Vec<Addr<Gate>> =
            doors_with_gates.iter().map(|door| Gate { region: door.clone() }.start()).collect();
        if !gates.is_empty() {
            // The first address registered wins: the regions reach each other through the gates.
            let named = (0..).map(RegionId).zip(gates.iter().map(|g| g.clone().recipient()));
            directory.set_regions(named.collect());
        }
        let arbiters = vec![Arbiter::new(), Arbiter::new()];
        let handles: Vec<_> = arbiters.iter().map(Arbiter::handle).collect();
        let regions = start_regions(&directory, &handles, Clock::Manual);
        for (door, region) in doors.iter().zip(&regions) {
            door.set(region.addr.clone()).expect("set once");
        }
        Stage {
            directory,
            regions,
            clients: Vec::new(),
            tick: Tick(100),
            check_every: Duration::from_millis(10),
            view_cap: 0,
            opened: 0,
            arbiters,
            gates,
            shut: BTreeMap::new(),
        }
    }

    /// A client that has connected, on one of the regions' arbiters.
    pub fn connect(&mut self, config: PlayerConfig) -> Who {
        let arbiter = self.arbiters[self.clients.len() % self.arbiters.len()].handle();
        self.connect_on(&arbiter, config)
    }

    pub fn connect_on(&mut self, arbiter: &actix_rt::ArbiterHandle, config: PlayerConfig) -> Who {
        let (sink, queue) = PlayerSetup::queue(&config);
        let setup = PlayerSetup {
            directory: self.directory.clone(),
            sink,
            tokens: Arc::new(|token| {
                let (subject, planes) = (token.to_owned(), Planes::Any);
                Ok((Login { subject, expires_s: None, planes, ..Login::default() }, whose(token)))
            }),
            passes: Some(Arc::new(Plain(AtomicU32::new(0)))),
            config,
            check_every: self.check_every,
        };
        let addr = PlayerActor::start_in_arbiter(arbiter, move |_| PlayerActor::new(setup));
        self.clients.push(Client::new(addr, queue));
        self.clients.len() - 1
    }

    /// A client whose session has a thread of its own.
    pub fn connect_alone(&mut self, config: PlayerConfig) -> Alone {
        let arbiter = Arbiter::new();
        let who = self.connect_on(&arbiter.handle(), config);
        Alone { who, arbiter }
    }

    /// Drops the session's actor without notice.
    pub async fn lose(&mut self, alone: Alone) {
        let Alone { who, arbiter } = alone;
        self.clients[who].reads = false;
        arbiter.stop();
        let addr = self.clients[who].addr.clone();
        until("the session is gone", || !addr.connected()).await;
    }

    /// A client that has sent hello and join; the next tick adds its player.
    pub async fn enter(&mut self, scene: &str, plane: Option<i32>, x: i32, z: i32) -> Who {
        let who = self.connect(calm());
        self.greet(who, scene, plane, x, z).await;
        who
    }

    pub async fn greet(&mut self, who: Who, scene: &str, plane: Option<i32>, x: i32, z: i32) {
        self.hello(who, "somebody").await;
        let (plane, pos) = (plane.map(Plane), Some(Pos::ground(x, z)));
        self.say(who, Join { plane, pos, view_cap: self.view_cap, ..join(scene) }).await;
    }

    pub async fn hello(&self, who: Who, token: &str) {
        let version = PROTOCOL_VERSION;
        self.say(who, Hello { version, token: token.into(), crowd: false }).await;
    }

    /// The client of a broken connection resumes on a new one; the next tick tells it so.
    pub async fn resume(&mut self, before: Who, config: PlayerConfig) -> Who {
        let who = self.connect(config);
        let Client { seq, pos, .. } = self.clients[before];
        (self.clients[who].seq, self.clients[who].pos) = (seq, pos);
        let ticket = self.clients[before].here().ticket.clone().expect("the client has a ticket");
        let ack = Seq(self.clients[before].ack());
        self.hello(who, "somebody").await;
        self.say(who, Resume { token: ticket.token, ack }).await;
        who
    }

    /// Sends a message of the client; resolves when its session has read it.
    pub async fn say(&self, who: Who, msg: impl Into<ClientMsg>) {
        let bytes = msg.into().encode().into();
        self.tell(who, FromSocket::Binary(bytes)).await;
    }

    pub async fn tell(&self, who: Who, msg: FromSocket) {
        self.clients[who].addr.send(msg).await.expect("the session is there");
    }

    /// The client's connection breaks.
    pub async fn cut(&mut self, who: Who) {
        self.tell(who, FromSocket::Gone).await;
        self.clients[who].parted = true;
    }

    /// Gives an input to the region where an entity lives.
    pub async fn give(&self, id: EntityId, input: Input) {
        let region = RegionId(self.whereabouts(id).await.0[0]);
        let address = self.directory.region(region).expect("a region of the stage");
        address.try_send(ToRegion { input, client: None }).expect("it has room");
    }

    pub fn next_seq(&mut self, who: Who) -> Seq {
        self.clients[who].seq += 1;
        Seq(self.clients[who].seq)
    }

    pub async fn walk(&mut self, who: Who, x: i32, z: i32) {
        let (seq, pos) = (self.next_seq(who), Pos::ground(x, z));
        self.clients[who].pos = pos;
        self.say(who, Move { seq, pos }).await;
    }

    pub async fn act(&mut self, who: Who, what: &str) {
        let seq = self.next_seq(who);
        self.say(who, Act { seq, payload: ByteBuf::from(what), aim: None }).await;
    }

    pub async fn teleport(
        &mut self,
        who: Who,
        scene: Option<&str>,
        plane: Option<i32>,
        to: (i32, i32),
    ) {
        let seq = self.next_seq(who);
        let (scene, plane) = (scene.map(Into::into), plane.map(Plane));
        self.say(who, Teleport { seq, scene, plane, pos: Pos::ground(to.0, to.1) }).await;
    }

    pub async fn leave(&self, who: Who) {
        self.say(who, Leave {}).await;
    }

    /// Ticks every region; afterwards every client that reads has received all its messages.
    pub async fn tick(&mut self) {
        self.open_tick().await;
        let (opened, regions) = (self.opened, &self.regions);
        // A region that has waited for a neighbour skips ticks.
        let done = |m: &RegionMetrics| m.ticks.load(Relaxed) + m.skipped_ticks.load(Relaxed);
        let closed = || regions.iter().all(|r| done(&r.metrics) >= opened);
        until("every region closes the tick", closed).await;
        self.wait_idle().await;
        self.read();
    }

    /// A tick after which every client that is in the world and reads has exactly one more frame.
    pub async fn steady_tick(&mut self) {
        let before: Vec<_> = self.clients.iter().map(|c| c.frames.len()).collect();
        self.tick().await;
        let tick = self.tick;
        for (c, before) in self.clients.iter().zip(before).filter(|(c, _)| c.in_world() && c.reads)
        {
            assert_eq!(c.frames.len(), before + 1, "{}: one frame per tick", c.id());
            assert_eq!(c.frames.last().map(|f| f.tick), Some(tick), "{}", c.id());
        }
    }

    /// Opens a tick in every region without waiting for its end.
    pub async fn open_tick(&mut self) {
        if !self.gates.is_empty() {
            // Messages sent before the tick must not be overtaken by it.
            self.wait_idle().await;
        }
        self.tick = self.tick.next();
        self.opened += 1;
        self.regions.iter().for_each(|r| r.addr.do_send(RunTick(self.tick)));
    }

    /// Waits until all messages, their answers, and so on have arrived.
    pub async fn wait_idle(&self) {
        for _ in 0..4 {
            for (i, gate) in self.gates.iter().enumerate() {
                if !self.shut.contains_key(&i) {
                    gate.send(Flush).await.expect("gates stay");
                }
            }
            for region in &self.regions {
                region.addr.send(Inspect { plane: None }).await.expect("regions stay");
            }
            for client in self.clients.iter().filter(|c| c.reads) {
                receive(client).await;
            }
        }
    }

    /// As [`Stage::wait_idle`], also for clients that do not read.
    pub async fn wait_all_idle(&self) {
        for client in &self.clients {
            receive(client).await;
        }
        self.wait_idle().await;
    }

    /// Every client that reads takes the messages in its queue.
    pub fn read(&mut self) {
        self.clients.iter_mut().filter(|c| c.reads).for_each(Client::take_ready);
    }

    /// Shuts the gate of a region; about `room` messages may wait there.
    pub async fn shut(&mut self, region: usize, room: usize) {
        let (opens, open) = oneshot::channel();
        self.gates[region].send(Shut { room, open }).await.expect("gates stay");
        self.shut.insert(region, opens);
    }

    /// As [`Stage::shut`], with the mailbox full.
    pub async fn shut_full(&mut self, region: usize) {
        self.shut(region, 1).await;
        let door = self.directory.region(RegionId(region as u32)).expect("a region of the stage");
        // This input has no effect on any region.
        let input = Input::BorderLost(RegionId(u32::MAX));
        while door.try_send(ToRegion { input: input.clone(), client: None }).is_ok() {}
    }

    pub fn open(&mut self, region: usize) {
        drop(self.shut.remove(&region).expect("a gate that is shut"));
    }

    /// The regions that own an entity, and those that mirror it.
    pub async fn whereabouts(&self, id: EntityId) -> (Vec<u32>, Vec<u32>) {
        let (mut real, mut ghost) = (Vec::new(), Vec::new());
        for region in &self.regions {
            let all = region.addr.send(Inspect { plane: None }).await.expect("regions stay");
            for e in all.entities.iter().filter(|e| e.id == id) {
                if e.ghost { &mut ghost } else { &mut real }.push(region.region.0);
            }
        }
        (real, ghost)
    }

    /// Players in each non-empty plane of a scene.
    pub fn places(&self, scene: u16) -> Vec<(i32, u32)> {
        let players = |plane| (plane, self.directory.players(SceneId(scene), Plane(plane)));
        (0..10).map(players).filter(|(_, n)| *n > 0).collect()
    }

    pub fn handoffs(&self) -> u64 {
        self.regions.iter().map(|r| r.metrics.handoffs.load(Relaxed)).sum()
    }

    pub fn ids(&self, of: &[Who]) -> BTreeSet<EntityId> {
        of.iter().map(|who| self.clients[*who].id()).collect()
    }
}

/// The join of a client wherever the scene puts it, with the look that all have.
pub fn join(scene: &str) -> Join {
    let properties = vec![FirstProperty::appearance(b"a look").unwrap()];
    Join { scene: scene.into(), plane: None, pos: None, sight: None, properties, view_cap: 0 }
}

/// Waits until the session has read all messages to it.
async fn receive(client: &Client) {
    // A session that has just ended reads nothing more.
    if let Err(gone) = client.addr.send(FromSocket::Alive).await {
        assert!(!client.addr.connected(), "{gone}");
    }
}

/// Waits until `holds`.
pub async fn until(what: &str, holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "timed out waiting until {what}");
        sleep(Duration::from_micros(200)).await;
    }
}

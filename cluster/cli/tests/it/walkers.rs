//! Clients that walk on a real cluster (etcd, PostgreSQL, nodes and gateways, each a process), and the check of what
//! each client must be shown. The tests of node failures (`failover`) and of gateway failures (`resume`) use them.
//!
//! All clients walk in step, so entities in view stay in view: a test counts every enter and leave.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use purview::scene::movement::ServerMs;
use purview::scene::{EntityId, Plane, Pos, Seq};
use purview::wire::client::{Join, Joined};
use purview_client::{ClientError, Event, Player, Retry, View, join_at};
use purview_lab::testbed::local_cluster::LocalCluster;
use purview_server::config::Config;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::common::{ANY_PORTS, HOUR, runtime, try_for};

/// Between two moves of a client.
const STEP: Duration = Duration::from_millis(100);

/// The enter radius, centimetres. No two walkers stand at a distance between this and the leave radius.
const ENTER_CM: i64 = 4_000;

/// Six regions. Positions are trusted, so an entity stands where its client's last input put it.
pub const FIELD: &str = "[[scene]]\nteleports = \"clients\"\n\
                         name = \"field\"\nwidth = \"384m\"\ndepth = \"256m\"\nland = \"64m\"\n\
                         region = [2, 2]\npatch = \"16m\"\nvisibility = \"circle\"\nenter = \"40m\"\n\
                         leave = \"44m\"\nmoves = \"trusted\"\ntop_speed = \"20m/s\"\n\
                         rates = { near = \"100ms\", middle = \"100ms\", far = \"100ms\" }\n";

/// The configuration of a cluster with this scene, with further sections.
pub fn field(more: &str) -> Config {
    Config::parse(&format!("{ANY_PORTS}{more}{FIELD}")).unwrap()
}

/// A position on the way of walker `i`: twelve walkers in a row start at `first_cm`, each walks `length_cm` east and
/// back.
fn way(i: i32, (first_cm, length_cm): (i32, i32), step: i32) -> Pos {
    let (from, row) = (first_cm + i % 12 * 2_900, 1_500 + i / 12 * 9_000);
    let there = (step * 80) % (2 * length_cm);
    let along = if there < length_cm { there } else { 2 * length_cm - there };
    Pos::ground(from + along, row)
}

/// What the test knows of a client.
pub struct Walker {
    pub id: EntityId,
    plane: Plane,
    view: View,
    /// The position and the number of the client's last input.
    pub pos: Pos,
    said: Seq,
    /// How many leaves the client was told.
    pub leaves: usize,
    /// How many enters and leaves the client was told outside of a resync.
    pub changes: u64,
    /// How often the client has resumed its session.
    pub resumed: u64,
    /// How many attempts to resume failed before.
    pub failed_attempts: u64,
    fault: Option<String>,
}

impl Walker {
    fn new(joined: &Joined) -> Walker {
        Walker {
            id: joined.id,
            plane: joined.plane,
            view: View::of(joined),
            pos: joined.pos,
            said: Seq(0),
            leaves: 0,
            changes: 0,
            resumed: 0,
            failed_attempts: 0,
            fault: None,
        }
    }

    /// Notes an input that the client has sent.
    fn sent(&mut self, pos: Pos, seq: Seq) {
        (self.pos, self.said) = (pos, seq);
    }

    /// Notes that the session goes on at a gateway.
    fn resumed(&mut self, joined: &Joined, failed_attempts: u64) -> Result<(), String> {
        (self.resumed, self.failed_attempts) = (self.resumed + 1, failed_attempts);
        match joined.id == self.id {
            true => Ok(()),
            false => Err(format!("resumed as {}, not as {}", joined.id, self.id)),
        }
    }

    /// Applies what the server tells; the error says why the client must not go on.
    fn event(&mut self, event: &Event) -> Result<(), String> {
        let frame = match event {
            Event::Frame(frame) => frame,
            Event::Pong(_) | Event::Unconfirmed(_) => return Ok(()),
            other => return Err(format!("unexpected event {other:?}")),
        };
        if !frame.refused.is_empty() {
            return Err(format!("refused: {:?}", frame.refused));
        }
        self.leaves += frame.leaves.len();
        if !frame.resync {
            self.changes += (frame.enters.len() + frame.leaves.len()) as u64;
        }
        self.view.apply(frame).map_err(|e| e.to_string())
    }

    fn is_near(&self, other: &Walker) -> bool {
        let (dx, dz) = (i64::from(other.pos.x - self.pos.x), i64::from(other.pos.z - self.pos.z));
        other.id != self.id && other.plane == self.plane && dx * dx + dz * dz <= ENTER_CM * ENTER_CM
    }

    /// The differences between what this client is shown and what it must be shown.
    fn wrong(&self, all: &[MutexGuard<'_, Walker>], wrong: &mut Vec<String>) {
        if let Some(fault) = &self.fault {
            panic!("client of {} has ended: {fault}", self.id);
        }
        if self.view.ack() != self.said {
            wrong.push(format!("{}: input {} of {}", self.id, self.view.ack(), self.said));
        }
        for other in all {
            let shown = self.view.get(other.id).map(|seen| seen.position(ServerMs(0)));
            let due = self.is_near(other).then_some(other.pos);
            if shown != due {
                wrong.push(format!("{} shows {} at {shown:?}, not {due:?}", self.id, other.id));
            }
        }
    }
}

/// How a client joins and where it walks.
pub struct Route {
    /// The gateways that it knows.
    pub urls: Vec<String>,
    /// The plane of its choice.
    pub plane: Option<Plane>,
    /// Where the first walker of its row starts and how far each walks, centimetres.
    pub way: (i32, i32),
    /// Whether gateways end, so that its session may be resumed.
    pub may_resume: bool,
}

/// What the crowd tells a client.
struct Orders {
    /// The number of the client.
    i: i32,
    token: String,
    began: Instant,
    walks: Arc<AtomicBool>,
}

type Shared = Arc<Mutex<Walker>>;

impl Orders {
    /// The step that all clients are at, or none while they stand.
    fn step(&self) -> Option<i32> {
        let step = self.began.elapsed().as_millis() / STEP.as_millis();
        self.walks.load(Ordering::Relaxed).then_some(step as i32)
    }
}

impl Route {
    /// Joins, tells so, and walks until the client cannot go on: then the walker's fault says why.
    async fn walk(self, orders: Orders, tell: oneshot::Sender<Shared>) {
        let place = |step| way(orders.i, self.way, step);
        let join = Join { plane: self.plane, ..join_at("field", place(0)) };
        let joining = Player::join(&self.urls, &orders.token, join, Retry::default());
        let (mut player, joined) = joining.await.expect("the gateway accepts it");
        let walker = Arc::new(Mutex::new(Walker::new(&joined)));
        assert!(tell.send(walker.clone()).is_ok());
        let mut clock = tokio::time::interval(STEP);
        let fault = loop {
            let done = tokio::select! {
                _ = clock.tick() => match orders.step().map(place) {
                    Some(pos) => match player.send_move(pos).await {
                        Ok(seq) => {
                            walker.lock().unwrap().sent(pos, seq);
                            Ok(())
                        }
                        // The player sends the rest once it has resumed.
                        Err(ClientError::Behind(_)) => Ok(()),
                        Err(error) => Err(error.to_string()),
                    },
                    // A client that stands keeps its connection alive.
                    None => player.ping(0).await.map_err(|error| error.to_string()),
                },
                event = player.next() => match event {
                    Ok(Event::Resumed(joined)) if self.may_resume => {
                        walker.lock().unwrap().resumed(&joined, player.failed_attempts())
                    }
                    Ok(event) => walker.lock().unwrap().event(&event),
                    Err(error) => Err(error.to_string()),
                },
            };
            if let Err(fault) = done {
                break fault;
            }
        };
        walker.lock().unwrap().fault = Some(fault);
    }
}

/// A token for a player of this cluster.
pub fn token(cluster: &LocalCluster, name: &str) -> String {
    cluster.tokens().mint(name, Some(HOUR)).unwrap()
}

/// All clients of a test, and the thread that runs them.
pub struct Crowd {
    _runtime: Runtime,
    walks: Arc<AtomicBool>,
    walkers: Vec<Shared>,
}

impl Crowd {
    /// Lets `count` clients join, one after the other, each on its route.
    pub fn start(cluster: &LocalCluster, count: i32, route: impl Fn(i32) -> Route) -> Crowd {
        let runtime = runtime();
        let (walks, began) = (Arc::new(AtomicBool::new(true)), Instant::now());
        let joined = (0..count).map(|i| {
            let (tell, told) = oneshot::channel();
            let token = token(cluster, &format!("walker {i}"));
            runtime.spawn(route(i).walk(Orders { i, token, began, walks: walks.clone() }, tell));
            runtime.block_on(told).expect("the client joins")
        });
        let walkers = joined.collect();
        Crowd { _runtime: runtime, walks, walkers }
    }

    /// All differences between what the clients are shown and what they must be shown: each client's last input
    /// counts, and each client sees exactly the entities near it, at their positions.
    pub fn wrong(&self) -> Vec<String> {
        let all: Vec<_> = self.walkers.iter().map(|walker| walker.lock().unwrap()).collect();
        let mut wrong = Vec::new();
        for walker in &all {
            walker.wrong(&all, &mut wrong);
        }
        wrong
    }

    /// Stops all clients and waits until nothing is wrong.
    pub fn stop_and_check(&self, when: &str) {
        self.walks.store(false, Ordering::Relaxed);
        try_for(when, || {
            std::thread::sleep(STEP);
            let wrong = self.wrong();
            let Some(first) = wrong.first() else { return Ok(()) };
            Err(format!("{} wrong: {first}", wrong.len()))
        });
    }

    /// Stops all clients, waits until nothing is wrong, and lets them walk on.
    pub fn pause_and_check(&self, when: &str) {
        self.stop_and_check(when);
        self.walks.store(true, Ordering::Relaxed);
    }

    /// Something of each client.
    pub fn of_each<T>(&self, get: impl Fn(&Walker) -> T) -> Vec<T> {
        self.walkers.iter().map(|walker| get(&walker.lock().unwrap())).collect()
    }

    /// Lets the clients walk for so long.
    pub fn walk(&self, seconds: u64) {
        std::thread::sleep(Duration::from_secs(seconds));
    }
}

//! A real cluster (etcd, PostgreSQL, three nodes and two gateways, each a process) on which clients walk to and fro
//! across its borders, and what must be true of them.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use purview::scene::movement::ServerMs;
use purview::scene::{EntityId, Plane, Pos, Seq};
use purview::wire::client::Join;
use purview_client::{Client, Event, View, join_at};
use purview_lab::testbed::local_cluster::{LocalCluster, Member, Parts};
use purview_server::config::Config;
use purview_server::node::ClusterSurvey;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

/// Nothing here takes this long, unless it never comes.
const PATIENCE: Duration = Duration::from_secs(60);

const CLIENTS: i32 = 36;

/// Near ones are seen at less than this, centimetres; nobody stands between this and the leave radius.
const ENTER_CM: i32 = 4_000;

/// Six regions for each group of planes; places are trusted, so that where somebody is, is what its last input said.
fn config(plane_groups: u16) -> Config {
    let text = "[gateway]\nws = \"127.0.0.1:0\"\ntcp = \"off\"\n[console]\nlisten = \"127.0.0.1:0\"\n\
                [cluster]\nlease = \"3s\"\ncheckpoint = \"1s\"\n\
                [[scene]]\nname = \"field\"\nwidth = \"384m\"\ndepth = \"256m\"\nland = \"64m\"\n\
                region = [2, 2]\npatch = \"16m\"\nvisibility = \"circle\"\nenter = \"40m\"\n\
                leave = \"44m\"\nmoves = \"trusted\"\ntop_speed = \"20m/s\"\n\
                rates = { near = \"100ms\", middle = \"100ms\", far = \"100ms\" }\n";
    Config::parse(&format!("{text}plane_groups = {plane_groups}\n")).unwrap()
}

/// A client as the test knows it.
struct Walker {
    id: EntityId,
    plane: Plane,
    view: View,
    /// Where its last input puts it, and that input's number.
    pos: Pos,
    said: Seq,
    /// How many it was told that they are gone.
    leaves: usize,
    /// Why it is no client any more.
    fault: Option<String>,
}

type Shared = Arc<Mutex<Walker>>;

/// Where a client walks to and fro: along the map, across a border or two.
fn way(i: i32, step: i32) -> Pos {
    let (from, row) = (2_000 + i % 12 * 2_900, 1_500 + i / 12 * 9_000);
    let there = (step * 80) % 4_000;
    let along = if there < 2_000 { there } else { 4_000 - there };
    Pos::ground(from + along, row)
}

async fn client(
    (url, token): (String, String),
    (i, groups, began): (i32, u16, Instant),
    walks: Arc<AtomicBool>,
    shared: tokio::sync::oneshot::Sender<Shared>,
) {
    let mut client = Client::connect(&url, &token).await.expect("it is let in");
    let plane = Plane(i / 2 % i32::from(groups));
    let join = Join { plane: Some(plane), ..join_at("field", way(i, 0)) };
    let joined = client.join(join).await.expect("there is room");
    let walker = Walker {
        id: joined.id,
        plane: joined.plane,
        view: View::of(&joined),
        pos: joined.pos,
        said: Seq(0),
        leaves: 0,
        fault: None,
    };
    let walker = Arc::new(Mutex::new(walker));
    assert!(shared.send(walker.clone()).is_ok());
    let (mut sender, mut receiver) = client.split();
    let mut clock = tokio::time::interval(Duration::from_millis(100));
    let fault = loop {
        tokio::select! {
            _ = clock.tick() => {
                if !walks.load(Ordering::Relaxed) {
                    // Who only stands says that it is there.
                    match sender.ping(0).await {
                        Ok(()) => continue,
                        Err(e) => break e.to_string(),
                    }
                }
                // All in step: who is near stays near.
                let pos = way(i, (began.elapsed().as_millis() / 100) as i32);
                match sender.send_move(pos).await {
                    Ok(seq) => {
                        let mut walker = walker.lock().unwrap();
                        (walker.pos, walker.said) = (pos, seq);
                    }
                    Err(e) => break e.to_string(),
                }
            }
            event = receiver.next() => match event {
                Ok(Event::Frame(frame)) => {
                    if !frame.refused.is_empty() {
                        break format!("refused: {:?}", frame.refused);
                    }
                    let mut walker = walker.lock().unwrap();
                    walker.leaves += frame.leaves.len();
                    if let Err(e) = walker.view.apply(&frame) {
                        break e.to_string();
                    }
                }
                Ok(Event::Pong(_)) => {}
                Ok(other) => break format!("was told {other:?}"),
                Err(e) => break e.to_string(),
            },
        }
    };
    walker.lock().unwrap().fault = Some(fault);
}

pub struct Trial {
    /// Where the clients live.
    _runtime: Runtime,
    pub cluster: LocalCluster,
    walks: Arc<AtomicBool>,
    walkers: Vec<Shared>,
}

impl Trial {
    /// A cluster on which everybody walks.
    pub fn start() -> Trial {
        Trial::listening(Ipv4Addr::LOCALHOST.into(), 3)
    }

    /// The same with so many nodes, whose peers reach them at an address.
    pub fn listening(address: IpAddr, nodes: u16) -> Trial {
        Trial::of(address, nodes, (1, 1))
    }

    /// The same on planes in so many groups, one plane of each.
    pub fn on_planes(groups: u16) -> Trial {
        Trial::of(Ipv4Addr::LOCALHOST.into(), 3, (groups, 1))
    }

    /// The same with so many etcds.
    pub fn with_etcds(etcds: usize) -> Trial {
        Trial::of(Ipv4Addr::LOCALHOST.into(), 3, (1, etcds))
    }

    fn of(address: IpAddr, nodes: u16, (groups, etcds): (u16, usize)) -> Trial {
        let program = Path::new(env!("CARGO_BIN_EXE_purview"));
        let parts = Parts { nodes, gateways: 2 };
        let mut config = config(groups);
        config.cluster.listen.set_ip(address);
        config.cluster.insecure = true;
        let cluster =
            LocalCluster::start_with_etcds(program, &config, parts, etcds, &mut |_| {}).unwrap();
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let urls = [cluster.url(0).unwrap(), cluster.url(1).unwrap()];
        let walks = Arc::new(AtomicBool::new(true));
        let began = Instant::now();
        let joined = (0..CLIENTS).map(|i| {
            let (tell, told) = tokio::sync::oneshot::channel();
            // Those who see each other are at different gateways.
            let url = urls[i as usize % 2].clone();
            let token = cluster
                .tokens()
                .mint(&format!("walker {i}"), Some(Duration::from_secs(3_600)))
                .unwrap();
            runtime.spawn(client((url, token), (i, groups, began), walks.clone(), tell));
            runtime.block_on(told).expect("it joins")
        });
        let walkers = joined.collect();
        let trial = Trial { _runtime: runtime, cluster, walks, walkers };
        trial.settles("before anything happens");
        trial
    }

    /// What is not as it should be: everybody's last input counts, and everybody is shown exactly those who
    /// are near, where they are.
    fn wrong(&self) -> Vec<String> {
        let all: Vec<_> = self.walkers.iter().map(|w| w.lock().unwrap()).collect();
        let mut wrong = Vec::new();
        for me in &all {
            if let Some(fault) = &me.fault {
                panic!("{} is no client any more: {fault}", me.id);
            }
            if me.view.ack() != me.said {
                wrong.push(format!("{}: input {} of {}", me.id, me.view.ack(), me.said));
            }
            let near = |other: &Walker| {
                let (dx, dz) =
                    (i64::from(other.pos.x - me.pos.x), i64::from(other.pos.z - me.pos.z));
                let enter = i64::from(ENTER_CM);
                other.id != me.id && other.plane == me.plane && dx * dx + dz * dz <= enter * enter
            };
            for other in &all {
                let shown = me.view.get(other.id).map(|seen| seen.position(ServerMs(0)));
                let due = near(other).then_some(other.pos);
                if shown != due {
                    wrong.push(format!("{} shows {} at {shown:?}, not {due:?}", me.id, other.id));
                }
            }
        }
        wrong
    }

    /// Everybody stops, and after a while everything is as it should be.
    pub fn settles(&self, when: &str) {
        self.walks.store(false, Ordering::Relaxed);
        let begin = Instant::now();
        loop {
            std::thread::sleep(Duration::from_millis(100));
            let wrong = self.wrong();
            if wrong.is_empty() {
                break;
            }
            assert!(
                begin.elapsed() < PATIENCE,
                "{when}: {} wrong: {:?}",
                wrong.len(),
                wrong.first()
            );
        }
        self.walks.store(true, Ordering::Relaxed);
    }

    /// Waits until a node owns so many regions.
    pub fn owns(&self, node: &str, regions: usize) {
        let begin = Instant::now();
        loop {
            let survey = survey(&self.cluster.gateways()[0]);
            let owns = survey.regions.iter().filter(|region| region.node == node).count();
            if owns == regions {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "{node} owns {owns} regions, not {regions}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// How many were told to anybody to be gone. Everybody walks in step: who is near stays near.
    pub fn leaves(&self) -> usize {
        self.walkers.iter().map(|walker| walker.lock().unwrap().leaves).sum()
    }

    /// Whether a node says that a region came to it from another one's checkpoint.
    pub fn has_taken_over(&self) -> bool {
        let from_a_checkpoint = "a region goes on from a checkpoint";
        self.cluster.nodes().iter().any(|node| node.said().contains(from_a_checkpoint))
    }

    /// Everybody walks for so long.
    pub fn walk(&self, seconds: u64) {
        std::thread::sleep(Duration::from_secs(seconds));
    }
}

fn run_ctl(at: &Member, args: &[&str]) -> Output {
    let console = at.ready().and_then(|ready| ready.console).expect("it has a console");
    let mut command = Command::new(env!("CARGO_BIN_EXE_purview"));
    command.arg("ctl").args(args).args(["--json", "--console", &format!("http://{console}")]);
    command.output().unwrap()
}

/// Runs `purview ctl` at the console of a member, which refuses; what it says.
pub fn refused(at: &Member, args: &[&str]) -> String {
    let output = run_ctl(at, args);
    assert_eq!(output.status.code(), Some(1), "ctl {args:?} is refused");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Gives an order by `purview ctl` without waiting for it to be carried out.
pub fn order(at: &Member, args: &[&str]) {
    let output = run_ctl(at, args);
    assert!(matches!(output.status.code(), Some(0 | 3)), "ctl {args:?}: {output:?}");
}

/// Runs `purview ctl` at the console of a member; what it prints.
pub fn ctl(at: &Member, args: &[&str]) -> Value {
    let output = run_ctl(at, args);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ctl {args:?}: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

pub fn survey(at: &Member) -> ClusterSurvey {
    serde_json::from_value(ctl(at, &["regions"])).unwrap()
}

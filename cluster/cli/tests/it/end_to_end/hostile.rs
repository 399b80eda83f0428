//! All hostile trials at once: attackers of every listener of a cluster, from addresses of their own, while honest bots
//! from another address join and play. The oracle judges what the bots are shown.

mod client;
mod players;
mod ports;

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use purview_lab::testbed::local_cluster::LocalCluster;
use purview_server::config::Config;
use purview_server::gateway::Tokens;
use purview_server::gateway::token::{ClusterTokens, random_cluster};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::operations::get;
use super::process::{Done, assert_clean, run_lab};
use crate::common::{cluster, members, runtime};

const DAY: Duration = Duration::from_secs(86_400);

const HEALTH: Duration = Duration::from_secs(5);

/// Where attackers go, and what they have.
struct Targets {
    ws: SocketAddr,
    tcp: SocketAddr,
    consoles: Vec<SocketAddr>,
    /// The listeners of peers and of logic workers.
    grpc: Vec<SocketAddr>,
    tokens: Tokens,
    /// What an attacker got and may not have.
    breaches: Mutex<Vec<String>>,
    /// Signs tickets of another cluster with the same secret.
    foreign: ClusterTokens,
}

/// What the attackers of a kind have done.
#[derive(Default)]
struct Tally {
    done: AtomicU64,
    refused: AtomicU64,
}

#[derive(Clone)]
struct Attacker {
    number: u32,
    source: [u8; 4],
    targets: Arc<Targets>,
    tally: Arc<Tally>,
}

impl Attacker {
    /// Counts something that was done; how much this kind did before.
    fn done(&self) -> u32 {
        self.tally.done.fetch_add(1, Relaxed) as u32
    }

    /// Counts something that the server has refused or ended.
    fn refused(&self) {
        self.tally.refused.fetch_add(1, Relaxed);
    }

    /// The server gave the attacker what it may not have.
    fn breach(&self, what: String) {
        self.targets.breaches.lock().unwrap().push(what);
    }

    /// A valid token: attackers are players, too.
    fn token(&self, subject: &str) -> String {
        self.targets.tokens.mint(subject, Some(DAY)).expect("a token")
    }
}

type Round = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A kind of attacker: its name, how many there are, the pause between two rounds of one, and a round.
struct Kind(&'static str, u32, u64, fn(Attacker) -> Round);

/// Bounded in number and pace, so that two cores carry the cluster, the bots, the oracle and the attackers.
static KINDS: [Kind; 11] = [
    Kind("silent connections", 300, 1_000, |a| Box::pin(players::silent(a))),
    Kind("garbage and nesting", 4, 250, |a| Box::pin(players::garbage(a))),
    Kind("empty fragments", 2, 1_000, |a| Box::pin(players::empty_fragments(a))),
    Kind("one token", 30, 500, |a| Box::pin(players::one_token(a))),
    Kind("early hello, relog", 3, 250, |a| Box::pin(players::early_hello(a))),
    Kind("actions of 1 KiB", 5, 500, |a| Box::pin(players::actions(a))),
    Kind("forbidden places", 3, 500, |a| Box::pin(players::forbidden(a))),
    Kind("foreign tickets", 2, 500, |a| Box::pin(players::foreign_tickets(a))),
    Kind("slow readers", 400, 3_000, |a| Box::pin(ports::slow_readers(a))),
    Kind("silent gRPC", 400, 1_000, |a| Box::pin(ports::silent_calls(a))),
    Kind("malformed gRPC", 4, 500, |a| Box::pin(ports::calls(a))),
];

/// Starts every attacker. They go on until the runtime ends.
fn attack(runtime: &tokio::runtime::Runtime, targets: &Arc<Targets>) -> Vec<Arc<Tally>> {
    let mut tallies = Vec::new();
    for (place, Kind(_, count, pause, round)) in KINDS.iter().enumerate() {
        let tally = Arc::new(Tally::default());
        for number in 0..*count {
            let source = [127, 0, 0, 2 + place as u8];
            let (targets, tally) = (targets.clone(), tally.clone());
            let attacker = Attacker { number, source, targets, tally };
            runtime.spawn(async move {
                // Not all at the same moment.
                tokio::time::sleep(Duration::from_millis(u64::from(number % 40) * 25)).await;
                loop {
                    round(attacker.clone()).await;
                    tokio::time::sleep(Duration::from_millis(*pause)).await;
                }
            });
        }
        tallies.push(tally);
    }
    tallies
}

/// The ports on which a process listens.
fn listens(pid: u32) -> Vec<SocketAddr> {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("a process");
    let links = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
    let sockets: Vec<String> = links.map(|link| link.display().to_string()).collect();
    let table = std::fs::read_to_string(format!("/proc/{pid}/net/tcp")).expect("its sockets");
    let of_line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
        let is_own = *state == "0A" && sockets.contains(&format!("socket:[{inode}]"));
        let port = u16::from_str_radix(local.rsplit(':').next()?, 16).ok()?;
        is_own.then_some(SocketAddr::from(([127, 0, 0, 1], port)))
    };
    table.lines().filter_map(of_line).collect()
}

/// The scene of `deploy/scenes/dev.toml`, with judged moves and places that the server chooses.
fn config() -> Config {
    let text = "[gateway]\nws = \"127.0.0.1:0\"\ntcp = \"127.0.0.1:0\"\nmax_sessions = 500\n\
        [gateway.limits]\nexempt = []\n\
        [logic]\nlisten = \"127.0.0.1:0\"\n\
        [[scene]]\nname = \"meadow\"\nwidth = \"768m\"\ndepth = \"768m\"\nland = \"128m\"\n\
        region = [2, 2]\npatch = \"16m\"\nspawn = [\"384m\", \"384m\"]\n\
        rates = { near = \"100ms\", middle = \"200ms\", far = \"400ms\" }\n";
    Config::parse(text).expect("a configuration")
}

fn targets(cluster: &LocalCluster) -> Targets {
    let at = |text: Option<String>| text.expect("an address").parse().expect("an address");
    let gateway = cluster.gateways()[0].ready().expect("it is ready");
    let consoles: Vec<SocketAddr> =
        members(cluster).map(|member| at(member.ready().expect("it is ready").console)).collect();
    let public = [at(gateway.ws), at(gateway.tcp)];
    let mut grpc: Vec<SocketAddr> = members(cluster).flat_map(|m| listens(m.pid())).collect();
    grpc.retain(|listener| !consoles.contains(listener) && !public.contains(listener));
    assert!(grpc.len() >= 7, "a listener for peers of each process, and for workers of each node");
    let tokens = cluster.tokens().clone();
    let foreign = tokens.clone().in_cluster(random_cluster().unwrap(), &[7; 32]);
    Targets {
        ws: public[0],
        tcp: public[1],
        consoles,
        grpc,
        tokens,
        foreign,
        breaches: Mutex::default(),
    }
}

/// Asks for the health of every process until the end: how often, and the longest wait.
fn watch(consoles: &[SocketAddr], over: &AtomicBool) -> (u64, Duration) {
    let (mut asked, mut longest) = (0, Duration::ZERO);
    while !over.load(Relaxed) {
        for console in consoles {
            for path in ["/alive", "/ready"] {
                let begin = Instant::now();
                let (status, body) = get(&console.to_string(), path);
                longest = longest.max(begin.elapsed());
                assert_eq!(status, 200, "{console}{path}: {body}");
                asked += 1;
            }
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    (asked, longest)
}

/// The bots, each with a token of its own, as a process of their own.
fn bots(cluster: &LocalCluster, count: u32, seconds: u64) -> Done {
    let tokens = (0..count).map(|n| cluster.tokens().mint(&format!("honest {n}"), Some(DAY)));
    let tokens: Vec<String> = tokens.map(|token| token.expect("a token")).collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens");
    std::fs::write(&file, tokens.join("\n")).unwrap();
    let (url, count) = (cluster.url(0).expect("clients can connect"), count.to_string());
    let length = format!("{seconds}s");
    let args = ["load", "walk", "--connect", &url, "--count", &count, "--for", &length, "--json"];
    let token = ["--token-file", file.to_str().unwrap()];
    run_lab(&[&args[..], &token[..]].concat())
}

fn table(tallies: &[Arc<Tally>]) -> String {
    let mut text = format!("{:<24}{:>10}{:>10}{:>10}\n", "attackers", "number", "done", "refused");
    for (Kind(name, count, ..), tally) in KINDS.iter().zip(tallies) {
        let (done, refused) = (tally.done.load(Relaxed), tally.refused.load(Relaxed));
        writeln!(text, "{name:<24}{count:>10}{done:>10}{refused:>10}").unwrap();
    }
    text
}

/// Lets bots play in a cluster that is attacked in every way.
fn trial(count: u32, seconds: u64) {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    let cluster = cluster(&config(), 3, 1);
    let targets = Arc::new(targets(&cluster));
    let (consoles, over) = (targets.consoles.clone(), Arc::new(AtomicBool::new(false)));
    let watcher = std::thread::spawn({
        let over = over.clone();
        move || watch(&consoles, &over)
    });
    let runtime = runtime();
    let tallies = attack(&runtime, &targets);
    let done = bots(&cluster, count, seconds);
    over.store(true, Relaxed);
    let health = watcher.join();
    runtime.shutdown_background();
    println!("{}bots: {}", table(&tallies), done.stdout);
    let (asked, longest) = health.expect("every process answers every health check");
    println!("{asked} health checks, the longest {longest:?}");
    let report = assert_clean(&done);
    assert_eq!(report["players"], count, "{report}");
    assert_eq!(report["resumed"], 0, "no bot has lost its session: {report}");
    assert_eq!(*targets.breaches.lock().unwrap(), [""; 0]);
    assert!(asked > 0 && longest < HEALTH, "a health check took {longest:?}");
    for member in members(&cluster) {
        assert_eq!(member.ended(), None, "{} has ended: {}", member.name, member.said());
        let said = member.said();
        assert!(!said.contains("panicked"), "{}: {said}", member.name);
    }
    for (Kind(name, ..), tally) in KINDS.iter().zip(&tallies) {
        assert!(tally.done.load(Relaxed) > 0, "{name}: nothing was tried");
        assert!(tally.refused.load(Relaxed) > 0, "{name}: nothing was refused");
    }
}

#[test]
#[ignore = "long; .ci/nightly runs it"]
fn all_attackers_at_once_harm_none_of_200_honest_bots() {
    let seconds = std::env::var("PURVIEW_HOSTILE_SECONDS");
    trial(200, seconds.map_or(60, |text| text.parse().expect("PURVIEW_HOSTILE_SECONDS: seconds")));
}

//! A discrete-event simulator: a whole cluster in one thread, under a virtual clock. Nodes, gateways and clients are the
//! production code; the network, the lease store and the checkpoint store are simulated and inject faults. A seed
//! determines the run.
//!
//! ```text
//!  Options ──► Cluster ──► Process ──► node or gateway, in a task set that can be stopped and ended
//!                 │  ▲                    │    ▲            │
//!     faults ─────┘  └── Net, LeaseWay, Memory              │ Observer: every region, every tick
//!                              │                            ▼
//!                 Walkers (the client library) ─────────► Judge ──► Violation: seed, step, invariant, last steps
//! ```
//!
//! *Absent on purpose:* the clock, the network and the randomness of the machine, and a second thread. Each of them would
//! make runs differ.

pub mod blow;
pub mod client;
pub mod cluster;
pub mod faults;
pub mod heralds;
mod inject;
mod journal;
pub mod judge;
mod messages;
pub mod mutation;
pub mod network;
pub mod portals;
mod process;
pub mod report;
pub mod schedule;
pub mod shrink;
pub mod store;
mod virtual_clock;
pub mod walls;
mod whole;
pub mod will;
pub mod worker_loop;
pub mod workers;

use std::panic::resume_unwind;
use std::rc::Rc;
use std::time::{Duration, Instant};

use purview::clock;
use purview::scene::mutants::{self, Mutant};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::sleep;

use crate::load::report::thread_cpu;
use crate::rng::Rng;

use client::{Beats, Walker};
use cluster::Cluster;
use faults::Faults;
use inject::{Injector, rest};
use journal::Step;
use judge::{Invariant, Violation};
use schedule::{Recorder, Storm};

/// How many steps before a violation are shown.
const STEPS_SHOWN: usize = 60;

/// The side of a region of the simulated scenes, centimetres.
const REGION_CM: i32 = 12_800;

/// The options of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The seed, which determines the run.
    pub seed: u64,
    /// The length of the run in virtual time.
    pub lasts: Duration,
    /// The number of nodes.
    pub nodes: u32,
    /// The number of gateways; with 0 each node is a gateway too.
    pub gateways: u32,
    /// The number of clients.
    pub players: u32,
    /// The kinds of faults.
    pub faults: Faults,
    /// The greatest number of faults at the same time, 1 or 2.
    pub at_once: u32,
    /// The capacity of a view list; `None`: the default of the configuration.
    pub view_cap: Option<u32>,
    /// The number of plane groups of each scene, at least 1. Each group has regions of its own. Players use two planes.
    pub plane_groups: u32,
    /// The number of scenes, 1 or 2. Players teleport between them.
    pub scenes: u32,
    /// Whether moves are judged: clients send move commands instead of positions.
    pub judged: bool,
    /// Whether the edge of each scene cuts its last lands.
    pub cut: bool,
    /// Whether heights count: clients climb stairs. Only without judged moves and without a game.
    pub stairs: bool,
    /// Whether scenes have portals. Only where moves are judged.
    pub portals: bool,
    /// Whether the leader balances loads: what ticks cost follows from the players and ghosts of a region.
    pub balance: bool,
    /// Whether scenes have walls, which are entities that block the way, as their NPCs are. Only where moves are judged.
    pub walls: bool,
    /// Whether demo NPCs roam the scenes.
    pub npcs: bool,
    /// The game whose rules the regions run; `None`: they have no logic.
    pub logic: Option<Logic>,
    /// The interval at which all clients send their inputs together, a divisor of 200 ms; `None`: each client at its own
    /// moments. A common beat has fewer events and runs faster.
    pub beat: Option<Duration>,
    /// The run ends before this step.
    pub until: Option<u64>,
    /// Whether to print each step.
    pub trace: bool,
    /// The deliberate bug to run with.
    pub mutant: Option<Mutant>,
    /// The faults and players that the run leaves out.
    pub only: Only,
}

/// A game whose rules the regions of a run have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Logic {
    /// The example game `hunt`: `docs/contributing/simulation.md` says what the judge knows of it.
    Hunt,
    /// The rules of logic workers, which are killed and silenced, too.
    Workers,
    /// Every region tells players and groups numbered messages.
    Messages,
    /// No rules: three clients at a time log in as one subject, whose player has a value that each raises.
    Sessions,
    /// The same, and players linger after their clients are gone.
    Linger,
}

impl Logic {
    /// Its name, as in flags and files.
    pub fn name(self) -> &'static str {
        match self {
            Logic::Hunt => "hunt",
            Logic::Workers => "workers",
            Logic::Messages => "messages",
            Logic::Sessions => "sessions",
            Logic::Linger => "linger",
        }
    }

    /// All of them.
    pub const ALL: [Logic; 5] =
        [Logic::Hunt, Logic::Workers, Logic::Messages, Logic::Sessions, Logic::Linger];

    /// Whether several clients have one subject.
    pub fn shares_subjects(self) -> bool {
        matches!(self, Logic::Sessions | Logic::Linger)
    }

    /// Whether scenes have the kinds of `hunt`.
    pub fn is_game(self) -> bool {
        matches!(self, Logic::Hunt | Logic::Workers)
    }
}

/// The faults and players that a run keeps. The random draws are the same as those of the full run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Only {
    /// The numbers of the faults, from 0 in the order of the run; `None`: all.
    pub faults: Option<Vec<u32>>,
    /// The numbers of the clients; `None`: all.
    pub players: Option<Vec<u32>>,
}

impl Only {
    /// Whether the run keeps this fault.
    pub fn fault(&self, number: u32) -> bool {
        self.faults.as_ref().is_none_or(|some| some.contains(&number))
    }

    /// Whether the run keeps this client.
    pub fn player(&self, number: u32) -> bool {
        self.players.as_ref().is_none_or(|some| some.contains(&number))
    }
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// A hash over all steps: two identical runs have the same.
    pub hash: u64,
    /// The number of steps.
    pub steps: u64,
    /// The virtual time that passed.
    pub virtual_time: Duration,
    /// The CPU time of the run, or the elapsed time where the system does not report it.
    pub core_time: Duration,
    /// The number of frames that clients received.
    pub frames: u64,
    /// The number of inputs that clients sent.
    pub inputs: u64,
    /// The number of bytes that clients received.
    pub bytes: u64,
    /// The number of quiet phases, in each of which everything was checked.
    pub rests: u32,
    /// The number of regions that have acted; cuts and merges make new ones.
    pub regions: usize,
    /// The number of faults drawn, or those of the schedule.
    pub faults: u32,
    /// The injected faults with their times, from which a schedule can repeat the run.
    pub storms: Vec<Storm>,
    /// The violation, with the last steps that concern its entities.
    pub violation: Option<(Violation, Vec<Step>)>,
}

/// Why a run cannot start.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The options make no legal configuration.
    #[error(transparent)]
    Config(#[from] purview_server::config::ConfigErrors),
    /// The system gives no runtime.
    #[error("cannot start a runtime for the simulation: {0}")]
    Runtime(#[from] std::io::Error),
    /// The schedule is invalid.
    #[error(transparent)]
    Schedule(#[from] schedule::ScheduleError),
}

/// Runs a simulation with faults that are drawn from the seed.
///
/// # Errors
/// [`SimError`]. A violation is part of the [`Outcome`], not an error.
pub fn simulate(options: &Options) -> Result<Outcome, SimError> {
    simulate_by(options, None)
}

/// Runs a simulation with the faults of a schedule; without a schedule as [`simulate`].
///
/// # Errors
/// As [`simulate`].
pub fn simulate_by(options: &Options, recorded: Option<&[Storm]>) -> Result<Outcome, SimError> {
    let runtime = virtual_clock::runtime()?;
    let hold = clock::Hold::new();
    let (began, had) = (Instant::now(), thread_cpu());
    mutants::set(options.mutant);
    let tasks = Rc::new(LocalSet::new());
    // In a task of its own: a `LocalSet` polls the future of `run_until` again whenever any of its tasks has work.
    let (options, recorded) = (options.clone(), recorded.map(<[Storm]>::to_vec));
    let run = tasks.spawn_local(async move { run(&options, recorded).await });
    let set = tasks.clone();
    let outcome = virtual_clock::block_on(&runtime, async move { set.run_until(run).await });
    drop((tasks, hold));
    mutants::set(None);
    let mut outcome = outcome.unwrap_or_else(|error| resume_unwind(error.into_panic()))?;
    let has = thread_cpu().zip(had).map(|(now, then)| now.saturating_sub(then));
    outcome.core_time = has.unwrap_or_else(|| began.elapsed());
    Ok(outcome)
}

async fn run(options: &Options, recorded: Option<Vec<Storm>>) -> Result<Outcome, SimError> {
    let cluster = Cluster::start(options)?;
    let mut rng = Rng::new(options.seed ^ 0x5151_5151);
    let (journal, judge) = (cluster.ground().journal.clone(), cluster.ground().judge.clone());
    let (mut rests, mut faults) = (0, 0);
    let recorder = Recorder::default();
    let all = async {
        wait_until_whole(&cluster).await;
        start_workers(&cluster, options);
        start_clients(&cluster, options, &mut rng);
        sleep(Duration::from_secs(12)).await;
        let injector = Injector { cluster: &cluster, options, recorder: &recorder };
        for storm in recorded.iter().flatten() {
            faults = faults.max(storm.faults());
            injector.repeat(storm).await;
            rest(&cluster).await;
            rests += 1;
        }
        while recorded.is_none() && journal.now() < options.lasts {
            injector.draw(&mut rng, &mut faults).await;
            rest(&cluster).await;
            rests += 1;
        }
    };
    let watch = async {
        while judge.violation().is_none() && !journal.is_over() {
            sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        biased;
        () = watch => {}
        () = all => {}
    }
    let (frames, inputs) = judge.counts();
    let violation = judge.violation().map(|violation| {
        let steps = journal.last_of(&violation.who, STEPS_SHOWN);
        (violation, steps)
    });
    Ok(Outcome {
        hash: journal.hash(),
        steps: journal.steps(),
        virtual_time: journal.now(),
        core_time: Duration::ZERO,
        frames,
        inputs,
        bytes: journal.bytes(),
        rests,
        regions: judge.regions(),
        faults,
        storms: recorder.storms(),
        violation,
    })
}

async fn wait_until_whole(cluster: &Cluster) {
    let mut waited = 0;
    while !cluster.is_whole() && waited < 300 {
        sleep(Duration::from_millis(100)).await;
        waited += 1;
    }
    if !cluster.is_whole() {
        let text = "the cluster does not start within 30 s".into();
        cluster.ground().judge.violated(Invariant::Quiescence, Vec::new(), text);
    }
}

fn start_workers(cluster: &Cluster, options: &Options) {
    if options.logic != Some(Logic::Workers) {
        return;
    }
    for number in 0..workers::WORKERS {
        let seed = Rng::new(options.seed ^ u64::from(number) << 40).seed();
        let ground = cluster.ground().clone();
        spawn_local(worker_loop::run(ground, number, seed, cluster.size()));
    }
}

/// Draws when each client logs in, and starts the clients of the run.
fn start_clients(cluster: &Cluster, options: &Options, rng: &mut Rng) {
    let beats = options.beat.map(|each| Beats::new(clock::now(), options.seed, each));
    // Half of the runs begin with a mass login.
    let logins = if rng.one_in(2) { 0.5 } else { 10.0 };
    for number in 0..options.players {
        let (gateways, size) = (cluster.gateways(), cluster.size());
        let (ground, scenes) = (cluster.ground().clone(), options.scenes);
        let view_cap = options.view_cap.map_or(0, cluster::weak_cap) as u16;
        let walker = Walker { number, ground, gateways, size, scenes, view_cap, beats };
        let begins = Duration::from_secs_f64(logins * rng.unit());
        let seed = rng.seed();
        if options.only.player(number) {
            spawn_local(walker.play(seed, begins));
        }
    }
}

//! A whole cluster in one thread, under a clock that leaps from one event to the next: nodes, gateways and clients
//! as they are, over a network, a store and a shelf that are simulated and broken on purpose. One seed, one run.
//!
//! ```text
//!  Options ──► Cluster ──► Process ──► node or gateway, in a task set that can be stopped and ended
//!                 │  ▲                    │    ▲            │
//!     faults ─────┘  └── Net, LeaseWay, Memory              │ Witness: every region, every tick
//!                              │                            ▼
//!                 Walkers (the client library) ─────────► Judge ──► Violation: seed, step, invariant, last steps
//! ```
//!
//! *Absent on purpose:* the machine's clock, its network, its randomness; a second thread.

pub mod client;
pub mod cluster;
pub mod faults;
pub mod journal;
pub mod judge;
pub mod mutation;
pub mod network;
pub mod process;
pub mod report;
pub mod schedule;
pub mod shrink;
pub mod store;
mod virtual_clock;
mod whole;
pub mod will;

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
use faults::{Blow, Faults};
use journal::{Step, What};
use judge::{Invariant, Violation};
use schedule::{Recorder, Storm};

/// How long everything may take to be as it should be after the last fault: dead processes begin again, leases run
/// out, clients come back.
const SETTLES: Duration = Duration::from_secs(40);

/// Steps that are told of a violation.
const TOLD: usize = 60;

/// What is to be simulated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// From which everything follows.
    pub seed: u64,
    /// For how long, in the clock of the simulation.
    pub lasts: Duration,
    /// Nodes.
    pub nodes: u32,
    /// Gateways; where there are none, each node is one, too.
    pub gateways: u32,
    /// Clients.
    pub players: u32,
    /// What is done to it.
    pub faults: Faults,
    /// How many faults there may be at once, 1 or 2.
    pub at_once: u32,
    /// Most players in a view list; `None`: as many as the configuration has by default.
    pub view_cap: Option<u32>,
    /// In how many groups of planes the scene is cut, each with regions of its own; players are on two planes. At least 1.
    pub plane_groups: u32,
    /// How many scenes there are, 1 or 2: between them players jump.
    pub scenes: u32,
    /// Moves are judged: players say how they walk, and not where they are.
    pub judged: bool,
    /// Beasts roam the scenes, and things lie about them.
    pub fauna: bool,
    /// Clients speak together, at every so much of the time, a part of 200 ms; `None`: each at a time of its own. Fewer leaps
    /// of the clock, with more to do after each.
    pub beat: Option<Duration>,
    /// Ends before this step.
    pub until: Option<u64>,
    /// Prints every step.
    pub trace: bool,
    /// The deliberate bug that is in it.
    pub mutant: Option<Mutant>,
    /// Which of its faults and players are left out.
    pub only: Only,
}

/// What is left of a run. Everything else is drawn as if nothing were left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Only {
    /// The faults that are done, in their order from 0; `None`: all.
    pub faults: Option<Vec<u32>>,
    /// The clients that play; `None`: all.
    pub players: Option<Vec<u32>>,
}

impl Only {
    /// Whether this fault is done.
    pub fn fault(&self, number: u32) -> bool {
        self.faults.as_ref().is_none_or(|some| some.contains(&number))
    }

    /// Whether this client plays.
    pub fn player(&self, number: u32) -> bool {
        self.players.as_ref().is_none_or(|some| some.contains(&number))
    }
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// A number that two runs have in common if nothing differs between them.
    pub hash: u64,
    /// How many steps there were.
    pub steps: u64,
    /// How long it took in the clock of the simulation.
    pub virtual_time: Duration,
    /// For how long it had a core of the machine; where the system does not tell, how long it took.
    pub core_time: Duration,
    /// Frames that clients were shown.
    pub frames: u64,
    /// Inputs that they said.
    pub inputs: u64,
    /// Bytes that they were told.
    pub bytes: u64,
    /// How often everything was found as it should be at rest.
    pub rests: u32,
    /// Faults that were drawn, or that the schedule has.
    pub faults: u32,
    /// What was done, and when: by this the run can be done again.
    pub storms: Vec<Storm>,
    /// What must not be, and the last steps that concern it.
    pub violation: Option<(Violation, Vec<Step>)>,
}

/// Why nothing is simulated.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The scene.
    #[error(transparent)]
    Config(#[from] purview_server::config::ConfigErrors),
    /// The system.
    #[error("no runtime for the simulation: {0}")]
    Runtime(#[from] std::io::Error),
    /// The schedule.
    #[error(transparent)]
    Schedule(#[from] schedule::ScheduleError),
}

/// Simulates with faults that are drawn from the seed.
///
/// # Errors
/// [`SimError`]; that something is found is none.
pub fn simulate(options: &Options) -> Result<Outcome, SimError> {
    simulate_by(options, None)
}

/// Simulates with the faults of a schedule, or without one with those that are drawn from the seed.
///
/// # Errors
/// [`SimError`]; that something is found is none.
pub fn simulate_by(options: &Options, recorded: Option<&[Storm]>) -> Result<Outcome, SimError> {
    let runtime = virtual_clock::runtime()?;
    let hold = clock::Hold::new();
    let (began, had) = (Instant::now(), thread_cpu());
    mutants::set(options.mutant);
    let tasks = Rc::new(LocalSet::new());
    // In a task: what a set of tasks is run for it looks at whenever there is work for any of them.
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
    let over = {
        let (journal, judge) = (journal.clone(), judge.clone());
        move || judge.violation().is_some() || journal.is_over()
    };
    let (mut rests, mut faults) = (0, 0);
    let recorder = Recorder::default();
    let all = async {
        let mut waited = 0;
        while !cluster.is_whole() && waited < 300 {
            sleep(Duration::from_millis(100)).await;
            waited += 1;
        }
        if !cluster.is_whole() {
            let text = "the cluster does not come up within 30 s".into();
            judge.violated(Invariant::Quiescence, Vec::new(), text);
        }
        let beats = options.beat.map(|each| Beats::new(clock::now(), options.seed, each));
        // Half of the runs begin with a mass login.
        let logins = if rng.one_in(2) { 0.5 } else { 10.0 };
        for number in 0..options.players {
            let (gateways, size) = (cluster.gateways(), cluster.size());
            let (ground, scenes) = (cluster.ground().clone(), options.scenes);
            let walker = Walker { number, ground, gateways, size, scenes, beats };
            let begins = Duration::from_secs_f64(logins * rng.unit());
            let seed = rng.seed();
            if options.only.player(number) {
                spawn_local(walker.play(seed, begins));
            }
        }
        sleep(Duration::from_secs(12)).await;
        let storming = Storming { cluster: &cluster, options, recorder: &recorder };
        for storm in recorded.iter().flatten() {
            faults = faults.max(storm.faults());
            storming.repeat(storm).await;
            rest(&cluster).await;
            rests += 1;
        }
        while recorded.is_none() && journal.now() < options.lasts {
            storming.draw(&mut rng, &mut faults).await;
            rest(&cluster).await;
            rests += 1;
        }
    };
    let watch = async {
        while !over() {
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
        let steps = journal.last_of(&violation.who, TOLD);
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
        faults,
        storms: recorder.storms(),
        violation,
    })
}

/// What does faults to a cluster, and records them.
struct Storming<'a> {
    cluster: &'a Cluster,
    options: &'a Options,
    recorder: &'a Recorder,
}

impl Storming<'_> {
    fn now(&self) -> Duration {
        self.cluster.ground().journal.now()
    }

    /// Faults for a while that are drawn, which are counted.
    async fn draw(&self, rng: &mut Rng, count: &mut u32) {
        self.recorder.begins_storm();
        let until = self.now() + Duration::from_secs_f64(15.0 + 25.0 * rng.unit());
        let faults = &self.options.faults.0;
        while self.now() < until {
            sleep(Duration::from_secs_f64(0.2 + 4.0 * rng.unit())).await;
            let mut draw = |rng: &mut Rng| {
                let fault = *faults.get((rng.unit() * faults.len() as f64) as usize)?;
                let (number, own) = (*count, Rng::new(rng.seed()));
                *count += 1;
                Some((number, Blow::draw(fault, self.cluster, own)))
            };
            let one = draw(rng);
            let (also, after) = (rng.one_in(2), rng.unit());
            let two = if self.options.at_once > 1 && also { draw(rng) } else { None };
            self.recorder.begins_strike();
            let second = async {
                if let Some((number, blow)) = two {
                    sleep(Duration::from_secs_f64(after)).await;
                    self.strike(number, blow).await;
                }
            };
            let first = async {
                if let Some((number, blow)) = one {
                    sleep(Duration::ZERO).await;
                    self.strike(number, blow).await;
                }
            };
            futures::future::join(first, second).await;
            self.ends_strike().await;
        }
    }

    /// The faults of a recorded storm, each at its own time, or as soon as what came before is over.
    async fn repeat(&self, storm: &Storm) {
        self.recorder.begins_storm();
        for strike in &storm.strikes {
            self.recorder.begins_strike();
            let faults = strike.faults.iter().map(async |fault| {
                self.sleep_until(fault.at).await;
                self.strike(fault.number, fault.blow.clone()).await;
            });
            futures::future::join_all(faults).await;
            if let Some(over) = strike.over {
                self.sleep_until(over).await;
            }
            self.ends_strike().await;
        }
    }

    async fn sleep_until(&self, at: Duration) {
        sleep(at.saturating_sub(self.now())).await;
    }

    /// Does a fault, unless it is left out: then its time passes.
    async fn strike(&self, number: u32, blow: Blow) {
        if !self.options.only.fault(number) {
            return blow.pass().await;
        }
        self.recorder.strikes(number, self.now(), &blow);
        self.cluster.ground().journal.note(What::Fault(format!("fault {number}")));
        self.cluster.inflict(blow).await;
    }

    async fn ends_strike(&self) {
        self.recorder.ends_strike(self.now());
        self.cluster.revive();
        self.cluster.restore_what_is_down().await;
        self.cluster.look_at_bounds();
    }
}

/// Everybody stands still, and after a while everything is as it should be.
async fn rest(cluster: &Cluster) {
    let will = &cluster.ground().will;
    let (journal, judge) = (cluster.ground().journal.clone(), cluster.ground().judge.clone());
    journal.note(What::Fault("all is healed, and everybody stands".into()));
    judge.excuse(SETTLES);
    cluster.heal();
    will.stand(true);
    // Who has just begun to leave or to come does so.
    sleep(Duration::from_secs(2)).await;
    cluster.heal();
    match cluster.settles(SETTLES).await {
        Ok(()) => judge.acks_hold(),
        Err((who, text)) => {
            judge.ask_registers(&who);
            sleep(Duration::from_millis(150)).await;
            judge.violated(Invariant::Quiescence, who, text);
        }
    }
    judge.excuse_no_more();
    will.stand(false);
}

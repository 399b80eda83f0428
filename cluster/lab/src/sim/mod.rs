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
mod options;
pub mod portals;
mod process;
pub mod report;
pub mod sample;
pub mod schedule;
pub mod shrink;
pub mod sights;
pub mod store;
mod virtual_clock;
pub mod walls;
mod whole;
pub mod will;
pub mod worker_loop;
pub mod workers;
mod written;

use std::panic::resume_unwind;
use std::rc::Rc;
use std::time::Duration;

use anyhow::Context;
use purview::clock;
use purview::scene::mutants;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::sleep;

use crate::rng::Rng;
use crate::usage::thread_cpu;

use client::{Beats, Walker};
use cluster::Cluster;
use inject::{Injector, rest};
use journal::Step;
use judge::{Invariant, Violation};
use schedule::{Recorder, Storm};

pub use options::{Logic, Only, Options};

const STEPS_SHOWN: usize = 60;

/// The side of a region of the simulated scenes, centimetres.
const REGION_CM: i32 = 12_800;

#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// A hash over all steps: two identical runs have the same.
    pub hash: u64,
    pub steps: u64,
    pub virtual_time: Duration,
    /// The CPU time of the run.
    pub core_time: Duration,
    pub frames: u64,
    pub inputs: u64,
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

/// Runs a simulation with faults that are drawn from the seed.
pub fn simulate(options: &Options) -> anyhow::Result<Outcome> {
    simulate_by(options, None)
}

/// Runs a simulation with the faults of a schedule; without a schedule as [`simulate`].
pub fn simulate_by(options: &Options, recorded: Option<&[Storm]>) -> anyhow::Result<Outcome> {
    let runtime = virtual_clock::runtime().context("cannot start a runtime for the simulation")?;
    let hold = clock::Hold::new();
    let had = thread_cpu();
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
    outcome.core_time = thread_cpu().saturating_sub(had);
    Ok(outcome)
}

async fn run(options: &Options, recorded: Option<Vec<Storm>>) -> anyhow::Result<Outcome> {
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

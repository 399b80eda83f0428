//! `purview-lab bench`: runs the benchmarks of the lab and prints their results.

use std::io::{IsTerminal, Write};

use clap::Subcommand;
use purview_lab::bench::balance::{BenchBalanceArgs, bench_balance};
use purview_lab::bench::cluster::{self, BenchClusterArgs};
use purview_lab::bench::counting::{CountingWorkerArgs, counting_worker};
use purview_lab::bench::interest::{BenchInterestArgs, bench_interest};
use purview_lab::bench::live::{self, BenchLiveArgs};
use purview_lab::bench::logic::{BenchLogicArgs, bench_logic};
use purview_lab::bench::recovery::{BenchRecoveryArgs, bench_recovery};
use purview_lab::bench::scene::{BenchSceneArgs, bench_scene};
use purview_lab::bench::takeover::{BenchTakeoverArgs, bench_takeover};
use purview_lab::bench::views::{BenchViewsArgs, bench_views};

/// The benchmarks.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Measure the cost per player: one region on one core, all players walk, frames go to a counting sink.
    Scene(BenchSceneArgs),
    /// Compare view lists with those of the classic heuristic, on the same crowds.
    Views(BenchViewsArgs),
    /// Measure what players notice of migrations and node failures, and what more nodes cost.
    Cluster(BenchClusterArgs),
    /// Measure a server with bots over sockets: CPU time per player and tick, by scene, sessions and kernel.
    Live(BenchLiveArgs),
    /// Measure what interest management costs, in process and as a service.
    Interest(BenchInterestArgs),
    /// Measure what a logic worker over gRPC costs the server, and how late its answers are.
    Logic(BenchLogicArgs),
    /// Measure how long regions are without rules when a logic worker is killed, and count what is lost or repeated.
    Takeover(BenchTakeoverArgs),
    /// Measure for how long a region's death stops its players, and how that grows with their number.
    Recovery(BenchRecoveryArgs),
    /// Compare policies of balancing on paper: who runs which region, and where regions are cut.
    Balance(BenchBalanceArgs),
    /// A worker process of `purview-lab bench takeover`.
    #[command(hide = true)]
    CountingWorker(CountingWorkerArgs),
}

/// Runs `purview-lab bench`; the exit code says whether the result is valid.
///
/// # Errors
/// The arguments make no legal scene, or a file cannot be written.
pub fn run(command: &BenchCommand) -> anyhow::Result<u8> {
    match command {
        BenchCommand::Scene(args) => run_bench_scene(args),
        BenchCommand::Views(args) => run_bench_views(args),
        BenchCommand::Cluster(args) => cluster::run(args),
        BenchCommand::Live(args) => live::run(args),
        BenchCommand::Interest(args) => run_bench_interest(args),
        BenchCommand::Logic(args) => run_bench_logic(args),
        BenchCommand::Takeover(args) => run_bench_takeover(args),
        BenchCommand::Recovery(args) => run_bench_recovery(args),
        BenchCommand::Balance(args) => run_bench_balance(args),
        BenchCommand::CountingWorker(args) => counting_worker(args).map(|()| 0),
    }
}

/// Runs `purview-lab bench scene`; the exit code says whether every due frame was delivered.
///
/// # Errors
/// The arguments make no legal scene.
fn run_bench_scene(args: &BenchSceneArgs) -> anyhow::Result<u8> {
    let tty = std::io::stderr().is_terminal();
    let mut shown = 0;
    let result = bench_scene(args, &mut |done, of| {
        let percent = done * 100 / of;
        if tty && percent > shown {
            shown = percent;
            eprint!("\r{percent} %");
        }
    })?;
    if tty {
        eprintln!();
    }
    let mut out = std::io::stdout().lock();
    match args.json {
        true => writeln!(out, "{}", serde_json::to_string(&result)?)?,
        false => result.print(&mut out)?,
    }
    Ok(u8::from(!result.is_exact()))
}

/// Runs `purview-lab bench views`; the exit code says whether the view lists were valid.
///
/// # Errors
/// The arguments make no legal scene, or a file cannot be written.
fn run_bench_views(args: &BenchViewsArgs) -> anyhow::Result<u8> {
    let bench = bench_views(args, &mut |row| eprintln!("{row}"))?;
    let mut out = std::io::stdout().lock();
    match args.json {
        true => writeln!(out, "{}", serde_json::to_string(&bench)?)?,
        false => write!(out, "{}", bench.to_markdown())?,
    }
    for row in bench.unsound() {
        eprintln!("invalid view lists: {row}");
    }
    Ok(u8::from(!bench.is_sound()))
}

/// Runs `purview-lab bench interest`.
///
/// # Errors
/// The service does not start, or a file cannot be written.
fn run_bench_interest(args: &BenchInterestArgs) -> anyhow::Result<u8> {
    let program = purview_lab::testbed::program::purview()?;
    let bench = bench_interest(args, &program, &mut |row| eprintln!("{row}"))?;
    let mut out = std::io::stdout().lock();
    match args.json {
        true => writeln!(out, "{}", serde_json::to_string(&bench)?)?,
        false => write!(out, "{}", bench.to_markdown())?,
    }
    Ok(0)
}

/// Runs `purview-lab bench logic`.
///
/// # Errors
/// The server does not start, or the worker loses its connection.
fn run_bench_logic(args: &BenchLogicArgs) -> anyhow::Result<u8> {
    let bench = bench_logic(args)?;
    let mut out = std::io::stdout().lock();
    match args.json {
        true => writeln!(out, "{}", serde_json::to_string(&bench)?)?,
        false => write!(out, "{bench}")?,
    }
    Ok(0)
}

/// Runs `purview-lab bench takeover`; the exit code says whether every action was counted once.
///
/// # Errors
/// The server or a worker does not start, or a player loses its connection.
fn run_bench_takeover(args: &BenchTakeoverArgs) -> anyhow::Result<u8> {
    let bench = bench_takeover(args, &std::env::current_exe()?)?;
    let mut out = std::io::stdout().lock();
    match args.json {
        true => writeln!(out, "{}", serde_json::to_string(&bench)?)?,
        false => write!(out, "{bench}")?,
    }
    Ok(u8::from(!bench.is_exact()))
}

/// Runs `purview-lab bench recovery`.
///
/// # Errors
/// The arguments make no legal scene, or a region does not come to rest.
fn run_bench_recovery(args: &BenchRecoveryArgs) -> anyhow::Result<u8> {
    let bench = bench_recovery(args, &mut |row| eprintln!("{row}"))?;
    let mut out = std::io::stdout().lock();
    match args.json {
        true => writeln!(out, "{}", serde_json::to_string(&bench)?)?,
        false => bench.print(&mut out)?,
    }
    Ok(0)
}

/// Runs `purview-lab bench balance`.
///
/// # Errors
/// The results cannot be printed.
fn run_bench_balance(args: &BenchBalanceArgs) -> anyhow::Result<u8> {
    let bench = bench_balance(args, &mut |row| eprintln!("{row}"));
    let mut out = std::io::stdout().lock();
    match args.json {
        true => writeln!(out, "{}", serde_json::to_string(&bench)?)?,
        false => write!(out, "{bench}")?,
    }
    Ok(0)
}

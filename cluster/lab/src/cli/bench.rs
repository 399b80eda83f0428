//! `purview-lab bench`: runs the benchmarks of the lab and prints their results.

use clap::{Args, Subcommand};
use purview_lab::bench::balance::{BenchBalanceArgs, bench_balance};
use purview_lab::bench::cluster::market::{BenchMarketArgs, bench_market};
use purview_lab::bench::cluster::relocation::{BenchRelocationArgs, bench_relocation};
use purview_lab::bench::cluster::{BenchClusterArgs, bench_cluster};
use purview_lab::bench::counting::{CountingWorkerArgs, counting_worker};
use purview_lab::bench::interest::{BenchInterestArgs, bench_interest};
use purview_lab::bench::live::{BenchLiveArgs, bench_live};
use purview_lab::bench::logic::{BenchLogicArgs, bench_logic};
use purview_lab::bench::prediction::{BenchPredictionArgs, bench_prediction};
use purview_lab::bench::recovery::{BenchRecoveryArgs, bench_recovery};
use purview_lab::bench::scene::{BenchSceneArgs, bench_scene};
use purview_lab::bench::takeover::{BenchTakeoverArgs, bench_takeover};
use purview_lab::bench::views::{BenchViewsArgs, bench_views};
use purview_lab::shown::Shown;

/// `purview-lab bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// The benchmark.
    #[command(subcommand)]
    pub command: BenchCommand,
    /// Print one JSON object.
    #[arg(long, global = true)]
    pub json: bool,
}

/// The benchmarks.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Measure the cost per player: one region on one core, all players walk, frames go to a counting sink.
    Scene(BenchSceneArgs),
    /// Measure how stable view lists are, and what their negotiation costs.
    Views(BenchViewsArgs),
    /// Measure what players notice of migrations and node failures, and what more nodes cost.
    Cluster(BenchClusterArgs),
    /// Measure a server with bots over sockets: CPU time per player and tick, by scene, sessions and kernel.
    Live(BenchLiveArgs),
    /// Measure what interest management costs, in process and as a service.
    Interest(BenchInterestArgs),
    /// Measure what a logic worker over gRPC costs the server.
    Logic(BenchLogicArgs),
    /// Measure how long regions are without rules when a logic worker is killed, and count what is lost or repeated.
    Takeover(BenchTakeoverArgs),
    /// Measure for how long a region's death stops its players, and how that grows with their number.
    Recovery(BenchRecoveryArgs),
    /// Compare policies of balancing on paper: who runs which region, and where regions are cut.
    Balance(BenchBalanceArgs),
    /// Measure how far the loads that balancing predicts for other regions are from what these cost.
    Prediction(BenchPredictionArgs),
    /// Measure what balancing by load brings: groups wander across a map of four nodes, and back.
    Market(BenchMarketArgs),
    /// Measure what it costs to move a region, and to shift the border of two.
    Relocation(BenchRelocationArgs),
    /// A worker process of `purview-lab bench takeover`.
    #[command(hide = true)]
    CountingWorker(CountingWorkerArgs),
}

/// Runs `purview-lab bench`; the exit code says whether the result is valid.
pub fn run(args: &BenchArgs) -> anyhow::Result<u8> {
    let json = args.json;
    match &args.command {
        BenchCommand::Scene(args) => bench_scene(args)?.show(json),
        BenchCommand::Views(args) => bench_views(args)?.show(json),
        BenchCommand::Cluster(args) => bench_cluster(args)?.show(json),
        BenchCommand::Live(args) => bench_live(args)?.show(json),
        BenchCommand::Interest(args) => bench_interest(args)?.show(json),
        BenchCommand::Logic(args) => bench_logic(args)?.show(json),
        BenchCommand::Takeover(args) => bench_takeover(args)?.show(json),
        BenchCommand::Recovery(args) => bench_recovery(args)?.show(json),
        BenchCommand::Balance(args) => bench_balance(args)?.show(json),
        BenchCommand::Prediction(args) => bench_prediction(args)?.show(json),
        BenchCommand::Market(args) => bench_market(args)?.show(json),
        BenchCommand::Relocation(args) => bench_relocation(args)?.show(json),
        BenchCommand::CountingWorker(args) => counting_worker(args).map(|()| 0),
    }
}

//! `purview-lab load cheat`: the cheat trial.

use std::time::Duration;

use anyhow::Context;
use clap::Args;
use purview_demo::flags::{ConfigFlags, time};
use purview_lab::cheat::{Field, TrialOptions, TrialServer, gang, trial};
use purview_lab::shown::Shown;

use super::clients::runtime;

/// Try every class of cheat beside honest players.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Starts a server in this process.\n\n\
    Exit codes: 0 no cheat gained too much and no honest player was refused; 1 failed, or one did or was; \
    2 invalid command line.")]
pub struct CheatArgs {
    /// Configuration file, overrides and log level of the server.
    #[command(flatten)]
    pub common: ConfigFlags,
    /// The number of honest players that roam beside the cheats.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub count: u32,
    /// How long the clients move, for example 30s or 5m.
    #[arg(long = "for", value_name = "TIME", default_value = "1m", value_parser = time)]
    pub length: Duration,
    /// The seed of the bad network and of the honest players.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print the report as one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// Runs the cheat trial; the exit code says whether the server passed it.
pub fn run_cheat(args: &CheatArgs) -> anyhow::Result<u8> {
    let config = args.common.load_or(&Field::built_in()?)?;
    let (honest, length, seed) = (args.count, args.length, args.seed);
    let options = TrialOptions { honest, length, seed, ..TrialOptions::default() };
    let scenes = config.build_scenes()?;
    let scene = scenes.first().context("the configuration has no scene")?;
    let field = Field::find(scene, length)?;
    let _logs = purview_server::logs::init(&config.log)?;
    let server = TrialServer::start(config)?;
    let access = server.access(honest)?;
    eprintln!("all bots join, then move for {} s", length.as_secs_f64());
    let runtime = runtime()?;
    let mut trial = runtime.block_on(trial(&access, &field, &options))?;
    drop(server);
    for fights in ["clients", "logic"] {
        trial.gangs.push(runtime.block_on(gang(fights))?);
    }
    trial.show(args.json)
}

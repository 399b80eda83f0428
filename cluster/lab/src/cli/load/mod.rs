//! `purview-lab load`: clients over sockets, and the oracle that checks what each is shown.

mod cheat;
mod clients;
mod replay;
mod walk;
mod world;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use purview_lab::load::report::Report;
use purview_lab::shown::Shown;

/// What a server runs on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Engine {
    /// One process that contains everything.
    #[default]
    Embedded,
    /// Several processes with an etcd and a PostgreSQL; the command starts all of them and ends them with itself.
    Etcd,
}

/// The loads.
#[derive(Debug, Subcommand)]
pub enum LoadCommand {
    /// Let bots walk, on a running server or in the demo world of `purview dev`.
    Walk(walk::WalkArgs),
    /// Try every class of cheat beside honest players.
    Cheat(cheat::CheatArgs),
    /// Replay recorded movement.
    Replay(replay::ReplayArgs),
    /// Make one report of the reports of several machines, files of `walk --json`.
    Report(ReportArgs),
}

/// Make one report of several.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The reports, in JSON.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Print the report as one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// Runs a load; the exit code is 1 when a client was shown something wrong, or a cheat gained too much.
pub fn run(command: &LoadCommand) -> anyhow::Result<u8> {
    match command {
        LoadCommand::Walk(args) => match &args.server.connect {
            Some(url) => walk::run_walk(args, url),
            None => world::run(args),
        },
        LoadCommand::Cheat(args) => cheat::run_cheat(args),
        LoadCommand::Replay(args) => replay::run_replay(args),
        LoadCommand::Report(args) => Report::of_files(&args.files)?.show(args.json),
    }
}

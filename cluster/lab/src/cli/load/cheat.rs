//! `purview-lab load cheat`: the cheat trial.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use purview_client::Trust;
use purview_demo::flags::{ConfigFlags, time};
use purview_lab::cheat::{Field, TrialOptions, TrialServer, trial};

use super::clients::{knock, runtime, token};

/// Try every class of cheat beside honest players.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview-lab load cheat\n  \
    purview-lab load cheat --config deploy/scenes/trial.toml --connect ws://127.0.0.1:7711/\n\n\
    Starts a server in this process. With --connect it uses a running server, which must have the same \
    configuration; cheats that change their sessions are not tried there.\n\n\
    Exit codes: 0 no cheat gained too much and no honest player was refused; 1 failed, or one did or was; \
    2 invalid command line.")]
pub struct CheatArgs {
    /// Configuration file, overrides and log level of the server.
    #[command(flatten)]
    pub common: ConfigFlags,
    /// The server: ws:// or tcp://host:port [default: start one].
    #[arg(long, value_name = "URL")]
    pub connect: Option<String>,
    /// The number of honest players that roam beside the cheats.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub count: u32,
    /// How long the clients move, for example 30s or 5m.
    #[arg(long = "for", value_name = "TIME", default_value = "1m", value_parser = time)]
    pub length: Duration,
    /// The seed of the bad network and of the honest players.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The scene to join [default: the first scene of the configuration].
    #[arg(long, value_name = "NAME")]
    pub scene: Option<String>,
    /// A file with the tokens that admit the clients, one a line.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Print the report as one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// Runs the cheat trial; the exit code says whether the server passed it.
///
/// # Errors
/// The scene has no room for the trial, or no server can be started.
pub fn run_cheat(args: &CheatArgs) -> anyhow::Result<u8> {
    let config = args.common.load_or(&Field::built_in()?)?;
    let (honest, length, seed) = (args.count, args.length, args.seed);
    let mut options = TrialOptions { honest, length, seed, ..TrialOptions::default() };
    let scenes = config.build_scenes()?;
    let named = |name: &String| scenes.iter().find(|scene| scene.spec.name == *name);
    let scene = match &args.scene {
        Some(name) => {
            named(name).with_context(|| format!("the configuration has no scene {name:?}"))?
        }
        None => scenes.first().context("the configuration has no scene")?,
    };
    let field = Field::find(scene, options.length)?;
    let _logs = purview_server::logs::init(&config.log)?;
    let mut own = None;
    let (url, tokens) = match &args.connect {
        Some(url) => {
            let token = token(args.token_file.as_deref())?;
            let tokens: Vec<String> = token.lines().map(str::to_owned).collect();
            let first = tokens.first().map_or("", String::as_str);
            runtime()?.block_on(knock(url, first, &Trust::platform()))?;
            (url.clone(), tokens)
        }
        None => {
            let access = own.insert(TrialServer::start(config)?).access(options.honest)?;
            options.sessions = Some(access.sessions);
            (access.url, access.tokens)
        }
    };
    eprintln!("all bots join, then move for {} s", options.length.as_secs_f64());
    let trial = runtime()?.block_on(trial(&url, &tokens, field, &options))?;
    drop(own);
    trial.print(args.json);
    Ok(trial.exit_code())
}

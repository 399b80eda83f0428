//! `purview bots`: a load of bots on a server, and the cheat trial.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use purview_client::Trust;
use purview_lab::args::positive;
use purview_lab::cheat::{Field, TrialOptions, TrialServer, trial};
use purview_lab::load::bots::{BotsOptions, Pattern, bots};
use purview_lab::load::clients::Progress;
use purview_lab::oracle::Options;

use super::clients::{finish, knock, runtime, token, trust};
use crate::args::{CommonArgs, duration};

/// Load a server with bots and check what each bot is shown.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview bots --connect ws://127.0.0.1:7711/ --count 500 --for 5m\n  \
    purview bots --pattern cheat\n  \
    purview bots --pattern cheat --config deploy/trial.toml --connect ws://127.0.0.1:7711/\n\n\
    The cheat trial starts a server in this process. With --connect it uses a running server, which must \
    have the same configuration.\n\n\
    Exit codes: 0 no error found; 1 failed, a bot was shown something wrong, a cheat gained too much, or an \
    honest bot was refused; 2 invalid command line.")]
pub struct BotsArgs {
    /// Configuration file, overrides and log level of the server that the cheat trial starts.
    #[command(flatten)]
    pub common: CommonArgs,
    /// The server: ws://, wss://, tcp:// or tls://host:port; required except for the cheat trial.
    #[arg(long, value_name = "URL")]
    pub connect: Option<String>,
    /// The number of bots [default: 100; in the cheat trial 20 honest bots beside the cheats].
    #[arg(long)]
    pub count: Option<u32>,
    /// How long the bots move, for example 30s, 5m or 500ms [default: 30s; in the cheat trial 1m].
    #[arg(long = "for", value_parser = duration)]
    pub length: Option<Duration>,
    /// How the bots move.
    #[arg(long, value_enum, default_value_t = Pattern::Walk)]
    pub pattern: Pattern,
    /// The seed of the bots' movement; the same seed repeats it.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Keep the bots in a square of this side, metres, around the centre of the map.
    #[arg(long, value_name = "METRES", value_parser = positive)]
    pub area: Option<f64>,
    /// The distance between the borders to cross, metres, for the pattern border [default: the centre lines].
    #[arg(long, value_name = "METRES", value_parser = positive)]
    pub border_every: Option<f64>,
    /// The scene to join [default: meadow; in the cheat trial the first scene of the configuration].
    #[arg(long)]
    pub scene_name: Option<String>,
    /// A file with the token that admits the bots, or with several, one a line: each bot takes the next one.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// A PEM file with the trusted authorities for wss:// and tls:// [default: those of the machine].
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Print the report as one JSON object at the end.
    #[arg(long)]
    pub json: bool,
    /// The address of the server's console, http://host:port, to read the tick times from.
    #[arg(long, value_name = "URL")]
    pub admin: Option<String>,
}

impl BotsArgs {
    /// The options of the load.
    pub fn options(&self) -> BotsOptions {
        let cm = |m: f64| (m * 100.0) as i32;
        BotsOptions {
            count: self.count.unwrap_or(100),
            length: self.length.unwrap_or(Duration::from_secs(30)),
            pattern: self.pattern,
            seed: self.seed,
            area_cm: self.area.map(cm),
            border_every_cm: self.border_every.map(|m| cm(m).max(1)),
            scene: self.scene_name.clone().unwrap_or_else(|| "meadow".into()),
            oracle: Options::default(),
            map: None,
            trust: Trust::default(),
        }
    }
}

/// Runs `purview bots`; the exit code is 1 when a bot was shown something wrong.
///
/// # Errors
/// The token cannot be read, the server does not accept it, or no thread can be started.
pub fn run_bots(args: &BotsArgs, url: &str) -> anyhow::Result<u8> {
    let token = token(args.token_file.as_deref())?;
    let options = BotsOptions { trust: trust(args.ca.as_deref())?, ..args.options() };
    let first = token.lines().next().unwrap_or_default();
    runtime()?.block_on(knock(url, first, &options.trust))?;
    let report = runtime()?.block_on(bots(url, &token, options, Progress::Stderr))?;
    finish(report, args.admin.as_deref(), args.json)
}

/// Runs the cheat trial; the exit code says whether the server passed it.
///
/// # Errors
/// The scene has no room for the trial, or no server can be started.
pub fn run_trial(args: &BotsArgs) -> anyhow::Result<u8> {
    let config = args.common.load_or(&Field::built_in()?)?;
    let mut options = TrialOptions { seed: args.seed, ..TrialOptions::default() };
    options.honest = args.count.unwrap_or(options.honest);
    options.length = args.length.unwrap_or(options.length);
    let scenes = config.build_scenes()?;
    let named = |name: &String| scenes.iter().find(|scene| scene.spec.name == *name);
    let scene = match &args.scene_name {
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

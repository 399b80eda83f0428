//! `purview bots`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use purview::actor::player::Planes;
use purview_client::Trust;
use purview_lab::args::positive;
use purview_lab::cheat::{Field, TrialOptions, trial};
use purview_lab::load::bots::{BotsOptions, Pattern, bots};
use purview_lab::load::clients::Progress;
use purview_lab::oracle::Options;
use purview_server::logins::Duplicate;
use purview_server::process::{Background, run_tokens};

use super::clients::{HOLDS, finish, knock, runtime, token, trust};
use crate::args::{CommonArgs, duration};

/// Load a server with bots and judge what every one is shown
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview bots --connect ws://127.0.0.1:7711/ --count 500 --for 5m\n  \
    purview bots --pattern cheat\n  \
    purview bots --pattern cheat --config deploy/trial.toml --connect ws://127.0.0.1:7711/\n\n\
    The trial of cheats starts a server in this process unless --connect names one; that one must run \
    the configuration that is given here. It exits with 1 when a cheat gained too much or an honest bot \
    was refused.")]
pub struct BotsArgs {
    /// File, overrides and log level of the server that the trial of cheats is held on.
    #[command(flatten)]
    pub common: CommonArgs,
    /// The server: ws://, wss://, tcp:// or tls://host:port; only the trial of cheats can do without
    #[arg(long, value_name = "URL")]
    pub connect: Option<String>,
    /// How many bots; default: 100, in the trial of cheats 20 honest ones beside the others
    #[arg(long)]
    pub count: Option<u32>,
    /// For how long, for example 30s, 5m or 500ms; default: 30s, the trial of cheats a minute
    #[arg(long = "for", value_parser = duration)]
    pub length: Option<Duration>,
    /// How they move
    #[arg(long, value_enum, default_value_t = Pattern::Walk)]
    pub pattern: Pattern,
    /// The same seed makes bots do the same
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Keep to a square of this side in metres around the map's middle
    #[arg(long, value_name = "METRES", value_parser = positive)]
    pub area: Option<f64>,
    /// Distance between the borders to cross, metres (pattern border); default: the middle lines
    #[arg(long, value_name = "METRES", value_parser = positive)]
    pub border_every: Option<f64>,
    /// The scene to join; default: meadow, in the trial of cheats the first one of the configuration
    #[arg(long)]
    pub scene_name: Option<String>,
    /// A file with the token that lets bots in
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// A file (PEM) with the authorities that are believed of wss:// and tls://; default: those of the machine
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// End standard output with the report as one JSON object
    #[arg(long)]
    pub json: bool,
    /// The server's admin address, http://host:port, to ask for its tick times
    #[arg(long, value_name = "URL")]
    pub admin: Option<String>,
}

impl BotsArgs {
    /// What the flags say of the bots.
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

/// Runs `purview bots` to its end; the exit code says whether anything was wrong.
///
/// # Errors
/// The token cannot be read or the system gives no threads.
pub fn run_bots(args: &BotsArgs, url: &str) -> anyhow::Result<u8> {
    let token = token(args.token_file.as_deref())?;
    let options = BotsOptions { trust: trust(args.ca.as_deref())?, ..args.options() };
    runtime()?.block_on(knock(url, &token, &options.trust))?;
    let report = runtime()?.block_on(bots(url, &token, options, Progress::Stderr))?;
    finish(report, args.admin.as_deref(), args.json)
}

/// Runs the trial of cheats to its end; the exit code says whether it was passed.
///
/// # Errors
/// The scene has no room for it, or no server can be started.
pub fn run_trial(args: &BotsArgs) -> anyhow::Result<u8> {
    let mut config = args.common.load_or(&Field::built_in()?)?;
    let mut options = TrialOptions { seed: args.seed, ..TrialOptions::default() };
    options.honest = args.count.unwrap_or(options.honest);
    options.length = args.length.unwrap_or(options.length);
    let scenes = config.build_scenes()?;
    let named = |name: &String| scenes.iter().find(|scene| scene.spec.name == *name);
    let scene = match &args.scene_name {
        Some(name) => named(name).with_context(|| format!("there is no scene {name:?}"))?,
        None => scenes.first().context("there is a scene")?,
    };
    let field = Field::find(scene, options.length)?;
    let _logs = purview_server::logs::init(&config.log)?;
    let mut server = None;
    let (url, token) = match &args.connect {
        Some(url) => {
            let token = token(args.token_file.as_deref())?;
            runtime()?.block_on(knock(url, &token, &Trust::platform()))?;
            (url.clone(), token)
        }
        None => {
            config.gateway.ws.set_port(0);
            config.gateway.tcp = None;
            config.console.listen = None;
            config.token.duplicate = Some(Duplicate::Allow);
            let tokens = run_tokens(&config)?;
            let token = tokens.mint_for("trial", Some(HOLDS), &Planes::Any)?;
            let started = server.insert(Background::start(config, tokens)?);
            (started.reach().url().context("clients can connect")?, token)
        }
    };
    eprintln!("everybody joins, then walks for {} s", options.length.as_secs_f64());
    let trial = runtime()?.block_on(trial(&url, &token, field, &options))?;
    drop(server);
    trial.print(args.json);
    Ok(trial.exit_code())
}

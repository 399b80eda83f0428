//! The `purview` command: what it understands, and how it says that something went wrong.

use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use purview::scene::SceneSpec;
use serde_json::json;

use crate::backup::command::{BackupArgs, RestoreArgs, run_backup, run_restore};
use crate::bench::cluster::BenchClusterArgs;
use crate::bench::scene::BenchSceneArgs;
use crate::bench::views::BenchViewsArgs;
use crate::bots::{BotsArgs, Pattern};
use crate::certs::{CertsArgs, run_certs};
use crate::commands;
use crate::config::{Config, ConfigErrors, Override};
use crate::ctl::{self, CtlCommand};
use crate::dev::DevArgs;
use crate::node::command::{GatewayArgs, NodeArgs, run_gateway, run_node};
use crate::replay::ReplayArgs;
use crate::sim::command::SimArgs;
use crate::stop;
use crate::token_command::{TokenArgs, run_token};

/// A seamless scene cluster for massively multiplayer worlds.
#[derive(Debug, Parser)]
#[command(
    name = "purview",
    version,
    after_help = "Examples:\n  \
        purview dev\n  \
        purview replay crowd.csv.gz --speed 20\n  \
        purview check deploy/dev.toml\n  \
        purview config --set tick=50ms > purview.toml\n  \
        purview ctl why 17 42\n\n\
        Exit codes: 0 done, 1 failed, 2 not understood; a command that has more says so."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What the command can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Validate a configuration file and tell everything that is wrong with it.
    Check(CheckArgs),
    /// Print the whole configuration in force as TOML, each key explained.
    Config(ConfigArgs),
    /// Run everything in one process, with bots that walk and a console to watch them.
    Dev(Box<DevArgs>),
    /// Run one process of a cluster that owns regions.
    Node(NodeArgs),
    /// Run one process of a cluster that holds clients' sessions.
    Gateway(GatewayArgs),
    /// Write everything that is kept to one file.
    Backup(BackupArgs),
    /// Put everything of such a file back.
    Restore(RestoreArgs),
    /// Make an authority and certificates, to develop with.
    Certs(CertsArgs),
    /// Sign a token that lets a client in.
    Token(TokenArgs),
    /// Replay a recording through real clients and judge what every one of them is shown.
    Replay(ReplayArgs),
    /// Load a server with bots and judge what every one of them is shown.
    Bots(BotsArgs),
    /// Simulate a cluster in one thread, break it on purpose, and judge what becomes of it.
    Sim(SimArgs),
    /// Measure what the scene costs, and what its view lists are worth.
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Ask a running server.
    #[command(subcommand)]
    Ctl(CtlCommand),
}

/// What can be measured.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Players who all walk, one region on one core, frames to a counting sink.
    Scene(BenchSceneArgs),
    /// View lists beside those of the classic heuristic, on the same crowds.
    Views(BenchViewsArgs),
    /// What players notice when regions move and nodes end, and what more nodes cost.
    Cluster(BenchClusterArgs),
}

/// The flags that every command with a configuration has.
#[derive(Debug, Clone, Default, Args)]
pub struct CommonArgs {
    /// The configuration file; without one every default counts.
    #[arg(
        long = "config",
        visible_aliases = ["scene", "file"],
        value_name = "FILE",
        env = "PURVIEW_CONFIG"
    )]
    pub file: Option<PathBuf>,
    /// Override one key, for example `gateway.ws=127.0.0.1:0`; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<Override>,
    /// Level of log lines, for example `debug`; short for `--set log.level=LEVEL`.
    #[arg(long, value_name = "LEVEL")]
    pub log: Option<String>,
}

impl CommonArgs {
    /// The configuration in force: file, environment, flags.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn load(&self) -> Result<Config, ConfigErrors> {
        Config::load(self.file.as_deref(), environment(), &self.overrides())
    }

    /// As [`CommonArgs::load`], with a scene of the command's own where no file says otherwise;
    /// environment and flags override its keys, too. `scene` is told the length of a tick,
    /// milliseconds.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn load_with(&self, scene: impl FnOnce(u32) -> SceneSpec) -> Result<Config, ConfigErrors> {
        if self.file.is_some() {
            let mut config = self.load()?;
            if config.scenes == Config::default().scenes {
                config.scenes = vec![scene(config.tick_ms).into()];
            }
            return Ok(config);
        }
        let set = self.overrides();
        let tick: Vec<_> = set.iter().filter(|o| o.path == "tick").cloned().collect();
        let tick_ms = environment().filter(|(name, _)| name == "PURVIEW_TICK");
        let tick_ms = Config::load(None, tick_ms, &tick)?.tick_ms;
        let own = Config { tick_ms, scenes: vec![scene(tick_ms).into()], ..Config::default() };
        Config::load_onto(&own, environment(), &set)
    }

    /// As [`CommonArgs::load`], onto `base` where no file is named.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn load_or(&self, base: &Config) -> Result<Config, ConfigErrors> {
        match self.file {
            Some(_) => self.load(),
            None => Config::load_onto(base, environment(), &self.overrides()),
        }
    }

    fn overrides(&self) -> Vec<Override> {
        let log = self.log.iter().map(|l| Override { path: "log.level".into(), value: l.clone() });
        self.set.iter().cloned().chain(log).collect()
    }
}

/// The environment, save what is not text and so is no setting.
fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
}

/// By what the parts of a server agree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Engine {
    /// Everything in one process.
    #[default]
    Embedded,
    /// Processes of their own, with an etcd between them; all are started here and end with this.
    Etcd,
}

/// `purview check`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    purview check deploy/station.toml\n  \
    purview check purview.toml --json\n\n\
    Exits with 0 and a summary, or with 1 and every error. The environment and flags do not count: \
    the file is what is checked.")]
pub struct CheckArgs {
    /// The file; - is standard input.
    pub file: PathBuf,
    /// Print one JSON object instead.
    #[arg(long)]
    pub json: bool,
}

/// `purview config`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    purview config > purview.toml\n  \
    purview config --file deploy/station.toml --set scene.0.view_cap=20\n  \
    PURVIEW_GATEWAY__WS=0.0.0.0:7711 purview config --json")]
pub struct ConfigArgs {
    /// File, overrides and log level.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Print one JSON object instead.
    #[arg(long)]
    pub json: bool,
}

/// Why a command did not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The command line asks for something that does not fit together. Nothing was done.
    #[error("{0}")]
    Usage(String),
    /// The configuration is wrong. Nothing was done.
    #[error("{0}")]
    Config(#[from] ConfigErrors),
    /// The command ran, and its own output has told already why it ends with this exit code.
    #[error("")]
    Told(u8),
    /// Something else went wrong on the way.
    #[error("{}", chain(.0))]
    Failed(#[from] anyhow::Error),
}

impl CliError {
    /// The exit code: 2 for what was not understood, 1 for what failed, or the command's own.
    pub fn code(&self) -> u8 {
        match self {
            CliError::Usage(_) => 2,
            CliError::Told(code) => *code,
            CliError::Config(_) | CliError::Failed(_) => 1,
        }
    }
}

/// An error and its causes, each that the text before does not end with already.
fn chain(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |text, cause| {
        match text.ends_with(&cause) {
            true => text,
            false if text.is_empty() => cause,
            false => format!("{text}: {cause}"),
        }
    })
}

/// Runs a command line to its end.
pub fn run(cli: Cli) -> ExitCode {
    let done = match cli.command {
        Command::Check(args) => check(&args),
        Command::Config(args) => config(&args),
        Command::Dev(args) if args.tls && args.engine == Engine::Embedded => {
            Err(CliError::Usage("--tls is between processes: it wants --engine etcd".into()))
        }
        Command::Dev(args) => ended(crate::dev::dev(&args)),
        Command::Node(args) => ended(run_node(&args)),
        Command::Gateway(args) => ended(run_gateway(&args)),
        Command::Backup(args) => ended(run_backup(&args)),
        Command::Restore(args) => ended(run_restore(&args)),
        Command::Certs(args) => ended(run_certs(&args)),
        Command::Token(args) => ended(run_token(&args)),
        Command::Replay(args) => ended(commands::run_replay(&args)),
        Command::Bots(args) if args.pattern == Pattern::Cheat => ended(commands::run_trial(&args)),
        Command::Bots(args) => match &args.connect {
            Some(url) => ended(commands::run_bots(&args, url)),
            None => Err(CliError::Usage(
                "bots want a server: --connect <URL>, for example ws://localhost:7000/".into(),
            )),
        },
        Command::Sim(args) => ended(crate::sim::command::run_sim(&args)),
        Command::Bench(BenchCommand::Scene(args)) => ended(commands::run_bench_scene(&args)),
        Command::Bench(BenchCommand::Cluster(args)) => ended(crate::bench::cluster::run(&args)),
        Command::Bench(BenchCommand::Views(args)) => ended(commands::run_bench_views(&args)),
        Command::Ctl(command) => ended(ctl::run(&command)),
    };
    let Err(error) = done else { return ExitCode::SUCCESS };
    for line in error.to_string().lines() {
        eprintln!("error: {line}");
    }
    ExitCode::from(error.code())
}

/// How a command ended that printed its own result and says whether it was good.
fn ended(code: anyhow::Result<u8>) -> Result<(), CliError> {
    match code {
        Ok(0) => Ok(()),
        Ok(code) => Err(CliError::Told(code)),
        // Everything that is wrong with a configuration stands on a line of its own.
        Err(e) => Err(e.downcast::<ConfigErrors>().map_or_else(CliError::Failed, CliError::Config)),
    }
}

/// Writes to standard output. A reader that has heard enough (`| head`) is no error.
fn say(text: &str) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(anyhow::Error::new(e).context("standard output cannot be written").into())
        }
        _ => Ok(()),
    }
}

/// `purview config`: prints the configuration in force.
fn config(args: &ConfigArgs) -> Result<(), CliError> {
    let text = args.common.load()?.to_toml();
    if !args.json {
        return say(&text);
    }
    let table: toml::Table = text.parse().map_err(anyhow::Error::from)?;
    let json = serde_json::to_string(&table).map_err(anyhow::Error::from)?;
    say(&format!("{json}\n"))
}

/// `purview check`: tells what a file says, or everything that is wrong with it.
fn check(args: &CheckArgs) -> Result<(), CliError> {
    let loaded = if args.file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(|e| anyhow::Error::new(e).context("standard input cannot be read"))?;
        Config::parse(&text)
    } else {
        Config::load(Some(&args.file), [], &[])
    };
    match loaded {
        Ok(config) if args.json => say(&format!("{}\n", summary_json(&config)?)),
        Ok(config) => say(&summary(&args.file, &config)?),
        Err(errors) if args.json => {
            say(&format!("{}\n", errors_json(&errors)))?;
            Err(CliError::Told(1))
        }
        Err(errors) => Err(errors.into()),
    }
}

/// What a legal file says, for people.
fn summary(file: &Path, config: &Config) -> Result<String, ConfigErrors> {
    let mut out = format!("{}: in order, a tick every {} ms\n", file.display(), config.tick_ms);
    for scene in config.build_scenes()? {
        let s = &scene.spec;
        let metres = |cm: i32| f64::from(cm) / 100.0;
        let (regions, lands) = (scene.map.regions.len(), s.land_cm);
        out += &format!(
            "scene {:?}: {} m x {} m; {regions} region(s) of {} x {} lands of {} m; {:?}, range {} m; \
             band {} m; moves {}; {} line(s) of {} players\n",
            s.name,
            metres(s.width_cm),
            metres(s.depth_cm),
            s.region_lands_x,
            s.region_lands_z,
            metres(lands),
            s.visibility,
            metres(scene.reach_cm),
            metres(scene.band_cm),
            if scene.judged.is_some() { "judged" } else { "trusted" },
            s.lines,
            s.line_capacity,
        );
        if let Some(t) = &scene.terrain {
            out += &format!(
                "  map of {} x {} tiles of {} m, {} of them blocked; {}; {} door(s)\n",
                t.width(),
                t.depth(),
                metres(t.tile_cm()),
                t.blocked_tiles(),
                if t.has_heights() { "with heights" } else { "flat" },
                t.doors().len(),
            );
        }
    }
    let (total, grace) = (stop::total(config), config.server.grace);
    out += &format!(
        "asked to end, a process ends within {} s ({}); it is killed after {} s (server.grace)\n",
        total.as_secs_f64(),
        stop::text(config),
        grace.as_secs_f64()
    );
    let files = config.token.files();
    if let Err(e) = files.read().and_then(|contents| files.keys(&contents)) {
        out += &format!("note: {e}\n");
    }
    let logins = [config.cluster.etcd_login().err(), config.cluster.postgres_login().err()];
    out.extend(logins.iter().flatten().map(|e| format!("note: {e}\n")));
    Ok(out)
}

/// What a legal file says, for machines.
fn summary_json(config: &Config) -> Result<serde_json::Value, ConfigErrors> {
    let scenes: Vec<_> = config
        .build_scenes()?
        .iter()
        .map(|scene| {
            json!({
                "name": scene.spec.name,
                "width_cm": scene.spec.width_cm,
                "depth_cm": scene.spec.depth_cm,
                "regions": scene.map.regions.len(),
                "range_cm": scene.reach_cm,
                "band_cm": scene.band_cm,
                "lines": scene.spec.lines,
                "line_capacity": scene.spec.line_capacity,
                "map": scene.terrain.as_ref().map(|t| json!({
                    "tile_cm": t.tile_cm(),
                    "width": t.width(),
                    "depth": t.depth(),
                    "blocked": t.blocked_tiles(),
                    "heights": t.has_heights(),
                    "doors": t.doors().iter().map(|d| &d.name).collect::<Vec<_>>(),
                })),
            })
        })
        .collect();
    let ms = |time: std::time::Duration| time.as_millis() as u64;
    let (end_ms, grace_ms) = (ms(stop::total(config)), ms(config.server.grace));
    Ok(json!({
        "ok": true,
        "tick_ms": config.tick_ms,
        "end_ms": end_ms,
        "grace_ms": grace_ms,
        "scenes": scenes,
    }))
}

fn errors_json(errors: &ConfigErrors) -> serde_json::Value {
    let tell = |e: &crate::config::ConfigError| {
        json!({
            "at": e.origin.to_string(),
            "key": e.key,
            "found": e.found,
            "rule": e.rule,
            "message": e.to_string(),
        })
    };
    json!({ "ok": false, "errors": errors.0.iter().map(tell).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_set_without_a_value_is_a_usage_error_with_an_example() {
        let error = Cli::try_parse_from(["purview", "config", "--set", "tick"]).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("for example gateway.ws=127.0.0.1:0"), "{error}");
    }

    #[test]
    fn scene_and_file_are_other_names_of_config() {
        for flag in ["--config", "--scene", "--file"] {
            let cli = Cli::try_parse_from(["purview", "config", flag, "a.toml"]).unwrap();
            let Command::Config(args) = cli.command else { panic!("{flag}") };
            assert_eq!(args.common.file, Some("a.toml".into()));
        }
    }

    #[test]
    fn the_log_flag_overrides_the_level() {
        let cli = Cli::try_parse_from(["purview", "config", "--log", "debug"]).unwrap();
        let Command::Config(args) = cli.command else { panic!("not config") };
        assert_eq!(args.common.load().unwrap().log.level, "debug");
    }

    #[test]
    fn the_summary_tells_regions_band_and_range() {
        let config = Config::default();
        assert_eq!(
            summary(Path::new("a.toml"), &config).unwrap(),
            "a.toml: in order, a tick every 100 ms\n\
             scene \"meadow\": 2048 m x 2048 m; 4 region(s) of 2 x 2 lands of 512 m; Patches, range \
             96 m; band 139 m; moves judged; 4 line(s) of 2000 players\n\
             asked to end, a process ends within 56 s (order 4 s + drain 30 s + gateway 5 s + flush \
             5 s + console 2 s + leave 10 s); it is killed after 60 s (server.grace)\n"
        );
        assert_eq!(summary_json(&config).unwrap()["scenes"][0]["regions"], 4);
    }

    #[test]
    fn errors_are_told_to_machines_with_key_and_place() {
        let errors = Config::parse("[[scene]]\nland = 3").unwrap_err();
        let told = errors_json(&errors);
        assert_eq!(told["errors"][0]["key"], "scene.0.land");
        assert_eq!(told["errors"][0]["at"], "config:2");
    }
}

//! `purview-lab load walk`: bots on a running server, or in the demo world of `purview dev`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use purview_client::Trust;
use purview_demo::flags::{ConfigFlags, time};
use purview_lab::args::positive;
use purview_lab::load::bots::{BotsOptions, Pattern, bots};
use purview_lab::load::clients::Progress;
use purview_lab::oracle::Options;

use super::Engine;
use super::clients::{knock, runtime, token, trust};

/// Let bots walk, and check what each is shown.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview-lab load walk --count 500 --for 30s\n  \
    purview-lab load walk --engine etcd --nodes 3 --tls\n  \
    purview-lab load walk --connect ws://127.0.0.1:7711/ --count 500 --for 5m\n\n\
    Without --connect the command starts a server with the demo world of `purview dev`, or with the scenes of \
    --config; six more clients play the example game there, and the game is judged, too.\n\n\
    Exit codes: 0 no error found; 1 failed, or a client was shown something wrong; 2 invalid command line.")]
pub struct WalkArgs {
    /// Configuration file, overrides and log level of the server to start.
    #[command(flatten)]
    pub common: ConfigFlags,
    /// The server: ws://, wss://, tcp:// or tls://host:port [default: start one].
    #[arg(long, value_name = "URL")]
    pub connect: Option<String>,
    /// What the server to start runs on.
    #[arg(long, value_enum, default_value_t, conflicts_with = "connect")]
    pub engine: Engine,
    /// The number of processes that own regions, with --engine etcd.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub nodes: u16,
    /// With --engine etcd: the processes, the etcd and the PostgreSQL use mutual TLS, with new certificates.
    #[arg(long)]
    pub tls: bool,
    /// The number of bots.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub count: u32,
    /// How long the bots move, for example 30s, 5m or 500ms.
    #[arg(long = "for", value_name = "TIME", default_value = "30s", value_parser = time)]
    pub length: Duration,
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
    /// The scene to join on a running server.
    #[arg(long, value_name = "NAME", default_value = "meadow", requires = "connect")]
    pub scene: String,
    /// A file with the token that admits the bots, or with several, one a line: each bot takes the next one.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// A PEM file with the trusted authorities for wss:// and tls:// [default: those of the machine].
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// How many ticks late, or again, a bot may be told an action: 300 while links are cut and nodes die.
    #[arg(long, value_name = "TICKS", default_value_t = 0)]
    pub late_ticks: u64,
    /// Print the report as one JSON object at the end.
    #[arg(long)]
    pub json: bool,
}

impl WalkArgs {
    /// The options of the load.
    pub fn options(&self) -> BotsOptions {
        let cm = |m: f64| (m * 100.0) as i32;
        BotsOptions {
            count: self.count,
            length: self.length,
            pattern: self.pattern,
            seed: self.seed,
            area_cm: self.area.map(cm),
            border_every_cm: self.border_every.map(|m| cm(m).max(1)),
            scene: self.scene.clone(),
            oracle: Options { late_ticks: self.late_ticks, ..Options::default() },
            map: None,
            trust: Trust::default(),
        }
    }
}

/// Lets bots walk on a running server; the exit code is 1 when a bot was shown something wrong.
pub fn run_walk(args: &WalkArgs, url: &str) -> anyhow::Result<u8> {
    let token = token(args.token_file.as_deref())?;
    let options = BotsOptions { trust: trust(args.ca.as_deref())?, ..args.options() };
    let first = token.lines().next().unwrap_or_default();
    runtime()?.block_on(knock(url, first, &options.trust))?;
    let report = runtime()?.block_on(bots(url, &token, options, Progress::Stderr))?;
    report.print(args.json);
    Ok(report.exit_code())
}

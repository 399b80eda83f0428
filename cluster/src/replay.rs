//! `purview replay`: everybody of a recording becomes a real client over a real socket.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use purview::scene::Plane;
use purview::wire::client::Join;
use purview_client::Trust;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::cli::{CommonArgs, Engine};
use crate::crowd::{Crowd, Order, Progress, Server, gather, must_trust};
use crate::oracle::Options;
use crate::report::Report;
use crate::trace::{Agent, Trace};

/// Play a recording of real movement and judge what every client is shown
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview replay crowd.csv.gz --speed 20\n  \
    purview replay crowd.csv --scene deploy/station.toml --scene-name station\n  \
    purview replay crowd.csv --connect ws://127.0.0.1:7711/ --json\n\n\
    Without --connect a server is started in this process, on a scene made to measure unless the \
    configuration names one. Exits with 1 when any client was shown what it should not have been, \
    or was not shown what it should.")]
pub struct ReplayArgs {
    /// File, overrides and log level of the server that is started.
    #[command(flatten)]
    pub common: CommonArgs,
    /// The recording: CSV, plain or gzip'd, with the header t_s,id,x_m,z_m (also plane, kind)
    pub trace: PathBuf,
    /// The server: ws://, wss://, tcp:// or tls://host:port; without it, one is started
    #[arg(long, value_name = "URL")]
    pub connect: Option<String>,
    /// The scene to join
    #[arg(long, default_value = "meadow")]
    pub scene_name: String,
    /// A file with the token that lets clients in
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// How much faster than recorded to play
    #[arg(long, default_value_t = 1.0, value_parser = positive)]
    pub speed: f64,
    /// What to multiply the recording's coordinates by
    #[arg(long, default_value_t = 1.0, value_parser = positive)]
    pub scale: f64,
    /// Play only the first so many agents
    #[arg(long)]
    pub agents: Option<usize>,
    /// What the server is made of that is started
    #[arg(long, value_enum, default_value_t, conflicts_with = "connect")]
    pub engine: Engine,
    /// Nodes of that server, with --engine etcd
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub nodes: u16,
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

/// Parses a factor.
///
/// # Errors
/// The text is not a finite number above 0.
pub(crate) fn positive(text: &str) -> Result<f64, FactorError> {
    let n = text.parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0);
    n.ok_or(FactorError)
}

/// A factor that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("want a number above 0, for example 20 or 0.5")]
pub struct FactorError;

/// How to play a recording.
#[derive(Debug, Clone)]
pub struct ReplayOptions {
    /// The scene to join.
    pub scene: String,
    /// How much faster than recorded; above 0.
    pub speed: f64,
    /// What to multiply coordinates by; above 0.
    pub scale: f64,
    /// Play only the first so many agents.
    pub agents: Option<usize>,
    /// What the oracle tolerates.
    pub oracle: Options,
    /// Which authorities are believed of `wss://` and `tls://`.
    pub trust: Trust,
}

impl ReplayArgs {
    /// What the flags say of playing.
    pub fn options(&self) -> ReplayOptions {
        ReplayOptions {
            scene: self.scene_name.clone(),
            speed: self.speed,
            scale: self.scale,
            agents: self.agents,
            oracle: Options::default(),
            trust: Trust::default(),
        }
    }
}

/// Plays `trace` against a server. An agent joins at its first sample's place, on the sample's plane
/// (0 where the trace has none), walks as recorded and leaves after its last sample. The report has
/// no tick times: [`crate::admin::tick_ms`] knows them.
///
/// # Errors
/// The system gives no thread for the oracle.
pub async fn replay(
    url: &str,
    token: &str,
    trace: Arc<Trace>,
    options: ReplayOptions,
    progress: Progress,
) -> std::io::Result<Report> {
    let (url, token, trust) = (url.into(), token.into(), options.trust.clone());
    let server = Server { url, token, trust, map: None };
    let (crowd, judge) = gather(server, options.oracle)?;
    let count = options.agents.unwrap_or(usize::MAX).min(trace.agents.len());
    let play = async {
        let mut tasks = JoinSet::new();
        for i in 0..count {
            let agent = &trace.agents[i];
            sleep_until(due(&crowd, agent.samples[0].t_s, options.speed)).await;
            let (crowd, trace, options) = (crowd.clone(), trace.clone(), options.clone());
            tasks.spawn(async move { walk(&crowd, &trace, i, &options).await });
            while tasks.try_join_next().is_some() {}
        }
        tasks.join_all().await;
    };
    tokio::select! {
        () = play => {}
        () = crowd.show_progress(progress, count as u64) => {}
    }
    Ok(crowd.report(judge).await)
}

fn due(crowd: &Crowd, t_s: f64, speed: f64) -> Instant {
    crowd.start() + Duration::from_secs_f64(t_s / speed)
}

async fn walk(crowd: &Crowd, trace: &Trace, i: usize, options: &ReplayOptions) {
    let agent = &trace.agents[i];
    let (first, scale) = (&agent.samples[0], options.scale);
    let join = Join {
        scene: options.scene.clone(),
        plane: Some(first.plane.unwrap_or(Plane(0))),
        pos: Some(trace.pos(first, scale)),
        range: None,
        look: look(agent).into(),
    };
    let orders = agent.samples.windows(2).map(|pair| {
        let (before, now) = (&pair[0], &pair[1]);
        let pos = trace.pos(now, scale);
        let order = match now.plane {
            Some(plane) if now.plane != before.plane => Order::Jump(Some(plane), pos),
            _ => Order::Move(pos),
        };
        (due(crowd, now.t_s, options.speed), order)
    });
    crowd.play(i as u32, join, |joined| must_trust(joined).map(|()| orders)).await;
}

/// What others are shown of an agent: its kind, as far as a look may be long.
fn look(agent: &Agent) -> Vec<u8> {
    let mut look = agent.kind.clone().unwrap_or_default().into_bytes();
    look.truncate(purview::wire::codec::MAX_LOOK);
    look
}

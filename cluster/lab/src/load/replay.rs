//! `purview-lab load replay`: each agent of a recording becomes a client over a socket.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use purview::scene::Plane;
use purview::wire::FirstProperty;
use purview::wire::client::Join;
use purview_client::{Trust, join_at};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::clients::{ClientRun, Order, Progress, Server, gather, must_trust};
use super::report::Report;
use super::trace::{Agent, Trace};
use crate::args::positive;
use crate::oracle::Options;

#[derive(Debug, Clone, Args)]
pub struct ReplayOptions {
    /// The scene to join.
    #[arg(long, value_name = "NAME", default_value = "meadow")]
    pub scene: String,
    /// The factor of the playing speed.
    #[arg(long, default_value_t = 1.0, value_parser = positive)]
    pub speed: f64,
    /// The factor of the recorded coordinates.
    #[arg(long, default_value_t = 1.0, value_parser = positive)]
    pub scale: f64,
    /// The number of agents to play, in the order of the recording [default: all].
    #[arg(long)]
    pub agents: Option<usize>,
    #[arg(skip)]
    pub trust: Trust,
}

/// Plays `trace` against a server. An agent joins at the position and plane of its first sample (plane 0 if the trace
/// has none), walks as recorded, and leaves after its last sample. The report has no tick times.
pub async fn replay(
    url: &str,
    token: &str,
    trace: Arc<Trace>,
    options: ReplayOptions,
    progress: Progress,
) -> std::io::Result<Report> {
    let (url, token, trust) = (url.into(), token.into(), options.trust.clone());
    let server = Server { url, token, trust, map: None };
    let (run, judge) = gather(server, Options::default())?;
    let count = options.agents.unwrap_or(usize::MAX).min(trace.agents.len());
    let play = async {
        let mut tasks = JoinSet::new();
        for i in 0..count {
            let agent = &trace.agents[i];
            sleep_until(due(&run, agent.samples[0].t_s, options.speed)).await;
            let (run, trace, options) = (run.clone(), trace.clone(), options.clone());
            tasks.spawn(async move { walk(&run, &trace, i, &options).await });
            while tasks.try_join_next().is_some() {}
        }
        tasks.join_all().await;
    };
    tokio::select! {
        () = play => {}
        () = run.show_progress(progress, count as u64) => {}
    }
    Ok(run.report(judge).await)
}

fn due(run: &ClientRun, t_s: f64, speed: f64) -> Instant {
    run.start() + Duration::from_secs_f64(t_s / speed)
}

async fn walk(run: &ClientRun, trace: &Trace, i: usize, options: &ReplayOptions) {
    let agent = &trace.agents[i];
    let (first, scale) = (&agent.samples[0], options.scale);
    let join = Join {
        plane: Some(first.plane.unwrap_or(Plane(0))),
        properties: appearance(agent).into_iter().collect(),
        ..join_at(&options.scene, trace.pos(first, scale))
    };
    let orders = agent.samples.windows(2).map(|pair| {
        let (before, now) = (&pair[0], &pair[1]);
        let pos = trace.pos(now, scale);
        let order = match now.plane {
            Some(plane) if now.plane != before.plane => Order::Teleport(Some(plane), pos),
            _ => Order::Move(pos),
        };
        (due(run, now.t_s, options.speed), order)
    });
    run.play(i as u32, join, |joined| must_trust(joined).map(|()| orders)).await;
}

/// The appearance of an agent: its kind, if that is short enough.
fn appearance(agent: &Agent) -> Option<FirstProperty> {
    FirstProperty::appearance(agent.kind.as_deref()?.as_bytes()).ok()
}

//! `purview-lab load replay`: plays recorded movement through real clients.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use purview::actor::player::Planes;
use purview::scene::SceneSpec;
use purview::scene::layout::lands_along;
use purview::scene::spec::{LayerSpec, Moves, Rates, UpdateError};
use purview_demo::flags::time;
use purview_lab::interest::replay as interest;
use purview_lab::load::clients::Progress;
use purview_lab::load::replay::{ReplayOptions, replay};
use purview_lab::load::trace::{OFFSET_CM, Trace};
use purview_lab::shown::Shown;
use purview_server::config::Config;
use purview_server::interest::client::Address;
use purview_server::logins::Duplicate;
use purview_server::process::{Background, run_tokens};

use super::Engine;
use super::clients::{
    HOLDS, ServerArgs, knock, listen_alone, read_token, runtime, served, start_cluster, token,
    trust,
};

/// Replay recorded movement through real clients and check what each client is shown.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview-lab load replay crowd.csv.gz --speed 20\n  \
    purview-lab load replay crowd.csv --config deploy/scenes/station.toml --scene station\n  \
    purview-lab load replay crowd.csv --connect ws://127.0.0.1:7711/ --json\n  \
    purview-lab load replay crowd.csv.gz --interest http://127.0.0.1:7791\n\n\
    Without --connect the command starts a server in this process. Its scene fits the recording unless the \
    configuration names one. With --interest it plays into `purview interest`, as fast as that answers, in scenes \
    of all modes, and compares every event with brute force.\n\n\
    Exit codes: 0 no error found; 1 failed, or a client was shown something wrong; 2 invalid command line.")]
pub struct ReplayArgs {
    #[command(flatten)]
    pub server: ServerArgs,
    /// The recording: CSV, plain or gzip, with the header t_s,id,x_m,z_m (optional: plane, kind).
    pub trace: PathBuf,
    #[command(flatten)]
    pub play: ReplayOptions,
    /// Play into the interest service at http:// or https://host:port or unix:/path.
    #[arg(long, value_name = "URL", conflicts_with_all = ["connect", "engine", "speed"])]
    pub interest: Option<String>,
    /// With --interest: the recorded time between two ticks, for example 500ms.
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = time)]
    pub step: Duration,
}

/// A scene that fits the recording. Its regions are small, so that agents cross borders all the time,
/// and every client in range is told of every step.
fn scene_for(trace: &Trace, args: &ReplayArgs, tick_ms: u32) -> SceneSpec {
    let size = trace.size_cm(args.play.scale).map(|side| side + 2 * OFFSET_CM);
    let wide = size.iter().all(|side| *side >= 3_200);
    // The smallest regions for whose range the mirrored band has room.
    let (land_cm, region_lands, patch_cm) = if wide { (1_600, 2, 400) } else { (100, 5, 100) };
    let region_cm = land_cm * region_lands;
    // All regions have as many lands, because the smallest region bounds the mirrored band. The scene's edge may cut the
    // last ones.
    let least = |side: i32| lands_along(side, region_cm) * region_cm - land_cm + 1;
    let [width_cm, depth_cm] = size.map(|side| side.max(least(side)));
    let handoff_margin_cm = region_cm / 64;
    let layer = LayerSpec::square("common", patch_cm);
    let reach_cm = 3 * patch_cm + 2 * SceneSpec::default().patch_rule(&layer).margin_cm;
    // As fast as the band allows: recordings are played at many times their speed.
    let step_cm = region_cm - reach_cm - handoff_margin_cm;
    SceneSpec {
        name: args.play.scene.clone(),
        width_cm,
        depth_cm,
        land_cm,
        region_lands_x: region_lands,
        region_lands_z: region_lands,
        layers: vec![layer],
        rates: Rates { near: 1, middle: 1, far: 1 },
        update_error: Some(UpdateError::default()),
        handoff_margin_cm,
        top_speed_cm_s: (i64::from(step_cm) * 1000 / i64::from(tick_ms)).max(1) as i32,
        lines: 1,
        line_capacity: 100_000,
        spawn_x_cm: OFFSET_CM,
        spawn_z_cm: OFFSET_CM,
        // A recording says where its people appear.
        client_teleports: true,
        ..SceneSpec::default()
    }
}

fn config_for(trace: &Trace, args: &ReplayArgs) -> anyhow::Result<Config> {
    let mut config = args.server.common.load_with(|tick_ms| scene_for(trace, args, tick_ms))?;
    // The server serves one replay: a rate limit that admits every sample.
    listen_alone(&mut config, &args.server.common);
    let said = |key: &str| args.server.common.set.iter().any(|set| set.path == key);
    if !said("gateway.rate_limit") {
        config.gateway.rate_limit = 1_000;
    }
    if !said("gateway.burst") {
        config.gateway.burst = 2_000;
    }
    config.token.duplicate = Some(Duplicate::Allow);
    Ok(config)
}

/// Runs `purview-lab load replay`; the exit code is 1 when a client was shown something wrong.
pub fn run_replay(args: &ReplayArgs) -> anyhow::Result<u8> {
    let trace = Arc::new(Trace::open(&args.trace)?);
    if let Some(url) = &args.interest {
        return run_interest(url, &trace, args);
    }
    let config = config_for(&trace, args)?;
    if args.server.connect.is_none() && config.scenes[0].spec.moves.mode == Moves::Judged {
        bail!(
            "scene {:?} judges moves, but a recording contains only positions: set scene.0.moves = \"trusted\"",
            config.scenes[0].spec.name
        );
    }
    let _logs = purview_server::logs::init(&config.log)?;
    let mut options =
        ReplayOptions { trust: trust(args.server.ca.as_deref())?, ..args.play.clone() };
    let mut server = None;
    let mut cluster = None;
    let (url, token) = match &args.server.connect {
        Some(url) => {
            let token = token(args.server.token_file.as_deref())?;
            runtime()?.block_on(knock(url, &token, &options.trust))?;
            (url.clone(), token)
        }
        None if args.server.engine == Engine::Etcd => {
            options.scene.clone_from(&config.scenes[0].spec.name);
            let started = cluster.insert(start_cluster(&config, args.server.nodes, false)?);
            (started.url(0)?, started.tokens().mint_for("replay", Some(HOLDS), &Planes::Any)?)
        }
        None => {
            options.scene.clone_from(&config.scenes[0].spec.name);
            let tokens = run_tokens(&config)?;
            let token = tokens.mint_for("replay", Some(HOLDS), &Planes::Any)?;
            let started = server.insert(Background::start(config, tokens)?);
            (started.reach().url().context("the server has no listener for clients")?, token)
        }
    };
    let mut report = runtime()?.block_on(replay(&url, &token, trace, options, Progress::Stderr))?;
    if let Some(server) = &server {
        served(&mut report, server.reach());
    }
    drop(cluster);
    report.show(args.server.json)
}

/// Plays a recording into the interest service and judges every event.
fn run_interest(url: &str, trace: &Trace, args: &ReplayArgs) -> anyhow::Result<u8> {
    ensure!(!args.step.is_zero(), "--step 0: the time between two ticks must be greater than 0");
    let token = args.server.token_file.as_deref().map(read_token).transpose()?;
    let address = Address { url: url.to_owned(), token, trust: trust(args.server.ca.as_deref())? };
    let step_s = args.step.as_secs_f64();
    let played = interest::replay(&address, trace, step_s, &args.play);
    runtime()?.block_on(played)?.show(args.server.json)
}

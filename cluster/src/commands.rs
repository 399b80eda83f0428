//! What `purview replay`, `purview bots` and `purview bench` do around the modules that do the work:
//! find or start the server, show progress, print the result.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use purview::actor::player::Planes;
use purview::scene::SceneSpec;
use purview::scene::spec::{LayerSpec, Moves, Rates};
use purview_client::{Client, Trust};

use crate::admin;
use crate::bench::scene::{BenchSceneArgs, bench_scene};
use crate::bench::views::{BenchViewsArgs, bench_views};
use crate::bots::{BotsArgs, BotsOptions, bots};
use crate::cheat::{Field, TrialOptions, trial};
use crate::cli::Engine;
use crate::config::Config;
use crate::crowd::{Progress, read_token};
use crate::gateway::Tokens;
use crate::local::{LocalCluster, Parts};
use crate::logins::Duplicate;
use crate::replay::{ReplayArgs, replay};
use crate::report::Report;
use crate::server::{Background, run_tokens};
use crate::trace::{OFFSET_CM, Trace};

/// For how long tokens hold that are made for a run of clients: longer than any.
const HOLDS: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// A token for a server elsewhere: the one in the file, or one of `dev` mode.
fn token(file: Option<&Path>) -> anyhow::Result<String> {
    match file {
        Some(name) => {
            read_token(file).with_context(|| format!("{} cannot be read", name.display()))
        }
        None => Ok(Tokens::dev().mint_for("purview", Some(HOLDS), &Planes::Any)?),
    }
}

/// The authorities that a file names, or those of the machine.
fn trust(ca: Option<&Path>) -> anyhow::Result<Trust> {
    Ok(ca.map(Trust::file).transpose()?.unwrap_or_default())
}

/// Asks at the door of a server elsewhere, so that a wrong address or token is one clear error and
/// not one of every client.
async fn knock(url: &str, token: &str, trust: &Trust) -> anyhow::Result<()> {
    let door = Client::connect_trusting(trust, url, token);
    let door = tokio::time::timeout(Duration::from_secs(10), door).await;
    match door {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(e)) => Err(e).with_context(|| format!("{url} does not let clients in")),
        Err(_) => anyhow::bail!("{url} does not answer within 10 s"),
    }
}

/// A cluster of this program's processes, with one gateway; says on standard error what it does.
pub(crate) fn start_cluster(
    config: &Config,
    nodes: u16,
    secure: bool,
) -> anyhow::Result<LocalCluster> {
    let program = std::env::current_exe().context("this program cannot be found")?;
    let parts = Parts { nodes, gateways: 1 };
    let mut say = |line: String| eprintln!("{line}");
    let started = match secure {
        true => LocalCluster::start_secure(&program, config, parts, &mut say),
        false => LocalCluster::start(&program, config, parts, &mut say),
    };
    started.context("the cluster does not come up")
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let built = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    built.context("cannot start a runtime for the clients")
}

/// A scene in which a recording fits, with lands so small that people cross borders all the time,
/// and everybody in range told of every step.
fn scene_for(trace: &Trace, args: &ReplayArgs, tick_ms: u32) -> SceneSpec {
    let size = trace.size_cm(args.scale).map(|side| side + 2 * OFFSET_CM);
    let wide = size.iter().all(|side| *side >= 3_200);
    let (land_cm, region_lands) = if wide { (1_600, 2) } else { (400, 1) };
    let lands = size.map(|side| (side + land_cm - 1) / land_cm * land_cm);
    let region_cm = land_cm * region_lands;
    // Regions of one size: the smallest bounds the band.
    let [width_cm, depth_cm] = lands.map(|side| (side + region_cm - 1) / region_cm * region_cm);
    let handoff_margin_cm = region_cm / 64;
    // As fast as the band allows; recordings are played at many times their speed.
    let step_cm = region_cm - 3 * land_cm / 4 - handoff_margin_cm;
    SceneSpec {
        name: args.scene_name.clone(),
        width_cm,
        depth_cm,
        land_cm,
        region_lands_x: region_lands,
        region_lands_z: region_lands,
        layers: vec![LayerSpec { name: "common".into(), patch_cm: land_cm / 4 }],
        rates: Rates { near: 1, middle: 1, far: 1 },
        handoff_margin_cm,
        top_speed_cm_s: (i64::from(step_cm) * 1000 / i64::from(tick_ms)).max(1) as i32,
        lines: 1,
        line_capacity: 100_000,
        spawn_x_cm: OFFSET_CM,
        spawn_z_cm: OFFSET_CM,
        ..SceneSpec::default()
    }
}

fn config_for(trace: &Trace, args: &ReplayArgs) -> anyhow::Result<Config> {
    let mut config = args.common.load_with(|tick_ms| scene_for(trace, args, tick_ms))?;
    // A server of its own for one replay: any free port, and room for every sample.
    let said = |key: &str| args.common.set.iter().any(|o| o.path == key);
    if !said("gateway.ws") {
        config.gateway.ws.set_port(0);
    }
    if !said("gateway.tcp") {
        config.gateway.tcp = None;
    }
    if !said("gateway.rate_limit") {
        config.gateway.rate_limit = 1_000;
    }
    if !said("gateway.burst") {
        config.gateway.burst = 2_000;
    }
    config.console.listen = None;
    config.token.duplicate = Some(Duplicate::Allow);
    Ok(config)
}

/// Runs `purview replay` to its end; the exit code says whether anything was wrong.
///
/// # Errors
/// The trace cannot be read, or no server can be started.
pub fn run_replay(args: &ReplayArgs) -> anyhow::Result<u8> {
    let trace = Arc::new(Trace::open(&args.trace)?);
    let config = config_for(&trace, args)?;
    if args.connect.is_none() && config.scenes[0].spec.moves.mode == Moves::Judged {
        bail!(
            "scene {:?} judges moves, and a recording has only places: set scene.0.moves = \"trusted\"",
            config.scenes[0].spec.name
        );
    }
    let _logs = crate::logs::init(&config.log)?;
    let mut options = args.options();
    options.trust = trust(args.ca.as_deref())?;
    let mut server = None;
    let mut cluster = None;
    let (url, token) = match &args.connect {
        Some(url) => {
            let token = token(args.token_file.as_deref())?;
            runtime()?.block_on(knock(url, &token, &options.trust))?;
            (url.clone(), token)
        }
        None if args.engine == Engine::Etcd => {
            options.scene.clone_from(&config.scenes[0].spec.name);
            let started = cluster.insert(start_cluster(&config, args.nodes, false)?);
            (started.url(0)?, started.tokens().mint_for("replay", Some(HOLDS), &Planes::Any)?)
        }
        None => {
            options.scene.clone_from(&config.scenes[0].spec.name);
            let tokens = run_tokens(&config)?;
            let token = tokens.mint_for("replay", Some(HOLDS), &Planes::Any)?;
            let started = server.insert(Background::start(config, tokens)?);
            (started.reach().url().context("clients can connect")?, token)
        }
    };
    let mut report = runtime()?.block_on(replay(&url, &token, trace, options, Progress::Stderr))?;
    report.tick_ms = server.as_ref().map(|s| s.reach().tick_ms());
    report.server = server.as_ref().map(|s| s.reach().figures());
    drop(cluster);
    finish(report, args.admin.as_deref(), args.json)
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
    let _logs = crate::logs::init(&config.log)?;
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

fn finish(mut report: Report, admin: Option<&str>, json: bool) -> anyhow::Result<u8> {
    if let Some(admin) = admin {
        match runtime()?.block_on(admin::tick_ms(admin)) {
            Ok(ticks) => report.tick_ms = Some(ticks),
            Err(e) => eprintln!("note: the server's tick times are not known: {e}"),
        }
    }
    report.print(json);
    Ok(report.exit_code())
}

/// Runs `purview bench scene` to its end; the exit code says whether what was due was delivered.
///
/// # Errors
/// The figures asked for make no legal scene.
pub fn run_bench_scene(args: &BenchSceneArgs) -> anyhow::Result<u8> {
    let tty = std::io::stderr().is_terminal();
    let mut shown = 0;
    let result = bench_scene(args, &mut |done, of| {
        let percent = done * 100 / of;
        if tty && percent > shown {
            shown = percent;
            eprint!("\r{percent} %");
        }
    })?;
    if tty {
        eprintln!();
    }
    let mut out = std::io::stdout().lock();
    match args.json {
        true => writeln!(out, "{}", serde_json::to_string(&result)?)?,
        false => result.print(&mut out)?,
    }
    Ok(u8::from(!result.is_exact()))
}

/// Runs `purview bench views` to its end; the exit code says whether the lists were sound.
///
/// # Errors
/// The figures asked for make no legal scene, or a page cannot be written.
pub fn run_bench_views(args: &BenchViewsArgs) -> anyhow::Result<u8> {
    let bench = bench_views(args, &mut |row| eprintln!("{row}"))?;
    let mut out = std::io::stdout().lock();
    match args.json {
        true => writeln!(out, "{}", serde_json::to_string(&bench)?)?,
        false => write!(out, "{}", bench.to_markdown())?,
    }
    for row in bench.unsound() {
        eprintln!("unsound lists: {row}");
    }
    Ok(u8::from(!bench.is_sound()))
}

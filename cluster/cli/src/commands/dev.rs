//! `purview dev`: a complete server with bots, to try Purview out and to develop clients against.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use purview::scene::spec::BondSpec;
use purview::scene::terrain::Ground;
use purview::scene::{Scene, SceneSpec};

use purview_client::Trust;

use super::clients::start_cluster;
use crate::args::{CommonArgs, Engine};
use purview_lab::game;
use purview_lab::live_judge::LiveJudge;
use purview_lab::load::bots::{BotsOptions, Pattern, bots};
use purview_lab::load::clients::Progress;
use purview_lab::load::hunters::{hunt_until_rest, planes};
use purview_lab::load::report::Report;
use purview_lab::load::surveys::{self, SurveyedScene, Surveys};
use purview_lab::oracle::Options;
use purview_lab::testbed::demo_npcs;
use purview_lab::testbed::local_cluster::LocalCluster;
use purview_server::config::{Config, SceneSettings};
use purview_server::logins::Duplicate;
use purview_server::process::{Background, Inside, Reach, dev_tokens};
use purview_server::shutdown::signals::ShutdownSignals;
use tokio::sync::watch;

/// `purview dev`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview dev\n  \
    purview dev --bots 500 --for 30s --headless\n  \
    purview dev --scene deploy/station.toml --nodes 2\n  \
    purview dev --engine etcd --nodes 3\n  \
    purview dev --engine etcd --tls\n\n\
    Prints the URLs and a token that admits clients for a day, and runs until Ctrl-C or for the time of --for. \
    Without token.secret_file tokens are signed with a publicly known secret, and every listener must be on \
    loopback.")]
pub struct DevArgs {
    /// Configuration file, overrides and log level.
    #[command(flatten)]
    pub common: CommonArgs,
    /// What the server runs on.
    #[arg(long, value_enum, default_value_t)]
    pub engine: Engine,
    /// With --engine etcd: the number of processes that own regions [default: 3]. Otherwise: the number of
    /// threads for regions [default: one per core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub nodes: Option<u16>,
    /// With --engine etcd: the processes, the etcd and the PostgreSQL use mutual TLS, with new certificates.
    #[arg(long)]
    pub tls: bool,
    /// The number of bots that walk, as clients over sockets.
    #[arg(long, default_value_t = 200, value_name = "N")]
    pub bots: u32,
    /// How long to run, for example 30s [default: until Ctrl-C].
    #[arg(long = "for", value_name = "TIME", value_parser = crate::args::duration)]
    pub length: Option<Duration>,
    /// Do not serve the console.
    #[arg(long)]
    pub headless: bool,
    /// Print the report as one JSON object at the end.
    #[arg(long)]
    pub json: bool,
}

/// The lifetime of the printed token.
const TOKEN_HOLDS: Duration = Duration::from_secs(24 * 60 * 60);

/// The radii in which monsters of the demo scene sight and lose players, centimetres.
const WATCH_CM: (i32, i32) = (1_500, 1_900);

/// Clients of the demo scene that hunt.
const HUNTERS: u32 = 6;

/// The demo scene: a few hundred metres, so that borders, ghosts and handoffs are visible at once. All else is as in a
/// configured scene, except that clients may teleport: moves are judged, and clients are told by error.
fn demo_scene() -> SceneSpec {
    SceneSpec {
        name: "meadow".into(),
        width_cm: 38_400,
        depth_cm: 25_600,
        land_cm: 6_400,
        region_lands_x: 2,
        region_lands_z: 2,
        layers: vec![purview::scene::spec::LayerSpec { name: "common".into(), patch_cm: 1_600 }],
        visibility: purview::scene::Visibility::Circle { enter_cm: 4_000, leave_cm: 4_400 },
        top_speed_cm_s: 2_000,
        spawn_x_cm: 19_200,
        spawn_z_cm: 12_800,
        kinds: game::kinds(WATCH_CM),
        bonds: BondSpec { kinds: vec!["party".into()], ..BondSpec::default() },
        // Visitors of the demo may fly.
        client_teleports: true,
        ..SceneSettings::default().spec
    }
}

/// The configuration of `dev`: as given, with the demo scene if the file configures no scene.
///
/// # Errors
/// All errors of the configuration.
pub fn config(args: &DevArgs) -> anyhow::Result<Config> {
    let mut config = args.common.load_with(|_| demo_scene())?;
    if let Some(nodes) = args.nodes.filter(|_| args.engine == Engine::Embedded) {
        config.server.arbiters = nodes.into();
    }
    if args.headless {
        config.console.listen = None;
    }
    config.server.demo_npcs = true;
    // All clients share the printed token. Bots do, too; without them a player has its values once.
    let shared = match config.scene_that_keeps_players() {
        Some(_) if args.bots == 0 => Duplicate::Replace,
        _ => Duplicate::Allow,
    };
    config.token.duplicate.get_or_insert(shared);
    Ok(config)
}

/// Runs `purview dev`. The exit code is 1 when a bot was shown something wrong.
///
/// # Errors
/// A part of the server cannot be started.
pub fn dev(args: &DevArgs) -> anyhow::Result<u8> {
    let config = config(args)?;
    let _logs = purview_server::logs::init(&config.log)?;
    if args.engine == Engine::Etcd {
        return dev_cluster(args, &config);
    }
    let tokens = dev_tokens(&config)?;
    let token = tokens.mint("dev", Some(TOKEN_HOLDS))?;
    let judge = LiveJudge::of(&config.build_scenes()?, config.server.data_dir.is_some());
    let rules = game::hunt();
    let inside = match &judge {
        None => Inside { logic: Some(rules), observer: None },
        Some(judge) => judge.inside(rules),
    };
    let server = Background::start_observed(config, tokens, inside)?;
    let reach = server.reach().clone();
    let report = runtime()?.block_on(run(args, &reach, &token))?;
    let Some(mut report) = report else { return Ok(0) };
    if let Some((figures, examples)) = judge.map(|judge| judge.end()) {
        report.game = Some(figures);
        report.examples.extend(examples);
    }
    report.print(args.json);
    Ok(report.exit_code())
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let built = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    built.context("cannot start a runtime for the bots")
}

/// Runs `purview dev --engine etcd`: a cluster of processes on this machine.
fn dev_cluster(args: &DevArgs, config: &Config) -> anyhow::Result<u8> {
    let cluster = start_cluster(config, args.nodes.unwrap_or(3), args.tls)?;
    let url = cluster.url(0)?;
    let token = cluster.tokens().mint("dev", Some(TOKEN_HOLDS))?;
    if !args.json {
        let mut out = std::io::stdout().lock();
        for member in cluster.nodes().iter().chain(cluster.gateways()) {
            if let Some(console) = member.ready().and_then(|ready| ready.console) {
                writeln!(out, "{:<10} console http://{console}/", member.name)?;
            }
        }
        writeln!(out, "WebSocket  {url}\ntoken      {token}")?;
        writeln!(out, "{} bots; Ctrl-C ends all processes", args.bots)?;
        out.flush()?;
    }
    let scenes = config.build_scenes()?;
    let report = runtime()?.block_on(run_cluster(args, &cluster, &scenes, (&url, &token)))?;
    drop(cluster);
    let Some(report) = report else { return Ok(0) };
    report.print(args.json);
    Ok(report.exit_code())
}

/// Plays in the cluster until the end of the time of --for, and judges the game.
async fn run_cluster(
    args: &DevArgs,
    cluster: &LocalCluster,
    scenes: &[Arc<Scene>],
    (url, token): (&str, &str),
) -> anyhow::Result<Option<Report>> {
    let scene = scenes.first().context("the configuration has no scene")?;
    let mut ends = ShutdownSignals::listen().context("cannot listen for signals")?;
    let (rest, rests) = watch::channel(false);
    let hunters = tokio::spawn(hunters(args, scene, (url, token), rests));
    let surveys = surveys(args, cluster, scenes);
    let mut judge = surveys::Judge::default();
    let watches = async {
        match &surveys {
            Some(surveys) => surveys.watch(&mut judge).await,
            None => std::future::pending().await,
        }
    };
    let report = tokio::select! {
        report = walk(args, url, token, bots_options(args, scene)) => report?,
        () = watches => None,
        () = ends.asked() => None,
    };
    let Some(mut report) = report else { return Ok(None) };
    if let Some(surveys) = &surveys {
        rest.send_replace(true);
        tokio::select! {
            () = surveys.rest(&mut judge) => {}
            () = ends.asked() => return Ok(None),
        }
        report.game = Some(judge.accounts.figures());
        report.examples.append(&mut judge.examples);
    }
    hunters.abort();
    Ok(Some(report))
}

/// Where the game is surveyed, if clients hunt in the first scene and the nodes have consoles.
fn surveys(args: &DevArgs, cluster: &LocalCluster, scenes: &[Arc<Scene>]) -> Option<Surveys> {
    let consoles: Option<Vec<String>> =
        cluster.nodes().iter().map(|node| node.ready()?.console).collect();
    let hunters = hunters_of(args, scenes.first()?);
    let consoles = consoles.filter(|_| hunters > 0)?;
    let scenes = scenes.iter().filter(|scene| game::is_hunt(&scene.spec));
    let surveyed = |scene: &Arc<Scene>| SurveyedScene {
        name: scene.spec.name.clone(),
        planes: planes(hunters),
        regions: scene.map.layout().plots.len() / usize::from(scene.spec.plane_groups),
    };
    Some(Surveys { consoles, scenes: scenes.map(surveyed).collect() })
}

/// The number of clients that hunt, beside the bots: none, unless the scene is one of the example game.
fn hunters_of(args: &DevArgs, scene: &Scene) -> u32 {
    if args.bots > 0 && game::is_hunt(&scene.spec) { HUNTERS } else { 0 }
}

/// The clients that hunt.
fn hunters(
    args: &DevArgs,
    scene: &Scene,
    (url, token): (&str, &str),
    rests: watch::Receiver<bool>,
) -> impl Future<Output = ()> + Send + use<> {
    let tokens = vec![token.to_owned(); hunters_of(args, scene) as usize];
    hunt_until_rest(url.to_owned(), tokens, scene.spec.name.clone(), rests)
}

fn bots_options(args: &DevArgs, first: &Scene) -> BotsOptions {
    BotsOptions {
        count: args.bots,
        // The load needs an end; ten years stand for none.
        length: args.length.unwrap_or(Duration::MAX).min(Duration::from_secs(315_360_000)),
        pattern: Pattern::Walk,
        seed: 1,
        area_cm: None,
        border_every_cm: None,
        scene: first.spec.name.clone(),
        oracle: Options::default(),
        map: first.terrain.clone().map(|terrain| Arc::new(Ground::new(terrain))),
        trust: Trust::default(),
    }
}

/// Runs the bots for the requested time. Without bots there is no report.
async fn walk(
    args: &DevArgs,
    url: &str,
    token: &str,
    options: BotsOptions,
) -> anyhow::Result<Option<Report>> {
    match args.bots {
        0 => {
            tokio::time::sleep(options.length).await;
            Ok(None)
        }
        _ => Ok(bots(url, token, options, Progress::Quiet).await.map(Some)?),
    }
}

async fn run(args: &DevArgs, reach: &Reach, token: &str) -> anyhow::Result<Option<Report>> {
    // Before the server reports that it is ready: from then on a signal may come.
    let mut ends = ShutdownSignals::listen().context("cannot listen for signals")?;
    if !args.json {
        greet(reach, token, args)?;
    }
    let npcs = tokio::spawn(demo_npcs::roam(reach.directory.clone(), reach.hosted.clone()));
    let first = reach.directory.scenes().next().context("the configuration has no scene")?;
    let options = bots_options(args, &first);
    let url = reach.url().context("the server has no listener for clients")?;
    let (_never, rests) = watch::channel(false);
    let hunters = tokio::spawn(hunters(args, &first, (&url, token), rests));
    let report = tokio::select! {
        report = walk(args, &url, token, options) => report?,
        () = ends.asked() => None,
    };
    npcs.abort();
    hunters.abort();
    Ok(report.map(|report| Report {
        tick_ms: Some(reach.tick_ms()),
        server: Some(reach.figures()),
        ..report
    }))
}

fn greet(reach: &Reach, token: &str, args: &DevArgs) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    if let Some(addr) = reach.console {
        writeln!(out, "console    http://{addr}/")?;
        writeln!(out, "metrics    http://{addr}/metrics")?;
    }
    if let Some(url) = reach.ws_url() {
        writeln!(out, "WebSocket  {url}")?;
    }
    if let Some(url) = reach.tcp_url() {
        writeln!(out, "TCP        {url}")?;
    }
    writeln!(out, "token      {token}")?;
    for scene in reach.directory.scenes().filter(|scene| scene.spec.client_teleports) {
        let name = &scene.spec.name;
        writeln!(out, "visitors of {name:?} may fly: it has teleports = \"clients\"")?;
    }
    let regions = reach.regions.len();
    match args.length {
        Some(length) => writeln!(out, "{regions} regions, {} bots, for {length:?}", args.bots)?,
        None => writeln!(out, "{regions} regions, {} bots, until Ctrl-C", args.bots)?,
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_changes_the_demo_scene_and_does_not_replace_it() {
        let set = vec!["scene.0.view_cap=20".parse().unwrap()];
        let common = CommonArgs { set, ..CommonArgs::default() };
        let (nodes, length) = (None, None);
        let (bots, headless, tls, json) = (0, false, false, false);
        let engine = Engine::Embedded;
        let args = DevArgs { common, engine, nodes, tls, bots, length, headless, json };
        let scenes = config(&args).unwrap().scenes;
        assert_eq!(scenes, [SceneSpec { view_cap: 20, ..demo_scene() }.into()]);
    }

    #[test]
    fn the_demo_scene_tells_its_clients_what_a_configured_scene_does() {
        let (demo, configured) = (demo_scene(), SceneSettings::default().spec);
        assert!(demo.update_error_in_force().is_some());
        let told = |spec: &SceneSpec| (spec.update_error, spec.rates, spec.moves.clone());
        assert_eq!(told(&demo), told(&configured));
    }
}

//! The demo world of `purview dev`, served and played. The oracle judges what bots are shown. In a cluster of processes
//! the game is judged, too.

use std::sync::Arc;

use anyhow::Context;
use purview::scene::Scene;
use purview::scene::terrain::Ground;
use purview_demo::npcs::DemoNpcs;
use purview_demo::players::{self, Role, Stage, planes};
use purview_demo::scene;
use purview_lab::game;
use purview_lab::game::accounts::Accounts;
use purview_lab::load::bots::{BotsOptions, bots};
use purview_lab::load::clients::Progress;
use purview_lab::load::report::Report;
use purview_lab::load::surveys::{SurveyedScene, Surveys};
use purview_lab::shown::Shown;
use purview_lab::testbed::local_cluster::LocalCluster;
use purview_server::config::Config;
use purview_server::logins::Duplicate;
use purview_server::process::{Background, Inside, dev_tokens};
use tokio::sync::watch;

use super::Engine;
use super::clients::{HOLDS, listen_alone, runtime, served, start_cluster};
use super::walk::WalkArgs;

/// Clients that play the example game.
const HUNTERS: u32 = 6;

/// Runs the world; the exit code is 1 when a client was shown something wrong.
pub fn run(args: &WalkArgs) -> anyhow::Result<u8> {
    let mut config = args.server.common.load_with(|_| scene::meadow())?;
    config.server.demo = true;
    // All clients share one token.
    config.token.duplicate.get_or_insert(Duplicate::Allow);
    let _logs = purview_server::logs::init(&config.log)?;
    let report = match args.server.engine {
        Engine::Embedded => embedded(args, config)?,
        Engine::Etcd => cluster(args, &config)?,
    };
    report.show(args.server.json)
}

/// In this process.
fn embedded(args: &WalkArgs, mut config: Config) -> anyhow::Result<Report> {
    listen_alone(&mut config, &args.server.common);
    let tokens = dev_tokens(&config)?;
    let token = tokens.mint("load", Some(HOLDS))?;
    let inside = Inside { logic: Some(game::hunt()), population: Some(Arc::new(DemoNpcs)) };
    let server = Background::start_inside(config, tokens, inside)?;
    let reach = server.reach().clone();
    let first = reach.directory.scenes().next().context("the configuration has no scene")?;
    let url = reach.url().context("the server has no listener for clients")?;
    let runtime = runtime()?;
    let mut report = runtime.block_on(async {
        let (_never, rests) = watch::channel(false);
        let hunters = tokio::spawn(hunters(args, &first, (&url, &token), rests));
        let report = bots(&url, &token, options(args, &first), Progress::Stderr).await;
        hunters.abort();
        report
    })?;
    served(&mut report, &reach);
    Ok(report)
}

/// In processes of `purview` with an etcd and a PostgreSQL.
fn cluster(args: &WalkArgs, config: &Config) -> anyhow::Result<Report> {
    let cluster = start_cluster(config, args.server.nodes, args.tls)?;
    let (url, token) = (cluster.url(0)?, cluster.tokens().mint("load", Some(HOLDS))?);
    let scenes = config.build_scenes()?;
    runtime()?.block_on(play_in(args, &cluster, &scenes, (&url, &token)))
}

/// Plays in the cluster, and judges the game: at the end everything rests.
async fn play_in(
    args: &WalkArgs,
    cluster: &LocalCluster,
    scenes: &[Arc<Scene>],
    (url, token): (&str, &str),
) -> anyhow::Result<Report> {
    let first = scenes.first().context("the configuration has no scene")?;
    let (rest, rests) = watch::channel(false);
    let hunters = tokio::spawn(hunters(args, first, (url, token), rests));
    let surveys = surveys(cluster, scenes);
    let mut judge = Accounts::default();
    let watches = async {
        match &surveys {
            Some(surveys) => surveys.watch(&mut judge).await,
            None => std::future::pending().await,
        }
    };
    let report = tokio::select! {
        report = bots(url, token, options(args, first), Progress::Stderr) => Some(report?),
        () = watches => None,
    };
    let mut report = report.context("the consoles of the cluster answer no more")?;
    if let Some(surveys) = &surveys {
        rest.send_replace(true);
        surveys.rest(&mut judge).await;
        report.game = Some(judge.figures());
        report.examples.append(&mut judge.examples);
    }
    hunters.abort();
    Ok(report)
}

/// Where the game is surveyed, if clients hunt in the first scene and the nodes have consoles.
fn surveys(cluster: &LocalCluster, scenes: &[Arc<Scene>]) -> Option<Surveys> {
    let consoles: Option<Vec<String>> =
        cluster.nodes().iter().map(|node| node.ready()?.console).collect();
    let hunters = hunters_of(scenes.first()?);
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
fn hunters_of(scene: &Scene) -> u32 {
    if game::is_hunt(&scene.spec) { HUNTERS } else { 0 }
}

/// The clients that hunt.
fn hunters(
    args: &WalkArgs,
    scene: &Scene,
    (url, token): (&str, &str),
    rests: watch::Receiver<bool>,
) -> impl Future<Output = ()> + Send + use<> {
    let hunters = if args.bots.count > 0 { hunters_of(scene) } else { 0 };
    let tokens = vec![token.to_owned(); hunters as usize];
    let stage = Stage { url: url.to_owned(), scene: scene.spec.name.clone(), ground: None };
    players::play(stage, Role::Hunts, tokens, rests)
}

fn options(args: &WalkArgs, first: &Scene) -> BotsOptions {
    BotsOptions {
        scene: first.spec.name.clone(),
        map: first.terrain.clone().map(|terrain| Arc::new(Ground::new(terrain))),
        ..args.bots.clone()
    }
}

//! `purview dev`: a complete server with players that walk and hunt, to try Purview out and to develop clients against.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use purview::scene::Scene;
use purview::scene::terrain::Ground;
use purview_demo::flags::{ConfigFlags, time};
use purview_demo::npcs::DemoNpcs;
use purview_demo::players::{self, Role, Stage};
use purview_demo::{hunt, scene};
use purview_server::config::Config;
use purview_server::logins::Duplicate;
use purview_server::process::{Background, Inside, ServerReach, dev_tokens};
use purview_server::shutdown::signals::ShutdownSignals;
use tokio::sync::watch;

use super::print_reach;

mod changes;

/// `purview dev`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview dev\n  \
    purview dev --bots 500 --for 30s --headless\n  \
    purview dev --config my.toml --set logic.listen=127.0.0.1:7795\n\n\
    Without --config: a demo scene with the example game, players that walk and hunt, and NPCs. With it: the scenes of the \
    configuration, without rules (or with those of workers, where logic.listen is set) and without bots; changes of the \
    file are checked and told. Prints the URLs and a token that admits clients for a day, and runs until Ctrl-C or for \
    the time of --for. Without token.secret_file tokens are signed with a publicly known secret, and every listener must \
    be on loopback.")]
pub struct DevArgs {
    /// Configuration file, overrides and log level.
    #[command(flatten)]
    pub common: ConfigFlags,
    /// The number of players that walk, as clients over sockets [default: 200; with --config none].
    #[arg(long, value_name = "N")]
    pub bots: Option<u32>,
    /// How long to run, for example 30s [default: until Ctrl-C].
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    pub length: Option<Duration>,
    /// Serve neither the page nor the console.
    #[arg(long)]
    pub headless: bool,
}

impl DevArgs {
    /// Whether the scene is the demo's.
    fn is_demo(&self) -> bool {
        self.common.file.is_none()
    }

    /// The number of players that walk.
    fn bots(&self) -> u32 {
        self.bots.unwrap_or(if self.is_demo() { BOTS } else { 0 })
    }
}

/// Players that walk in the demo.
const BOTS: u32 = 200;

/// The lifetime of the printed token.
const TOKEN_HOLDS: Duration = Duration::from_secs(24 * 60 * 60);

/// Players that hunt, beside those that walk, in a scene of the example game.
const HUNTERS: u32 = 6;

/// The configuration of `dev`: the demo scene, or as given.
///
/// # Errors
/// All errors of the configuration.
pub fn config(args: &DevArgs) -> anyhow::Result<Config> {
    let mut config = match args.is_demo() {
        true => args.common.load_with(|_| scene::meadow())?,
        false => args.common.load()?,
    };
    if args.headless {
        config.console.listen = None;
    }
    config.play.enabled = !args.headless;
    config.server.demo |= args.is_demo();
    // All clients share the printed token. Bots do, too; without them a player has its values once.
    let shared = match config.scene_that_keeps_players() {
        Some(_) if args.bots() == 0 => Duplicate::Replace,
        _ => Duplicate::Allow,
    };
    config.token.duplicate.get_or_insert(shared);
    Ok(config)
}

/// Runs `purview dev`.
///
/// # Errors
/// A part of the server cannot be started.
pub fn dev(args: &DevArgs) -> anyhow::Result<u8> {
    let config = config(args)?;
    let _logs = purview_server::logs::init(&config.log)?;
    let tokens = dev_tokens(&config)?;
    let token = tokens.mint("dev", Some(TOKEN_HOLDS))?;
    let rules = args.is_demo() && config.logic.listen.is_none();
    let inside = Inside { logic: rules.then(hunt::hunt), population: Some(Arc::new(DemoNpcs)) };
    let server = Background::start_inside(config.clone(), tokens, inside)?;
    let reach = server.reach().clone();
    let built = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = built.context("cannot start a runtime for the bots")?;
    runtime.block_on(run((args, &config), &reach, &token))?;
    Ok(0)
}

/// Plays until the end of the time of --for, or a signal.
async fn run(
    (args, config): (&DevArgs, &Config),
    reach: &ServerReach,
    token: &str,
) -> anyhow::Result<()> {
    // Before the server reports that it is ready: from then on a signal may come.
    let mut ends = ShutdownSignals::listen().context("cannot listen for signals")?;
    greet(reach, token, args)?;
    let first = reach.directory.scenes().next().context("the configuration has no scene")?;
    let url = reach.url().context("the server has no listener for clients")?;
    let (_never, rests) = watch::channel(false);
    let play = |role, count: u32| {
        let tokens = vec![token.to_owned(); count as usize];
        players::play(stage(&url, &first), role, tokens, rests.clone())
    };
    let hunts = args.bots() > 0 && args.is_demo() && hunt::is_hunt(&first.spec);
    let plays = async {
        let hunters = if hunts { HUNTERS } else { 0 };
        tokio::join!(play(Role::Walks, args.bots()), play(Role::Hunts, hunters));
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = plays => {}
        () = changes::watch(&args.common, config) => {}
        // Ten years stand for no end.
        () = tokio::time::sleep(args.length.unwrap_or(Duration::from_secs(315_360_000))) => {}
        () = ends.asked() => {}
    }
    Ok(())
}

fn stage(url: &str, scene: &Scene) -> Stage {
    let ground = scene.terrain.clone().map(|terrain| Arc::new(Ground::new(terrain)));
    Stage { url: url.to_owned(), scene: scene.spec.name.clone(), ground }
}

fn greet(reach: &ServerReach, token: &str, args: &DevArgs) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    if let Some(url) = &reach.play {
        writeln!(out, "play       {url}")?;
    }
    print_reach(&mut out, reach)?;
    writeln!(out, "token      {token}")?;
    for scene in reach.directory.scenes().filter(|scene| scene.spec.client_teleports) {
        let name = &scene.spec.name;
        writeln!(out, "visitors of {name:?} may fly: it has teleports = \"clients\"")?;
    }
    if let Some(addr) = reach.logic {
        writeln!(out, "workers    http://{addr}")?;
    }
    let (regions, bots) = (reach.hosted.now().len(), args.bots());
    match args.length {
        Some(length) => writeln!(out, "{regions} regions, {bots} bots, for {length:?}")?,
        None => writeln!(out, "{regions} regions, {bots} bots, until Ctrl-C")?,
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use purview::scene::SceneSpec;

    use super::*;

    #[test]
    fn a_flag_changes_the_demo_scene_and_does_not_replace_it() {
        let set = vec!["scene.0.view_cap=20".parse().unwrap()];
        let common = ConfigFlags { set, ..ConfigFlags::default() };
        let args = DevArgs { common, bots: Some(0), length: None, headless: false };
        let scenes = config(&args).unwrap().scenes;
        assert_eq!(scenes, [SceneSpec { view_cap: 20, ..scene::meadow() }.into()]);
    }
}

//! The one place that assembles a process of a cluster: scenes, storage, peers, regions, gateway, console, in this
//! order. Nothing else of the server knows all of these.
//!
//! ```text
//! configuration ─► scenes ─► number, clock ─► directory ─► links ─► lease ─► node ─► gateway ─► console
//!                            (the store)      (of them all)        (the store)
//! ```
//!
//! What must never happen here: a task that acts for the cluster starts before the lease is there, or a session sees
//! a clock that is not set.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use actix::ArbiterHandle;
use purview::actor::directory::{CheckpointWriter, Directory, Process};
use purview::actor::logic::LogicFactory;
use purview::scene::Scene;
use tokio::time::Instant;

use super::advertise::advertised;
use super::arbiters::{self, Arbiters};
use super::cluster::ClusterProcess;
use super::console;
use super::environment::{Clients, Environment};
use super::error::ProcessError;
use super::observe::observe;
use super::runtime::TaskRuntime;
use super::workers;
use crate::admin::Console;
use crate::config::Config;
use crate::gateway::{ClusterTokens, Gateway, GatewayConfig, TestListener};
use crate::logic::LogicService;
use crate::logins::{Duplicate, Subjects};
use crate::node::fence::LeaseFence;
use crate::node::local_regions::Threads;
use crate::node::population::Population;
use crate::node::readiness::Readiness;
use crate::node::startup::{Agreed, StartupEntry, agree};
use crate::node::{Node, Parts, Roles, find_sessions};
use crate::play::{PlayPage, PlayState};
use crate::storage::checkpoints::player_records::{PlayerRecords, RecordRules};
use crate::storage::checkpoints::writer::CheckpointQueue;
use crate::storage::{About, Checkpoints, LeaseError, Leases, Membership, NodeInfo};
use crate::supervisor;
use crate::workers::TickThreads;

/// How often it is tried whether a name is free.
const NAME_AGAIN: Duration = Duration::from_millis(250);

pub(super) type Stores = (Arc<dyn Leases>, Option<Arc<dyn Checkpoints>>);

/// Assembles a process and starts it. Gives also where clients are brought in, if it is simulated and holds sessions.
///
/// # Errors
/// What cannot be started, or the store's answer.
pub(super) async fn assemble(
    config: &Config,
    roles: Roles,
    (store, checkpoints): Stores,
    (runtime, environment): (TaskRuntime, Environment),
) -> Result<(ClusterProcess, Option<TestListener>), ProcessError> {
    let scenes = config.build_scenes()?;
    let (population, begun) = (population(config, roles, &environment)?, Instant::now());
    let stores = (store.clone(), checkpoints.clone());
    let agreed = enter((config, roles), stores, &scenes, (&runtime, population.is_some())).await?;
    let fence = Arc::new(LeaseFence::default());
    let queue = checkpoints.as_ref().map(|_| Arc::new(checkpoint_queue(config)));
    // What the store took to answer has passed, too: every process's ticks begin at the same times.
    let clock = agreed.clock + begun.elapsed();
    let process = described((agreed.number, clock), &fence, queue.as_ref());
    let players = player_records(config, (checkpoints.as_ref(), &fence), &runtime);
    let subjects = Subjects::new(config.token.duplicate.unwrap_or_default());
    let known = (scenes.clone(), process);
    let (hub, logic) = workers::logic(config, environment.inside().logic)?;
    let directory = directory(config, known, (&environment, logic), (&subjects, players.as_ref()));
    let (number, simulated) = ((agreed.number, directory.clone()), environment.hub());
    let (links, listens, clients) = environment.connect(config, &runtime, number).await?;
    find_sessions(&directory, &links);
    simulated.iter().for_each(|hub| hub.simulate(runtime.executor(), (&directory, &links)));
    let logic = workers::start(config, hub, (&directory, Some(&links)), roles.regions).await?;
    let info = node_info(config, roles, agreed.number, listens).await?;
    let joined = join(store.clone(), info, config.cluster.lease);
    let membership = runtime.executor().run(joined).await?;
    fence.hold(membership.authority().clone());
    let (arbiters, threads) = threads(config, &clients);
    let mut node = Node::new(Parts {
        executor: runtime.executor().clone(),
        store,
        checkpoints,
        checkpoint_queue: queue.clone(),
        membership,
        links,
        directory,
        scenes,
        subjects,
        threads,
        balance: config.cluster.balance,
        drain: config.cluster.drain,
    });
    players.iter().for_each(|players| drop(runtime.executor().spawn(players.clone().run())));
    run(&mut node, roles, population, agreed.populates);
    let (gateway, play, doors) =
        gateway(config, roles, &node, (clients, arbiters.handles())).await?;
    let (ending, kept) = (Arc::new(AtomicBool::new(false)), (queue, players.clone()));
    let clients = (gateway.as_ref(), logic.as_ref());
    let share = (roles, config.gateway.ready_share);
    let readiness = Arc::new(Readiness::new(share, &node, ending.clone()));
    let console = console(config, &node, (clients, kept, &readiness))?;
    let observer = observe(&runtime, &arbiters, (&node, gateway.as_ref()), &readiness)?;
    let process = ClusterProcess {
        lame_duck: lame_duck(config, &node),
        node,
        gateway,
        logic,
        players,
        console,
        play,
        arbiters,
        drain_limit: config.cluster.drain,
        observer,
        ending,
        runtime,
    };
    Ok((process, doors))
}

fn described(
    (number, clock): (u64, Duration),
    fence: &Arc<LeaseFence>,
    queue: Option<&Arc<CheckpointQueue>>,
) -> Process {
    let checkpoint_writer = queue.cloned().map(|queue| queue as Arc<dyn CheckpointWriter>);
    Process { number, clock, fence: Some(fence.clone()), checkpoint_writer }
}

/// How long clients are still admitted when the process ends. Those of the only process of a cluster have nowhere else to
/// go.
fn lame_duck(config: &Config, node: &Node) -> Duration {
    if node.links().is_alone() { Duration::ZERO } else { config.gateway.lame_duck }
}

/// Takes the lease. The name may still be that of a process that was killed: its lease ends within its time to live.
async fn join(
    store: Arc<dyn Leases>,
    info: NodeInfo,
    ttl: Duration,
) -> Result<Membership, ProcessError> {
    let until = Instant::now() + ttl * 2 + Duration::from_secs(1);
    loop {
        match store.join(info.clone(), ttl).await {
            Err(error @ LeaseError::NameTaken { .. }) if Instant::now() < until => {
                purview::log_limited!(warn, %error, "waiting for the end of that process's lease");
                supervisor::waits(&format!("waiting: {error}"), ttl * 2);
                tokio::time::sleep(NAME_AGAIN).await;
            }
            joined => return Ok(joined?),
        }
    }
}

/// The node begins to act; it brings demo entities along if it is to.
fn run(node: &mut Node, roles: Roles, brings: Option<Arc<dyn Population>>, populates: bool) {
    node.run();
    if roles.gateway {
        node.follow_gateways();
    }
    if let Some(population) = brings {
        node.populate(population, populates);
    }
}

/// Keeps players' records, where there is a store: sessions claim them, and regions save what players
/// had last.
fn player_records(
    config: &Config,
    (checkpoints, fence): (Option<&Arc<dyn Checkpoints>>, &Arc<LeaseFence>),
    runtime: &TaskRuntime,
) -> Option<PlayerRecords> {
    let rules = RecordRules {
        every: config.cluster.checkpoint,
        wait: config.gateway.store_wait,
        exclusive: config.token.duplicate != Some(Duplicate::Allow),
        fence: Some(fence.clone()),
    };
    let executor = runtime.executor().clone();
    Some(PlayerRecords::new(rules, checkpoints?.clone(), executor))
}

/// The demo entities that the process brings along, if it is to.
fn population(
    config: &Config,
    roles: Roles,
    environment: &Environment,
) -> Result<Option<Arc<dyn Population>>, ProcessError> {
    match (config.server.demo && roles.regions, environment.inside().population) {
        (true, None) => Err(ProcessError::NoPopulation),
        (wanted, population) => Ok(population.filter(|_| wanted)),
    }
}

async fn enter(
    (config, roles): (&Config, Roles),
    (store, checkpoints): Stores,
    scenes: &[Arc<Scene>],
    (runtime, populates): (&TaskRuntime, bool),
) -> Result<Agreed, ProcessError> {
    let entry = StartupEntry {
        scenes: scenes.to_vec(),
        tick_ms: config.tick_ms,
        now: runtime.executor().time_of_day(),
        regions: roles.regions,
        populates,
    };
    let agreed = async move { agree(&*store, checkpoints.as_deref(), entry).await };
    Ok(runtime.executor().run(agreed).await?)
}

fn checkpoint_queue(config: &Config) -> CheckpointQueue {
    let tick = Duration::from_millis(config.tick_ms.into());
    let every = config.cluster.checkpoint.div_duration_f64(tick).ceil() as u64;
    CheckpointQueue::new(every, tick)
}

/// The scenes and the clock, and where everything of the cluster is found.
fn directory(
    config: &Config,
    (scenes, process): (Vec<Arc<Scene>>, Process),
    (environment, logic): (&Environment, Option<Arc<dyn LogicFactory>>),
    (subjects, players): (&Subjects, Option<&PlayerRecords>),
) -> Arc<Directory> {
    let directory = Directory::of_process(scenes, process).with_maps_to_come();
    let directory = if environment.is_alone() { directory.alone() } else { directory };
    let directory = directory.with_grace_period(config.gateway.grace_period);
    let directory = directory.with_workers(TickThreads::shared(config.server.region_threads));
    let directory = match environment.observer() {
        None => directory,
        Some(observer) => directory.with_observer(observer),
    };
    let directory = directory.with_logins(Arc::new(subjects.clone()));
    let directory = match logic {
        None => directory,
        Some(logic) => directory.with_logic(logic),
    };
    Arc::new(match players {
        Some(players) => directory.with_player_store(Arc::new(players.clone())),
        None => directory,
    })
}

async fn node_info(
    config: &Config,
    roles: Roles,
    number: u64,
    listens: SocketAddr,
) -> Result<NodeInfo, ProcessError> {
    let address = advertised(&config.cluster, listens).await?;
    let own = &config.cluster;
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let name = match own.node.is_empty() {
        true => format!("{machine}:{}", listens.port()),
        false => own.node.clone(),
    };
    Ok(NodeInfo {
        name,
        process: number,
        address,
        regions: roles.regions,
        gateway: roles.gateway,
        capacity: arbiters::capacity(own.capacity, config.server.arbiters),
        about: About {
            zone: own.zone.clone(),
            labels: own.labels.iter().cloned().collect(),
            release: env!("CARGO_PKG_VERSION").into(),
        },
    })
}

/// Threads for regions and sessions; a simulated process has none of its own.
fn threads(config: &Config, clients: &Clients) -> (Arbiters, Threads) {
    match clients {
        Clients::Listen(_) => {
            let arbiters = Arbiters::start(config.server.arbiters);
            let threads = Threads::Arbiters(arbiters.handles());
            (arbiters, threads)
        }
        Clients::Brought(..) => (Arbiters::none(), Threads::This),
    }
}

/// Lets clients in, if the process holds sessions, as soon as its clock is set; and serves the page for visitors, where
/// they are admitted.
async fn gateway(
    config: &Config,
    roles: Roles,
    node: &Node,
    (clients, arbiters): (Clients, Vec<ArbiterHandle>),
) -> Result<(Option<Gateway>, Option<PlayPage>, Option<TestListener>), ProcessError> {
    if !roles.gateway {
        return Ok((None, None, None));
    }
    // Sessions see no clock that is not set.
    node.clock_is_set().await;
    let (options, directory) = (GatewayConfig::from(config), node.directory().clone());
    match clients {
        Clients::Listen(tokens) => {
            let tokens = if config.play.enabled { tokens.with_visitors()? } else { *tokens };
            let started = Gateway::start(options, directory, tokens.clone(), arbiters);
            let gateway = started.await?;
            let play = play(config, node, &gateway, tokens)?;
            Ok((Some(gateway), play, None))
        }
        Clients::Brought(tokens, passes) => {
            let (gateway, doors) = Gateway::simulated(options, directory, tokens, passes);
            Ok((Some(gateway), None, Some(doors)))
        }
    }
}

type Kept = (Option<Arc<CheckpointQueue>>, Option<PlayerRecords>);

/// What lets clients and logic workers in, where the process does.
type Served<'a> = (Option<&'a Gateway>, Option<&'a LogicService>);

fn console(
    config: &Config,
    node: &Node,
    ((gateway, logic), kept, readiness): (Served<'_>, Kept, &Arc<Readiness>),
) -> Result<Option<Console>, ProcessError> {
    let Some(addr) = config.console.listen else { return Ok(None) };
    let metrics = gateway.map(|gateway| gateway.metrics().clone());
    let state = console::of_cluster(node, (metrics, logic), kept, readiness);
    Ok(Some(Console::start(state, addr, &config.console)?))
}

/// Serves the page on which visitors play, where they are admitted.
fn play(
    config: &Config,
    node: &Node,
    gateway: &Gateway,
    tokens: ClusterTokens,
) -> Result<Option<PlayPage>, ProcessError> {
    if !config.play.enabled {
        return Ok(None);
    }
    let state = PlayState {
        directory: node.directory().clone(),
        regions: node.hosted().clone(),
        node: node.name().to_owned(),
        tokens,
        gateway: (gateway.ws_addr().unwrap_or(config.gateway.ws), gateway.is_secure()),
    };
    Ok(Some(PlayPage::start(state, &config.play)?))
}

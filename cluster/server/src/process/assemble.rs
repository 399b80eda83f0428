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
use purview::actor::directory::{Archive, Directory, Process};
use purview::scene::Scene;
use purview::wire::peer::PEER_VERSION;
use tokio::time::Instant;

use super::arbiters::Arbiters;
use super::cluster::ClusterProcess;
use super::console;
use super::error::ProcessError;
use super::ground::{Clients, Ground};
use super::runtime::TaskRuntime;
use crate::admin::Console;
use crate::config::Config;
use crate::gateway::token::random_secret;
use crate::gateway::{Doors, Gateway, GatewayConfig};
use crate::logins::Subjects;
use crate::node::fence::LeaseFence;
use crate::node::local_regions::Threads;
use crate::node::population::Population;
use crate::node::readiness::Readiness;
use crate::node::startup::{Agreed, Entry, agree};
use crate::node::{Node, Parts, Roles, find_sessions};
use crate::storage::checkpoints::last_positions::PlaceBook;
use crate::storage::checkpoints::writer::Shelf;
use crate::storage::{Checkpoints, Leases, NodeInfo};

/// Where leases and checkpoints are kept.
type Stores = (Arc<dyn Leases>, Option<Arc<dyn Checkpoints>>);

/// Assembles a process and starts it. Gives also where clients are brought in, if it is simulated and holds sessions.
///
/// # Errors
/// What cannot be started, or the store's answer.
pub(super) async fn assemble(
    config: &Config,
    roles: Roles,
    (store, checkpoints): Stores,
    (runtime, ground): (TaskRuntime, Ground),
) -> Result<(ClusterProcess, Option<Doors>), ProcessError> {
    let scenes = config.build_scenes()?;
    let population = population(config, roles, &ground)?;
    let begun = Instant::now();
    let stores = (store.clone(), checkpoints.clone());
    let agreed = enter(config, stores, &scenes, (&runtime, &ground, population.is_some())).await?;
    let fence = Arc::new(LeaseFence::default());
    let shelf = checkpoints.as_ref().map(|_| Arc::new(shelf(config)));
    let archive = shelf.clone().map(|shelf| shelf as Arc<dyn Archive>);
    // What the store took to answer has passed, too: every process's ticks begin at the same times.
    let clock = agreed.clock + begun.elapsed();
    let process = Process { number: agreed.number, clock, fence: Some(fence.clone()), archive };
    let places = checkpoints.clone().filter(|_| roles.gateway).map(|store| {
        Arc::new(PlaceBook::new(config.cluster.checkpoint, store, runtime.home().clone()))
    });
    let subjects = Subjects::new(config.token.duplicate.unwrap_or_default());
    let known = (scenes.clone(), process);
    let directory = directory(config, known, &ground, (&subjects, places.as_ref()));
    let number = (agreed.number, directory.clone());
    let (links, listens, clients) = ground.connect(config, &runtime, number).await?;
    find_sessions(&directory, &links);
    let info = node_info(config, roles, agreed.number, listens);
    let (joined, ttl) = (store.clone(), config.cluster.lease);
    let membership = runtime.home().run(async move { joined.join(info, ttl).await }).await?;
    fence.hold(membership.authority().clone());
    let (arbiters, threads) = threads(config, &clients);
    let mut node = Node::new(Parts {
        home: runtime.home().clone(),
        store,
        checkpoints,
        shelf: shelf.clone(),
        membership,
        links,
        directory,
        scenes,
        subjects,
        threads,
    });
    if let Some(places) = &places {
        runtime.home().spawn(places.clone().run());
    }
    node.run();
    if roles.gateway {
        node.follow_gateways();
    }
    if let Some(population) = population {
        node.populate(population, agreed.populates);
    }
    let (gateway, doors) = gateway(config, roles, &node, (clients, arbiters.handles())).await?;
    let ending = Arc::new(AtomicBool::new(false));
    let kept = (shelf, places.clone());
    let console = console(config, roles, &node, (gateway.as_ref(), kept, &ending))?;
    let drain_limit = config.cluster.drain;
    let process =
        ClusterProcess { node, gateway, places, console, arbiters, drain_limit, ending, runtime };
    Ok((process, doors))
}

/// The demo entities that the process brings along, if it is to.
fn population(
    config: &Config,
    roles: Roles,
    ground: &Ground,
) -> Result<Option<Arc<dyn Population>>, ProcessError> {
    match (config.server.demo_npcs && roles.regions, ground.population()) {
        (true, None) => Err(ProcessError::NoPopulation),
        (wanted, population) => Ok(population.filter(|_| wanted)),
    }
}

/// Agrees with the store on the number and the clock of the process, and on the secret of resume tickets.
async fn enter(
    config: &Config,
    (store, checkpoints): Stores,
    scenes: &[Arc<Scene>],
    (runtime, ground, populates): (&TaskRuntime, &Ground, bool),
) -> Result<Agreed, ProcessError> {
    let tickets = ground.tokens().map(|_| random_secret()).transpose()?;
    let entry = Entry {
        scenes: scenes.to_vec(),
        tick_ms: config.tick_ms,
        now: runtime.home().time_of_day(),
        populates,
        tickets,
    };
    let agreed = async move { agree(&*store, checkpoints.as_deref(), entry).await };
    let agreed = runtime.home().run(agreed).await?;
    if let (Some(tokens), Some(secret)) = (ground.tokens(), &agreed.tickets) {
        tokens.sign_tickets_with(secret);
    }
    Ok(agreed)
}

/// Takes checkpoints on their way to where they are kept.
fn shelf(config: &Config) -> Shelf {
    let tick = Duration::from_millis(config.tick_ms.into());
    let every = config.cluster.checkpoint.div_duration_f64(tick).ceil() as u64;
    Shelf::new(every, tick)
}

/// The scenes and the clock, and where everything of the cluster is found.
fn directory(
    config: &Config,
    (scenes, process): (Vec<Arc<Scene>>, Process),
    ground: &Ground,
    (subjects, places): (&Subjects, Option<&Arc<PlaceBook>>),
) -> Arc<Directory> {
    let directory = Directory::of_process(scenes, process).with_maps_to_come();
    let directory = directory.with_linger(config.gateway.linger);
    let directory = match ground.witness() {
        None => directory,
        Some(witness) => directory.with_witness(witness),
    };
    let directory = directory.with_logins(Arc::new(subjects.clone()));
    Arc::new(match places {
        Some(places) => directory.with_places(places.clone()),
        None => directory,
    })
}

/// What the process says of itself to the others.
fn node_info(config: &Config, roles: Roles, number: u64, listens: SocketAddr) -> NodeInfo {
    let own = &config.cluster;
    let address =
        if own.advertise.is_empty() { listens.to_string() } else { own.advertise.clone() };
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let name = match own.node.is_empty() {
        true => format!("{machine}:{}", listens.port()),
        false => own.node.clone(),
    };
    NodeInfo {
        name,
        process: number,
        address,
        regions: roles.regions,
        gateway: roles.gateway,
        capacity: own.capacity,
        protocol: PEER_VERSION.into(),
    }
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

/// Lets clients in, if the process holds sessions, as soon as its clock is set.
async fn gateway(
    config: &Config,
    roles: Roles,
    node: &Node,
    (clients, arbiters): (Clients, Vec<ArbiterHandle>),
) -> Result<(Option<Gateway>, Option<Doors>), ProcessError> {
    if !roles.gateway {
        return Ok((None, None));
    }
    // Sessions see no clock that is not set.
    node.clock_is_set().await;
    let (options, directory) = (GatewayConfig::from(&config.gateway), node.directory().clone());
    match clients {
        Clients::Listen(tokens) => {
            let gateway = Gateway::start(options, directory, *tokens, arbiters).await?;
            Ok((Some(gateway), None))
        }
        Clients::Brought(tokens, passes) => {
            let (gateway, doors) = Gateway::simulated(options, directory, tokens, passes);
            Ok((Some(gateway), Some(doors)))
        }
    }
}

/// The checkpoint queue and the last positions, where there is a store for them.
type Kept = (Option<Arc<Shelf>>, Option<Arc<PlaceBook>>);

/// Serves the console, if the configuration says where.
fn console(
    config: &Config,
    roles: Roles,
    node: &Node,
    (gateway, kept, ending): (Option<&Gateway>, Kept, &Arc<AtomicBool>),
) -> Result<Option<Console>, ProcessError> {
    let Some(addr) = config.console.listen else { return Ok(None) };
    let readiness = Readiness::new(roles, node, ending.clone());
    let metrics = gateway.map(|gateway| gateway.metrics().clone());
    let lacks = Box::new(move || readiness.lacks());
    let state = console::of_cluster(node, metrics, kept, lacks);
    Ok(Some(Console::start(state, addr, &config.console)?))
}

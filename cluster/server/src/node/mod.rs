//! One process of a cluster: it owns regions, or holds clients' sessions, or both.
//!
//! ```text
//!              etcd: who is there, who owns what, the plan
//!                │ watch                      ▲ claim, plan (the leader)
//!                ▼                            │
//!  Keeper ── joins and leaves ──► Links ◄──► other processes
//!    │ starts and ends
//!    ▼
//!  RegionActors ◄── Directory (where every region is) ──► Gateway, its sessions
//! ```
//!
//! What the store says is followed, never assumed: a region runs here from its grant until the grant, or
//! the lease, is gone; and no tick begins unless the lease's [`crate::storage::Authority`] holds.

mod background;
mod clock_sync;
pub mod down;
mod fence;
pub mod hosted;
pub mod inspect;
pub mod layout_change;
mod layouts;
pub mod leader;
mod lines;
mod local_regions;
pub(crate) mod logins;
pub mod maps;
mod migration;
pub mod placement;
mod plain_text;
pub mod population;
mod previous_run;
mod readiness;
pub mod ready;
mod reconcile;
mod startup;
mod store_watch;
pub mod stores;
mod survey;
mod surveyor;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock, Weak};
use std::time::Duration;

use actix::Arbiter;
use futures::FutureExt;
use purview::actor::address::SessionAddress;
use purview::actor::directory::{Archive, Directory, FindSession, Process, Witness};
use purview::actor::player::{Passes, TokenCheck};
use purview::scene::SessionId;
use purview::wire::enquiry::{Answer, Question};
use purview::wire::peer::PEER_VERSION;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{oneshot, watch};

use crate::admin::{Console, ConsoleError, Hosted, answer};
use crate::config::{Config, ConfigErrors, PasswordError};
use crate::executor::Home;
use crate::gateway::token::keys::KeysError;
use crate::gateway::{Doors, Gateway, GatewayError, Tokens};
use crate::logins::Subjects;
use crate::peer::transport::{Dial, Offer};
use crate::peer::{Identity, LinkError, Links};
use crate::process::gateway_config;
use crate::shutdown;
use crate::storage::checkpoints::last_positions::PlaceBook;
use crate::storage::checkpoints::writer::Shelf;
use crate::storage::{
    CheckpointError, Checkpoints, LeaseError, Leases, Membership, NodeInfo, View,
};
use crate::tls::TlsError;

use background::{Background, on};
use clock_sync::ClockStatus;
use fence::LeaseFence;
use leader::{OrderError, Orders};
use local_regions::{Residents, Threads};
use maps::Maps;
use population::Population;
use readiness::Readiness;
use reconcile::{Keeper, Stores, Told};
use startup::{count_on, populates, take_number, ticket_secret};
use stores::{certificates, etcd, postgres};
use surveyor::{Surveyor, console_state};

pub use survey::{ClusterSurvey, LaneLine, LeftOut, MapLine, NodeLine, RegionLine};

/// The value that counts the processes that ever were.
const PROCESSES: &str = "processes";

/// The value that says which process creates the demo entities of a new cluster.
const POPULATION: &str = "population";

/// The value with which the cluster signs resume tickets where the keys of tokens are public alone.
const TICKETS: &str = "tickets";

/// Above every process's number: see [`Process::number`].
const MAX_PROCESSES: u64 = 1 << 21;

/// Why a process does not become a member of its cluster, or is none any more.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// The store says no or nothing.
    #[error(transparent)]
    Store(#[from] LeaseError),
    /// What keeps checkpoints says no or nothing.
    #[error(transparent)]
    Checkpoints(#[from] CheckpointError),
    /// Something would be said in plain text beyond this machine.
    #[error(
        "{key} = {address:?} is beyond this machine and would be talked to in plain text: name certificates in \
         [cluster.tls], or, in a network that nobody else can enter, set cluster.insecure = true"
    )]
    Insecure {
        /// The key of the configuration.
        key: &'static str,
        /// Where it leads.
        address: String,
    },
    /// A password of a store cannot be had.
    #[error(transparent)]
    Password(#[from] PasswordError),
    /// The certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Peers cannot connect.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// There is no secret to sign resume tickets with.
    #[error(transparent)]
    Tickets(#[from] KeysError),
    /// Clients cannot connect.
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    /// The console cannot be served.
    #[error(transparent)]
    Console(#[from] ConsoleError),
    /// The system gives no thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
    /// The configuration asks for demo entities that this build does not contain.
    #[error(
        "server.demo_npcs = \"on\": this build has no demo NPCs; build it with the feature `lab`, or set the key to \"off\""
    )]
    NoPopulation,
    /// A value of the store that cannot be what a cluster keeps there.
    #[error("{key} in the store is {found:?}: want {want}")]
    Value {
        /// Which.
        key: &'static str,
        /// What stands there.
        found: String,
        /// What should.
        want: &'static str,
    },
    /// The lease is gone: others may own by now what this process owned.
    #[error("the lease is gone ({0:?}): this process owns nothing any more and ends")]
    Lost(crate::storage::Loss),
}

/// What a process is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Roles {
    /// It takes regions.
    pub regions: bool,
    /// It holds clients' sessions.
    pub gateway: bool,
}

/// What a process stands on.
enum Ground {
    /// Clients are let in who have these tokens; the entities are brought along.
    Machine(Tokens, Option<Arc<dyn Population>>),
    Simulated(Simulated),
}

impl Ground {
    /// By what clients are let in, on a machine.
    fn tokens(&self) -> Option<Tokens> {
        match self {
            Ground::Machine(tokens, _) => Some(tokens.clone()),
            Ground::Simulated(_) => None,
        }
    }

    fn population(&self) -> Option<Arc<dyn Population>> {
        match self {
            Ground::Machine(_, population) => population.clone(),
            Ground::Simulated(simulated) => simulated.population.clone(),
        }
    }
}

/// What a process that is simulated stands on: everything of it lives in the [`tokio::task::LocalSet`] in which it is
/// joined, and ends with that.
pub struct Simulated {
    /// Where its tasks run.
    pub home: Home,
    /// Where it is called by peers.
    pub address: SocketAddr,
    /// How it calls peers, and the calls of peers.
    pub links: (Arc<dyn Dial>, UnboundedReceiver<Offer>),
    /// What tokens let clients in.
    pub tokens: TokenCheck,
    /// What signs and checks resume tickets.
    pub passes: Arc<dyn Passes>,
    /// Sees every tick.
    pub witness: Arc<dyn Witness>,
    /// Demo entities.
    pub population: Option<Arc<dyn Population>>,
}

/// A running process of a cluster. It lives inside an actix system.
#[derive(Debug)]
pub struct Node {
    name: String,
    directory: Arc<Directory>,
    membership: Membership,
    links: Links,
    gateway: Option<Gateway>,
    places: Option<Arc<PlaceBook>>,
    console: Option<Console>,
    arbiters: Vec<Arbiter>,
    /// Dropped to end the keeper.
    stop: Option<oneshot::Sender<()>>,
    keeper: Option<tokio::task::JoinHandle<()>>,
    status: watch::Receiver<Status>,
    orders: Orders,
    drain_limit: Duration,
    /// Set when the process stops.
    ending: Arc<AtomicBool>,
    /// Where links and the store's client live.
    background: Background,
}

/// What a process knows of its cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// Other processes that are there.
    pub peers: usize,
    /// Regions of all scenes.
    pub regions: usize,
    /// Of these, those of which it is known where they run.
    pub located: usize,
    /// Of these, those that run here.
    pub here: usize,
    /// Of all, those that are down: their checkpoints cannot be read.
    pub down: usize,
    /// How often a region went on here from a checkpoint that was older than recovery assumes.
    pub recovered_late: u64,
    /// Whether this process plans for all.
    pub leads: bool,
    /// Whether this process is to give its regions to others.
    pub draining: bool,
    /// Whether it was to, and has.
    pub drained: bool,
}

impl Status {
    /// Whether every region can be reached.
    pub fn is_whole(&self) -> bool {
        self.regions > 0 && self.located == self.regions
    }
}

impl Node {
    /// Joins the cluster of the configuration; to be called inside a running actix system.
    ///
    /// # Errors
    /// What cannot be started, or the store's answer.
    pub async fn start(
        config: &Config,
        roles: Roles,
        tokens: Tokens,
        population: Option<Arc<dyn Population>>,
    ) -> Result<Node, NodeError> {
        if let Some((key, address)) = plain_text::leaves(config) {
            return Err(NodeError::Insecure { key, address });
        }
        let background = Background::new()?;
        let (asked, tls) = (config.clone(), certificates(config)?);
        // Clients of the store live where they were made.
        let (store, checkpoints) = on(&background, async move {
            let tls = tls.as_ref();
            let checkpoints = postgres(&asked, tls).await?;
            Ok::<_, NodeError>((etcd(&asked, tls, checkpoints.as_deref()).await?, checkpoints))
        })
        .await?;
        let ground = Ground::Machine(tokens, population);
        let (node, _) =
            Node::join_on(config, roles, Arc::new(store), checkpoints, (background, ground))
                .await?;
        Ok(node)
    }

    /// The same with any store; `background` must be the runtime on which the store was made, or
    /// another that outlives the node.
    ///
    /// # Errors
    /// As [`Node::start`].
    pub async fn join(
        config: &Config,
        roles: Roles,
        tokens: Tokens,
        store: Arc<dyn Leases>,
        checkpoints: Option<Arc<dyn Checkpoints>>,
        background: Runtime,
    ) -> Result<Node, NodeError> {
        let (background, ground) = (Background::of(background), Ground::Machine(tokens, None));
        let (node, _) =
            Node::join_on(config, roles, store, checkpoints, (background, ground)).await?;
        Ok(node)
    }

    /// The same in a simulator; with where clients are brought in, if it holds sessions.
    ///
    /// # Errors
    /// As [`Node::start`].
    pub async fn simulate(
        config: &Config,
        roles: Roles,
        store: Arc<dyn Leases>,
        checkpoints: Option<Arc<dyn Checkpoints>>,
        ground: Simulated,
    ) -> Result<(Node, Option<Doors>), NodeError> {
        let background = Background::at(ground.home.clone());
        let ground = Ground::Simulated(ground);
        Node::join_on(config, roles, store, checkpoints, (background, ground)).await
    }

    async fn join_on(
        config: &Config,
        roles: Roles,
        store: Arc<dyn Leases>,
        checkpoints: Option<Arc<dyn Checkpoints>>,
        (background, ground): (Background, Ground),
    ) -> Result<(Node, Option<Doors>), NodeError> {
        let scenes = config.build_scenes()?;
        let population = match (config.server.demo_npcs && roles.regions, ground.population()) {
            (true, None) => return Err(NodeError::NoPopulation),
            (wanted, population) => population.filter(|_| wanted),
        };
        let populated = population.is_some();
        let begun = tokio::time::Instant::now();
        let (number, clock, populates) = {
            let (store, checkpoints) = (store.clone(), checkpoints.clone());
            let tokens = ground.tokens();
            let (tick_ms, now) = (config.tick_ms, background.home.time_of_day());
            let known = scenes.clone();
            on(&background, async move {
                count_on(&*store, checkpoints.as_deref(), tick_ms, now).await?;
                layouts::adopt(&*store, checkpoints.as_deref(), &known).await?;
                if let Some(tokens) = tokens {
                    tokens.sign_tickets_with(&ticket_secret(&*store).await?);
                }
                let number = take_number(&*store).await?;
                let clock = clock_sync::at_join(&*store, now).await?;
                let populates =
                    populated && populates(&*store, checkpoints.as_deref(), number).await?;
                Ok::<_, NodeError>((number, clock, populates))
            })
            .await?
        };
        let fence = Arc::new(LeaseFence::default());
        let shelf = checkpoints.as_ref().map(|_| {
            let tick = Duration::from_millis(config.tick_ms.into());
            let every = config.cluster.checkpoint.div_duration_f64(tick).ceil() as u64;
            Arc::new(Shelf::new(every, tick))
        });
        let archive = shelf.clone().map(|shelf| shelf as Arc<dyn Archive>);
        // What the store took to answer has passed, too: every process's ticks begin at the same times.
        let clock = clock + begun.elapsed();
        let process = Process { number, clock, fence: Some(fence.clone()), archive };
        let directory = Directory::of_process(scenes.clone(), process).with_maps_to_come();
        let directory = directory.with_linger(config.gateway.linger);
        let directory = match &ground {
            Ground::Machine(..) => directory,
            Ground::Simulated(simulated) => directory.with_witness(simulated.witness.clone()),
        };
        let places = checkpoints.clone().filter(|_| roles.gateway).map(|store| {
            Arc::new(PlaceBook::new(config.cluster.checkpoint, store, background.home.clone()))
        });
        let subjects = Subjects::new(config.token.duplicate.unwrap_or_default());
        let directory = directory.with_logins(Arc::new(subjects.clone()));
        let directory = Arc::new(match &places {
            Some(places) => directory.with_places(places.clone()),
            None => directory,
        });
        let identity = Identity::new(config.cluster.name.clone(), number);
        let (known, home) = (directory.clone(), background.home.clone());
        let (links, listens, clients) = match ground {
            Ground::Machine(tokens, _) => {
                let (addr, tls) = (config.cluster.listen, certificates(config)?);
                let started = Links::start(identity, addr, known, home, tls);
                let (links, listens) = on(&background, started).await?;
                (links, listens, Clients::Listen(Box::new(tokens)))
            }
            Ground::Simulated(Simulated { address, links, tokens, passes, .. }) => {
                let links = Links::simulated(identity, known, home, links);
                (links, address, Clients::Brought(tokens, passes))
            }
        };
        let finder = Finder { links: links.clone(), directory: Arc::downgrade(&directory) };
        directory.find_sessions_by(Arc::new(finder));
        let info = node_info(config, roles, number, listens);
        let name = info.name.clone();
        let ttl = config.cluster.lease;
        let membership = {
            let store = store.clone();
            on(&background, async move { store.join(info, ttl).await }).await?
        };
        fence.hold(membership.authority().clone());
        let arbiters = match &clients {
            Clients::Listen(_) => arbiters(config),
            Clients::Brought(..) => Vec::new(),
        };
        let handles: Vec<_> = arbiters.iter().map(Arbiter::handle).collect();
        let threads = match &clients {
            Clients::Listen(_) => Threads::Arbiters(handles.clone()),
            Clients::Brought(..) => Threads::This,
        };
        let (stop, stopping) = oneshot::channel();
        let (tell, status) = watch::channel(Status::default());
        let (hosted, views) = (Hosted::default(), Arc::new(RwLock::new(View::default())));
        let maps = Maps::new(&scenes);
        let orders = Orders {
            store: store.clone(),
            maps: maps.clone(),
            view: views.clone(),
            home: background.home.clone(),
        };
        let asked = hosted.clone();
        // Which has these links itself.
        let counted = Arc::downgrade(&directory);
        let clock = ClockStatus::new(directory.clock().clone());
        let timed = counted.clone();
        let claimed = subjects.clone();
        links.respond_with(Arc::new(move |question| match question {
            Question::Claims(claims) => {
                let claims = claimed.meet(&claims);
                std::future::ready(Answer { claims, ..Answer::default() }).boxed()
            }
            Question::Lines => {
                let lines = counted.upgrade().map(|counted| lines::answer(&counted));
                std::future::ready(lines.unwrap_or_default()).boxed()
            }
            Question::Clock => {
                let now = timed.upgrade().map(|timed| clock_sync::answer(&timed));
                std::future::ready(now.unwrap_or_default()).boxed()
            }
            question => answer(asked.clone(), question).boxed(),
        }));
        let keeper = Keeper::new(
            Stores {
                home: background.home.clone(),
                leases: store.clone(),
                checkpoints: checkpoints.clone(),
                shelf: shelf.clone(),
            },
            membership.clone(),
            links.clone(),
            directory.clone(),
            maps.clone(),
            Residents::new(directory.clone(), threads, hosted.clone()),
            Told { status: tell, view: views.clone() },
        );
        let keeper = keeper.acting_by(clock.clone());
        let follow =
            clock_sync::follow(directory.clone(), links.clone(), views.clone(), clock.clone());
        background.spawn(follow);
        background.spawn(clock_sync::remember(store, directory.clone(), status.clone()));
        if let (Some(shelf), Some(checkpoints)) = (shelf.clone(), checkpoints) {
            let named = maps.clone();
            background.spawn(shelf.run(checkpoints, move |id| named.key(id)));
        }
        if let Some(places) = &places {
            background.spawn(places.clone().run());
        }
        let keeper = background.spawn(keeper.run(stopping));
        if roles.gateway {
            let follow = lines::follow(directory.clone(), links.clone(), views.clone());
            background.spawn(follow);
            let home = background.home.clone();
            let follow = logins::follow(subjects, links.clone(), views.clone(), home);
            background.spawn(follow);
        }
        if let Some(population) = population {
            let (directory, mut whole) = (directory.clone(), status.clone());
            let asked = hosted.clone();
            background.spawn(async move {
                if populates && whole.wait_for(Status::is_whole).await.is_ok() {
                    population.create(directory.clone()).await;
                }
                population.drive(directory, asked).await;
            });
        }
        if roles.gateway {
            // Sessions see no clock that is not set.
            clock.set().await;
        }
        let ending = Arc::new(AtomicBool::new(false));
        let limits = gateway_config(&config.gateway);
        let (gateway, doors) = match (roles.gateway, clients) {
            (false, _) => (None, None),
            (true, Clients::Listen(tokens)) => {
                (Some(Gateway::start(limits, directory.clone(), *tokens, handles).await?), None)
            }
            (true, Clients::Brought(tokens, passes)) => {
                let (gateway, doors) =
                    Gateway::simulated(limits, directory.clone(), tokens, passes);
                (Some(gateway), Some(doors))
            }
        };
        let console = match config.console.listen {
            Some(addr) => {
                let readiness = Readiness {
                    roles,
                    ending: ending.clone(),
                    status: status.clone(),
                    views: views.clone(),
                    links: links.clone(),
                    membership: membership.clone(),
                };
                let survey = Surveyor {
                    name: name.clone(),
                    views,
                    maps,
                    status: status.clone(),
                    links: links.clone(),
                };
                let metrics = gateway.as_ref().map(|gateway| gateway.metrics().clone());
                let (kept, asked) = ((shelf, places.clone(), clock), (survey, orders.clone()));
                let mut state = console_state(&directory, hosted, metrics, kept, asked);
                state.readiness = Some(Box::new(move || readiness.lacks()));
                Some(Console::start(state, addr, &config.console)?)
            }
            None => None,
        };
        let node = Node {
            name,
            directory,
            membership,
            links,
            gateway,
            places,
            console,
            arbiters,
            stop: Some(stop),
            keeper: Some(keeper),
            status,
            orders,
            drain_limit: config.cluster.drain,
            ending,
            background,
        };
        Ok((node, doors))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its scenes and clock, and where regions are.
    pub fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    /// Its links to other processes.
    pub fn links(&self) -> &Links {
        &self.links
    }

    /// Where WebSocket clients connect, if they may.
    pub fn ws_addr(&self) -> Option<SocketAddr> {
        self.gateway.as_ref().and_then(Gateway::ws_addr)
    }

    /// Where TCP clients connect, if they may.
    pub fn tcp_addr(&self) -> Option<SocketAddr> {
        self.gateway.as_ref().and_then(Gateway::tcp_addr)
    }

    /// Where console, metrics and health are served, if they are.
    pub fn console_addr(&self) -> Option<SocketAddr> {
        self.console.as_ref().map(Console::addr)
    }

    /// What it knows of its cluster, as it changes.
    pub fn status(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    /// Waits until the lease is gone, by which the process is no member any more.
    pub async fn lost(&self) -> NodeError {
        NodeError::Lost(self.membership.lost().await)
    }

    /// What may be ordered here, of the whole cluster.
    pub fn orders(&self) -> &Orders {
        &self.orders
    }

    /// Waits until this process has given its regions to others, as it was ordered to.
    pub async fn drained(&self) {
        let mut status = self.status();
        if status.wait_for(|status| status.drained).await.is_err() {
            // The keeper has ended, which the lease tells, too.
            std::future::pending::<()>().await;
        }
    }

    /// Gives its regions to others one by one, while players walk, if there are others; for as long as
    /// the configuration allows.
    async fn drain(&self) {
        let done = self.status.borrow().here == 0 || self.status.borrow().drained;
        if done || self.membership.loss().is_some() {
            return;
        }
        let (orders, name) = (self.orders.clone(), self.name.clone());
        let order = async move { tokio::time::timeout(shutdown::ORDER, orders.drain(&name)).await };
        match on(&self.background, order).await {
            Ok(Ok(())) => {}
            // What each region was last is kept, for whoever comes next.
            Ok(Err(OrderError::OnlyNode(_))) => {
                return tracing::info!("nobody is there to take regions");
            }
            Ok(Err(error)) => return tracing::warn!(%error, "regions are not given to others"),
            Err(late) => return tracing::warn!(%late, "regions are not given to others"),
        }
        tracing::info!("regions are given to others");
        tokio::select! {
            () = self.drained() => {}
            lost = self.lost() => tracing::warn!(%lost, "regions are not given to others"),
            () = tokio::time::sleep(self.drain_limit) => {
                let left = self.status.borrow().here;
                tracing::warn!(left, "not all regions were given to others in time");
            }
        }
    }

    /// Gives its regions to others, closes every session, and stops.
    pub async fn stop(mut self) {
        self.ending.store(true, Ordering::Relaxed);
        self.drain().await;
        if let Some(gateway) = self.gateway.take() {
            gateway.stop().await;
        }
        if let Some(places) = self.places.take() {
            // Where the players of the sessions were that have just ended.
            let flush = async move { tokio::time::timeout(shutdown::FLUSH, places.flush()).await };
            if on(&self.background, flush).await.is_err() {
                tracing::warn!("some players' last places could not be kept in time");
            }
        }
        if let Some(console) = self.console.take() {
            console.stop().await;
        }
        drop(self.stop.take());
        let (keeper, membership) = (self.keeper.take(), self.membership.clone());
        let left = async move {
            if let Some(keeper) = keeper
                && let Err(error) = keeper.await
            {
                tracing::error!(%error, "the keeper ended badly");
            }
            membership.leave().await
        };
        let left = async move { tokio::time::timeout(shutdown::LEAVE, left).await };
        match on(&self.background, left).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "the lease could not be given up; it runs out by itself");
            }
            Err(_) => tracing::warn!(
                "not every last checkpoint was saved in time; the lease runs out by itself"
            ),
        }
        self.links.stop();
        for arbiter in &self.arbiters {
            arbiter.stop();
        }
        for arbiter in self.arbiters.drain(..) {
            if arbiter.join().is_err() {
                tracing::error!("a region thread ended in a panic");
            }
        }
    }
}

/// Finds sessions of all processes for the regions of this one.
#[derive(Debug)]
struct Finder {
    links: Links,
    directory: Weak<Directory>,
}

impl FindSession for Finder {
    fn find(&self, session: SessionId) -> Option<SessionAddress> {
        self.links.session(&*self.directory.upgrade()?, session)
    }
}

/// How clients come to a process.
enum Clients {
    /// It listens for those who have these tokens.
    Listen(Box<Tokens>),
    /// Somebody brings them.
    Brought(TokenCheck, Arc<dyn Passes>),
}

/// Threads for regions and sessions.
fn arbiters(config: &Config) -> Vec<Arbiter> {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let threads = if config.server.arbiters == 0 { cores } else { config.server.arbiters };
    (0..threads).map(|_| Arbiter::new()).collect()
}

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

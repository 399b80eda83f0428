//! The processes of a simulated cluster: starts and restarts them, gives orders, and waits until the cluster has
//! recovered.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use purview::scene::{Epoch, RegionId, Scene};
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep};

use crate::rng::Rng;
use purview_server::config::Config;
use purview_server::node::Roles;
use purview_server::node::down::RegionOrder;
use purview_server::node::layout_change::MapOrder;
use purview_server::node::orders::{OrderError, Orders};
use purview_server::peer::CHANNEL_BYTES;
use purview_server::storage::RegionKey;
use purview_server::storage::leases::embedded::Embedded;

use super::client::subject::value_property;
use super::faults::Fault;
use super::journal::{Journal, What};
use super::judge::{Invariant, Judge, LINGER_MS, Scope};
use super::network::{Delays, Host, Net};
use super::portals;
use super::process::{self, Process, ProcessHandle, SimContext};
use super::sights;
use super::store::Memory;
use super::walls;
use super::{Options, REGION_CM};

const GATEWAYS: Host = 100;

/// Within the first distance an entity must be shown, beyond the second it must not be; centimetres.
const NEAR_FAR_CM: (i32, i32) = (3_900, 4_500);

/// How far apart in height entities of scenes with stairs may be to come into view, and to stay in view, centimetres.
const HEIGHT_CM: (i32, i32) = (800, 900);

/// The radii in which monsters of a game watch, centimetres.
const WATCH_CM: (i32, i32) = (1_500, 2_000);

const SCENES: [&str; 2] = ["field", "moor"];

/// How far the clocks of processes may differ at rest: the error of one answer over a quiet network.
const CLOCKS_APART: Duration = Duration::from_millis(20);

/// The number of regions of a scene along each side.
const REGIONS: (i32, i32) = (3, 2);

/// What the edge of a cut scene cuts off the last lands, of 6,400 cm, along x and z, centimetres.
const CUT_CM: (i32, i32) = (700, 4_100);

fn size_cm(options: &Options) -> (i32, i32) {
    let cut = if options.cut { CUT_CM } else { (0, 0) };
    (REGIONS.0 * REGION_CM - cut.0, REGIONS.1 * REGION_CM - cut.1)
}

/// The scenes and the limits of all processes. Unless moves are judged, an entity stands where its client's last
/// input put it.
fn config(options: &Options) -> Result<Config, purview_server::config::ConfigErrors> {
    let plane_groups = options.plane_groups;
    let npcs = options.npcs || options.logic == Some(super::Logic::Sights);
    let (width, depth) = size_cm(options);
    let balance = if options.balance { "on" } else { "off" };
    let mut text = format!(
        "[server]\ndemo = {npcs}\n[gateway]\ntcp = \"off\"\ngrace_period = \"30s\"\nlame_duck = \"0ms\"\n\
         rate_limit = 200\nburst = 400\n\
         [console]\nlisten = \"off\"\n[cluster]\ncapacity = 100\nlease = \"3s\"\ncheckpoint = \"1s\"\nbalance = \"{balance}\"\n"
    );
    let moves = if options.judged { "judged" } else { "trusted" };
    let cap = options.view_cap.map(|cap| format!("view_cap = {cap}\n")).unwrap_or_default();
    let height =
        if options.stairs { format!("height = \"{}cm\"\n", HEIGHT_CM.0) } else { String::new() };
    for name in SCENES.iter().take(options.scenes as usize) {
        text += &format!(
            "[[scene]]\nteleports = \"clients\"\n\
         name = {name:?}\nwidth = \"{width}cm\"\ndepth = \"{depth}cm\"\nland = \"64m\"\n\
         region = [2, 2]\npatch = \"16m\"\nvisibility = \"circle\"\nenter = \"40m\"\n\
         leave = \"44m\"\nmoves = \"{moves}\"\ntop_speed = \"20m/s\"\n\
         rates = {{ near = \"100ms\", middle = \"100ms\", far = \"100ms\" }}\n\
         plane_groups = {plane_groups}\n{cap}{height}"
        );
        if options.portals {
            let mut others = SCENES.iter().take(options.scenes as usize);
            text += &portals::keys(others.find(|other| *other != name).unwrap_or(name));
        }
    }
    Config::parse(&text)
}

/// The cap that every third client asks for, as one for a weak device does, where the scene's cap is set.
pub fn weak_cap(cap: u32) -> u32 {
    cap.div_ceil(2)
}

/// What a player costs in a tick, microseconds: all of them somewhat less than half of what the nodes can do.
fn player_us(options: &Options) -> u64 {
    45_000 * u64::from(options.nodes) / u64::from(options.players.max(1))
}

pub struct Cluster {
    ground: SimContext,
    options: Options,
    rng: RefCell<Rng>,
    processes: RefCell<BTreeMap<Host, Rc<Process>>>,
    lives: Cell<u64>,
}

impl Cluster {
    pub fn start(options: &Options) -> Result<Cluster, purview_server::config::ConfigErrors> {
        let mut rng = Rng::new(options.seed);
        let journal = Journal::new(options.trace, options.until);
        let mut config = config(options)?;
        if options.logic.is_some_and(super::Logic::is_game) {
            let kinds = crate::game::kinds(WATCH_CM);
            config.scenes.iter_mut().for_each(|scene| scene.spec.kinds.clone_from(&kinds));
        }
        if options.logic == Some(super::Logic::Linger) {
            config.scenes.iter_mut().for_each(|scene| scene.spec.linger_ms = LINGER_MS);
        }
        if options.logic.is_some_and(super::Logic::shares_subjects) {
            let players = config.scenes.iter_mut().filter_map(|scene| scene.spec.kinds.first_mut());
            players.for_each(|kind| kind.properties = vec![value_property()]);
        }
        if options.logic == Some(super::Logic::Sights) {
            config.scenes.iter_mut().for_each(|scene| sights::add_to(&mut scene.spec));
        }
        if options.walls {
            config.scenes.iter_mut().for_each(|scene| walls::add_to(&mut scene.spec));
        }
        let (near_cm, far_cm) = NEAR_FAR_CM;
        let spec = config.scenes.first().map(|scene| scene.spec.clone()).unwrap_or_default();
        let margin_cm = spec.view_margin_cm;
        let crowded = options.players > options.view_cap.map_or(spec.view_cap as u32, weak_cap);
        let judged = options.judged;
        let height_cm = options.stairs.then_some(HEIGHT_CM);
        let scope = Scope { near_cm, far_cm, height_cm, margin_cm, crowded, judged };
        let judge = Judge::new(journal.clone(), scope);
        let judge = Arc::new(judge.of_game((options.logic, WATCH_CM), &config)?);
        let net = Net::new(rng.seed(), Delays::QUIET);
        spawn_local(net.clone().carry());
        let ground = SimContext {
            config,
            net,
            store: Arc::new(Embedded::new(Epoch(0))),
            memory: Memory::new(rng.seed()),
            journal,
            judge,
            will: Arc::default(),
            logic: options.logic,
            workers: Arc::default(),
            player_us: options.balance.then(|| player_us(options)),
            began: Instant::now(),
        };
        let (options, processes, lives) = (options.clone(), RefCell::default(), Cell::new(0));
        let cluster = Cluster { ground, options, rng: RefCell::new(rng), processes, lives };
        cluster.all().into_iter().for_each(|host| cluster.begin(host));
        Ok(cluster)
    }

    pub fn ground(&self) -> &SimContext {
        &self.ground
    }

    pub fn nodes(&self) -> Vec<Host> {
        node_hosts(&self.options)
    }

    /// The hosts of the gateways. Without gateways each node is one.
    pub fn gateways(&self) -> Vec<Host> {
        gateway_hosts(&self.options)
    }

    pub fn all(&self) -> Vec<Host> {
        let gateways = self.gateways().into_iter().filter(|host| *host >= GATEWAYS);
        self.nodes().into_iter().chain(gateways).collect()
    }

    fn scenes(&self) -> Vec<Arc<Scene>> {
        self.first_up().map(|handle| handle.orders.scenes()).unwrap_or_default()
    }

    pub fn regions(&self) -> Vec<RegionId> {
        let scenes = self.scenes();
        let of =
            |scene: &Arc<Scene>| -> Vec<_> { scene.map.regions.iter().map(|r| r.id).collect() };
        scenes.iter().flat_map(of).collect()
    }

    /// Whether all regions are where they were ordered to be, as far as the first running process knows.
    fn orders_are_done(&self) -> Result<(), String> {
        let outstanding = self.first_up().map(|handle| handle.orders.outstanding());
        match outstanding.unwrap_or_default().as_slice() {
            [] => Ok(()),
            regions => Err(format!("regions {regions:?} are not where they were ordered to be")),
        }
    }

    fn clocks_agree(&self) -> Result<(), String> {
        let time = |host| Some((host, self.handle(host)?.clock.now()));
        let times: Vec<(Host, Duration)> = self.hosts().into_iter().filter_map(time).collect();
        let all = || times.iter().map(|(_, time)| *time);
        let apart = all().max().unwrap_or_default().saturating_sub(all().min().unwrap_or_default());
        match apart <= CLOCKS_APART {
            true => Ok(()),
            false => Err(format!("clocks differ by {apart:?}: {times:?}")),
        }
    }

    fn first_up(&self) -> Option<ProcessHandle> {
        let processes = self.processes.borrow();
        let up = processes.values().filter(|process| !process.is_over());
        up.filter_map(|process| process.handle.borrow().clone()).next()
    }

    pub fn size(&self) -> (i32, i32) {
        size_cm(&self.options)
    }

    pub fn players(&self) -> u32 {
        self.options.players
    }

    /// The process on a host.
    ///
    /// # Panics
    /// There is no such host.
    pub fn process(&self, host: Host) -> Rc<Process> {
        self.processes.borrow()[&host].clone()
    }

    fn hosts(&self) -> Vec<Host> {
        self.processes.borrow().keys().copied().collect()
    }

    fn begin(&self, host: Host) {
        self.lives.set(self.lives.get() + 1);
        let regions = host < GATEWAYS;
        let roles = Roles { regions, gateway: !regions || self.options.gateways == 0 };
        let skewed = self.options.faults.0.contains(&Fault::Skew);
        let mut rng = self.rng.borrow_mut();
        let ahead = Duration::from_millis((rng.unit() * 60.0) as u64) * u32::from(skewed);
        let seed = (rng.seed(), ahead);
        let process = Process::start(&self.ground, host, self.lives.get(), roles, seed);
        self.processes.borrow_mut().insert(host, Rc::new(process));
    }

    /// Restarts a process that has ended.
    pub fn begin_again(&self, host: Host) {
        if self.process(host).is_over() {
            self.begin(host);
        }
    }

    /// Restarts all processes that have ended.
    pub fn revive(&self) {
        for host in self.hosts() {
            self.begin_again(host);
        }
    }

    /// Undoes all faults, and restarts all processes that have ended.
    pub fn heal(&self) {
        self.ground.net.mend();
        self.ground.net.set_delays(Delays::QUIET);
        self.ground.memory.set_faults(Default::default());
        self.ground.workers.heal();
        for host in self.hosts() {
            let process = self.process(host);
            process.go_on();
            process.mend_stores();
            process.way.lose_answers(0);
        }
        self.revive();
    }

    fn handle(&self, host: Host) -> Option<ProcessHandle> {
        self.processes.borrow().get(&host)?.handle.borrow().clone()
    }

    pub fn is_whole(&self) -> bool {
        let whole =
            |handle: Option<ProcessHandle>| handle.is_some_and(|r| r.status.borrow().is_whole());
        self.hosts().into_iter().all(|host| whole(self.handle(host)))
    }

    /// The processes that do not know where every region is.
    fn who_is_not_whole(&self) -> String {
        let status = |host| Some((host, self.handle(host)?.status.borrow().clone()));
        let all = self.hosts().into_iter().filter_map(status);
        let not: Vec<_> = all.filter(|(_, status)| !status.is_whole()).collect();
        format!("some processes do not know every region: {not:?}")
    }

    /// Gives an order by the first process that is up. A store that does not answer is no fault of the cluster's.
    async fn order(&self, order: impl AsyncFnOnce(Orders) -> Result<(), OrderError>) {
        let Some(handle) = self.first_up() else { return };
        if let Err(error) = order(handle.orders).await {
            self.ground.journal.note(What::Fault(format!("an order failed: {error}")));
        }
    }

    fn name_of(&self, host: Host) -> String {
        let processes = self.processes.borrow();
        process::name(host, processes.get(&host).map_or(0, |process| process.life))
    }

    /// The regions of a node with their epochs, as far as the first running process knows.
    pub fn owned_by(&self, node: Host) -> Vec<(RegionKey, Epoch)> {
        let name = self.name_of(node);
        self.first_up().map(|handle| handle.orders.owned_by(&name)).unwrap_or_default()
    }

    pub async fn order_move(&self, region: RegionId, to: Host) {
        self.ground.journal.note(What::Fault(format!("order: region {region} migrates to {to}")));
        let name = self.name_of(to);
        self.order(async |orders| orders.move_region(region, &name).await).await;
    }

    pub async fn order_map(&self, rng: &mut Rng) {
        let (Some(handle), mut scenes) = (self.first_up(), self.scenes()) else { return };
        // If there is only one scene, nothing is drawn.
        let one = if scenes.len() > 1 { rng.unit() * scenes.len() as f64 } else { 0.0 };
        if scenes.is_empty() {
            return;
        }
        let scene = scenes.swap_remove(one as usize);
        let mut some = || {
            let all = &scene.map.regions;
            all[(rng.unit() * all.len() as f64) as usize % all.len()].id.0
        };
        let order = match (some(), some(), some() % 3) {
            (region, _, 0) => MapOrder::Split { region },
            (region, gone, 1) => MapOrder::Merge { region, gone },
            (columns, rows, _) => MapOrder::Scale {
                scene: scene.spec.name.clone(),
                columns: 1 + columns as i32 % REGIONS.0,
                rows: 1 + rows as i32 % REGIONS.1,
            },
        };
        self.ground.journal.note(What::Fault(format!("{order:?}")));
        if let Err(error) = handle.orders.change_map(&order).await {
            self.ground.journal.note(What::Fault(format!("the layout does not change: {error}")));
        }
    }

    /// Orders that checkpoints which could not be read are read again, as an operator does after
    /// repairing the store.
    pub async fn restore_what_is_down(&self) {
        let down = self.first_up().map(|handle| handle.orders.down()).unwrap_or_default();
        for region in down {
            self.ground.journal.note(What::Fault(format!("order: region {region} is restored")));
            self.order(async |orders| orders.decide(region, RegionOrder::Restore).await).await;
        }
    }

    pub async fn order_drain(&self, node: Host) {
        self.ground.journal.note(What::Fault(format!("order: host {node} is drained")));
        let name = self.name_of(node);
        self.order(async |orders| orders.drain(&name).await).await;
    }

    /// Checks that queues for peers are within their bound.
    pub fn check_bounds(&self) {
        let processes = self.processes.borrow();
        for (host, process) in processes.iter().filter(|(_, process)| !process.is_over()) {
            let Some(handle) = process.handle.borrow().clone() else { continue };
            handle.links.each_channel(|peer, kind, _, _, bytes| {
                if let Err(text) = bounded(bytes) {
                    let text = format!("{text} from host {host} to process {peer} ({kind:?})");
                    self.ground.judge.violated(Invariant::Bounded, Vec::new(), text);
                }
            });
        }
    }

    /// Waits until everything is as it must be at rest, at most so long. The error says what is wrong.
    pub async fn comes_to_rest(
        &self,
        most: Duration,
    ) -> Result<(), (Vec<purview::scene::EntityId>, String)> {
        let begin = Instant::now();
        loop {
            sleep(Duration::from_millis(250)).await;
            self.restore_what_is_down().await;
            let wrong = match self.is_whole() {
                true => self
                    .ground
                    .judge
                    .not_at_rest(&self.regions())
                    .or_else(|| self.ground.judge.scenes_not_at_rest(&self.scenes()))
                    .or_else(|| self.orders_are_done().err().map(|text| (Vec::new(), text)))
                    .or_else(|| self.clocks_agree().err().map(|text| (Vec::new(), text))),
                false => Some((Vec::new(), self.who_is_not_whole())),
            };
            match wrong {
                None => return Ok(()),
                Some(_) if self.ground.judge.violation().is_some() => return Ok(()),
                Some(wrong) if begin.elapsed() > most => return Err(wrong),
                Some(_) => {}
            }
        }
    }
}

pub(super) fn node_hosts(options: &Options) -> Vec<Host> {
    (1..=options.nodes).collect()
}

/// The hosts of the gateways: the nodes, if there are no others.
pub(super) fn gateway_hosts(options: &Options) -> Vec<Host> {
    match options.gateways {
        0 => node_hosts(options),
        some => (0..some).map(|i| GATEWAYS + i).collect(),
    }
}

/// The bound of a channel: its capacity, and one message of any length.
fn bounded(bytes: usize) -> Result<(), String> {
    let most = CHANNEL_BYTES + (64 << 20);
    if bytes <= most { Ok(()) } else { Err(format!("{bytes} bytes are queued")) }
}

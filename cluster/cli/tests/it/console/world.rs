//! A simulated world for the console: region actors that answer like real ones, with entities whose positions are a
//! function of time. It follows the rules of a scene only where the console shows them.

use std::f64::consts::TAU;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use actix::{Actor, AsyncContext, Context, Handler, MessageResult, ResponseFuture, System};
use purview::actor::directory::Directory;
use purview::actor::messages::{Inspect, InspectEntity, Weigh};
use purview::actor::region::metrics::RegionMetrics;
use purview::scene::inspect::{
    EntityDetails, InspectedEntity, PlayerDetails, RegionDetails, ViewEntry,
};
use purview::scene::layout::RegionEntry;
use purview::scene::load::RegionReport;
use purview::scene::terrain::{DoorId, DoorState, Draft, Tile};
use purview::scene::views::{NO_BOND, Ties, ViewRules};
use purview::scene::{
    EntityId, Kind, Plane, Pos, RangeSet, RegionId, Scene, SceneId, SceneSpec, Tick, Visibility,
};
use purview_lab::rng::Rng;
use purview_server::admin::balance::AskBalance;
use purview_server::admin::{ClusterView, Console, ConsoleState, RegionHandle};
use purview_server::config::ConsoleSettings;
use purview_server::gateway::GatewayMetrics;

/// A player that stands still in the first region of the meadow.
pub const SITTER: u64 = 2;
/// A player that walks to and fro across the border between the first two regions.
pub const WALKER: u64 = 1;
/// The number of entities on plane 0 of the meadow.
pub const MEADOW: usize = 420;
/// The width of the water in the west of the harbour, metres.
pub const WATER_M: i32 = 400;
/// The position of a rock of one tile in the harbour, metres from the west and the north.
pub const ROCK_M: i32 = 2_030;
/// The number of players among them.
pub const PLAYERS: u64 = 260;
/// The first entity that is no player.
pub const NPC: u64 = PLAYERS + 1;
/// A player on plane 7 of the meadow.
pub const BELOW: u64 = 900;
/// The first player of the harbour.
pub const SAILOR: u64 = 10_000;

#[derive(Debug, Clone, Copy)]
struct Inhabitant {
    id: u64,
    kind: u8,
    plane: i32,
    centre: (f64, f64),
    radius: (f64, f64),
    period_s: f64,
    phase: f64,
}

impl Inhabitant {
    fn pos(&self, t: f64) -> Pos {
        let a = TAU * (t / self.period_s + self.phase);
        let x = self.centre.0 + self.radius.0 * a.cos();
        let z = self.centre.1 + self.radius.1 * a.sin();
        Pos::ground(x as i32, z as i32)
    }
}

struct SceneWorld {
    scene: Arc<Scene>,
    inhabitants: Vec<Inhabitant>,
    began: Instant,
    /// Regions do not answer.
    deaf: Arc<AtomicBool>,
    /// The gate of the harbour is open.
    gate_open: Arc<AtomicBool>,
}

impl SceneWorld {
    fn owner(&self, pos: Pos) -> RegionId {
        self.scene.map.at(Plane(0), pos).map(|r| r.id).unwrap()
    }

    /// The players in range of this player, nearest first, up to the cap.
    fn view(&self, of: &Inhabitant, t: f64) -> Vec<ViewEntry> {
        let reach = match self.scene.spec.visibility {
            Visibility::Circle { enter_cm, .. } => enter_cm as u64,
            _ => self.scene.spec.layers[0].patch_cm[0] as u64 * 2,
        };
        let at = of.pos(t);
        let mut near: Vec<(u64, EntityId)> = self
            .inhabitants
            .iter()
            .filter(|o| o.kind == 0 && o.id != of.id && o.plane == of.plane)
            .map(|o| (o.pos(t).dist2(at), EntityId(o.id)))
            .filter(|(d2, _)| *d2 <= reach * reach)
            .collect();
        near.sort_unstable();
        let entry = |(d2, id): (u64, EntityId)| {
            let dist_cm = Some(d2.isqrt() as u32);
            ViewEntry { id, class: NO_BOND, dist_cm, linked: true }
        };
        near.into_iter().map(entry).take(self.scene.spec.view_cap).collect()
    }
}

struct FakeRegion {
    world: Arc<SceneWorld>,
    entry: RegionEntry,
    metrics: Arc<RegionMetrics>,
}

impl FakeRegion {
    fn snapshot(&self, plane: Option<Plane>) -> RegionDetails {
        let t = self.world.began.elapsed().as_secs_f64();
        let band = self.entry.rect.grown(self.world.scene.band_cm);
        let entities = self
            .world
            .inhabitants
            .iter()
            .filter(|i| plane.is_none_or(|p| p.0 == i.plane))
            .map(|i| (i, i.pos(t)))
            .filter(|(_, pos)| band.contains(*pos))
            .map(|(i, pos)| {
                let owner = self.world.owner(pos);
                let ghost = owner != self.entry.id;
                let views = match (ghost, i.kind) {
                    (false, 0) => self.world.view(i, t).len() as u32,
                    _ => 0,
                };
                let (id, kind, plane) = (EntityId(i.id), Kind(i.kind), Plane(i.plane));
                let (facing, properties) = Default::default();
                EntityDetails { id, kind, plane, pos, owner, ghost, views, facing, properties }
            })
            .collect();
        RegionDetails {
            scene: self.world.scene.id,
            region: self.entry.id,
            epoch: self.entry.epoch,
            rect: self.entry.rect,
            tick: Tick((t * 10.0) as u64),
            entities,
            doors: self.doors(plane),
            sighted: Vec::new(),
        }
    }

    fn doors(&self, plane: Option<Plane>) -> Vec<DoorState> {
        let open = self.world.gate_open.load(Relaxed);
        let told = open && self.world.scene.terrain.is_some() && plane.is_none_or(|p| p.0 == 0);
        told.then_some(DoorState { plane: Plane(0), door: DoorId(0), open }).into_iter().collect()
    }

    /// The counts of a region.
    fn tick(&mut self) {
        let snapshot = self.snapshot(None);
        let m = &self.metrics;
        let reals = snapshot.entities.iter().filter(|e| !e.ghost);
        let players = reals.clone().filter(|e| e.kind == Kind::PLAYER);
        let views: u64 = players.clone().map(|e| u64::from(e.views)).sum();
        m.reals.store(reals.count() as u64, Relaxed);
        m.ghosts.store(snapshot.entities.iter().filter(|e| e.ghost).count() as u64, Relaxed);
        let players = players.count() as u64;
        if m.players.swap(players, Relaxed) > players {
            m.handoffs.fetch_add(1, Relaxed);
        }
        m.frames.fetch_add(players, Relaxed);
        m.updates.fetch_add(views, Relaxed);
        m.tick_took(220 + views / 8 + snapshot.tick.0 % 40 * 9);
    }
}

impl Actor for FakeRegion {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(Duration::from_millis(100), |region, _| region.tick());
    }
}

/// An answer, or a long silence.
fn answer<T: 'static>(deaf: &AtomicBool, value: T) -> ResponseFuture<T> {
    let deaf = deaf.load(Relaxed);
    Box::pin(async move {
        if deaf {
            tokio::time::sleep(Duration::from_secs(600)).await;
        }
        value
    })
}

impl Handler<Inspect> for FakeRegion {
    type Result = ResponseFuture<RegionDetails>;

    fn handle(&mut self, msg: Inspect, _: &mut Self::Context) -> Self::Result {
        // Only the first region falls silent.
        let deaf = AtomicBool::new(self.world.deaf.load(Relaxed) && self.entry.id.0 == 0);
        answer(&deaf, self.snapshot(msg.plane))
    }
}

impl FakeRegion {
    fn entity(&self, i: &Inhabitant, t: f64) -> InspectedEntity {
        let (id, kind, plane) = (EntityId(i.id), Kind(i.kind), Plane(i.plane));
        let (pos, owner) = (i.pos(t), self.entry.id);
        if kind != Kind::PLAYER {
            let (ghost, views) = (false, 0);
            return InspectedEntity::Other(EntityDetails {
                id,
                kind,
                plane,
                pos,
                owner,
                ghost,
                views,
                facing: Default::default(),
                properties: Default::default(),
            });
        }
        let (view, cap) = (self.world.view(i, t), self.world.scene.spec.view_cap);
        InspectedEntity::Player(Box::new(PlayerDetails {
            id,
            epoch: self.entry.epoch,
            scene: self.world.scene.id,
            region: owner,
            tick: Tick((t * 10.0) as u64),
            plane,
            pos,
            sight: RangeSet::FULL,
            ties: Ties::default(),
            relations: Default::default(),
            rules: ViewRules::new(cap, 0),
            worst: view.last().filter(|_| view.len() == cap).copied(),
            view,
            asked: Vec::new(),
            seen: Vec::new(),
            facing: Default::default(),
            properties: Default::default(),
        }))
    }
}

impl Handler<InspectEntity> for FakeRegion {
    type Result = ResponseFuture<Option<InspectedEntity>>;

    fn handle(&mut self, msg: InspectEntity, _: &mut Self::Context) -> Self::Result {
        let t = self.world.began.elapsed().as_secs_f64();
        let of = self.world.inhabitants.iter().find(|i| i.id == msg.0.0);
        let own = of.filter(|i| self.world.owner(i.pos(t)) == self.entry.id);
        answer(&self.world.deaf, own.map(|i| self.entity(i, t)))
    }
}

impl Handler<Weigh> for FakeRegion {
    type Result = MessageResult<Weigh>;

    fn handle(&mut self, _: Weigh, _: &mut Self::Context) -> Self::Result {
        let here = |i: &&Inhabitant| self.world.owner(i.pos(0.0)) == self.entry.id;
        let players = self.world.inhabitants.iter().filter(here).count() as u32;
        MessageResult(RegionReport { tick_us: 1_000.0, players, ..RegionReport::default() })
    }
}

/// Starts the world. Its regions run on their own thread until the process ends.
pub struct FakeWorld {
    directory: Arc<Directory>,
    regions: Vec<RegionHandle>,
    deaf: Arc<AtomicBool>,
    gate_open: Arc<AtomicBool>,
}

impl FakeWorld {
    /// A meadow of four regions with visibility by circle, and a harbour with visibility by patches.
    pub fn start() -> FakeWorld {
        let scenes = [Arc::new(meadow()), Arc::new(harbour())];
        let deaf = Arc::new(AtomicBool::new(false));
        let gate_open = Arc::new(AtomicBool::new(false));
        let began = Instant::now();
        let worlds: Vec<Arc<SceneWorld>> = scenes
            .iter()
            .map(|s| {
                let (scene, inhabitants) = (s.clone(), people(s));
                let (deaf, gate_open) = (deaf.clone(), gate_open.clone());
                Arc::new(SceneWorld { scene, inhabitants, began, deaf, gate_open })
            })
            .collect();
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let system = System::new();
            tell.send(system.block_on(async { worlds.iter().flat_map(start_regions).collect() }))
                .unwrap();
            system.run().unwrap();
        });
        let regions = told.recv_timeout(Duration::from_secs(10)).unwrap();
        let directory = Arc::new(Directory::new(scenes.into()));
        FakeWorld { directory, regions, deaf, gate_open }
    }

    /// A console of this world.
    pub fn console(&self, addr: SocketAddr) -> Console {
        self.console_with(addr, &ConsoleSettings::default())
    }

    /// A console of this world with these settings.
    pub fn console_with(&self, addr: SocketAddr, settings: &ConsoleSettings) -> Console {
        self.console_of((addr, settings), None, None)
    }

    /// The console of a process of a cluster, and what its leader tells of balancing.
    pub fn console_of(
        &self,
        (addr, settings): (SocketAddr, &ConsoleSettings),
        cluster: Option<ClusterView>,
        balance: Option<AskBalance>,
    ) -> Console {
        let gateway = GatewayMetrics::default();
        gateway.admission.sessions_open.store(3, Relaxed);
        let state = ConsoleState {
            directory: self.directory.clone(),
            regions: self.regions.clone().into(),
            cluster,
            orders: None,
            others: None,
            balance,
            readiness: None,
            whole: None,
            workers: None,
            collectors: vec![Box::new(gateway)],
            node: "dev".into(),
        };
        Console::start(state, addr, settings).unwrap()
    }

    /// Opens or closes the gate of the harbour on plane 0.
    pub fn open_gate(&self, open: bool) {
        self.gate_open.store(open, Relaxed);
    }

    /// Silences the first region of each scene, or lets it answer again.
    pub fn set_deaf(&self, deaf: bool) {
        self.deaf.store(deaf, Relaxed);
    }
}

fn start_regions(world: &Arc<SceneWorld>) -> Vec<RegionHandle> {
    let start = |entry: &RegionEntry| {
        let metrics = Arc::new(RegionMetrics::default());
        let region =
            FakeRegion { world: world.clone(), entry: entry.clone(), metrics: metrics.clone() };
        let addr = region.start();
        RegionHandle {
            scene: world.scene.id,
            region: entry.id,
            inspect: addr.clone().recipient(),
            inspect_entity: addr.clone().recipient(),
            weigh: addr.recipient(),
            metrics,
        }
    };
    world.scene.map.regions.iter().map(start).collect()
}

fn meadow() -> Scene {
    let spec = SceneSpec {
        visibility: Visibility::Circle { enter_cm: 9_000, leave_cm: 10_500 },
        lines: 2,
        ..SceneSpec::default()
    };
    Scene::new(SceneId(0), spec, 100, RegionId(0)).unwrap()
}

fn harbour() -> Scene {
    let spec = SceneSpec { name: "harbour".into(), lines: 1, ..SceneSpec::default() };
    let scene = Scene::new(SceneId(1), spec, 100, RegionId(4)).unwrap();
    scene.with_terrain(Arc::new(quay())).unwrap()
}

/// The tiles of the harbour, of 1 m: water in the west, a rock in the east, and over the water a closed gate and an
/// open bridge.
fn quay() -> purview::scene::terrain::Terrain {
    let mut draft = Draft::new(100, 2_048, 2_048).unwrap();
    let tiles = |xs: std::ops::Range<i32>, zs: std::ops::Range<i32>| {
        zs.flat_map(move |z| xs.clone().map(move |x| Tile { x, z })).collect::<Vec<_>>()
    };
    for tile in tiles(0..WATER_M, 0..2_048) {
        draft.set_blocked(tile, true).unwrap();
    }
    draft.set_blocked(Tile { x: ROCK_M, z: ROCK_M }, true).unwrap();
    draft.add_door("gate", false, &tiles(200..204, 300..320)).unwrap();
    draft.add_door("bridge", true, &tiles(200..204, 600..620)).unwrap();
    draft.finish()
}

/// Some market places with crowds, walkers between them, and things on the ground.
fn people(scene: &Scene) -> Vec<Inhabitant> {
    let first = if scene.id.0 == 0 { 1 } else { SAILOR };
    let places = [
        (102_400.0, 102_400.0),
        (58_000.0, 52_000.0),
        (150_000.0, 71_000.0),
        (96_000.0, 158_000.0),
    ];
    let mut rng = Rng::new(7 + u64::from(scene.id.0));
    let mut random = || rng.unit();
    let mut all: Vec<Inhabitant> = (0..MEADOW as u64)
        .map(|n| {
            let kind = if n < PLAYERS { 0 } else { 1 + (n % 4) as u8 };
            let (r, a) = (random().powf(1.2), random() * TAU);
            let wide = if kind == 0 { 21_000.0 } else { 70_000.0 };
            let centre = places[(n % 4) as usize];
            let speed = if kind >= 3 { 0.0 } else { 2_000.0 + 9_000.0 * random() };
            let x = (centre.0 + wide * r * a.cos()).clamp(18_000.0, 186_000.0);
            let z = (centre.1 + wide * r * a.sin()).clamp(18_000.0, 186_000.0);
            Inhabitant {
                id: first + n,
                kind,
                plane: 0,
                centre: (x, z),
                radius: (speed, speed * random()),
                period_s: 40.0 + 60.0 * random(),
                phase: random(),
            }
        })
        .collect();
    if scene.id.0 == 0 {
        let [walker, sitter] = &mut all[..2] else { unreachable!("the meadow has people") };
        *walker = Inhabitant { centre: (102_400.0, 98_500.0), radius: (1_500.0, 500.0), ..*walker };
        walker.period_s = 6.0;
        *sitter = Inhabitant { centre: (62_000.0, 55_000.0), radius: (0.0, 0.0), ..*sitter };
        all.push(Inhabitant { id: BELOW, plane: 7, ..all[5] });
    }
    all
}

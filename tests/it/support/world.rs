//! Regions joined by queues whose delivery order between pairs is drawn from a seed, and clients
//! that apply their frames.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use purview::scene::inspect::PlayerDetails;
use purview::scene::messages::{
    CommandResult, Destination, Effect, Input, NamedBond, Order, Spawn,
};
use purview::scene::player::{ClientRequest, PlayerInput};
use purview::scene::{
    Account, EntityId, Kind, Plane, Pos, RangeSet, Region, RegionId, Scene, SceneId, SceneSpec,
    SessionId, SubjectHash, Tick, ViewCap, ViewLimits,
};

use super::Rng;
use super::brute::{Pair, Truth, Truths, pair};
use super::client::Client;
use super::kill::Kills;
use super::mapping::Mapping;
use super::returning::Remote;
use super::safety::Safety;
use super::touches::Touches;
use super::{account_with, look, whose};

/// Fault rates in percent; none by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Weather {
    /// A region misses a tick.
    pub skip: u64,
    /// A border batch is lost; its sender is told.
    pub lose: u64,
    /// Messages from one region to another wait for another tick; their order is kept.
    pub delay: u64,
    /// A view message between players is lost without notice.
    pub mute: u64,
}

/// The reason for which a region is called.
pub(super) enum Call {
    Tick(Tick),
    Take(Input),
    Decide(u64, bool),
}

/// An intervention at a certain step.
pub type Strike = Box<dyn FnOnce(&mut World)>;

pub struct World {
    pub weather: Weather,
    /// Number of calls of regions so far: each tick, input and message counts.
    pub steps: u64,
    pub depth: u32,
    /// Interventions by the step before which they happen.
    pub strikes: BTreeMap<u64, Vec<Strike>>,
    /// Checks of the invariants after every step.
    pub safety: Option<Box<Safety>>,
    /// Whether every frame is encoded and decoded again.
    pub encode: bool,
    /// Whether the view of each client is recorded for each tick.
    pub remember: bool,
    /// How many others every third player asks to be shown; 0: as many as the scene allows.
    pub weak_cap: u16,
    /// Regions whose actors have ended, and the tick in which others take their places.
    pub down: BTreeMap<RegionId, Tick>,
    /// The newest tick that each region was told to begin.
    pub due: BTreeMap<RegionId, Tick>,
    /// A region that does not tick.
    pub stopped: Option<RegionId>,
    /// Percentage of calls before which some region is relocated.
    pub restless: u64,
    /// Changes of the layout: the last one, and their number.
    pub mapping: Mapping,
    blocked: BTreeSet<(RegionId, RegionId)>,
    /// All effects of regions as text, if they are recorded.
    pub log: Option<Vec<String>>,
    pub scene: Arc<Scene>,
    /// All scenes by id.
    pub scenes: Vec<Arc<Scene>>,
    pub regions: Vec<Region>,
    pub queues: BTreeMap<(RegionId, RegionId), VecDeque<Input>>,
    pub clients: BTreeMap<SessionId, Client>,
    pub truth: Truths,
    pub tick: Tick,
    pub rng: Rng,
    next: u64,
    pub fx: Vec<Effect>,
    pub handoffs: u64,
    pub relocations: u64,
    /// Whether clients have sessions.
    pub sessions: bool,
    pub kills: Kills,
    /// Clients whose connections are broken, with their last sessions.
    pub away: Vec<Remote>,
    /// Number of resyncs of all clients.
    pub resyncs: u64,
    /// View messages across borders, without repetitions.
    pub view_messages: u64,
    /// Changes of properties and facings, if there are any.
    pub touches: Option<Touches>,
    /// What has become of commands of calls.
    pub answers: Vec<CommandResult>,
    /// The bonds that are kept of players that do not play, by their subjects.
    pub records: BTreeMap<String, Vec<NamedBond>>,
    /// The planes that tokens of players that join from now on list.
    pub listed: Vec<(String, Plane)>,
    /// Number of orders about doors and of messages for groups.
    pub orders: u64,
}

/// The regions of a scene, empty.
fn regions_of(scene: &Arc<Scene>) -> Vec<Region> {
    scene.map.regions.iter().map(|r| Region::new(scene.clone(), r.id).unwrap()).collect()
}

impl World {
    pub fn new(spec: SceneSpec, seed: u64) -> World {
        World::of(Scene::new(SceneId(0), spec, 100, RegionId(0)).expect("a legal scene"), seed)
    }

    /// The world of a scene, which becomes the first one.
    pub fn of(scene: Scene, seed: u64) -> World {
        let mut layout = scene.map.layout();
        // Regions are found by their numbers.
        layout.next = RegionId(layout.plots.len() as u32);
        let scene = Arc::new(scene.with_layout(&layout).expect("the same map"));
        World {
            weather: Weather::default(),
            steps: 0,
            depth: 0,
            strikes: BTreeMap::new(),
            safety: None,
            encode: false,
            remember: false,
            weak_cap: 0,
            down: BTreeMap::new(),
            due: BTreeMap::new(),
            scenes: vec![scene.clone()],
            regions: regions_of(&scene),
            stopped: None,
            restless: 0,
            mapping: Mapping::default(),
            blocked: BTreeSet::new(),
            log: None,
            scene,
            queues: BTreeMap::new(),
            clients: BTreeMap::new(),
            truth: Truths::new(),
            tick: Tick(100),
            rng: Rng::new(seed),
            next: 1,
            fx: Vec::new(),
            handoffs: 0,
            relocations: 0,
            sessions: false,
            kills: Kills::default(),
            away: Vec::new(),
            resyncs: 0,
            view_messages: 0,
            touches: None,
            answers: Vec::new(),
            records: BTreeMap::new(),
            listed: Vec::new(),
            orders: 0,
        }
    }

    /// Adds another scene, to which players may teleport.
    pub fn add_scene(&mut self, spec: SceneSpec) -> SceneId {
        let id = SceneId(self.scenes.len() as u16);
        let first = RegionId(self.regions.len() as u32);
        let scene = Arc::new(Scene::new(id, spec, 100, first).expect("a legal scene"));
        self.regions.extend(regions_of(&scene));
        self.scenes.push(scene);
        id
    }

    pub fn owner_of(&self, scene: SceneId, plane: Plane, pos: Pos) -> RegionId {
        self.scenes[usize::from(scene.0)].map.at(plane, pos).expect("a place on the map").id
    }

    /// Adds a player with a client, and with a session in worlds with sessions.
    pub fn join(&mut self, plane: Plane, pos: Pos, sight: RangeSet) -> SessionId {
        let session = SessionId(self.next + 1_000_000);
        if self.sessions {
            return self.join_by_session(session, plane, pos, sight);
        }
        let id = self.spawn(Kind::PLAYER, plane, pos, sight, Some(session));
        let region = self.owner_of(SceneId(0), plane, pos);
        let client = Client { entity: id, region, ..Client::default() };
        self.clients.insert(session, client);
        session
    }

    /// Adds an entity.
    pub fn spawn(
        &mut self,
        kind: Kind,
        plane: Plane,
        pos: Pos,
        sight: RangeSet,
        session: Option<SessionId>,
    ) -> EntityId {
        let id = self.next_id();
        let spawn = Spawn {
            plane,
            sight: self.limits(id, kind, sight),
            properties: look(id),
            session,
            subject: session.map_or(SubjectHash::NONE, |_| whose(id)),
            account: session.map_or(Account::NONE, |_| account_with(id, &self.listed)),
            ..Spawn::new(id, kind, pos)
        };
        let scene = SceneId(0);
        let region = self.owner_of(scene, plane, pos);
        self.tell(region, Input::Enter(Box::new(spawn)));
        self.note_truth(id, Truth::new(kind, plane, pos, sight));
        id
    }

    /// What a new entity asks to be shown: where some clients are weak, every third player asks for fewer others.
    pub fn limits(&self, id: EntityId, kind: Kind, rings: RangeSet) -> ViewLimits {
        let is_weak = kind == Kind::PLAYER && id.0.is_multiple_of(3);
        ViewLimits { rings, cap: ViewCap::new(if is_weak { self.weak_cap } else { 0 }) }
    }

    /// Notes a new entity.
    pub fn note_truth(&mut self, id: EntityId, truth: Truth) {
        let cap = self.limits(id, truth.kind, truth.sight).cap;
        self.truth.insert(id, Truth { cap, ..truth });
    }

    /// Most players that a player is shown.
    pub fn cap_of(&self, id: EntityId) -> usize {
        self.truth.get(&id).map_or(ViewCap::SCENE, |t| t.cap).within(self.scene.spec.view_cap)
    }

    pub fn next_id(&mut self) -> EntityId {
        self.next += 1;
        EntityId(self.next - 1)
    }

    /// Gives a region an input; it is lost if the region's actor has ended.
    pub fn tell(&mut self, region: RegionId, input: Input) {
        assert!(!self.mapping.gone.contains(&region), "{region} no longer exists: {input:?}");
        if !self.down.contains_key(&region) {
            self.call(region, Call::Take(input));
        }
    }

    /// One step: one call of one region, and the delivery of its effects.
    pub(super) fn call(&mut self, region: RegionId, what: Call) {
        self.steps += 1;
        self.depth += 1;
        let mut fx = std::mem::take(&mut self.fx);
        let at = &mut self.regions[region.0 as usize];
        match what {
            Call::Tick(now) => at.tick(now, &mut fx),
            Call::Take(input) => at.handle(input, &mut fx),
            Call::Decide(version, comes) => at.decide(version, comes, &mut fx),
        }
        self.fx = fx;
        self.carry_effects(region);
        // A client's answer to a notice is part of the step.
        self.depth -= 1;
        if let Some(mut safety) = self.safety.take_if(|_| self.depth == 0) {
            safety.check(self, region);
            self.safety = Some(safety);
        }
        let now = self.regions[region.0 as usize].current_tick();
        let due = self.due.get(&region).copied().filter(|due| *due > now);
        if let Some(due) = due.filter(|_| self.regions[region.0 as usize].is_closed()) {
            // As the region's actor does: a tick that waited for a neighbour is made up for at
            // once.
            self.call(region, Call::Tick(due));
        }
    }

    /// Runs the interventions that are due before the next step.
    fn strike(&mut self) {
        if self.kills.deadly > 0 && self.rng.chance(self.kills.deadly) {
            let id = RegionId(self.rng.below(self.regions.len()) as u32);
            let back_in = 1 + self.rng.next() % 45;
            self.kill(id, back_in);
        }
        if self.restless > 0 && self.rng.chance(self.restless) {
            let id = RegionId(self.rng.below(self.regions.len()) as u32);
            self.relocate(id);
        }
        while self.tell_decisions(false) {}
        while let Some(due) = self.strikes.first_entry().filter(|e| *e.key() <= self.steps) {
            due.remove().into_iter().for_each(|strike| strike(self));
        }
    }

    /// The client sends an order to the region that it believes to own its player.
    pub fn order(&mut self, session: SessionId, order: Order) {
        let client = self.clients.get_mut(&session).unwrap();
        client.seq = client.seq.next();
        client.unacked.push_back((client.seq, order.clone()));
        let (id, seq, region) = (client.entity, client.seq, client.region);
        let handle = client.handle;
        if client.player.is_some() {
            return self.say(session, seq, order);
        }
        self.tell(region, Input::Client { id, session, seq, order, handle });
    }

    pub fn walk(&mut self, session: SessionId, pos: Pos) {
        let id = self.clients[&session].entity;
        self.truth.get_mut(&id).unwrap().pos = pos;
        self.order(session, Order::Move(pos));
    }

    pub fn teleport(&mut self, session: SessionId, plane: Plane, pos: Pos) {
        self.teleport_to(session, SceneId(0), plane, pos);
    }

    pub fn teleport_to(&mut self, session: SessionId, scene: SceneId, plane: Plane, pos: Pos) {
        let id = self.clients[&session].entity;
        let t = self.truth.get_mut(&id).unwrap();
        (t.scene, t.pos, t.plane) = (scene, pos, plane);
        let region = self.owner_of(scene, plane, pos);
        self.order(session, Order::Teleport(Destination { scene, region, plane, pos }));
    }

    pub fn leave(&mut self, session: SessionId) {
        let client = self.clients.get_mut(&session).unwrap();
        client.leaving = true;
        let (id, region) = (client.entity, client.region);
        let by_session = client.player.is_some();
        self.truth.remove(&id);
        if by_session {
            return self.receive(session, PlayerInput::Request(ClientRequest::Leave));
        }
        self.tell(region, Input::Leave(id));
    }

    /// One tick: every region opens it, in an order drawn from the seed, with messages arriving in
    /// between; then all messages in flight arrive.
    pub fn step(&mut self) {
        self.tick = self.tick.next();
        self.bury();
        self.bring_back();
        self.down.retain(|_, back| *back > self.tick);
        self.pass_time();
        self.touch();
        self.notice_dead_sessions();
        let leaving = self.clients.values().filter(|c| c.leaving && c.player.is_none());
        for (id, region) in leaving.map(|c| (c.entity, c.region)).collect::<Vec<_>>() {
            self.tell(region, Input::Leave(id));
        }
        let mut order: Vec<usize> = (0..self.regions.len()).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, self.rng.below(i + 1));
        }
        self.blocked.clear();
        let links: Vec<_> = self.queues.keys().copied().collect();
        for link in links {
            if self.rng.chance(self.weather.delay) {
                self.blocked.insert(link);
            }
        }
        for i in order {
            let region = RegionId(i as u32);
            let out = self.stopped == Some(region) || self.mapping.gone.contains(&region);
            if self.rng.chance(self.weather.skip) || out {
                continue;
            }
            self.strike();
            if !self.down.contains_key(&region) {
                let now = self.tick;
                self.due.insert(region, now);
                self.call(region, Call::Tick(now));
            }
            for _ in 0..self.rng.below(4) {
                self.deliver_one();
            }
        }
        let held = |r: &Region| r.is_remapping() && !r.is_closed();
        let calls = self.steps;
        while self.deliver_one() || (self.regions.iter().any(held) && self.tell_decisions(true)) {
            assert!(self.steps < calls + 200_000, "messages never end");
        }
        self.clients.retain(|_, c| !c.gone);
        self.keep_checkpoints();
    }

    /// Ticks one region alone; its messages to others are lost.
    pub fn step_alone(&mut self, region: RegionId) {
        self.tick = self.tick.next();
        let mut fx = Vec::new();
        self.regions[region.0 as usize].tick(self.tick, &mut fx);
        fx.retain(|e| matches!(e, Effect::Frames(_) | Effect::Notice(..)));
        self.fx = fx;
        self.carry_effects(region);
    }

    fn deliver_one(&mut self) -> bool {
        self.strike();
        let ready = self.queues.iter().filter(|(_, q)| !q.is_empty()).map(|(k, _)| *k);
        let ready: Vec<_> = ready.filter(|link| !self.blocked.contains(link)).collect();
        if ready.is_empty() {
            return false;
        }
        let link = ready[self.rng.below(ready.len())];
        let input = self.queues.get_mut(&link).and_then(VecDeque::pop_front).unwrap();
        self.call(link.1, Call::Take(input));
        true
    }

    /// The snapshot of each player by its owner.
    pub fn players(&self) -> BTreeMap<EntityId, PlayerDetails> {
        let mut all = BTreeMap::new();
        for id in self.truth.iter().filter(|(_, t)| t.kind == Kind::PLAYER).map(|(id, _)| *id) {
            let owners: Vec<_> = self.regions.iter().filter_map(|r| r.inspect_player(id)).collect();
            assert!(owners.len() <= 1, "{id} is owned by {} regions", owners.len());
            all.extend(owners.into_iter().map(|p| (id, p)));
        }
        all
    }

    /// All pairs in whose lists either has the other, after checking that both do.
    pub fn links(&self) -> BTreeSet<Pair> {
        let (links, odd) = self.links_and_odd();
        let about: Vec<_> = odd.iter().map(|pair| self.about(*pair)).collect();
        assert!(odd.is_empty(), "tick {}: a one-sided pair: {about:#?}", self.tick);
        links
    }

    /// The registers of two players, and the regions that know them, for messages.
    fn about(&self, (a, b): Pair) -> Vec<String> {
        let of = |region: &Region, me: EntityId, other: EntityId| {
            let at = region.inspect(None).entities.into_iter().find(|e| e.id == me)?;
            let registers = region.inspect_registers().into_iter().find(|(id, _)| *id == me);
            let peers = registers.map(|(_, peers)| peers).unwrap_or_default();
            let peer = peers.into_iter().find(|peer| peer.id == other);
            Some(format!(
                "region {} has {me} at {:?} of {}: {peer:?}",
                region.id(),
                at.pos,
                at.owner
            ))
        };
        let both = |region| [of(region, a, b), of(region, b, a)];
        self.regions.iter().flat_map(both).flatten().collect()
    }

    /// Links that both sides have, and those that only one side has.
    pub fn links_and_odd(&self) -> (BTreeSet<Pair>, BTreeSet<Pair>) {
        let players = self.players();
        let mut both = BTreeSet::new();
        let mut odd = BTreeSet::new();
        for (id, p) in &players {
            assert!(p.view.len() <= self.cap_of(*id), "{id} sees {}", p.view.len());
            for other in p.view.iter().map(|e| e.id) {
                let mutual = players.get(&other).is_some_and(|o| o.sees(*id));
                if mutual {
                    both.insert(pair(*id, other))
                } else {
                    odd.insert(pair(*id, other))
                };
            }
        }
        (both, odd)
    }

    /// What the clients show, as (player, entity) pairs.
    pub fn shown(&self) -> BTreeSet<(EntityId, EntityId)> {
        let shown = |c: &Client| c.shown.keys().map(|o| (c.entity, *o)).collect::<Vec<_>>();
        self.clients.values().flat_map(shown).collect()
    }
}

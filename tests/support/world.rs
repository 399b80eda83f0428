//! Regions joined by queues whose order between pairs is drawn by a seed, and clients that believe
//! what they are told.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use purview::scene::effects::{Destination, Effect, Input, Notice, Order, Spawn};
use purview::scene::frames::FrameBatch;
use purview::scene::inspect::PlayerSnapshot;
use purview::scene::{
    EntityId, Epoch, Kind, Plane, Pos, RangeSet, Region, RegionId, Scene, SceneId, SceneSpec, Seq,
    SessionId, Tick,
};

use super::Rng;
use super::brute::{Pair, Truth, Truths, pair};

/// What a client was told.
#[derive(Debug, Clone, Default)]
pub struct Client {
    pub entity: EntityId,
    pub region: RegionId,
    pub epoch: Epoch,
    pub seq: Seq,
    pub ack: Seq,
    pub unacked: VecDeque<(Seq, Order)>,
    /// Whom it shows, where, and as of which tick.
    pub shown: BTreeMap<EntityId, (Pos, Tick)>,
    pub frames: Vec<Tick>,
    pub acts: Vec<(Tick, EntityId, Bytes)>,
    pub entered: Vec<(Tick, EntityId)>,
    pub left: Vec<(Tick, EntityId)>,
    pub refused: usize,
    pub gone: bool,
}

/// What goes wrong, in percent; nothing by default.
#[derive(Debug, Clone, Copy, Default)]
pub struct Weather {
    /// A region misses a tick.
    pub skip: u64,
    /// A border batch is lost, which its sender is told.
    pub lose: u64,
    /// What one region says to another waits for another tick; still first in, first out.
    pub delay: u64,
}

pub struct World {
    pub weather: Weather,
    /// This region stands still.
    pub stopped: Option<RegionId>,
    blocked: BTreeSet<(RegionId, RegionId)>,
    /// Everything that regions wanted done, as text, when it is to be kept.
    pub log: Option<Vec<String>>,
    pub scene: Arc<Scene>,
    pub regions: Vec<Region>,
    queues: BTreeMap<(RegionId, RegionId), VecDeque<Input>>,
    pub clients: BTreeMap<SessionId, Client>,
    pub truth: Truths,
    pub tick: Tick,
    pub rng: Rng,
    next: u64,
    fx: Vec<Effect>,
    pub handoffs: u64,
    /// Effects other than frames, ghosts and notices, by name: to see that something happens.
    pub view_messages: u64,
}

impl World {
    pub fn new(spec: SceneSpec, seed: u64) -> World {
        let scene =
            Arc::new(Scene::new(SceneId(0), spec, 100, RegionId(0)).expect("a legal scene"));
        let regions = scene.map.regions.iter();
        let regions = regions.map(|r| Region::new(scene.clone(), r.id).unwrap()).collect();
        World {
            weather: Weather::default(),
            stopped: None,
            blocked: BTreeSet::new(),
            log: None,
            scene,
            regions,
            queues: BTreeMap::new(),
            clients: BTreeMap::new(),
            truth: Truths::new(),
            tick: Tick(100),
            rng: Rng(seed),
            next: 1,
            fx: Vec::new(),
            handoffs: 0,
            view_messages: 0,
        }
    }

    fn owner_of(&self, pos: Pos) -> RegionId {
        self.scene.map.at(pos).expect("a place on the map").id
    }

    /// Adds a player with a client.
    pub fn join(&mut self, plane: Plane, pos: Pos, range: RangeSet) -> SessionId {
        let session = SessionId(self.next + 1_000_000);
        let id = self.spawn(Kind::PLAYER, plane, pos, range, Some(session));
        let region = self.owner_of(pos);
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
        range: RangeSet,
        session: Option<SessionId>,
    ) -> EntityId {
        let id = EntityId(self.next);
        self.next += 1;
        let look = Bytes::from(format!("look {id}"));
        let spawn = Spawn { id, kind, plane, pos, range, look, session, bonds: Vec::new() };
        let region = self.owner_of(pos);
        self.tell(region, Input::Enter(Box::new(spawn)));
        self.truth.insert(id, Truth { kind, plane, pos, range, bonds: Vec::new() });
        id
    }

    pub fn tell(&mut self, region: RegionId, input: Input) {
        let mut fx = std::mem::take(&mut self.fx);
        self.regions[region.0 as usize].handle(input, &mut fx);
        self.fx = fx;
        self.carry_effects(region);
    }

    /// The client orders something; it is sent to where it believes that it lives.
    pub fn order(&mut self, session: SessionId, order: Order) {
        let client = self.clients.get_mut(&session).unwrap();
        client.seq = client.seq.next();
        client.unacked.push_back((client.seq, order.clone()));
        let (id, seq, region) = (client.entity, client.seq, client.region);
        self.tell(region, Input::Client { id, seq, order });
    }

    pub fn walk(&mut self, session: SessionId, pos: Pos) {
        let id = self.clients[&session].entity;
        self.truth.get_mut(&id).unwrap().pos = pos;
        self.order(session, Order::Move(pos));
    }

    pub fn jump(&mut self, session: SessionId, plane: Plane, pos: Pos) {
        let id = self.clients[&session].entity;
        let t = self.truth.get_mut(&id).unwrap();
        (t.pos, t.plane) = (pos, plane);
        let region = self.owner_of(pos);
        self.order(session, Order::Jump(Destination { scene: SceneId(0), region, plane, pos }));
    }

    pub fn leave(&mut self, session: SessionId) {
        let client = &self.clients[&session];
        let (id, region) = (client.entity, client.region);
        self.truth.remove(&id);
        self.tell(region, Input::Leave(id));
    }

    /// One tick: every region opens it, in an order drawn by the seed, while messages arrive in
    /// between; then everything that is under way arrives.
    pub fn step(&mut self) {
        self.tick = self.tick.next();
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
            if self.rng.chance(self.weather.skip) || self.stopped == Some(RegionId(i as u32)) {
                continue;
            }
            let mut fx = std::mem::take(&mut self.fx);
            self.regions[i].tick(self.tick, &mut fx);
            self.fx = fx;
            self.carry_effects(RegionId(i as u32));
            for _ in 0..self.rng.below(4) {
                self.deliver_one();
            }
        }
        while self.deliver_one() {}
        self.clients.retain(|_, c| !c.gone);
    }

    /// A tick of one region alone, whose messages to others are lost.
    pub fn step_alone(&mut self, region: RegionId) {
        self.tick = self.tick.next();
        let mut fx = Vec::new();
        self.regions[region.0 as usize].tick(self.tick, &mut fx);
        fx.retain(|e| matches!(e, Effect::Frames(_) | Effect::Notice(..)));
        self.fx = fx;
        self.carry_effects(region);
    }

    fn deliver_one(&mut self) -> bool {
        let ready = self.queues.iter().filter(|(_, q)| !q.is_empty()).map(|(k, _)| *k);
        let ready: Vec<_> = ready.filter(|link| !self.blocked.contains(link)).collect();
        if ready.is_empty() {
            return false;
        }
        let link = ready[self.rng.below(ready.len())];
        let input = self.queues.get_mut(&link).and_then(VecDeque::pop_front).unwrap();
        let mut fx = std::mem::take(&mut self.fx);
        self.regions[link.1.0 as usize].handle(input, &mut fx);
        self.fx = fx;
        self.carry_effects(link.1);
        true
    }

    fn carry_effects(&mut self, from: RegionId) {
        for effect in std::mem::take(&mut self.fx) {
            if let Some(log) = &mut self.log {
                log.push(format!("{from} {effect:?}"));
            }
            let (to, input) = match effect {
                Effect::Frames(batch) => {
                    self.frames(&batch);
                    self.regions[from.0 as usize].recycle(batch);
                    continue;
                }
                Effect::Notice(session, notice) => {
                    self.notice(session, notice);
                    continue;
                }
                Effect::Border(to, _) if self.rng.chance(self.weather.lose) => {
                    self.regions[from.0 as usize].handle(Input::BorderLost(to), &mut Vec::new());
                    continue;
                }
                Effect::Border(to, batch) => (to, Input::Border(batch)),
                Effect::Settle(to, batch) => {
                    self.view_messages += batch.letters.len() as u64;
                    (to, Input::Settle(batch))
                }
                Effect::View(to, msg) => {
                    self.view_messages += 1;
                    (to, Input::View(msg))
                }
                Effect::Handoff(to, handoff) => {
                    self.handoffs += 1;
                    (to, Input::Handoff(handoff))
                }
                Effect::Forward(to, input) => (to, *input),
            };
            self.queues.entry((from, to)).or_default().push_back(input);
        }
    }

    fn notice(&mut self, session: SessionId, notice: Notice) {
        let Some(client) = self.clients.get_mut(&session) else { return };
        match notice {
            Notice::Route { region, epoch, last_applied, .. } => {
                if epoch < client.epoch {
                    return;
                }
                (client.region, client.epoch) = (region, epoch);
                client.unacked.retain(|(seq, _)| *seq > last_applied);
                let id = client.entity;
                for (seq, order) in client.unacked.clone() {
                    self.tell(region, Input::Client { id, seq, order });
                }
            }
            Notice::Left { .. } => client.gone = true,
            Notice::Refused(why) => panic!("session {session} was refused: {why:?}"),
        }
    }

    /// Clients believe their frames, and complain of what cannot be.
    fn frames(&mut self, batch: &FrameBatch) {
        for frame in &batch.sessions {
            let Some(client) = self.clients.get_mut(&frame.session) else { continue };
            let me = client.entity;
            let tick = batch.tick;
            assert!(client.frames.last().is_none_or(|t| *t < tick), "{me}: two frames of {tick}");
            assert!(
                frame.ack >= client.ack,
                "{me}: acknowledged {} after {}",
                frame.ack,
                client.ack
            );
            assert!(frame.epoch >= client.epoch || client.epoch == Epoch(0));
            client.frames.push(tick);
            client.ack = frame.ack;
            client.unacked.retain(|(seq, _)| *seq > frame.ack);
            if frame.resync {
                client.shown.clear();
            }
            for id in batch.leaves_of(frame) {
                assert!(client.shown.remove(id).is_some(), "{me}: {id} left but was not there");
                client.left.push((tick, *id));
            }
            let (enters, moves, acts) = batch.refs_of(frame);
            for e in enters.iter().map(|i| &batch.entering[*i as usize]) {
                let twice = client.shown.insert(e.id, (e.pos, tick)).is_some();
                assert!(!twice, "{me}: {} entered twice", e.id);
                assert_ne!(e.id, me, "{me} is shown itself");
                assert_eq!(e.look, format!("look {}", e.id));
                client.entered.push((tick, e.id));
            }
            for (id, pos) in moves.iter().map(|i| batch.moving[*i as usize]) {
                let place = client.shown.get_mut(&id);
                *place.unwrap_or_else(|| panic!("{me}: {id} moved but is not shown")) = (pos, tick);
            }
            for (id, payload) in acts.iter().map(|i| &batch.acting[*i as usize]) {
                assert!(client.shown.contains_key(id), "{me}: {id} acted but is not shown");
                client.acts.push((tick, *id, payload.clone()));
            }
            client.refused += frame.refused as usize;
        }
    }

    /// What the owner of each player says of it.
    pub fn players(&self) -> BTreeMap<EntityId, PlayerSnapshot> {
        let mut all = BTreeMap::new();
        for id in self.truth.iter().filter(|(_, t)| t.kind == Kind::PLAYER).map(|(id, _)| *id) {
            let owners: Vec<_> = self.regions.iter().filter_map(|r| r.inspect_player(id)).collect();
            assert!(owners.len() <= 1, "{id} lives in {} regions", owners.len());
            all.extend(owners.into_iter().map(|p| (id, p)));
        }
        all
    }

    /// Every pair in whose lists either has the other, after checking that both have it.
    pub fn links(&self) -> BTreeSet<Pair> {
        let (links, odd) = self.links_and_odd();
        assert!(odd.is_empty(), "tick {}: only one of two sees the other: {odd:?}", self.tick);
        links
    }

    /// Links that both have, and those that only one has.
    pub fn links_and_odd(&self) -> (BTreeSet<Pair>, BTreeSet<Pair>) {
        let players = self.players();
        let mut both = BTreeSet::new();
        let mut odd = BTreeSet::new();
        for (id, p) in &players {
            assert!(p.view.len() <= self.scene.spec.view_cap, "{id} sees {}", p.view.len());
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

    /// What the clients are shown, as pairs of players and (player, other) pairs.
    pub fn shown(&self) -> BTreeSet<(EntityId, EntityId)> {
        let shown = |c: &Client| c.shown.keys().map(|o| (c.entity, *o)).collect::<Vec<_>>();
        self.clients.values().flat_map(shown).collect()
    }
}

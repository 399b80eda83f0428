//! A crowd around the borders of nine regions, with a history drawn from a seed, checked against
//! brute force.

use std::collections::{BTreeMap, BTreeSet};

use purview::scene::messages::{Bond, EntityAction, Input, Order, Spawn};
use purview::scene::player::Player;
use purview::scene::region::PATIENCE;
use purview::scene::spec::KindSpec;
use purview::scene::{
    EntityId, Epoch, Kind, Plane, Pos, RangeSet, RegionId, SceneId, SceneSpec, SessionId, Tick,
    Visibility,
};

use super::Rng;
use super::brute::{self, Pair, Spells, in_range, pair};
use super::client::Client;
use super::commands::order_of;
use super::kill::GRACE;
use super::look;
use super::returning::Break;
use super::session::in_world;
use super::small_scene;
use super::world::{Weather, World};

/// Ticks between two repetitions of links across a border.
const LINKS_AGAIN: u64 = 200;

pub const WIDTH: i32 = 9_600;
pub const DEPTH: i32 = 9_600;

/// Nine regions of 32 m, so that the middle one has all eight neighbours. Where patches decide how far players see
/// each other, NPCs are seen by circles.
pub fn scene(visibility: Visibility, cap: usize) -> SceneSpec {
    let npc_circle = (visibility == Visibility::Patches).then_some((1_000, 1_250));
    let npc = KindSpec { circle_cm: npc_circle, ..KindSpec::new("npc", 0) };
    SceneSpec {
        width_cm: WIDTH,
        depth_cm: DEPTH,
        region_lands_x: 2,
        region_lands_z: 2,
        kinds: vec![KindSpec::new("player", 0), npc],
        visibility,
        patch_margin_cm: Some(0),
        view_cap: cap,
        ..small_scene((6, 6), 1_600, 400)
    }
}

pub struct Trial {
    pub w: World,
    pub rng: Rng,
    pub npcs: Vec<EntityId>,
    /// The tick in which each was added.
    added: BTreeMap<EntityId, Tick>,
    blocking: Spells,
    odd: Spells,
    out: Spells,
    missed: Spells,
    pub crowd: Pos,
    /// Percentage of ticks before which the layout changes, in [`Trial::deaths`].
    pub remaps: u64,
}

impl Trial {
    pub fn new(spec: SceneSpec, seed: u64) -> Trial {
        let mut rng = Rng::new(seed);
        let crowd = Pos::ground(rng.range(2_000, 7_600), rng.range(2_000, 7_600));
        let mut w = World::new(spec, seed ^ 0x5555);
        w.weak_cap = if seed.is_multiple_of(2) { 2 } else { 0 };
        let [blocking, odd, out, missed] = Default::default();
        let (npcs, added) = Default::default();
        let remaps = 0;
        Trial { w, rng, npcs, added, blocking, odd, out, missed, crowd, remaps }
    }

    pub fn somewhere(&mut self) -> Pos {
        let spread = 1_600;
        let x = self.crowd.x + self.rng.range(-spread, spread);
        let z = self.crowd.z + self.rng.range(-spread, spread);
        Pos::ground(x.clamp(0, WIDTH - 1), z.clamp(0, DEPTH - 1))
    }

    pub fn disturb(&mut self) {
        let at = self.somewhere();
        let settled = |c: &&SessionId| {
            let client = &self.w.clients[*c];
            client.epoch > Epoch(0) && !client.leaving && in_world(client)
        };
        let sessions: Vec<SessionId> = self.w.clients.keys().filter(settled).copied().collect();
        let plane = Plane(self.rng.range(0, 2));
        match (self.rng.below(14), sessions.len()) {
            (0..=1, _) | (_, 0..4) => {
                self.w.join(plane, at, RangeSet::FULL);
            }
            (2, _) if self.w.down.contains_key(&self.w.owner_of(SceneId(0), plane, at)) => {}
            (2, _) => {
                let id = self.w.spawn(Kind(1), plane, at, RangeSet::FULL, None);
                self.npcs.push(id);
                self.added.insert(id, self.w.tick);
            }
            (3, n) => {
                let s = sessions[self.rng.below(n)];
                self.w.teleport(s, plane, at);
            }
            (4, n) if n > 10 => {
                let s = sessions[self.rng.below(n)];
                self.w.leave(s);
                if !self.w.sessions {
                    self.w.clients.remove(&s);
                }
            }
            (6, n) => {
                let s = sessions[self.rng.below(n)];
                let group = self.rng.next() % 3;
                let class = self.rng.range(0, 2) as u8;
                self.w.bond(s, &[Bond { class, group }]);
            }
            (5, _) if !self.npcs.is_empty() => {
                let id = self.npcs[self.rng.below(self.npcs.len())];
                let pos = self.w.truth[&id].pos;
                if let Some(region) = self.w.home_id(id) {
                    let x = (pos.x + self.rng.range(-190, 191)).clamp(0, WIDTH - 1);
                    let to = Pos::ground(x, pos.z);
                    self.w.truth.get_mut(&id).unwrap().pos = to;
                    self.w.tell(region, order_of(id, Order::Move(to)));
                }
            }
            _ => sessions.into_iter().for_each(|s| self.stroll(s)),
        }
    }

    /// A fault phase: regions miss ticks, batches are lost, messages are late. Afterwards the
    /// faults stop.
    pub fn storm(&mut self, ticks: usize) {
        self.w.weather = Weather { skip: 15, lose: 10, delay: 20, mute: 0 };
        for _ in 0..ticks {
            (0..self.rng.below(5)).for_each(|_| self.disturb());
            self.w.step();
            self.w.links_and_odd();
        }
        self.w.weather = Weather::default();
        // Regions that wait for lost messages give up after their patience, one after the other.
        self.w.steps(3 * PATIENCE);
        // Orders and bonds that took different ways may have arrived in another order.
        for s in self.w.clients.keys().copied().collect::<Vec<_>>() {
            self.w.tell_bonds(s);
        }
        for id in self.npcs.clone() {
            let pos = self.w.truth[&id].pos;
            let region = self.w.home_id(id).unwrap_or_else(|| panic!("{id} lives nowhere"));
            self.w.tell(region, order_of(id, Order::Move(pos)));
        }
        self.rest();
    }

    /// Regions die or are paused, and are restored from checkpoints that are some ticks old, while
    /// all players walk. `neatly`: only between two ticks, so that each tick is known completely or
    /// not at all.
    pub fn deaths(&mut self, ticks: usize, neatly: bool) {
        self.w.sessions = true;
        self.w.kills.checkpoint_every = 1 + self.rng.next() % 12;
        self.w.kills.paused = 40;
        for _ in 0..ticks {
            (0..self.rng.below(5)).for_each(|_| self.disturb());
            if neatly && self.rng.chance(12) {
                let id = RegionId(self.rng.below(self.w.regions.len()) as u32);
                let back_in = 1 + self.rng.next() % 45;
                self.w.kill(id, back_in);
            }
            self.w.kills.deadly = u64::from(!neatly && self.rng.chance(25));
            if self.rng.chance(self.remaps) && self.w.map_is_still() {
                // A region that is down cannot promise: propose no change then.
                let layout = self.w.some_layout().filter(|_| self.w.down.is_empty());
                let comes = !self.rng.chance(20);
                if let Some(layout) = layout {
                    self.w.remap(&layout, comes);
                }
            }
            self.act();
            self.w.step();
        }
        self.w.kills.deadly = 0;
        self.w.kills.checkpoint_every = 0;
        self.w.steps(45 + 3 * PATIENCE + GRACE);
        self.w.kills.zombies.clear();
        self.w.steps(3 * PATIENCE);
        self.say_again();
        if self.remaps > 0 {
            // Until all links have been repeated.
            self.w.steps(LINKS_AGAIN);
        }
        self.w.steps(3);
        self.no_entity_is_lost();
        self.rest();
    }

    /// Connections break and clients resume on others, while all players walk; regions die, too, if
    /// `deadly`.
    pub fn breaks(&mut self, ticks: usize, deadly: bool) {
        self.w.sessions = true;
        self.w.kills.checkpoint_every = if deadly { 1 + self.rng.next() % 5 } else { 0 };
        for _ in 0..ticks {
            (0..self.rng.below(5)).for_each(|_| self.disturb());
            let settled = |c: &Client| c.epoch > Epoch(0) && !c.leaving && in_world(c) && !c.deaf;
            let all = self.w.clients.iter();
            let there: Vec<_> = all.filter(|(_, c)| settled(c)).map(|(s, _)| *s).collect();
            if self.rng.chance(60) && !there.is_empty() {
                let how = [Break::Heard, Break::Lost, Break::Unnoticed][self.rng.below(3)];
                self.w.break_off(there[self.rng.below(there.len())], how);
            }
            if !self.w.away.is_empty() && self.rng.chance(50) {
                let which = self.rng.below(self.w.away.len());
                self.w.resume(which);
            }
            if deadly && self.rng.chance(8) {
                let id = RegionId(self.rng.below(self.w.regions.len()) as u32);
                let back_in = 1 + self.rng.next() % 20;
                self.w.kill(id, back_in);
            }
            self.act();
            self.w.step();
        }
        self.w.kills.checkpoint_every = 0;
        while !self.w.away.is_empty() {
            self.w.resume(0);
        }
        self.w.steps(45 + 3 * PATIENCE + GRACE);
        if deadly {
            self.w.forget_the_young();
            // Positions that were acknowledged and are missing in a checkpoint are sent again.
            for s in self.w.clients.keys().copied().collect::<Vec<_>>() {
                if !self.w.clients[&s].leaving {
                    self.say_where(s);
                }
            }
        }
        self.say_again();
        self.w.steps(3);
        self.no_entity_is_lost();
        self.rest();
    }

    /// The client sends its position, by a teleport if its plane differs.
    fn say_where(&mut self, s: SessionId) {
        let id = self.w.clients[&s].entity;
        let truth = &self.w.truth[&id];
        let (plane, pos) = (truth.plane, truth.pos);
        match self.w.players().get(&id).is_some_and(|known| known.plane != plane) {
            true => self.w.teleport(s, plane, pos),
            false => self.stroll(s),
        }
    }

    /// A random player acts; the payload is numbered.
    fn act(&mut self) {
        let sessions: Vec<_> = self.w.in_world().filter_map(|c| c.player.as_ref()).collect();
        if let Some(player) = sessions.get(self.rng.below(sessions.len().max(1))) {
            let session = player.session();
            let n = self.w.clients[&session].seq.0 + 1;
            self.w.order(session, Order::Act(EntityAction::new(n.to_be_bytes().to_vec())));
        }
    }

    /// The logic repeats what may have been lost with a region, also what it has added since the
    /// checkpoint.
    fn say_again(&mut self) {
        for s in self.w.clients.keys().copied().collect::<Vec<_>>() {
            if !self.w.clients[&s].leaving {
                self.w.tell_bonds(s);
            }
        }
        for id in self.npcs.clone() {
            let (pos, plane) = (self.w.truth[&id].pos, self.w.truth[&id].plane);
            match self.w.home_id(id) {
                Some(region) => self.w.tell(region, order_of(id, Order::Move(pos))),
                None => {
                    let since = self.added[&id];
                    let young = self.w.kills.deaths.iter().any(|(_, kept, _)| since >= *kept);
                    assert!(young, "{id}, which was in every checkpoint, lives nowhere");
                    let properties = look(id);
                    let spawn = Spawn { plane, properties, ..Spawn::new(id, Kind(1), pos) };
                    let region = self.w.owner_of(SceneId(0), plane, pos);
                    self.w.tell(region, Input::Enter(Box::new(spawn)));
                }
            }
        }
    }

    /// Every entity lives in exactly one region, and no player was disconnected. That no input is
    /// applied twice follows from the clients' check that acknowledgements never decrease: a region
    /// applies only the last number plus one.
    fn no_entity_is_lost(&mut self) {
        let w = &self.w;
        for (id, t) in &w.truth {
            assert!(w.acting_region(*id).is_some(), "{id} ({:?}) lives nowhere", t.kind);
        }
        let players = w.truth.values().filter(|t| t.kind == Kind::PLAYER).count();
        let out = w.clients.values().filter(|c| !in_world(c));
        let out: Vec<_> = out.map(|c| (c.entity, c.player.as_ref().map(Player::state))).collect();
        assert_eq!(w.in_world().count(), players, "a player was disconnected: {out:?}");
        assert_eq!(w.clients.len(), players, "a client was not told that it left");
        assert!(w.regions.iter().all(|r| r.counts().unclaimed == 0), "a player is still unclaimed");
        let deaths = w.kills.deaths.len() as u64;
        for c in w.clients.values() {
            assert!(c.resyncs <= deaths + c.returns, "{} got {} resyncs", c.entity, c.resyncs);
        }
    }

    /// Up to 2 m in a tick, the top speed.
    pub fn stroll(&mut self, s: SessionId) {
        let pos = self.w.truth[&self.w.clients[&s].entity].pos;
        let x = (pos.x + self.rng.range(-141, 142)).clamp(0, WIDTH - 1);
        let z = (pos.z + self.rng.range(-141, 142)).clamp(0, DEPTH - 1);
        self.w.walk(s, Pos::ground(x, z));
    }

    pub fn check(&mut self) {
        self.w.step();
        let w = &self.w;
        let (links, odd) = w.links_and_odd();
        // One tick for messages to a player that is handed off meanwhile, and one to forward them.
        self.odd.see_for(odd, 2, "a one-sided pair");
        let blocking = brute::blocking(&w.scene, &w.truth, &links).into_iter().collect();
        self.blocking.see_for(blocking, 2, "a blocking pair");
        let legal: BTreeSet<Pair> =
            brute::pairs_in_range(&w.scene, &w.truth, &links).into_iter().collect();
        let out = links.difference(&legal).copied().collect();
        self.out.see_for(out, 1, "linked though out of range");
        let missed = w.clients.values().flat_map(|c| {
            let wrong = self.npcs.iter().filter(|npc| {
                let shown = c.shown.contains_key(npc);
                shown != in_range(&w.scene, &w.truth[&c.entity], &w.truth[npc], shown)
            });
            wrong.map(|npc| pair(c.entity, *npc))
        });
        let what = "a client shows an npc out of range or not one in range";
        self.missed.see_for(missed.collect(), 2, what);
    }

    /// No player moves any more: after a few ticks the state must be as brute force says.
    pub fn rest(&mut self) {
        self.w.steps(8);
        let w = &self.w;
        let links = w.links();
        // A pair may have left the enter range since it was linked.
        let patches = w.scene.spec.patch_rule(&w.scene.spec.layers[0]);
        let is_wider = matches!(w.scene.spec.visibility, Visibility::Circle { .. });
        if !is_wider && patches.margin_cm == 0 {
            assert_eq!(links, brute::greedy(&w.scene, &w.truth, &links));
        }
        assert_eq!(brute::blocking(&w.scene, &w.truth, &links), []);
        let mut want: BTreeSet<_> = links.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]).collect();
        let shown = w.shown();
        for c in w.in_world() {
            for npc in &self.npcs {
                let known = shown.contains(&(c.entity, *npc));
                if in_range(&w.scene, &w.truth[&c.entity], &w.truth[npc], known) {
                    want.insert((c.entity, *npc));
                }
            }
            assert!(c.unacked.is_empty(), "{}: an input was lost", c.entity);
            assert_eq!(c.refused, 0, "{}: {:?}", c.entity, c.refusals);
            let owned = w.players()[&c.entity].pos;
            assert_eq!(owned, w.truth[&c.entity].pos, "{}: inputs were applied wrongly", c.entity);
            for (id, (pos, _)) in &c.shown {
                assert_eq!(*pos, w.truth[id].pos, "{} shows {id} where it is not", c.entity);
            }
        }
        assert_eq!(shown, want);
        let before = w.view_messages;
        self.w.steps(4);
        assert_eq!(self.w.view_messages, before, "negotiation goes on although no player moves");
    }

    pub fn run(&mut self, ticks: usize) {
        for _ in 0..ticks {
            for _ in 0..self.rng.below(5) {
                self.disturb();
            }
            self.check();
        }
        self.rest();
    }
}

pub const CIRCLE: Visibility = Visibility::Circle { enter_cm: 1_000, leave_cm: 1_150 };

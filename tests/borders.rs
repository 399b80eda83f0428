//! Views across borders, ghosts and handoff: many regions, deliveries in an order drawn by a seed.

mod support;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use purview::scene::effects::{Bond, Deed, Input, Order};
use purview::scene::region::PATIENCE;
use purview::scene::spec::{KindSpec, LayerSpec, Rates};
use purview::scene::{
    EntityId, Epoch, Kind, Plane, Pos, RangeSet, RegionId, SceneSpec, SessionId, Visibility,
};
use support::brute::{self, Pair, in_range, pair};
use support::world::{Weather, World};
use support::{Rng, say_how_to_replay, seeds, seeds_are_given};

const WIDTH: i32 = 9_600;
const DEPTH: i32 = 9_600;

/// Nine regions of 32 m, so that the middle one has all eight neighbours.
fn scene(visibility: Visibility, cap: usize) -> SceneSpec {
    SceneSpec {
        width_cm: WIDTH,
        depth_cm: DEPTH,
        land_cm: 1_600,
        region_lands_x: 2,
        region_lands_z: 2,
        layers: vec![LayerSpec { name: "common".into(), patch_cm: 400 }],
        kinds: ["player", "npc"].map(|n| KindSpec::new(n, 0)).into(),
        visibility,
        view_cap: cap,
        view_margin_cm: 0,
        rates: Rates { near: 1, middle: 1, far: 1 },
        handoff_margin_cm: 100,
        top_speed_cm_s: 2_000,
        spawn_x_cm: 0,
        spawn_z_cm: 0,
        ..SceneSpec::default()
    }
}

/// How long a pair has been in a state that is allowed only for a while.
#[derive(Default)]
struct Watch(BTreeMap<Pair, u32>);

impl Watch {
    /// The pairs that are in the state now; fails when one has been for more than `ticks` ticks.
    fn see(&mut self, now: &BTreeSet<Pair>, ticks: u32, what: &str) {
        self.0.retain(|p, _| now.contains(p));
        for p in now {
            let n = self.0.entry(*p).or_default();
            *n += 1;
            assert!(*n <= ticks, "{what}: {p:?} for {n} ticks");
        }
    }
}

struct Trial {
    w: World,
    rng: Rng,
    npcs: Vec<EntityId>,
    blocking: Watch,
    odd: Watch,
    out: Watch,
    missed: Watch,
    crowd: Pos,
}

impl Trial {
    fn new(spec: SceneSpec, seed: u64) -> Trial {
        let mut rng = Rng(seed);
        let crowd = Pos::ground(rng.range(2_000, 7_600), rng.range(2_000, 7_600));
        let w = World::new(spec, seed ^ 0x5555);
        let [blocking, odd, out, missed] = Default::default();
        Trial { w, rng, npcs: Vec::new(), blocking, odd, out, missed, crowd }
    }

    fn somewhere(&mut self) -> Pos {
        let spread = 1_600;
        let x = self.crowd.x + self.rng.range(-spread, spread);
        let z = self.crowd.z + self.rng.range(-spread, spread);
        Pos::ground(x.clamp(0, WIDTH - 1), z.clamp(0, DEPTH - 1))
    }

    fn disturb(&mut self) {
        let at = self.somewhere();
        let settled = |c: &&SessionId| self.w.clients[*c].epoch > Epoch(0);
        let sessions: Vec<SessionId> = self.w.clients.keys().filter(settled).copied().collect();
        let plane = Plane(self.rng.range(0, 2));
        match (self.rng.below(14), sessions.len()) {
            (0..=1, _) | (_, 0..4) => {
                self.w.join(plane, at, RangeSet::FULL);
            }
            (2, _) => {
                let id = self.w.spawn(Kind(1), plane, at, RangeSet::FULL, None);
                self.npcs.push(id);
            }
            (3, n) => {
                let s = sessions[self.rng.below(n)];
                self.w.jump(s, plane, at);
            }
            (4, n) if n > 10 => {
                let s = sessions[self.rng.below(n)];
                self.w.leave(s);
                self.w.clients.remove(&s);
            }
            (6, n) => {
                let s = sessions[self.rng.below(n)];
                let group = self.rng.next() % 3;
                let bonds = vec![Bond { class: self.rng.range(0, 2) as u8, group }];
                let id = self.w.clients[&s].entity;
                self.w.truth.get_mut(&id).unwrap().bonds = bonds;
                self.tell_bonds(s);
            }
            (5, _) if !self.npcs.is_empty() => {
                let id = self.npcs[self.rng.below(self.npcs.len())];
                let pos = self.w.truth[&id].pos;
                if let Some(r) =
                    self.w.regions.iter().find(|r| r.find(id).is_some_and(|e| !e.ghost))
                {
                    let region = r.id();
                    let x = (pos.x + self.rng.range(-190, 191)).clamp(0, WIDTH - 1);
                    let to = Pos::ground(x, pos.z);
                    self.w.truth.get_mut(&id).unwrap().pos = to;
                    self.w.tell(region, Input::Logic { id, order: Order::Move(to) });
                }
            }
            _ => sessions.into_iter().for_each(|s| self.stroll(s)),
        }
    }

    fn tell_bonds(&mut self, s: SessionId) {
        let (id, region) = (self.w.clients[&s].entity, self.w.clients[&s].region);
        let bonds = self.w.truth[&id].bonds.clone();
        self.w.tell(region, Input::Bonds { id, bonds });
    }

    /// Regions miss ticks, batches are lost, messages are late. Then the weather clears.
    fn storm(&mut self, ticks: usize) {
        self.w.weather = Weather { skip: 15, lose: 10, delay: 20 };
        for _ in 0..ticks {
            (0..self.rng.below(5)).for_each(|_| self.disturb());
            self.w.step();
            self.w.links_and_odd();
        }
        self.w.weather = Weather::default();
        // Regions that wait for what was lost give up after their patience, one after the other.
        (0..3 * PATIENCE).for_each(|_| self.w.step());
        // Orders and bonds that took different ways may have come in another order than they went.
        for s in self.w.clients.keys().copied().collect::<Vec<_>>() {
            self.tell_bonds(s);
        }
        for id in self.npcs.clone() {
            let pos = self.w.truth[&id].pos;
            let home = self.w.regions.iter().find(|r| r.find(id).is_some_and(|e| !e.ghost));
            let region = home.unwrap_or_else(|| panic!("{id} lives nowhere")).id();
            self.w.tell(region, Input::Logic { id, order: Order::Move(pos) });
        }
        self.rest();
    }

    /// Up to 2 m in a tick, the top speed.
    fn stroll(&mut self, s: SessionId) {
        let pos = self.w.truth[&self.w.clients[&s].entity].pos;
        let x = (pos.x + self.rng.range(-141, 142)).clamp(0, WIDTH - 1);
        let z = (pos.z + self.rng.range(-141, 142)).clamp(0, DEPTH - 1);
        self.w.walk(s, Pos::ground(x, z));
    }

    fn check(&mut self) {
        self.w.step();
        let w = &self.w;
        let (links, odd) = w.links_and_odd();
        // A tick for what is said to one who is handed off meanwhile, and one when it is handed on.
        self.odd.see(&odd, 2, "only one of two sees the other");
        let blocking = brute::blocking(&w.scene, &w.truth, &links).into_iter().collect();
        self.blocking.see(&blocking, 2, "two would rather see each other");
        let legal: BTreeSet<Pair> =
            brute::pairs_in_range(&w.scene, &w.truth, &links).into_iter().collect();
        let out = links.difference(&legal).copied().collect();
        self.out.see(&out, 1, "linked though out of range");
        let mut missed = BTreeSet::new();
        for c in w.clients.values() {
            for npc in &self.npcs {
                let shown = c.shown.contains_key(npc);
                let near = in_range(&w.scene, &w.truth[&c.entity], &w.truth[npc], shown);
                if near != shown {
                    missed.insert(pair(c.entity, *npc));
                }
            }
        }
        self.missed.see(&missed, 2, "a client shows an npc out of range or not one in range");
    }

    /// Nobody moves any more: after a few ticks all is as brute force says.
    fn rest(&mut self) {
        (0..8).for_each(|_| self.w.step());
        let w = &self.w;
        let links = w.links();
        if !matches!(w.scene.spec.visibility, Visibility::Circle { .. }) {
            assert_eq!(links, brute::greedy(&w.scene, &w.truth, &links));
        }
        assert_eq!(brute::blocking(&w.scene, &w.truth, &links), []);
        let mut want: BTreeSet<_> = links.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]).collect();
        let shown = w.shown();
        for c in w.clients.values() {
            for npc in &self.npcs {
                let known = shown.contains(&(c.entity, *npc));
                if in_range(&w.scene, &w.truth[&c.entity], &w.truth[npc], known) {
                    want.insert((c.entity, *npc));
                }
            }
            assert!(c.unacked.is_empty(), "{}: an input was lost", c.entity);
            assert_eq!(c.refused, 0);
            let owned = w.players()[&c.entity].pos;
            assert_eq!(owned, w.truth[&c.entity].pos, "{}: inputs were applied wrongly", c.entity);
            for (id, (pos, _)) in &c.shown {
                assert_eq!(*pos, w.truth[id].pos, "{} shows {id} where it is not", c.entity);
            }
        }
        assert_eq!(shown, want);
        let before = w.view_messages;
        (0..4).for_each(|_| self.w.step());
        assert_eq!(self.w.view_messages, before, "negotiation goes on though nobody moves");
    }

    fn run(&mut self, ticks: usize) {
        for _ in 0..ticks {
            for _ in 0..self.rng.below(5) {
                self.disturb();
            }
            self.check();
        }
        self.rest();
    }
}

fn trials(spec: &SceneSpec, most: u64) {
    every_seed(spec, most, |t| t.run(40));
}

/// Seeds that failed once, beyond those of every run.
const FAILED_ONCE: [u64; 15] = [
    2_526, 2_610, 2_950, 4_803, 4_942, 5_508, 6_899, 9_699, 9_714, 12_587, 12_619, 13_103, 15_096,
    16_123, 18_007,
];

fn every_seed(spec: &SceneSpec, most: u64, go: impl Fn(&mut Trial)) {
    let (mut handoffs, mut failed) = (0, 0);
    let failed_once = FAILED_ONCE.into_iter().filter(|_| !seeds_are_given());
    for seed in seeds(most).chain(failed_once) {
        let mut t = Trial::new(spec.clone(), seed);
        let run = std::panic::AssertUnwindSafe(|| go(&mut t));
        if let Err(why) = std::panic::catch_unwind(run) {
            eprintln!("seed {seed} failed at tick {}", t.w.tick);
            say_how_to_replay("borders", seed);
            if !seeds_are_given() {
                std::panic::resume_unwind(why);
            }
            failed += 1;
        }
        handoffs += t.w.handoffs;
    }
    assert_eq!(failed, 0);
    assert!(handoffs > 100 || seeds_are_given(), "only {handoffs} handoffs: this shows nothing");
}

const CIRCLE: Visibility = Visibility::Circle { enter_cm: 1_000, leave_cm: 1_150 };

#[test]
fn by_patches_views_cross_borders() {
    trials(&scene(Visibility::Patches, 100), 150);
}

#[test]
fn by_patches_with_a_cap_views_cross_borders() {
    trials(&scene(Visibility::Patches, 3), 150);
}

#[test]
fn by_circle_views_cross_borders() {
    trials(&scene(CIRCLE, 100), 150);
}

#[test]
fn by_circle_with_a_cap_views_cross_borders() {
    trials(&scene(CIRCLE, 3), 150);
}

#[test]
fn with_a_margin_views_cross_borders() {
    for visibility in [Visibility::Patches, CIRCLE] {
        trials(&SceneSpec { view_margin_cm: 200, ..scene(visibility, 3) }, 75);
    }
}

#[test]
fn after_a_storm_all_is_as_if_it_had_never_been() {
    every_seed(&scene(Visibility::Patches, 100), 60, |t| t.storm(40));
}

#[test]
fn after_a_storm_view_lists_with_a_cap_are_the_greedy_ones() {
    every_seed(&scene(Visibility::Patches, 3), 60, |t| t.storm(40));
}

#[test]
fn after_a_storm_nobody_is_missed_in_a_circle() {
    every_seed(&scene(CIRCLE, 3), 60, |t| t.storm(40));
}

#[test]
fn the_same_inputs_have_the_same_effects() {
    let run = || {
        let mut t = Trial::new(scene(Visibility::Patches, 3), 7);
        t.w.log = Some(Vec::new());
        t.storm(60);
        t.w.log.take().unwrap()
    };
    let (once, again) = (run(), run());
    assert!(once.len() > 1_000);
    assert_eq!(once, again);
}

/// Two walk side by side through all nine regions: neither is ever told that the other left.
#[test]
fn nobody_notices_a_handoff() {
    for seed in 0..20 {
        let mut w = World::new(scene(Visibility::Patches, 60), seed);
        let a = w.join(Plane(0), Pos::ground(100, 100), RangeSet::FULL);
        let b = w.join(Plane(0), Pos::ground(350, 200), RangeSet::FULL);
        w.step();
        w.step();
        let mut acts = 0;
        for i in 0..90 {
            let at = 100 + i * 100;
            w.walk(a, Pos::ground(at, at));
            w.walk(b, Pos::ground(at + 250, at + 100));
            if i % 3 == 0 {
                w.order(a, Order::Act(Deed::new(format!("wave {i}"))));
                acts += 1;
            }
            w.step();
            let (ca, cb) = (&w.clients[&a], &w.clients[&b]);
            assert_eq!((ca.ack, cb.ack), (ca.seq, cb.seq), "an input waits for another tick");
            assert_eq!(ca.frames.last(), Some(&w.tick), "a tick without a frame");
        }
        assert!(w.handoffs >= 4, "{} handoffs", w.handoffs);
        for (me, other) in [(a, b), (b, a)] {
            let c = &w.clients[&me];
            let other = w.clients[&other].entity;
            assert_eq!((c.left.len(), c.entered.len()), (0, 1));
            assert_eq!(c.shown[&other], (w.truth[&other].pos, w.tick));
            assert!(c.frames.windows(2).all(|f| f[1] == f[0].next()), "one frame per tick");
            assert!(c.epoch >= Epoch(3), "it was handed on");
        }
        let heard: Vec<_> = w.clients[&b].acts.iter().map(|(_, _, p)| p.clone()).collect();
        let want: Vec<_> = (0..acts).map(|i| Bytes::from(format!("wave {}", i * 3))).collect();
        assert_eq!(heard, want, "acts arrive once each and in order");
    }
}

#[test]
fn one_who_walks_on_the_border_is_not_handed_to_and_fro() {
    let mut w = World::new(scene(Visibility::Patches, 60), 1);
    let a = w.join(Plane(0), Pos::ground(3_190, 500), RangeSet::FULL);
    w.step();
    for i in 0..100 {
        w.walk(a, Pos::ground(if i % 2 == 0 { 3_290 } else { 3_190 }, 500));
        w.step();
    }
    assert_eq!(w.handoffs, 0);
    w.walk(a, Pos::ground(3_301, 500));
    w.step();
    assert_eq!(w.handoffs, 1, "beyond the margin it is handed off");
}

#[test]
fn the_ghosts_of_a_silent_neighbour_expire_and_come_back() {
    let mut w = World::new(scene(Visibility::Patches, 60), 1);
    let a = w.join(Plane(0), Pos::ground(3_000, 500), RangeSet::FULL);
    let b = w.join(Plane(0), Pos::ground(3_300, 500), RangeSet::FULL);
    (0..3).for_each(|_| w.step());
    assert_eq!(w.links().len(), 1);
    let b_id = w.clients[&b].entity;
    (0..45).for_each(|_| w.step_alone(RegionId(0)));
    assert!(w.regions[0].find(b_id).is_none(), "its ghost is still there");
    assert!(w.regions[0].is_closed(), "a silent neighbour is not waited for");
    assert!(w.regions[0].counts().forced_closes <= 12);
    w.tell(RegionId(1), Input::BorderLost(RegionId(0)));
    (0..4).for_each(|_| w.step());
    assert_eq!(w.links(), [pair(w.clients[&a].entity, b_id)].into());
}

//! Crowds beyond the view cap that walk over the corners of nine regions, join, leave, teleport and
//! change their bonds. In every tick both sides agree on links and bonds, blocking pairs stay
//! within the margin, and V1 to V4 hold after every step (DESIGN, "VIEWS").

use std::collections::{BTreeMap, BTreeSet};

use crate::support::brute::{self, Pair, Spells};
use crate::support::small_scene;
use crate::support::world::{Weather, World};
use crate::support::{Rng, say_how_to_replay, seeds};
use purview::scene::messages::Bond;
use purview::scene::{
    EntityId, Epoch, Plane, Pos, RangeSet, RegionId, SceneSpec, SessionId, Tick, Visibility,
};

const SIDE: i32 = 4_800;
const TICKS: u64 = 30;
const CIRCLE: Visibility = Visibility::Circle { enter_cm: 900, leave_cm: 1_050 };

/// Nine regions of 16 m.
fn scene(visibility: Visibility, view_margin_cm: i32) -> SceneSpec {
    SceneSpec {
        visibility,
        patch_margin_cm: Some(0),
        view_cap: 4,
        view_margin_cm,
        handoff_margin_cm: 50,
        ..small_scene((SIDE / 1_600, SIDE / 1_600), 1_600, 400)
    }
}

struct Crowd {
    w: World,
    rng: Rng,
    blocking: Spells,
    odd: Spells,
    /// Links, blocking pairs and one-sided pairs, each counted once per tick.
    link_ticks: usize,
    blocking_ticks: usize,
    odd_ticks: usize,
    /// Pairs across a border with a bond, counted once per tick.
    bonded: u64,
    /// The players that teleported, by tick. A player that teleports into another region is handed
    /// over there when the tick closes, and sees the entities there in the next tick.
    teleported_at: BTreeMap<Tick, BTreeSet<EntityId>>,
}

impl Crowd {
    fn new(spec: &SceneSpec, seed: u64, weather: Weather) -> Crowd {
        let mut w = World::new(spec.clone(), seed);
        w.safety = Some(Box::default());
        (w.encode, w.remember, w.weather) = (true, true, weather);
        let mut crowd = Crowd {
            w,
            rng: Rng::new(seed ^ 0xc0de),
            blocking: Spells::default(),
            odd: Spells::default(),
            link_ticks: 0,
            blocking_ticks: 0,
            odd_ticks: 0,
            bonded: 0,
            teleported_at: BTreeMap::new(),
        };
        for _ in 0..14 + crowd.rng.below(12) {
            let at = crowd.somewhere();
            crowd.w.join(Plane(0), at, RangeSet::FULL);
        }
        crowd
    }

    /// A position around the middle region and its four corners.
    fn somewhere(&mut self) -> Pos {
        let mut along = || SIDE / 2 + self.rng.range(-20, 21) * 50;
        let at = (along(), along());
        let y = self.w.scene.spec.height_cm.map_or(0, |_| self.rng.range(0, 20) * 50);
        Pos { y, ..self.within(at) }
    }

    /// The nearest position of the scene.
    fn within(&self, (x, z): (i32, i32)) -> Pos {
        let SceneSpec { width_cm, depth_cm, .. } = self.w.scene.spec;
        Pos::ground(x.clamp(0, width_cm - 1), z.clamp(0, depth_cm - 1))
    }

    fn sessions(&self) -> Vec<SessionId> {
        let here =
            |c: &&SessionId| self.w.clients[*c].epoch > Epoch(0) && !self.w.clients[*c].leaving;
        self.w.clients.keys().filter(here).copied().collect()
    }

    /// All players walk, up to top speed; a few do something else.
    fn move_on(&mut self) {
        for s in self.sessions() {
            let (dx, dz) = (self.rng.range(-141, 142), self.rng.range(-141, 142));
            match self.rng.below(60) {
                0 => {
                    let at = self.somewhere();
                    let id = self.w.clients[&s].entity;
                    self.teleported_at.entry(self.w.tick.next()).or_default().insert(id);
                    self.w.teleport(s, Plane(0), at);
                }
                1 => {
                    let at = &self.w.truth[&self.w.clients[&s].entity];
                    self.w.teleport(s, Plane(1 - at.plane.0), at.pos);
                }
                2 => {
                    self.w.leave(s);
                    let at = self.somewhere();
                    self.w.join(Plane(0), at, RangeSet::FULL);
                }
                3..6 => self.bind(s),
                _ => {
                    let at = self.w.truth[&self.w.clients[&s].entity].pos;
                    let to = self.within((at.x + dx, at.z + dz));
                    let y = self.w.scene.spec.height_cm.map_or(0, |_| at.y + dx / 2);
                    self.w.walk(s, Pos { y, ..to });
                }
            }
        }
    }

    fn bind(&mut self, s: SessionId) {
        let bond = |rng: &mut Rng| Bond { class: rng.range(0, 3) as u8, group: rng.next() % 2 };
        let bonds = (0..self.rng.below(4)).map(|_| bond(&mut self.rng)).collect::<Vec<_>>();
        self.w.bond(s, &bonds);
    }

    /// After all messages of a tick have arrived: where both regions know both players, both
    /// compute the same class, and it is the true one.
    fn classes_agree(&mut self) {
        let w = &self.w;
        let players = w.players();
        for (a, pa) in &players {
            for (b, pb) in players.range(a..).skip(1) {
                let class_at = |r: RegionId| w.regions[r.0 as usize].bond_class(*a, *b);
                let (Some(here), Some(there)) = (class_at(pa.region), class_at(pb.region)) else {
                    continue;
                };
                let want = brute::key((a, &w.truth[a]), (b, &w.truth[b])).0;
                assert_eq!((here, there), (want, want), "the class of {a} and {b}");
                self.bonded += u64::from(want < 255 && pa.region != pb.region);
            }
        }
    }

    /// Pairs in which one player was shown the other and not vice versa, though both had a frame.
    fn one_sided(&self, tick: Tick) -> BTreeSet<Pair> {
        let shown = self.w.clients.values().filter_map(|c| Some((c.entity, c.history.get(&tick)?)));
        let shown: BTreeMap<EntityId, &BTreeSet<EntityId>> = shown.collect();
        let pairs = shown.iter().flat_map(|(a, list)| list.iter().map(move |b| (*a, *b)));
        pairs.filter(|(a, b)| shown.get(b).is_some_and(|list| !list.contains(a))).collect()
    }

    fn without_teleported(&self, tick: Tick, mut pairs: BTreeSet<Pair>) -> BTreeSet<Pair> {
        if let Some(teleported_at) = self.teleported_at.get(&tick) {
            pairs.retain(|(a, b)| !teleported_at.contains(a) && !teleported_at.contains(b));
        }
        pairs
    }

    /// No player moves any more.
    fn rest(&mut self) {
        self.w.weather = Weather::default();
        for s in self.sessions() {
            self.w.tell_bonds(s);
        }
        self.w.steps(5);
        let w = &self.w;
        w.safety.as_ref().unwrap().nothing_is_left(w);
        let links = w.links();
        assert_eq!(brute::blocking(&w.scene, &w.truth, &links), [], "at rest");
        if w.scene.spec.view_margin_cm == 0 {
            assert_eq!(links, brute::greedy(&w.scene, &w.truth, &links), "the greedy lists");
        }
        let before = self.w.view_messages;
        self.w.steps(3);
        assert_eq!(self.w.view_messages, before, "negotiation goes on although no player moves");
    }

    fn run(&mut self) {
        // In the first tick no region knows its neighbours yet.
        self.w.step();
        let first = self.w.tick.next();
        for _ in 0..TICKS {
            self.move_on();
            self.w.step();
            let links = self.w.links_and_odd().0;
            self.link_ticks += links.len();
            if self.w.weather == Weather::default() {
                let blocking = brute::blocking(&self.w.scene, &self.w.truth, &links);
                let settled = self.without_teleported(self.w.tick, blocking.into_iter().collect());
                self.blocking_ticks += settled.len();
                self.blocking.see(settled);
                self.classes_agree();
            }
        }
        self.rest();
        for tick in first.0..self.w.tick.0 {
            let odd = self.without_teleported(Tick(tick), self.one_sided(Tick(tick)));
            self.odd_ticks += odd.len();
            self.odd.see(odd);
        }
    }
}

/// A region that hears of something after it has made its frames shows it a tick later. That must
/// be rare: at most one link in this many.
const LATE: usize = 200;
/// That a pair is late in two consecutive ticks is a coincidence: at most one link in this many.
const LATE_TWICE: usize = 100_000;

fn crowds(spec: &SceneSpec, most: u64, weather: Weather) {
    let [mut links, mut blocking, mut odd, mut twice, mut handoffs, mut bonded] = [0; 6];
    for seed in seeds(most) {
        let mut crowd = Crowd::new(spec, seed, weather);
        let run = std::panic::AssertUnwindSafe(|| {
            crowd.run();
            let (blocking, odd) = (crowd.blocking.longest, crowd.odd.longest);
            assert!(blocking <= 1, "a blocking pair for {blocking} ticks");
            assert!(odd <= 2, "a one-sided pair for {odd} ticks");
        });
        if let Err(why) = std::panic::catch_unwind(run) {
            let w = &crowd.w;
            eprintln!("seed {seed} failed in tick {}, step {}", w.tick, w.steps);
            say_how_to_replay("stability", seed);
            std::panic::resume_unwind(why);
        }
        links += crowd.link_ticks;
        blocking += crowd.blocking_ticks;
        odd += crowd.odd_ticks;
        twice += crowd.odd.again;
        bonded += crowd.bonded as usize;
        handoffs += crowd.w.handoffs as usize;
    }
    println!(
        "{links} links, {blocking} blocking, {odd} one-sided, {twice} again, {bonded} bonded; {handoffs} handoffs"
    );
    assert!(handoffs > 10, "only {handoffs} handoffs: too few to test anything");
    assert!(odd * LATE <= links, "{odd} one-sided pairs, {links} links");
    assert!(twice * LATE_TWICE <= links, "{twice} pairs were one-sided twice, {links} links");
    if weather == CALM {
        assert!(blocking * LATE <= links, "{blocking} blocking pairs, {links} links");
        assert!(bonded > 100, "only {bonded} bonded pairs across borders");
    }
}

const CALM: Weather = Weather { skip: 0, lose: 0, delay: 0, mute: 0 };

#[test]
fn lists_are_stable_in_every_tick_with_patches() {
    crowds(&scene(Visibility::Patches, 0), 10, CALM);
}

#[test]
fn blocking_pairs_stay_within_the_margin_with_patches() {
    crowds(&scene(Visibility::Patches, 100), 10, CALM);
}

#[test]
fn lists_are_stable_in_every_tick_with_circles() {
    crowds(&scene(CIRCLE, 0), 10, CALM);
}

#[test]
fn blocking_pairs_stay_within_the_margin_with_circles() {
    crowds(&scene(CIRCLE, 100), 10, CALM);
}

/// Players on stairs: they come into view at 3 m of height, and leave it beyond 3.37 m.
#[test]
fn lists_are_stable_in_every_tick_where_heights_count() {
    for (visibility, margin_cm) in [(Visibility::Patches, 0), (CIRCLE, 0), (CIRCLE, 100)] {
        let spec = SceneSpec { height_cm: Some(300), ..scene(visibility, margin_cm) };
        crowds(&spec, 10, CALM);
    }
}

/// Patches of a screen's shape, which borders of regions cut.
#[test]
fn lists_are_stable_in_every_tick_with_oblong_patches() {
    let mut spec = scene(Visibility::Patches, 0);
    for patch_cm in [[440, 300], [250, 430]] {
        spec.layers[0].patch_cm = patch_cm;
        crowds(&spec, 10, CALM);
    }
}

/// The edges cut the last column of regions to 3.4 m and the last row to 1 cm; the crowd stands in both.
#[test]
fn lists_are_stable_in_every_tick_where_the_edges_of_the_scene_cut_lands() {
    for (visibility, margin_cm) in [(Visibility::Patches, 0), (CIRCLE, 100)] {
        let spec = SceneSpec { width_cm: 3_540, depth_cm: 3_201, ..scene(visibility, margin_cm) };
        crowds(&spec, 10, CALM);
    }
}

#[test]
fn clients_agree_within_a_tick_when_messages_are_late() {
    crowds(&scene(Visibility::Patches, 0), 10, Weather { delay: 20, ..CALM });
}

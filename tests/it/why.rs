//! Explanations of why two players see each other or not: the answers for every pair of random
//! crowds over nine regions, checked against the view lists while all players walk and against
//! brute force at rest.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::brute::{self, Pair, in_range};
use crate::support::small_scene;
use crate::support::world::{Weather, World};
use crate::support::{Replay, Rng, seeds};
use purview::scene::inspect::why::{Limit, ListRank, PairRank, Stand, Why, why};
use purview::scene::inspect::{InspectedEntity, PlayerDetails, ViewEntry};
use purview::scene::messages::Bond;
use purview::scene::region::PATIENCE;
use purview::scene::{
    EntityId, Heights, Kind, Plane, Pos, RangeSet, Scene, SceneSpec, SessionId, Visibility,
};

const SIDE: i32 = 9_600;
/// Coordinate along both axes where four regions meet.
const CORNER: i32 = 3_200;
const PATCH: i32 = 400;
const CIRCLE: Visibility = Visibility::Circle { enter_cm: 1_000, leave_cm: 1_150 };

fn scene(visibility: Visibility, view_cap: usize, view_margin_cm: i32) -> SceneSpec {
    SceneSpec { visibility, view_cap, view_margin_cm, ..small_scene((3, 3), CORNER, PATCH) }
}

/// The answer for every pair, which must be the same from both ends.
fn answers(w: &World) -> BTreeMap<Pair, Why> {
    let local_regions: Vec<InspectedEntity> =
        w.players().into_values().map(|p| InspectedEntity::Player(Box::new(p))).collect();
    let mut all = BTreeMap::new();
    for (i, a) in local_regions.iter().enumerate() {
        for b in &local_regions[i + 1..] {
            let there = why(&w.scene.spec, a, b);
            assert_eq!(mirrored(why(&w.scene.spec, b, a)), there);
            all.insert((a.id(), b.id()), there);
        }
    }
    all
}

/// The answer to the same question with the players swapped.
fn mirrored(mut why: Why) -> Why {
    match &mut why {
        Why::Seen { places, .. } => places.reverse(),
        Why::NotAPlayer { kinds } => kinds.reverse(),
        Why::OtherScene { scenes } => scenes.reverse(),
        Why::OtherPlane { planes } => planes.reverse(),
        Why::Full { stands, .. } | Why::WithinMargin { stands, .. } => stands.reverse(),
        Why::OutOfRange { .. } | Why::SameEntity | Why::Negotiating { .. } => {}
    }
    why
}

fn name(why: &Why) -> &'static str {
    match why {
        Why::Seen { .. } => "seen",
        Why::SameEntity => "same entity",
        Why::NotAPlayer { .. } => "not a player",
        Why::OtherScene { .. } => "other scene",
        Why::OtherPlane { .. } => "other plane",
        Why::OutOfRange { limit: Limit::Height { .. }, .. } => "height",
        Why::OutOfRange { .. } => "out of range",
        Why::Full { .. } => "full",
        Why::WithinMargin { .. } => "within the margin",
        Why::Negotiating { .. } => "negotiating",
    }
}

/// Whether the player neither lists nor has asked the other, and has better ones up to its cap. (A
/// player that it has asked may have been nearer then, by its knowledge.)
fn refuses(player: &PlayerDetails, other: EntityId, pair: PairRank) -> bool {
    let standing = || player.view.iter().chain(&player.asked);
    let better = |e: &&ViewEntry| {
        let less = if e.linked { player.rules.margin_cm } else { 0 };
        let rank = i64::from(e.dist_cm.unwrap_or(u32::MAX)) - i64::from(less);
        (e.class, rank) < (pair.class, i64::from(pair.dist_cm))
    };
    standing().all(|e| e.id != other) && standing().filter(better).count() >= player.rules.cap
}

/// Brute force over true positions and over the links of players at rest.
struct Rule<'a> {
    w: &'a World,
    links: BTreeSet<Pair>,
}

impl Rule<'_> {
    fn key(&self, a: EntityId, b: EntityId) -> (u8, u32, EntityId, EntityId) {
        brute::key((&a, &self.w.truth[&a]), (&b, &self.w.truth[&b]))
    }

    /// The players that a player sees, best first.
    fn list(&self, of: EntityId) -> Vec<EntityId> {
        let ends = self.links.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]);
        let mut list: Vec<EntityId> = ends.filter(|(me, _)| *me == of).map(|(_, o)| o).collect();
        list.sort_by_key(|o| self.key(of, *o));
        list
    }

    fn place(&self, of: EntityId, other: EntityId) -> ListRank {
        let list = self.list(of);
        let before = list.iter().position(|o| *o == other).expect("a link stands on both lists");
        ListRank { place: before + 1, of: list.len() }
    }

    /// The stance of a player on another in range that it does not see.
    fn stand(&self, of: EntityId, other: EntityId) -> Stand {
        let spec = &self.w.scene.spec;
        let list = self.list(of);
        let Some(worst) = list.last().filter(|_| list.len() == spec.view_cap) else {
            return Stand::Willing;
        };
        let (class, dist_cm, lo, hi) = self.key(of, *worst);
        let entry = ViewEntry { id: *worst, class, dist_cm: Some(dist_cm), linked: true };
        let (c, d, l, h) = self.key(of, other);
        let less = i64::from(dist_cm) - i64::from(spec.view_margin_cm);
        if (c, i64::from(d), l, h) < (class, less, lo, hi) {
            Stand::Willing
        } else if (c, d, l, h) < (class, dist_cm, lo, hi) {
            Stand::WithinMargin(entry)
        } else {
            Stand::Full(entry)
        }
    }

    fn limit(&self, a: EntityId, b: EntityId) -> Limit {
        let (a, b) = (&self.w.truth[&a], &self.w.truth[&b]);
        let mut flat = Scene::clone(&self.w.scene);
        flat.spec.height_cm = None;
        match self.w.scene.spec.visibility {
            _ if in_range(&flat, a, b, false) => {
                let Heights { enter_cm, leave_cm } = self.w.scene.spec.heights();
                let apart_cm = a.pos.y.abs_diff(b.pos.y);
                Limit::Height { apart_cm, enter_cm, leave_cm, known: false }
            }
            Visibility::Patches => {
                let patches = |p: i32, q: i32| (p / PATCH).abs_diff(q / PATCH);
                let apart = patches(a.pos.x, b.pos.x).max(patches(a.pos.z, b.pos.z));
                Limit::Patches { apart, patch_cm: [PATCH; 2], range: self.w.scene.spec.range }
            }
            Visibility::Circle { enter_cm, leave_cm } => {
                Limit::Circle { enter_cm, leave_cm, known: false }
            }
            Visibility::All => panic!("with visibility ALL no pair is out of range"),
        }
    }

    /// The answer for a pair at rest.
    fn answer(&self, (a, b): Pair) -> Why {
        let (class, dist_cm, ..) = self.key(a, b);
        let pair = PairRank { class, dist_cm };
        let [at, bt] = [&self.w.truth[&a], &self.w.truth[&b]];
        if self.links.contains(&(a, b)) {
            return Why::Seen { pair, places: [self.place(a, b), self.place(b, a)] };
        }
        if at.plane != bt.plane {
            return Why::OtherPlane { planes: [at.plane, bt.plane] };
        }
        if !in_range(&self.w.scene, at, bt, false) {
            return Why::OutOfRange { dist_cm, limit: self.limit(a, b) };
        }
        let stands = [self.stand(a, b), self.stand(b, a)];
        if stands.iter().any(|stand| matches!(stand, Stand::Full(_))) {
            Why::Full { pair, stands }
        } else if stands.iter().any(|stand| matches!(stand, Stand::WithinMargin(_))) {
            Why::WithinMargin { pair, stands }
        } else {
            Why::Negotiating { pair }
        }
    }
}

struct Trial {
    w: World,
    rng: Rng,
    /// How often each answer was given while all walked; the next field: at rest.
    moving: BTreeMap<&'static str, usize>,
    resting: BTreeMap<&'static str, usize>,
    /// Pairs of two regions that were in range of each other at rest.
    across: usize,
    /// Players that were asked and had not answered while all walked.
    asked: usize,
}

impl Trial {
    fn new(spec: SceneSpec, seed: u64) -> Trial {
        let (moving, resting) = Default::default();
        let w = World::new(spec, seed);
        let mut t = Trial { w, rng: Rng::new(seed), moving, resting, across: 0, asked: 0 };
        for _ in 0..36 {
            let along = |rng: &mut Rng| CORNER + rng.range(-1_300, 1_300);
            let at = Pos::ground(along(&mut t.rng), along(&mut t.rng));
            let y = t.w.scene.spec.height_cm.map_or(0, |_| t.rng.range(0, 800));
            let at = Pos { y, ..at };
            let sight = match t.rng.below(4) {
                0 => RangeSet::from_bits(t.rng.range(0, 8) as u8).unwrap(),
                _ => RangeSet::FULL,
            };
            let plane = Plane(i32::from(t.rng.chance(20)));
            t.w.join(plane, at, sight);
        }
        t.w.steps(4);
        t
    }

    fn sessions(&self) -> Vec<SessionId> {
        self.w.clients.keys().copied().collect()
    }

    fn disturb(&mut self) {
        for s in self.sessions() {
            let pos = self.w.truth[&self.w.clients[&s].entity].pos;
            let mut step = |v: i32| (v + self.rng.range(-141, 142)).clamp(0, SIDE - 1);
            let to = Pos { x: step(pos.x), y: pos.y, z: step(pos.z) };
            self.w.walk(s, to);
        }
        let sessions = self.sessions();
        let s = sessions[self.rng.below(sessions.len())];
        let group = self.rng.next() % 4;
        let class = self.rng.range(0, 2) as u8;
        self.w.bond(s, &[Bond { class, group }]);
    }

    /// While all walk, an answer must agree with what the two owners say, and if a pair is said to
    /// negotiate, neither may be full of better ones.
    fn check_moving(&mut self) {
        let players = self.w.players();
        for ((a, b), why) in answers(&self.w) {
            let (a, b) = (&players[&a], &players[&b]);
            assert_eq!(why.is_seen(), a.sees(b.id) && b.sees(a.id), "{why:?}");
            assert_eq!(a.worst.is_some(), a.view.len() + a.asked.len() >= a.rules.cap, "{a:?}");
            self.asked += a.asked.len();
            if let Why::Negotiating { pair } = why {
                assert_eq!(a.plane, b.plane);
                assert!(!refuses(a, b.id, pair) && !refuses(b, a.id, pair), "{pair:?} {a:?} {b:?}");
            }
            *self.moving.entry(name(&why)).or_default() += 1;
        }
    }

    /// At rest every answer must be that of brute force.
    fn check_resting(&mut self) {
        let rule = Rule { w: &self.w, links: self.w.links() };
        let players = self.w.players();
        for (pair, why) in answers(&self.w) {
            assert_eq!(why, rule.answer(pair), "{pair:?}");
            let of_two = players[&pair.0].region != players[&pair.1].region;
            let near =
                matches!(why, Why::Seen { .. } | Why::Full { .. } | Why::WithinMargin { .. });
            self.across += usize::from(of_two && near);
            *self.resting.entry(name(&why)).or_default() += 1;
        }
    }

    fn run(&mut self) {
        self.w.weather = Weather { delay: 25, ..Weather::default() };
        for _ in 0..15 {
            self.disturb();
            self.w.step();
            self.check_moving();
        }
        self.w.weather = Weather::default();
        // Regions that wait for each other give up after their patience, one after the other.
        self.w.steps(3 * PATIENCE);
        // Orders and bonds that took different ways may have arrived in another order.
        self.sessions().into_iter().for_each(|s| self.w.tell_bonds(s));
        self.w.steps(8);
        self.check_resting();
    }
}

/// Runs trials. Each of these answers must have been given: `moving` while all walked, `resting` at
/// rest.
fn trials(spec: &SceneSpec, most: u64, moving: &[&str], resting: &[&str]) {
    let [mut while_moving, mut at_rest] = [BTreeMap::new(), BTreeMap::new()];
    let (mut handoffs, mut across, mut asked) = (0, 0, 0);
    for seed in seeds(most) {
        let _replay = Replay("why", seed);
        let mut t = Trial::new(spec.clone(), seed);
        t.run();
        (handoffs, across) = (handoffs + t.w.handoffs, across + t.across);
        asked += t.asked;
        for (all, one) in [(&mut while_moving, t.moving), (&mut at_rest, t.resting)] {
            one.into_iter().for_each(|(name, n)| *all.entry(name).or_insert(0) += n);
        }
    }
    println!("{handoffs} handoffs, {across} across; walking {while_moving:?}; resting {at_rest:?}");
    assert!(handoffs > 100 && across > 1_000 && asked > 1_000, "{handoffs}, {across}, {asked}");
    for (told, wanted) in [(while_moving, moving), (at_rest, resting)] {
        for name in wanted {
            assert!(told.get(name).is_some_and(|n| *n >= 20), "{name}: {told:?}");
        }
    }
}

const ALL_BUT_MARGIN: [&str; 4] = ["seen", "other plane", "out of range", "full"];
const ALL: [&str; 5] = ["seen", "other plane", "out of range", "full", "within the margin"];

#[test]
fn every_pair_gets_the_rule_that_separates_it_where_heights_count() {
    for visibility in [CIRCLE, Visibility::Patches] {
        let spec = SceneSpec { height_cm: Some(400), ..scene(visibility, 4, 0) };
        trials(&spec, 30, &["height"], &["height", "out of range", "full"]);
    }
}

#[test]
fn every_pair_gets_the_rule_that_separates_it_with_circles() {
    trials(&scene(CIRCLE, 4, 0), 30, &["negotiating"], &ALL_BUT_MARGIN);
    trials(&scene(CIRCLE, 4, 100), 30, &["negotiating", "within the margin"], &ALL);
}

#[test]
fn every_pair_gets_the_rule_that_separates_it_with_patches() {
    trials(&scene(Visibility::Patches, 4, 0), 30, &["negotiating"], &ALL_BUT_MARGIN);
    trials(&scene(Visibility::Patches, 4, 100), 30, &["negotiating", "within the margin"], &ALL);
}

#[test]
fn without_a_reached_cap_no_answer_names_a_full_list() {
    let mut t = Trial::new(scene(CIRCLE, 100, 0), 3);
    t.run();
    let told: BTreeSet<&str> = t.resting.into_keys().collect();
    assert_eq!(told, ["other plane", "out of range", "seen"].into());
}

#[test]
fn an_entity_of_another_kind_is_named_as_such() {
    let mut w = World::new(scene(CIRCLE, 4, 0), 1);
    let s = w.join(Plane(0), Pos::ground(3_000, 500), RangeSet::FULL);
    // The npc lives in the neighbouring region and is a ghost in that of the player.
    let npc = w.spawn(Kind(1), Plane(0), Pos::ground(3_400, 500), RangeSet::FULL, None);
    w.steps(3);
    let found = |id| {
        let all: Vec<_> = w.regions.iter().filter_map(|r| r.inspect_entity(id)).collect();
        let [one] = all.try_into().expect("an entity lives in one region");
        one
    };
    let (player, other) = (found(w.clients[&s].entity), found(npc));
    let kinds = [None, Some(Kind(1))];
    assert_eq!(why(&w.scene.spec, &player, &other), Why::NotAPlayer { kinds });
}

#[test]
fn an_open_tick_is_explained_as_it_is_now() {
    let mut w = World::new(scene(CIRCLE, 4, 0), 1);
    let [a, b] = [100, 400].map(|x| w.join(Plane(0), Pos::ground(x, 500), RangeSet::FULL));
    w.steps(3);
    let [a_id, b_id] = [a, b].map(|s| w.clients[&s].entity);
    [a, b].into_iter().for_each(|session| w.bond(session, &[Bond { class: 3, group: 9 }]));
    w.walk(b, Pos::ground(450, 500));
    w.regions[0].tick(w.tick.next(), &mut Vec::new());
    assert!(!w.regions[0].is_closed(), "the region waits for its neighbours");
    let entry = ViewEntry { id: b_id, class: 3, dist_cm: Some(350), linked: true };
    assert_eq!(w.regions[0].inspect_player(a_id).unwrap().view, [entry]);
}

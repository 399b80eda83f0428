//! Random histories against brute force: every pair is compared at the end of every tick, for worlds
//! on one thread and on three.

mod bounds;
mod capped;
mod positions;
mod query;
mod refusals;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use self::positions::Client;
use super::*;
use crate::interest::tests::Rng;
use crate::scene::workers::{Backwards, OneThread, Scoped};
use crate::scene::{RangeSet, Rect};

/// An entity as the model knows it. The number tells entities of one id apart.
type Living = (u64, Entity);

/// Observer and subject, each with its number.
type Pairs = BTreeSet<((u64, u64), (u64, u64))>;

/// What is true, by brute force.
struct Model {
    rules: Rules,
    entities: BTreeMap<u64, Living>,
    born: u64,
    bonds: BTreeMap<u64, [u64; BONDS]>,
    /// Those that are in no list.
    pairs: Pairs,
    /// Those of lists, in both directions.
    listed: Pairs,
}

impl Model {
    fn new(rules: Rules) -> Model {
        let (entities, bonds) = (BTreeMap::new(), BTreeMap::new());
        Model { rules, entities, born: 0, bonds, pairs: Pairs::new(), listed: Pairs::new() }
    }

    fn reach(&self, observer: &Entity, subject: &Entity) -> Option<Reach> {
        let ruled = self.rules.reach_of(observer.kind, subject.kind);
        let sight = observer.sight;
        let reach = match sight.kinds {
            Some(kinds) => kinds.has(subject.kind).then_some(sight.reach.or(ruled)).flatten(),
            None => ruled.and(sight.reach.or(ruled)),
        };
        reach.filter(|reach| *reach != Reach::Rings(RangeSet::NONE))
    }

    fn sees(&self, observer: &Entity, subject: &Entity, known: bool) -> bool {
        if observer.plane != subject.plane {
            return false;
        }
        let (a, b) = (observer.pos, subject.pos);
        match (self.reach(observer, subject), self.rules.mode) {
            (Some(Reach::All), _) => true,
            (Some(Reach::Rings(rings)), Mode::Patches { patch_cm }) => {
                let ground = self.rules.ground;
                let patch = |v: i32, from: i32| (v - from) / patch_cm;
                let apart = |a: i32, b: i32, from: i32| patch(a, from).abs_diff(patch(b, from));
                rings.has_ring(apart(a.x, b.x, ground.x0).max(apart(a.z, b.z, ground.z0)))
            }
            (Some(Reach::Circle(r)), _) => {
                let more = if known { r.leave_cm - r.enter_cm } else { 0 };
                let radius = i64::from(r.enter_cm + more);
                let level = r.height_cm.is_none_or(|most| (a.y - b.y).abs() <= most + more);
                a.dist2(b) as i64 <= radius * radius && level
            }
            _ => false,
        }
    }

    /// Whether the pair is one of lists.
    fn is_mutual(&self, a: &Entity, b: &Entity) -> bool {
        self.rules.cap.is_some() && self.reach(a, b).is_some() && self.reach(b, a).is_some()
    }

    fn truth(&self) -> Pairs {
        let mut pairs = Pairs::new();
        for (a, (born_a, observer)) in &self.entities {
            for (b, (born_b, subject)) in &self.entities {
                let pair = ((*a, *born_a), (*b, *born_b));
                let is_here = a != b && !self.is_mutual(observer, subject);
                let known = self.pairs.contains(&pair) || self.listed.contains(&pair);
                if is_here && self.sees(observer, subject, known) {
                    pairs.insert(pair);
                }
            }
        }
        pairs
    }

    fn tick(&mut self) -> Vec<Event> {
        let (pairs, listed) = (self.truth(), self.lists());
        let truth: Pairs = pairs.union(&listed).copied().collect();
        let before: Pairs = self.pairs.union(&self.listed).copied().collect();
        let event = |pair: &((u64, u64), (u64, u64)), appears| Event {
            observer: pair.0.0,
            subject: pair.1.0,
            appears,
        };
        let mut events: Vec<_> = truth.difference(&before).map(|p| event(p, true)).collect();
        events.extend(before.difference(&truth).map(|pair| event(pair, false)));
        events.sort();
        (self.pairs, self.listed) = (pairs, listed);
        events
    }

    /// Applies a request; whether it is legal.
    fn request(&mut self, request: &Request) -> bool {
        if let Request::Create(entity) = *request {
            let is_legal =
                !self.entities.contains_key(&entity.id) && self.rules.ground.contains(entity.pos);
            if is_legal {
                self.born += 1;
                self.entities.insert(entity.id, (self.born, entity));
            }
            return is_legal;
        }
        if let Request::Delete(id) = *request {
            self.bonds.remove(&id);
            return self.entities.remove(&id).is_some();
        }
        let Some((_, entity)) = self.entities.get_mut(&request.id()) else { return false };
        match *request {
            Request::Move { pos, .. } if !self.rules.ground.contains(pos) => return false,
            Request::Move { pos, .. } => entity.pos = pos,
            Request::SetKind { kind, .. } => entity.kind = kind,
            Request::SetPlane { plane, .. } => entity.plane = plane,
            Request::SetReach { reach, .. } => entity.sight.reach = reach,
            Request::SetKinds { kinds, .. } => entity.sight.kinds = kinds,
            Request::SetBond { id, strength, group } => {
                if self.rules.cap.is_none() || usize::from(strength) >= BONDS {
                    return false;
                }
                self.bonds.entry(id).or_default()[usize::from(strength)] = group;
            }
            Request::Create(_) | Request::Delete(_) => unreachable!("handled above"),
        }
        true
    }
}

/// Parameters of a kind of history.
#[derive(Debug, Clone)]
struct Plan {
    rules: Rules,
    /// Most entities at a time.
    people: u64,
    /// Longest step along an axis, centimetres.
    step: i32,
    /// Most requests per tick.
    requests: i32,
    /// Of 1,000 requests of known entities, so many are not a step.
    wild: i32,
    reaches: Vec<Reach>,
}

fn place(rng: &mut Rng, ground: Rect) -> Pos {
    // Often on an edge or a common point, and now and then outside.
    let mut along = |a: i32, b: i32| match rng.below(40) {
        0..4 => a,
        4..8 => b - 1,
        8 => a - 1,
        9 => b,
        10..14 => a + (b - a) / 2,
        _ => a + rng.below(b - a),
    };
    Pos { y: 0, ..Pos::ground(along(ground.x0, ground.x1), along(ground.z0, ground.z1)) }
}

fn sight(rng: &mut Rng, plan: &Plan) -> Sight {
    Sight { reach: reach(rng, plan), kinds: kinds(rng) }
}

fn reach(rng: &mut Rng, plan: &Plan) -> Option<Reach> {
    let reach = rng.below(3) == 0;
    reach.then(|| plan.reaches[rng.below(plan.reaches.len() as i32) as usize])
}

fn kinds(rng: &mut Rng) -> Option<KindSet> {
    match rng.below(6) {
        0 => Some(KindSet::NONE),
        1 => Some(KindSet::ALL),
        2 => Some(KindSet::NONE.with(0).with(200)),
        _ => None,
    }
}

const KINDS: [u8; 3] = [0, 1, 200];

fn request(rng: &mut Rng, plan: &Plan, model: &Model) -> Request {
    let id = rng.below(plan.people as i32) as u64 * 1_000_003;
    let kind = KINDS[rng.below(3) as usize];
    let plane = [0, 0, 0, -1][rng.below(4) as usize];
    let height = rng.below(3) * 100;
    let Some((_, entity)) = model.entities.get(&id) else {
        let pos = Pos { y: height, ..place(rng, plan.rules.ground) };
        return Request::Create(Entity { id, kind, plane, pos, sight: sight(rng, plan) });
    };
    let mut step = || rng.below(2 * plan.step + 1) - plan.step;
    let (x, z) = (entity.pos.x + step(), entity.pos.z + step());
    let pos = Pos { x, y: entity.pos.y, z };
    if rng.below(1_000) >= plan.wild {
        return Request::Move { id, pos };
    }
    match rng.below(11) {
        0 | 1 => Request::Move { id, pos: Pos { y: height, ..place(rng, plan.rules.ground) } },
        2 | 3 => Request::Delete(id),
        4 => Request::SetKind { id, kind },
        5 => Request::SetPlane { id, plane },
        6 => Request::SetReach { id, reach: reach(rng, plan) },
        7 => Request::SetKinds { id, kinds: kinds(rng) },
        8 | 9 => Request::SetBond { id, strength: rng.below(5) as u8, group: rng.below(4) as u64 },
        _ => Request::Create(Entity { id, kind, plane, pos, sight: Sight::default() }),
    }
}

/// Runs a history; returns the number of events.
fn history(plan: &Plan, seed: u64, ticks: usize) -> usize {
    let mut rng = Rng(seed);
    // Threads cost most of the time, and find no more than the order of their parts does.
    let last: Arc<dyn Workers> =
        if seed.is_multiple_of(10) { Arc::new(Scoped(3)) } else { Arc::new(Backwards(2)) };
    let workers: [Arc<dyn Workers>; 3] = [Arc::new(OneThread), Arc::new(Backwards(3)), last];
    let worlds = workers.map(|workers| {
        let mut world = World::new(plan.rules.clone()).unwrap();
        world.set_workers(workers);
        world
    });
    let (mut worlds, mut events) = (worlds, 0);
    let (mut model, mut client) = (Model::new(plan.rules.clone()), Client::default());
    for tick in 0..ticks {
        let mut batch = Vec::new();
        let mut refused = Vec::new();
        for item in 0..rng.below(plan.requests + 1) as usize {
            let request = request(&mut rng, plan, &model);
            if !model.request(&request) {
                refused.push((item, request.id()));
            }
            batch.push(request);
        }
        let expected = model.tick();
        events += expected.len();
        for world in &mut worlds {
            let answer = world.request_all(&batch);
            let answer: Vec<_> = answer.iter().map(|(item, why)| (*item, why.id())).collect();
            assert_eq!(answer, refused, "{plan:?} seed {seed} tick {tick}");
            bounds::refuse(world, seed + tick as u64, &expected);
            assert_eq!(world.tick(), expected, "{plan:?} seed {seed} tick {tick}");
            assert_eq!(world.pairs(), model.pairs.len() + model.listed.len());
            assert_eq!(world.len(), model.entities.len(), "{plan:?} seed {seed} tick {tick}");
        }
        for (id, (_, entity)) in &model.entities {
            assert_eq!(worlds[0].get(*id), Some(*entity), "{plan:?} seed {seed} tick {tick}");
            let bonds = model.bonds.get(id).copied().unwrap_or_default();
            assert_eq!(worlds[0].bonds(*id), bonds, "{plan:?} seed {seed} tick {tick}");
        }
        if (seed + tick as u64).is_multiple_of(5) {
            query::compare(&worlds[(seed % 3) as usize], &model);
        }
        assert_eq!(worlds[0].positions(), worlds[1].positions());
        client.hear(worlds[0].positions(), &model);
    }
    events
}

/// Histories of small crowds with every kind of request, and of larger ones that mostly walk.
fn histories(plan: &Plan, seeds: u64) {
    let mut events = 0;
    for seed in 0..seeds {
        events += history(plan, seed, 30);
    }
    let walk = Plan { people: 80, requests: 160, wild: 20, step: plan.step / 8, ..plan.clone() };
    for seed in 0..seeds / 20 {
        events += history(&walk, 1_000_000 + seed, 50);
    }
    assert!(events as u64 > 30 * seeds, "only {events} events in {plan:?}");
}

/// An entity of kind 0 of plane 0.
fn entity(id: u64, x: i32) -> Entity {
    Entity { id, kind: 0, plane: 0, pos: Pos::ground(x, 600), sight: Sight::default() }
}

const GROUND: Rect = Rect { x0: -1_000, z0: 500, x1: 3_001, z1: 4_100 };

fn plan(mode: Mode, reaches: &[Reach], pairs: Vec<PairRule>) -> Plan {
    let reach = reaches.first().copied();
    Plan {
        rules: Rules { ground: GROUND, mode, reach, pairs, cap: None, positions: true },
        people: 14,
        step: 120,
        requests: 25,
        wild: 500,
        reaches: reaches.to_vec(),
    }
}

/// Kind 200 sees nothing, kind 1 only kind 0, and 0 sees 1 within a reach of its own.
fn pairs(own: Reach) -> Vec<PairRule> {
    let rule = |observer, subject, reach| PairRule { observer, subject, reach };
    let blind = KINDS.map(|subject| rule(200, subject, None));
    let mut pairs = vec![rule(1, 1, None), rule(1, 200, None), rule(0, 1, Some(own))];
    pairs.extend(blind);
    pairs
}

#[test]
fn patches_3_x_3() {
    let rings = Reach::Rings(RangeSet::NEAR.or(RangeSet::MIDDLE));
    histories(&plan(Mode::Patches { patch_cm: 400 }, &[rings], Vec::new()), 400);
}

#[test]
fn patches_5_x_5() {
    let rings = Reach::Rings(RangeSet::FULL);
    histories(&plan(Mode::Patches { patch_cm: 317 }, &[rings], Vec::new()), 400);
}

#[test]
fn any_union_of_rings_per_pair_of_kinds() {
    let all: Vec<_> = (0..8).rev().filter_map(RangeSet::from_bits).map(Reach::Rings).collect();
    let pairs = pairs(Reach::Rings(RangeSet::MIDDLE));
    histories(&plan(Mode::Patches { patch_cm: 400 }, &all, pairs), 400);
}

#[test]
fn circles_of_one_size() {
    let circle = Reach::Circle(Radii::new(700, 800));
    histories(&plan(Mode::Circle, &[circle], Vec::new()), 400);
}

#[test]
fn circles_per_pair_of_kinds() {
    let circles = [(700, 800), (1, 2), (2_000, 3_000), (300, 301)];
    let circles = circles.map(|(enter, leave)| Reach::Circle(Radii::new(enter, leave)));
    histories(&plan(Mode::Circle, &circles, pairs(circles[3])), 400);
}

#[test]
fn circles_with_a_height_limit() {
    let circle = |height_cm| Reach::Circle(Radii { height_cm, ..Radii::new(700, 750) });
    let circles = [circle(Some(100)), circle(None), circle(Some(0))];
    histories(&plan(Mode::Circle, &circles, pairs(circles[1])), 400);
}

#[test]
fn circles_that_are_larger_than_short_numbers() {
    let circles = [(30_000, 40_000), (60_000, 90_000)];
    let circles = circles.map(|(enter, leave)| Reach::Circle(Radii::new(enter, leave)));
    let mut plan = plan(Mode::Circle, &circles, pairs(circles[1]));
    plan.rules.ground = Rect { x0: 0, z0: 0, x1: 200_000, z1: 100_000 };
    plan.step = 900;
    histories(&plan, 100);
}

#[test]
fn whole_planes() {
    histories(&plan(Mode::All, &[Reach::All], pairs(Reach::All)), 400);
}

//! The game's logic inside the tick: what it is told, what its commands do, and what entities watch, against brute
//! force.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use purview::scene::messages::{
    CommandError, EnterCause, EntityAction, LeaveCause, LogicEvent, NamedBond, Order, Recipients,
    Refusal, Speaker,
};
use purview::scene::properties::{Properties, PropertyId, PropertyRefusal, PropertySpec, Value};
use purview::scene::region::{Commands, GameLogic};
use purview::scene::spec::{KindSpec, WatchSpec};
use purview::scene::{
    EntityId, Kind, Plane, Pos, RangeSet, Region, RegionId, SceneId, SceneSpec, Visibility,
};

use crate::support::Rng;
use crate::support::commands::order_of;
use crate::support::seeds;
use crate::support::trial::scene;
use crate::support::world::World;

pub const MONSTER: Kind = Kind(1);
pub const HP: PropertyId = PropertyId(1);
/// The radii in which monsters watch, centimetres.
const ENTER: i32 = 700;
const LEAVE: i32 = 900;

/// The radii in which monsters watch each other.
const PACK: (i32, i32) = (300, 450);

pub type Events = Arc<Mutex<Vec<(RegionId, LogicEvent)>>>;
pub type Act = Box<dyn FnMut(&Region, &[LogicEvent], &mut Commands) + Send + Sync>;

/// Notes every event, and does what a test wants.
struct Logic {
    events: Events,
    act: Act,
}

impl GameLogic for Logic {
    fn tick(&mut self, region: &Region, events: &[LogicEvent], commands: &mut Commands) {
        let mut noted = self.events.lock().unwrap();
        noted.extend(events.iter().map(|event| (region.id(), event.clone())));
        drop(noted);
        (self.act)(region, events, commands);
    }
}

pub fn spec() -> SceneSpec {
    let mut spec = scene(Visibility::Circle { enter_cm: 800, leave_cm: 900 }, 50);
    let mut monster = KindSpec::new("monster", 0);
    monster.properties = vec![PropertySpec::new(1, "hp")];
    monster.watch = vec![WatchSpec { kinds: vec![0], enter_cm: ENTER, leave_cm: LEAVE }];
    spec.kinds = vec![KindSpec::new("player", 0), monster];
    spec
}

/// A world whose regions have logic; each region's does `act`.
pub fn world(spec: SceneSpec, seed: u64, act: impl Fn() -> Act) -> (World, Events) {
    let mut w = World::new(spec, seed);
    let events = Events::default();
    w.set_logic(|_| Box::new(Logic { events: events.clone(), act: act() }));
    (w, events)
}

fn nothing() -> Act {
    Box::new(|_, _, _| {})
}

/// Takes all events so far.
pub fn take(events: &Events) -> Vec<(RegionId, LogicEvent)> {
    std::mem::take(&mut events.lock().unwrap())
}

pub fn region_of(w: &World, id: EntityId) -> RegionId {
    w.home_id(id).expect("it lives somewhere")
}

fn order(w: &mut World, id: EntityId, order: Order) {
    let region = region_of(w, id);
    w.tell(region, order_of(id, order));
}

/// A random place of the scene.
pub fn somewhere(w: &World, rng: &mut Rng) -> Pos {
    let (width, depth) = (w.scene.spec.width_cm as usize, w.scene.spec.depth_cm as usize);
    Pos::ground(rng.below(width) as i32, rng.below(depth) as i32)
}

/// Each entity goes by less than `most` along each axis, within the scene, and the tick passes.
pub fn wander(w: &mut World, rng: &mut Rng, places: &mut BTreeMap<EntityId, Pos>, most: i32) {
    let (width, depth) = (w.scene.spec.width_cm, w.scene.spec.depth_cm);
    for (id, at) in places {
        let mut step = |c: i32, side: i32| (c + rng.range(-most, most)).clamp(0, side - 1);
        *at = Pos::ground(step(at.x, width), step(at.z, depth));
        w.order_by_logic(*id, Order::Move(*at));
    }
    w.step();
}

#[test]
fn logic_is_told_of_all_that_comes_acts_and_goes() {
    let (mut w, events) = world(spec(), 1, nothing);
    w.step();
    let started = take(&events);
    assert_eq!(started.len(), w.regions.len());
    assert!(started.iter().all(|(_, e)| matches!(e, LogicEvent::Started { .. })));
    let (session, id) = w.player(200, 200);
    let monster = w.spawn(MONSTER, Plane(0), Pos::ground(2_000, 200), RangeSet::FULL, None);
    w.steps(2);
    let here = RegionId(0);
    let entered = |id, cause| (here, LogicEvent::Entered { id, cause });
    assert_eq!(
        take(&events),
        [entered(id, EnterCause::Joined), entered(monster, EnterCause::Spawned)]
    );
    w.order(session, Order::Act(EntityAction::new(&b"hit"[..])));
    w.step();
    let acted = LogicEvent::Acted {
        id,
        by: Speaker::Client,
        payload: bytes::Bytes::from_static(b"hit"),
        aim: None,
    };
    assert_eq!(take(&events), [(here, acted)], "in the same tick");
    w.leave(session);
    w.steps(3);
    let place = (Plane(0), Pos::ground(200, 200));
    let left = LogicEvent::Left { id, kind: Kind::PLAYER, place, cause: LeaveCause::Left };
    assert_eq!(take(&events), [(here, left)]);
}

#[test]
fn a_property_that_answers_an_action_is_seen_in_the_same_tick() {
    let answer = || -> Act {
        Box::new(|region, events, commands| {
            for event in events {
                if let LogicEvent::Acted { .. } = event {
                    let at = Pos::ground(250, 250);
                    let monsters = region.within(Plane(0), MONSTER, at, 500);
                    monsters.iter().for_each(|m| {
                        commands.set(m.id, HP, Value::of(&7).unwrap());
                    });
                }
            }
        })
    };
    let (mut w, _) = world(spec(), 1, answer);
    let (session, _) = w.player(200, 200);
    let monster = w.spawn(MONSTER, Plane(0), Pos::ground(300, 300), RangeSet::FULL, None);
    w.steps(3);
    assert_eq!(w.clients[&session].told.value(monster, HP.0), None);
    w.order(session, Order::Act(EntityAction::new(&b"hit"[..])));
    w.step();
    assert_eq!(w.clients[&session].told.value(monster, HP.0), Some(&Value::of(&7).unwrap()));
}

#[test]
fn what_logic_creates_is_shown_and_what_it_removes_is_not() {
    let once = || -> Act {
        let mut made = None;
        Box::new(move |region, events, commands| {
            let joined = events
                .iter()
                .any(|e| matches!(e, LogicEvent::Entered { cause: EnterCause::Joined, .. }));
            if joined {
                let at = Pos::ground(260, 260);
                made = Some(commands.spawn(MONSTER, Plane(0), at, Properties::default()));
            } else if let Some(id) = made
                && events.iter().any(|e| matches!(e, LogicEvent::Acted { .. }))
            {
                assert!(region.find(id).is_some());
                commands.despawn(id);
            }
        })
    };
    let (mut w, events) = world(spec(), 1, once);
    let (session, _) = w.player(200, 200);
    w.steps(3);
    let id = EntityId(1_000_001);
    assert!(w.clients[&session].shown.contains_key(&id));
    let told = take(&events);
    let spawned = LogicEvent::Entered { id, cause: EnterCause::Spawned };
    assert!(told.contains(&(RegionId(0), spawned)), "{told:?}");
    w.order(session, Order::Act(EntityAction::new(&b"go"[..])));
    w.steps(2);
    assert!(!w.clients[&session].shown.contains_key(&id));
    let told = take(&events);
    let causes = told.iter().filter_map(|(_, e)| match e {
        LogicEvent::Left { id: left, cause, .. } if *left == id => Some(*cause),
        _ => None,
    });
    assert_eq!(causes.collect::<Vec<_>>(), [LeaveCause::Despawned]);
}

#[test]
fn a_command_that_is_not_legal_comes_back_with_its_number_and_the_rest_is_done() {
    let wrong = || -> Act {
        let mut tick = 0;
        Box::new(move |_, _, commands| {
            tick += 1;
            if tick != 3 {
                return;
            }
            let value = Value::of(&1).unwrap();
            let first = commands.set(EntityId(77), HP, value.clone());
            assert_eq!(commands.set(EntityId(1), PropertyId(9), value), first + 1);
            commands.place(EntityId(1), Pos::ground(-5, 3));
            commands.spawn(Kind(9), Plane(0), Pos::ground(1, 1), Properties::default());
            commands.spawn(MONSTER, Plane(0), Pos::ground(-1, 1), Properties::default());
            let wide = WatchSpec { kinds: vec![0], enter_cm: 100, leave_cm: LEAVE + 1 };
            commands.watch(EntityId(2), vec![wide.clone()]);
            commands.watch(EntityId(2), vec![wide.clone(), wide]);
            commands.watch(EntityId(1), Vec::new());
            commands.tell(EntityId(2), &b"psst"[..]);
            commands.tell(EntityId(1), vec![0; 1_025]);
            commands.bonds(EntityId(1), vec![NamedBond::new("couple", 1); 9]);
            commands.kick(EntityId(2));
            commands.set_door(Plane(0), "gate", true);
            commands.reset_plane(Plane::LIMBO);
            commands.announce(Recipients::Scene(SceneId(3)), &b"hear"[..]);
            commands.place(EntityId(1), Pos::ground(240, 240));
        })
    };
    let (mut w, events) =
        world(SceneSpec { region_lands_x: 8, region_lands_z: 8, ..spec() }, 1, wrong);
    w.regions.truncate(1);
    let (_, id) = w.player(200, 200);
    let monster = w.spawn(MONSTER, Plane(0), Pos::ground(300, 300), RangeSet::FULL, None);
    assert_eq!((id, monster), (EntityId(1), EntityId(2)));
    w.steps(30);
    let mut refused: Vec<_> = take(&events)
        .into_iter()
        .filter_map(|(_, event)| match event {
            LogicEvent::Refused { command, why, .. } => Some((command & 0xf_ffff, why)),
            _ => None,
        })
        .collect();
    // The entity that nobody knows was searched first.
    refused.sort_by_key(|(command, _)| *command);
    let property = Refusal::Property(PropertyRefusal::Unknown(PropertyId(9)));
    let want = [
        (0, CommandError::Unknown(EntityId(77))),
        (1, CommandError::Order(property)),
        (2, CommandError::Order(Refusal::OutOfBounds)),
        (3, CommandError::UnknownKind(Kind(9))),
        (4, CommandError::OutOfBounds),
        (5, CommandError::WatchRadius { most_cm: LEAVE }),
        (6, CommandError::WatchedTwice(Kind::PLAYER)),
        (7, CommandError::WatchesNot(EntityId(1))),
        (8, CommandError::NoPlayer(EntityId(2))),
        (9, CommandError::TooLong(1_025)),
        (10, CommandError::TooManyBonds(9)),
        (11, CommandError::NoPlayer(EntityId(2))),
        (12, CommandError::NoDoor),
        (13, CommandError::OutOfBounds),
        (14, CommandError::OutOfBounds),
    ];
    assert_eq!(refused, want);
    assert_eq!(w.regions[0].find(id).unwrap().pos, Pos::ground(240, 240));
}

/// What each monster has in its radius, by the rule.
#[derive(Default)]
struct BruteForce {
    places: BTreeMap<EntityId, (Plane, Pos)>,
    height_cm: Option<i32>,
    sighted: BTreeMap<EntityId, BTreeSet<EntityId>>,
}

impl BruteForce {
    fn tick(&mut self, monsters: &[EntityId]) {
        let square = |cm: i32| (i64::from(cm) * i64::from(cm)) as u64;
        for monster in monsters {
            let me = self.places[monster];
            let before = self.sighted.entry(*monster).or_default();
            let now = self.places.keys().filter(|other| {
                let (enter, leave) = if monsters.contains(other) { PACK } else { (ENTER, LEAVE) };
                let known = before.contains(other);
                let is_other = *other != monster;
                let other = self.places[other];
                let d2 = me.1.dist2(other.1);
                let within = d2 <= square(enter) || (d2 <= square(leave) && known);
                let most = self.height_cm.map(|cm| if known { cm + cm / 8 } else { cm });
                let level = most.is_none_or(|most| (me.1.y - other.1.y).abs() <= most);
                is_other && me.0 == other.0 && within && level
            });
            *before = now.copied().collect();
        }
    }
}

/// Walks everybody about for some ticks, and compares what monsters have in their radii with brute force.
fn watch_for(seed: u64, ticks: usize, height_cm: Option<i32>) -> (usize, u64) {
    let mut spec = SceneSpec { height_cm, ..spec() };
    let pack = WatchSpec { kinds: vec![MONSTER.0], enter_cm: PACK.0, leave_cm: PACK.1 };
    spec.kinds[usize::from(MONSTER.0)].watch.push(pack);
    let (mut w, events) = world(spec, seed, nothing);
    let mut rng = Rng::new(seed);
    let (width, depth) = (w.scene.spec.width_cm, w.scene.spec.depth_cm);
    let mut brute = BruteForce { height_cm, ..BruteForce::default() };
    let mut monsters = Vec::new();
    for n in 0..30 {
        let (plane, pos) = (Plane(0), somewhere(&w, &mut rng));
        let id = if n % 3 == 0 {
            let id = w.spawn(MONSTER, plane, pos, RangeSet::FULL, None);
            monsters.push(id);
            id
        } else {
            let session = w.join(plane, pos, RangeSet::FULL);
            w.clients[&session].entity
        };
        brute.places.insert(id, (plane, pos));
    }
    // Regions that have just begun know no ghosts of their first tick.
    w.steps(2);
    brute.tick(&monsters);
    let all: Vec<EntityId> = brute.places.keys().copied().collect();
    for tick in 0..ticks {
        for id in &all {
            let (plane, at) = brute.places[id];
            let step = |rng: &mut Rng| rng.below(300) as i32 - 150;
            let pos = Pos {
                x: (at.x + step(&mut rng)).clamp(0, width - 1),
                y: height_cm.map_or(0, |_| at.y + step(&mut rng)),
                z: (at.z + step(&mut rng)).clamp(0, depth - 1),
            };
            brute.places.insert(*id, (plane, pos));
            order(&mut w, *id, Order::Move(pos));
        }
        w.step();
        brute.tick(&monsters);
        for monster in &monsters {
            let region = &w.regions[region_of(&w, *monster).0 as usize];
            let seen: BTreeSet<_> = region.sighted_by(*monster).iter().copied().collect();
            assert_eq!(seen, brute.sighted[monster], "seed {seed}, tick {tick}, {monster}");
        }
    }
    // What was told adds up to the same: nothing twice, nothing missing. What is new in the last tick is told in
    // the next one.
    w.step();
    let mut told: BTreeMap<EntityId, BTreeSet<EntityId>> = BTreeMap::new();
    let all = take(&events);
    for (_, event) in &all {
        match event {
            LogicEvent::Sighted { watcher, id } => {
                assert!(told.entry(*watcher).or_default().insert(*id), "{event:?} twice");
            }
            LogicEvent::Lost { watcher, id } => {
                assert!(told.entry(*watcher).or_default().remove(id), "{event:?} of nothing");
            }
            _ => {}
        }
    }
    told.retain(|_, seen| !seen.is_empty());
    let mut want = brute.sighted.clone();
    want.retain(|_, seen| !seen.is_empty());
    assert_eq!(told, want, "seed {seed}");
    let sights = all.iter().filter(|(_, e)| matches!(e, LogicEvent::Sighted { .. })).count();
    (sights, w.handoffs)
}

#[test]
fn what_is_sighted_and_lost_is_what_brute_force_finds_across_borders_and_handoffs() {
    for height_cm in [None, Some(300)] {
        let (mut sights, mut handoffs) = (0, 0);
        for seed in seeds(12) {
            let (s, h) = watch_for(seed, 60, height_cm);
            (sights, handoffs) = (sights + s, handoffs + h);
        }
        assert!(sights > 100 && handoffs > 50, "{sights} {handoffs}");
    }
}

#[test]
fn an_entity_that_goes_to_another_region_leaves_one_logic_and_enters_the_other() {
    let (mut w, events) = world(spec(), 3, nothing);
    let monster = w.spawn(MONSTER, Plane(0), Pos::ground(100, 100), RangeSet::FULL, None);
    w.step();
    let start = region_of(&w, monster);
    let far = Pos::ground(w.scene.spec.width_cm - 100, 100);
    order(&mut w, monster, Order::Move(far));
    w.steps(4);
    let to = w.owner_of(SceneId(0), Plane(0), far);
    assert_ne!(start, to);
    let mut left_in = None;
    let told: Vec<_> = take(&events)
        .into_iter()
        .filter_map(|(region, event)| match event {
            LogicEvent::Entered { id, cause } if id == monster => {
                if let EnterCause::HandedOff(_, left) = cause {
                    left_in = Some(left);
                }
                Some((region, format!("{cause:?}")))
            }
            LogicEvent::Left { id, cause, .. } if id == monster => {
                Some((region, format!("{cause:?}")))
            }
            _ => None,
        })
        .collect();
    // Each region's logic is told in order; of two regions in one tick either may be called first.
    let of = |region: RegionId| {
        told.iter().filter(|(r, _)| *r == region).map(|(_, what)| what.clone()).collect::<Vec<_>>()
    };
    assert_eq!(of(start), ["Spawned".to_string(), format!("{:?}", LeaveCause::HandedOff(to))]);
    let left = left_in.expect("it says when it left");
    assert_eq!(of(to), [format!("{:?}", EnterCause::HandedOff(start, left))]);
    assert!(left < w.tick && left.0 + 5 >= w.tick.0, "it left in one of these ticks: {left:?}");
    assert_eq!(told.len(), 3);
}

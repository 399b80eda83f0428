//! The rules of the example game, played by players who hit and take at random across borders: gold is conserved, each
//! drop is taken once, and monsters that are dead bite nobody.

#[path = "../../examples/hunt/rules.rs"]
mod rules;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use purview::actor::logic::LogicFactory;
use purview::scene::messages::{EntityAction, LeaveCause, LogicEvent, Order};
use purview::scene::properties::{Properties, PropertyId, PropertySpec};
use purview::scene::region::{Commands, GameLogic};
use purview::scene::spec::{KindSpec, WatchSpec};
use purview::scene::{
    EntityId, Kind, Plane, Pos, RangeSet, Region, SceneSpec, SessionId, Visibility,
};

use self::rules::{DROP, DUNGEONS, GOLD, HP, Hunt, LAIR, MINTED, MONSTER, PLAYER, TAKEN, TAKER};
use crate::support::Rng;
use crate::support::seeds;
use crate::support::trial::scene;
use crate::support::world::World;

type Seen = Arc<Mutex<Vec<LogicEvent>>>;

/// The game, and all that it is told.
struct Watched(Box<dyn GameLogic>, Seen);

impl GameLogic for Watched {
    fn tick(&mut self, region: &Region, events: &[LogicEvent], commands: &mut Commands) {
        self.1.lock().unwrap().extend(events.iter().cloned());
        self.0.tick(region, events, commands);
    }
}

fn spec() -> SceneSpec {
    let mut spec = scene(Visibility::Circle { enter_cm: 2_000, leave_cm: 2_400 }, 50);
    let kind = |name: &str, properties: &[PropertyId]| {
        let mut kind = KindSpec::new(name, 0);
        kind.properties =
            properties.iter().map(|id| PropertySpec::new(id.0, format!("p{id}"))).collect();
        kind.properties.iter_mut().for_each(|property| property.max_bytes = 1_024);
        kind
    };
    let mut monster = kind("monster", &[HP, GOLD]);
    monster.watch = Some(WatchSpec { kinds: vec![0], enter_cm: 2_000, leave_cm: 2_400 });
    let player = kind("player", &[HP, GOLD, TAKEN]);
    spec.kinds = vec![player, monster, kind("drop", &[GOLD, TAKER]), kind("lair", &[MINTED])];
    spec.land_cm = 3_200;
    (spec.width_cm, spec.depth_cm) = (12_800, 12_800);
    spec
}

/// An entity, as the region has it where it lives.
struct Entity {
    id: EntityId,
    plane: Plane,
    pos: Pos,
    properties: Properties,
}

/// The entities of a kind, each where it lives or is about to.
fn all(w: &World, kind: Kind) -> Vec<Entity> {
    let here = |r: &Region| -> Vec<Entity> {
        let ours = r.lives_here(kind).chain(r.arriving().filter(|e| e.kind == kind));
        ours.map(|e| Entity {
            id: e.id,
            plane: e.plane,
            pos: e.pos,
            properties: e.properties.clone(),
        })
        .collect()
    };
    w.regions.iter().flat_map(here).collect()
}

/// The drops that a player has taken of late.
fn taken(e: &Entity) -> Vec<u64> {
    e.properties.read::<Vec<(u64, u64)>>(TAKEN).into_iter().map(|(drop, _)| drop).collect()
}

/// All gold, and all that lairs have given out. A drop that a player has is gold no more.
fn gold(w: &World) -> (i64, i64) {
    let sum = |list: &[Entity], id| list.iter().map(|e| e.properties.read::<i64>(id)).sum();
    let players = all(w, PLAYER);
    let taken: BTreeSet<u64> = players.iter().flat_map(taken).collect();
    let drops: Vec<_> = all(w, DROP).into_iter().filter(|e| !taken.contains(&e.id.0)).collect();
    let gold = [&players, &all(w, MONSTER), &drops].map(|list| sum(list, GOLD)).iter().sum();
    (gold, sum(&all(w, LAIR), MINTED))
}

fn act(text: impl Into<String>) -> Order {
    Order::Act(EntityAction::new(text.into().into_bytes()))
}

/// A world whose regions play.
fn game(seed: u64) -> (World, Seen) {
    let mut w = World::new(spec(), seed);
    let seen = Seen::default();
    for (n, region) in w.regions.iter_mut().enumerate() {
        let mut next = (n as u64 + 1) * 1_000_000;
        let ids = move || {
            next += 1;
            Some(EntityId(next))
        };
        let hunt = Hunt::default().make(&w.scene, region.id()).unwrap();
        region.set_logic(Box::new(Watched(hunt, seen.clone())), Box::new(ids));
    }
    (w, seen)
}

/// The entities that the logic has removed.
fn despawned(seen: &Seen, kind: Kind) -> Vec<EntityId> {
    let events = seen.lock().unwrap();
    let gone = events.iter().filter_map(|e| match e {
        LogicEvent::Left { id, kind: of, cause: LeaveCause::Despawned, .. } if *of == kind => {
            Some(*id)
        }
        _ => None,
    });
    gone.collect()
}

/// Plays for some ticks: how many drops were taken, and how often a player was hurt.
fn play(seed: u64, ticks: usize) -> (usize, usize) {
    let (mut w, seen) = game(seed);
    let mut rng = Rng::new(seed);
    let middle = |rng: &mut Rng| {
        Pos::ground(6_400 + rng.below(800) as i32 - 400, 6_400 + rng.below(800) as i32 - 400)
    };
    let players: Vec<SessionId> =
        (0..8).map(|_| w.join(Plane(0), middle(&mut rng), RangeSet::FULL)).collect();
    // Each region has a lair by now, and the lair its monsters.
    (0..110).for_each(|_| w.step());
    for tick in 0..ticks {
        let (monsters, drops) = (all(&w, MONSTER), all(&w, DROP));
        for session in &players {
            let me = w.truth[&w.clients[session].entity].pos;
            let near = |list: &[Entity]| {
                let near = list.iter().map(|e| (me.dist2(e.pos), e.id, e.pos));
                near.min_by_key(|(d2, id, _)| (*d2, *id))
            };
            // Runs to the nearest drop or monster; several reach for the same one.
            let goal = near(&drops).or(near(&monsters)).map_or(me, |(_, _, pos)| pos);
            let towards = |from: i32, to: i32| from + (to - from).clamp(-100, 100);
            let pos = Pos::ground(towards(me.x, goal.x), towards(me.z, goal.z));
            w.walk(*session, pos);
            if let Some((_, id, _)) = near(&monsters) {
                w.order(*session, act(format!("hit {id}")));
            }
            if let Some((_, id, _)) = near(&drops).filter(|_| tick % 2 == 0) {
                w.order(*session, act(format!("take {id}")));
            }
        }
        w.step();
        let (gold, minted) = gold(&w);
        assert_eq!(gold, minted, "seed {seed}, tick {tick}");
    }
    let taken = despawned(&seen, DROP);
    assert_eq!(taken.iter().collect::<BTreeSet<_>>().len(), taken.len(), "a drop was taken twice");
    let dead: BTreeSet<EntityId> = despawned(&seen, MONSTER).into_iter().collect();
    let hp = |e: &Entity| e.properties.read::<i64>(HP);
    assert!(all(&w, MONSTER).iter().all(|e| hp(e) > 0 && !dead.contains(&e.id)), "seed {seed}");
    (taken.len(), all(&w, PLAYER).iter().filter(|e| hp(e) < rules::PLAYER_HP).count())
}

#[test]
fn gold_is_conserved_in_every_tick_and_each_drop_is_taken_once() {
    let (mut taken, mut hurt) = (0, 0);
    for seed in seeds(6) {
        let (t, h) = play(seed, 150);
        (taken, hurt) = (taken + t, hurt + h);
    }
    assert!(taken > 30 && hurt > 10, "{taken} {hurt}");
}

#[test]
fn a_party_talks_and_fights_in_a_dungeon_of_its_own_which_ends_when_it_has_left() {
    let (mut w, _) = game(1);
    let at = |x| Pos::ground(1_000 + x, 1_000);
    let sessions = [0, 100, 200].map(|x| w.join(Plane(0), at(x), RangeSet::FULL));
    let [ann, bob, eve] = sessions;
    (0..110).for_each(|_| w.step());
    let steps = |w: &mut World, n| (0..n).for_each(|_| w.step());
    for (session, group) in [(ann, 7), (bob, 7), (eve, 8)] {
        w.order(session, act(format!("party {group}")));
    }
    steps(&mut w, 2);
    w.order(ann, act("say hello"));
    steps(&mut w, 4);
    let said = |w: &World, session| {
        w.clients[&session].told.messages.iter().map(|m| m.payload.to_vec()).collect::<Vec<_>>()
    };
    assert_eq!(said(&w, ann), [b"hello"]);
    assert_eq!(said(&w, bob), [b"hello"]);
    assert_eq!(said(&w, eve).len(), 0);
    w.order(ann, act("enter"));
    w.order(bob, act("enter"));
    steps(&mut w, 4);
    let plane = Plane(DUNGEONS + 7);
    let in_dungeon = |w: &World, kind| all(w, kind).iter().filter(|e| e.plane == plane).count();
    assert_eq!((in_dungeon(&w, PLAYER), in_dungeon(&w, MONSTER)), (2, 5));
    let shown = |w: &World, session, of| w.clients[&session].shown.contains_key(&of);
    let id = |w: &World, session| w.clients[&session].entity;
    assert!(shown(&w, ann, id(&w, bob)) && !shown(&w, eve, id(&w, bob)));
    for session in [ann, bob] {
        w.order(session, act("leave"));
    }
    steps(&mut w, 110);
    assert_eq!((in_dungeon(&w, PLAYER), in_dungeon(&w, MONSTER)), (0, 0));
    assert!(shown(&w, eve, id(&w, bob)));
    let (gold, minted) = gold(&w);
    assert_eq!(gold, minted);
}

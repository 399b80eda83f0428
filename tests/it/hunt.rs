//! The rules of the example game: a party talks, and fights in a dungeon of its own. That gold is conserved and drops are
//! taken once is for the simulator (`cluster/lab/tests/it/sim_game.rs`).

#[path = "../../examples/hunt/rules.rs"]
mod rules;

use std::collections::BTreeSet;

use purview::actor::logic::LogicFactory;
use purview::scene::messages::{EntityAction, Order};
use purview::scene::properties::{Properties, PropertyId, PropertySpec};
use purview::scene::spec::{KindSpec, WatchSpec};
use purview::scene::{EntityId, Kind, Plane, Pos, RangeSet, Region, SceneSpec, Visibility};

use self::rules::{DROP, DUNGEONS, GOLD, HP, Hunt, LAIR, MINTED, MONSTER, PLAYER, TAKEN, TAKER};
use crate::support::trial::scene;
use crate::support::world::World;

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
    monster.watch = vec![WatchSpec { kinds: vec![0], enter_cm: 2_000, leave_cm: 2_400 }];
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
    properties: Properties,
}

/// The entities of a kind, each where it lives or is about to.
fn all(w: &World, kind: Kind) -> Vec<Entity> {
    let here = |r: &Region| -> Vec<Entity> {
        let ours = r.lives_here(kind).chain(r.arriving().filter(|e| e.kind == kind));
        ours.map(|e| Entity { id: e.id, plane: e.plane, properties: e.properties.clone() })
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
fn game(seed: u64) -> World {
    let mut w = World::new(spec(), seed);
    let scene = w.scene.clone();
    w.set_logic(|region| Hunt::default().make(&scene, region).unwrap());
    w
}

#[test]
fn a_party_talks_and_fights_in_a_dungeon_of_its_own_which_ends_when_it_has_left() {
    let mut w = game(1);
    let at = |x| Pos::ground(1_000 + x, 1_000);
    let sessions = [0, 100, 200].map(|x| w.join(Plane(0), at(x), RangeSet::FULL));
    let [ann, bob, eve] = sessions;
    w.steps(110);
    for (session, group) in [(ann, 7), (bob, 7), (eve, 8)] {
        w.order(session, act(format!("party {group}")));
    }
    w.steps(2);
    w.order(ann, act("say hello"));
    w.steps(4);
    let said = |w: &World, session| {
        w.clients[&session].told.messages.iter().map(|m| m.payload.to_vec()).collect::<Vec<_>>()
    };
    assert_eq!(said(&w, ann), [b"hello"]);
    assert_eq!(said(&w, bob), [b"hello"]);
    assert_eq!(said(&w, eve).len(), 0);
    w.order(ann, act("enter"));
    w.order(bob, act("enter"));
    w.steps(4);
    let plane = Plane(DUNGEONS + 7);
    let in_dungeon = |w: &World, kind| all(w, kind).iter().filter(|e| e.plane == plane).count();
    assert_eq!((in_dungeon(&w, PLAYER), in_dungeon(&w, MONSTER)), (2, 5));
    let shown = |w: &World, session, of| w.clients[&session].shown.contains_key(&of);
    let id = |w: &World, session| w.clients[&session].entity;
    assert!(shown(&w, ann, id(&w, bob)) && !shown(&w, eve, id(&w, bob)));
    for session in [ann, bob] {
        w.order(session, act("leave"));
    }
    w.steps(110);
    assert_eq!((in_dungeon(&w, PLAYER), in_dungeon(&w, MONSTER)), (0, 0));
    assert!(shown(&w, eve, id(&w, bob)));
    let (gold, minted) = gold(&w);
    assert_eq!(gold, minted);
}

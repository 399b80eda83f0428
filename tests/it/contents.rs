//! What scenes contain from the start: in every plane as it opens, once, whatever becomes of regions.

use std::collections::BTreeMap;

use purview::scene::contents::ContentSpec;
use purview::scene::messages::{
    Asker, Command, CommandError, CommandId, Input, Order, SetProperty,
};
use purview::scene::properties::{PropertyId, PropertySpec, Value};
use purview::scene::region::RegionSnapshot;
use purview::scene::spec::KindSpec;
use purview::scene::{
    EntityId, Facing, Kind, MAX_CONTENTS, Plane, Pos, RangeSet, RegionId, Scene, SceneId,
    SceneSpec, Tick,
};

use crate::support::alone::recover;
use crate::support::world::World;
use crate::support::{Change, Replay, assert_wrong, seeds, small_scene};

const CHEST: Kind = Kind(1);
const LOOT: PropertyId = PropertyId(1);
const HERE: Plane = Plane(0);

/// The time after which the wolf comes back, ticks.
const BACK: u64 = 20;

/// Regions of 32 m, three by two, with a chest in each, and a wolf and a saved chest in the first.
fn spec() -> SceneSpec {
    let chest =
        KindSpec { properties: vec![PropertySpec::new(1, "loot")], ..KindSpec::new("chest", 0) };
    let at = |name: &str, x, z| ContentSpec {
        facing: Facing::SOUTH,
        properties: vec![(LOOT, Value::of(&5).unwrap())],
        ..ContentSpec::new(name, CHEST, Pos::ground(x, z))
    };
    let respawn_ms = Some(BACK as u32 * 100);
    SceneSpec {
        region_lands_x: 2,
        region_lands_z: 2,
        kinds: vec![KindSpec::new("player", 0), chest],
        contents: vec![
            at("north west", 3_000, 3_000),
            at("north", 3_400, 3_000),
            at("north east", 6_600, 3_000),
            at("south west", 3_000, 3_400),
            at("south", 3_400, 3_400),
            at("south east", 6_600, 3_400),
            ContentSpec { respawn_ms, ..at("wolf", 3_100, 3_000) },
            ContentSpec { save: true, ..at("vault", 2_900, 3_000) },
        ],
        patch_margin_cm: Some(0),
        ..small_scene((6, 4), 1_600, 400)
    }
}

fn ids(w: &World, plane: Plane) -> Vec<EntityId> {
    w.scene.contents().of(plane).map(|(id, _)| id).collect()
}

fn named(w: &World, plane: Plane, name: &str) -> EntityId {
    w.scene.contents().named(plane, name).expect("a content of this name")
}

/// Where contents live, asleep or not: the regions that have each.
fn homes(w: &World) -> BTreeMap<EntityId, Vec<RegionId>> {
    let mut homes: BTreeMap<EntityId, Vec<RegionId>> = BTreeMap::new();
    for region in w.regions.iter().filter(|region| !w.down.contains_key(&region.id())) {
        let contents = region.acting_others().filter(|(id, ..)| id.content().is_some());
        contents.for_each(|(id, ..)| homes.entry(id).or_default().push(region.id()));
    }
    homes
}

fn place_of(w: &World, id: EntityId) -> Option<Pos> {
    w.living(id).map(|entity| entity.pos)
}

/// A call of the game's logic, given to the region where the entity lives, or to the first.
fn call(w: &mut World, command: Command) {
    let at = command.entity().and_then(|id| w.home_id(id)).unwrap_or(RegionId(0));
    let id = CommandId { from: Asker::Process(1), number: w.steps };
    w.tell(at, Input::command(id, command));
}

fn set_loot(w: &mut World, id: EntityId, loot: i64) {
    let set = SetProperty { id: LOOT, value: Value::of(&loot).unwrap() };
    call(w, Command::Order(id, Order::Set(set)));
}

fn loot(w: &World, id: EntityId) -> i64 {
    w.living(id).expect("it lives").properties.read(LOOT)
}

/// A world with a player in the middle, whom all six regions know, and a checkpoint in every tick.
fn opened(seed: u64) -> World {
    let mut w = World::new(spec(), seed);
    w.sessions = true;
    w.kills.checkpoint_every = 1;
    w.join(HERE, Pos::ground(3_190, 3_190), RangeSet::FULL);
    w.join(HERE, Pos::ground(6_390, 3_190), RangeSet::FULL);
    w.steps(5);
    w
}

#[test]
fn every_plane_has_the_same_contents_as_it_opens() {
    let mut w = World::new(spec(), 1);
    w.steps(3);
    assert!(homes(&w).is_empty(), "no plane is open");
    w.join(HERE, Pos::ground(500, 500), RangeSet::FULL);
    w.steps(3);
    // Of the region where the player is, and of no other.
    let in_first = ["north west", "wolf", "vault"].map(|name| named(&w, HERE, name));
    assert!(homes(&w).into_iter().eq(in_first.map(|id| (id, vec![RegionId(0)]))));
    for plane in [HERE, Plane(7), Plane(-3)] {
        w.join(plane, Pos::ground(3_190, 3_190), RangeSet::FULL);
        w.join(plane, Pos::ground(6_390, 3_190), RangeSet::FULL);
    }
    w.steps(4);
    let homes = homes(&w);
    assert_eq!(homes.len(), 3 * 8);
    for plane in [HERE, Plane(7), Plane(-3)] {
        for (id, content) in w.scene.contents().of(plane) {
            assert_eq!(homes[&id].len(), 1, "{id}: {:?}", homes[&id]);
            let entity = w.living(id).unwrap();
            assert_eq!(
                (entity.plane, entity.pos, entity.facing),
                (plane, content.pos, Facing::SOUTH)
            );
            assert_eq!(w.home(id).unwrap().content_name(id), Some(&*content.name));
        }
        let north = w.regions[0].content_named(plane, "north").unwrap();
        assert_eq!(w.home_id(north), Some(RegionId(1)));
    }
    assert_eq!(w.regions[0].content_named(HERE, "nobody"), None);
}

/// A forest needs no program: a hundred trees a side, in two planes.
#[test]
fn ten_thousand_trees_stand_in_every_plane_and_a_player_is_shown_those_around_it() {
    let tree = |n: i32| {
        let at = Pos::ground(50 + n % 100 * 95, 30 + n / 100 * 63);
        ContentSpec::new(format!("tree {n}"), CHEST, at)
    };
    let mut w = World::new(SceneSpec { contents: (0..10_000).map(tree).collect(), ..spec() }, 1);
    w.sessions = true;
    for plane in [HERE, Plane(1)] {
        // Their sight opens all six regions.
        w.join(plane, Pos::ground(3_190, 3_190), RangeSet::FULL);
        w.join(plane, Pos::ground(6_390, 3_190), RangeSet::FULL);
    }
    w.steps(5);
    let homes = homes(&w);
    assert_eq!(homes.len(), 20_000);
    assert!(homes.values().all(|regions| regions.len() == 1), "each lives once");
    let trees = |w: &World| -> Vec<Vec<(EntityId, Pos, Tick)>> {
        let of = |shown: &BTreeMap<EntityId, (Pos, Tick)>| {
            let trees = shown.iter().filter(|(id, _)| id.content().is_some());
            trees.map(|(id, (pos, tick))| (*id, *pos, *tick)).collect()
        };
        w.clients.values().map(|client| of(&client.shown)).collect()
    };
    let shown = trees(&w);
    let counts: Vec<usize> = shown.iter().map(Vec::len).collect();
    assert!(counts.iter().all(|count| (100..4_000).contains(count)), "{counts:?}");
    w.steps(5);
    assert_eq!(trees(&w), shown, "nobody is told of a tree again");
}

#[test]
fn a_removed_content_comes_back_after_its_time_as_it_was_at_the_start() {
    for beyond in [false, true] {
        let mut w = opened(2);
        let (wolf, north) = (named(&w, HERE, "wolf"), named(&w, HERE, "north"));
        set_loot(&mut w, wolf, 9);
        if beyond {
            call(&mut w, Command::Order(wolf, Order::Move(Pos::ground(4_000, 3_000))));
        }
        w.steps(4);
        assert_eq!(w.home_id(wolf), Some(RegionId(u32::from(beyond))));
        call(&mut w, Command::Despawn(wolf));
        call(&mut w, Command::Despawn(north));
        w.steps(3);
        assert_eq!(w.home_id(wolf), None);
        assert!(w.regions.iter().all(|region| region.known(wolf).is_none()));
        assert_eq!(homes(&w)[&wolf], [RegionId(0)], "it sleeps at home");
        // To others it is as if it were nowhere.
        w.answers.clear();
        call(&mut w, Command::Order(wolf, Order::Move(Pos::ground(100, 100))));
        w.steps(2);
        assert_eq!(w.answers[0].result, Err(CommandError::Unknown(wolf)));
        w.steps(BACK);
        assert_eq!(place_of(&w, wolf), Some(Pos::ground(3_100, 3_000)));
        assert_eq!((loot(&w, wolf), homes(&w)[&wolf].len()), (5, 1));
        assert_eq!(w.home_id(north), None, "it stays away");
        let shown = w.clients.values().filter(|client| client.shown.contains_key(&wolf)).count();
        assert_eq!(shown, 1, "the player beside it sees it again");
    }
}

#[test]
fn a_reset_plane_has_its_contents_anew() {
    let mut w = opened(3);
    let (chest, north) = (named(&w, HERE, "north west"), named(&w, HERE, "north"));
    let wolf = named(&w, HERE, "wolf");
    set_loot(&mut w, chest, 0);
    call(&mut w, Command::Order(chest, Order::Move(Pos::ground(4_000, 3_000))));
    call(&mut w, Command::Despawn(north));
    call(&mut w, Command::Despawn(wolf));
    w.steps(4);
    assert_eq!(w.home_id(chest), Some(RegionId(1)));
    for _ in 0..3 {
        call(&mut w, Command::ResetPlane(HERE));
        w.steps(6);
        for (id, homes) in homes(&w) {
            assert_eq!(homes.len(), 1, "{id}: {homes:?}");
        }
        for (id, content) in w.scene.contents().of(HERE) {
            assert_eq!(place_of(&w, id), Some(content.pos), "{}", content.name);
            assert_eq!(loot(&w, id), 5);
        }
        // Also while it is handed over.
        call(&mut w, Command::Order(chest, Order::Move(Pos::ground(4_000, 3_000))));
        w.step();
    }
    let sessions: Vec<_> = w.clients.keys().copied().collect();
    sessions.into_iter().for_each(|session| w.leave(session));
    w.steps(5);
    assert_eq!(homes(&w).len(), 8, "a plane stays open without players");
    call(&mut w, Command::ResetPlane(HERE));
    w.steps(6);
    assert!(homes(&w).is_empty(), "the plane has ended: {:?}", homes(&w));
}

#[test]
fn after_a_death_contents_are_as_at_the_start_unless_they_are_saved() {
    let mut w = opened(4);
    let ids = ["north west", "vault", "wolf"].map(|name| named(&w, HERE, name));
    let [chest, vault, wolf] = ids;
    for id in ids {
        set_loot(&mut w, id, 1);
    }
    call(&mut w, Command::Order(wolf, Order::Move(Pos::ground(4_000, 3_000))));
    w.steps(4);
    let (_, bytes) = &w.kills.kept[&RegionId(0)];
    let saved = RegionSnapshot::decode(bytes).unwrap();
    let saved: Vec<_> =
        saved.entities().map(|e| e.id).filter(|id| id.content().is_some()).collect();
    assert_eq!(saved, [vault], "the others cost nothing");
    w.kill(RegionId(0), 3);
    w.steps(20);
    assert_eq!([chest, vault, wolf].map(|id| loot(&w, id)), [5, 1, 1]);
    assert_eq!(w.home_id(wolf), Some(RegionId(1)), "it lived elsewhere and goes on");
    // The region of the guest dies, too.
    w.kill(RegionId(1), 3);
    w.steps(20);
    assert_eq!((loot(&w, wolf), homes(&w)[&wolf].len()), (1, 1));
    assert!(homes(&w).values().all(|homes| homes.len() == 1), "{:?}", homes(&w));
}

#[test]
fn a_death_before_any_checkpoint_of_an_open_plane_doubles_no_content() {
    for seed in 0..20 {
        let mut w = opened(100 + seed);
        w.kills.checkpoint_every = 0;
        w.kills.kept.clear();
        let chest = named(&w, HERE, "north west");
        call(&mut w, Command::Order(chest, Order::Move(Pos::ground(4_000, 3_000))));
        w.steps(4);
        assert_eq!(w.home_id(chest), Some(RegionId(1)));
        w.kill(RegionId(0), 3);
        w.steps(25);
        let homes = homes(&w);
        assert_eq!(homes.len(), 8);
        assert!(homes.values().all(|homes| homes.len() == 1), "seed {seed}: {homes:?}");
    }
}

/// Contents are moved and removed at random, while regions die and the layout changes. At rest each lives once.
fn history(seed: u64, deadly: bool) -> World {
    let mut w = opened(seed);
    w.kills.checkpoint_every = 7;
    let ids = ids(&w, HERE);
    for _ in 0..40 {
        for _ in 0..w.rng.below(3) {
            let id = ids[w.rng.below(ids.len())];
            let at = Pos::ground(w.rng.below(9_600) as i32, w.rng.below(6_400) as i32);
            let is_wolf = id == named(&w, HERE, "wolf");
            match w.rng.below(4) {
                0 if is_wolf => call(&mut w, Command::Despawn(id)),
                _ => call(&mut w, Command::Order(id, Order::Move(at))),
            }
        }
        if w.rng.chance(15)
            && w.down.is_empty()
            && w.map_is_still()
            && let Some(layout) = w.some_layout()
        {
            w.remap(&layout, true);
        } else if deadly && w.rng.chance(15) && w.map_is_still() && w.down.is_empty() {
            let alive: Vec<_> = w.scene.map.regions.iter().map(|region| region.id).collect();
            let dies = alive[w.rng.below(alive.len())];
            w.kill(dies, 3);
        }
        w.step();
    }
    w.steps(60 + BACK);
    w
}

fn histories(most: u64, deadly: bool) {
    for seed in seeds(most) {
        let _replay = Replay("contents", seed);
        let w = history(seed, deadly);
        let homes = homes(&w);
        for (id, content) in w.scene.contents().of(HERE) {
            let lives = homes.get(&id).map_or(&[][..], Vec::as_slice);
            assert_eq!(lives.len(), 1, "seed {seed}: {} ({id}) lives in {lives:?}", content.name);
        }
        assert!(w.home(named(&w, HERE, "wolf")).is_some(), "seed {seed}: it comes back");
    }
}

#[test]
fn contents_survive_handoffs_and_layout_changes() {
    histories(100, false);
}

#[test]
fn contents_survive_deaths_at_random() {
    histories(100, true);
}

#[test]
fn a_checkpoint_of_another_list_begins_anew() {
    let mut w = opened(5);
    let vault = named(&w, HERE, "vault");
    set_loot(&mut w, vault, 1);
    w.steps(3);
    let (_, bytes) = &w.kills.kept[&RegionId(0)];
    let snapshot = RegionSnapshot::decode(bytes).unwrap();
    let mut other = spec();
    other.contents.retain(|content| content.name != "north");
    let scene = Scene::new(SceneId(0), other, 100, RegionId(0)).unwrap();
    let (region, _) = recover(&scene.into(), snapshot, &[], 5);
    assert!(region.find(vault).is_none(), "its id is another content's now");
}

#[test]
fn what_is_wrong_with_contents_is_said() {
    let cases: [(Change<'_>, &str); 8] = [
        (&|s| s.contents[1].name = "wolf".into(), "another content has this name"),
        (&|s| s.contents[0].name = String::new(), "1 to 64 bytes"),
        (&|s| s.contents[0].kind = Kind(2), "must be a kind of the scene"),
        (&|s| s.contents[0].kind = Kind::PLAYER, "must be a kind of the scene"),
        (&|s| s.contents[0].pos.x = 9_600, "must lie on the map of 96 m x 64 m"),
        (&|s| s.contents[0].respawn_ms = Some(0), "must lie between 1 and 604800000 ms"),
        (&|s| s.contents[0].properties[0].0 = PropertyId(9), "no property 9"),
        (&|s| s.contents[0].properties.push((LOOT, Value::NIL)), "is set twice"),
    ];
    cases.into_iter().for_each(|(change, says)| assert_wrong(&spec(), change, says));
    let scene = Scene::new(SceneId(0), spec(), 100, RegionId(0)).unwrap();
    let told = scene.with_contents(MAX_CONTENTS - 7, Vec::new()).unwrap_err()[0].to_string();
    assert!(told.contains("a server has at most 524288 contents"), "{told}");
}

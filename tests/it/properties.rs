//! Properties and facings: who is told what and when, across borders, handoffs, deaths and broken
//! connections. The bytes of every frame are searched for what its client may not see.

use crate::support::alone::frames;
use crate::support::commands::order_of;
use crate::support::touches::{Touches, with_properties};
use crate::support::trial::{CIRCLE, Trial, scene};
use crate::support::world::World;
use crate::support::{histories, seeds};
use purview::scene::messages::{Bond, Input, Order, Refusal, SetProperty};
use purview::scene::properties::{
    Audience, Detail, PropertyId, PropertyRefusal, PropertySpec, Value, Writer,
};
use purview::scene::{
    EntityId, Facing, Kind, Plane, Pos, RangeSet, RegionId, SceneSpec, SessionId, Visibility,
};

fn every_seed(spec: &SceneSpec, most: u64, go: impl Fn(&mut Trial)) {
    let spec = with_properties(spec.clone());
    let go = |t: &mut Trial| {
        t.w.touches = Some(Touches::new(t.rng.next()));
        go(t);
        t.w.touches.as_mut().unwrap().stop();
        t.w.steps(4);
        t.w.properties_are_right();
    };
    let sum = histories::every_seed("properties", &spec, seeds(most), go);
    sum.shows(|s| s.values > 500 && s.handoffs > 50);
}

#[test]
fn every_client_ends_with_the_newest_values_that_it_may_see() {
    every_seed(&scene(Visibility::Patches, 100), 10, |t| t.run(60));
    every_seed(&scene(Visibility::Patches, 3), 6, |t| t.run(60));
    every_seed(&scene(CIRCLE, 5), 6, |t| t.run(60));
}

#[test]
fn late_and_lost_batches_change_no_ones_last_value() {
    every_seed(&scene(Visibility::Patches, 100), 10, |t| t.storm(60));
}

#[test]
fn regions_that_migrate_take_properties_with_them() {
    every_seed(&scene(Visibility::Patches, 3), 8, |t| {
        t.w.restless = 3;
        t.storm(60);
    });
}

#[test]
fn clients_that_come_back_know_the_newest_values() {
    every_seed(&scene(Visibility::Patches, 100), 10, |t| t.breaks(60, false));
}

#[test]
fn deaths_of_regions_leave_all_clients_with_the_newest_values() {
    every_seed(&scene(Visibility::Patches, 100), 10, |t| t.deaths(60, true));
    every_seed(&scene(CIRCLE, 100), 10, |t| t.deaths(60, false));
    every_seed(&scene(Visibility::Patches, 100), 8, |t| t.breaks(60, true));
}

/// One region, in which all see each other by patches of 4 m.
fn alone() -> World {
    let spec = one_region(scene(Visibility::Patches, 100));
    World::new(with_properties(spec), 1)
}

fn one_region(spec: SceneSpec) -> SceneSpec {
    let side = 12_800;
    let (width_cm, depth_cm, land_cm) = (side, side, side);
    SceneSpec { width_cm, depth_cm, land_cm, region_lands_x: 1, region_lands_z: 1, ..spec }
}

struct Pair {
    w: World,
    a: SessionId,
    a_id: EntityId,
    b: SessionId,
    b_id: EntityId,
}

/// Two players who see each other, `apart` centimetres from each other.
fn pair(mut w: World, apart: i32) -> Pair {
    let (a, a_id) = w.player(2_050, 2_050);
    let (b, b_id) = w.player(2_050 + apart, 2_050);
    w.steps(3);
    assert!(w.clients[&a].shown.contains_key(&b_id) && w.clients[&b].shown.contains_key(&a_id));
    Pair { w, a, a_id, b, b_id }
}

fn text(text: &str) -> Value {
    Value::of(text).unwrap()
}

fn set(id: u8, value: &str) -> Order {
    Order::Set(SetProperty { id: PropertyId(id), value: text(value) })
}

impl Pair {
    fn logic(&mut self, id: EntityId, order: Order) {
        let home = self.w.home_id(id).expect("it lives somewhere");
        self.w.tell(home, order_of(id, order));
    }

    /// What the two clients know of a property of the first player.
    fn known(&self, property: u8) -> [Option<Value>; 2] {
        [self.a, self.b].map(|s| self.w.clients[&s].told.value(self.a_id, property).cloned())
    }
}

#[test]
fn a_change_is_told_in_its_tick_to_those_who_may_see_it() {
    let mut p = pair(alone(), 100);
    for (id, value) in [(1, "hp"), (3, "gold"), (4, "target"), (5, "mind")] {
        p.logic(p.a_id, set(id, value));
    }
    p.w.step();
    assert_eq!(p.known(1), [Some(text("hp")), Some(text("hp"))]);
    assert_eq!(p.known(3), [Some(text("gold")), None]);
    assert_eq!(p.known(4), [Some(text("target")), None]);
    assert_eq!(p.known(5), [None, None]);
    // Who comes later is told with the enter.
    let c = p.w.join(Plane(0), Pos::ground(2_100, 2_100), RangeSet::FULL);
    p.w.steps(2);
    let told = &p.w.clients[&c].told;
    assert_eq!((told.value(p.a_id, 1), told.value(p.a_id, 3)), (Some(&text("hp")), None));
    assert_eq!(told.updates, 1, "its own appearance alone comes beside enters");
}

#[test]
fn bonded_players_are_told_when_the_bond_begins_and_no_more_when_it_ends() {
    let mut p = pair(alone(), 100);
    p.logic(p.a_id, set(4, "first"));
    p.w.step();
    assert_eq!(p.known(4)[1], None);
    let bond = |p: &mut Pair, bonds: &[Bond]| {
        [p.a, p.b].into_iter().for_each(|session| p.w.bond(session, bonds));
        p.w.step();
    };
    bond(&mut p, &[Bond { class: 1, group: 7 }]);
    assert_eq!(p.known(4)[1], Some(text("first")));
    bond(&mut p, &[]);
    p.logic(p.a_id, set(4, "second"));
    p.w.step();
    assert_eq!(p.known(4), [Some(text("second")), Some(text("first"))]);
}

#[test]
fn beyond_the_detail_ring_the_last_value_stays_until_the_entity_comes_nearer() {
    // Patches have 4 m: 5 m apart is the ring MIDDLE.
    let mut p = pair(alone(), 500);
    p.logic(p.a_id, set(2, "one"));
    p.logic(p.a_id, set(1, "hp"));
    p.w.step();
    assert_eq!(p.known(2), [Some(text("one")), None]);
    assert_eq!(p.known(1)[1], Some(text("hp")));
    p.w.walk(p.b, Pos::ground(2_350, 2_050));
    p.w.step();
    assert_eq!(p.known(2)[1], Some(text("one")));
    p.w.walk(p.b, Pos::ground(2_550, 2_050));
    p.w.step();
    for value in ["two", "three"] {
        p.logic(p.a_id, set(2, value));
        p.w.step();
    }
    assert_eq!(p.known(2)[1], Some(text("one")), "the last value that it was told");
    let before = p.w.clients[&p.b].told.updates;
    p.w.walk(p.b, Pos::ground(2_350, 2_050));
    p.w.step();
    assert_eq!(p.known(2)[1], Some(text("three")));
    p.w.steps(3);
    assert_eq!(p.w.clients[&p.b].told.updates, before + 1, "and it is told once");
}

#[test]
fn a_held_client_gets_the_newest_value_and_skips_those_between() {
    let mut p = pair(alone(), 100);
    p.w.tell(RegionId(0), Input::Hold { id: p.b_id, session: p.b });
    for n in 0..5 {
        p.logic(p.a_id, set(1, &format!("hp {n}")));
        p.w.step();
    }
    assert_eq!(p.known(1), [Some(text("hp 4")), None]);
    let before = p.w.clients[&p.b].told.updates;
    p.w.tell(RegionId(0), Input::Release { id: p.b_id, session: p.b });
    p.w.step();
    assert_eq!(p.known(1)[1], Some(text("hp 4")));
    assert_eq!(p.w.clients[&p.b].told.updates, before + 1);
}

#[test]
fn a_client_sets_what_it_may_and_is_refused_the_rest_with_the_reason() {
    let mut p = pair(alone(), 100);
    for order in [set(6, "sits"), set(1, "999"), set(7, "?"), set(5, "!")] {
        p.w.order(p.a, order);
    }
    p.w.step();
    assert_eq!(p.known(6), [Some(text("sits")), Some(text("sits"))]);
    assert_eq!(p.known(1), [None, None]);
    let refused: Vec<_> = p.w.clients[&p.a].refusals.iter().map(|r| r.why).collect();
    let may_not = |id| Refusal::Property(PropertyRefusal::MayNotWrite(PropertyId(id)));
    let unknown = Refusal::Property(PropertyRefusal::Unknown(PropertyId(7)));
    assert_eq!(refused, [may_not(1), unknown, may_not(5)]);
    // What ten seconds allow may come late, at once: 100 properties, 300 turns.
    for n in 0..340 {
        if n < 140 {
            p.w.order(p.a, set(6, &format!("stance {n}")));
        }
        p.w.order(p.a, Order::Face(Facing(n)));
    }
    p.w.step();
    let of = |why| p.w.clients[&p.a].refusals.iter().filter(|r| r.why == why).count();
    assert_eq!(of(Refusal::Property(PropertyRefusal::TooOften)), 40);
    assert_eq!(of(Refusal::TooOften), 40);
}

#[test]
fn a_value_of_another_type_or_too_long_changes_nothing() {
    let mut spec = one_region(scene(Visibility::All, 100));
    let hp = PropertySpec {
        value_type: purview::scene::properties::ValueType::Int,
        max_bytes: 2,
        writer: Writer::Owner,
        ..PropertySpec::new(1, "hp")
    };
    spec.kinds[0].properties = vec![hp];
    let mut p = pair(World::new(spec, 1), 100);
    let set = |n: u64| Order::Set(SetProperty { id: PropertyId(1), value: Value::of(&n).unwrap() });
    p.w.order(p.a, set(7));
    p.w.order(p.a, set(70_000));
    p.w.order(p.a, self::set(1, "x"));
    p.w.step();
    let refused: Vec<_> = p.w.clients[&p.a].refusals.iter().map(|r| r.why).collect();
    let long = PropertyRefusal::TooLong { id: PropertyId(1), len: 5, max: 2 };
    let wrong = PropertyRefusal::WrongType(PropertyId(1));
    assert_eq!(refused, [Refusal::Property(long), Refusal::Property(wrong)]);
    assert_eq!(p.known(1)[1], Some(Value::of(&7).unwrap()));
}

#[test]
fn a_turn_takes_a_few_bytes_and_no_trajectory_and_logic_tells_the_player_itself() {
    let mut p = pair(alone(), 100);
    p.w.order(p.a, Order::Face(Facing::SOUTH));
    p.w.step();
    let facing = |p: &Pair, who: SessionId| p.w.clients[&who].told.facings.get(&p.a_id).copied();
    assert_eq!((facing(&p, p.a), facing(&p, p.b)), (None, Some(Facing::SOUTH)));
    assert_eq!(p.w.clients[&p.b].told.turns, 1);
    p.logic(p.a_id, Order::Face(Facing::WEST));
    p.w.step();
    assert_eq!((facing(&p, p.a), facing(&p, p.b)), (Some(Facing::WEST), Some(Facing::WEST)));
    // With a move the facing comes along.
    p.w.order(p.a, Order::Face(Facing::NORTH));
    p.w.walk(p.a, Pos::ground(2_060, 2_050));
    p.w.step();
    assert_eq!(facing(&p, p.b), Some(Facing::NORTH));
    assert_eq!(p.w.clients[&p.b].told.turns, 2);
}

#[test]
fn a_change_is_one_piece_for_all_frames() {
    let mut w = alone();
    let (_, id) = w.player(2_050, 2_050);
    (0..20).for_each(|i| _ = w.player(2_060 + i, 2_050));
    w.steps(4);
    w.tell(RegionId(0), order_of(id, set(1, "hp")));
    w.tick = w.tick.next();
    let mut fx = Vec::new();
    w.regions[0].tick(w.tick, &mut fx);
    let batches = frames(&fx);
    let told: u32 = batches[0].sessions.iter().map(|s| s.properties).sum();
    assert_eq!((batches.len(), batches[0].properties.len(), told), (1, 1, 21));
}

#[test]
fn more_properties_than_a_frame_holds_come_with_later_frames() {
    let mut w = alone();
    let a = w.join(Plane(0), Pos::ground(2_050, 2_050), RangeSet::FULL);
    let npcs: Vec<_> = (0..600)
        .map(|_| w.spawn(Kind(1), Plane(0), Pos::ground(2_060, 2_050), RangeSet::FULL, None))
        .collect();
    w.steps(3);
    assert_eq!(w.clients[&a].shown.len(), 600);
    let long = "x".repeat(250);
    for id in &npcs {
        for property in [1, 2] {
            w.tell(RegionId(0), order_of(*id, set(property, &long[..245])));
        }
    }
    w.step();
    let known = |w: &World| {
        let told = &w.clients[&a].told;
        npcs.iter().flat_map(|id| [told.value(*id, 1), told.value(*id, 2)]).flatten().count()
    };
    let first = known(&w);
    assert!((500..1_200).contains(&first), "{first} in the first frame");
    w.steps(3);
    assert_eq!(known(&w), 1_200);
}

#[test]
fn what_is_not_declared_for_a_kind_is_never_told() {
    let mut p = pair(alone(), 100);
    let wolf = p.w.spawn(Kind(1), Plane(0), Pos::ground(2_060, 2_050), RangeSet::FULL, None);
    p.w.step();
    for property in [3, 4, 6, 40] {
        p.logic(wolf, set(property, "lost"));
    }
    p.logic(wolf, set(1, "hp"));
    p.w.steps(2);
    let details = p.w.regions[0].find(wolf).unwrap();
    let ids: Vec<u8> = details.properties.levels().iter().map(|level| level.id.0).collect();
    assert_eq!(ids, [0, 1]);
    assert_eq!(p.w.scene.schema(Kind(1)).unwrap().audience(PropertyId(3)), Audience::Server);
    assert_eq!(p.w.scene.schema(Kind(0)).unwrap().detail(PropertyId(2)), Detail::Near);
}

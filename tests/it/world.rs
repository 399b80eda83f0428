//! The embedded world: it tells what a region tells, and refuses what a region drops in silence.

mod logic;

use purview::scene::messages::{
    CommandError, MAX_ACTION_BYTES, MessageKind, NamedBond, Order, Refusal,
};
use purview::scene::properties::{
    MAX_VALUE_BYTES, PropertyId, PropertyRefusal, PropertySpec, Value,
};
use purview::scene::{EntityId, Facing, Kind, Plane, Pos, Seq, Visibility};
use purview::world::{Entity, Event, World, WorldError};

fn world() -> World {
    World::builder().size_m(512, 512).build().unwrap()
}

#[test]
fn entities_of_other_kinds_are_seen_and_see_nothing() {
    let mut world = world();
    let ann = world.add(Entity::player(Pos::ground(1_000, 1_000))).unwrap();
    let monster = world.add(Entity::of(Kind(2), Pos::ground(2_000, 1_000))).unwrap();
    let elsewhere = Entity::of(Kind(2), Pos::ground(2_000, 1_000)).plane(Plane(7));
    let elsewhere = world.add(elsewhere).unwrap();
    assert_eq!(world.tick(), [Event::Entered { viewer: ann, subject: monster }]);
    assert_eq!(world.view(ann).collect::<Vec<_>>(), [monster]);
    assert_eq!(world.view(monster).count(), 0);
    assert_eq!(world.view(elsewhere).count(), 0);
    world.move_to(monster, Pos::ground(2_500, 1_000)).unwrap();
    let pos = Pos::ground(2_500, 1_000);
    assert_eq!(world.tick(), [Event::Moved { viewer: ann, subject: monster, pos }]);
    assert_eq!(world.pos(monster), Some(pos));
    world.remove(monster).unwrap();
    assert_eq!(world.tick(), [Event::Left { viewer: ann, subject: monster }]);
    assert_eq!(world.pos(monster), None);
}

#[test]
fn a_full_view_prefers_bonds_to_distance() {
    let circle = Visibility::Circle { enter_cm: 10_000, leave_cm: 11_000 };
    let mut world =
        World::builder().size_m(512, 512).visibility(circle).view_cap(1).build().unwrap();
    let party = NamedBond::new("couple", 9);
    let ann = world.add(Entity::player(Pos::ground(10_000, 10_000)).bond(party.clone())).unwrap();
    let _near = world.add(Entity::player(Pos::ground(10_100, 10_000))).unwrap();
    let friend = world.add(Entity::player(Pos::ground(15_000, 10_000)).bond(party)).unwrap();
    world.tick();
    assert_eq!(world.view(ann).collect::<Vec<_>>(), [friend]);
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let mut world = world();
    let ann = world.add(Entity::player(Pos::ground(0, 0))).unwrap();
    let outside = Pos::ground(-1, 0);
    let size = (51_200, 51_200);
    let (width_cm, depth_cm, height_limit_cm) = (size.0, size.1, 1_000_000);
    let out = WorldError::OutOfBounds { pos: outside, width_cm, depth_cm, height_limit_cm };
    assert_eq!(world.add(Entity::player(outside)), Err(out.clone()));
    assert_eq!(world.move_to(ann, outside), Err(out));
    let kind = WorldError::UnknownKind { kind: 9, last: 4 };
    assert_eq!(world.add(Entity::of(Kind(9), Pos::ground(0, 0))), Err(kind));
    let nobody = EntityId(99);
    assert_eq!(world.remove(nobody), Err(WorldError::UnknownEntity(nobody)));
    assert_eq!(world.act(nobody, "x"), Err(WorldError::UnknownEntity(nobody)));
    let (len, max) = (MAX_ACTION_BYTES + 1, MAX_ACTION_BYTES);
    let long = WorldError::TooLong { what: "an action", len, max };
    assert_eq!(world.act(ann, vec![0; len]), Err(long));
    let bonds = vec![NamedBond::new("couple", 1); 9];
    assert_eq!(world.set_bonds(ann, bonds), Err(WorldError::TooManyBonds { count: 9, max: 8 }));
    let unknown = world.set_bonds(ann, vec![NamedBond::new("crew", 1)]).unwrap_err();
    let names = "bonds of kind \"crew\" are unknown: want one of";
    assert!(unknown.to_string().starts_with(names), "{unknown}");
    let scene = World::builder().view_cap(0).spec(|spec| spec.kinds.clear()).build().unwrap_err();
    assert!(matches!(&scene, WorldError::Scene(errors) if !errors.is_empty()), "{scene}");
    assert_eq!(world.tick(), []);
}

/// A scene of 1,200 x 700 m is six lands of 512 m, the last of which its edges cut.
#[test]
fn a_world_is_as_large_as_it_was_made_and_no_larger() {
    let mut world = World::builder().size_m(1_200, 700).build().unwrap();
    assert_eq!(world.scene().map.layout().plots[0].x1, 3);
    let at = |x, z| Pos::ground(x, z);
    let (width_cm, depth_cm, height_limit_cm) = (120_000, 70_000, 1_000_000);
    let ann = world.add(Entity::player(at(119_999, 69_999))).unwrap();
    for pos in [at(120_000, 0), at(0, 70_000), at(150_000, 100_000)] {
        let out = WorldError::OutOfBounds { pos, width_cm, depth_cm, height_limit_cm };
        assert_eq!(world.add(Entity::player(pos)), Err(out.clone()));
        assert_eq!(world.move_to(ann, pos), Err(out));
    }
    // On both sides of the border of the last lands, at 1,024 m and 512 m.
    let pair = [(102_300, 51_100), (102_500, 51_300)].map(|(x, z)| Entity::player(at(x, z)));
    let [bob, cat] = pair.map(|player| world.add(player).unwrap());
    world.tick();
    assert_eq!(world.view(bob).collect::<Vec<_>>(), [cat]);
    assert_eq!(world.view(cat).collect::<Vec<_>>(), [bob]);
}

#[test]
fn the_limits_of_the_world_are_those_of_a_region() {
    let mut world = world();
    let appearance = vec![1; MAX_VALUE_BYTES - 3];
    let ann = world.add(Entity::player(Pos::ground(0, 0)).appearance(appearance)).unwrap();
    let bob = world.add(Entity::player(Pos::ground(100, 0))).unwrap();
    // Both enter, and the client of the first one is told its own appearance.
    assert_eq!(world.tick().len(), 3);
    world.act(ann, vec![7; MAX_ACTION_BYTES]).unwrap();
    let events = world.tick();
    assert!(events.iter().any(|e| matches!(e, Event::Acted { viewer, .. } if *viewer == bob)));
}

#[test]
fn properties_turns_and_messages_are_told() {
    let bond = NamedBond::new("party", 7);
    let hp = PropertyId(1);
    let builder = World::builder().size_m(1_024, 1_024);
    let mut world = builder
        .spec(|spec| spec.kinds[0].properties = vec![PropertySpec::new(1, "hp")])
        .build()
        .unwrap();
    let ann = world.add(Entity::player(Pos::ground(0, 0)).bond(bond.clone())).unwrap();
    let bob = world.add(Entity::player(Pos::ground(100, 0))).unwrap();
    world.tick();
    let value = Value::of(&70).unwrap();
    world.set(ann, hp, value.clone()).unwrap();
    world.face(ann, Facing::WEST).unwrap();
    world.tell(bob, "psst").unwrap();
    world.tell_bond(bond, "party").unwrap();
    world.announce(None, "all").unwrap();
    let events = world.tick();
    let (subject, facing) = (ann, Facing::WEST);
    let told =
        |player, kind, payload: &'static str| Event::Told { player, kind, payload: payload.into() };
    for viewer in [ann, bob] {
        assert!(events.contains(&Event::Property {
            viewer,
            subject,
            id: hp,
            value: value.clone()
        }));
        assert!(events.contains(&Event::Turned { viewer, subject, facing }));
        assert!(events.contains(&told(viewer, MessageKind::Announcement, "all")));
    }
    assert!(events.contains(&told(bob, MessageKind::Tell, "psst")));
    assert!(events.contains(&told(ann, MessageKind::Bond, "party")));
    assert_eq!(events.len(), 8, "{events:?}");
    let unknown = PropertyRefusal::Unknown(PropertyId(9));
    let refused = world.set(ann, PropertyId(9), value);
    assert_eq!(refused, Err(WorldError::Property(unknown)));
}

#[test]
fn a_call_that_is_refused_at_the_tick_is_told_with_its_entity() {
    let big = |id| PropertySpec { max_bytes: 1_024, ..PropertySpec::new(id, format!("p{id}")) };
    let builder = World::builder().size_m(1_024, 1_024);
    let mut world =
        builder.spec(|spec| spec.kinds[0].properties = (1..6).map(big).collect()).build().unwrap();
    let ann = world.add(Entity::player(Pos::ground(0, 0))).unwrap();
    let bob = world.add(Entity::player(Pos::ground(100, 0))).unwrap();
    world.tick();
    world.face(bob, Facing::WEST).unwrap();
    let value = Value::binary(&[7; 1_000]).unwrap();
    (1..6).for_each(|id| world.set(ann, PropertyId(id), value.clone()).unwrap());
    let refused = world.tick().into_iter().filter_map(|event| match event {
        Event::OrderRefused { entity, why } => Some((entity, why)),
        _ => None,
    });
    let full = CommandError::Order(Refusal::Property(PropertyRefusal::Full));
    assert_eq!(refused.collect::<Vec<_>>(), [(Some(ann), full)]);
}

#[test]
fn inputs_of_a_client_are_applied_once_and_in_order() {
    let mut world = world();
    let ann = world.add(Entity::player(Pos::ground(0, 0))).unwrap();
    world.tick();
    let to = |x| Order::Move(Pos::ground(x, 0));
    world.input(ann, Seq(1), to(100)).unwrap();
    let wrong = |got| WorldError::WrongSeq { id: ann, got, want: 2 };
    assert_eq!(world.input(ann, Seq(1), to(200)), Err(wrong(1)), "it was applied already");
    assert_eq!(world.input(ann, Seq(3), to(300)), Err(wrong(3)), "input 2 is missing");
    world.input(ann, Seq(2), Order::Move(Pos::ground(-5, 0))).unwrap();
    let events = world.tick();
    assert!(
        matches!(events[..], [Event::Refused { player, seq: Seq(2), .. }] if player == ann),
        "{events:?}"
    );
    assert_eq!(world.pos(ann), Some(Pos::ground(100, 0)));
}

//! The game's logic in an embedded world: watches, planes and commands, as in a region of a server; and judged moves.

use std::sync::{Arc, Mutex};

use purview::scene::messages::{
    Command, CommandError, LogicEvent, MessageKind, Motion, NamedBond, Order, Recipients,
};
use purview::scene::movement::{ClientMs, Go, Move, MoveCommand, ServerMs, Vector};
use purview::scene::portals::Journey;
use purview::scene::properties::Properties;
use purview::scene::region::{Commands, GameLogic};
use purview::scene::spec::{Moves, WatchSpec};
use purview::scene::{EntityId, Kind, Plane, Pos, Region, SceneId, Seq};
use purview::world::{Entity, Event, World, WorldError};

const MONSTER: Kind = Kind(2);
const AT: Pos = Pos::ground(10_000, 10_000);

/// A monster guards the place. It roars at who comes near, all are told, and who acts is thrown out with it.
#[derive(Default)]
struct Guarded {
    monster: EntityId,
    refused: Arc<Mutex<Vec<CommandError>>>,
}

impl GameLogic for Guarded {
    fn tick(&mut self, region: &Region, events: &[LogicEvent], commands: &mut Commands) {
        for event in events {
            match event {
                LogicEvent::Started { .. } => {
                    self.monster = commands.spawn(MONSTER, Plane(0), AT, Properties::default());
                    commands.despawn(EntityId(77));
                }
                LogicEvent::Sighted { watcher, id } => {
                    commands.act(*watcher, "roar");
                    commands.tell(*id, "run");
                    let friends = NamedBond::new("party", 7);
                    commands.tell_bond(friends, "help");
                    commands.announce(Recipients::Scene(SceneId(0)), "a roar");
                }
                LogicEvent::Lost { watcher, .. } => drop(commands.act(*watcher, "yawn")),
                LogicEvent::Arrived { id } => {
                    let plane = region.known(*id).map(|known| known.plane);
                    commands.tell(*id, format!("{plane:?}"));
                }
                LogicEvent::Acted { id, .. } if *id != self.monster => {
                    commands.kick(*id);
                    commands.despawn(self.monster);
                }
                LogicEvent::Refused { why, .. } => self.refused.lock().unwrap().push(*why),
                _ => {}
            }
        }
    }
}

fn guarded(logic: Guarded) -> World {
    let watch = WatchSpec { kinds: vec![0], enter_cm: 700, leave_cm: 900 };
    let builder = World::builder().size_m(512, 512);
    let mut world =
        builder.spec(|spec| spec.kinds[2].watch = vec![watch]).build().expect("a legal scene");
    world.set_logic(Box::new(logic));
    world
}

fn told(events: &[Event], of: EntityId) -> Vec<(MessageKind, String)> {
    let told = events.iter().filter_map(|event| match event {
        Event::Told { player, kind, payload } if *player == of => {
            Some((*kind, String::from_utf8_lossy(payload).into_owned()))
        }
        _ => None,
    });
    told.collect()
}

fn acts(events: &[Event], of: EntityId) -> Vec<&[u8]> {
    let acts = events.iter().filter_map(|event| match event {
        Event::Acted { subject, payload, .. } if *subject == of => Some(&payload[..]),
        _ => None,
    });
    acts.collect()
}

#[test]
fn logic_in_a_world_is_told_what_it_is_told_in_a_region_and_commands_the_same() {
    let refused = Arc::new(Mutex::new(Vec::new()));
    let mut world = guarded(Guarded { refused: refused.clone(), ..Guarded::default() });
    let party = NamedBond::new("party", 7);
    let away = Pos { x: 11_000, ..AT };
    let ann = world.add(Entity::player(away).bond(party.clone())).unwrap();
    let bob = world.add(Entity::player(Pos { x: 13_000, ..AT }).bond(party)).unwrap();
    let events = world.tick();
    let monster = events.iter().find_map(|event| match event {
        Event::Created { entity, kind: MONSTER } => Some(*entity),
        _ => None,
    });
    let monster = monster.expect("the logic has created it");
    assert!(![ann, bob].contains(&monster));
    assert!(events.contains(&Event::Entered { viewer: ann, subject: monster }));
    // Its own numbers go on after the logic's.
    let cat = world.add(Entity::of(Kind(1), AT)).unwrap();
    assert!(cat > monster);
    world.move_to(monster, Pos { x: 9_900, ..AT }).expect("an entity as any other");
    world.move_to(ann, Pos { x: 10_500, ..AT }).unwrap();
    let mut events = world.tick();
    events.extend(world.tick());
    events.extend(world.tick());
    assert_eq!(acts(&events, monster), [b"roar", b"roar"], "both players see it");
    let (tell, bond, all) = (MessageKind::Tell, MessageKind::Bond, MessageKind::Announcement);
    let say = |kind, text: &str| (kind, text.to_owned());
    assert_eq!(told(&events, ann), [say(tell, "run"), say(bond, "help"), say(all, "a roar")]);
    assert_eq!(told(&events, bob), [say(bond, "help"), say(all, "a roar")]);

    // Another plane: nobody sees the player there, and the monster has lost it.
    world.give(Command::Order(ann, Order::Travel(Journey::within(Plane(3), away)))).unwrap();
    let mut events = world.tick();
    events.extend(world.tick());
    events.extend(world.tick());
    assert!(events.contains(&Event::Left { viewer: bob, subject: ann }));
    assert_eq!(acts(&events, monster), [b"yawn"], "bob alone sees it");
    assert_eq!(told(&events, ann), [say(tell, "Some(Plane(3))")]);
    assert_eq!(world.view(ann).count(), 0);

    world.act(bob, "draws").unwrap();
    let mut events = world.tick();
    events.extend(world.tick());
    assert!(events.contains(&Event::Removed { entity: bob }));
    assert!(events.contains(&Event::Removed { entity: monster }));
    assert_eq!(world.act(bob, "again"), Err(WorldError::UnknownEntity(bob)));
    assert_eq!(world.remove(monster), Err(WorldError::UnknownEntity(monster)));
    (0..100).for_each(|_| drop(world.tick()));
    assert_eq!(*refused.lock().unwrap(), [CommandError::Unknown(EntityId(77))]);
}

#[test]
fn a_command_of_the_embedder_is_carried_out_or_refused_with_its_entity() {
    let mut world = World::builder().size_m(512, 512).build().unwrap();
    let ann = world.add(Entity::player(AT)).unwrap();
    let monster = world.add(Entity::of(MONSTER, Pos { x: 12_000, ..AT })).unwrap();
    world.tick();
    assert_eq!(world.view(ann).collect::<Vec<_>>(), [monster]);
    // Blinded, it does not see what is no player.
    world.give(Command::Sight(ann, Some(1_000))).unwrap();
    world.tick();
    assert!(world.tick().is_empty() && world.view(ann).count() == 0);
    world.give(Command::Sight(ann, None)).unwrap();
    world.tick();
    assert_eq!(world.view(ann).collect::<Vec<_>>(), [monster]);

    world.give(Command::Sight(monster, None)).unwrap();
    world.give(Command::Door(Plane(0), "gate".into(), true)).unwrap();
    let events = world.tick();
    let refused = |entity, why| Event::OrderRefused { entity, why };
    assert!(
        events.contains(&refused(Some(monster), CommandError::NoPlayer(monster))),
        "{events:?}"
    );
    assert!(events.contains(&refused(None, CommandError::NoDoor)), "{events:?}");
    let nobody = EntityId(99);
    assert_eq!(world.give(Command::Sight(nobody, None)), Err(WorldError::UnknownEntity(nobody)));
    assert_eq!(world.give(Command::Despawn(monster)), Err(WorldError::NotByCommand));
}

#[test]
fn judged_moves_are_told_as_trajectories_and_corrections() {
    let builder = World::builder().size_m(512, 512);
    let mut world = builder.spec(|spec| spec.moves.mode = Moves::Judged).build().unwrap();
    let ann = world.add(Entity::player(AT)).unwrap();
    let bob = world.add(Entity::player(Pos { x: 12_000, ..AT })).unwrap();
    let tick_ms = u64::from(world.scene().tick_ms);
    world.tick();
    let walk = |start, speed| Go::Walk(Move::Vector(Vector::heading(start, 0, 1, speed)));
    let command =
        |n: u64, go| Order::Walk(MoveCommand { correction: 0, at: ClientMs(n * tick_ms), go });
    world.input(ann, Seq(1), command(1, walk(AT, 300))).unwrap();
    let mut events = world.tick();
    let trajectory = events.iter().find_map(|event| match event {
        Event::Walks { viewer, subject, trajectory, .. } if (*viewer, *subject) == (bob, ann) => {
            Some(*trajectory)
        }
        _ => None,
    });
    let trajectory = trajectory.expect("bob is told how ann walks");
    for n in 2..12 {
        world.input(ann, Seq(n), command(n.into(), Go::On)).unwrap();
        events = world.tick();
        let now = ServerMs(world.current_tick().0 * tick_ms);
        assert_eq!(world.pos(ann), Some(trajectory.position(now)));
        assert!(!events.iter().any(|event| matches!(event, Event::Walks { .. })), "told once");
    }
    assert!(world.pos(ann).is_some_and(|pos| pos.z > AT.z + 200));
    // A player that comes is told how she walks; so it is when the logic stops her, and her client follows.
    let cat = world.add(Entity::player(Pos { x: 9_000, ..AT })).unwrap();
    let events = world.tick();
    let at = events.iter().position(|event| *event == Event::Entered { viewer: cat, subject: ann });
    let next = at.and_then(|at| events.get(at + 1));
    assert!(matches!(next, Some(Event::Walks { viewer, .. }) if *viewer == cat), "{events:?}");
    world.give(Command::Motion(ann, Motion::Stop)).unwrap();
    // Who is farther away is told some ticks later.
    let events: Vec<Event> = (0..30).flat_map(|_| world.tick()).collect();
    let stops = |event: &Event| match event {
        Event::Walks { subject, trajectory, .. } => {
            *subject == ann && trajectory.motion.position(1_000) == trajectory.motion.position(0)
        }
        _ => false,
    };
    assert_eq!(events.iter().filter(|event| stops(event)).count(), 2, "{events:?}");
    let own = events.iter().find_map(|event| match event {
        Event::Own { player, own } if *player == ann => Some(own.correction),
        _ => None,
    });
    assert_eq!(own, Some(1));
}

//! Commands of the game's logic for entities of other regions, for groups and for doors, and those of calls: each is
//! applied once, and its end is told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use purview::scene::messages::{
    Asker, Command, CommandError, CommandId, CommandResult, Effect, Found, Input, Locate,
    LogicEvent, LogicMessage, MessageKind, NamedBond, Order, Recipients, Refusal, SentCommand,
    Sought, Spawn, Speaker,
};
use purview::scene::mutants::{Mutant, is_noticed_by};
use purview::scene::properties::{PropertyId, PropertyRefusal, Value};
use purview::scene::region::{Commands, Terms};
use purview::scene::{EntityId, Epoch, Plane, Pos, RangeSet, RegionId, SceneId, SceneSpec};

use crate::logic::{Act, Events, HP, MONSTER, region_of, somewhere, spec, take, wander, world};
use crate::support::alone::{forwarded, recover};
use crate::support::world::World;
use crate::support::{Rng, seeds};

/// Commands that a test hands to the logic of one region.
pub type Post = Arc<Mutex<Vec<Command>>>;

/// A world, the logic of whose region `at` gives the commands of the post.
pub fn posted(at: RegionId, seed: u64) -> (World, Events, Post) {
    posted_in(spec(), at, seed)
}

/// The same in a scene.
pub fn posted_in(spec: SceneSpec, at: RegionId, seed: u64) -> (World, Events, Post) {
    let post = Post::default();
    let of = post.clone();
    let act = move || -> Act {
        let post = of.clone();
        Box::new(move |region, _, commands: &mut Commands| {
            if region.id() == at {
                for command in post.lock().unwrap().drain(..) {
                    commands.give(command);
                }
            }
        })
    };
    let (w, events) = world(spec, seed, act);
    (w, events, post)
}

/// The place of a command in its call.
pub fn place(command: u64) -> u64 {
    command & ((1 << 20) - 1)
}

/// What the logic was told of its commands, by their places.
pub fn ends(events: &Events) -> Vec<(u64, Option<CommandError>)> {
    let end = |(_, event)| match event {
        LogicEvent::Done { command } => Some((place(command), None)),
        LogicEvent::Refused { command, why, .. } => Some((place(command), Some(why))),
        _ => None,
    };
    let mut all: Vec<_> = take(events).into_iter().filter_map(end).collect();
    all.sort_by_key(|(place, _)| *place);
    all
}

fn set(id: EntityId, property: PropertyId, n: i64) -> Command {
    let value = Value::of(&n).unwrap();
    Command::Order(id, Order::Set(purview::scene::messages::SetProperty { id: property, value }))
}

/// A command of a call by process 5 or another one.
pub fn called(id: CommandId, command: Command) -> Input {
    Input::Command(Box::new(SentCommand { id, command, searches: 0, after: None }))
}

/// A place just beyond the eastern border of region 0, which sees it.
pub const BEYOND: Pos = Pos { x: 3_400, y: 0, z: 200 };

#[test]
fn commands_for_entities_of_other_regions_are_applied_there_and_their_ends_are_told() {
    let here = RegionId(0);
    let (mut w, events, post) = posted(here, 1);
    let monster = w.spawn(MONSTER, Plane(0), BEYOND, RangeSet::FULL, None);
    w.steps(3);
    assert_ne!(region_of(&w, monster), here);
    assert!(w.regions[0].find(monster).is_some_and(|e| e.ghost));
    take(&events);
    *post.lock().unwrap() = vec![
        set(monster, HP, 7),
        set(monster, PropertyId(9), 7),
        Command::Tell(monster, Bytes::from_static(b"psst")),
        Command::Order(monster, Order::Move(Pos::ground(-1, 0))),
        Command::Despawn(monster),
        Command::Despawn(EntityId(77)),
    ];
    // That no region knows an entity is asked twice.
    w.steps(40);
    let unknown = Refusal::Property(PropertyRefusal::Unknown(PropertyId(9)));
    let told = ends(&events);
    let want = [
        (0, None),
        (1, Some(CommandError::Order(unknown))),
        (2, Some(CommandError::NoPlayer(monster))),
        (3, Some(CommandError::Order(Refusal::OutOfBounds))),
        (4, None),
        (5, Some(CommandError::Unknown(EntityId(77)))),
    ];
    assert_eq!(told, want);
    assert!(w.regions.iter().all(|r| r.find(monster).is_none()));
}

#[test]
fn what_names_an_epoch_is_done_as_its_entity_was_told_or_not_at_all_with_all_of_its_row() {
    let post: Arc<Mutex<Vec<(Command, Terms)>>> = Arc::default();
    let of = Arc::clone(&post);
    let act = move || -> Act {
        let post = of.clone();
        Box::new(move |region, _, commands: &mut Commands| {
            if region.id() == RegionId(0) {
                for (command, terms) in post.lock().unwrap().drain(..) {
                    commands.give_on(command, terms);
                }
            }
        })
    };
    let (mut w, events) = world(spec(), 1, act);
    let [near, beyond] = [Pos::ground(200, 200), BEYOND]
        .map(|at| w.spawn(MONSTER, Plane(0), at, RangeSet::FULL, None));
    w.steps(3);
    let home = |w: &World, id| region_of(w, id).0 as usize;
    let epoch_of = |w: &World, id| w.regions[home(w, id)].known(id).map(|known| known.epoch);
    let (now, elsewhere) = (epoch_of(&w, near), epoch_of(&w, beyond));
    let before = now.map(|epoch| Epoch(epoch.0 - 1));
    take(&events);
    let only = |epoch| Terms { epoch, ..Terms::default() };
    let together = Terms { together: true, ..Terms::default() };
    *post.lock().unwrap() = vec![
        (set(near, HP, 7), only(now)),
        (set(near, HP, 6), together),
        // What it says was read before the monster came here, or of a monster that is elsewhere by now.
        (Command::Despawn(near), only(before)),
        (set(near, HP, 5), together),
        (set(near, HP, 4), together),
        (set(near, HP, 2), only(now)),
        (set(beyond, HP, 7), Terms { together: true, ..only(elsewhere) }),
        (set(beyond, HP, 6), Terms::default()),
        (set(near, HP, 3), together),
    ];
    w.steps(1);
    assert_eq!(w.regions[0].outbox_len(), 1, "what names an epoch goes nowhere");
    w.steps(39);
    let refused = [
        (2, CommandError::NotAsTold(near)),
        (3, CommandError::NotTogether),
        (4, CommandError::NotTogether),
        (5, CommandError::NotTogether),
        (6, CommandError::NotAsTold(beyond)),
    ];
    let told = ends(&events);
    let want = refused.map(|(place, why)| (place, Some(why))).into_iter().chain([(7, None)]);
    assert_eq!(told, want.collect::<Vec<_>>());
    let hp = |id| w.regions[home(&w, id)].known(id).unwrap().properties.read::<i64>(HP);
    assert_eq!((hp(near), hp(beyond)), (3, 6));
}

#[test]
fn that_test_notices_bugs() {
    let test = what_names_an_epoch_is_done_as_its_entity_was_told_or_not_at_all_with_all_of_its_row;
    assert!(is_noticed_by(Mutant::TermsIgnored, test));
    assert!(is_noticed_by(Mutant::RowTorn, test));
}

#[test]
fn a_command_that_is_lost_on_its_way_is_sent_again_until_its_region_says_that_it_is_done() {
    let here = RegionId(0);
    let (mut w, events, post) = posted(here, 1);
    let monster = w.spawn(MONSTER, Plane(0), BEYOND, RangeSet::FULL, None);
    w.steps(3);
    post.lock().unwrap().push(set(monster, HP, 7));
    let home = region_of(&w, monster);
    let mut fx = Vec::new();
    w.regions[0].tick(w.tick.next(), &mut fx);
    let forwarded = fx.iter().any(|e| matches!(e, purview::scene::messages::Effect::Forward(..)));
    assert!(forwarded, "{home} is to be told, and is not");
    take(&events);
    w.steps(10);
    assert_eq!((ends(&events), w.regions[0].outbox_len()), (vec![], 1));
    w.steps(20);
    assert_eq!((ends(&events), w.regions[0].outbox_len()), (vec![(0, None)], 0));
    // An answer that comes again changes nothing.
    let from = Asker::Logic(here, w.regions[0].epoch());
    let late = CommandResult { id: CommandId { from, number: 0 }, result: Ok(()) };
    w.tell(here, Input::CommandResult(late));
    w.steps(2);
    assert_eq!(ends(&events), []);
}

#[test]
fn a_call_that_waits_in_a_checkpoint_is_not_applied_again_and_ends_unanswered() {
    let (mut w, _, _) = posted(RegionId(0), 1);
    let monster = w.spawn(MONSTER, Plane(0), Pos::ground(200, 200), RangeSet::FULL, None);
    w.steps(3);
    let id = CommandId { from: Asker::Process(1), number: 5 };
    w.regions[0].handle(called(id, set(monster, HP, 7)), &mut Vec::new());
    let kept = w.regions[0].checkpoint().expect("the tick is over");
    let (mut region, mut fx) = recover(&w.scene, kept, &[], 10);
    let ended = CommandResult { id, result: Err(CommandError::Unanswered) };
    let told = fx.iter().any(|effect| matches!(effect, Effect::Answer(1, told) if *told == ended));
    assert!(told, "{fx:?}");
    (1..4).for_each(|n| region.tick(purview::scene::Tick(w.tick.0 + n), &mut fx));
    let known = region.known(monster).filter(|known| known.is_real);
    assert_eq!(known.map(|known| known.properties.read::<i64>(HP)), Some(0));
}

#[test]
fn players_are_told_kicked_and_bonded_by_commands_of_any_region() {
    let here = RegionId(0);
    let (mut w, events, post) = posted(here, 1);
    let (near, a) = w.player(200, 200);
    let (far, b) = w.player(BEYOND.x, BEYOND.z);
    w.steps(3);
    assert_ne!(region_of(&w, b), here);
    let party = NamedBond::new("couple", 9);
    let say = |text: &'static [u8]| Bytes::from_static(text);
    *post.lock().unwrap() = vec![
        Command::Bonds(a, vec![party.clone()]),
        Command::Bonds(b, vec![party.clone()]),
        Command::Tell(b, say(b"you")),
    ];
    w.steps(3);
    *post.lock().unwrap() = vec![
        Command::TellGroup(Recipients::Bond(party), say(b"party")),
        Command::TellGroup(Recipients::Plane(SceneId(0), Plane(0)), say(b"plane")),
        Command::TellGroup(Recipients::Plane(SceneId(0), Plane(1)), say(b"nobody")),
    ];
    w.steps(4);
    let told = |kind, text| LogicMessage { kind, payload: say(text) };
    let both = [told(MessageKind::Bond, b"party"), told(MessageKind::Announcement, b"plane")];
    assert_eq!(w.clients[&near].told.messages, both);
    assert_eq!(w.clients[&far].told.messages[0], told(MessageKind::Tell, b"you"));
    assert_eq!(w.clients[&far].told.messages[1..], both);
    post.lock().unwrap().push(Command::Kick(b));
    w.steps(2);
    assert!(w.clients.get(&far).is_none_or(|client| client.kicked));
    w.steps(2);
    assert!(w.regions.iter().all(|r| r.find(b).is_none()));
    assert!(ends(&events).iter().all(|(_, refused)| refused.is_none()));
}

#[test]
fn a_call_is_told_the_end_of_its_command_wherever_the_entity_lives() {
    let (mut w, _, _) = posted(RegionId(0), 1);
    let monster = w.spawn(MONSTER, Plane(0), BEYOND, RangeSet::FULL, None);
    w.steps(3);
    let id = |number| CommandId { from: Asker::Process(5), number };
    for (number, command) in
        [(1, set(monster, HP, 7)), (2, set(monster, PropertyId(9), 7)), (3, Command::Kick(monster))]
    {
        w.tell(RegionId(0), called(id(number), command));
    }
    w.steps(3);
    let refused = Refusal::Property(PropertyRefusal::Unknown(PropertyId(9)));
    let want = [
        CommandResult { id: id(1), result: Ok(()) },
        CommandResult { id: id(2), result: Err(CommandError::Order(refused)) },
        CommandResult { id: id(3), result: Err(CommandError::NoPlayer(monster)) },
    ];
    assert_eq!(w.answers, want);
}

/// Every region's logic lets entities that wander over borders act, at random, each time with a number of its own.
/// How often each number was acted, and how often each command was said to be done; and the handoffs.
fn numbered_acts(seed: u64) -> (usize, u64) {
    let count = Arc::new(Mutex::new(0u64));
    let of = count.clone();
    let act = move || -> Act {
        let (count, mut rng) = (of.clone(), Rng::new(seed + 17));
        Box::new(move |region, _, commands: &mut Commands| {
            let known: Vec<EntityId> = region.inspect(None).entities.iter().map(|e| e.id).collect();
            for id in known {
                if rng.below(4) == 0 {
                    let mut count = count.lock().unwrap();
                    *count += 1;
                    commands.act(id, count.to_be_bytes().to_vec());
                }
            }
        })
    };
    let (mut w, events) = world(spec(), seed, act);
    let mut rng = Rng::new(seed);
    let mut places = BTreeMap::new();
    for _ in 0..12 {
        let pos = somewhere(&w, &mut rng);
        places.insert(w.spawn(MONSTER, Plane(0), pos, RangeSet::FULL, None), pos);
    }
    (0..60).for_each(|_| wander(&mut w, &mut rng, &mut places, 200));
    // Only what is on its way arrives from now on.
    let given = *count.lock().unwrap();
    let mut acted: BTreeMap<u64, usize> = BTreeMap::new();
    w.steps(8);
    for (_, event) in take(&events) {
        match event {
            LogicEvent::Acted { by: Speaker::Logic, payload, .. } => {
                let number = u64::from_be_bytes(payload[..].try_into().unwrap());
                *acted.entry(number).or_default() += 1;
            }
            LogicEvent::Refused { why, .. } => panic!("seed {seed}: {why}"),
            _ => {}
        }
    }
    acted.retain(|number, _| *number <= given);
    assert!(acted.values().all(|times| *times == 1), "seed {seed}: applied twice: {acted:?}");
    assert_eq!(acted.len() as u64, given, "seed {seed}: lost");
    (acted.len(), w.handoffs)
}

/// Regions are asked again after some ticks. Over a link that was cut both questions, and both answers, come together.
#[test]
fn a_second_answer_of_a_region_does_not_end_a_search_before_the_other_scenes_are_asked() {
    let (mut w, _, _) = posted(RegionId(0), 1);
    let first: Vec<RegionId> = w.scene.map.regions.iter().map(|region| region.id).collect();
    let scene = w.add_scene(spec());
    let (plane, pos, id) = (Plane(0), Pos::ground(200, 200), w.next_id());
    let spawn = Spawn::new(id, MONSTER, pos);
    w.tell(w.owner_of(scene, plane, pos), Input::Enter(Box::new(spawn)));
    w.steps(3);
    let call = CommandId { from: Asker::Process(5), number: 1 };
    w.tell(RegionId(0), called(call, Command::Despawn(id)));
    w.step();
    assert_eq!(w.answers, [], "it is searched");
    for from in first.into_iter().filter(|region| *region != RegionId(0)) {
        let sought = || Sought::Entity(id);
        let told = || Input::Locate(Locate::Told { sought: sought(), from, lives: None });
        w.tell(RegionId(0), told());
        w.tell(RegionId(0), told());
    }
    w.steps(6);
    assert_eq!(w.answers, [CommandResult { id: call, result: Ok(()) }]);
}

/// The entity's ghost stays with its former owner, which may be asked when its new owner has not got it yet.
#[test]
fn a_region_that_has_just_handed_an_entity_over_says_where_it_went() {
    let (mut w, _, _) = posted(RegionId(0), 1);
    let monster = w.spawn(MONSTER, Plane(0), BEYOND, RangeSet::FULL, None);
    w.steps(3);
    let (here, owner) = (RegionId(0), region_of(&w, monster));
    assert!(w.regions[0].find(monster).is_some_and(|entity| entity.ghost));
    let (by, mut fx) = (RegionId(3), Vec::new());
    let sought = Sought::Entity(monster);
    w.regions[0].handle(Input::Locate(Locate::Asked { sought, by }), &mut fx);
    w.regions[0].tick(w.tick.next(), &mut fx);
    let told = forwarded(by, &fx).into_iter().find_map(|input| match input {
        Input::Locate(Locate::Told { from, lives, .. }) => Some((from, lives)),
        _ => None,
    });
    assert_eq!(told, Some((here, Some(Found { id: monster, region: owner }))));
}

#[test]
fn each_command_is_applied_once_while_its_entity_walks_from_region_to_region() {
    let (mut acts, mut handoffs) = (0, 0);
    for seed in seeds(8) {
        let (a, h) = numbered_acts(seed);
        (acts, handoffs) = (acts + a, handoffs + h);
    }
    assert!(acts > 2_000 && handoffs > 50, "{acts} {handoffs}");
}

//! Commands of the game's logic for the player of a subject: found wherever it plays, done once, in their order.

use std::collections::BTreeMap;

use purview::scene::messages::{
    Asker, Bond, Command, CommandError, CommandId, CommandResult, MAX_BONDS, NamedBond, Order,
    SetProperty,
};
use purview::scene::properties::Value;
use purview::scene::region::Commands;
use purview::scene::{EntityId, Plane, Pos, RangeSet, RegionId};

use crate::commands::{BEYOND, called, ends, posted};
use crate::logic::{Act, HP, MONSTER, region_of, somewhere, spec, take, wander, world};
use crate::support::world::World;
use crate::support::{Rng, account_of, seeds};

fn of(id: EntityId, command: Command) -> Command {
    Command::OfSubject(account_of(id).subject().into(), Box::new(command))
}

fn couple(id: EntityId, group: u64) -> Command {
    of(id, Command::Bonds(EntityId::NONE, vec![NamedBond::new("couple", group)]))
}

fn bonds(w: &World, id: EntityId) -> Vec<Bond> {
    let region = &w.regions[region_of(w, id).0 as usize];
    region.inspect_player(id).expect("a player").ties.bonds.clone()
}

#[test]
fn a_player_is_found_by_its_subject_here_in_another_region_and_in_its_record() {
    let here = RegionId(0);
    let (mut w, events, post) = posted(here, 1);
    let [own, other, kicked] = [Pos::ground(200, 200), BEYOND, Pos::ground(9_000, 9_000)]
        .map(|pos| w.player(pos.x, pos.z).1);
    w.steps(3);
    assert!(region_of(&w, other) != here && region_of(&w, kicked) != here);
    let absent = EntityId(77);
    w.records.insert(account_of(absent).subject().into(), Vec::new());
    take(&events);
    let one = || vec![NamedBond::new("couple", 1)];
    *post.lock().unwrap() = vec![
        couple(own, 5),
        couple(other, 6),
        couple(absent, 7),
        couple(EntityId(78), 8),
        of(kicked, Command::Kick(EntityId::NONE)),
        of(other, Command::Despawn(other)),
        of(own, Command::Bonds(own, vec![NamedBond::new("couple", 1); MAX_BONDS + 1])),
        of(other, Command::Bonds(other, vec![NamedBond::new("crew", 1)])),
        Command::OfSubject("".into(), Box::new(Command::Bonds(own, one()))),
    ];
    w.steps(60);
    let told = ends(&events);
    // That this region has done its own is not told.
    let want = [
        (1, None),
        (2, None),
        (3, Some(CommandError::NoSubject)),
        (4, None),
        (5, Some(CommandError::NotBySubject)),
        (6, Some(CommandError::TooManyBonds(MAX_BONDS + 1))),
        (7, Some(CommandError::NoBondKind)),
        (8, Some(CommandError::NoSubject)),
    ];
    assert_eq!(told, want);
    let group = |group| vec![Bond { class: 0, group }];
    assert_eq!((bonds(&w, own), bonds(&w, other)), (group(5), group(6)));
    assert_eq!(w.records[account_of(absent).subject()], [NamedBond::new("couple", 7)]);
    assert!(w.regions.iter().all(|region| region.find(kicked).is_none()));
}

/// The region finds the player while it sends entries: the entry for the entity takes the place of no other one.
#[test]
fn a_player_that_comes_later_is_found_and_other_commands_of_that_tick_are_kept() {
    let (mut w, events, post) = posted(RegionId(0), 1);
    let monster = w.spawn(MONSTER, Plane(0), BEYOND, RangeSet::FULL, None);
    let next = EntityId(monster.0 + 1);
    w.steps(3);
    take(&events);
    post.lock().unwrap().push(couple(next, 5));
    w.steps(10);
    assert_eq!(w.regions[0].outbox_len(), 1, "nobody is found, and the region asks once more");
    assert_eq!(w.player(200, 200).1, next);
    let value = |n: u8| Value::of(&n).unwrap();
    for n in 0..30 {
        post.lock()
            .unwrap()
            .push(Command::Order(monster, Order::Set(SetProperty { id: HP, value: value(n) })));
        w.step();
    }
    w.steps(10);
    let told = ends(&events);
    assert_eq!(told, vec![(0, None); 31]);
    assert_eq!(bonds(&w, next), [Bond { class: 0, group: 5 }]);
}

#[test]
fn a_call_by_subject_is_done_where_the_player_is() {
    let (mut w, _, _) = posted(RegionId(0), 1);
    let (_, player) = w.player(BEYOND.x, BEYOND.z);
    w.steps(3);
    for (number, region) in [RegionId(0), region_of(&w, player)].into_iter().enumerate() {
        let id = CommandId { from: Asker::Process(5), number: number as u64 };
        let command = couple(player, 10 + id.number);
        w.tell(region, called(id, command));
        w.steps(6);
        assert_eq!(w.answers.pop(), Some(CommandResult { id, result: Ok(()) }));
        assert_eq!(bonds(&w, player), [Bond { class: 0, group: 10 + id.number }]);
    }
    let id = CommandId { from: Asker::Process(5), number: 2 };
    let command = of(player, Command::Despawn(player));
    w.tell(RegionId(0), called(id, command));
    w.step();
    let refused = CommandResult { id, result: Err(CommandError::NotBySubject) };
    assert_eq!(w.answers.pop(), Some(refused));
}

/// Players walk over borders while logic sets their bonds: the last ones that each region gave of a player come last.
#[test]
fn bonds_by_subject_are_set_in_their_order_while_players_walk_from_region_to_region() {
    for seed in seeds(8) {
        walk_with_bonds(seed);
    }
}

fn walk_with_bonds(seed: u64) {
    let mut players: BTreeMap<EntityId, Pos> = BTreeMap::new();
    let given: std::sync::Arc<std::sync::Mutex<BTreeMap<EntityId, u64>>> = Default::default();
    let of = given.clone();
    let act = move || -> Act {
        let (given, mut rng) = (of.clone(), Rng::new(seed + 17));
        Box::new(move |region, _, commands: &mut Commands| {
            if region.id() != RegionId(0) {
                return;
            }
            for (id, group) in given.lock().unwrap().iter_mut() {
                if rng.below(4) == 0 {
                    *group += 1;
                    let bonds = vec![NamedBond::new("couple", *group)];
                    commands.bonds_of(account_of(*id).subject(), bonds);
                }
            }
        })
    };
    let (mut w, events) = world(spec(), seed, act);
    let mut rng = Rng::new(seed);
    for _ in 0..8 {
        let pos = somewhere(&w, &mut rng);
        let (_, id) = w.player(pos.x, pos.z);
        players.insert(id, pos);
        given.lock().unwrap().insert(id, 0);
    }
    (0..60).for_each(|_| wander(&mut w, &mut rng, &mut players, 400));
    let last = given.lock().unwrap().clone();
    let groups: Vec<u64> = last.values().copied().collect();
    assert!(groups.iter().sum::<u64>() > 50, "seed {seed}: {groups:?}");
    given.lock().unwrap().clear();
    w.steps(60);
    for (id, group) in last {
        assert_eq!(bonds(&w, id), [Bond { class: 0, group }], "seed {seed}: {id}");
    }
    let refused = ends(&events).into_iter().filter(|(_, why)| why.is_some());
    assert_eq!(refused.collect::<Vec<_>>(), [], "seed {seed}");
}

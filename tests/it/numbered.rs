//! Numbered commands of logic workers: each is applied once and in order, wherever its entity is, and however often it
//! is sent.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use purview::scene::messages::{
    Command, EntityAction, Input, LogicEvent, NumberedCommand, NumberedResult, Order, Outcome,
    Presented, Spawn, Speaker,
};
use purview::scene::properties::Properties;
use purview::scene::region::{Commands, GameLogic, Recovery};
use purview::scene::{
    EntityId, Epoch, Facing, Kind, Plane, Pos, RangeSet, Region, RegionId, SceneSpec, Seq,
    Visibility,
};

use crate::support::Rng;
use crate::support::commands::order_of;
use crate::support::trial::scene;
use crate::support::world::World;
use crate::support::{seeds, whose};

const MONSTER: Kind = Kind(1);
const SOURCE: u64 = 3 << 32 | 5;
const ID: EntityId = EntityId(1_000_000);

#[derive(Default)]
struct Shared {
    /// Commands for the next call of a region's logic.
    post: BTreeMap<RegionId, Vec<Command>>,
    results: Vec<NumberedResult>,
    /// The actions, and the region that tells of them: at the next call of its logic, which may be after that of
    /// another region, to which the entity has gone since.
    acts: Vec<(RegionId, u8)>,
}

/// Gives what is posted, and notes what becomes of it.
struct Posted(Arc<Mutex<Shared>>);

impl GameLogic for Posted {
    fn tick(&mut self, region: &Region, events: &[LogicEvent], commands: &mut Commands) {
        let mut shared = self.0.lock().unwrap();
        for event in events {
            match event {
                LogicEvent::Numbered(result) => shared.results.push(*result),
                LogicEvent::Acted { by: Speaker::Logic, payload, .. } => {
                    shared.acts.push((region.id(), payload[0]));
                }
                _ => {}
            }
        }
        for command in shared.post.remove(&region.id()).unwrap_or_default() {
            commands.give(command);
        }
    }
}

fn spec() -> SceneSpec {
    let mut spec = scene(Visibility::Circle { enter_cm: 800, leave_cm: 900 }, 50);
    spec.kinds.push(purview::scene::spec::KindSpec::new("monster", 0));
    spec
}

fn world(seed: u64) -> (World, Arc<Mutex<Shared>>) {
    let mut w = World::new(spec(), seed);
    let shared = Arc::default();
    for region in &mut w.regions {
        let logic = Box::new(Posted(Arc::clone(&shared)));
        region.set_logic(logic, Box::new(|| Some(EntityId(1))));
    }
    (w, shared)
}

fn numbered(number: u64, command: Command) -> Command {
    let command = Some(command);
    Command::Numbered(Box::new(NumberedCommand { id: ID, source: SOURCE, number, command }))
}

fn spawn() -> Command {
    Command::Spawn(Box::new(Spawn {
        id: ID,
        kind: MONSTER,
        plane: Plane(0),
        pos: Pos::ground(200, 200),
        sight: RangeSet::FULL,
        left_at: None,
        facing: Facing::EAST,
        properties: Properties::default(),
        session: None,
        subject: Default::default(),
        bonds: Vec::new(),
    }))
}

fn act(n: u8) -> Command {
    Command::Order(ID, Order::Act(EntityAction::new(vec![n])))
}

fn home(w: &World) -> Option<RegionId> {
    let lives = |r: &&Region| r.known(ID).is_some_and(|known| known.is_real);
    w.regions.iter().find(lives).map(Region::id)
}

fn post(shared: &Mutex<Shared>, region: RegionId, command: Command) {
    shared.lock().unwrap().post.entry(region).or_default().push(command);
}

#[test]
fn each_command_is_applied_once_and_in_order_wherever_its_entity_walks() {
    let (mut crossed, mut repeated, mut gaps) = (0, 0, 0);
    for seed in seeds(12) {
        let (mut w, shared) = world(seed);
        let mut rng = Rng::new(seed);
        let regions: Vec<RegionId> = w.regions.iter().map(Region::id).collect();
        let any = |rng: &mut Rng| regions[rng.below(regions.len())];
        post(&shared, RegionId(0), numbered(1, spawn()));
        post(&shared, RegionId(0), numbered(1, spawn()));
        (0..2).for_each(|_| w.step());
        let mut last_home = home(&w);
        for _ in 0..400 {
            let applied = |r: &NumberedResult| (r.outcome == Outcome::Applied).then_some(r.number);
            let acked = shared.lock().unwrap().results.iter().filter_map(applied).max().unwrap();
            if acked >= 60 {
                break;
            }
            // What comes next, perhaps one too far, and something old.
            for number in [
                acked + 1,
                acked + 2,
                acked + 1 + rng.below(4) as u64,
                1 + rng.below(acked as usize) as u64,
            ] {
                let from = any(&mut rng);
                let command = if number == 1 { spawn() } else { act(number as u8) };
                post(&shared, from, numbered(number, command));
            }
            if let Some(at) = home(&w).filter(|_| rng.below(3) == 0) {
                let spec = &w.scene.spec;
                let x = rng.below(spec.width_cm as usize) as i32;
                let z = rng.below(spec.depth_cm as usize) as i32;
                w.tell(at, order_of(ID, Order::Move(Pos::ground(x, z))));
            }
            w.step();
            let now = home(&w);
            crossed += usize::from(now.is_some() && now != last_home);
            last_home = now.or(last_home);
        }
        let shared = shared.lock().unwrap();
        let want: Vec<u8> = (2..2 + shared.acts.len() as u8).collect();
        assert!(shared.acts.len() >= 58, "seed {seed}: {}", shared.acts.len());
        let mut all: Vec<u8> = shared.acts.iter().map(|(_, number)| *number).collect();
        all.sort_unstable();
        assert_eq!(all, want, "seed {seed}");
        for region in regions {
            let here = shared.acts.iter().filter(|(of, _)| *of == region);
            assert!(here.is_sorted_by_key(|(_, number)| *number), "seed {seed}: {:?}", shared.acts);
        }
        gaps += shared.results.iter().filter(|r| matches!(r.outcome, Outcome::Gap { .. })).count();
        repeated += shared.results.len() - shared.acts.len();
    }
    assert!(crossed > 50 && repeated > 200 && gaps > 50, "{crossed} {repeated} {gaps}");
}

#[test]
fn a_refused_command_uses_its_number_and_one_that_was_refused_on_the_way_counts() {
    let (mut w, shared) = world(1);
    post(&shared, RegionId(0), numbered(1, spawn()));
    w.step();
    let far = Command::Order(ID, Order::Move(Pos::ground(-1, 0)));
    post(&shared, RegionId(0), numbered(2, far));
    let counts = NumberedCommand { id: ID, source: SOURCE, number: 3, command: None };
    post(&shared, RegionId(0), Command::Numbered(Box::new(counts)));
    post(&shared, RegionId(0), numbered(4, act(4)));
    post(&shared, RegionId(0), numbered(9, act(9)));
    post(&shared, RegionId(0), numbered(5, Command::Despawn(ID)));
    (0..3).for_each(|_| w.step());
    let shared = shared.lock().unwrap();
    let outcomes: Vec<_> = shared.results.iter().map(|r| (r.number, r.outcome)).collect();
    assert!(matches!(outcomes[1], (2, Outcome::Refused(_))), "{outcomes:?}");
    let rest = [
        (3, Outcome::Applied),
        (4, Outcome::Applied),
        (9, Outcome::Gap { expected: 5 }),
        (5, Outcome::Applied),
    ];
    assert_eq!((outcomes[0], &outcomes[2..]), ((1, Outcome::Applied), &rest[..]));
    assert!(home(&w).is_none());
}

#[test]
fn an_entity_that_was_removed_is_not_created_again_by_a_repeated_command() {
    let (mut w, shared) = world(1);
    post(&shared, RegionId(0), numbered(1, spawn()));
    w.step();
    post(&shared, RegionId(0), numbered(2, Command::Despawn(ID)));
    w.step();
    post(&shared, RegionId(0), numbered(1, spawn()));
    (0..2).for_each(|_| w.step());
    assert!(home(&w).is_none());
    let shared = shared.lock().unwrap();
    assert!(shared.results.iter().all(|r| r.outcome == Outcome::Applied), "{:?}", shared.results);
}

#[test]
fn numbers_go_with_checkpoints_and_a_region_says_what_it_may_have_lost() {
    let (mut w, shared) = world(1);
    assert_eq!(w.regions[0].lost_since(), Some(purview::scene::Tick(0)));
    post(&shared, RegionId(0), numbered(1, spawn()));
    post(&shared, RegionId(0), numbered(2, act(2)));
    (0..3).for_each(|_| w.step());
    assert_eq!(w.regions[0].last_number(ID, SOURCE), 2);
    assert_eq!(w.regions[0].last_number(ID, SOURCE + 1), 0);
    let (scene, epoch) = (w.scene.clone(), Epoch(w.regions[0].epoch().0 + 1));
    let tick = w.regions[0].current_tick();
    let kept = w.regions[0].checkpoint().expect("the tick is over");
    let how = Recovery { ask: Vec::new(), grace_ticks: 10, owners: Vec::new() };
    let mut fx = Vec::new();
    let region = Region::recover(scene.clone(), RegionId(0), epoch, kept, how, &mut fx).unwrap();
    assert_eq!((region.last_number(ID, SOURCE), region.lost_since()), (2, Some(tick)));
    let frozen = w.regions.remove(0).freeze().expect("the tick is over");
    let region = Region::restore(scene, RegionId(0), epoch, frozen, &mut fx).unwrap();
    assert_eq!((region.last_number(ID, SOURCE), region.lost_since()), (2, None));
}

#[test]
fn the_numbers_of_a_player_are_there_when_its_session_presents_it_after_a_death() {
    let (mut w, shared) = world(1);
    let session = w.join(Plane(0), Pos::ground(200, 200), RangeSet::FULL);
    (0..2).for_each(|_| w.step());
    let id = w.clients[&session].entity;
    for number in 1..4 {
        let command = Some(Command::Order(id, Order::Act(EntityAction::new(vec![number as u8]))));
        let numbered = NumberedCommand { id, source: SOURCE, number, command };
        post(&shared, RegionId(0), Command::Numbered(Box::new(numbered)));
    }
    w.step();
    assert_eq!(w.regions[0].last_number(id, SOURCE), 3);
    let (epoch, tick) = (Epoch(w.regions[0].epoch().0 + 1), w.tick);
    let kept = w.regions[0].checkpoint().expect("the tick is over");
    let how = Recovery { ask: Vec::new(), grace_ticks: 10, owners: Vec::new() };
    let mut fx = Vec::new();
    let region = Region::recover(w.scene.clone(), RegionId(0), epoch, kept, how, &mut fx);
    let mut region = region.expect("it fits");
    let presented = Presented {
        id,
        session,
        subject: whose(id),
        to: RegionId(0),
        epoch: Epoch(2),
        acked: Seq(0),
        plane: Plane(0),
        pos: Pos::ground(200, 200),
        placed_by: Seq(0),
        own: None,
        tick,
        sight: RangeSet::FULL,
        facing: Facing::EAST,
        properties: Properties::default(),
        teleport: None,
        since_ms: u64::MAX,
    };
    region.handle(Input::Present(Box::new(presented)), &mut fx);
    region.tick(tick.next(), &mut fx);
    assert!(region.known(id).is_some_and(|known| known.is_real));
    assert_eq!(region.last_number(id, SOURCE), 3);
}

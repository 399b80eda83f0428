//! Commands for entities of other regions: each is taken once and in order, however often it comes, whoever dies.

use std::sync::{Arc, Mutex};

use purview::scene::messages::{
    After, Asker, Command, CommandError, CommandId, CommandResult, Effect, EntityAction, Input,
    LogicEvent, Mark, Order, SentCommand, Speaker,
};
use purview::scene::region::{Commands, GameLogic};
use purview::scene::{EntityId, Epoch, Kind, Plane, Pos, RangeSet, Region, RegionId};
use purview::scene::{SceneSpec, Tick, Visibility};

use crate::support::Rng;
use crate::support::alone::{forwarded, recover};
use crate::support::seeds;
use crate::support::trial::scene;
use crate::support::world::World;

const MONSTER: Kind = Kind(1);

#[derive(Default)]
struct Shared {
    /// Commands for the next call of the logic of region 0, and whether each is held.
    post: Vec<(Command, bool)>,
    acts: Vec<u8>,
    ends: Vec<Option<CommandError>>,
}

/// Gives what is posted, and notes what becomes of it.
struct Posted(Arc<Mutex<Shared>>);

impl GameLogic for Posted {
    fn tick(&mut self, region: &Region, events: &[LogicEvent], commands: &mut Commands) {
        let mut shared = self.0.lock().unwrap();
        for event in events {
            match event {
                LogicEvent::Acted { by: Speaker::Logic, payload, .. } => {
                    shared.acts.push(payload[0]);
                }
                LogicEvent::Done { .. } => shared.ends.push(None),
                LogicEvent::Refused { why, .. } => shared.ends.push(Some(*why)),
                _ => {}
            }
        }
        if region.id() == RegionId(0) {
            for (command, held) in shared.post.drain(..) {
                match held {
                    true => commands.give_held(command),
                    false => commands.give(command),
                };
            }
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
        give_logic(region, &shared);
    }
    (w, shared)
}

fn give_logic(region: &mut Region, shared: &Arc<Mutex<Shared>>) {
    region.set_logic(Box::new(Posted(Arc::clone(shared))), Box::new(|| Some(EntityId(1))));
}

fn act(id: EntityId, n: u8) -> Command {
    Command::Order(id, Order::Act(EntityAction::new(vec![n])))
}

/// The region whose entries come.
const SOURCE: RegionId = RegionId(8);

/// A place in region 1, near region 0.
const BEYOND: Pos = Pos { x: 3_400, y: 0, z: 200 };

/// An entry of another region for an entity.
fn entry(command: Command, number: u64, prev: u64) -> SentCommand {
    let id = CommandId { from: Asker::Logic(SOURCE, Epoch(5)), number };
    let mark = |number| match number {
        0 => Mark::default(),
        number => Mark { epoch: Epoch(5), number },
    };
    let after = Some(After { prev: mark(prev), oldest: mark(1) });
    SentCommand { id, command, searches: 0, after }
}

fn home(w: &World, id: EntityId) -> Option<RegionId> {
    let lives = |r: &&Region| r.known(id).is_some_and(|known| known.is_real);
    w.regions.iter().find(lives).map(Region::id)
}

#[test]
fn each_entry_is_taken_once_and_in_order_wherever_its_entity_walks() {
    let mut crossed = 0;
    for seed in seeds(12) {
        let (mut w, shared) = world(seed);
        let mut rng = Rng::new(seed);
        let id = w.spawn(MONSTER, Plane(0), Pos::ground(200, 200), RangeSet::FULL, None);
        w.steps(2);
        let mut last_home = home(&w, id);
        for turn in 0..400 {
            let known = shared.lock().unwrap().acts.len() as u64;
            if known >= 60 {
                break;
            }
            // What comes next, what is too early, and what was there before, by any region.
            for number in [known + 1, known + 2, 1 + rng.below(known as usize + 4) as u64] {
                let to = RegionId(rng.below(w.regions.len()) as u32);
                let sent = entry(act(id, number as u8), number, number - 1);
                w.tell(to, Input::Command(Box::new(sent)));
            }
            if rng.below(3) == 0 && turn % 2 == 0 {
                let (width, depth) =
                    (w.scene.spec.width_cm as usize, w.scene.spec.depth_cm as usize);
                let place = Pos::ground(rng.below(width) as i32, rng.below(depth) as i32);
                let order = crate::support::commands::order_of(id, Order::Move(place));
                if let Some(home) = home(&w, id) {
                    w.tell(home, order);
                }
            }
            w.step();
            let now = home(&w, id);
            crossed += usize::from(now.is_some() && now != last_home);
            last_home = now.or(last_home);
        }
        let mut acts = shared.lock().unwrap().acts.clone();
        assert!(acts.len() >= 60, "seed {seed}: {}", acts.len());
        // Regions tell of actions in their next tick, in any order of regions.
        acts.sort_unstable();
        let want: Vec<u8> = (1..=acts.len() as u8).collect();
        assert_eq!(acts, want, "seed {seed}");
    }
    assert!(crossed > 30, "{crossed}");
}

/// What a region tells another one of entries.
fn outcomes(fx: &[Effect]) -> Vec<CommandResult> {
    let told = forwarded(SOURCE, fx).into_iter().filter_map(|input| match input {
        Input::CommandResult(result) => Some(result),
        _ => None,
    });
    told.collect()
}

#[test]
fn that_an_entry_is_done_is_told_when_it_is_saved_and_again_when_it_comes_again() {
    let mut w = World::new(SceneSpec { region_lands_x: 8, region_lands_z: 8, ..spec() }, 1);
    w.regions.truncate(1);
    give_logic(&mut w.regions[0], &Arc::default());
    let id = w.spawn(MONSTER, Plane(0), Pos::ground(200, 200), RangeSet::FULL, None);
    w.steps(2);
    let (mut fx, tick) = (Vec::new(), w.tick);
    let region = &mut w.regions[0];
    region.set_durable(tick);
    let mut step = |region: &mut Region, n: u64| {
        fx.clear();
        region.tick(Tick(tick.0 + n), &mut fx);
        outcomes(&fx)
    };
    let far = Command::Order(id, Order::Move(Pos::ground(-1, 0)));
    region.handle(Input::Command(Box::new(entry(act(id, 1), 1, 0))), &mut Vec::new());
    region.handle(Input::Command(Box::new(entry(far.clone(), 2, 1))), &mut Vec::new());
    assert_eq!((step(region, 1), step(region, 2)), (vec![], vec![]));
    region.set_durable(Tick(tick.0 + 1));
    let told = step(region, 3);
    assert_eq!((told.len(), told[0].result.is_ok(), told[1].result.is_err()), (2, true, true));
    // The answer is lost, and the entry comes again: the outcome is the same.
    region.handle(Input::Command(Box::new(entry(far, 2, 1))), &mut Vec::new());
    step(region, 4);
    region.set_durable(Tick(tick.0 + 4));
    assert_eq!(step(region, 5), told[1..]);
    // The entity ends: it is still known what it has taken, and what comes later is refused.
    region.handle(Input::Command(Box::new(entry(Command::Despawn(id), 3, 2))), &mut Vec::new());
    step(region, 6);
    region.handle(Input::Command(Box::new(entry(Command::Despawn(id), 3, 2))), &mut Vec::new());
    region.handle(Input::Command(Box::new(entry(act(id, 4), 4, 3))), &mut Vec::new());
    step(region, 7);
    region.set_durable(Tick(tick.0 + 7));
    let results: Vec<_> = step(region, 8).iter().map(|told| told.result).collect();
    assert_eq!(results, [Ok(()), Ok(()), Err(CommandError::Unknown(id))]);
}

#[test]
fn what_was_taken_and_what_waits_goes_with_checkpoints_and_moves() {
    let (mut w, shared) = world(1);
    let here = w.spawn(MONSTER, Plane(0), Pos::ground(200, 200), RangeSet::FULL, None);
    let there = w.spawn(MONSTER, Plane(0), BEYOND, RangeSet::FULL, None);
    w.steps(3);
    let home = home(&w, there).expect("it lives");
    assert_ne!(home, RegionId(0));
    w.tell(RegionId(0), Input::Command(Box::new(entry(act(here, 1), 1, 0))));
    // It is held, and nothing is saved.
    w.regions[0].set_durable(w.tick);
    shared.lock().unwrap().post.push((act(there, 7), true));
    w.steps(30);
    assert_eq!((w.regions[0].outbox_len(), &shared.lock().unwrap().acts[..]), (1, &[1][..]));
    let mark = Mark { epoch: Epoch(5), number: 1 };
    assert_eq!(w.regions[0].last_taken(here, SOURCE), mark);

    let kept = w.regions[0].checkpoint().expect("the tick is over");
    let (scene, epoch) = (w.scene.clone(), Epoch(9));
    let (recovered, mut fx) = recover(&scene, kept, &[], 10);
    assert_eq!((recovered.outbox_len(), recovered.last_taken(here, SOURCE)), (1, mark));
    assert_eq!(recovered.lost_since(), Some(w.tick));
    let empty = Region::new(scene.clone(), RegionId(0)).unwrap();
    let frozen = std::mem::replace(&mut w.regions[0], empty).freeze().expect("the tick is over");
    let mut moved = Region::restore(scene, RegionId(0), epoch, frozen, &mut fx).unwrap();
    assert_eq!((moved.outbox_len(), moved.last_taken(here, SOURCE)), (1, mark));
    assert_eq!(moved.lost_since(), None);
    give_logic(&mut moved, &shared);
    w.regions[0] = moved;
    // Where nothing is ever undone a held command leaves at once.
    w.steps(40);
    assert_eq!(shared.lock().unwrap().acts, [1, 7]);
    assert_eq!((w.regions[0].outbox_len(), shared.lock().unwrap().ends.clone()), (0, vec![None]));
}

//! Updates by error: what clients extrapolate from positions and velocities, against true positions.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::small_scene;
use crate::support::world::{Weather, World};
use crate::support::{Replay, Rng, seeds};
use purview::scene::messages::Order;
use purview::scene::movement::ServerMs;
use purview::scene::spec::{Rates, UpdateError};
use purview::scene::{EntityId, Facing, Kind, Plane, Pos, RangeSet, SceneSpec, SessionId};

const SIDE: i32 = 19_200;
/// Centimetres per tick.
const STEP: i32 = 60;
/// Five quarters of the longest step, twice: a start may come late and be taken for one at twice the speed.
const LATE_CM: u64 = 212;
const RATES: Rates = Rates { near: 5, middle: 10, far: 40 };

/// Nine regions of 64 m in which clients send positions.
fn scene(rates: Rates, update_error: Option<UpdateError>) -> SceneSpec {
    let view_margin_cm = SceneSpec::default().view_margin_cm;
    let regions = SIDE / 6_400;
    SceneSpec { rates, update_error, view_margin_cm, ..small_scene((regions, regions), 6_400, 800) }
}

/// A player that walks straight on for a while, at a tenth of a step for each centimetre.
struct Walker {
    session: SessionId,
    pos: Pos,
    step: (i32, i32),
    facing: Facing,
    /// Its client's message is late: the next tick brings two.
    late: bool,
}

struct Trial {
    w: World,
    rng: Rng,
    walkers: Vec<Walker>,
    /// Percentage of ticks in which a walker turns.
    turns: u64,
    /// Percentage of ticks in which a walker faces another way, wherever it goes.
    faces: u64,
    /// Percentage of messages that miss their tick.
    jitter: u64,
    /// Whether viewers must show everything within the tolerance in every tick.
    strict: bool,
    /// Pairs of which one was shown a step too far ahead or behind in the last tick: a message of its client may
    /// have come early or late.
    late: BTreeSet<(EntityId, EntityId)>,
    /// Squared errors, and the number of entities shown, summed over ticks.
    off: f64,
    seen: u64,
}

impl Trial {
    fn new(spec: SceneSpec, seed: u64, players: usize) -> Trial {
        let (mut w, mut rng) = (World::new(spec, seed ^ 0x1234), Rng::new(seed));
        let mut walkers = Vec::new();
        for _ in 0..players {
            let pos = Pos::ground(rng.range(4_000, 15_000), rng.range(4_000, 15_000));
            let session = w.join(Plane(0), pos, RangeSet::FULL);
            let (step, facing) = ((0, 0), Facing::default());
            walkers.push(Walker { session, pos, step, facing, late: false });
        }
        w.spawn(Kind(1), Plane(0), Pos::ground(9_000, 9_000), RangeSet::FULL, None);
        Trial {
            w,
            rng,
            walkers,
            turns: 4,
            faces: 0,
            jitter: 0,
            strict: true,
            late: BTreeSet::new(),
            off: 0.0,
            seen: 0,
        }
    }

    fn step(&mut self, all_stand: bool) {
        for walker in &mut self.walkers {
            if all_stand {
                (walker.step, walker.late) = ((0, 0), false);
            } else if self.rng.chance(self.turns) {
                let turn = |rng: &mut Rng| rng.range(-STEP, STEP + 1);
                let stands = self.rng.chance(30);
                walker.step =
                    if stands { (0, 0) } else { (turn(&mut self.rng), turn(&mut self.rng)) };
            }
            let at = |v: i32, step: i32| (v + step).clamp(100, SIDE - 100);
            let next =
                Pos::ground(at(walker.pos.x, walker.step.0), at(walker.pos.z, walker.step.1));
            let moved = next != walker.pos;
            walker.pos = next;
            walker.late = moved && !walker.late && self.rng.chance(self.jitter);
            if (moved || all_stand) && !walker.late {
                self.w.walk(walker.session, next);
            }
            if self.faces > 0 && !all_stand && self.rng.chance(self.faces) {
                walker.facing = Facing(self.rng.range(0, 1 << 16) as u16);
                self.w.order(walker.session, Order::Face(walker.facing));
            }
        }
        self.w.step();
        self.check();
    }

    fn check(&mut self) {
        let now = ServerMs(self.w.tick.0 * 100);
        let rule = self.w.scene.spec.update_error.unwrap_or_default();
        let before = std::mem::take(&mut self.late);
        for client in self.w.clients.values() {
            let eye = self.w.truth[&client.entity].pos;
            for (id, (told, _)) in &client.shown {
                let trajectory = client.trajectories.get(id);
                let shown = trajectory.map_or(*told, |trajectory| trajectory.position(now));
                let truth = self.w.truth[id].pos;
                let off2 = shown.dist2(truth);
                // Positions are told in whole centimetres.
                let allowed = rule.tolerance2(eye.dist2(truth)).isqrt() + 2;
                let pair = (client.entity, *id);
                let off = off2.isqrt();
                let late = off <= allowed + LATE_CM && !before.contains(&pair);
                if off > allowed {
                    self.late.insert(pair);
                }
                assert!(
                    !self.strict || off <= allowed || late,
                    "{} shows {id} at {shown:?} in tick {}; it is at {truth:?}, {} cm off",
                    client.entity,
                    self.w.tick,
                    off
                );
                self.off += off2 as f64;
                self.seen += 1;
            }
        }
    }

    fn run(&mut self, ticks: u64) {
        (0..ticks).for_each(|_| self.step(false));
    }

    /// All stand; the rates have passed; every client shows every entity exactly where it is.
    fn rest(&mut self) {
        (0..45).for_each(|_| self.step(true));
        (self.strict, self.off) = (true, 0.0);
        self.step(true);
        assert_eq!(self.off, 0.0, "a last position was never told");
        let id = |walker: &Walker| self.w.clients[&walker.session].entity;
        let facings: BTreeMap<_, _> = self.walkers.iter().map(|w| (id(w), w.facing)).collect();
        for client in self.w.clients.values() {
            for id in client.shown.keys().filter(|id| facings.contains_key(id)) {
                assert_eq!(client.told.facings[id], facings[id], "{} of {id}", client.entity);
            }
        }
    }

    fn told(&self) -> u64 {
        self.w.clients.values().map(|c| c.updates).sum()
    }
}

fn trials(most: u64, spec: &SceneSpec, play: fn(&mut Trial)) {
    for seed in seeds(most) {
        let _replay = Replay("updates", seed);
        let mut trial = Trial::new(spec.clone(), seed, 40);
        trial.w.step();
        play(&mut trial);
        trial.rest();
    }
}

#[test]
fn no_viewer_shows_an_entity_farther_off_than_the_tolerance() {
    trials(4, &scene(RATES, Some(UpdateError::default())), |t| {
        t.run(300);
        assert!(t.w.handoffs > 20, "{} handoffs", t.w.handoffs);
    });
}

#[test]
fn the_tolerance_holds_while_messages_of_clients_come_in_bursts() {
    trials(3, &scene(RATES, Some(UpdateError::default())), |t| {
        t.jitter = 20;
        t.run(300);
    });
}

#[test]
fn the_tolerance_holds_while_walkers_turn_their_heads() {
    trials(3, &scene(RATES, Some(UpdateError::default())), |t| {
        t.faces = 15;
        t.run(300);
        let turns: usize = t.w.clients.values().map(|c| c.told.turns).sum();
        assert!(turns > 500, "{turns} turns");
    });
}

/// A player that walks straight on and looks around is told of as often as one that looks ahead.
#[test]
fn a_turn_ends_no_trajectory() {
    let watch = |looks_around: bool| {
        let mut w = World::new(scene(RATES, Some(UpdateError::default())), 1);
        let walker = w.join(Plane(0), Pos::ground(6_500, 7_000), RangeSet::FULL);
        let viewer = w.join(Plane(0), Pos::ground(7_000, 7_000), RangeSet::FULL);
        w.steps(5);
        let mut facing = Facing::default();
        for i in 0..60 {
            w.walk(walker, Pos::ground(6_500 + 20 * i, 7_000));
            if looks_around && i % 6 == 0 {
                facing = Facing(1_000 * (i as u16 + 1));
                w.order(walker, Order::Face(facing));
            }
            w.step();
        }
        w.steps(10);
        let (id, viewer) = (w.clients[&walker].entity, &w.clients[&viewer]);
        assert_eq!(viewer.told.facings[&id], facing);
        (viewer.updates, viewer.told.turns)
    };
    let ((ahead, none), (around, turns)) = (watch(false), watch(true));
    assert_eq!((ahead, none), (around, 0));
    assert!(turns > 5, "{turns} turns");
}

#[test]
fn the_tolerance_holds_while_regions_migrate() {
    trials(2, &scene(RATES, Some(UpdateError::default())), |t| {
        t.w.restless = 2;
        t.run(200);
        assert!(t.w.relocations > 50, "{} relocations", t.w.relocations);
    });
}

#[test]
fn after_faults_every_last_position_is_told() {
    trials(3, &scene(RATES, Some(UpdateError::default())), |t| {
        t.strict = false;
        t.w.weather = Weather { skip: 10, lose: 10, delay: 20, mute: 0 };
        t.run(150);
        t.w.weather = Weather::default();
    });
}

/// Against rates alone, for walkers that turn every five seconds: less is told, and what clients show is nearer to the truth.
#[test]
fn both_error_and_messages_are_less_than_by_rates_alone() {
    let by_rates = Rates { near: 1, middle: 10, far: 40 };
    for jitter in [0, 10] {
        let run = |spec: SceneSpec| {
            let mut trial = Trial::new(spec, 5, 40);
            (trial.strict, trial.turns, trial.jitter) = (false, 2, jitter);
            trial.run(300);
            (trial.told(), (trial.off / trial.seen as f64).sqrt())
        };
        let (told, off_cm) = run(scene(RATES, Some(UpdateError::default())));
        let (told_by_rates, off_by_rates_cm) = run(scene(by_rates, None));
        let figures =
            format!("{told} and {off_cm:.0} cm, {told_by_rates} and {off_by_rates_cm:.0} cm");
        assert!(told < told_by_rates && off_cm * 4.0 < off_by_rates_cm, "{figures}");
    }
}

#[test]
fn a_scene_that_tells_every_change_in_its_tick_tells_positions_alone() {
    let every_tick = Rates { near: 1, middle: 1, far: 1 };
    trials(1, &scene(every_tick, Some(UpdateError { min_cm: 1, share_permille: 0 })), |t| {
        t.run(50);
        assert!(t.w.clients.values().all(|c| c.trajectories.is_empty()));
    });
}

/// With room for a few moves per frame, the worst error goes first and all is told at last.
#[test]
fn under_a_budget_every_last_position_is_told() {
    let spec = scene(RATES, Some(UpdateError::default()));
    trials(2, &SceneSpec { frame_budget_bytes: 100, ..spec }, |t| {
        t.strict = false;
        t.run(100);
    });
}

//! A fault at any step of a negotiation leaves no half-open entry behind (DESIGN, "VIEWS"). A small
//! crowd on a border negotiates. The same history runs again and again, each time with a fault at
//! another step. After every step of every run V1 to V4 must hold (see `support/safety.rs`). At the
//! end all lists must be greedy, no register half open, no ghost left, and no message in flight.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use crate::support::brute;
use crate::support::crash::Crash;
use crate::support::safety::NEWS_TICKS;
use crate::support::small_scene;
use crate::support::world::World;
use crate::support::{Rng, say_how_to_replay, seeds, seeds_are_given};
use purview::scene::messages::Bond;
use purview::scene::{
    EntityId, Epoch, Plane, Pos, RangeSet, SceneId, SceneSpec, SessionId, Visibility,
};

/// Side of a region, and about the range of view, centimetres.
const SIDE: i32 = 1_600;
/// How far beyond a border the handoff happens, centimetres.
const MARGIN: i32 = 50;
/// Ticks of faults; afterwards all players stand still.
const UNREST: u64 = 5;
/// Ticks until the crowd is at rest if no region has crashed.
const CALM: u64 = 6;

/// `columns` x `rows` regions.
fn scene(columns: i32, rows: i32, cap: usize) -> SceneSpec {
    SceneSpec {
        visibility: Visibility::Patches,
        patch_margin_cm: Some(0),
        view_cap: cap,
        handoff_margin_cm: MARGIN,
        ..small_scene((columns, rows), SIDE, 400)
    }
}

/// What happens to a player, or to the region that owns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Crash(Crash),
    /// The player is handed off to the region beyond the next border.
    Handoff,
    Leave,
    /// The player changes to another, empty plane, or back.
    Plane,
    /// The player teleports away within its region.
    TeleportNear,
    /// The player teleports into another region.
    TeleportFar,
    /// The player teleports into another scene.
    TeleportOut,
    /// The player joins or leaves the party.
    Bonds,
}

/// The bond of the party, which two players have from the start.
const PARTY: Bond = Bond { class: 1, group: 7 };

const CRASHES: [Fault; 4] =
    [crash(Some(0), false), crash(Some(0), true), crash(Some(3), false), crash(None, true)];

const FAULTS: [Fault; 7] = [
    Fault::Handoff,
    Fault::Leave,
    Fault::Plane,
    Fault::TeleportNear,
    Fault::TeleportFar,
    Fault::TeleportOut,
    Fault::Bonds,
];

const fn crash(back_in: Option<u64>, loses_sent: bool) -> Fault {
    Fault::Crash(Crash { back_in, loses_sent })
}

impl Fault {
    /// Applies the fault to the player of this session; false if that is impossible.
    fn strike(self, w: &mut World, who: SessionId) -> bool {
        let Some(client) = w.clients.get(&who).filter(|c| c.epoch > Epoch(0) && !c.leaving) else {
            return false;
        };
        let (id, region) = (client.entity, client.region);
        if w.truth[&id].scene != SceneId(0) || w.down.contains_key(&region) {
            return false;
        }
        let (plane, pos) = (w.truth[&id].plane, w.truth[&id].pos);
        let (width, depth) = (w.scene.spec.width_cm, w.scene.spec.depth_cm);
        match self {
            Fault::Crash(how) => w.crash(region, how),
            Fault::Handoff => {
                let border = (pos.x + SIDE / 2) / SIDE * SIDE;
                let border = border.clamp(SIDE, width - SIDE);
                let past = if pos.x < border { MARGIN + 1 } else { -MARGIN - 1 };
                w.walk(who, Pos::ground(border + past, pos.z));
            }
            Fault::Leave => w.leave(who),
            Fault::Plane => w.teleport(who, Plane(1 - plane.0), pos),
            Fault::TeleportNear => {
                let corner = |at: i32| at / SIDE * SIDE + (SIDE - 1 - at % SIDE) / 400 * 400;
                w.teleport(who, plane, Pos::ground(corner(pos.x), corner(pos.z)));
            }
            Fault::TeleportFar => {
                w.teleport(who, plane, Pos::ground(width - 1 - pos.x, depth - 1 - pos.z));
            }
            Fault::TeleportOut => w.teleport_to(who, SceneId(1), Plane(0), Pos::ground(100, 100)),
            Fault::Bonds => {
                let alone = w.truth[&id].bonds.is_empty();
                w.bond(who, if alone { &[PARTY] } else { &[] });
            }
        }
        true
    }
}

/// A fault, its target (the n-th player that joined), and the step before which it happens.
type Plan = Vec<(Fault, usize, u64)>;

/// A small crowd with its history.
struct Drill {
    w: World,
    rng: Rng,
    sessions: Vec<SessionId>,
    struck: Rc<RefCell<usize>>,
    crashes: bool,
    /// The step after which all messages of the fault phase have been sent.
    said: u64,
}

impl Drill {
    fn new(spec: &SceneSpec, seed: u64, plan: &Plan) -> Drill {
        let mut rng = Rng::new(seed ^ 0x1ead);
        let mut w = World::new(spec.clone(), seed);
        w.add_scene(scene(1, 1, spec.view_cap));
        w.safety = Some(Box::default());
        w.encode = true;
        let players = 3 + rng.below(3);
        let near = |rng: &mut Rng, end: i32| {
            let middle =
                if end > SIDE { SIDE * (1 + rng.range(0, end / SIDE - 1)) } else { SIDE / 2 };
            (middle + rng.range(-8, 9) * 50).clamp(0, end - 1)
        };
        let sessions = (0..players)
            .map(|_| {
                let at = Pos::ground(near(&mut rng, spec.width_cm), near(&mut rng, spec.depth_cm));
                w.join(Plane(0), at, RangeSet::FULL)
            })
            .collect::<Vec<_>>();
        sessions[..2].iter().for_each(|session| w.bond(*session, &[PARTY]));
        let struck = Rc::new(RefCell::new(0));
        for (fault, who, step) in plan.iter().copied() {
            let (struck, session) = (struck.clone(), sessions[who % players]);
            let strike =
                move |w: &mut World| *struck.borrow_mut() += usize::from(fault.strike(w, session));
            w.strikes.entry(step).or_default().push(Box::new(strike));
        }
        let crashes = plan.iter().any(|(fault, ..)| matches!(fault, Fault::Crash(_)));
        Drill { w, rng, sessions, struck, crashes, said: 0 }
    }

    /// All players walk for some ticks, up to top speed.
    fn unrest(&mut self) {
        for _ in 0..UNREST {
            for s in self.sessions.clone() {
                let to = (self.rng.range(-141, 142), self.rng.range(-141, 142));
                let walks = self.rng.chance(60);
                let Some(c) = self.w.clients.get(&s).filter(|c| walks && c.epoch > Epoch(0)) else {
                    continue;
                };
                let Some(t) = self.w.truth.get(&c.entity).filter(|t| t.scene == SceneId(0)) else {
                    continue;
                };
                let spec = &self.w.scene.spec;
                let x = (t.pos.x + to.0).clamp(0, spec.width_cm - 1);
                let z = (t.pos.z + to.1).clamp(0, spec.depth_cm - 1);
                self.w.walk(s, Pos::ground(x, z));
            }
            self.w.step();
        }
    }

    /// No player moves any more, and all consequences have been noticed.
    fn rest(&mut self) {
        let ticks = if self.crashes { NEWS_TICKS } else { CALM };
        self.w.steps(ticks);
        // Bonds set by the logic may have been lost with a region: set them again.
        for session in self.w.clients.keys().copied().collect::<Vec<_>>() {
            self.w.tell_bonds(session);
        }
        self.w.steps(3);
        let before = self.w.view_messages;
        self.w.steps(2);
        assert_eq!(self.w.view_messages, before, "negotiation goes on although no player moves");
    }

    fn judge(&mut self) {
        let w = &self.w;
        w.safety.as_ref().unwrap().nothing_is_left(w);
        let links = w.links();
        assert_eq!(brute::blocking(&w.scene, &w.truth, &links), [], "blocking pairs");
        if w.scene.spec.view_margin_cm == 0 {
            assert_eq!(links, brute::greedy(&w.scene, &w.truth, &links), "the greedy lists");
        }
        for c in w.clients.values() {
            let view: BTreeSet<EntityId> =
                w.players()[&c.entity].view.iter().map(|e| e.id).collect();
            assert_eq!(c.decoded, view, "what the client of {} shows", c.entity);
        }
    }

    fn run(&mut self) {
        self.unrest();
        self.w.step();
        self.said = self.w.steps;
        self.rest();
        self.judge();
    }
}

/// Runs a plan; a failure says how to replay it.
fn drill(spec: &SceneSpec, seed: u64, plan: &Plan) -> Drill {
    let mut d = Drill::new(spec, seed, plan);
    let run = std::panic::AssertUnwindSafe(|| d.run());
    if let Err(why) = std::panic::catch_unwind(run) {
        eprintln!("seed {seed} failed in tick {}, step {}, with {plan:?}", d.w.tick, d.w.steps);
        say_how_to_replay("liveness", seed);
        std::panic::resume_unwind(why);
    }
    d
}

/// Each fault, for each player, at each step of each history; one in `one_in` of them without
/// `PURVIEW_SEEDS`.
fn at_every_step(spec: &SceneSpec, faults: &[Fault], histories: u64, one_in: usize) {
    let one_in = if seeds_are_given() { 1 } else { one_in };
    let (mut runs, mut struck, mut odd) = (0, 0, 0);
    for seed in seeds(histories) {
        let calm = drill(spec, seed, &Vec::new());
        for step in 1..=calm.said {
            for (i, fault) in faults.iter().enumerate() {
                for who in 0..calm.sessions.len() {
                    let n = (step as usize * faults.len() + i) * calm.sessions.len() + who;
                    if n % one_in == seed as usize % one_in {
                        let d = drill(spec, seed, &vec![(*fault, who, step)]);
                        runs += 1;
                        struck += *d.struck.borrow();
                        odd += d.w.safety.as_ref().unwrap().odd_steps;
                    }
                }
            }
        }
    }
    println!("{runs} runs, {struck} faults, {odd} steps of disagreement");
    assert!(struck * 2 > runs, "of {runs} faults only {struck} could happen");
    assert!(odd > 0 || seeds_are_given(), "no pair ever disagreed: the test shows nothing");
}

/// Several faults in one history, at steps drawn from the seed.
fn several_at_once(spec: &SceneSpec, histories: u64) {
    let (mut most, mut crashed) = (0, 0);
    for seed in seeds(histories) {
        let said = drill(spec, seed, &Vec::new()).said;
        let mut rng = Rng::new(seed ^ 0xfa17);
        for _ in 0..20 {
            let plan: Plan = (0..2 + rng.below(4))
                .map(|_| {
                    let crash = rng.chance(15);
                    let kinds: &[Fault] = if crash { &CRASHES } else { &FAULTS };
                    (kinds[rng.below(kinds.len())], rng.below(5), 1 + rng.next() % said)
                })
                .collect();
            let d = drill(spec, seed, &plan);
            most = most.max(*d.struck.borrow());
            crashed += usize::from(d.crashes);
        }
    }
    println!("up to {most} faults in a history, {crashed} histories with a crash");
    assert!(most >= 3 || seeds_are_given(), "never more than {most} faults in a history");
    assert!(crashed > 0 || seeds_are_given(), "no region ever crashed");
}

#[test]
fn a_fault_of_a_player_at_any_step_leaves_nothing_behind() {
    at_every_step(&scene(2, 1, 1), &FAULTS, 2, 1);
}

#[test]
fn a_fault_of_a_player_between_three_regions_leaves_nothing_behind() {
    at_every_step(&scene(3, 1, 1), &FAULTS, 3, 5);
}

#[test]
fn a_fault_of_a_player_near_a_corner_of_four_regions_leaves_nothing_behind() {
    at_every_step(&scene(2, 2, 2), &FAULTS, 4, 61);
}

#[test]
fn a_fault_of_a_player_with_circles_and_a_margin_leaves_nothing_behind() {
    let visibility = Visibility::Circle { enter_cm: 600, leave_cm: 700 };
    let spec = SceneSpec { visibility, view_margin_cm: 100, ..scene(2, 1, 2) };
    at_every_step(&spec, &FAULTS, 3, 5);
}

#[test]
fn a_region_that_crashes_at_any_step_leaves_nothing_behind() {
    at_every_step(&scene(2, 1, 1), &CRASHES, 2, 1);
}

#[test]
fn a_crash_of_one_of_four_regions_at_any_step_leaves_nothing_behind() {
    at_every_step(&scene(2, 2, 2), &CRASHES, 4, 61);
}

#[test]
fn several_faults_at_once_leave_nothing_behind() {
    several_at_once(&scene(2, 2, 1), 12);
}

#[test]
fn several_faults_at_once_between_three_regions_leave_nothing_behind() {
    several_at_once(&scene(3, 1, 2), 20);
}

//! Judged movement in a world of many regions: views over true positions, and clients that compute
//! the positions of other entities from trajectories that they were told once.

use std::collections::{BTreeMap, VecDeque};

use crate::support::brute::{self, Pair, in_range};
use crate::support::commands::{motion_of, order_of};
use crate::support::small_scene;
use crate::support::world::{Weather, World};
use crate::support::{Replay, Rng, seeds};
use purview::scene::messages::{Motion, Order};
use purview::scene::movement::{
    Blend, ClientMs, Extrapolator, Go, Move, MoveCommand, Open, Own, Path, Predictor, Rules,
    ServerMs, Step, Steps, Vector, Wish,
};
use purview::scene::spec::{KindSpec, MoveSpec, Moves, Rates, UpdateError};
use purview::scene::{
    EntityId, Epoch, Kind, Plane, Pos, RangeSet, Rect, SceneSpec, Seq, SessionId, Tick, Visibility,
};

const SIDE: i32 = 9_600;
const SPEED: u32 = 500;
const TOP: u32 = 600;
const TICK_MS: u64 = 100;
const TILES: Open = Open { tile_cm: 100 };

/// Nine regions of 32 m with judged moves.
fn scene(visibility: Visibility, cap: usize) -> SceneSpec {
    let player = KindSpec { speed_cm_s: Some(SPEED as i32), ..KindSpec::new("player", 0) };
    let view_margin_cm = SceneSpec::default().view_margin_cm;
    SceneSpec {
        kinds: vec![player, KindSpec::new("npc", 0)],
        visibility,
        view_cap: cap,
        view_margin_cm,
        top_speed_cm_s: TOP as i32,
        moves: MoveSpec { mode: Moves::Judged, ..MoveSpec::default() },
        ..small_scene((SIDE / 3_200, SIDE / 3_200), 3_200, 400)
    }
}

fn rules() -> Rules {
    Rules::within(Rect { x0: 0, z0: 0, x1: SIDE, z1: SIDE })
}

/// What a client sends next.
enum Said {
    Command(MoveCommand),
    Teleport(Plane, Pos),
}

/// A client behind a slow network: honest, or sending arbitrary commands.
struct Walker {
    session: SessionId,
    honest: bool,
    /// Lead of its clock over the server's.
    ahead_ms: u64,
    predictor: Predictor,
    up: VecDeque<(u64, Said)>,
    down: VecDeque<(u64, Option<Own>, Seq)>,
    seq: Seq,
    next_wish: u64,
    rests: bool,
}

impl Walker {
    fn new(session: SessionId, pos: Pos, now: u64, rng: &mut Rng) -> Walker {
        let ahead_ms = rng.next() % 100_000;
        let clock = ClientMs(now + ahead_ms);
        Walker {
            session,
            honest: rng.chance(75),
            ahead_ms,
            predictor: Predictor::new(clock, pos, 0, rules(), Blend::default()),
            up: VecDeque::new(),
            down: VecDeque::new(),
            seq: Seq(0),
            next_wish: now,
            rests: false,
        }
    }

    fn send(&mut self, now: u64, said: Said, rng: &mut Rng) {
        let last = self.up.back().map_or(0, |(at, _)| *at);
        self.up.push_back((last.max(now + 20 + rng.next() % 250), said));
        self.seq = self.seq.next();
    }

    /// A frame of the game at `now` by the server's clock.
    fn frame(&mut self, now: u64, rng: &mut Rng) {
        let clock = ClientMs(now + self.ahead_ms);
        while self.down.front().is_some_and(|(at, ..)| *at <= now) {
            let Some((_, own, ack)) = self.down.pop_front() else { break };
            if let Some(own) = own {
                self.predictor.corrected(clock, &own.correction());
            }
            self.predictor.acked(clock, ack);
        }
        if !self.honest && !self.rests && rng.chance(5) {
            let command = self.nonsense(clock, rng);
            return self.send(now, Said::Command(command), rng);
        }
        if self.rests {
            self.predictor.wish(Wish::Stand);
        } else if now >= self.next_wish {
            self.next_wish = now + 100 + rng.next() % 2_500;
            self.predictor.wish(wish(rng));
        }
        while let Some(command) = self.predictor.poll(clock, self.seq.next(), &TILES, Plane(0)) {
            self.send(now, Said::Command(command), rng);
        }
    }

    /// An arbitrary command.
    fn nonsense(&self, clock: ClientMs, rng: &mut Rng) -> MoveCommand {
        let near = self.predictor.position(clock);
        let off = if rng.chance(50) { 40 } else { 3_000 };
        let start =
            Pos::ground(near.x + rng.range(-off, off + 1), near.z + rng.range(-off, off + 1));
        let (vx_mm_s, vz_mm_s) = (rng.range(-6_000, 6_000), rng.range(-6_000, 6_000));
        let go = match rng.below(3) {
            0 => Go::On,
            1 => Go::Walk(Vector { start, vx_mm_s, vz_mm_s, lasts_ms: None }.into()),
            _ => Go::Walk(Path::new(start, steps(rng), SPEED, 100).into()),
        };
        let at = ClientMs(clock.0.saturating_add_signed(i64::from(rng.range(-700, 700))));
        MoveCommand { correction: self.predictor.correction() + u32::from(rng.chance(10)), at, go }
    }
}

fn steps(rng: &mut Rng) -> Steps {
    (0..1 + rng.below(12)).filter_map(|_| Step::from_number(rng.below(8) as u8)).collect()
}

fn wish(rng: &mut Rng) -> Wish {
    let (dx, dz) = (rng.range(-9, 10), rng.range(-9, 10));
    match rng.below(6) {
        0 => Wish::Stand,
        1 => Wish::Steps { steps: steps(rng), speed_cm_s: SPEED },
        2 => match Wish::heading(dx, dz, SPEED) {
            Wish::Straight { vx_mm_s, vz_mm_s, .. } => {
                Wish::Straight { vx_mm_s, vz_mm_s, lasts_ms: Some(rng.next() as u32 % 1_500) }
            }
            other => other,
        },
        _ => Wish::heading(dx, dz, SPEED),
    }
}

struct Trial {
    w: World,
    rng: Rng,
    walkers: Vec<Walker>,
    npcs: Vec<EntityId>,
    /// All positions a tick ago.
    last: BTreeMap<EntityId, Pos>,
    /// Entities that were placed elsewhere, and after which tick. If that is in another region, the
    /// entity is installed there when the tick has ended, and shown there from the next tick on.
    put: BTreeMap<EntityId, Tick>,
    seen: u64,
    /// Whether everything must be right in every tick.
    strict: bool,
}

impl Trial {
    fn new(spec: SceneSpec, seed: u64) -> Trial {
        let (w, rng) = (World::new(spec, seed ^ 0x7777), Rng::new(seed));
        let (walkers, npcs, last, put) = Default::default();
        Trial { w, rng, walkers, npcs, last, put, seen: 0, strict: true }
    }

    fn somewhere(&mut self) -> Pos {
        Pos::ground(self.rng.range(2_400, 7_200), self.rng.range(2_400, 7_200))
    }

    fn now(&self) -> u64 {
        self.w.tick.0 * TICK_MS
    }

    fn populate(&mut self, players: usize, npcs: usize) {
        for _ in 0..players {
            let (pos, plane) = (self.somewhere(), Plane(self.rng.range(0, 4) / 3));
            let session = self.w.join(plane, pos, RangeSet::FULL);
            self.walkers.push(Walker::new(session, pos, self.now(), &mut self.rng));
        }
        for _ in 0..npcs {
            let pos = self.somewhere();
            self.npcs.push(self.w.spawn(Kind(1), Plane(0), pos, RangeSet::FULL, None));
        }
    }

    /// A tick: clients play, messages arrive, regions tick, and all state is checked.
    fn step(&mut self) {
        let begin = self.now();
        for part in [30, 65, 100] {
            for walker in &mut self.walkers {
                walker.frame(begin + part, &mut self.rng);
            }
        }
        self.teleport_now_and_then(begin + 100);
        for i in 0..self.walkers.len() {
            while self.walkers[i].up.front().is_some_and(|(at, _)| *at <= begin + 100) {
                let session = self.walkers[i].session;
                match self.walkers[i].up.pop_front() {
                    Some((_, Said::Command(command))) => {
                        self.w.order(session, Order::Walk(command))
                    }
                    Some((_, Said::Teleport(plane, pos))) => {
                        self.put.insert(self.w.clients[&session].entity, self.w.tick);
                        self.w.teleport(session, plane, pos);
                    }
                    None => {}
                }
            }
        }
        self.command_beasts();
        self.w.step();
        self.note_truth();
        if self.strict {
            self.check();
        }
        let now = self.now();
        for walker in &mut self.walkers {
            let client = &self.w.clients[&walker.session];
            let last = walker.down.back().map_or(0, |(at, ..)| *at);
            let at = last.max(now + 20 + self.rng.next() % 200);
            walker.down.push_back((at, client.own, client.ack));
        }
        let settled = Tick(self.w.tick.0 - 1);
        self.put.retain(|_, at| *at >= settled);
    }

    fn teleport_now_and_then(&mut self, now: u64) {
        if self.walkers[0].rests || !self.rng.chance(10) {
            return;
        }
        let i = self.rng.below(self.walkers.len());
        let (plane, pos) = (Plane(self.rng.range(0, 4) / 3), self.somewhere());
        self.walkers[i].send(now, Said::Teleport(plane, pos), &mut self.rng);
    }

    /// The logic moves some of its entities, by walks and by placing them.
    fn command_beasts(&mut self) {
        for i in 0..self.npcs.len() {
            if self.walkers[0].rests || !self.rng.chance(8) {
                continue;
            }
            let id = self.npcs[i];
            let Some(owner) = self.w.home_id(id) else { continue };
            let (vx, vz) = (self.rng.range(-3_000, 3_000), self.rng.range(-3_000, 3_000));
            let here = Pos::default();
            let walk: Move = match self.rng.chance(50) {
                true => {
                    Vector { start: here, vx_mm_s: vx, vz_mm_s: vz, lasts_ms: Some(3_000) }.into()
                }
                false => Path::new(here, steps(&mut self.rng), TOP, 100).into(),
            };
            match self.rng.below(4) {
                0 => {
                    let order = Order::Move(self.somewhere());
                    self.put.insert(id, self.w.tick);
                    self.w.tell(owner, order_of(id, order));
                }
                1 => self.w.tell(owner, motion_of(id, Motion::Stop)),
                _ => self.w.tell(owner, motion_of(id, Motion::Walk(walk))),
            }
        }
    }

    /// Records the positions by the owners of all entities.
    fn note_truth(&mut self) {
        for (id, truth) in &mut self.w.truth {
            let found = self.w.regions.iter().filter_map(|r| r.find(*id)).find(|e| !e.ghost);
            let Some(found) = found else { continue };
            (truth.pos, truth.plane) = (found.pos, found.plane);
            let far = self.last.insert(*id, found.pos).map_or(0, |last| last.dist2(found.pos));
            let most = u64::from(TOP) * (TICK_MS + u64::from(rules().unchecked_ms())) / 1_000;
            // During faults a region misses ticks.
            let put = self.put.contains_key(id) || !self.strict;
            assert!(put || far <= most * most, "{id} teleported by {} cm", (far as f64).sqrt());
        }
    }

    fn check(&mut self) {
        let (w, now) = (&self.w, ServerMs(self.now()));
        let links = w.links();
        let on_the_way = |pair: &&Pair| [pair.0, pair.1].iter().any(|id| self.put.contains_key(id));
        let wanted = brute::greedy(&w.scene, &w.truth, &links);
        // In a full list a player on its way has a place that another one gets when it has arrived.
        let full = w.scene.spec.view_cap < w.clients.len() && !self.put.is_empty();
        let mut wrong = links.symmetric_difference(&wanted);
        let wrong = wrong.find(|pair| !on_the_way(pair) && !full);
        assert_eq!(wrong, None, "tick {}: linked or not, against the rule", w.tick);
        for c in w.clients.values().filter(|c| c.epoch > Epoch(0)) {
            let me = &w.truth[&c.entity];
            let settled = |id: &&EntityId| !self.put.contains_key(*id);
            for npc in self.npcs.iter().filter(settled).filter(|_| settled(&&c.entity)) {
                let shown = c.shown.contains_key(npc);
                let near = in_range(&w.scene, me, &w.truth[npc], shown);
                assert_eq!(shown, near, "{} and {npc} in tick {}", c.entity, w.tick);
            }
            for (id, (place, _)) in &c.shown {
                let trajectory = c.trajectories.get(id);
                let at = trajectory.map(|c| Extrapolator::new(*c, Blend::default()).position(now));
                let (at, truth) = (at.unwrap_or(*place), w.truth[id].pos);
                let rule = w.scene.spec.update_error_in_force();
                let allowed2 = rule.map_or(0, |rule| rule.tolerance2(me.pos.dist2(truth)));
                let (tick, viewer) = (w.tick, c.entity);
                assert!(
                    at.dist2(truth) <= allowed2,
                    "{viewer} believes {id} at {at:?} in tick {tick}; it is at {truth:?}"
                );
            }
            self.seen += c.shown.len() as u64;
            let own = c.own.expect("the client was told its own movement");
            assert_eq!(own.trajectory.position(now), me.pos, "{}'s own position", c.entity);
        }
    }

    /// All wishes end: after `ticks` ticks all entities stand, and all state is right.
    fn rest(&mut self, ticks: u64) {
        self.walkers.iter_mut().for_each(|w| w.rests = true);
        (0..ticks).for_each(|_| self.step());
        self.put.clear();
        self.check();
    }

    fn resume(&mut self) {
        self.walkers.iter_mut().for_each(|w| w.rests = false);
    }

    fn run(&mut self, ticks: u64) {
        (0..ticks).for_each(|_| self.step());
        assert!(self.w.handoffs > 5, "{} handoffs", self.w.handoffs);
        assert!(self.seen > ticks * 20, "only {} were seen", self.seen);
        let (mut refused, mut turns) = (0, 0);
        for walker in &self.walkers {
            let c = &self.w.clients[&walker.session];
            assert!(!walker.honest || c.refusals.is_empty(), "{}: {:?}", c.entity, c.refusals);
            (refused, turns) = (refused + c.refusals.len() as u64, turns + c.turns);
        }
        assert!(refused > 10, "{refused} refused");
        assert!(turns * 3 < self.seen, "{turns} trajectories for {} sights", self.seen);
    }
}

fn trials(most: u64, spec: SceneSpec, play: fn(&mut Trial)) {
    for seed in seeds(most) {
        let _replay = Replay("walks", seed);
        let mut trial = Trial::new(spec.clone(), seed);
        trial.populate(40, 8);
        trial.w.step();
        play(&mut trial);
    }
}

const CIRCLE: Visibility = Visibility::Circle { enter_cm: 1_000, leave_cm: 1_150 };

#[test]
fn views_and_extrapolated_positions_are_right_in_every_tick_with_patches() {
    trials(3, scene(Visibility::Patches, 60), |t| t.run(250));
}

#[test]
fn views_and_extrapolated_positions_are_right_in_every_tick_with_circles() {
    trials(3, scene(CIRCLE, 60), |t| t.run(250));
}

/// No viewer shows an entity farther off than the tolerance, however slow the rates.
#[test]
fn extrapolated_positions_keep_the_tolerance_at_slow_rates() {
    let rates = Rates { near: 5, middle: 10, far: 40 };
    let update_error = Some(UpdateError::default());
    let spec = SceneSpec { rates, update_error, ..scene(Visibility::Patches, 60) };
    trials(3, spec, |t| {
        t.run(250);
        t.w.restless = 2;
        t.run(100);
        // Much of what is told follows from what was told before. Paths do not.
        let clients = t.w.clients.values();
        let (turns, followed) =
            clients.fold((0, 0), |sum, c| (sum.0 + c.turns, sum.1 + c.followed as u64));
        assert!(followed * 3 > turns, "{followed} of {turns} trajectories");
        assert!(followed < turns, "handed over clients are told the whole");
    });
}

#[test]
fn a_stop_is_reported_at_every_rate() {
    let rates = Rates { near: 1, middle: 4, far: 9 };
    trials(2, SceneSpec { rates, ..scene(Visibility::Patches, 60) }, |t| {
        t.strict = false;
        (0..120).for_each(|_| t.step());
        t.rest(20);
    });
}

#[test]
fn after_faults_all_state_is_right_again() {
    trials(4, scene(CIRCLE, 60), |t| {
        t.strict = false;
        t.w.weather = Weather { skip: 10, lose: 10, delay: 20, mute: 0 };
        (0..120).for_each(|_| t.step());
        t.w.weather = Weather::default();
        t.rest(40);
        t.strict = true;
        t.resume();
        t.run(60);
    });
}

#[test]
fn all_state_is_right_in_every_tick_while_regions_migrate() {
    trials(2, scene(Visibility::Patches, 60), |t| {
        t.w.restless = 2;
        t.run(150);
        assert!(t.w.relocations > 100, "{} relocations", t.w.relocations);
        assert_eq!(t.w.resyncs, 0);
    });
}

#[test]
fn capped_lists_are_the_stable_ones_over_judged_positions() {
    trials(2, scene(Visibility::Patches, 5), |t| t.run(150));
}

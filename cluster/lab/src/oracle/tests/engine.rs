//! A region of the engine, tick by tick, whose clients send positions that come late: what its viewers are shown is
//! what the documents promise, and an update that is left out is found.

use std::sync::Arc;

use purview::scene::messages::{Destination, Effect, Input, Order};
use purview::scene::spec::{Rates, UpdateError};
use purview::scene::{
    EntityHandle, EntityId, Kind, Plane, Pos, Region, RegionId, Scene, SceneId, SceneSpec, Seq,
    SessionId, Tick, Visibility,
};
use purview::wire::{EncodedBatch, Frame, JoinRules, ServerMsg, UpdateRules};

use super::server::{joined, rules};
use crate::bench::regions::spawn;
use crate::oracle::{ClientId, Event, Findings, Options, Oracle, Sent};
use crate::rng::Rng;

/// A player, and what its client has sent so far.
struct Client {
    pos: Pos,
    seq: Seq,
    handle: EntityHandle,
    late: Vec<Pos>,
}

/// A region in which positions are trusted, its clients, and the oracle.
struct Trial {
    region: Region,
    rules: JoinRules,
    tick: Tick,
    clients: Vec<Client>,
    fx: Vec<Effect>,
    encoded: EncodedBatch,
    oracle: Oracle,
}

fn spec() -> SceneSpec {
    SceneSpec {
        visibility: Visibility::All,
        rates: Rates { near: 5, middle: 10, far: 40 },
        update_error: Some(UpdateError::default()),
        width_cm: 51_200,
        depth_cm: 51_200,
        region_lands_x: 1,
        region_lands_z: 1,
        spawn_x_cm: 0,
        spawn_z_cm: 0,
        top_speed_cm_s: 2_000,
        ..SceneSpec::default()
    }
}

impl Trial {
    fn new() -> Trial {
        let spec = spec();
        let Rates { near, middle, far } = spec.rates;
        let (patch_cm, rates) = (spec.layers[0].patch_cm, [near, middle, far]);
        let scene = Scene::new(SceneId(0), spec, 100, RegionId(0)).unwrap();
        let updates = UpdateRules::of(&scene);
        assert!(updates.is_some());
        Trial {
            region: Region::new(Arc::new(scene), RegionId(0)).unwrap(),
            rules: JoinRules { patch_cm, rates, updates, ..rules(Visibility::All, 60) },
            tick: Tick(0),
            clients: Vec::new(),
            fx: Vec::new(),
            encoded: EncodedBatch::default(),
            oracle: Oracle::new(Options::default()),
        }
    }

    /// A player appears in the tick to come. Gives its number, from 0; its id is one more.
    fn join(&mut self, pos: Pos) -> usize {
        let number = self.clients.len() as u64 + 1;
        let (id, plane, client) = (EntityId(number), Plane(0), number as ClientId);
        let spawn = spawn(number, Kind::PLAYER, pos);
        self.region.handle(Input::Enter(Box::new(spawn)), &mut self.fx);
        let joined = joined(id, self.tick.next().0, (plane, pos), self.rules.clone());
        self.oracle.event(Event::Joining(client));
        self.oracle.event(Event::Joined(client, Box::new(joined)));
        let handle = EntityHandle::default();
        self.clients.push(Client { pos, seq: Seq(0), handle, late: Vec::new() });
        number as usize - 1
    }

    fn sends(&mut self, ix: usize, what: Sent, order: Order) {
        let client = &mut self.clients[ix];
        client.seq = client.seq.next();
        let (id, seq, handle) = (EntityId(ix as u64 + 1), client.seq, client.handle);
        self.oracle.event(Event::Sent { client: ix as u32 + 1, seq, what });
        let session = SessionId(id.0);
        self.region.handle(Input::Client { id, session, seq, order, handle }, &mut self.fx);
    }

    fn moves(&mut self, ix: usize, pos: Pos) {
        self.sends(ix, Sent::Move(pos), Order::Move(pos));
    }

    fn teleports(&mut self, ix: usize, pos: Pos) {
        let plane = Plane(0);
        let to = Destination { scene: SceneId(0), region: RegionId(0), plane, pos };
        self.sends(ix, Sent::Teleport { scene: None, plane: None, pos }, Order::Teleport(to));
    }

    /// A player goes on by a step. With `late` its message misses the tick and comes with the next one.
    fn walks(&mut self, ix: usize, (dx, dz): (i32, i32), late: bool) {
        let client = &mut self.clients[ix];
        client.pos = Pos::ground(client.pos.x + dx, client.pos.z + dz);
        client.late.push(client.pos);
        if !late {
            let arrived = std::mem::take(&mut client.late);
            arrived.into_iter().for_each(|pos| self.moves(ix, pos));
        }
    }

    /// Runs a tick. `spoil` may change what a client, given by its number, receives.
    fn step(&mut self, mut spoil: impl FnMut(usize, &mut Frame)) {
        self.tick = self.tick.next();
        self.region.tick(self.tick, &mut self.fx);
        for effect in std::mem::take(&mut self.fx) {
            let Effect::Frames(batch) = effect else { continue };
            self.encoded.replace(batch);
            let sessions = &self.encoded.batch().sessions;
            for (i, ix, handle) in
                sessions.iter().enumerate().map(|(i, s)| (i, s.session.0 as usize - 1, s.handle))
            {
                self.clients[ix].handle = handle;
                let mut bytes = Vec::new();
                self.encoded.write_frame(i, false, &mut bytes);
                let Ok(ServerMsg::Frame(mut frame)) = ServerMsg::decode(&bytes) else {
                    panic!("no frame: {bytes:?}");
                };
                spoil(ix, &mut frame);
                self.oracle.event(Event::Frame(ix as u32 + 1, frame));
            }
        }
    }
}

/// Player 1 walks east for a second. Then a message of its client misses its tick, and it goes on a step behind. In
/// just that tick player 2 appears beside it. From the next tick on `spoil` may change what player 2 receives.
fn a_viewer_comes_while_a_walker_is_late(spoil: impl Fn(&mut Frame)) -> Findings {
    let mut trial = Trial::new();
    let walker = trial.join(Pos::ground(1_000, 1_000));
    for _ in 0..10 {
        trial.walks(walker, (50, 0), false);
        trial.step(|_, _| {});
    }
    trial.join(Pos::ground(1_600, 1_300));
    trial.step(|_, _| {});
    for _ in 0..10 {
        trial.walks(walker, (50, 0), false);
        trial.step(|ix, frame| {
            if ix != walker {
                spoil(frame)
            }
        });
    }
    trial.oracle.finish()
}

#[test]
fn an_entity_whose_client_is_a_tick_late_may_be_shown_a_step_ahead() {
    let findings = a_viewer_comes_while_a_walker_is_late(|_| {});
    assert_eq!(findings.violations.total(), 0, "{:?}", findings.examples);
    assert_eq!(findings.errors.quantile(0, 1.0), 50);
}

#[test]
fn an_entity_that_stays_a_step_behind_without_an_update_is_stale() {
    let findings = a_viewer_comes_while_a_walker_is_late(|frame| frame.moves.clear());
    // The tick in which it is late is forgiven, and one more for positions across a border.
    let found = findings.examples.first().map(|e| (&*e.kind, e.tick));
    assert_eq!(found, Some(("stale", 13)), "{:?}", findings.examples);
}

/// How a walker of [`wander`] goes on.
struct Way {
    step: (i32, i32),
    late: bool,
}

/// Twelve players walk, turn, stand, and skip ticks; one of ten messages is late. `spoil` may change what a client
/// receives in a tick.
fn wander(seed: u64, mut spoil: impl FnMut(Tick, usize, &mut Frame)) -> Findings {
    let (mut trial, mut rng) = (Trial::new(), Rng::new(seed));
    let mut ways = Vec::new();
    for tick in 0..240 {
        if tick % 10 == 0 && ways.len() < 12 {
            trial.join(Pos::ground(rng.range(2_000, 6_000), rng.range(2_000, 6_000)));
            ways.push(Way { step: (0, 0), late: false });
        }
        for (ix, way) in ways.iter_mut().enumerate() {
            if rng.chance(8) {
                let angle = rng.unit() * std::f64::consts::TAU;
                let length = if rng.chance(20) { 0.0 } else { 50.0 };
                let along = |part: f64| (part * length).round() as i32;
                way.step = (along(angle.cos()), along(angle.sin()));
            }
            way.late = !way.late && rng.chance(10);
            let skips = rng.chance(2);
            if way.step != (0, 0) && !skips || !trial.clients[ix].late.is_empty() {
                trial.walks(ix, way.step, way.late);
            }
        }
        let now = trial.tick.next();
        trial.step(|ix, frame| spoil(now, ix, frame));
    }
    trial.oracle.finish()
}

#[test]
fn no_walk_whose_messages_come_late_is_a_violation() {
    for seed in 0..40 {
        let findings = wander(seed, |_, _, _| {});
        assert_eq!(findings.violations.total(), 0, "seed {seed}: {:?}", findings.examples);
        assert!(findings.errors.count(0) + findings.errors.count(1) > 10_000);
    }
}

#[test]
fn a_viewer_that_is_told_no_more_of_a_walker_shows_it_where_it_is_not() {
    for seed in 0..40 {
        let findings = wander(seed, |tick, ix, frame| {
            if tick.0 >= 150 && ix == 1 {
                frame.moves.retain(|m| m.id != EntityId(1));
            }
        });
        assert!(findings.violations.stale > 0, "seed {seed}");
    }
}

/// Player 1 teleports 300 m away, in view of player 2, and back after two seconds. `spoil` may change what player 2
/// receives. Gives the greatest error, centimetres, and the number of ticks in which it was measured.
fn a_player_teleports(spoil: impl Fn(&mut Frame)) -> (u64, u64, Findings) {
    let mut trial = Trial::new();
    let (near, far) = (Pos::ground(1_000, 1_000), Pos::ground(31_000, 1_000));
    let one = trial.join(near);
    trial.join(Pos::ground(1_600, 1_300));
    for tick in 0..60 {
        match tick {
            10 => trial.teleports(one, far),
            30 => trial.teleports(one, near),
            _ => {}
        }
        trial.step(|ix, frame| {
            if ix != one {
                spoil(frame)
            }
        });
    }
    let findings = trial.oracle.finish();
    let of_rings = |of: &dyn Fn(usize) -> u64| (0..3).map(of).collect::<Vec<_>>();
    let most = of_rings(&|ring| findings.errors.quantile(ring, 1.0)).into_iter().max();
    let count = of_rings(&|ring| findings.errors.count(ring)).into_iter().sum();
    (most.unwrap_or_default(), count, findings)
}

#[test]
fn a_teleport_that_is_told_at_once_is_no_error() {
    let (most, count, findings) = a_player_teleports(|_| {});
    assert_eq!(findings.violations.total(), 0, "{:?}", findings.examples);
    // From the second tick on, for two players; not in the ticks of the teleports and the ones after.
    assert_eq!((most, count), (0, 2 * (59 - 2 * 2)));
}

#[test]
fn a_teleport_that_is_not_told_is_an_error_of_its_whole_length() {
    let (most, _, findings) = a_player_teleports(|frame| frame.moves.clear());
    assert!((30_000 * 99 / 100..30_000 * 101 / 100).contains(&most), "{most}");
    assert!(findings.violations.stale > 0);
}

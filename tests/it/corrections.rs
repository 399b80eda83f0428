//! Move commands and the logic's motion commands in regions: what is accepted, what clients are
//! answered, and what viewers are told.

use std::sync::Arc;

use crate::support::commands::{motion_of, order_of};
use crate::support::small_scene;
use crate::support::world::World;
use purview::scene::messages::{Destination, Input, Motion, Order, Refusal, SceneOrder};
use purview::scene::movement::{
    ClientMs, Flags, Go, GrantId, Move, MoveCommand, Own, Reason, ServerMs, Vector,
};
use purview::scene::spec::{KindSpec, MoveSpec, Moves};
use purview::scene::terrain::{DoorChange, DoorId, DoorOrder, Draft, Tile};
use purview::scene::{
    EntityId, Kind, Plane, Pos, RangeSet, RegionId, Scene, SceneId, SceneSpec, SessionId, Tick,
    Visibility,
};

const PLANE: Plane = Plane(0);

/// Two regions of 64 m side by side with a range of 10 m. Players walk at 5 m/s; granted speeds
/// stay below 10 m/s.
pub fn spec(mode: Moves) -> SceneSpec {
    let player = KindSpec { speed_cm_s: Some(500), ..KindSpec::new("player", 0) };
    SceneSpec {
        kinds: vec![player, KindSpec::new("npc", 0)],
        visibility: Visibility::Circle { enter_cm: 1_000, leave_cm: 1_100 },
        view_margin_cm: SceneSpec::default().view_margin_cm,
        top_speed_cm_s: 1_000,
        moves: MoveSpec { mode, ..MoveSpec::default() },
        ..small_scene((2, 1), 6_400, 1_600)
    }
}

/// A world in which players walk and logic moves entities.
pub struct Play {
    pub w: World,
}

/// Lead of the clients' clocks over the server's time, milliseconds.
const AHEAD_MS: u64 = 5_000;

impl Play {
    fn new(mode: Moves) -> Play {
        Play { w: World::new(spec(mode), 1) }
    }

    pub fn join(&mut self, x: i32, z: i32) -> SessionId {
        let (session, _) = self.w.player(x, z);
        self.step(1);
        session
    }

    pub fn step(&mut self, ticks: u64) {
        self.w.steps(ticks);
    }

    pub fn id(&self, session: SessionId) -> EntityId {
        self.w.clients[&session].entity
    }

    fn clock(&self) -> ClientMs {
        ClientMs((self.w.tick.0 + 1) * 100 + AHEAD_MS)
    }

    /// Sends a command that arrives in the next tick, and passes that tick.
    pub fn say(&mut self, session: SessionId, go: Go) {
        let correction = self.own(session).correction;
        self.say_as(session, correction, self.clock(), go);
    }

    fn say_as(&mut self, session: SessionId, correction: u32, at: ClientMs, go: Go) {
        self.w.order(session, Order::Walk(MoveCommand { correction, at, go }));
        self.step(1);
    }

    /// Walks on from the present position.
    pub fn walk(&mut self, session: SessionId, vx_mm_s: i32, vz_mm_s: i32) {
        let start = self.own(session).trajectory.position(ServerMs((self.w.tick.0 + 1) * 100));
        self.say(session, vector(start, vx_mm_s, vz_mm_s));
    }

    fn motion(&mut self, id: EntityId, motion: Motion) {
        self.w.tell(self.owner(id), motion_of(id, motion));
        self.step(1);
    }

    pub fn owner(&self, id: EntityId) -> RegionId {
        self.w.home_id(id).expect("the entity lives somewhere")
    }

    pub fn own(&self, session: SessionId) -> Own {
        self.w.clients[&session].own.expect("the client was told its own movement")
    }

    pub fn pos(&self, id: EntityId) -> Pos {
        self.w.living(id).expect("the entity lives somewhere").pos
    }

    /// The position of another entity as a client computes it.
    pub fn seen(&self, session: SessionId, id: EntityId) -> Pos {
        self.w.clients[&session].trajectories[&id].position(ServerMs(self.w.tick.0 * 100))
    }

    /// The last refusal, which must be the only new one.
    fn refused(&mut self, session: SessionId) -> Refusal {
        let client = self.w.clients.get_mut(&session).expect("a client");
        let refusals = std::mem::take(&mut client.refusals);
        assert_eq!(refusals.len(), 1, "{refusals:?}");
        assert_eq!((refusals[0].seq, client.ack), (client.seq, client.seq));
        refusals[0].why
    }

    fn is_calm(&self, session: SessionId) -> bool {
        self.w.clients[&session].refusals.is_empty()
    }
}

fn vector(start: Pos, vx_mm_s: i32, vz_mm_s: i32) -> Go {
    Go::Walk(Vector { start, vx_mm_s, vz_mm_s, lasts_ms: None }.into())
}

fn push(vx_mm_s: i32, lasts_ms: u32) -> Motion {
    let start = Pos::default();
    let trajectory = Vector { start, vx_mm_s, vz_mm_s: 0, lasts_ms: Some(lasts_ms) };
    Motion::Walk(trajectory.into())
}

#[test]
fn one_command_walks_until_it_lapses_and_viewers_are_told_twice() {
    let mut p = Play::new(Moves::Judged);
    let (a, b) = (p.join(1_000, 1_000), p.join(1_200, 1_000));
    let id = p.id(a);
    p.walk(a, 3_000, 4_000);
    for ticks in 0..8 {
        let way = Pos::ground(1_000 + ticks * 30, 1_000 + ticks * 40);
        assert_eq!((p.pos(id), p.seen(b, id)), (way, way), "after {ticks} ticks");
        p.step(1);
    }
    // Half a second and 0.3 s of grace.
    p.step(3);
    let end = Pos::ground(1_240, 1_320);
    assert_eq!((p.pos(id), p.seen(b, id), p.w.clients[&b].turns), (end, end, 2));
    assert!(p.is_calm(a));
}

#[test]
fn a_command_of_the_other_movement_mode_is_refused_and_changes_nothing() {
    let mut p = Play::new(Moves::Judged);
    let a = p.join(1_000, 1_000);
    p.w.order(a, Order::Move(Pos::ground(1_010, 1_000)));
    p.step(1);
    assert_eq!(p.refused(a), Refusal::WrongForm);
    assert_eq!(p.pos(p.id(a)), Pos::ground(1_000, 1_000));

    let mut p = Play::new(Moves::Trusted);
    let a = p.join(1_000, 1_000);
    let clock = p.clock();
    p.say_as(a, 0, clock, vector(Pos::ground(1_000, 1_000), 500, 0));
    p.step(3);
    assert_eq!(p.refused(a), Refusal::WrongForm);
    p.motion(p.id(a), push(500, 1_000));
    p.step(3);
    assert_eq!(p.pos(p.id(a)), Pos::ground(1_000, 1_000));
    assert!(p.w.clients[&a].own.is_none());
}

#[test]
fn a_refused_player_stands_and_gets_the_correction_with_the_acknowledgement() {
    let mut p = Play::new(Moves::Judged);
    let (a, b) = (p.join(1_000, 1_000), p.join(1_200, 1_000));
    let id = p.id(a);
    p.walk(a, 5_000, 0);
    p.step(1);
    let here = p.pos(id);
    // At another position, without a way there.
    p.say(a, vector(Pos::ground(1_500, 1_500), 5_000, 0));
    let Refusal::Move(Reason::Displaced { at, .. }) = p.refused(a) else { panic!("a teleport") };
    assert_eq!(at, Pos { x: here.x + 50, ..here });
    let own = p.own(a);
    assert_eq!((own.correction, own.trajectory.motion), (1, Move::stand(p.pos(id))));
    assert_eq!(p.seen(b, id), p.pos(id));
    // Commands in flight before the client knew are dropped without another correction.
    let clock = p.clock();
    p.say_as(a, 0, clock, vector(Pos::ground(1_700, 1_500), 5_000, 0));
    assert!(p.is_calm(a));
    assert_eq!(p.own(a).correction, 1);
    // Faster than the player may be.
    p.walk(a, 5_010, 0);
    assert_eq!(p.refused(a), Refusal::Move(Reason::TooFast { found_cm_s: 501, allowed_cm_s: 500 }));
    assert_eq!(p.own(a).correction, 2);
    p.walk(a, 0, 5_000);
    p.step(2);
    assert!(p.is_calm(a));
    assert_eq!(p.pos(id).z, 1_100);
    let counted = Reason::NAMES.iter().zip(p.w.regions[0].counts().moves_refused);
    let counted: Vec<_> = counted.filter(|(_, n)| *n > 0).collect();
    assert_eq!(counted, [(&"displaced", 1), (&"too_fast", 1)]);
}

#[test]
fn the_client_is_told_when_logic_roots_pushes_and_grants_speed() {
    let mut p = Play::new(Moves::Judged);
    let (a, b) = (p.join(1_000, 1_000), p.join(1_200, 1_000));
    let id = p.id(a);
    p.walk(a, 5_000, 0);
    p.motion(id, Motion::Flags(Flags::ROOTED));
    let here = p.pos(id);
    assert_eq!((p.own(a).flags, p.own(a).correction), (Flags::ROOTED, 1));
    p.walk(a, 5_000, 0);
    assert_eq!(p.refused(a), Refusal::Move(Reason::MayNotMove { flags: Flags::ROOTED }));
    assert_eq!(p.pos(id), here);
    p.motion(id, Motion::Flags(Flags::NONE));
    assert_eq!((p.own(a).flags, p.own(a).correction), (Flags::NONE, 2));
    // A push from the present position; the client's commands are refused until it is over.
    p.motion(id, push(-8_000, 400));
    p.walk(a, 5_000, 0);
    assert!(matches!(p.refused(a), Refusal::Move(Reason::Pushed { .. })));
    p.motion(id, push(-8_000, 400));
    let from = p.pos(id);
    p.step(5);
    assert_eq!((p.pos(id).x, p.seen(b, id)), (from.x - 320, p.pos(id)));
    assert_eq!((p.own(a).correction, p.own(a).trajectory.lasts_ms), (5, 400));
    // A mount lasts until it is revoked, and then for as long as the client may not know.
    p.motion(id, Motion::Grant { id: GrantId(3), speed_cm_s: 900, lasts_ms: None });
    assert_eq!(p.own(a).grants.iter().flatten().count(), 1);
    p.walk(a, 9_000, 0);
    assert!(p.is_calm(a));
    p.motion(id, Motion::Revoke(GrantId(3)));
    assert_eq!(p.own(a).grants, [None; 4]);
    p.motion(id, Motion::Speed(300));
    assert_eq!(p.own(a).speed_cm_s, 300);
    p.motion(id, Motion::Stop);
    let clock = ClientMs(p.clock().0 + 40_000);
    p.step(400);
    p.say_as(a, 6, clock, vector(p.pos(id), 3_010, 0));
    assert_eq!(p.refused(a), Refusal::Move(Reason::TooFast { found_cm_s: 301, allowed_cm_s: 300 }));
}

#[test]
fn no_entity_moves_faster_than_the_borders_allow() {
    let mut p = Play::new(Moves::Judged);
    let a = p.join(1_000, 1_000);
    let id = p.id(a);
    p.motion(id, push(10_010, 400));
    p.motion(id, Motion::Speed(1_001));
    p.motion(id, Motion::Grant { id: GrantId(1), speed_cm_s: 1_001, lasts_ms: None });
    p.step(5);
    assert_eq!(p.pos(id), Pos::ground(1_000, 1_000));
    assert_eq!((p.own(a).speed_cm_s, p.own(a).grants), (500, [None; 4]));
}

#[test]
fn logic_places_players_and_moves_beasts() {
    let mut p = Play::new(Moves::Judged);
    let a = p.join(1_000, 1_000);
    let beast = p.w.spawn(Kind(1), PLANE, Pos::ground(1_300, 1_000), RangeSet::FULL, None);
    p.step(1);
    // A beast stands where it was placed until it is set in motion.
    assert!(p.w.clients[&a].shown.contains_key(&beast));
    assert!(!p.w.clients[&a].trajectories.contains_key(&beast));
    p.motion(beast, push(1_000, 5_000));
    p.step(10);
    assert_eq!((p.pos(beast), p.seen(a, beast)), (Pos::ground(1_400, 1_000), p.pos(beast)));
    assert_eq!(p.w.clients[&a].turns, 1);
    let order = Order::Move(Pos::ground(1_100, 1_100));
    p.w.tell(RegionId(0), order_of(beast, order.clone()));
    p.w.tell(RegionId(0), order_of(p.id(a), order));
    p.step(1);
    let there = Pos::ground(1_100, 1_100);
    assert_eq!((p.pos(beast), p.seen(a, beast), p.own(a).correction), (there, there, 1));
    assert_eq!(p.own(a).trajectory.motion, Move::stand(there));
}

#[test]
fn a_grant_and_an_unanswered_correction_survive_a_handoff() {
    let mut p = Play::new(Moves::Judged);
    let (a, b) = (p.join(6_200, 1_000), p.join(6_500, 1_200));
    let id = p.id(a);
    p.motion(id, Motion::Grant { id: GrantId(1), speed_cm_s: 900, lasts_ms: None });
    p.walk(a, 9_000, 0);
    let turns = p.w.clients[&b].turns;
    for _ in 0..3 {
        p.step(3);
        p.say(a, Go::On);
    }
    assert_eq!((p.w.handoffs, p.w.clients[&a].region), (1, RegionId(1)));
    assert!(p.is_calm(a), "the player may ride on");
    assert_eq!(p.w.clients[&b].turns, turns, "a handoff is not a change of trajectory");
    assert!(p.w.clients[&b].left.is_empty());
    // The player is pushed back over the border, and its client does not answer.
    p.motion(id, push(-10_000, 1_300));
    p.step(14);
    assert_eq!((p.w.handoffs, p.w.clients[&a].region), (2, RegionId(0)));
    let (here, clock) = (p.pos(id), p.clock());
    p.say_as(a, 0, clock, vector(Pos::ground(7_000, 1_000), 5_000, 0));
    assert!(p.is_calm(a), "sent before the client knew");
    assert_eq!((p.pos(id), p.own(a).correction), (here, 1));
    p.walk(a, 9_000, 0);
    assert!(p.is_calm(a), "the grant is still valid");
    assert_eq!(p.seen(b, id), p.pos(id));
}

/// The first region of a scene with a gate: a wall with one tile that is a door.
fn gated() -> Scene {
    let scene = Scene::new(SceneId(0), spec(Moves::Judged), 100, RegionId(0)).expect("legal");
    let mut draft = Draft::new(100, 128, 64).expect("a draft");
    for z in (0..64).filter(|z| *z != 10) {
        draft.set_blocked(Tile { x: 13, z }, true).expect("a tile");
    }
    draft.add_door("gate", true, &[Tile { x: 13, z: 10 }]).expect("a door");
    scene.with_terrain(Arc::new(draft.finish())).expect("it fits")
}

fn shut(open: bool, at: Tick, version: u64) -> Input {
    let change = DoorChange::Set { door: DoorId(0), open };
    Input::Scene(SceneOrder::Doors(DoorOrder { plane: PLANE, change, at, version }))
}

#[test]
fn a_closing_door_stops_a_player_and_its_client_is_told() {
    let mut p = Play { w: World::of(gated(), 1) };
    let (a, b) = (p.join(1_050, 1_050), p.join(1_050, 1_250));
    let id = p.id(a);
    p.walk(a, 5_000, 0);
    p.step(2);
    let at = p.w.tick.next();
    for region in [0, 1] {
        p.w.tell(RegionId(region), shut(false, at, 1));
    }
    p.step(1);
    // The player walks up to the door and stands there, which its client is told.
    assert_eq!((p.pos(id).x, p.own(a).correction), (1_200, 0));
    assert_eq!(p.seen(b, id), p.pos(id));
    p.say(a, Go::On);
    p.step(2);
    assert_eq!((p.pos(id).x, p.seen(b, id)), (1_299, p.pos(id)));
    let own = p.own(a);
    assert_eq!((own.correction, own.trajectory.motion), (1, Move::stand(p.pos(id))));
    // Into the closed door.
    p.walk(a, 5_000, 0);
    p.step(2);
    assert_eq!(p.pos(id).x, 1_299);
    let at = p.w.tick.next();
    p.w.tell(RegionId(0), shut(true, at, 2));
    p.step(2);
    assert_eq!(p.pos(id).x, 1_299, "an open door does not move an entity through");
    p.walk(a, 5_000, 0);
    p.step(3);
    assert_eq!(p.pos(id).x, 1_449);
    assert!(p.is_calm(a));
}

/// The enters and leaves of an entity that a client was told since `since`, with their ticks.
fn comings(p: &Play, session: SessionId, id: EntityId, since: Tick) -> (Vec<Tick>, Vec<Tick>) {
    let c = &p.w.clients[&session];
    let of = |list: &[(Tick, EntityId)]| {
        list.iter().filter(|(t, who)| *who == id && *t > since).map(|(t, _)| *t).collect()
    };
    (of(&c.entered), of(&c.left))
}

#[test]
fn a_teleport_is_one_step_for_all_viewers() {
    let far = Pos::ground(11_000, 5_000);
    for (scene, plane, to) in [
        (0, PLANE, Pos::ground(4_000, 4_000)),
        (0, PLANE, far),
        (0, Plane(2), Pos::ground(1_000, 1_000)),
        (0, Plane(2), far),
        (1, PLANE, Pos::ground(500, 500)),
    ] {
        let mut p = Play::new(Moves::Judged);
        let other = p.w.add_scene(spec(Moves::Judged));
        assert_eq!(other, SceneId(1));
        let (a, left) = (p.join(1_000, 1_000), p.join(1_200, 1_000));
        let met = p.join(2_000, 2_000);
        p.w.teleport_to(met, SceneId(scene), plane, Pos { x: to.x + 100, ..to });
        p.step(5);
        let id = p.id(a);
        p.walk(a, 5_000, 0);
        let since = p.w.tick;
        p.w.teleport_to(a, SceneId(scene), plane, to);
        // Other clients saw the player walk on during the tick of the teleport.
        p.step(5);
        let what = format!("to {to:?} of plane {plane} in scene {scene}");
        let (entered, gone) = comings(&p, left, id, since);
        assert_eq!((entered.len(), gone.len()), (0, 1), "{what}: from the old position");
        let (entered, gone) = comings(&p, met, id, since);
        assert_eq!((entered.len(), gone.len()), (1, 0), "{what}: at the new position");
        assert_eq!((p.seen(met, id), p.w.clients[&met].turns), (to, 0), "{what}");
        let own = p.own(a);
        assert_eq!(own.trajectory.motion, Move::stand(to), "{what}");
        assert!(own.correction > 0, "{what}");
        // Commands from before the client knew have no effect.
        let clock = p.clock();
        p.say_as(a, 0, clock, vector(Pos::ground(1_050, 1_000), 5_000, 0));
        assert!(p.is_calm(a), "{what}");
        p.walk(a, 0, 5_000);
        p.step(2);
        assert!(p.is_calm(a), "{what}");
        assert_eq!(p.seen(met, id), Pos { z: to.z + 100, ..to }, "{what}");
    }
}

#[test]
fn a_viewer_of_both_ends_of_a_jump_is_told_of_it_once() {
    let mut p = Play::new(Moves::Judged);
    let (a, b) = (p.join(1_000, 1_000), p.join(1_200, 1_000));
    let (id, since) = (p.id(a), p.w.tick);
    p.w.teleport(a, PLANE, Pos::ground(1_500, 1_000));
    p.step(1);
    assert_eq!(p.seen(b, id), Pos::ground(1_500, 1_000));
    assert_eq!((comings(&p, b, id, since), p.w.clients[&b].turns), ((vec![], vec![]), 1));
}

#[test]
fn players_jump_between_trusted_and_judged_scenes() {
    let mut p = Play::new(Moves::Judged);
    let trusting = p.w.add_scene(spec(Moves::Trusted));
    let a = p.join(1_000, 1_000);
    let id = p.id(a);
    p.motion(id, Motion::Grant { id: GrantId(1), speed_cm_s: 900, lasts_ms: None });
    p.w.teleport_to(a, trusting, PLANE, Pos::ground(700, 700));
    p.step(3);
    p.w.order(a, Order::Move(Pos::ground(900, 700)));
    p.step(1);
    assert_eq!((p.pos(id), p.is_calm(a)), (Pos::ground(900, 700), true));
    let here = Destination {
        scene: SceneId(0),
        region: RegionId(0),
        plane: PLANE,
        pos: Pos::ground(2_000, 2_000),
    };
    p.w.order(a, Order::Teleport(here));
    p.step(3);
    let own = p.own(a);
    assert_eq!((own.trajectory.motion, own.grants), (Move::stand(here.pos), [None; 4]));
    p.walk(a, 5_000, 0);
    p.step(2);
    assert_eq!((p.pos(id), p.is_calm(a)), (Pos::ground(2_100, 2_000), true));
}

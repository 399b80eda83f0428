mod leaving;
mod limits;
mod presentation;
mod resumption;
mod slow_client;

use super::*;
use crate::scene::messages::{
    Destination, Entering, FrameBatch, Input, InputRefused, Notice, Order, Refusal, RouteNotice,
    SessionFrame, Spawn,
};
use crate::scene::{
    Account, EntityHandle, Epoch, Kind, Plane, Pos, RegionId, SceneId, Seq, SessionId, SubjectHash,
    Tick,
};

const SCENE: SceneId = SceneId(0);
const FIRST: RegionId = RegionId(3);
const NEXT: RegionId = RegionId(4);
const ADA: SubjectHash = SubjectHash::new([1; 16]);

/// A session with a clock, whose effects are short texts.
struct Bench {
    player: Player,
    now_ms: u64,
    queued: usize,
}

fn config() -> PlayerConfig {
    PlayerConfig { send_queue: 8, unacknowledged_max: 6, ..PlayerConfig::default() }
}

fn text(effect: &PlayerEffect) -> String {
    match effect {
        PlayerEffect::ToRegion(region, input) => match input {
            Input::Enter(spawn) => format!("{region}: enter plane {}", spawn.plane),
            Input::Client { seq, order: Order::Move(_), .. } => format!("{region}: move {seq}"),
            Input::Client { seq, order: Order::Act(_), .. } => format!("{region}: act {seq}"),
            Input::Client { seq, order: Order::Teleport(_), .. } => {
                format!("{region}: teleport {seq}")
            }
            Input::Disconnected { ms: 0, .. } => format!("{region}: leave"),
            Input::Hold { .. } => format!("{region}: hold"),
            Input::Release { .. } => format!("{region}: release"),
            Input::Resync { .. } => format!("{region}: resync"),
            Input::Present(p) => {
                format!("{region}: present epoch {} acked {} at {}", p.epoch, p.acked, p.pos.x)
            }
            Input::Elsewhere { claim, .. } => {
                format!("{region}: elsewhere in {} epoch {}", claim.region, claim.epoch)
            }
            other => format!("{region}: {other:?}"),
        },
        PlayerEffect::Reply(Reply::Refused { problem, seq }) => match seq {
            Some(seq) => format!("refused {seq}: {problem}"),
            None => format!("refused: {problem}"),
        },
        PlayerEffect::Reply(Reply::Joined { plane, tick, .. }) => {
            format!("joined plane {plane} tick {tick}")
        }
        PlayerEffect::Reply(Reply::Lines(lines)) => format!("lines {:?}", lines.open),
        PlayerEffect::Reply(Reply::Pong { nonce, tick }) => format!("pong {nonce} tick {tick}"),
        PlayerEffect::Reply(Reply::Unconfirmed { first, last }) => {
            format!("unconfirmed {first} to {last}")
        }
        PlayerEffect::Reply(Reply::Left { tick }) => format!("left tick {tick}"),
        PlayerEffect::Reply(Reply::Welcome) => "welcome".into(),
        PlayerEffect::Forward => "forward".into(),
        PlayerEffect::Take(_, plane) => format!("take {plane}"),
        PlayerEffect::GiveBack(_, plane) => format!("give back {plane}"),
        PlayerEffect::Close(end, _) => format!("close {end:?}"),
        PlayerEffect::Done => "done".into(),
    }
}

fn to(plane: i32) -> Destination {
    Destination { scene: SCENE, region: FIRST, plane: Plane(plane), pos: Pos::ground(1, 2) }
}

fn hello() -> ClientRequest {
    ClientRequest::Hello(Ok((ADA, Account::NONE)))
}

fn arrival(plane: i32) -> ClientRequest {
    let (id, sight, left_at) = (EntityId(70), ViewLimits::FULL, None);
    let (properties, bonds) = Default::default();
    ClientRequest::Join(Ok(Arrival { id, to: to(plane), sight, left_at, properties, bonds }))
}

fn step(seq: u32) -> ClientRequest {
    ClientRequest::Input(Seq(seq), Order::Move(Pos::ground(seq as i32, 0)))
}

fn teleport(seq: u32, plane: i32) -> ClientRequest {
    ClientRequest::Teleport(Seq(seq), Ok(TeleportTarget { to: to(plane), takes_place: true }))
}

fn route(region: RegionId, epoch: u64, last_applied: u32, arrived: bool) -> Notice {
    route_to(region, epoch, last_applied, arrived, 1)
}

fn route_to(region: RegionId, epoch: u64, last: u32, arrived: bool, plane: i32) -> Notice {
    Notice::Route(RouteNotice {
        subject: ADA,
        scene: SCENE,
        region,
        epoch: Epoch(epoch),
        last_applied: Seq(last),
        tick: Tick(10),
        plane: Plane(plane),
        pos: Pos::ground(1, 2),
        arrived,
        ..RouteNotice::default()
    })
}

fn left(tick: u64) -> Notice {
    Notice::Left { tick: Tick(tick), epoch: Epoch(9), properties: Default::default() }
}

/// A frame of a region for the session.
fn frame(tick: u64, epoch: u64, ack: u32, enters: &[u64], leaves: &[u64]) -> FrameBatch {
    let entering = enters.iter().map(|&id| Entering {
        id: EntityId(id),
        kind: Kind::PLAYER,
        pos: Pos::default(),
        trajectory: None,
        facing: Default::default(),
        properties: Default::default(),
    });
    FrameBatch {
        tick: Tick(tick),
        entering: entering.collect(),
        refs: (0..enters.len() as u32).collect(),
        leaves: leaves.iter().map(|&id| EntityId(id)).collect(),
        sessions: vec![SessionFrame {
            session: SessionId(7),
            ack: Seq(ack),
            epoch: Epoch(epoch),
            enters: enters.len() as u32,
            leaves: leaves.len() as u32,
            ..SessionFrame::default()
        }],
        ..FrameBatch::default()
    }
}

impl Bench {
    fn new() -> Bench {
        Bench::with(config())
    }

    fn with(config: PlayerConfig) -> Bench {
        let player = Player::new(1_000, SessionId(7), config);
        Bench { player, now_ms: 1_000, queued: 0 }
    }

    /// It has said hello and asked for plane 1.
    fn joining() -> Bench {
        let mut b = Bench::new();
        b.say(hello());
        b.say(arrival(1));
        b
    }

    fn in_world() -> Bench {
        let mut b = Bench::joining();
        b.notice(route(FIRST, 1, 0, true));
        assert_eq!(b.player.state(), State::InWorld);
        b
    }

    fn input(&mut self, input: PlayerInput<'_>) -> Vec<String> {
        let mut out = Vec::new();
        self.player.handle(self.now_ms, input, &mut out);
        out.iter().map(text).collect()
    }

    fn say(&mut self, said: ClientRequest) -> Vec<String> {
        self.input(PlayerInput::Request(said))
    }

    fn notice(&mut self, notice: Notice) -> Vec<String> {
        self.input(PlayerInput::Notice(notice))
    }

    fn frame(&mut self, batch: &FrameBatch) -> Vec<String> {
        let queued = self.queued;
        self.input(PlayerInput::Frame { batch, index: 0, queued })
    }

    fn after(&mut self, ms: u64) -> Vec<String> {
        self.now_ms += ms;
        let queued = self.queued;
        self.input(PlayerInput::Timer { queued })
    }

    fn undelivered(&mut self, seq: u32) -> Vec<String> {
        let (id, session, order) = (EntityId(70), SessionId(0), Order::Move(Pos::default()));
        let (seq, handle) = (Seq(seq), EntityHandle(0));
        self.input(PlayerInput::Undelivered(Input::Client { id, session, seq, order, handle }))
    }
}

const NOTHING: [&str; 0] = [];

#[test]
fn a_session_from_hello_to_left() {
    let mut b = Bench::new();
    assert_eq!(b.say(hello()), ["welcome"]);
    assert_eq!(b.say(arrival(1)), ["3: enter plane 1"]);
    assert_eq!(b.notice(route(FIRST, 1, 0, true)), ["joined plane 1 tick 10"]);
    assert_eq!(b.say(step(1)), ["3: move 1"]);
    assert_eq!(b.frame(&frame(12, 1, 1, &[5], &[])), ["forward"]);
    assert_eq!(b.say(ClientRequest::Ping(9)), ["pong 9 tick 12"]);
    assert_eq!(b.say(ClientRequest::Leave), ["3: leave"]);
    assert_eq!(b.notice(left(14)), ["left tick 14", "close Normal", "give back 1", "done"]);
    assert_eq!(b.player.state(), State::Closed);
    assert_eq!(b.say(step(2)), NOTHING);
}

#[test]
fn a_premature_message_is_refused_and_gives_its_place_back() {
    let mut b = Bench::new();
    assert_eq!(b.say(arrival(2)), ["give back 2", "refused: join is not legal before the hello"]);
    assert_eq!(b.say(ClientRequest::Ping(1)), ["refused: ping is not legal before the hello"]);
    b.say(hello());
    assert_eq!(b.say(step(1)), ["refused 1: move is not legal between hello and join"]);
    assert_eq!(b.say(hello()), ["refused: hello is not legal between hello and join"]);
    b.say(arrival(1));
    assert_eq!(b.say(step(1)), ["refused 1: move is not legal before the joined message"]);
    b.notice(route(FIRST, 1, 0, true));
    assert_eq!(b.say(arrival(3)), ["give back 3", "refused: join is not legal in a scene"]);
}

#[test]
fn a_join_that_is_refused_can_be_tried_again() {
    let mut b = Bench::new();
    b.say(hello());
    let full = Problem::NoRoom { scene: "city".into(), lines: 2, capacity: 50 };
    let why = "refused: no line of scene \"city\" has room: 2 lines for 50 players each are full";
    assert_eq!(b.say(ClientRequest::Join(Err(full))), [why]);
    b.say(arrival(1));
    assert_eq!(
        b.notice(Notice::Refused(Refusal::Busy)),
        ["give back 1", "refused: the region refused: Busy"]
    );
    assert_eq!(b.player.place(), None);
    assert_eq!(b.say(arrival(2)), ["3: enter plane 2"]);
}

#[test]
fn an_input_out_of_order_is_refused_and_the_expected_number_told() {
    let mut b = Bench::in_world();
    assert_eq!(b.say(step(2)), ["refused 2: the next input must be number 1"]);
    assert_eq!(b.say(step(1)), ["3: move 1"]);
    assert_eq!(b.say(step(1)), ["refused 1: the next input must be number 2"]);
    assert_eq!(b.say(step(2)), ["3: move 2"]);
}

#[test]
fn a_jump_that_the_session_refuses_consumes_no_number() {
    let mut b = Bench::in_world();
    let nowhere = ClientRequest::Teleport(Seq(1), Err(Problem::UnknownScene("moon".into())));
    assert_eq!(b.say(nowhere), ["refused 1: no scene is named \"moon\""]);
    assert_eq!(b.say(step(1)), ["3: move 1"]);
}

#[test]
fn a_new_route_resends_in_order_inputs_that_were_not_applied_and_old_routes_are_ignored() {
    let mut b = Bench::in_world();
    for seq in 1..=4 {
        b.say(step(seq));
    }
    assert_eq!(b.frame(&frame(12, 1, 1, &[], &[])), ["forward"]);
    assert_eq!(b.notice(route(NEXT, 2, 2, false)), ["4: move 3", "4: move 4"]);
    assert_eq!(b.notice(route(FIRST, 1, 0, false)), NOTHING);
    assert_eq!(b.say(step(5)), ["4: move 5"]);
}

#[test]
fn a_frame_of_an_older_epoch_acknowledges_nothing_and_leads_to_a_resync() {
    let mut b = Bench::in_world();
    b.notice(route(NEXT, 2, 0, false));
    b.say(step(1));
    assert_eq!(b.frame(&frame(12, 1, 1, &[5], &[])), ["4: resync"]);
    assert_eq!(b.player.shown(), []);
    assert_eq!(b.notice(route(FIRST, 3, 0, false)), ["3: resync", "3: move 1"]);
}

#[test]
fn a_full_mailbox_delays_inputs_and_keeps_their_order() {
    let mut b = Bench::in_world();
    b.say(step(1));
    b.say(step(2));
    assert_eq!(b.undelivered(1), NOTHING);
    assert_eq!(b.undelivered(2), NOTHING);
    assert_eq!(b.say(step(3)), NOTHING);
    assert_eq!(
        b.frame(&frame(12, 1, 0, &[], &[])),
        ["forward", "3: move 1", "3: move 2", "3: move 3"]
    );
    b.undelivered(3);
    assert_eq!(b.after(250), ["3: move 3"]);
}

#[test]
fn inputs_that_no_region_acknowledges_are_sent_again_after_a_while() {
    let mut b = Bench::in_world();
    b.say(step(1));
    b.say(step(2));
    assert_eq!(b.after(999), NOTHING);
    assert_eq!(b.after(1), ["3: move 1", "3: move 2"]);
    assert_eq!(b.after(999), NOTHING);
}

#[test]
fn a_jump_to_another_plane_keeps_both_places_until_it_arrives() {
    let mut b = Bench::in_world();
    assert_eq!(b.say(teleport(1, 5)), ["3: teleport 1"]);
    assert_eq!(
        b.say(teleport(2, 6)),
        ["give back 6", "refused 2: a teleport is under way: wait for its joined message"]
    );
    assert_eq!(b.say(step(2)), ["3: move 2"]);
    assert_eq!(
        b.notice(route_to(NEXT, 2, 1, true, 5)),
        ["give back 1", "joined plane 5 tick 10", "4: move 2"]
    );
    assert_eq!(b.player.place(), Some((SCENE, Plane(5))));
}

#[test]
fn a_jump_whose_regions_have_died_is_told_by_the_recovered_region() {
    let anew = Epoch(5).of_birth().0;
    let teleported = |ack| {
        let mut b = Bench::in_world();
        b.say(teleport(1, 5));
        // The region in which it has teleported says no more than that.
        b.frame(&frame(12, 1, ack, &[], &[]));
        b
    };
    let mut b = teleported(1);
    assert_eq!(
        b.notice(route_to(NEXT, anew, 1, false, 5)),
        ["give back 1", "joined plane 5 tick 10"]
    );
    assert_eq!(b.player.place(), Some((SCENE, Plane(5))));
    assert_eq!(b.say(teleport(2, 6)), ["4: teleport 2"]);
    // It was not made yet, or is not over: it goes on in the same life.
    let told = |mut b: Bench, epoch, last| b.notice(route_to(NEXT, epoch, last, false, 1));
    assert_eq!(told(teleported(0), anew, 0), ["4: teleport 1"]);
    assert_eq!(told(teleported(1), 2, 1), NOTHING);
}

#[test]
fn a_jump_inside_a_region_is_told_without_a_new_epoch() {
    let mut b = Bench::in_world();
    b.say(teleport(1, 5));
    assert_eq!(b.notice(route_to(FIRST, 1, 1, true, 5)), ["give back 1", "joined plane 5 tick 10"]);
}

#[test]
fn a_jump_that_the_region_refuses_gives_its_place_back_and_consumes_its_number() {
    let mut b = Bench::in_world();
    b.say(teleport(1, 5));
    let mut batch = frame(12, 1, 1, &[], &[]);
    batch.refused = vec![InputRefused { seq: Seq(1), why: Refusal::OutOfBounds }];
    batch.sessions[0].refused = 1;
    assert_eq!(b.frame(&batch), ["give back 5", "forward"]);
    assert_eq!(b.say(teleport(2, 6)), ["3: teleport 2"]);
}

#[test]
fn a_player_that_game_logic_moves_to_another_plane_takes_a_place_there() {
    let mut b = Bench::in_world();
    assert_eq!(
        b.notice(route_to(NEXT, 2, 0, true, 9)),
        ["give back 1", "take 9", "joined plane 9 tick 10"]
    );
}

#[test]
fn a_join_that_finds_the_mailbox_full_is_sent_again_or_ends_with_the_client() {
    let full = |b: &mut Bench| {
        b.say(hello());
        b.say(arrival(1));
        let spawn = Spawn {
            plane: Plane(1),
            session: Some(b.player.session()),
            subject: ADA,
            ..Spawn::new(EntityId(70), Kind::PLAYER, Pos::ground(0, 0))
        };
        b.input(PlayerInput::Undelivered(Input::Enter(Box::new(spawn))))
    };
    let mut b = Bench::new();
    assert_eq!(full(&mut b), NOTHING);
    assert_eq!(b.after(250), ["3: enter plane 1"]);
    let mut b = Bench::new();
    full(&mut b);
    assert_eq!(b.input(PlayerInput::Gone), ["give back 1", "done"]);
}

#[test]
fn a_client_that_leaves_before_it_arrived_is_removed_when_it_does() {
    let mut b = Bench::joining();
    assert_eq!(b.input(PlayerInput::Gone), ["3: leave"]);
    assert_eq!(b.notice(route(FIRST, 1, 0, true)), ["3: leave"]);
    assert_eq!(b.notice(left(1)), ["give back 1", "done"]);
}

#[test]
fn the_view_list_follows_the_frames_that_the_client_got() {
    let mut b = Bench::in_world();
    b.frame(&frame(12, 1, 0, &[9, 5, 6], &[]));
    assert_eq!(b.player.shown(), [EntityId(5), EntityId(6), EntityId(9)]);
    b.frame(&frame(13, 1, 0, &[4], &[6]));
    assert_eq!(b.player.shown(), [EntityId(4), EntityId(5), EntityId(9)]);
    let mut anew = frame(14, 1, 0, &[8], &[]);
    anew.sessions[0].resync = true;
    b.frame(&anew);
    assert_eq!(b.player.shown(), [EntityId(8)]);
}

#[test]
fn deadlines_close_a_session_that_waits_for_its_client() {
    let mut b = Bench::new();
    assert_eq!(b.after(4_999), NOTHING);
    assert_eq!(b.after(1), ["close Handshake", "done"]);

    let mut b = Bench::new();
    b.say(hello());
    assert_eq!(b.after(5_000), ["close Handshake", "done"]);

    let mut b = Bench::joining();
    assert_eq!(b.after(5_000), ["close Overload", "3: leave"]);

    let mut b = Bench::in_world();
    // No frames come either.
    assert_eq!(b.after(29_999), ["3: release"]);
    assert_eq!(b.say(ClientRequest::Alive), NOTHING);
    assert_eq!(b.after(29_999), ["3: release"]);
    assert_eq!(b.after(1), ["close Heartbeat", "3: leave"]);

    let mut b = Bench::in_world();
    b.say(ClientRequest::Leave);
    assert_eq!(b.after(5_000), ["close Normal", "3: leave"]);
}

#[test]
fn garbage_is_forgiven_eight_times() {
    let mut b = Bench::in_world();
    let garbage = || ClientRequest::Garbage(Problem::Malformed("no".into()));
    for _ in 0..8 {
        assert_eq!(b.say(garbage()), ["refused: no"]);
    }
    assert_eq!(b.say(garbage()), ["close Protocol", "3: leave"]);
}

#[test]
fn an_unforgivable_message_closes_at_once() {
    let bad = |said| Bench::new().say(said);
    assert_eq!(bad(ClientRequest::Unsupported), ["close Unsupported", "done"]);
    assert_eq!(bad(ClientRequest::TooBig(4_096)), ["close TooBig", "done"]);
    assert_eq!(bad(ClientRequest::Unframed), ["close Protocol", "done"]);
    let hello = |end| ClientRequest::Hello(Err((end, String::new())));
    assert_eq!(bad(hello(End::Version)), ["close Version", "done"]);
    assert_eq!(bad(hello(End::Token)), ["close Token", "done"]);
    assert_eq!(Bench::in_world().input(PlayerInput::Stop), ["close GoingAway", "3: leave"]);
}

//! One message of every kind that travels between processes, with a value in every field.

mod batches;
pub mod kinds;
pub mod workers;

use batches::{border, frames};
use bytes::Bytes;
use purview::scene::load::{LandReport, NeighbourReport, RegionReport};
use purview::scene::messages::{
    ActionsDue, Bond, BorderBatch, BorderRoundBatch, Change, Claim, Claims, Destination,
    EntityAction, FrameBatch, GroupMessage, Handoff, Heard, Input, InputRefused, KeptBonds,
    LogicMessage, MapNews, MessageId, MessageKind, Motion, NamedBond, Notice, Order, PastAction,
    Presented, Recipients, Recovered, Refusal, Resume, ResumeFor, Resumed, RouteNotice, SceneOrder,
    SeenState, SetProperty, Spawn, Speaker,
};
use purview::scene::messages::{
    After, Asker, Command, CommandError, CommandId, CommandResult, Found, Locate, Mark,
    SentCommand, Sought, Taken, WatchState,
};
use purview::scene::movement::{
    ClientMs, Flags, Go, GrantId, Granted, Move, MoveCommand, Mover, Own, Reason, ServerMs,
    Trajectory, Vector,
};
use purview::scene::portals::{Journey, Target, ToPlane};
use purview::scene::properties::{Properties, PropertyId, Value};
use purview::scene::spec::WatchSpec;
use purview::scene::terrain::{DoorChange, DoorId, DoorOrder, SavedDoor, SavedDoors};
use purview::scene::views::{
    Fight, GroupRelation, PeerState, Relation, Ties, ViewMsg, ViewMsgBody,
};
use purview::scene::{
    Account, EntityHandle, EntityId, Epoch, Facing, Kind, Plane, Pos, RangeSet, RegionId, SceneId,
    Seq, SessionId, SubjectHash, Tick, ViewLimits,
};
use purview::wire::peer::query::{Answer, EntityLocation, Fullness, Question, Stamp, SubjectClaim};
use purview::wire::peer::{self, ActorState, MoveMsg, PeerMsg};

use self::kinds::variant;

/// The process of the sessions, workers and players of the samples.
pub const PROCESS: u64 = 3;

fn journey() -> Journey {
    Journey { scene: Some("cave".into()), plane: ToPlane::Of(Plane(2)), at: Target::Ground(PLACE) }
}

fn at_war() -> GroupRelation {
    let (groups, relation) = ([77, 78], Relation::Enemy);
    GroupRelation { class: 1, groups, relation, at: TICK, version: 12 }
}

const ID: EntityId = EntityId(PROCESS << 32 | 17);
const OTHER: EntityId = EntityId(42);
const SUBJECT: SubjectHash = SubjectHash::new(*b"\x00\x80hash of a sub.");
const SESSION: SessionId = SessionId(PROCESS << 32 | 9);
const EPOCH: Epoch = Epoch(1 << 21 | 5);
const TICK: Tick = Tick(70_000);
const PLACE: Pos = Pos { x: -5, y: 300, z: 70_000 };

fn vector() -> Move {
    Move::Vector(Vector { start: PLACE, vx_mm_s: 4_000, vz_mm_s: -1, lasts_ms: Some(900) })
}

fn trajectory() -> Trajectory {
    Trajectory { motion: vector(), start: ServerMs(123_456), lasts_ms: 900 }
}

fn own() -> Box<Own> {
    let granted = Granted { id: GrantId(7), speed_cm_s: 900, left_ms: Some(30) };
    let grants = std::array::from_fn(|i| (i == 1).then_some(granted));
    Box::new(Own {
        correction: 3,
        trajectory: trajectory(),
        speed_cm_s: 450,
        flags: Flags::ROOTED,
        grants,
    })
}

fn account() -> Account {
    let claims = Bytes::from_static(b"\x81\xa5level\x07");
    Account::new("ada", claims, &[("city".into(), Plane(3))]).unwrap()
}

fn ties() -> Ties {
    let mut ties = Ties::of(vec![Bond { class: 1, group: 77 }]);
    ties.fights.push(Fight { with: OTHER, until: TICK });
    ties.reach = Some(4_000);
    ties
}

fn spawn() -> Spawn {
    Spawn {
        id: ID,
        kind: Kind::PLAYER,
        plane: Plane(-1),
        pos: PLACE,
        sight: ViewLimits::FULL,
        left_at: None,
        facing: Facing::SOUTH,
        properties: Properties::with_appearance(b"look").unwrap(),
        session: Some(SESSION),
        subject: SUBJECT,
        account: account(),
        bonds: kept_bonds(),
    }
}

fn destination() -> Destination {
    Destination { scene: SceneId(1), region: RegionId(9), plane: Plane(2), pos: PLACE }
}

fn action() -> EntityAction {
    EntityAction { payload: Bytes::from_static(b"hit"), aim: Some(OTHER), by: Speaker::Logic }
}

fn set_property() -> SetProperty {
    SetProperty { id: PropertyId(3), value: Value::of("knel").unwrap() }
}

fn handoff() -> Handoff {
    let peer = PeerState {
        id: OTHER,
        my_yes: 1,
        their_yes: 2,
        seen: 3,
        their_turn: true,
        shown: false,
        sent: TICK,
        epoch: EPOCH,
        withheld: 2,
    };
    Handoff {
        from: RegionId(1),
        from_epoch: EPOCH,
        state: spawn(),
        ties: ties(),
        epoch: EPOCH,
        last_applied: Seq(9),
        tick: TICK,
        peers: vec![peer],
        view_counter: 4,
        seen: vec![SeenState { id: OTHER, sent: TICK, withheld: 1 }],
        properties_told: TICK,
        gone: vec![EntityId(43)],
        refused: vec![refused()],
        told: vec![told()],
        heard: heard(),
        heard_since_ms: 12_345,
        mover: Some(Box::new(Mover::new(ServerMs(123), PLACE, 450))),
        watch: Some(Box::new(WatchState {
            own: Some(vec![WatchSpec { kinds: vec![0], enter_cm: 700, leave_cm: 900 }]),
            sighted: vec![EntityId(3)],
            taken: taken(),
            sight_cm: Some(300),
        })),
        pace: Default::default(),
        held: true,
        resync: false,
        teleported: true,
        asleep_until: None,
        disconnected_until: Some(TICK),
        stays_until: TICK,
        scene: Some(SceneId(1)),
        by_map: true,
        since_ms: 70_000,
        acts: vec![past_action()],
        acts_due: vec![ActionsDue { of: OTHER, after: TICK, came: TICK, served: TICK }],
        unconfirmed: Some((Seq(7), Seq(9))),
    }
}

fn past_action() -> PastAction {
    let content = EntityAction::new(b"wave".to_vec());
    PastAction { tick: TICK, id: ID, content, to: vec![RegionId(3)] }
}

fn heard() -> Heard {
    let mut heard = Heard::default();
    heard.note(MessageId { sender: 3, number: 9 }, 12_300);
    heard
}

fn told() -> LogicMessage {
    LogicMessage { kind: MessageKind::Bond, payload: Bytes::from_static(b"party") }
}

fn group_message(to: Recipients) -> Input {
    let id = MessageId { sender: 3, number: 10 };
    let (payload, sent_ms) = (Bytes::from_static(b"hear"), 12_400);
    Input::Group(Box::new(GroupMessage { id, to, payload, sent_ms }))
}

fn refused() -> InputRefused {
    InputRefused { seq: Seq(8), why: Refusal::Move(Reason::OutOfBounds { at: PLACE }) }
}

fn view() -> ViewMsg {
    let say = ViewMsgBody::No { echo: 4, at: 5 };
    ViewMsg { from: ID, from_region: RegionId(1), from_epoch: EPOCH, to: OTHER, say }
}

fn kept_bonds() -> KeptBonds {
    KeptBonds { at: TICK, named: vec![NamedBond::new("guild", 5)] }
}

fn presented() -> Presented {
    Presented {
        subject: SUBJECT,
        account: account(),
        id: ID,
        session: SESSION,
        to: RegionId(2),
        epoch: EPOCH,
        acked: Seq(9),
        plane: Plane(0),
        pos: PLACE,
        placed_by: Seq(8),
        own: Some((TICK, own())),
        tick: TICK,
        sight: ViewLimits::FULL,
        facing: Facing::SOUTH,
        properties: Properties::with_appearance(b"look").unwrap(),
        bonds: kept_bonds(),
        teleport: Some(destination()),
        since_ms: 70_002,
    }
}

fn answer() -> Answer {
    let entity_location = EntityLocation {
        id: ID,
        kind: Kind(1),
        scene: SceneId(1),
        region: RegionId(2),
        epoch: EPOCH,
        plane: Plane(0),
        pos: PLACE,
        facing: Facing::NORTH,
        properties: Properties::with_appearance(b"look").unwrap(),
    };
    let line = Fullness { scene: SceneId(1), plane: Plane(2), players: 60 };
    let claims = vec![subject_claim()];
    let (lives, late) = (vec![entity_location], vec![RegionId(3)]);
    let (loads, balance) = (vec![(RegionId(2), report())], "{}".into());
    Answer { lives, late, lines: vec![line], clock_ns: Some(77), claims, loads, balance }
}

fn report() -> RegionReport {
    let near_us = [0.0, 1.5, 0.0, 0.25];
    let land = LandReport { x: 3, z: 70_000, players: 2, weight_us: 17.5, near_us };
    let neighbour = NeighbourReport { region: RegionId(3), pairs: 300, ghosts: 5 };
    let (lands, neighbours) = (Some(vec![land]), vec![neighbour]);
    RegionReport { tick_us: 1_250.5, tick_us_p99: 3_000.0, players: 2, lands, neighbours }
}

fn subject_claim() -> SubjectClaim {
    let stamp = Stamp { at_ms: 7_000, session: SessionId(PROCESS << 32 | 9) };
    SubjectClaim { subject: "ada".into(), stamp, entity: ID }
}

fn mark(number: u64) -> Mark {
    Mark { epoch: EPOCH, number }
}

fn taken() -> Taken {
    let mut taken = Taken::default();
    let after = After { prev: Mark::default(), oldest: mark(12) };
    taken.see(RegionId(7), mark(12), after);
    taken.refuse(mark(12), CommandError::NoDoor);
    taken
}

fn entry() -> SentCommand {
    let after = Some(After { prev: mark(11), oldest: mark(10) });
    let id = CommandId { from: Asker::Logic(RegionId(7), EPOCH), number: 12 };
    SentCommand { id, command: Command::Tell(ID, Bytes::new()), searches: 0, after }
}

#[expect(clippy::too_many_lines, reason = "every kind of message")]
fn inputs() -> Vec<(&'static str, Input)> {
    let (id, seq) = (ID, Seq(7));
    let motion = |motion| command_of(Command::Motion(ID, motion));
    let walk = MoveCommand { correction: 2, at: ClientMs(77), go: Go::Walk(vector()) };
    let claim = Claim { id: OTHER, epoch: EPOCH, region: RegionId(2) };
    let elsewhere = Claim { id, epoch: Epoch(9), region: RegionId(3) };
    let grant = Motion::Grant { id: GrantId(7), speed_cm_s: 900, lasts_ms: Some(30) };
    let border_round = BorderRoundBatch {
        from: RegionId(1),
        epoch: EPOCH,
        tick: TICK,
        round: 2,
        done: true,
        view_messages: vec![view()],
        thresholds: vec![(ID, 7)],
        recovers: true,
    };
    let claims = Claims {
        from: RegionId(1),
        answer: Some(EPOCH),
        tick: TICK,
        lives: vec![claim],
        handed: vec![handoff()],
    };
    let recovered =
        Recovered { region: RegionId(1), epoch: EPOCH, map: 2, holds: vec![(ID, EPOCH)] };
    let (asked, since_ms) = (RegionId(1), 70_001);
    let handle = EntityHandle(3);
    let (subject, purpose) = (SUBJECT, ResumeFor::Leave);
    let client = |order| Input::Client { id, session: SESSION, seq, order, handle };
    let resume = Resume { id, session: SESSION, subject, acked: seq, asked, since_ms, purpose };
    let door = |change| {
        Input::Scene(SceneOrder::Doors(DoorOrder {
            plane: Plane(1),
            change,
            at: TICK,
            version: 12,
        }))
    };
    let map = |change| Input::Map(Box::new(MapNews { from: RegionId(1), version: 3, change }));
    let set = SavedDoor { plane: Plane(1), door: "gate".into(), open: true, version: 12 };
    let doors = Some(SavedDoors { doors: vec![set], ..SavedDoors::default() });
    vec![
        (" ended", map(Change::Ended)),
        (" ceded", map(Change::Ceded { doors, relations: vec![at_war()], contents: None })),
        ("", Input::Enter(Box::new(spawn()))),
        ("", Input::Leave(ID)),
        (" move", client(Order::Move(PLACE))),
        (" walk", client(Order::Walk(walk))),
        (" teleport", client(Order::Teleport(destination()))),
        (" act", client(Order::Act(action()))),
        (" face", client(Order::Face(Facing::WEST))),
        (" set", client(Order::Set(set_property()))),
        ("", Input::Tell { id, payload: Bytes::from_static(b"psst") }),
        (" bond", group_message(Recipients::Bond(NamedBond::new("party", 77)))),
        (" plane", group_message(Recipients::Plane(SceneId(1), Plane(2)))),
        (" scene", group_message(Recipients::Scene(SceneId(1)))),
        (" order", command_of(Command::Order(ID, Order::Move(PLACE)))),
        (" travel", command_of(Command::Order(ID, Order::Travel(journey())))),
        (" subject", command_of(Command::OfSubject("ada".into(), Box::new(Command::Kick(ID))))),
        (" relate", command_of(Command::Relate("party".into(), [77, 78], Relation::Enemy))),
        (" relation", Input::Scene(SceneOrder::Relation(at_war()))),
        (
            " relations known",
            Input::Scene(SceneOrder::RelationsKnown { by: RegionId(4), digest: 1 << 60 | 9 }),
        ),
        (" motion, walk", motion(Motion::Walk(vector()))),
        (" motion, stop", motion(Motion::Stop)),
        (" motion, flags", motion(Motion::Flags(Flags::DEAD))),
        (" motion, speed", motion(Motion::Speed(450))),
        (" motion, grant", motion(grant)),
        (" motion, revoke", motion(Motion::Revoke(GrantId(7)))),
        ("", Input::Bonds { id, bonds: vec![Bond { class: 1, group: 77 }] }),
        ("", Input::Hold { id, session: SESSION }),
        ("", Input::Release { id, session: SESSION }),
        ("", Input::Resync { id, session: SESSION, told: TICK, question: 2 }),
        ("", Input::Border(Box::new(border()))),
        ("", Input::BorderLost(RegionId(1))),
        ("", Input::BorderRound(Box::new(border_round))),
        (" no", Input::View(view())),
        (" yes", Input::View(ViewMsg { say: ViewMsgBody::Yes(3), ..view() })),
        (" again", Input::View(ViewMsg { say: ViewMsgBody::Again(3), ..view() })),
        ("", Input::Handoff(Box::new(handoff()))),
        ("", Input::Present(Box::new(presented()))),
        ("", Input::Elsewhere { claim: elsewhere, session: SESSION, subject: SUBJECT }),
        ("", Input::Disconnected { id, session: SESSION, ms: 10_000 }),
        ("", Input::Kicked { id, session: SESSION }),
        ("", Input::Resume(resume)),
        ("", Input::Recovered(Box::new(recovered))),
        ("", Input::Claims(Box::new(claims))),
        (" set", door(DoorChange::Set { door: DoorId(3), open: true })),
        (" reset", door(DoorChange::Reset)),
        ("", Input::Command(Box::new(sent_command()))),
        (" entry", Input::Command(Box::new(entry()))),
        (" asked", Input::Locate(Locate::Asked { sought: Sought::Entity(ID), by: RegionId(1) })),
        (" told", Input::Locate(told_of_subject())),
        ("", Input::CommandResult(command_result())),
    ]
}

fn command_of(command: Command) -> Input {
    Input::command(CommandId { from: Asker::Process(3), number: 5 }, command)
}

fn sent_command() -> SentCommand {
    let from = Asker::Logic(RegionId(1), EPOCH);
    let command = Command::Tell(ID, Bytes::from_static(b"psst"));
    SentCommand { id: CommandId { from, number: 5 }, command, searches: 1, after: None }
}

fn told_of_subject() -> Locate {
    let lives = Some(Found { id: ID, region: RegionId(2) });
    Locate::Told { sought: Sought::Subject("ada".into()), from: RegionId(1), lives }
}

fn command_result() -> CommandResult {
    let id = CommandId { from: Asker::Process(3), number: 5 };
    CommandResult { id, result: Err(CommandError::Unknown(ID)) }
}

fn notices() -> Vec<Notice> {
    let resumed = Resumed {
        subject: SUBJECT,
        scene: SceneId(1),
        region: RegionId(2),
        epoch: EPOCH,
        last_applied: Seq(9),
        tick: TICK,
        plane: Plane(0),
        pos: PLACE,
        own: Some(own()),
        sight: RangeSet::NEAR.into(),
        facing: Facing::SOUTH,
        properties: Properties::with_appearance(b"back").unwrap(),
        since_ms: 70_003,
        unconfirmed: Some((Seq(7), Seq(9))),
    };
    vec![
        Notice::Route(RouteNotice {
            facing: Facing::WEST,
            arrived: true,
            unconfirmed: None,
            ..resumed.clone().as_route()
        }),
        Notice::Left {
            tick: TICK,
            epoch: EPOCH,
            properties: Properties::with_appearance(b"last").unwrap(),
        },
        Notice::Present { region: RegionId(2), owner: Epoch(17), epoch: EPOCH },
        Notice::Bonds { epoch: EPOCH, bonds: kept_bonds() },
        Notice::Resumed(Box::new(resumed)),
        Notice::Nowhere { asked: RegionId(2) },
        Notice::Replaced,
        Notice::Stays { id: EntityId(5), epoch: EPOCH, until: TICK, ms: 10_000 },
        Notice::Refused(Refusal::Busy),
        Notice::Kicked,
        Notice::OtherSubject,
    ]
}

fn moves() -> Vec<MoveMsg> {
    let (region, epoch) = (RegionId(2), EPOCH);
    let mark = peer::Mark { process: PROCESS, sessions: true };
    let actor_state = ActorState {
        clients: vec![(SESSION, ID)],
        outbox: vec![(RegionId(3), Input::Leave(ID))],
        notices: vec![(SESSION, notices().swap_remove(1))],
    };
    let snapshot = Bytes::from_static(b"PVRS");
    let moves = vec![peer::KnownMove { region: RegionId(5), epoch, to: 9 }];
    vec![
        MoveMsg::Prepare { region, epoch },
        MoveMsg::Ready { region, epoch },
        MoveMsg::Cargo { region, epoch, waits: vec![mark], moves, snapshot, actor_state },
        MoveMsg::Moved { region, epoch, to: 9 },
        MoveMsg::Marked { region, mark },
        MoveMsg::Passed { region, epoch, input: Input::Leave(ID) },
    ]
}

/// A message of every kind, with its name.
pub fn all() -> Vec<(String, PeerMsg)> {
    let region = |(what, input): (&str, Input)| {
        let name = format!("{}{what}", variant(&input));
        (name, PeerMsg::Region { to: RegionId(2), epoch: EPOCH, input })
    };
    let notice = |notice| (variant(&notice), PeerMsg::Notice { session: SESSION, notice });
    let others = [
        (String::new(), PeerMsg::Frames { from: RegionId(1), batch: frames().into() }),
        (String::new(), PeerMsg::Gone(vec![SESSION, SessionId(PROCESS << 32)])),
        (String::new(), PeerMsg::CommandResult(command_result())),
        (String::new(), PeerMsg::Suspect(7)),
        ("players".into(), PeerMsg::Ask { ticket: 7, question: Question::Players }),
        (
            "claims".into(),
            PeerMsg::Ask { ticket: 11, question: Question::Claims(vec![subject_claim()]) },
        ),
        ("lines".into(), PeerMsg::Ask { ticket: 9, question: Question::Lines }),
        ("clock".into(), PeerMsg::Ask { ticket: 10, question: Question::Clock }),
        ("loads".into(), PeerMsg::Ask { ticket: 12, question: Question::Loads }),
        ("balance".into(), PeerMsg::Ask { ticket: 13, question: Question::Balance }),
        ("entity".into(), PeerMsg::Ask { ticket: 8, question: Question::Entity(ID) }),
        (String::new(), PeerMsg::Answered { ticket: 8, answer: answer() }),
        (String::new(), PeerMsg::Busy { region: RegionId(2), busy: true }),
    ];
    let moves = moves().into_iter().map(|msg| (variant(&msg), PeerMsg::Move(Box::new(msg))));
    let all = inputs().into_iter().map(region).chain(notices().into_iter().map(notice));
    let all = all.chain(moves);
    let named = |(name, message): (String, PeerMsg)| {
        (format!("{} {name}", variant(&message)).trim().to_owned(), message)
    };
    all.chain(others).chain(workers::workers()).map(named).collect()
}

//! One message of every type, and the names of its fields.

use purview::scene::movement::{ClientMs, Flags, GrantId, Vector};
use purview::scene::properties::Value;
use purview::scene::properties::{APPEARANCE, PropertyId};
use purview::scene::{
    EntityId, Epoch, Facing, Kind, Plane, Pos, RangeSet, Seq, SessionId, Tick, Visibility,
};
use purview::wire::client::frame::{Acted, Crowd, RefusedInput};
use purview::wire::client::movement::{
    Blocker, EntityTrajectory, Form, Going, Grant, MoveRules, OwnMove,
};
use purview::wire::client::{
    Act, AskLines, Closing, Face, Hello, Join, Joined, Leave, Left, Line, Lines, Move, Ping, Pong,
    Refused, Renewed, Resume, Set, Teleport, Ticket, Unconfirmed, UpdateRules, Walk, Welcome,
};
use purview::wire::{
    ChangedProperty, ClientMsg, CloseCode, DecodeError, Entered, EnteredProperty, ErrorCode,
    FirstProperty, Frame, JoinRules, Moved, NextTrajectory, ServerMsg, TrajectoryUpdate, Turned,
};
use serde::Serialize;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

/// A message in either direction.
#[derive(Debug, PartialEq)]
pub enum Message {
    Client(ClientMsg),
    Server(ServerMsg),
}

impl Message {
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Message::Client(m) => m.encode(),
            Message::Server(m) => m.encode(),
        }
    }

    /// Reads a message of the same direction.
    pub fn decode(&self, bytes: &[u8]) -> Result<Message, DecodeError> {
        Ok(match self {
            Message::Client(_) => Message::Client(ClientMsg::decode(bytes)?),
            Message::Server(_) => Message::Server(ServerMsg::decode(bytes)?),
        })
    }
}

/// A golden vector: its name and the message.
pub struct Sample {
    pub name: &'static str,
    pub message: Message,
}

fn client(name: &'static str, m: impl Into<ClientMsg>) -> Sample {
    Sample { name, message: Message::Client(m.into()) }
}

fn server(name: &'static str, m: impl Into<ServerMsg>) -> Sample {
    Sample { name, message: Message::Server(m.into()) }
}

const AT: Pos = Pos { x: 102_400, y: -50, z: 300 };

fn hello() -> Hello {
    Hello { version: 5, token: "dev:ann".into(), crowd: true }
}

fn join() -> Join {
    Join {
        scene: "meadow".into(),
        plane: Some(Plane(-7)),
        pos: Some(AT),
        sight: Some(RangeSet::FULL),
        properties: vec![FirstProperty::appearance(&[0xca, 0xfe]).expect("short")],
        view_cap: 20,
    }
}

fn path() -> Form {
    Form::Path { start: AT, steps: "7704".parse().expect("steps"), speed_cm_s: 500 }
}

fn vector() -> Form {
    Form::Vector(Vector { start: AT, vx_mm_s: 3_000, vz_mm_s: -4_000, lasts_ms: None })
}

fn walk(form: Option<Form>) -> Walk {
    Walk { seq: Seq(3), correction: 1, at_ms: ClientMs(70_500), form }
}

fn blocker(kind: u8, size_cm: [i32; 2]) -> Blocker {
    Blocker { kind: Kind(kind), size_cm }
}

fn move_rules() -> MoveRules {
    MoveRules {
        tick_ms: 100,
        tile_cm: 200,
        top_speed: 2_000,
        command_ms: 500,
        grace_ms: 300,
        leash_ms: 1_000,
        climb: Some([60, 200]),
        blocks: vec![blocker(2, [200; 2]), blocker(255, [1_600, 450])],
    }
}

fn going(form: Form) -> Going {
    Going { start_ms: 3_600_050, lasts_ms: Some(800), form }
}

fn own() -> OwnMove {
    let grant = Grant { id: GrantId(4), speed: 900, left_ms: Some(3_000) };
    let (correction, trajectory) = (1, Going { lasts_ms: None, ..going(vector()) });
    OwnMove { correction, trajectory, speed: 500, flags: Flags(1), grants: vec![grant] }
}

fn entity_trajectory() -> EntityTrajectory {
    EntityTrajectory { id: EntityId(300), trajectory: going(path()), facing: Facing::WEST }
}

fn next_trajectory() -> NextTrajectory {
    NextTrajectory {
        id: EntityId(301),
        ago_ms: 50,
        dx: 2,
        dy: 0,
        dz: -40,
        vx: 3_000,
        vz: -4_000,
        lasts_ms: None,
        facing: Facing::NORTH,
    }
}

/// A frame of a scene that judges moves.
fn judged_frame() -> Frame {
    Frame {
        enters: vec![Entered { trajectory: Some(going(vector())), ..entered() }],
        moves: vec![],
        trajectories: vec![
            TrajectoryUpdate::Whole(entity_trajectory()),
            TrajectoryUpdate::Next(next_trajectory()),
        ],
        refused: vec![RefusedInput { seq: Seq(12), code: ErrorCode::Blocked }],
        own: Some(own()),
        crowd: None,
        ..frame()
    }
}

fn teleport() -> Teleport {
    Teleport { seq: Seq(70_000), scene: Some("city".into()), plane: None, pos: AT }
}

fn welcome() -> Welcome {
    Welcome {
        version: 5,
        session: SessionId(258),
        tick_ms: 100,
        server_ms: 3_600_000,
        rate_limit: 50,
        max_frame: 4_096,
        heartbeat_ms: 15_000,
    }
}

fn rules(visibility: Visibility) -> JoinRules {
    JoinRules {
        visibility,
        range: RangeSet::FULL,
        sight: RangeSet::FULL,
        patch_cm: [3_200, 1_600],
        patch_margin_cm: 200,
        height_cm: (visibility != Visibility::All).then_some(800),
        view_cap: 60,
        view_margin_cm: 100,
        rates: [1, 10, 40],
        size_cm: [204_800, 204_800],
        movement: None,
        updates: (visibility == Visibility::Patches).then_some(UpdateRules {
            tick_ms: 100,
            error_min_cm: 25,
            error_share: 30,
        }),
    }
}

fn joined(visibility: Visibility) -> Joined {
    Joined {
        id: EntityId(1 << 40),
        scene: "meadow".into(),
        plane: Plane(0),
        pos: AT,
        facing: Facing::NORTH,
        tick: Tick(36_000),
        rules: rules(visibility),
        own: None,
        ack: Seq(0),
        ticket: None,
    }
}

fn entered() -> Entered {
    Entered {
        id: EntityId(9),
        kind: Kind(0),
        x: 1,
        y: 0,
        z: -1,
        facing: Facing::SOUTH,
        properties: vec![entered_property()],
        trajectory: None,
    }
}

fn entered_property() -> EnteredProperty {
    let value = Value::binary(&[0xca, 0xfe]).expect("short");
    EnteredProperty { id: APPEARANCE, version: 1, value }
}

fn changed_property() -> ChangedProperty {
    let value = Value::of(&250).expect("short");
    ChangedProperty { entity: EntityId(9), id: PropertyId(4), version: 12, value }
}

fn message() -> purview::wire::Message {
    purview::wire::Message { kind: 1, payload: vec![0xab].into() }
}

fn turned() -> Turned {
    Turned { id: EntityId(9), facing: Facing::WEST }
}

fn moved() -> Moved {
    Moved { id: EntityId(300), x: -200, y: 0, z: 40_000, vx: 500, vz: -60, facing: Facing(300) }
}

fn set() -> Set {
    let value = Value::of("knel").expect("short");
    Set { seq: Seq(8), property: PropertyId(3), value }
}

fn act(aim: Option<EntityId>) -> Act {
    Act { seq: Seq(200), payload: vec![1, 2].into(), aim }
}

fn acted() -> Acted {
    Acted { id: EntityId(9), payload: vec![1].into(), logic: false }
}

fn input_refused() -> RefusedInput {
    RefusedInput { seq: Seq(12), code: ErrorCode::OutOfBounds }
}

fn frame() -> Frame {
    Frame {
        tick: Tick(36_001),
        ack: Seq(12),
        epoch: Epoch(2),
        resync: false,
        enters: vec![entered()],
        leaves: vec![EntityId(7), EntityId(8)],
        moves: vec![moved()],
        trajectories: vec![],
        turns: vec![turned()],
        acts: vec![acted()],
        properties: vec![changed_property()],
        messages: vec![message()],
        refused: vec![input_refused()],
        own: None,
        crowd: Some(crowd()),
    }
}

fn crowd() -> Crowd {
    Crowd { x: 161_600, z: 4_800, dots: vec![128, 128, 3, 255].into() }
}

fn empty_frame() -> Frame {
    Frame { resync: true, ..Frame::empty(frame().tick, Seq(0), frame().epoch) }
}

fn lines() -> Lines {
    let line = |plane, players| Line { plane: Plane(plane), players, open: players < 2_000 };
    let lines = vec![line(0, 2_000), line(1, 17)];
    Lines { scene: "city".into(), total: 4, capacity: 2_000, lines }
}

fn pong() -> Pong {
    Pong { nonce: (1 << 53) - 1, server_ms: 3_600_001, tick: Tick(36_002) }
}

fn refused(seq: Option<Seq>) -> Refused {
    Refused { code: ErrorCode::OutOfOrder, seq, detail: "want 13".into() }
}

fn unconfirmed() -> Unconfirmed {
    Unconfirmed { first: Seq(13), last: Seq(15) }
}

fn renewed() -> Renewed {
    Renewed { ticket: Ticket { token: "abc.def.ghi".into(), grace_period_ms: 10_000 } }
}

fn closing() -> Closing {
    Closing { code: CloseCode::Slow, detail: "".into() }
}

/// The golden vectors in the order of the document.
pub fn all() -> Vec<Sample> {
    let least = Join {
        scene: "meadow".into(),
        plane: None,
        pos: None,
        sight: None,
        properties: vec![],
        view_cap: 0,
    };
    let circle = Visibility::Circle { enter_cm: 8_000, leave_cm: 9_000 };
    let teleport_here = Teleport { seq: Seq(2), scene: None, plane: Some(Plane(1)), pos: AT };
    vec![
        client("Hello", hello()),
        client("Join, all said", join()),
        client("Join, all left to the server", least),
        client("Face", Face { seq: Seq(7), facing: Facing::SOUTH }),
        client("Set", set()),
        client("Move", Move { seq: Seq(1), pos: AT }),
        client("Teleport to another scene", teleport()),
        client("Teleport to another plane", teleport_here),
        client("Act", act(None)),
        client("Act, aimed", act(Some(EntityId(9)))),
        client("Ping", Ping { nonce: (1 << 53) - 1 }),
        client("AskLines", AskLines { scene: "city".into() }),
        client("Leave", Leave {}),
        client("Walk, a path", walk(Some(path()))),
        client("Walk, a vector", walk(Some(vector()))),
        client("Walk, it goes on", walk(None)),
        client("Resume", Resume { token: "abc.def.ghi".into(), ack: Seq(12) }),
        server("Welcome", welcome()),
        server("Joined, patches", joined(Visibility::Patches)),
        server("Joined, circle", joined(circle)),
        server("Joined, all", joined(Visibility::All)),
        server(
            "Joined, judged",
            Joined {
                rules: JoinRules { movement: Some(move_rules()), ..rules(Visibility::All) },
                own: Some(own()),
                ack: Seq(12),
                ticket: Some(Ticket { token: "abc.def.ghi".into(), grace_period_ms: 10_000 }),
                ..joined(Visibility::All)
            },
        ),
        server("Frame", frame()),
        server("Frame, judged", judged_frame()),
        server("Frame, empty, resync", empty_frame()),
        server("Pong", pong()),
        server("Lines", lines()),
        server("Refused", refused(Some(Seq(12)))),
        server("Refused, no number", refused(None)),
        server("Left", Left { tick: Tick(36_003) }),
        server("Closing", closing()),
        server("Renewed", renewed()),
        server("Unconfirmed", unconfirmed()),
    ]
}

/// Messages and records with the names of their fields in order.
pub fn fields() -> Vec<(&'static str, Vec<String>)> {
    let of = |name, names| (name, names);
    vec![
        of("Hello", names(&hello())),
        of("Join", names(&join())),
        of("Move", names(&Move { seq: Seq(1), pos: AT })),
        of("Walk", names(&walk(None))),
        of("Teleport", names(&teleport())),
        of("Act", names(&act(None))),
        of("Face", names(&Face { seq: Seq(1), facing: Facing::EAST })),
        of("Set", names(&set())),
        of("FirstProperty", names(&join().properties[0])),
        of("Ping", names(&Ping { nonce: 0 })),
        of("AskLines", names(&AskLines { scene: String::new() })),
        of("Welcome", names(&welcome())),
        of("Resume", names(&Resume { token: String::new(), ack: Seq(0) })),
        of("Joined", names(&joined(Visibility::All))),
        of("Ticket", names(&Ticket { token: String::new(), grace_period_ms: 0 })),
        of("JoinRules", names(&rules(Visibility::All))),
        of("UpdateRules", names(&UpdateRules { tick_ms: 100, error_min_cm: 25, error_share: 30 })),
        of("MoveRules", names(&move_rules())),
        of("Blocker", names(&move_rules().blocks[0])),
        of("OwnMove", names(&own())),
        of("Grant", names(&own().grants[0])),
        of("Going", names(&going(path()))),
        of("Frame", names(&frame())),
        of("Entered", names(&entered())),
        of("Moved", names(&moved())),
        of("Crowd", names(&crowd())),
        of("EntityTrajectory", names(&entity_trajectory())),
        of("NextTrajectory", names(&next_trajectory())),
        of("Acted", names(&acted())),
        of("Turned", names(&turned())),
        of("Message", names(&message())),
        of("EnteredProperty", names(&entered_property())),
        of("ChangedProperty", names(&changed_property())),
        of("RefusedInput", names(&input_refused())),
        of("Pong", names(&pong())),
        of("Lines", names(&lines())),
        of("Line", names(&lines().lines[0])),
        of("Refused", names(&refused(None))),
        of("Left", names(&Left { tick: Tick(0) })),
        of("Closing", names(&closing())),
        of("Renewed", names(&renewed())),
        of("Unconfirmed", names(&unconfirmed())),
        of("Position", names(&AT)),
    ]
}

fn names<T: Serialize>(message: &T) -> Vec<String> {
    let named = rmp_serde::to_vec_named(message).expect("it serialises");
    let Names(names) = rmp_serde::from_slice(&named).expect("a map");
    names
}

/// The keys of a map, in order.
struct Names(Vec<String>);

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Names, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = Names;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a map")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Names, A::Error> {
                let mut names = Vec::new();
                while let Some((name, IgnoredAny)) = map.next_entry()? {
                    names.push(name);
                }
                Ok(Names(names))
            }
        }
        from.deserialize_map(Keys)
    }
}

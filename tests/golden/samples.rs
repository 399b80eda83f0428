//! One message of every type, and what the fields of each are called.

use purview::scene::{
    EntityId, Epoch, Kind, Plane, Pos, RangeSet, Seq, SessionId, Tick, Visibility,
};
use purview::wire::client::{
    Act, Closing, Hello, Join, Joined, Jump, Leave, Left, Move, Ping, Pong, Refused, Welcome,
};
use purview::wire::frame::{Acted, InputRefused};
use purview::wire::{ClientMsg, CloseCode, Entered, ErrorCode, Frame, JoinRules, Moved, ServerMsg};
use serde::Serialize;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

/// A message of either side.
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
}

/// A golden vector: its name in the document, the message, and the message in the notation.
pub struct Sample {
    pub name: &'static str,
    pub message: Message,
    pub text: &'static str,
}

fn client(name: &'static str, m: impl Into<ClientMsg>, text: &'static str) -> Sample {
    Sample { name, message: Message::Client(m.into()), text }
}

fn server(name: &'static str, m: impl Into<ServerMsg>, text: &'static str) -> Sample {
    Sample { name, message: Message::Server(m.into()), text }
}

const AT: Pos = Pos { x: 102_400, y: -50, z: 300 };

fn hello() -> Hello {
    Hello { version: 1, token: "dev:ann".into() }
}

fn join() -> Join {
    Join {
        scene: "meadow".into(),
        plane: Some(Plane(-7)),
        pos: Some(AT),
        range: Some(RangeSet::FULL),
        look: vec![0xca, 0xfe].into(),
    }
}

fn jump() -> Jump {
    Jump { seq: Seq(70_000), scene: Some("city".into()), plane: None, pos: AT }
}

fn welcome() -> Welcome {
    Welcome {
        version: 1,
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
        patch_cm: 3_200,
        view_cap: 60,
        view_margin_cm: 100,
        rates: [1, 10, 40],
        size_cm: [204_800, 204_800],
    }
}

fn joined(visibility: Visibility) -> Joined {
    Joined {
        id: EntityId(1 << 40),
        scene: "meadow".into(),
        plane: Plane(0),
        pos: AT,
        tick: Tick(36_000),
        rules: rules(visibility),
    }
}

fn entered() -> Entered {
    Entered { id: EntityId(9), kind: Kind(0), x: 1, y: 0, z: -1, look: vec![0xca, 0xfe].into() }
}

fn moved() -> Moved {
    Moved { id: EntityId(300), x: -200, y: 0, z: 40_000 }
}

fn act(aim: Option<EntityId>) -> Act {
    Act { seq: Seq(200), payload: vec![1, 2].into(), aim }
}

fn acted() -> Acted {
    Acted { id: EntityId(9), payload: vec![1].into() }
}

fn input_refused() -> InputRefused {
    InputRefused { seq: Seq(12), code: ErrorCode::OutOfBounds }
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
        acts: vec![acted()],
        refused: vec![input_refused()],
    }
}

fn empty_frame() -> Frame {
    Frame {
        ack: Seq(0),
        resync: true,
        enters: vec![],
        leaves: vec![],
        moves: vec![],
        acts: vec![],
        refused: vec![],
        ..frame()
    }
}

fn pong() -> Pong {
    Pong { nonce: u64::MAX, server_ms: 3_600_001, tick: Tick(36_002) }
}

fn refused(seq: Option<Seq>) -> Refused {
    Refused { code: ErrorCode::OutOfOrder, seq, detail: "want 13".into() }
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
        range: None,
        look: Default::default(),
    };
    let circle = Visibility::Circle { enter_cm: 8_000, leave_cm: 9_000 };
    let jump_here = Jump { seq: Seq(2), scene: None, plane: Some(Plane(1)), pos: AT };
    vec![
        client("Hello", hello(), r#"[1, [1, "dev:ann"]]"#),
        client("Join, all said", join(), r#"[2, ["meadow", -7, [102400, -50, 300], 7, h'cafe']]"#),
        client("Join, all left to the server", least, r#"[2, ["meadow", nil, nil, nil, h'']]"#),
        client("Move", Move { seq: Seq(1), pos: AT }, "[3, [1, [102400, -50, 300]]]"),
        client("Jump to another scene", jump(), r#"[4, [70000, "city", nil, [102400, -50, 300]]]"#),
        client("Jump to another plane", jump_here, "[4, [2, nil, 1, [102400, -50, 300]]]"),
        client("Act", act(None), "[5, [200, h'0102', nil]]"),
        client("Act, aimed", act(Some(EntityId(9))), "[5, [200, h'0102', 9]]"),
        client("Ping", Ping { nonce: u64::MAX }, "[6, [18446744073709551615]]"),
        client("Leave", Leave {}, "[7, []]"),
        server("Welcome", welcome(), "[64, [1, 258, 100, 3600000, 50, 4096, 15000]]"),
        server(
            "Joined, patches",
            joined(Visibility::Patches),
            r#"[65, [1099511627776, "meadow", 0, [102400, -50, 300], 36000, [[0], 7, 3200, 60, 100, [1, 10, 40], [204800, 204800]]]]"#,
        ),
        server(
            "Joined, circle",
            joined(circle),
            r#"[65, [1099511627776, "meadow", 0, [102400, -50, 300], 36000, [[1, 8000, 9000], 7, 3200, 60, 100, [1, 10, 40], [204800, 204800]]]]"#,
        ),
        server(
            "Joined, all",
            joined(Visibility::All),
            r#"[65, [1099511627776, "meadow", 0, [102400, -50, 300], 36000, [[2], 7, 3200, 60, 100, [1, 10, 40], [204800, 204800]]]]"#,
        ),
        server(
            "Frame",
            frame(),
            "[66, [36001, 12, 2, false, [[9, 0, 1, 0, -1, h'cafe']], [7, 8], [[300, -200, 0, 40000]], [[9, h'01']], [[12, 6]]]]",
        ),
        server(
            "Frame, empty, resync",
            empty_frame(),
            "[66, [36001, 0, 2, true, [], [], [], [], []]]",
        ),
        server("Pong", pong(), "[67, [18446744073709551615, 3600001, 36002]]"),
        server("Refused", refused(Some(Seq(12))), r#"[68, [5, 12, "want 13"]]"#),
        server("Refused, no number", refused(None), r#"[68, [5, nil, "want 13"]]"#),
        server("Left", Left { tick: Tick(36_003) }, "[69, [36003]]"),
        server("Closing", closing(), r#"[70, [4006, ""]]"#),
    ]
}

/// For each section of the document with a table of fields: their names in order.
pub fn fields() -> Vec<(String, Vec<String>)> {
    let of = |heading: &str, names| (format!("#### {heading}"), names);
    vec![
        of("Hello", names(&hello())),
        of("Join", names(&join())),
        of("Move", names(&Move { seq: Seq(1), pos: AT })),
        of("Jump", names(&jump())),
        of("Act", names(&act(None))),
        of("Ping", names(&Ping { nonce: 0 })),
        of("Welcome", names(&welcome())),
        of("Joined", names(&joined(Visibility::All))),
        of("JoinRules", names(&rules(Visibility::All))),
        of("Frame", names(&frame())),
        of("Entered", names(&entered())),
        of("Moved", names(&moved())),
        of("Acted", names(&acted())),
        of("InputRefused", names(&input_refused())),
        of("Pong", names(&pong())),
        of("Refused message", names(&refused(None))),
        of("Left", names(&Left { tick: Tick(0) })),
        of("Closing", names(&closing())),
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

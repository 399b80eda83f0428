//! The messages between a client and the server (`docs/protocol.md`).
//!
//! Gateways and client libraries encode and decode them here. A decode error must never quote a
//! token.

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use super::codes::{CloseCode, ErrorCode};
use super::frame::Frame;
use super::movement::{Form, MoveRules, OwnMove};
use super::properties::FirstProperty;
use super::updates::UpdateRules;
use crate::scene::movement::{ClientMs, Go, MoveCommand};
use crate::scene::properties::{PropertyId, Value};
use crate::scene::{EntityId, Facing, Plane, Pos, RangeSet, Seq, SessionId, Tick, Visibility};
use crate::wire::msgpack::envelope::{
    self, DecodeError, MAX_ACT, MAX_CLIENT_FRAME, MAX_SERVER_FRAME,
};

/// A client's first message: its identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Protocol version, [`crate::wire::PROTOCOL_VERSION`].
    pub version: u16,
    /// The login token (a JWT); never part of a URL.
    pub token: String,
    /// Whether the client wants the crowd around its player, where the scene has it.
    pub crowd: bool,
}

/// Enter a scene.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// The scene's name.
    pub scene: String,
    /// The plane, or nil to let the server choose a line with room.
    pub plane: Option<Plane>,
    /// Where to appear, `[x, y, z]` in centimetres; nil: the player's last position, or the scene's
    /// spawn point.
    pub pos: Option<Pos>,
    /// The rings in which the player is shown what is not a player (bits 1 NEAR, 2 MIDDLE, 4 FAR):
    /// such as the scene allows; nil: the scene's range.
    pub sight: Option<RangeSet>,
    /// Properties with which the player begins, such as the appearance (property 0): only those that
    /// its client may set.
    pub properties: Vec<FirstProperty>,
    /// Most players in the view list, for a weak device: the scene's cap, if that is lower; 0: the
    /// scene's cap.
    pub view_cap: u16,
}

/// Reclaim the player of an earlier session whose connection broke.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    /// The token of the newest ticket, of [`Joined`] or [`Renewed`]; never part of a URL.
    pub token: String,
    /// The last input that the client knows is applied; 0: none.
    pub ack: Seq,
}

/// A new position, in a scene that trusts positions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    /// Number of this input, the last one plus one; the first is 1.
    pub seq: Seq,
    /// The player's position now, `[x, y, z]` in centimetres.
    pub pos: Pos,
}

/// A move command, in a scene that judges moves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Walk {
    /// Number of this input.
    pub seq: Seq,
    /// Number of the last correction that the client has followed; 0 before the first.
    pub correction: u32,
    /// Time of the command: milliseconds of the client's own clock, which never goes back.
    pub at_ms: ClientMs,
    /// What the player does from then on; nil: goes on as before.
    pub form: Option<Form>,
}

impl Walk {
    /// The message for a movement order, as input number `seq`.
    pub fn of(seq: Seq, order: &MoveCommand) -> Walk {
        let form = match &order.go {
            Go::On => None,
            Go::Walk(motion) => Some(Form::from(motion)),
        };
        Walk { seq, correction: order.correction, at_ms: order.at, form }
    }
}

/// Teleport inside a scene, or to another scene or plane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Teleport {
    /// Number of this input.
    pub seq: Seq,
    /// The scene to teleport to, or nil for the present one.
    pub scene: Option<String>,
    /// The plane to teleport to, or nil for the present one (in another scene: a line with room).
    pub plane: Option<Plane>,
    /// The position to teleport to, `[x, y, z]` in centimetres.
    pub pos: Pos,
}

/// An action that every client that sees the player is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Act {
    /// Number of this input.
    pub seq: Seq,
    /// Opaque to the server, at most 1,024 bytes.
    pub payload: ByteBuf,
    /// The player that the action is against; nil or omitted: none. The two fight for a while,
    /// which gives each of them priority in the other's view list.
    #[serde(default)]
    pub aim: Option<EntityId>,
}

/// Faces another way, walking or standing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Face {
    /// Number of this input.
    pub seq: Seq,
    /// The way that the player faces: 65,536 steps make a turn; 0 is east, and it grows clockwise.
    pub facing: Facing,
}

/// Gives a property of the player a value. Only properties that its client may set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Set {
    /// Number of this input.
    pub seq: Seq,
    /// The property.
    pub property: PropertyId,
    /// The value: a byte string that contains one MessagePack value.
    pub value: Value,
}

/// Most lines in a [`Lines`].
pub const MAX_LINES: usize = 256;

/// Asks for the lines of a scene, also before a join.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskLines {
    /// The scene's name.
    pub scene: String,
}

/// Requests a [`Pong`]; also keeps the session alive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ping {
    /// Returned in the pong.
    pub nonce: u64,
}

/// Leave the scene and end the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leave {}

/// Answer to a hello.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// Protocol version that the server speaks.
    pub version: u16,
    /// The session's id.
    pub session: SessionId,
    /// Milliseconds per tick.
    pub tick_ms: u32,
    /// The server's clock, milliseconds since its start.
    pub server_ms: u64,
    /// Messages that the client may send per second.
    pub rate_limit: u32,
    /// Longest message that the client may send, bytes.
    pub max_frame: u32,
    /// The client must send something at least this often, milliseconds.
    pub heartbeat_ms: u32,
}

/// The view rules of the joined scene, so that a client (or a test oracle) can check its frames.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinRules {
    /// Which players are in range of each other: `[0]` by patches, `[1, enter, leave]` by distance,
    /// the radii in centimetres, `[2]` all.
    #[serde(with = "super::visibility")]
    pub visibility: Visibility,
    /// The rings in which players see each other (Patches).
    pub range: RangeSet,
    /// The rings in which the player is shown what is not a player (Patches).
    pub sight: RangeSet,
    /// Sides of a player's patch along x and z, centimetres.
    pub patch_cm: [i32; 2],
    /// How much nearer each of two players in view of each other counts, centimetres (Patches).
    pub patch_margin_cm: i32,
    /// How far apart in height entities may be to come into view, centimetres; in view of each other they
    /// may be an eighth more. nil: any height.
    pub height_cm: Option<i32>,
    /// Most players in the player's view list: the scene's cap, or what the client has asked for.
    pub view_cap: u32,
    /// How much nearer a candidate must be to replace a linked player, centimetres.
    pub view_margin_cm: i32,
    /// Ticks between updates, `[NEAR, MIDDLE, FAR]`.
    pub rates: [u32; 3],
    /// The map's extent, `[width, depth]` in centimetres.
    pub size_cm: [i32; 2],
    /// How moves are judged; nil: positions are trusted.
    pub movement: Option<MoveRules>,
    /// How wrong the client may show entities before it is told; nil: it is told by the rates alone.
    pub updates: Option<UpdateRules>,
}

/// Lets the client reclaim its player after its connection breaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// For [`Resume`]; it does not replace the token of [`Hello`].
    pub token: String,
    /// How long the player stays in the world without its client, milliseconds.
    pub grace_period_ms: u32,
}

/// The lines of a scene: the planes over which players without a chosen plane are spread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lines {
    /// The scene's name.
    pub scene: String,
    /// Number of its lines: planes from 0 on.
    pub total: i32,
    /// Players of a line, above which nobody is sent there who has not chosen it.
    pub capacity: u32,
    /// The open lines, and those with players; the first [`MAX_LINES`] of these, in order.
    pub lines: Vec<Line>,
}

/// A line of a scene.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// The plane.
    pub plane: Plane,
    /// Its players, in the whole cluster; of other gateways up to a second old.
    pub players: u32,
    /// Whether it has room.
    pub open: bool,
}

/// Answer to a join or a resume, and notice of a teleport to another scene or plane: where the
/// player is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joined {
    /// The player's entity.
    pub id: EntityId,
    /// The scene's name.
    pub scene: String,
    /// The plane.
    pub plane: Plane,
    /// The player's position.
    pub pos: Pos,
    /// The way it faces.
    pub facing: Facing,
    /// The tick from which on this holds.
    pub tick: Tick,
    /// The scene's view rules.
    pub rules: JoinRules,
    /// The player's own movement; nil if positions are trusted.
    pub own: Option<OwnMove>,
    /// The last input that was applied; 0: none yet.
    pub ack: Seq,
    /// The ticket for a resume; nil: the player cannot be reclaimed.
    pub ticket: Option<Ticket>,
}

/// Answer to a ping.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pong {
    /// The ping's nonce.
    pub nonce: u64,
    /// The server's clock, milliseconds since its start.
    pub server_ms: u64,
    /// The last tick that the player's region has finished.
    pub tick: Tick,
}

/// A message was refused. The session goes on, and nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The reason.
    pub code: ErrorCode,
    /// The input's number, if the message had one.
    pub seq: Option<Seq>,
    /// Text for people: what was wrong and what would be right.
    pub detail: String,
}

/// The player has left its scene.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// The first tick in which no other client is shown the player.
    pub tick: Tick,
}

/// Last message of a session that the server closes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closing {
    /// The reason; on WebSocket also the close code.
    pub code: CloseCode,
    /// Text for people.
    pub detail: String,
}

/// A newer ticket for a player in the world, sent before the last one expires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renewed {
    /// The ticket to use from now on.
    pub ticket: Ticket,
}

/// A region has died after it had applied inputs of the client: not all viewers may have been told of the actions among
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unconfirmed {
    /// The first of these inputs.
    pub first: Seq,
    /// The last one.
    pub last: Seq,
}

macro_rules! messages {
    ($(#[$doc:meta])* $name:ident, max $max:expr, { $($variant:ident $(in $place:ident)? = $n:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum $name { $($variant(messages!(@place $variant $(in $place)?)),)+ }

        impl $name {
            /// The message's type number and name, for documents and metrics.
            pub const TYPES: &'static [(u8, &'static str)] = &[$(($n, stringify!($variant)),)+];

            /// The encoded message.
            pub fn encode(&self) -> Vec<u8> {
                match self { $($name::$variant(m) => envelope::seal($n, m),)+ }
            }

            /// The message's name.
            pub fn name(&self) -> &'static str {
                match self { $($name::$variant(_) => stringify!($variant),)+ }
            }

            fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
                let (kind, body) = envelope::open(bytes, $max)?;
                match kind {
                    $($n => envelope::body(kind, body).map($name::$variant),)+
                    _ => Err(DecodeError::UnknownType(kind)),
                }
            }
        }

        $(impl From<$variant> for $name {
            fn from(m: $variant) -> Self { $name::$variant(m.into()) }
        })+
    };
    (@place $variant:ident) => { $variant };
    (@place $variant:ident in $place:ident) => { $place<$variant> };
}

messages! {
    /// What a client sends.
    ClientMsg, max MAX_CLIENT_FRAME, {
        Hello = 1,
        Join = 2,
        Move = 3,
        Teleport = 4,
        Act = 5,
        Ping = 6,
        Leave = 7,
        Walk = 8,
        Resume = 9,
        Face = 10,
        Set = 11,
        AskLines = 12,
    }
}

messages! {
    /// What a server sends.
    ServerMsg, max MAX_SERVER_FRAME, {
        Welcome = 64,
        Joined in Box = 65,
        Frame in Box = 66,
        Pong = 67,
        Refused = 68,
        Left = 69,
        Closing = 70,
        Renewed = 71,
        Unconfirmed = 72,
        Lines = 73,
    }
}

impl ClientMsg {
    /// Decodes a client's message.
    ///
    /// # Errors
    /// What is wrong with the bytes. Lengths of values and payloads are checked here; whether
    /// a position lies on the map is checked by the scene.
    pub fn decode(bytes: &[u8]) -> Result<ClientMsg, DecodeError> {
        let msg = ClientMsg::parse(bytes).map_err(without_token)?;
        match &msg {
            ClientMsg::Act(Act { payload, .. }) if payload.len() > MAX_ACT => {
                return Err(DecodeError::ActTooLong { len: payload.len() });
            }
            ClientMsg::Join(m) => not_reserved(2, m.plane)?,
            ClientMsg::Teleport(m) => not_reserved(4, m.plane)?,
            ClientMsg::Hello(_)
            | ClientMsg::Move(_)
            | ClientMsg::Walk(_)
            | ClientMsg::Resume(_)
            | ClientMsg::Act(_)
            | ClientMsg::Face(_)
            | ClientMsg::Set(_)
            | ClientMsg::Ping(_)
            | ClientMsg::AskLines(_)
            | ClientMsg::Leave(_) => {}
        }
        Ok(msg)
    }
}

/// Hides what the client sent in place of a token.
fn without_token(error: DecodeError) -> DecodeError {
    match error {
        DecodeError::BadField { kind: 1, .. } => {
            DecodeError::BadField { kind: 1, why: "want [version, token]".into() }
        }
        DecodeError::BadField { kind: 9, .. } => {
            DecodeError::BadField { kind: 9, why: "want [token, ack]".into() }
        }
        error => error,
    }
}

fn not_reserved(kind: u8, plane: Option<Plane>) -> Result<(), DecodeError> {
    if plane != Some(Plane::LIMBO) {
        return Ok(());
    }
    Err(DecodeError::BadField { kind, why: format!("plane {} is reserved", Plane::LIMBO) })
}

impl ServerMsg {
    /// Decodes a server's message.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    pub fn decode(bytes: &[u8]) -> Result<ServerMsg, DecodeError> {
        ServerMsg::parse(bytes)
    }
}

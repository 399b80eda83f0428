//! The messages between a client and the server.

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use super::codec::{self, DecodeError, MAX_ACT, MAX_CLIENT_FRAME, MAX_LOOK, MAX_SERVER_FRAME};
use super::codes::{CloseCode, ErrorCode};
use super::frame::Frame;
use super::moves::{Form, MoveRules, OwnMove};
use crate::scene::movement::{ClientMs, Go, MoveOrder};
use crate::scene::{EntityId, Plane, Pos, RangeSet, Seq, SessionId, Tick, Visibility};

/// First message of a client: who it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Protocol version, [`super::PROTOCOL_VERSION`].
    pub version: u16,
    /// The token that lets the client in (a JWT); never part of a URL.
    pub token: String,
}

/// Enter a scene.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// The scene's name.
    pub scene: String,
    /// The plane, or nil to let the server choose a line with room.
    pub plane: Option<Plane>,
    /// Where to appear, `[x, y, z]` in centimetres, or nil for its last place or the scene's spawn place.
    pub pos: Option<Pos>,
    /// The rings that the player sees (bits 1 NEAR, 2 MIDDLE, 4 FAR), or nil for the scene's default.
    pub range: Option<RangeSet>,
    /// Opaque appearance that others are shown, at most 256 bytes.
    pub look: ByteBuf,
}

/// Come back for the player of an earlier session whose connection broke.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    /// The token of the newest ticket, of [`Joined`] or [`Renewed`]; never part of a URL.
    pub token: String,
    /// The last input that the client was told is applied; 0: none.
    pub ack: Seq,
}

/// Be elsewhere, in a scene in which places are trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    /// Number of this input, the last one plus one; the first is 1.
    pub seq: Seq,
    /// Where the player now is, `[x, y, z]` in centimetres.
    pub pos: Pos,
}

/// A word about the player's movement, in a scene in which moves are judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Walk {
    /// Number of this input.
    pub seq: Seq,
    /// The number of the last ruling that the client has followed; 0 before the first.
    pub ruling: u32,
    /// When, milliseconds of the client's own clock, which never goes back.
    pub at_ms: ClientMs,
    /// What the player does from then on; nil: as before.
    pub form: Option<Form>,
}

impl Walk {
    /// The message for a movement order, as input number `seq`.
    pub fn of(seq: Seq, order: &MoveOrder) -> Walk {
        let form = match &order.go {
            Go::On => None,
            Go::Walk(course) => Some(Form::from(course)),
        };
        Walk { seq, ruling: order.ruling, at_ms: order.at, form }
    }
}

/// Teleport inside a scene, or to another scene or plane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jump {
    /// Number of this input.
    pub seq: Seq,
    /// The scene to jump to, or nil for the present one.
    pub scene: Option<String>,
    /// The plane to jump to, or nil for the present one (in another scene: a line with room).
    pub plane: Option<Plane>,
    /// The place to jump to.
    pub pos: Pos,
}

/// Do something that everybody who sees the player is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Act {
    /// Number of this input.
    pub seq: Seq,
    /// Opaque to the server, at most 1,024 bytes.
    pub payload: ByteBuf,
    /// The player that it is aimed at, or nil; may be left out by a client. The two fight for a while, which lets
    /// each of them see the other before others.
    #[serde(default)]
    pub aim: Option<EntityId>,
}

/// Asks for a [`Pong`]; also keeps the session alive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ping {
    /// Comes back in the pong.
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
    /// The session's number.
    pub session: SessionId,
    /// Milliseconds per tick.
    pub tick_ms: u32,
    /// The server's clock, milliseconds since its start.
    pub server_ms: u64,
    /// Messages that the client may send per second.
    pub rate_limit: u32,
    /// Longest message that the client may send, bytes.
    pub max_frame: u32,
    /// The client must be heard from at least this often, milliseconds.
    pub heartbeat_ms: u32,
}

/// The rules of views in the scene that was joined, so that a client (or an oracle) can check them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinRules {
    /// Who is in range of whom: `[0]` by patches, `[1, enter, leave]` by distance, the radii in
    /// centimetres, `[2]` everybody.
    #[serde(with = "super::forms::visibility")]
    pub visibility: Visibility,
    /// The range in force for this player (Patches).
    pub range: RangeSet,
    /// Side of a player's patch, centimetres.
    pub patch_cm: i32,
    /// Most players in a view list.
    pub view_cap: u32,
    /// How much nearer somebody must be to replace another, centimetres.
    pub view_margin_cm: i32,
    /// Ticks between updates, `[NEAR, MIDDLE, FAR]`.
    pub rates: [u32; 3],
    /// The map's extent, `[width, depth]` in centimetres.
    pub size_cm: [i32; 2],
    /// How moves are judged; nil: places are trusted.
    pub movement: Option<MoveRules>,
}

/// By what a client comes back when its connection breaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// For [`Resume`]; it does not replace the token of [`Hello`].
    pub token: String,
    /// For how long the player stays without its client, milliseconds.
    pub linger_ms: u32,
}

/// Answer to a join or to a resume, and news of a jump to another scene or plane: where the player is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joined {
    /// The player's entity.
    pub id: EntityId,
    /// The scene's name.
    pub scene: String,
    /// The plane.
    pub plane: Plane,
    /// Where the player stands.
    pub pos: Pos,
    /// The tick from which this holds.
    pub tick: Tick,
    /// The scene's rules of views.
    pub rules: JoinRules,
    /// The player's own movement; nil where places are trusted.
    pub own: Option<OwnMove>,
    /// The last input that was applied; 0: none yet.
    pub ack: Seq,
    /// By what the client comes back when its connection breaks; nil: it cannot.
    pub ticket: Option<Ticket>,
}

/// Answer to a ping.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pong {
    /// The ping's nonce.
    pub nonce: u64,
    /// The server's clock, milliseconds since its start.
    pub server_ms: u64,
    /// The tick that the player's region did last.
    pub tick: Tick,
}

/// A message was refused; the session goes on and nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Why.
    pub code: ErrorCode,
    /// The input's number, where the message had one.
    pub seq: Option<Seq>,
    /// For people: what was wrong and what would be right.
    pub detail: String,
}

/// The player has left its scene.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// The first tick in which nobody is shown the player any more.
    pub tick: Tick,
}

/// Last message of a session that the server closes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closing {
    /// Why; on WebSocket also the close code.
    pub code: CloseCode,
    /// For people.
    pub detail: String,
}

/// A newer ticket of a player that is in the world, before the last one expires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renewed {
    /// By what the client comes back from now on.
    pub ticket: Ticket,
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

            /// The message's bytes.
            pub fn encode(&self) -> Vec<u8> {
                match self { $($name::$variant(m) => codec::seal($n, m),)+ }
            }

            /// The message's name.
            pub fn word(&self) -> &'static str {
                match self { $($name::$variant(_) => stringify!($variant),)+ }
            }

            fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
                let (kind, body) = codec::open(bytes, $max)?;
                match kind {
                    $($n => codec::body(kind, body).map($name::$variant),)+
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
        Jump = 4,
        Act = 5,
        Ping = 6,
        Leave = 7,
        Walk = 8,
        Resume = 9,
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
    }
}

impl ClientMsg {
    /// Reads a client's message.
    ///
    /// # Errors
    /// What is wrong with the bytes. Lengths of looks and payloads are checked here; whether a
    /// position lies on the map is for the scene to say.
    pub fn decode(bytes: &[u8]) -> Result<ClientMsg, DecodeError> {
        let msg = ClientMsg::parse(bytes).map_err(without_token)?;
        match &msg {
            ClientMsg::Join(Join { look, .. }) if look.len() > MAX_LOOK => {
                let why = format!("look of {} bytes; at most {MAX_LOOK} are allowed", look.len());
                return Err(DecodeError::BadField { kind: 2, why });
            }
            ClientMsg::Act(Act { payload, .. }) if payload.len() > MAX_ACT => {
                return Err(DecodeError::ActTooLong { len: payload.len() });
            }
            ClientMsg::Join(m) => not_reserved(2, m.plane)?,
            ClientMsg::Jump(m) => not_reserved(4, m.plane)?,
            ClientMsg::Hello(_)
            | ClientMsg::Move(_)
            | ClientMsg::Walk(_)
            | ClientMsg::Resume(_)
            | ClientMsg::Act(_)
            | ClientMsg::Ping(_)
            | ClientMsg::Leave(_) => {}
        }
        Ok(msg)
    }
}

/// An error must not quote what the client put where a token belongs.
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
    /// Reads a server's message.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    pub fn decode(bytes: &[u8]) -> Result<ServerMsg, DecodeError> {
        ServerMsg::parse(bytes)
    }
}

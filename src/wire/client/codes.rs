//! Error codes (the session goes on) and close codes (the session ends), as in `docs/protocol.md`.
//! The numbers are part of the protocol and must not be reused.

use serde::{Deserialize, Serialize};

use crate::scene::messages::Refusal;
use crate::scene::movement::Reason;
use crate::scene::properties::PropertyRefusal;
use crate::wire::msgpack::envelope::DecodeError;

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $n:literal $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(into = "u16", try_from = "u16")]
        pub enum $name { $($(#[$vdoc])* $variant = $n,)+ }

        impl $name {
            /// Every code.
            pub const ALL: &'static [$name] = &[$($name::$variant,)+];

            /// The code's short name, as in metrics and documents.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)+ }
            }
        }

        impl From<$name> for u16 {
            fn from(code: $name) -> u16 { code as u16 }
        }

        impl TryFrom<u16> for $name {
            type Error = String;
            fn try_from(n: u16) -> Result<Self, String> {
                match n { $($n => Ok($name::$variant),)+ _ => Err(format!("unknown code {n}")) }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{} ({})", self.name(), *self as u16)
            }
        }
    };
}

codes! {
    /// Why a message was refused while the session goes on.
    ErrorCode {
        /// The bytes are not a MessagePack array of the form `[type, [fields]]`.
        Malformed = 1 "malformed",
        /// The message type does not exist.
        UnknownType = 2 "unknown_type",
        /// A field has the wrong type or an illegal value.
        BadField = 3 "bad_field",
        /// The message is not legal in this state of the session (see the state chart in
        /// `docs/protocol.md`).
        Premature = 4 "premature",
        /// The sequence number is not the last one plus one.
        OutOfOrder = 5 "out_of_order",
        /// The position lies outside the scene.
        OutOfBounds = 6 "out_of_bounds",
        /// The scene does not exist.
        UnknownScene = 7 "unknown_scene",
        /// No line of the scene has room.
        NoRoom = 8 "no_room",
        /// The payload of an action is longer than 1,024 bytes.
        ActTooLong = 9 "act_too_long",
        /// The server cannot take the message now; the client may try again.
        Busy = 10 "busy",
        /// A `Move` in a scene that judges moves, or a `Walk` in a scene that trusts positions.
        WrongForm = 11 "wrong_form",
        /// A flag keeps the entity from moving.
        MayNotMove = 12 "may_not_move",
        /// The server moves the entity at the moment.
        Pushed = 13 "pushed",
        /// The move does not start where the entity was at that time.
        Displaced = 14 "displaced",
        /// Recent moves start too far off in sum.
        Strayed = 15 "strayed",
        /// A tile on the way is blocked.
        Blocked = 16 "blocked",
        /// A diagonal step between two blocked tiles.
        Squeezed = 17 "squeezed",
        /// The next tile lies too high or too low.
        TooSteep = 18 "too_steep",
        /// The move is faster than the entity may be.
        TooFast = 19 "too_fast",
        /// A granted speed was used for longer than it was granted.
        Overused = 20 "overused",
        /// The client's clock went back.
        ClockBack = 21 "clock_back",
        /// The client's clock runs ahead of the server's.
        ClockAhead = 22 "clock_ahead",
        /// The command acknowledges a correction that was never made.
        UnknownCorrection = 23 "unknown_correction",
        /// Only the game's logic decides where players appear and teleport to.
        MayNotTeleport = 24 "may_not_teleport",
        /// The player of a resume no longer exists.
        Gone = 25 "gone",
        /// The token of a resume is not valid.
        BadTicket = 26 "bad_ticket",
        /// The plane is not one of the scene's lines, and the token does not name it.
        PrivatePlane = 27 "private_plane",
        /// Another session of the same subject holds the player.
        Taken = 28 "taken",
        /// The player's kind has no such property.
        UnknownProperty = 29 "unknown_property",
        /// Only the game's logic sets the property.
        MayNotWrite = 30 "may_not_write",
        /// The value is not of the property's type.
        WrongType = 31 "wrong_type",
        /// The value is longer than the property, or all properties of an entity together, allow.
        ValueTooLong = 32 "value_too_long",
        /// The player turns, or sets properties, more often than it may.
        TooOften = 33 "too_often",
        /// The game does not let the player in.
        NotAdmitted = 34 "not_admitted",
        /// The scene does not let clients ask for this sight.
        NoSuchSight = 35 "no_such_sight",
    }
}

codes! {
    /// Why a session was closed. On WebSocket it is the close code; on TCP the last message.
    CloseCode {
        /// The client asked to leave, or the server ended the session normally.
        Normal = 1000 "normal",
        /// The server shuts down.
        GoingAway = 1001 "going_away",
        /// A text frame, or another kind of data that the server does not accept.
        Unsupported = 1003 "unsupported",
        /// The message is larger than the limit.
        TooBig = 1009 "too_big",
        /// Too many malformed messages.
        Protocol = 4000 "protocol",
        /// The protocol version is not supported.
        Version = 4001 "version",
        /// The token is missing, wrong or expired.
        Token = 4002 "token",
        /// No hello or join within the allowed time.
        Handshake = 4003 "handshake",
        /// The client sent nothing for longer than the heartbeat interval allows.
        Heartbeat = 4004 "heartbeat",
        /// The client sent more messages than the limit allows.
        Rate = 4005 "rate",
        /// The client did not read what it was sent.
        Slow = 4006 "slow",
        /// The server is full or too busy.
        Overload = 4007 "overload",
        /// The server failed; the client is not at fault.
        Internal = 4008 "internal",
        /// The client has resumed on another connection, or another session of its subject replaced
        /// this one.
        Replaced = 4009 "replaced",
        /// This gateway shuts down; others keep running.
        Elsewhere = 4010 "elsewhere",
        /// An operator ended the session, or blocks its subject for a while.
        Kicked = 4011 "kicked",
        /// The subject of the token has as many sessions as it may have.
        SubjectFull = 4012 "subject_full",
    }
}

impl From<Refusal> for ErrorCode {
    fn from(why: Refusal) -> ErrorCode {
        match why {
            Refusal::OutOfBounds => ErrorCode::OutOfBounds,
            Refusal::TooLong => ErrorCode::ActTooLong,
            Refusal::Busy => ErrorCode::Busy,
            Refusal::WrongForm => ErrorCode::WrongForm,
            Refusal::Move(why) => ErrorCode::from(why),
            Refusal::Property(why) => ErrorCode::from(why),
            Refusal::TooOften => ErrorCode::TooOften,
        }
    }
}

impl From<PropertyRefusal> for ErrorCode {
    fn from(why: PropertyRefusal) -> ErrorCode {
        match why {
            PropertyRefusal::Unknown(_) => ErrorCode::UnknownProperty,
            PropertyRefusal::MayNotWrite(_) => ErrorCode::MayNotWrite,
            PropertyRefusal::WrongType(_) => ErrorCode::WrongType,
            PropertyRefusal::TooLong { .. } | PropertyRefusal::Full => ErrorCode::ValueTooLong,
            PropertyRefusal::TooOften => ErrorCode::TooOften,
        }
    }
}

impl From<Reason> for ErrorCode {
    fn from(why: Reason) -> ErrorCode {
        match why {
            Reason::OutOfBounds { .. } => ErrorCode::OutOfBounds,
            Reason::MayNotMove { .. } => ErrorCode::MayNotMove,
            Reason::Pushed { .. } => ErrorCode::Pushed,
            Reason::Displaced { .. } => ErrorCode::Displaced,
            Reason::Strayed { .. } => ErrorCode::Strayed,
            Reason::Blocked { .. } => ErrorCode::Blocked,
            Reason::Squeezed { .. } => ErrorCode::Squeezed,
            Reason::TooSteep { .. } => ErrorCode::TooSteep,
            Reason::TooFast { .. } => ErrorCode::TooFast,
            Reason::Overused { .. } => ErrorCode::Overused,
            Reason::ClockBack { .. } => ErrorCode::ClockBack,
            Reason::ClockAhead { .. } => ErrorCode::ClockAhead,
            Reason::UnknownCorrection { .. } => ErrorCode::UnknownCorrection,
        }
    }
}

impl DecodeError {
    /// The code that tells a client of this error.
    pub fn code(&self) -> ErrorCode {
        match self {
            DecodeError::Malformed(_) | DecodeError::TooBig { .. } => ErrorCode::Malformed,
            DecodeError::UnknownType(_) => ErrorCode::UnknownType,
            DecodeError::BadField { .. } => ErrorCode::BadField,
            DecodeError::ActTooLong { .. } => ErrorCode::ActTooLong,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_movement_reason_has_a_code_of_its_name() {
        for name in Reason::NAMES {
            assert!(ErrorCode::ALL.iter().any(|code| code.name() == name), "{name}");
        }
    }
}

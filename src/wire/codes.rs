//! Error codes (the session goes on) and close codes (it does not).

use serde::{Deserialize, Serialize};

use crate::scene::frames::Refusal;

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $n:literal $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(into = "u16", try_from = "u16")]
        pub enum $name { $($(#[$vdoc])* $variant = $n,)+ }

        impl $name {
            /// Every code.
            pub const ALL: &'static [$name] = &[$($name::$variant,)+];

            /// The code's short name, as in metrics and documents.
            pub fn word(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
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
                write!(f, "{} ({})", self.word(), *self as u16)
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
        /// The message is not legal in this state of the session (see the state chart).
        Premature = 4 "premature",
        /// The sequence number is not the last one plus one.
        OutOfOrder = 5 "out_of_order",
        /// The position lies outside the scene.
        OutOfBounds = 6 "out_of_bounds",
        /// The scene does not exist.
        UnknownScene = 7 "unknown_scene",
        /// No line of the scene has room.
        NoRoom = 8 "no_room",
        /// An act's payload is longer than 1,024 bytes.
        ActTooLong = 9 "act_too_long",
        /// The server cannot take the message now; the client may try again.
        Busy = 10 "busy",
    }
}

codes! {
    /// Why a session was closed. On WebSocket it is the close code; on TCP the last message.
    CloseCode {
        /// The client asked to leave, or the server ended the session in the ordinary way.
        Normal = 1000 "normal",
        /// The server stops.
        GoingAway = 1001 "going_away",
        /// A text frame or another kind of data that the server does not take.
        Unsupported = 1003 "unsupported",
        /// The message is larger than the limit.
        TooBig = 1009 "too_big",
        /// Too many malformed messages.
        Protocol = 4000 "protocol",
        /// The protocol version is not supported.
        Version = 4001 "version",
        /// The token is missing, wrong or expired.
        Token = 4002 "token",
        /// No hello or join within the time allowed.
        Handshake = 4003 "handshake",
        /// Nothing was heard from the client for longer than the heartbeat allows.
        Heartbeat = 4004 "heartbeat",
        /// The client sent more messages than the limit allows.
        Rate = 4005 "rate",
        /// The client did not read what it was sent.
        Slow = 4006 "slow",
        /// The server is full or too busy.
        Overload = 4007 "overload",
        /// The server failed; the fault is not the client's.
        Internal = 4008 "internal",
    }
}

impl From<Refusal> for ErrorCode {
    fn from(why: Refusal) -> ErrorCode {
        match why {
            Refusal::OutOfBounds => ErrorCode::OutOfBounds,
            Refusal::TooLong => ErrorCode::ActTooLong,
            Refusal::Busy => ErrorCode::Busy,
        }
    }
}

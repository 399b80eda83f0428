//! Messages between a client and the server (docs/protocol.md), and how they are cut from a stream.
//!
//! The gateway and clients written in Rust use this module. Bytes that are no legal message become a
//! typed error here and reach no other part.

pub mod codes;
pub mod frame;
pub mod framing;
pub mod logic_message;
mod messages;
pub mod movement;
pub mod properties;
pub mod trajectories;
mod updates;
mod visibility;

pub use messages::{
    Act, AskLines, ClientMsg, Closing, Face, Hello, Join, JoinRules, Joined, Leave, Left, Line,
    Lines, MAX_LINES, Move, Ping, Pong, Refused, Renewed, Resume, ServerMsg, Set, Teleport, Ticket,
    Unconfirmed, Walk, Welcome,
};
pub use updates::UpdateRules;

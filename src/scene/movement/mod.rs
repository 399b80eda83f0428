//! Movement under the server's authority: clients say how they move, the server decides where every
//! entity is.
//!
//! The region calls [`Mover`] for each move command; clients run [`Predictor`] and
//! [`Extrapolator`]. Client and server share this code, so nothing here may read a clock, use
//! floating point or depend on the network.
//!
//! ```text
//!    client                                      server                            viewers
//!  Predictor --- MoveCommand: a move, or "on" ---> Mover::accept --- Trajectory ---> Extrapolator
//!      ^                                             |                   once per move
//!      '--------------- Correction <-----------------' refused, pushed, stopped, placed
//! ```
//!
//! A [`Move`] is a [`Path`] over tiles or a [`Vector`]. Its position is a pure integer function of
//! the time since its start, so that client, server and viewers compute the same centimetre.
//!
//! # What a client may claim
//!
//! A move command ([`MoveCommand`]) says what the entity does from a moment of the client's clock
//! on. The start is not free to choose: it is where the previous move has come to at that moment.
//! So positions are checked exactly, by the client's clock, and the client's clock is checked
//! against the server's:
//!
//! *Claimed walking is a debt, paid by time.* A millisecond of walking costs one. The time between
//! two commands, as the server receives them, pays one (and a thousandth, for clocks that differ a
//! little). At most [`Rules::allowance_ms`] may be owed. The debt never falls below zero: standing
//! still earns no credit, and a thousand small moves cost what one large move costs. Over any
//! period a client walks as far as that time allows, plus the allowance once.
//!
//! *Honest clients are never refused, whatever the network does.* A client stops when it has walked
//! [`Rules::leash_ms`] since an unacknowledged command, and walks on when the acknowledgement
//! arrives. Proof: let the debt be zero when command *j* arrives, and take a later command *k*. If
//! *k* was sent before *j* was acknowledged, the client has walked at most the leash since *j*. If
//! *k* was sent after, the client has walked at most the leash plus the time since the
//! acknowledgement; the server has seen that time pass too, because it had received *j* by then. In
//! both cases the debt is at most the leash, which is less than the allowance.
//!
//! # Corrections
//!
//! A correction ([`Correction`]) says where the entity is, and is numbered. A command carries the
//! number of the last correction that the client has followed. The server drops commands with an
//! older number. So a refused move causes one correction, and not one for each command in flight.

mod clock;
mod debt;
mod extrapolate;
mod grants;
mod last_command;
mod messages;
mod mover;
mod path;
mod predict;
mod reason;
mod rules;
mod steps;
mod tiles;
mod time;
mod trace;
mod vector;
mod walk;

#[cfg(test)]
mod tests;

pub use super::Tile;
pub use clock::ClockEstimate;
pub use extrapolate::{Blend, Extrapolator};
pub use grants::{GrantId, Granted, MAX_GRANTS, TooManyGrants};
pub use messages::{Accepted, Correction, Go, MoveCommand, Own, RefusedCommand, Trajectory};
pub use mover::{Advanced, Mover};
pub use path::{MAX_TILE_CM, Path};
pub use predict::{Predictor, Wish};
pub use reason::{Flags, Reason};
pub use rules::{Climb, Footing, Rules};
pub use steps::{BadSteps, Step, Steps};
pub use tiles::{Open, Tiles};
pub use time::{ClientMs, ServerMs};
pub use vector::{MAX_SPEED_CM_S, Vector};
pub use walk::Move;

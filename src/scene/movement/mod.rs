//! Movement under the server's authority: clients say how they move, the server decides where
//! everybody is.
//!
//! ```text
//!    client                                   server                          viewers
//!  Predictor --- MoveOrder: a move, or "on" --> Mover::accept --- Course ---> Extrapolator
//!      ^                                          |                 once per move
//!      '---------- Ruling: where it is <----------' refused, pushed, stopped, placed
//! ```
//!
//! A [`Move`] is a [`Path`] over tiles or a [`Vector`]. Its position is a pure function of the time since
//! its beginning, in integers, so that all three compute the same to the centimetre.
//!
//! # What a client may claim
//!
//! A word (a [`MoveOrder`]) says what the entity does from a moment of the client's own clock on. Where
//! that begins is no matter of opinion: it is where the move before has come to at that moment. So places
//! are checked by the client's clock, exactly, and its clock is checked by the server's:
//!
//! *Walking that is claimed is a debt, paid by time.* A millisecond of walking costs one, the time between
//! two words as the server hears them pays one (and a thousandth, for clocks that are not quite equal), and
//! no more than [`Rules::allowance_ms`] may be owed. The debt never falls below nothing: who stood still
//! has saved nothing, and who sends a thousand small moves pays what one large move costs. Over any time a
//! client walks as far as that time allows and the allowance, once.
//!
//! *Honest clients are never refused, whatever the network does.* A client stops (and walks on when the
//! answer comes) when it has walked [`Rules::leash_ms`] since a word that is not acknowledged. Let the
//! debt be nothing when word *j* is heard, and take a later word *k*. Said before *j* was acknowledged,
//! it has walked at most the leash since. Said after, it has walked at most the leash, and the time since
//! the acknowledgement; which the server has seen pass, too, since it had heard *j* by then. Either way
//! the debt is at most the leash, which is less than the allowance.
//!
//! # What the server overrules
//!
//! A [`Ruling`] says where the entity is, and is numbered. Moves carry the number of the last
//! ruling that the client has followed; what carries an older one is dropped without a word. So a
//! refused move brings one ruling, and not one for each move that was under way.

mod clock;
mod debt;
mod extrapolate;
mod grants;
mod mover;
mod path;
mod predict;
mod reason;
mod rules;
mod ruling;
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
pub use mover::{Advanced, Mover};
pub use path::{MAX_TILE_CM, Path};
pub use predict::{Predictor, Wish};
pub use reason::{Flags, Reason};
pub use rules::{Climb, Footing, Rules};
pub use ruling::{Accepted, Course, Go, MoveOrder, Own, Refused, Ruling};
pub use steps::{BadSteps, Step, Steps};
pub use tiles::{Open, Tiles};
pub use time::{ClientMs, ServerMs};
pub use vector::{MAX_SPEED_CM_S, Vector};
pub use walk::Move;

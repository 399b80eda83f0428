//! Changes of the region map: ordered by an operator, led by the leader, followed by every process.
//!
//! All of it is one value of the store for each scene, changed by compare-and-swap:
//!
//! ```text
//! operator   next = a layout
//! nodes      claim the regions that are new, which own nothing yet
//! leader     when everybody has an owner and nothing moves: after = a tick a second from now
//! nodes      their regions promise to stop after that tick; who has promised is written down
//! leader     when all have: layout = next           or, when somebody has not in time: after = nothing
//! nodes      their regions go on by the new map     or by the old one, and are asked again
//! leader                                            when it has tried for long enough: next = nothing
//! ```
//!
//! So whoever comes later, also the next leader, sees how far it is, and it is decided in one place.

mod follow;
mod lead;
mod order;
mod record;

pub(super) use follow::Follow;
pub(super) use lead::Change;
pub(super) use order::order;
pub use order::{MapError, MapOrder};
#[cfg(test)]
pub(super) use record::Proposal;
pub(super) use record::{
    Record, is_changing, key, record_named, record_now, record_of, retired, written,
};

//! Changes of the region map: ordered by an operator, led by the leader, followed by every process.
//!
//! The change is one value of the store for each scene, changed by compare-and-swap:
//!
//! ```text
//! operator   next = a layout
//! nodes      claim the regions that are new, which own nothing yet
//! leader     when the present map counts everywhere, all regions have owners and none moves:
//!            after = a tick two seconds from now
//! nodes      their regions promise to stop after that tick; the store records the promises
//! leader     when all have: layout = next           or, when one is missing a second before: after = nothing
//! nodes      their regions go on by the new map     or by the old one, and are asked again
//! leader                                            when it has tried for long enough: next = nothing
//! ```
//!
//! So a process that joins later, and the next leader, sees the progress, and one place decides.

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

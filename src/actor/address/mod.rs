//! Addresses of regions and sessions, and what is put in their mailboxes.
//!
//! An address hides whether its owner lives in this process or in another one. Nothing here waits, except
//! [`RegionAddress::send`], which orders of operators use. Messages are bounded at every address: a full
//! one gives the message back.

mod delivery;
mod region;
mod session;
mod thread;

pub use delivery::Delivery;
pub(super) use delivery::GapPosition;
pub use region::{Passing, RegionAddress, RemoteRegion, ToRegion};
pub use session::{RemoteError, RemoteGateway, SessionAddress, SessionEntry};
pub use thread::{DELIVERIES, LocalSession, SessionThread};
pub(super) use thread::{FanOut, QueuedDelivery, SessionKey};

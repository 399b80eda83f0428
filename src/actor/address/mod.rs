//! Addresses of regions and sessions, and what is put in their mailboxes.
//!
//! An address hides whether its owner lives in this process or in another one. Nothing here waits, except
//! [`RegionAddress::send`], which orders of operators use. Messages are bounded at every address: a full
//! one gives the message back.

mod region;
mod session;

pub use region::{Passing, RegionAddress, RemoteRegion, ToRegion};
pub(super) use session::Beside;
pub use session::{Delivery, LostFrames, RemoteError, RemoteGateway, SessionAddress, SessionEntry};

//! A region's whole state, taken and restored.

mod freeze;
mod restore;
mod schema;

pub use self::restore::RestoreError;
pub use self::schema::{
    RegionSnapshot, SavedEntity, SavedGhost, SavedInbound, SavedMail, SavedOutbound, SavedReal,
};

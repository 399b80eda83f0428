//! Snapshots: a region's whole state is taken (`freeze`), kept and sent (`schema`), and restored (`restore`).

mod freeze;
mod restore;
mod schema;

pub use self::restore::RestoreError;
pub use self::schema::{RegionSnapshot, SavedEntity, SavedGhost, SavedReal};

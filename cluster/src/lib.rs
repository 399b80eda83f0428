//! The Purview server as a library.

pub mod admin;
pub mod bots;
pub mod crowd;
pub mod oracle;
pub mod replay;
pub mod report;
pub mod trace;

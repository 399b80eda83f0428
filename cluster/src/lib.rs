//! The Purview server as a library.

pub mod oracle;
pub mod report;
pub mod trace;

//! The Purview server as a library.

pub mod oracle;

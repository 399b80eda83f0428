//! Judges the interest service: what it tells must be what brute force says.

pub mod judge;
pub mod replay;

//! The judge of the example game `hunt`, which the simulator, loads and benchmarks play: what its rules promise, and
//! the accounts of its gold.

pub mod accounts;
pub mod figures;
pub mod hands;
pub mod watched;

pub use purview_demo::hunt::{hunt, is_hunt, is_secret, kinds, rules};

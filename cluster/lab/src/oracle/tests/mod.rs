mod engine;
mod estimates;
mod faults;
mod flicker;
mod heights;
mod perfect;
pub(crate) mod server;
mod trajectories;

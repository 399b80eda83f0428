mod engine;
mod estimates;
mod faults;
mod flicker;
mod perfect;
pub(crate) mod server;
mod trajectories;

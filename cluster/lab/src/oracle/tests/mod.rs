mod bench;
mod engine;
mod estimates;
mod faults;
mod flicker;
mod perfect;
mod server;
mod trajectories;

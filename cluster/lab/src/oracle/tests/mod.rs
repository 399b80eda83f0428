mod bench;
mod engine;
mod estimates;
mod faults;
mod heights;
mod perfect;
mod server;
mod trajectories;

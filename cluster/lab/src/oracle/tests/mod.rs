mod bench;
mod engine;
mod estimates;
mod faults;
mod perfect;
mod server;
mod trajectories;

mod bench;
mod faults;
mod perfect;
mod server;
mod trajectories;

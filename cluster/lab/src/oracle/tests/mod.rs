mod bench;
mod estimates;
mod faults;
mod perfect;
mod server;
mod trajectories;

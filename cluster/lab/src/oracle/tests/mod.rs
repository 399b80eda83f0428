mod bench;
mod courses;
mod faults;
mod perfect;
mod server;

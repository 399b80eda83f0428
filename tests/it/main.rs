//! The library as those who embed it use it: scenes in virtual time against brute force, real actors, the wire, and
//! the house itself. One program, because each would link the library and compile what they share anew.

mod house;
mod stage;
mod support;

mod actors;
mod bonds;
mod book;
mod borders;
mod bounds;
mod crowd;
mod cycles;
mod departing;
mod detours;
mod doors;
mod extremes;
mod failover;
mod find;
mod golden;
mod imports;
mod layout;
mod limits;
mod liveness;
mod movement;
mod negotiation;
mod peers;
mod pressure;
mod relocation;
mod remap;
mod resume;
mod rulings;
mod snapshot;
mod stability;
mod views;
mod walks;
mod why;
mod wire;
mod wrap;

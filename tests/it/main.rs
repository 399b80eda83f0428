//! Tests of the library through its public interface: scenes in virtual time against brute force,
//! real actors, the wire, and checks of the repository itself. One program, so that the library is
//! linked and the shared code compiled only once.

mod house;
mod stage;
mod support;

mod actors;
mod bonds;
mod book;
mod borders;
mod bounds;
mod commands;
mod corrections;
mod crowd;
mod cycles;
mod departing;
mod detours;
mod doors;
mod examples;
mod extremes;
mod failover;
mod find;
mod from_peers;
mod golden;
mod hunt;
mod imports;
mod layout;
mod limits;
mod liveness;
mod load;
mod logic;
mod messages;
mod movement;
mod negotiation;
mod outbox;
mod own_state;
mod peers;
mod prediction;
mod pressure;
mod properties;
mod records;
mod relocation;
mod remap;
mod resume;
mod sessions;
mod snapshot;
mod stability;
mod subjects;
mod threads;
mod updates;
mod views;
mod walks;
mod why;
mod wire;
mod world;
mod wrap;

//! Tests of the lab: the cheat trial, the simulator with its recorded schedules and deliberate bugs, and the command.

mod bench;
mod cheat;
mod mutants;
mod process;
mod sim;
mod sim_game;

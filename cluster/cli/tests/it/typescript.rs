//! The TypeScript client, `clients/typescript`: its own tests, its package, and a player of it in a
//! real cluster.

mod first;
mod judged;
mod package;
mod program;
mod runtimes;

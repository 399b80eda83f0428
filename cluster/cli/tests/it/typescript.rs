//! The TypeScript client, `clients/typescript`: its own tests, its package, and a player of it in a
//! real cluster.

mod bot;
mod first;
mod judged;
mod package;
mod playing;
mod runtimes;

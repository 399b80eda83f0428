//! The Purview server: what one process of a scene cluster runs in production.
//!
//! `config` is read first; `process` assembles a server that is a single process, `node` one process
//! of a cluster. `storage` keeps leases and checkpoints, `peer` connects processes, `gateway` holds
//! clients' sessions, `admin` serves the console, the API and metrics, which `metrics` encodes.
//! `admission` bounds the connections of every listener.
//! `logic` connects workers with the rules of a game. `interest` is a service of its own, interest
//! management for other game servers. Both are services of `grpc`.
//!
//! Programs that embed a server need `config`, `process`, `logic::client` and `interest`, where everything public has
//! a comment. Elsewhere comments say what names, types and messages do not.
#![allow(missing_docs, reason = "names, types and messages say the rest")]

pub mod admin;
pub mod admission;
pub mod backup;
#[doc(hidden)]
pub mod boundaries;
pub mod causes;
#[warn(missing_docs)]
pub mod config;
pub mod descriptors;
pub mod executor;
pub mod gateway;
pub mod grpc;
pub mod http;
#[warn(missing_docs)]
pub mod interest;
pub mod launch;
pub mod logic;
pub mod logins;
pub mod logs;
pub mod maps;
pub mod metrics;
pub mod node;
pub mod peer;
pub mod play;
#[warn(missing_docs)]
pub mod process;
mod questions;
mod random;
pub mod shutdown;
pub mod simulation;
mod socket;
pub mod storage;
pub mod supervisor;
pub mod tls;
mod token_file;
mod whole_numbers;
pub mod workers;

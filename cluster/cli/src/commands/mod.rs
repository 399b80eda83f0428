//! The subcommands, one file each: its flags with their help texts, and a function that runs it.

pub mod backup;
pub mod certs;
pub mod check;
pub mod ctl;
pub mod dev;
pub mod interest;
pub mod node;
pub mod schema;
pub mod serve;
pub mod token;

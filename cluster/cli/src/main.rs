//! The command `purview`: parses arguments and calls the server.

mod cli;
mod commands;
mod error;
mod output;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, run};

/// The server allocates and frees messages hundreds of thousands of times a second; mimalloc is faster than the system's
/// allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    run(Cli::parse())
}

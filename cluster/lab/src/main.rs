//! The command `purview-lab`: loads a server, simulates a cluster, and measures.

mod cli;

use std::process::ExitCode;

use clap::Parser;

/// As in `purview`, whose servers the tools run in their own process.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::run(cli::Cli::parse())
}

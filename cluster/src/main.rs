//! The `purview` command.

use std::process::ExitCode;

use clap::Parser;
use purview_cluster::cli::{Cli, run};

/// Messages are made and dropped by the hundred thousand a second.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    run(Cli::parse())
}

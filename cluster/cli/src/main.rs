//! The `purview` command: parses arguments and calls the server or the lab.

mod args;
mod cli;
mod commands;
mod error;
mod output;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, run};

/// Messages are made and dropped by the hundred thousand a second.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    run(Cli::parse())
}

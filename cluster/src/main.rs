//! The `purview` command.

use std::process::ExitCode;

use clap::Parser;
use purview_cluster::cli::{Cli, run};

fn main() -> ExitCode {
    run(Cli::parse())
}

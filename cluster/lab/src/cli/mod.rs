//! The command line of `purview-lab`: its subcommands, its errors and its exit codes.

mod bench;
mod load;
mod sim;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use purview_server::causes::causes;
use purview_server::config::ConfigErrors;

/// Test and measure a Purview server.
#[derive(Debug, Parser)]
#[command(
    name = "purview-lab",
    version,
    after_help = "Examples:\n  \
        purview-lab load walk --count 500 --for 30s\n  \
        purview-lab load replay crowd.csv.gz --speed 20\n  \
        purview-lab sim --seed 7\n  \
        purview-lab bench scene --players 10000\n\n\
        Exit codes: 0 done, 1 failed, or something was found, 2 invalid command line."
)]
pub struct Cli {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Load a server with clients over sockets, and check what each client is shown.
    #[command(subcommand)]
    Load(load::LoadCommand),
    /// Simulate a cluster in one thread, inject faults, and check its invariants.
    Sim(sim::SimArgs),
    /// Measure the cost of a scene, the stability of view lists, and the behaviour of a cluster.
    Bench(bench::BenchArgs),
}

/// Runs a command line to its end.
pub fn run(cli: Cli) -> ExitCode {
    let code = match cli.command {
        Command::Load(command) => load::run(&command),
        Command::Sim(args) => sim::run_sim(&args),
        Command::Bench(args) => bench::run(&args),
    };
    match code {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            // Each error of a configuration has a line of its own.
            let text = match error.downcast::<ConfigErrors>() {
                Ok(errors) => errors.to_string(),
                Err(error) => causes(&error),
            };
            text.lines().for_each(|line| eprintln!("error: {line}"));
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}

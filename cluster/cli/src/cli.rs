//! The command line of `purview`: its subcommands, its errors and its exit codes. `main` calls [`run`].

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use purview_server::config::ConfigErrors;

use crate::commands::backup::{BackupArgs, RestoreArgs, run_backup, run_restore};
use crate::commands::certs::{CertsArgs, run_certs};
use crate::commands::check::{CheckArgs, check};
use crate::commands::ctl::{self, CtlCommand};
use crate::commands::dev::{self, DevArgs};
use crate::commands::interest::{InterestArgs, run_interest};
use crate::commands::node::{NodeArgs, run_node};
use crate::commands::serve::{ServeArgs, serve};
use crate::commands::token::{TokenArgs, run_token};
use crate::error::CliError;
/// A seamless scene cluster for massively multiplayer worlds.
#[derive(Debug, Parser)]
#[command(
    name = "purview",
    version,
    after_help = "Examples:\n  \
        purview dev\n  \
        purview serve --config purview.toml\n  \
        purview check deploy/scenes/dev.toml\n  \
        purview check --print --set tick=50ms > purview.toml\n  \
        purview ctl why 17 42\n\n\
        Exit codes: 0 done, 1 failed, 2 invalid command line; the help of a command names further ones."
)]
pub struct Cli {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a server for one machine: everything in one process, and nothing else to install.
    Serve(ServeArgs),
    /// Run a complete server on this machine, with players that walk and hunt, and a console to watch them.
    Dev(Box<DevArgs>),
    /// Run one process of a cluster: it owns regions, holds the sessions of clients, or both.
    Node(NodeArgs),
    /// Validate a configuration file and list all of its errors, or print the configuration in force.
    Check(CheckArgs),
    /// Sign a token that admits a client.
    Token(TokenArgs),
    /// Create a certificate authority and certificates for development.
    Certs(CertsArgs),
    /// Write all stored data to one file.
    Backup(BackupArgs),
    /// Restore all data of a backup file.
    Restore(RestoreArgs),
    /// Serve interest management to any game server: which entities appear to which.
    Interest(Box<InterestArgs>),
    /// Query and command a running server.
    #[command(subcommand)]
    Ctl(CtlCommand),
}

/// Runs a command line to its end.
pub fn run(cli: Cli) -> ExitCode {
    let done = match cli.command {
        Command::Serve(args) => ended(serve(&args)),
        Command::Dev(args) => ended(dev::dev(&args)),
        Command::Node(args) => ended(run_node(&args)),
        Command::Check(args) => check(&args),
        Command::Token(args) => ended(run_token(&args)),
        Command::Certs(args) => ended(run_certs(&args)),
        Command::Backup(args) => ended(run_backup(&args)),
        Command::Restore(args) => ended(run_restore(&args)),
        Command::Interest(args) => ended(run_interest(&args)),
        Command::Ctl(command) => ended(ctl::run(&command)),
    };
    let Err(error) = done else { return ExitCode::SUCCESS };
    for line in error.to_string().lines() {
        eprintln!("error: {line}");
    }
    ExitCode::from(error.code())
}

/// The result of a command that prints its own result and returns an exit code.
fn ended(code: anyhow::Result<u8>) -> Result<(), CliError> {
    match code {
        Ok(0) => Ok(()),
        Ok(code) => Err(CliError::Told(code)),
        // Each error of a configuration is printed on a line of its own.
        Err(e) => Err(e.downcast::<ConfigErrors>().map_or_else(CliError::Failed, CliError::Config)),
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

    #[test]
    fn a_set_without_a_value_is_a_usage_error_with_an_example() {
        let error = Cli::try_parse_from(["purview", "dev", "--set", "tick"]).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("for example gateway.ws=127.0.0.1:0"), "{error}");
    }

    #[test]
    fn a_check_needs_a_file_unless_it_prints() {
        let parse = |line: &str| Cli::try_parse_from(line.split(' ')).map(drop);
        assert_eq!(parse("purview check").unwrap_err().exit_code(), 2);
        assert_eq!(parse("purview check a.toml --set tick=50ms").unwrap_err().exit_code(), 2);
        parse("purview check --print --set tick=50ms").unwrap();
        parse("purview check a.toml").unwrap();
    }
}

//! The command line of `purview`: its subcommands, its errors and its exit codes. `main` calls [`run`].

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use purview_server::config::ConfigErrors;

use crate::commands::backup::{BackupArgs, RestoreArgs, run_backup, run_restore};
use crate::commands::certs::{CertsArgs, run_certs};
use crate::commands::check::{CheckArgs, check};
use crate::commands::config::{ConfigArgs, config};
use crate::commands::ctl::{self, CtlCommand};
use crate::commands::interest::{InterestArgs, run_interest};
use crate::commands::node::{GatewayArgs, NodeArgs, run_gateway, run_node};
use crate::commands::token::{TokenArgs, run_token};
use crate::error::CliError;
#[cfg(feature = "lab")]
use crate::{
    args::Engine,
    commands::bench::{self, BenchCommand},
    commands::bots::{BotsArgs, run_bots, run_trial},
    commands::dev::{self, DevArgs},
    commands::replay::{ReplayArgs, run_replay},
    commands::sim::{SimArgs, run_sim},
};
#[cfg(feature = "lab")]
use purview_lab::load::bots::Pattern;

/// A seamless scene cluster for massively multiplayer worlds.
#[derive(Debug, Parser)]
#[command(
    name = "purview",
    version,
    after_help = "Examples:\n  \
        purview dev\n  \
        purview replay crowd.csv.gz --speed 20\n  \
        purview check deploy/dev.toml\n  \
        purview config --set tick=50ms > purview.toml\n  \
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
    /// Validate a configuration file and list all of its errors.
    Check(CheckArgs),
    /// Print the configuration in force as TOML, with an explanation of each key.
    Config(ConfigArgs),
    /// Run a complete server on this machine, with walking bots and a console to watch them.
    #[cfg(feature = "lab")]
    Dev(Box<DevArgs>),
    /// Run one process of a cluster that owns regions.
    Node(NodeArgs),
    /// Run one process of a cluster that holds the sessions of clients.
    Gateway(GatewayArgs),
    /// Serve interest management to any game server: which entities appear to which.
    Interest(Box<InterestArgs>),
    /// Write all stored data to one file.
    Backup(BackupArgs),
    /// Restore all data of a backup file.
    Restore(RestoreArgs),
    /// Create a certificate authority and certificates for development.
    Certs(CertsArgs),
    /// Sign a token that admits a client.
    Token(TokenArgs),
    /// Replay recorded movement through real clients and check what each client is shown.
    #[cfg(feature = "lab")]
    Replay(ReplayArgs),
    /// Load a server with bots and check what each bot is shown.
    #[cfg(feature = "lab")]
    Bots(BotsArgs),
    /// Simulate a cluster in one thread, inject faults, and check its invariants.
    #[cfg(feature = "lab")]
    Sim(SimArgs),
    /// Measure the cost of a scene, the quality of view lists, and the behaviour of a cluster.
    #[cfg(feature = "lab")]
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Query and command a running server.
    #[command(subcommand)]
    Ctl(CtlCommand),
}

/// Runs a command line to its end.
pub fn run(cli: Cli) -> ExitCode {
    let done = match cli.command {
        Command::Check(args) => check(&args),
        Command::Config(args) => config(&args),
        #[cfg(feature = "lab")]
        Command::Dev(args) if args.tls && args.engine == Engine::Embedded => Err(CliError::Usage(
            "--tls encrypts traffic between processes: it requires --engine etcd".into(),
        )),
        #[cfg(feature = "lab")]
        Command::Dev(args) => ended(dev::dev(&args)),
        Command::Node(args) => ended(run_node(&args)),
        Command::Gateway(args) => ended(run_gateway(&args)),
        Command::Interest(args) => ended(run_interest(&args)),
        Command::Backup(args) => ended(run_backup(&args)),
        Command::Restore(args) => ended(run_restore(&args)),
        Command::Certs(args) => ended(run_certs(&args)),
        Command::Token(args) => ended(run_token(&args)),
        #[cfg(feature = "lab")]
        Command::Replay(args) => ended(run_replay(&args)),
        #[cfg(feature = "lab")]
        Command::Bots(args) if args.pattern == Pattern::Cheat => ended(run_trial(&args)),
        #[cfg(feature = "lab")]
        Command::Bots(args) => match &args.connect {
            Some(url) => ended(run_bots(&args, url)),
            None => Err(CliError::Usage(
                "--connect <URL> is missing: the server to load, for example ws://localhost:7000/"
                    .into(),
            )),
        },
        #[cfg(feature = "lab")]
        Command::Sim(args) => ended(run_sim(&args)),
        #[cfg(feature = "lab")]
        Command::Bench(command) => ended(bench::run(&command)),
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
        let error = Cli::try_parse_from(["purview", "config", "--set", "tick"]).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("for example gateway.ws=127.0.0.1:0"), "{error}");
    }

    #[test]
    fn scene_and_file_are_other_names_of_config() {
        for flag in ["--config", "--scene", "--file"] {
            let cli = Cli::try_parse_from(["purview", "config", flag, "a.toml"]).unwrap();
            let Command::Config(args) = cli.command else { panic!("{flag}") };
            assert_eq!(args.common.file, Some("a.toml".into()));
        }
    }

    #[test]
    fn the_log_flag_overrides_the_level() {
        let cli = Cli::try_parse_from(["purview", "config", "--log", "debug"]).unwrap();
        let Command::Config(args) = cli.command else { panic!("not config") };
        assert_eq!(args.common.load().unwrap().log.level, "debug");
    }
}

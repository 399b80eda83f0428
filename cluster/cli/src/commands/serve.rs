//! `purview serve`: a server for one machine, until a signal ends it.

use std::io::Write;
use std::path::PathBuf;

use actix::System;
use clap::Args;
use purview_demo::flags::ConfigFlags;
use purview_server::config::Config;
use purview_server::process::{Inside, Server, tokens};
use purview_server::shutdown::signals::ShutdownSignals;
use purview_server::{shutdown, supervisor};

use super::{print_reach, print_ready};

/// The folder for data, unless the configuration names one.
const DATA: &str = "purview-data";

/// `purview serve`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview serve --config purview.toml\n  \
    purview serve --config purview.toml --set logic.listen=127.0.0.1:7795\n\n\
    Serves the scenes of the configuration to clients, with console, metrics and logic workers, in one process; it \
    needs neither etcd nor PostgreSQL. Players, regions and layouts are kept in server.data_dir (without it in \
    purview-data, beside the configuration). Runs until Ctrl-C or SIGTERM; a later start goes on where it ended. \
    Prints where everything is, and at last one line, `ready` and a JSON object.\n\n\
    Exit codes: 0 shut down, 1 failed, 2 invalid command line.")]
pub struct ServeArgs {
    /// Configuration file, overrides and log level.
    #[command(flatten)]
    pub common: ConfigFlags,
}

/// The configuration, with a folder for data.
fn config(args: &ServeArgs) -> anyhow::Result<Config> {
    let mut config = args.common.load()?;
    if config.server.data_dir.is_none() {
        let folder = args.common.file.as_deref().and_then(|file| file.parent());
        config.server.data_dir =
            Some(folder.map_or_else(|| PathBuf::from(DATA), |at| at.join(DATA)));
    }
    Ok(config)
}

/// Runs `purview serve`.
///
/// # Errors
/// A part of the server cannot be started.
pub fn serve(args: &ServeArgs) -> anyhow::Result<u8> {
    let config = config(args)?;
    let _logs = purview_server::logs::init(&config.log)?;
    let tokens = tokens(&config)?;
    System::new().block_on(async {
        // Before the server reports that it is ready: from then on a signal may come.
        let mut ends = ShutdownSignals::listen()?;
        let server = tokio::select! {
            server = Server::start(&config, tokens, Inside::default()) => server?,
            () = ends.asked() => return Ok(0),
        };
        greet(&server, &config)?;
        supervisor::ready();
        tokio::select! {
            () = ends.asked() => {}
            error = server.process().lost() => return Err(error.into()),
        }
        supervisor::stopping(shutdown::total(config.ending()));
        server.stop().await;
        Ok(0)
    })
}

fn greet(server: &Server, config: &Config) -> anyhow::Result<()> {
    let (reach, process) = (server.reach(), server.process());
    let mut out = std::io::stdout().lock();
    print_reach(&mut out, reach)?;
    if let Some(addr) = reach.logic {
        writeln!(out, "workers    http://{addr}")?;
    }
    if let Some(path) = &config.server.data_dir {
        writeln!(out, "data       {}", std::path::absolute(path)?.display())?;
    }
    let listeners = [reach.ws, reach.tcp, reach.console, reach.logic];
    print_ready(&mut out, process.name(), listeners)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_are_kept_beside_the_configuration() {
        let data = |set: &[&str]| {
            let set = set.iter().map(|set| set.parse().unwrap()).collect();
            let common = ConfigFlags { set, ..ConfigFlags::default() };
            config(&ServeArgs { common }).unwrap().server.data_dir.unwrap()
        };
        assert_eq!(data(&[]), PathBuf::from("purview-data"));
        assert!(data(&["server.data_dir=/var/lib/purview"]).ends_with("var/lib/purview"));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("my.toml");
        std::fs::write(&file, "").unwrap();
        let common = ConfigFlags { file: Some(file), ..ConfigFlags::default() };
        let kept = config(&ServeArgs { common }).unwrap().server.data_dir.unwrap();
        assert_eq!(kept, folder.path().join("purview-data"));
    }
}

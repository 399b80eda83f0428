//! What the loads share: they connect to a server or start one, and print the report.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use purview::actor::player::Planes;
use purview_client::{Client, Trust};
use purview_lab::load::clients::read_token;
use purview_lab::load::console as server_console;
use purview_lab::load::report::Report;
use purview_lab::testbed::local_cluster::{LocalCluster, Parts};
use purview_lab::testbed::program;
use purview_server::config::Config;
use purview_server::gateway::Tokens;

/// The lifetime of tokens for a run of clients: longer than any run.
pub const HOLDS: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// A token for a running server: from the file, or signed with the known secret of `purview dev`.
pub fn token(file: Option<&Path>) -> anyhow::Result<String> {
    match file {
        Some(name) => {
            read_token(file).with_context(|| format!("{} cannot be read", name.display()))
        }
        None => Ok(Tokens::dev().mint_for("purview", Some(HOLDS), &Planes::Any)?),
    }
}

/// The trusted authorities: those in the file, or those of the machine.
pub fn trust(ca: Option<&Path>) -> anyhow::Result<Trust> {
    Ok(ca.map(Trust::file).transpose()?.unwrap_or_default())
}

/// Connects once to a running server, so that a wrong address or token is reported once and not by
/// every client.
pub async fn knock(url: &str, token: &str, trust: &Trust) -> anyhow::Result<()> {
    let door = Client::connect_trusting(trust, url, token);
    let door = tokio::time::timeout(Duration::from_secs(10), door).await;
    match door {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(e)) => Err(e).with_context(|| format!("{url} does not accept a client")),
        Err(_) => anyhow::bail!("{url} does not answer within 10 s"),
    }
}

/// Starts a cluster of processes of `purview`, with one gateway. Reports progress on standard error.
pub fn start_cluster(config: &Config, nodes: u16, secure: bool) -> anyhow::Result<LocalCluster> {
    let program = program::purview()?;
    let parts = Parts { nodes, gateways: 1 };
    let mut say = |line: String| eprintln!("{line}");
    let started = match secure {
        true => LocalCluster::start_secure(&program, config, parts, &mut say),
        false => LocalCluster::start(&program, config, parts, &mut say),
    };
    started.context("the cluster does not start")
}

/// The threads of the clients.
pub fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let built = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    built.context("cannot start a runtime for the clients")
}

/// Prints the report; the exit code says whether it contains violations.
pub fn finish(mut report: Report, console: Option<&str>, json: bool) -> anyhow::Result<u8> {
    if let Some(console) = console {
        match runtime()?.block_on(server_console::tick_ms(console)) {
            Ok(ticks) => report.tick_ms = Some(ticks),
            Err(e) => eprintln!("note: the server's tick times are unknown: {e}"),
        }
    }
    report.print(json);
    Ok(report.exit_code())
}

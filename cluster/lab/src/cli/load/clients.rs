//! What the loads share: they connect to a server or start one, and print the report.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use purview::actor::player::Planes;
use purview_client::{Client, Trust};
use purview_demo::flags::ConfigFlags;
pub use purview_lab::load::clients::HOLDS;
use purview_lab::load::report::Report;
use purview_lab::testbed::local_cluster::{LocalCluster, Parts, Stores};
use purview_lab::testbed::program;
use purview_server::config::Config;
use purview_server::gateway::Tokens;
use purview_server::process::ServerReach;

use super::Engine;

/// The server of a load: a running one, or one to start.
#[derive(Debug, Clone, Args)]
pub struct ServerArgs {
    /// Configuration file, overrides and log level of the server to start.
    #[command(flatten)]
    pub common: ConfigFlags,
    /// The server: ws://, wss://, tcp:// or tls://host:port [default: start one].
    #[arg(long, value_name = "URL")]
    pub connect: Option<String>,
    /// What the server to start runs on.
    #[arg(long, value_enum, default_value_t, conflicts_with = "connect")]
    pub engine: Engine,
    /// The number of processes that own regions, with --engine etcd.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub nodes: u16,
    /// A file with the token that admits the clients, or with several, one a line: each client takes the next one.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// A PEM file with the trusted authorities for wss:// and tls:// [default: those of the machine].
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Print the report as one JSON object at the end.
    #[arg(long)]
    pub json: bool,
}

/// A token for a running server: from the file, or signed with the known secret of `purview dev`.
pub fn token(file: Option<&Path>) -> anyhow::Result<String> {
    match file {
        Some(name) => read_token(name),
        None => Ok(Tokens::dev().mint_for("purview", Some(HOLDS), &Planes::Any)?),
    }
}

pub fn read_token(file: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(file);
    Ok(text.with_context(|| format!("{} cannot be read", file.display()))?.trim().to_owned())
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

/// Lets the server of a load listen at a free port and nowhere else, unless the flags say otherwise.
pub fn listen_alone(config: &mut Config, flags: &ConfigFlags) {
    let said = |key: &str| flags.set.iter().any(|set| set.path == key);
    if !said("gateway.ws") {
        config.gateway.ws.set_port(0);
    }
    if !said("gateway.tcp") {
        config.gateway.tcp = None;
    }
    if !said("console.listen") {
        config.console.listen = None;
    }
}

/// Adds what a server in this process says of itself to a report.
pub fn served(report: &mut Report, reach: &ServerReach) {
    (report.tick_ms, report.server) = (Some(reach.tick_ms()), Some(reach.figures()));
}

/// Starts a cluster of processes of `purview`, with one gateway. Reports progress on standard error.
pub fn start_cluster(config: &Config, nodes: u16, secure: bool) -> anyhow::Result<LocalCluster> {
    let program = program::purview()?;
    let parts = Parts { nodes, gateways: 1 };
    let mut say = |line: String| eprintln!("{line}");
    let stores = Stores { secure, ..Stores::PLAIN };
    let started = LocalCluster::start_on(stores, &program, config, parts, &mut say);
    started.context("the cluster does not start")
}

/// The threads of the clients.
pub fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let built = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    built.context("cannot start a runtime for the clients")
}

//! The subcommands, one file each: its flags with their help texts, and a function that runs it.

pub mod backup;
pub mod certs;
pub mod check;
pub mod ctl;
pub mod dev;
pub mod interest;
pub mod node;
pub mod schema;
pub mod serve;
pub mod token;

use std::io::Write;
use std::net::SocketAddr;

use purview_server::node::ready::{READY, Ready};
use purview_server::process::ServerReach;

/// Prints where operators and clients find a server in this process.
fn print_reach(out: &mut impl Write, reach: &ServerReach) -> std::io::Result<()> {
    if let Some(addr) = reach.console {
        writeln!(out, "console    http://{addr}/\nmetrics    http://{addr}/metrics")?;
    }
    for (name, url) in [("WebSocket", reach.ws_url()), ("TCP", reach.tcp_url())] {
        url.map_or(Ok(()), |url| writeln!(out, "{name:<10} {url}"))?;
    }
    Ok(())
}

/// Prints the line that says that a process is ready, and where its gateway (WebSocket, TCP), its console and its
/// workers' listener are.
fn print_ready(
    out: &mut impl Write,
    name: &str,
    listeners: [Option<SocketAddr>; 4],
) -> anyhow::Result<()> {
    let [ws, tcp, console, logic] = listeners.map(|addr| addr.map(|addr| addr.to_string()));
    let ready = Ready { name: name.to_owned(), ws, tcp, console, logic };
    writeln!(out, "{READY}{}", serde_json::to_string(&ready)?)?;
    Ok(out.flush()?)
}

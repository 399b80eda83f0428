//! `purview node` and `purview gateway`: one process of a cluster, until a signal or a drain ends it.

use std::io::Write;

use actix::System;
use clap::Args;

use crate::args::CommonArgs;
use purview_server::node::Roles;
use purview_server::node::ready::{READY, Ready};
use purview_server::process::{ClusterProcess, tokens};
use purview_server::shutdown::signals::ShutdownSignals;

/// `purview node`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview node --config purview.toml\n  \
    purview node --config purview.toml --set cluster.listen=10.0.0.3:7790 --gateway\n\n\
    Joins the cluster whose etcd the configuration names, takes the regions that the leader assigns to it, and \
    runs until Ctrl-C, SIGTERM or `purview ctl drain`. Then it migrates its regions to other nodes and ends. \
    Prints one line, `ready` and a JSON object, once it is a member.\n\n\
    Exit codes: 0 shut down, 1 failed, or the lease was lost, 2 invalid command line.")]
pub struct NodeArgs {
    /// Configuration file, overrides and log level.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Run a gateway in the same process, so that clients can connect to it.
    #[arg(long)]
    pub gateway: bool,
}

/// `purview gateway`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview gateway --config purview.toml\n  \
    purview gateway --config purview.toml --set gateway.ws=0.0.0.0:7711\n\n\
    Holds the sessions of clients and owns no region. Prints one line, `ready` and a JSON object, once \
    every region can be reached.\n\n\
    Exit codes: 0 shut down, 1 failed, or the lease was lost, 2 invalid command line.")]
pub struct GatewayArgs {
    /// Configuration file, overrides and log level.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// Runs `purview node`.
///
/// # Errors
/// The process cannot join its cluster, or has lost its lease.
pub fn run_node(args: &NodeArgs) -> anyhow::Result<u8> {
    run(&args.common, Roles { regions: true, gateway: args.gateway })
}

/// Runs `purview gateway`.
///
/// # Errors
/// As [`run_node`].
pub fn run_gateway(args: &GatewayArgs) -> anyhow::Result<u8> {
    run(&args.common, Roles { regions: false, gateway: true })
}

/// The demo NPCs, if this build has them.
fn population() -> Option<std::sync::Arc<dyn purview_server::node::population::Population>> {
    #[cfg(feature = "lab")]
    return Some(std::sync::Arc::new(purview_lab::testbed::demo_npcs::DemoNpcs));
    #[cfg(not(feature = "lab"))]
    None
}

/// The demo's game, if this build has it and the configuration wants the demo.
fn logic(
    config: &purview_server::config::Config,
) -> Option<std::sync::Arc<dyn purview::actor::logic::LogicFactory>> {
    #[cfg(feature = "lab")]
    return config.server.demo_npcs.then(purview_lab::game::hunt);
    #[cfg(not(feature = "lab"))]
    {
        let _ = config;
        None
    }
}

fn run(common: &CommonArgs, roles: Roles) -> anyhow::Result<u8> {
    let config = common.load()?;
    let _logs = purview_server::logs::init(&config.log)?;
    let tokens = tokens(&config)?;
    System::new().block_on(async {
        let mut ends = ShutdownSignals::listen()?;
        let node = tokio::select! {
            node = ClusterProcess::start(&config, roles, tokens, population(), logic(&config)) => node?,
            () = ends.asked() => return Ok(0),
        };
        let mut status = node.status();
        let up = async {
            // An error says that the reconciler has ended, which the lease tells, too.
            if roles.gateway
                && status.wait_for(purview_server::node::Status::is_whole).await.is_err()
            {
                std::future::pending::<()>().await;
            }
        };
        let asked = tokio::select! {
            () = up => false,
            () = ends.asked() => true,
            error = node.lost() => return Err(error.into()),
        };
        if !asked {
            let address = |addr: Option<std::net::SocketAddr>| addr.map(|addr| addr.to_string());
            let (ws, tcp) = (address(node.ws_addr()), address(node.tcp_addr()));
            let (name, console) = (node.name().to_owned(), address(node.console_addr()));
            let logic = address(node.logic_addr());
            let ready = Ready { name, ws, tcp, console, logic };
            let mut out = std::io::stdout().lock();
            writeln!(out, "{READY}{}", serde_json::to_string(&ready)?)?;
            out.flush()?;
            drop(out);
            tokio::select! {
                () = ends.asked() => {}
                () = node.drained() => tracing::info!("drained: all regions have moved, the process ends"),
                error = node.lost() => return Err(error.into()),
            }
        }
        node.stop().await;
        Ok(0)
    })
}

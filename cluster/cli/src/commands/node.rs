//! `purview node`: one process of a cluster, until a signal or a drain ends it.

use std::sync::Arc;

use actix::System;
use clap::{Args, ValueEnum};
use purview_demo::flags::ConfigFlags;
use purview_demo::hunt;
use purview_demo::npcs::DemoNpcs;
use purview_server::node::Roles;
use purview_server::process::{ClusterProcess, Inside, tokens};
use purview_server::shutdown::signals::ShutdownSignals;
use purview_server::{shutdown, supervisor};

use super::print_ready;

/// `purview node`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview node --config purview.toml\n  \
    purview node --config purview.toml --set cluster.listen=10.0.0.3:7790 --role all\n  \
    purview node --config purview.toml --role gateway --set gateway.ws=0.0.0.0:7711\n\n\
    Joins the cluster whose etcd the configuration names, and runs until Ctrl-C, SIGTERM or `purview ctl drain`. \
    A process with regions takes those that the leader assigns to it, and migrates them to others when it ends. \
    Prints one line, `ready` and a JSON object, once it is a member and, as a gateway, reaches every region.\n\n\
    Exit codes: 0 shut down, 1 failed, or the lease was lost, 2 invalid command line.")]
pub struct NodeArgs {
    /// Configuration file, overrides and log level.
    #[command(flatten)]
    pub common: ConfigFlags,
    /// What the process does in its cluster.
    #[arg(long, value_enum, default_value_t)]
    pub role: Role,
}

/// What a process does in its cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// Owns regions
    #[default]
    Regions,
    /// Holds the sessions of clients
    Gateway,
    /// Both
    All,
}

impl Role {
    fn roles(self) -> Roles {
        Roles { regions: self != Role::Gateway, gateway: self != Role::Regions }
    }
}

/// Runs `purview node`.
///
/// # Errors
/// The process cannot join its cluster, or has lost its lease.
pub fn run_node(args: &NodeArgs) -> anyhow::Result<u8> {
    let (config, roles) = (args.common.load()?, args.role.roles());
    let _logs = purview_server::logs::init(&config.log)?;
    let tokens = tokens(&config)?;
    let logic = config.server.demo.then(hunt::hunt);
    let inside = Inside { logic, population: Some(Arc::new(DemoNpcs)) };
    System::new().block_on(async {
        let mut ends = ShutdownSignals::listen()?;
        let node = tokio::select! {
            node = ClusterProcess::start(&config, roles, tokens, inside) => node?,
            () = ends.asked() => return Ok(0),
        };
        supervisor::ready();
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
            let listeners =
                [node.ws_addr(), node.tcp_addr(), node.console_addr(), node.logic_addr()];
            print_ready(&mut std::io::stdout().lock(), node.name(), listeners)?;
            tokio::select! {
                () = ends.asked() => {}
                () = node.drained() => tracing::info!("drained: all regions have moved, the process ends"),
                error = node.lost() => return Err(error.into()),
            }
        }
        supervisor::stopping(shutdown::total(config.ending()));
        node.stop().await;
        Ok(0)
    })
}

//! `purview-lab load walk`: bots on a running server, or in the demo world of `purview dev`.

use clap::Args;
use purview_lab::load::bots::{BotsOptions, bots};
use purview_lab::load::clients::Progress;
use purview_lab::shown::Shown;

use super::clients::{ServerArgs, knock, runtime, token, trust};

/// Let bots walk, and check what each is shown.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview-lab load walk --count 500 --for 30s\n  \
    purview-lab load walk --engine etcd --nodes 3 --tls\n  \
    purview-lab load walk --connect ws://127.0.0.1:7711/ --count 500 --for 5m\n\n\
    Without --connect the command starts a server with the demo world of `purview dev`, or with the scenes of \
    --config; six more clients play the example game there. With --engine etcd the game is judged, too.\n\n\
    Exit codes: 0 no error found; 1 failed, or a client was shown something wrong; 2 invalid command line.")]
pub struct WalkArgs {
    #[command(flatten)]
    pub server: ServerArgs,
    /// With --engine etcd: the processes, the etcd and the PostgreSQL use mutual TLS, with new certificates.
    #[arg(long)]
    pub tls: bool,
    #[command(flatten)]
    pub bots: BotsOptions,
}

/// Lets bots walk on a running server; the exit code is 1 when a bot was shown something wrong.
pub fn run_walk(args: &WalkArgs, url: &str) -> anyhow::Result<u8> {
    let token = token(args.server.token_file.as_deref())?;
    let options = BotsOptions { trust: trust(args.server.ca.as_deref())?, ..args.bots.clone() };
    let first = token.lines().next().unwrap_or_default();
    runtime()?.block_on(knock(url, first, &options.trust))?;
    let report = runtime()?.block_on(bots(url, &token, options, Progress::Stderr))?;
    report.show(args.server.json)
}

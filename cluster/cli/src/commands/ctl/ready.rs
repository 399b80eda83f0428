//! `purview ctl ready`: a health check for containers and scripts, which needs neither a token nor another program.

use std::io::Write;

use clap::Args;
use purview_server::admin::Scope;
use purview_server::http;

use super::{ConsoleArgs, CtlError, Target};

/// The exit code of a process that is not ready.
const NOT_READY: u8 = 1;

/// `purview ctl ready`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview ctl ready --config purview.toml\n  \
    purview ctl ready --whole --console http://10.0.0.7:7780\n\n\
    A process is ready if load balancers may send it new sessions. Prints the reason if it is not.\n\n\
    Exit codes: 0 ready; 1 not ready, or no answer; 2 invalid command line.")]
pub struct ReadyArgs {
    /// Ask instead whether the process reaches every region of the cluster.
    #[arg(long)]
    pub whole: bool,
    /// The server.
    #[command(flatten)]
    pub console: ConsoleArgs,
}

/// Prints whether the process is ready; the exit code says the same.
pub(super) async fn run(args: &ReadyArgs) -> anyhow::Result<u8> {
    let (what, path) = if args.whole { ("whole", "/whole") } else { ("ready", "/ready") };
    let Target { url, caller } = args.console.target(Scope::Read)?;
    let caller = http::Caller { token: None, ..caller };
    let answer = caller.get(&url, path).await.map_err(CtlError::NoAnswer)?;
    let mut out = std::io::stdout().lock();
    if answer.status == 200 {
        writeln!(out, "{what}")?;
        return Ok(0);
    }
    let told: serde_json::Value = serde_json::from_slice(&answer.body)
        .map_err(|_| CtlError::Stranger { url, status: answer.status })?;
    writeln!(out, "not {what}: {}", told["error"].as_str().unwrap_or("no reason was given"))?;
    Ok(NOT_READY)
}

//! `purview-lab load flood`: clients that send more than the limits allow, on a running server.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use purview_demo::flags::time;
use purview_lab::load::flood::{FloodOptions, flood};

use super::clients::{knock, runtime, token, trust};

/// Send more than the limits allow, to measure what a flood costs everybody else.
#[derive(Debug, Clone, Args)]
pub struct FloodArgs {
    /// The server: ws://, wss://, tcp:// or tls://host:port.
    #[arg(long, value_name = "URL")]
    pub connect: String,
    /// The scene, of trusted moves.
    #[arg(long, value_name = "NAME", default_value = "meadow")]
    pub scene: String,
    /// The number of clients.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub count: u32,
    /// Messages that each client tries to send in a second.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(200..=100_000))]
    pub rate: u32,
    /// For how long.
    #[arg(long = "for", value_name = "TIME", default_value = "30s", value_parser = time)]
    pub length: Duration,
    /// A file with the token that admits the clients.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// A PEM file with the trusted authorities for wss:// and tls:// [default: those of the machine].
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Print the report as one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// Runs the command; the exit code is 1 when a session ended otherwise than by its rate.
///
/// # Errors
/// The server accepts no client.
pub fn run_flood(args: &FloodArgs) -> anyhow::Result<u8> {
    let token = token(args.token_file.as_deref())?;
    let token = token.lines().next().unwrap_or_default();
    let options = FloodOptions {
        scene: args.scene.clone(),
        count: args.count,
        rate: args.rate,
        length: args.length,
        trust: trust(args.ca.as_deref())?,
    };
    runtime()?.block_on(knock(&args.connect, token, &options.trust))?;
    let report = runtime()?.block_on(flood(&args.connect, token, &options));
    match args.json {
        true => println!("{}", serde_json::to_string(&report)?),
        false => print!("{report}"),
    }
    Ok(u8::from(report.failed > 0))
}

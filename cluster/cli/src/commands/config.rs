//! `purview config`: prints the configuration in force.

use clap::Args;

use crate::args::CommonArgs;
use crate::error::CliError;
use crate::output::say;

/// `purview config`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    purview config > purview.toml\n  \
    purview config --file deploy/station.toml --set scene.0.view_cap=20\n  \
    PURVIEW_GATEWAY__WS=0.0.0.0:7711 purview config --json")]
pub struct ConfigArgs {
    /// Configuration file, overrides and log level.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Print one JSON object instead of TOML.
    #[arg(long)]
    pub json: bool,
}

/// Runs `purview config`.
///
/// # Errors
/// The configuration has errors, or standard output cannot be written.
pub fn config(args: &ConfigArgs) -> Result<(), CliError> {
    let text = args.common.load()?.to_toml();
    if !args.json {
        return say(&text);
    }
    let table: toml::Table = text.parse().map_err(anyhow::Error::from)?;
    let json = serde_json::to_string(&table).map_err(anyhow::Error::from)?;
    say(&format!("{json}\n"))
}

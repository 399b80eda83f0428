//! `purview ctl why`.

use std::io::Write;

use clap::Args;
use serde::Deserialize;

use super::ConsoleArgs;

/// The exit code when the two do not see each other.
const NOT_SEEN: u8 = 3;

/// `purview ctl why`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview ctl why 17 42\n  \
    purview ctl why 17 42 --console http://10.0.0.7:7780\n  \
    purview ctl why 17 42 --config purview.toml --json\n\n\
    Says whether the two see each other and by which rule: bond, rank and distance, or scene, \
    plane, range, a full view list and whom it prefers, or the margin. Ids are those of the \
    console and of what clients are told.\n\n\
    Exit codes: 0 they see each other, 3 they do not, 1 failed (no server answers, no such \
    entity), 2 not understood.")]
pub struct WhyArgs {
    /// The id of a player.
    pub a: u64,
    /// The id of another.
    pub b: u64,
    /// Which server.
    #[command(flatten)]
    pub console: ConsoleArgs,
    /// Print one JSON object instead, as `/api/why` of the console answers.
    #[arg(long)]
    pub json: bool,
}

/// The part of the answer that people are told.
#[derive(Debug, Deserialize)]
struct Answer {
    seen: bool,
    words: Vec<String>,
}

/// Asks and tells; the exit code says whether the two see each other.
pub(super) async fn run(args: &WhyArgs) -> anyhow::Result<u8> {
    let WhyArgs { a, b, console, json } = args;
    let told = console.get(&format!("/api/why?a={a}&b={b}")).await?;
    let Answer { seen, words } = told.read()?;
    let mut out = std::io::stdout().lock();
    if *json {
        out.write_all(&told.body)?;
        writeln!(out)?;
    } else {
        words.iter().try_for_each(|sentence| writeln!(out, "{sentence}"))?;
    }
    Ok(if seen { 0 } else { NOT_SEEN })
}

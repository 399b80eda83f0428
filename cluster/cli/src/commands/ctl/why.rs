//! `purview ctl why`: explains why two players see each other, or why not.

use clap::Args;
use serde::Deserialize;

use super::ConsoleArgs;

/// The exit code if the two players do not see each other.
const NOT_SEEN: u8 = 3;

/// `purview ctl why`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview ctl why 17 42\n  \
    purview ctl why 17 42 --console http://10.0.0.7:7780\n  \
    purview ctl why 17 42 --config purview.toml --json\n\n\
    Prints whether the two players see each other, and the rule that decides: bond, rank and distance, or scene, \
    plane, range, a full view list and the players that it prefers, or the margin. Ids are those of the console \
    and of the client protocol.\n\n\
    Exit codes: 0 they see each other, 1 failed (no answer, or no such entity), 2 invalid command line, 3 they do \
    not see each other.")]
pub struct WhyArgs {
    /// The id of a player.
    pub a: u64,
    /// The id of another player.
    pub b: u64,
    /// The server.
    #[command(flatten)]
    pub console: ConsoleArgs,
    /// Print the JSON of the console's `/api/why`.
    #[arg(long)]
    pub json: bool,
}

/// The printed part of the explanation.
#[derive(Debug, Deserialize)]
struct Explanation {
    seen: bool,
    sentences: Vec<String>,
}

/// Prints the explanation; the exit code says whether the two players see each other.
pub(super) async fn run(args: &WhyArgs) -> anyhow::Result<u8> {
    let WhyArgs { a, b, console, json } = args;
    let told = console.get(&format!("/api/why?a={a}&b={b}")).await?;
    let Explanation { seen, sentences } = told.read()?;
    let lines: String = sentences.iter().map(|sentence| format!("{sentence}\n")).collect();
    told.print(*json, &lines)?;
    Ok(if seen { 0 } else { NOT_SEEN })
}

//! `purview-lab bench views`: compares view lists on the same crowds: those that regions negotiate, with several margins,
//! and those of the classic heuristic.
//!
//! Everything but the CPU time is virtual: the same seed gives the same figures on every machine.

pub mod calm;
pub mod classic;
pub mod gathering;
pub mod lists;
mod measure;
pub(super) mod page;
mod plan;
mod plot;
pub mod quality;
pub mod regions;
mod tables;

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use purview::scene::Pos;
use serde::Serialize;

use crate::args::positive;

pub use lists::Lists;
pub use measure::{Row, Way};
pub use quality::Good;

/// The greatest number of players, because every pair is compared.
const PLAYERS_MAX: usize = 100_000;

/// The greatest deviation of a crowd; in a wider crowd hardly any two players are in range.
const SIGMA_MAX_M: f64 = 1_000.0;

/// A method that makes view lists.
trait ViewLists {
    /// All players have walked to these positions: updates the lists.
    fn step(&mut self, places: &[Pos]);

    /// Copies all lists. Returns how many players are at wrong positions.
    fn lists(&self, places: &[Pos], into: &mut Lists) -> u64;

    /// What was sent since the start.
    fn sent(&self) -> Sent;
}

/// The number of messages since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sent {
    /// Messages of the negotiation within a region.
    within: u64,
    /// Messages of the negotiation to another region.
    between: u64,
    /// Batches between regions: ghosts and border rounds.
    batches: u64,
}

/// `purview-lab bench views`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview-lab bench views\n  \
    purview-lab bench views --players 300 --sigma 20 --margins 1 --seconds 10 --json\n  \
    purview-lab bench views --cost\n  \
    purview-lab bench views --write docs/contributing/views.md\n\n\
    All players walk at about 1.4 m/s between places that are normally distributed around one point, 10 ticks \
    per second.\n\n\
    Exit codes: 0 done, 1 failed, or a negotiated list is not symmetric, exceeds the cap, or was made for a wrong \
    position, 2 invalid command line.")]
pub struct BenchViewsArgs {
    /// The numbers of players of the crowds, comma-separated.
    #[arg(long, value_delimiter = ',', default_value = "300,1000")]
    pub players: Vec<usize>,
    /// The deviations of the crowds along each axis, metres, comma-separated.
    #[arg(long, value_name = "METRES", value_delimiter = ',', default_value = "20,60", value_parser = positive)]
    pub sigma: Vec<f64>,
    /// The margins to try in circles besides none, metres, comma-separated.
    #[arg(long, value_name = "METRES", value_delimiter = ',', default_value = "0.5,1,1.5,2,4", value_parser = positive)]
    pub margins: Vec<f64>,
    /// The margin of the rows with patches, of those across four regions, and of the table of costs, metres.
    #[arg(long, value_name = "METRES", default_value_t = 2.0, value_parser = positive)]
    pub margin: f64,
    /// The measured virtual time, seconds.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: u64,
    /// The warm-up, seconds of virtual time.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(..=86_400))]
    pub warm_up: u64,
    /// The capacity of a list, 1 to 1000.
    #[arg(long, default_value_t = 60)]
    pub cap: usize,
    /// The seed of the movement.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The number of players at ordinary density, in the table of costs.
    #[arg(long, default_value_t = 10_000)]
    pub many: usize,
    /// Print the cost of the negotiation, up to 10,000 players, instead of the comparison.
    #[arg(long)]
    pub cost: bool,
    /// Print one JSON object instead of tables.
    #[arg(long)]
    pub json: bool,
    /// Measure both tables, write them between the markers of this page, and draw img/views.svg beside the page.
    #[arg(long, value_name = "PAGE")]
    pub write: Option<PathBuf>,
}

/// The result of a run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ViewsBench {
    /// The measured virtual time, seconds.
    pub seconds: u64,
    /// The warm-up, seconds.
    pub warm_up: u64,
    /// The capacity of a list.
    pub cap: usize,
    /// The seed of the movement.
    pub seed: u64,
    /// The comparison, crowd by crowd; empty if it was not measured.
    pub crowds: Vec<CrowdRows>,
    /// The cost of the negotiation; empty if it was not measured.
    pub cost: Vec<CostRow>,
}

/// The rows of one crowd.
#[derive(Debug, Clone, Serialize)]
pub struct CrowdRows {
    /// The number of players.
    pub players: usize,
    /// The deviation along each axis, metres.
    pub sigma_m: f64,
    /// One row for each method.
    pub rows: Vec<Row>,
}

/// The cost of the negotiation for a crowd.
#[derive(Debug, Clone, Serialize)]
pub struct CostRow {
    /// A description of the crowd.
    pub crowd: String,
    /// The number of players.
    pub players: usize,
    /// The measurements.
    #[serde(flatten)]
    pub row: Row,
}

impl ViewsBench {
    /// Whether all negotiated lists were symmetric and within the cap throughout.
    pub fn is_sound(&self) -> bool {
        self.unsound().is_empty()
    }

    /// Descriptions of the rows whose lists were not.
    pub fn unsound(&self) -> Vec<String> {
        let compared = self.crowds.iter().flat_map(|c| &c.rows);
        let all = compared.chain(self.cost.iter().map(|c| &c.row));
        all.filter(|row| row.faults > 0)
            .map(|row| format!("{}: {} faults", row.lists, row.faults))
            .collect()
    }

    /// The results as tables in Markdown.
    pub fn to_markdown(&self) -> String {
        tables::markdown(self)
    }
}

impl BenchViewsArgs {
    /// # Errors
    /// Names the argument that cannot be measured.
    fn check(&self) -> anyhow::Result<()> {
        let mut players = self.players.iter().chain([&self.many]);
        if !players.all(|n| (1..=PLAYERS_MAX).contains(n)) {
            bail!("--players and --many must be between 1 and {PLAYERS_MAX}");
        }
        if !self.sigma.iter().all(|m| *m <= SIGMA_MAX_M) {
            bail!("--sigma must be at most {SIGMA_MAX_M} m");
        }
        if !(1..=1_000).contains(&self.cap) {
            bail!("--cap must be between 1 and 1000");
        }
        Ok(())
    }
}

/// Runs the benchmark. `progress` receives each row when it is done.
///
/// # Errors
/// The arguments make no legal scene, or a page cannot be written.
pub fn bench_views(
    args: &BenchViewsArgs,
    progress: &mut dyn FnMut(&str),
) -> anyhow::Result<ViewsBench> {
    args.check()?;
    if let Some(page) = &args.write {
        page::check(page)?;
    }
    let mut bench = ViewsBench {
        seconds: args.seconds,
        warm_up: args.warm_up,
        cap: args.cap,
        seed: args.seed,
        ..ViewsBench::default()
    };
    if !args.cost || args.write.is_some() {
        bench.crowds = plan::compare(args, progress)?;
    }
    if args.cost || args.write.is_some() {
        bench.cost = plan::cost(args, progress)?;
    }
    if let Some(page) = &args.write {
        page::write(page, &bench)?;
    }
    Ok(bench)
}

#[cfg(test)]
mod tests;

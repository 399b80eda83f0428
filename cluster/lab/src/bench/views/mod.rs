//! `purview bench views`: view lists beside each other, on the same crowds: those that regions
//! negotiate, with more and less calm, and those of the classic heuristic.
//!
//! Everything but the CPU time is virtual: the same seed gives the same figures on every machine.

pub mod calm;
pub mod classic;
pub mod gathering;
pub mod lists;
mod measure;
mod page;
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

/// Every pair is looked at.
const PLAYERS_MAX: usize = 100_000;

/// A crowd that is wider has hardly anybody in range of anybody.
const SIGMA_MAX_M: f64 = 1_000.0;

/// What makes view lists.
trait ViewLists {
    /// Everybody has walked to these places: brings the lists up to date.
    fn step(&mut self, places: &[Pos]);

    /// Copies all lists. Tells how many players are not known at their places.
    fn lists(&self, places: &[Pos], into: &mut Lists) -> u64;

    /// What was sent since the start.
    fn sent(&self) -> Sent;
}

/// Messages, since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sent {
    /// Of the negotiation, between players of one region.
    within: u64,
    /// Of the negotiation, to players of another region.
    between: u64,
    /// Batches from region to region: ghosts, and rounds of settling.
    batches: u64,
}

/// `purview bench views`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview bench views\n  \
    purview bench views --players 300 --sigma 20 --margins 1 --seconds 10 --json\n  \
    purview bench views --cost\n  \
    purview bench views --write docs/views.md\n\n\
    Everybody walks at about 1.4 m/s between places that are normally distributed round one point, \
    10 ticks a second. Exits with 1 when lists that regions negotiated are not symmetric, exceed the \
    cap, or are of somebody who is elsewhere.")]
pub struct BenchViewsArgs {
    /// Players in a crowd; several by commas.
    #[arg(long, value_delimiter = ',', default_value = "300,1000")]
    pub players: Vec<usize>,
    /// Deviation of a crowd along each axis, metres; several by commas.
    #[arg(long, value_name = "METRES", value_delimiter = ',', default_value = "20,60", value_parser = positive)]
    pub sigma: Vec<f64>,
    /// Margins to try in circles beside none, metres; several by commas.
    #[arg(long, value_name = "METRES", value_delimiter = ',', default_value = "0.5,1,1.5,2,4", value_parser = positive)]
    pub margins: Vec<f64>,
    /// The margin of the rows in patches, across four regions, and of the table of costs, metres.
    #[arg(long, value_name = "METRES", default_value_t = 2.0, value_parser = positive)]
    pub margin: f64,
    /// Seconds that are measured, of virtual time.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: u64,
    /// Seconds before that, to warm up.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(..=86_400))]
    pub warm_up: u64,
    /// Most players in a list, 1 to 1000.
    #[arg(long, default_value_t = 60)]
    pub cap: usize,
    /// Seed of the walk.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Players at ordinary density, in the table of costs.
    #[arg(long, default_value_t = 10_000)]
    pub many: usize,
    /// Print what negotiation costs, up to 10,000 players, in place of the comparison.
    #[arg(long)]
    pub cost: bool,
    /// Print one JSON object instead of tables.
    #[arg(long)]
    pub json: bool,
    /// Measure both tables, put them into this page between its markers, and draw img/views.svg
    /// beside it.
    #[arg(long, value_name = "PAGE")]
    pub write: Option<PathBuf>,
}

/// What a run measured.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ViewsBench {
    /// Seconds of virtual time that were measured.
    pub seconds: u64,
    /// Seconds before these.
    pub warm_up: u64,
    /// Most players in a list.
    pub cap: usize,
    /// Seed of the walk.
    pub seed: u64,
    /// The comparison, crowd by crowd; empty when it was not asked for.
    pub crowds: Vec<CrowdRows>,
    /// What negotiation costs; empty when it was not asked for.
    pub cost: Vec<CostRow>,
}

/// The rows of one crowd.
#[derive(Debug, Clone, Serialize)]
pub struct CrowdRows {
    /// Players.
    pub players: usize,
    /// Deviation along each axis, metres.
    pub sigma_m: f64,
    /// One for each way to make lists.
    pub rows: Vec<Row>,
}

/// What negotiation costs a crowd.
#[derive(Debug, Clone, Serialize)]
pub struct CostRow {
    /// The crowd, in words.
    pub crowd: String,
    /// Players.
    pub players: usize,
    /// What was measured.
    #[serde(flatten)]
    pub row: Row,
}

impl ViewsBench {
    /// Whether lists that regions negotiated were symmetric and within the cap throughout.
    pub fn is_sound(&self) -> bool {
        self.unsound().is_empty()
    }

    /// The rows in which they were not, in words.
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
    /// Which figure asks for nothing that can be measured.
    fn check(&self) -> anyhow::Result<()> {
        let mut players = self.players.iter().chain([&self.many]);
        if !players.all(|n| (1..=PLAYERS_MAX).contains(n)) {
            bail!("--players and --many must lie between 1 and {PLAYERS_MAX}");
        }
        if !self.sigma.iter().all(|m| *m <= SIGMA_MAX_M) {
            bail!("--sigma must be at most {SIGMA_MAX_M} m");
        }
        if !(1..=1_000).contains(&self.cap) {
            bail!("--cap must lie between 1 and 1000");
        }
        Ok(())
    }
}

/// Runs the benchmark; `progress` is told of each row as it is done.
///
/// # Errors
/// The figures asked for make no legal scene, or a page cannot be written.
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

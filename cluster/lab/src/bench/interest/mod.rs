//! `purview-lab bench interest`: what interest management costs, in process and as a service.

mod crowd;
mod local;
mod plot;
mod service;
mod tables;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use serde::Serialize;

use super::views::page;
use crate::rng;

pub use local::{LocalRow, ThreadRow};
pub use service::ServiceRow;

/// `purview-lab bench interest`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview-lab bench interest\n  \
    purview-lab bench interest --most 10000 --seconds 0.2 --json\n  \
    purview-lab bench interest --write docs/contributing/benchmarks.md\n\n\
    All entities walk at 5 m/s, ten ticks per second, and see each other within 80 m (leave radius 85 m), or within \
    5 x 5 patches of the same area. CPU times, one run each. Close other programs before.\n\n\
    Exit codes: 0 done, 1 failed, 2 invalid command line.")]
pub struct BenchInterestArgs {
    /// How long each row is measured, seconds.
    #[arg(long, default_value_t = 2.0, value_parser = crate::args::positive)]
    pub seconds: f64,
    /// The most entities of a row, 1,000 to 1,000,000: rows with more are left out.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1_000..=1_000_000))]
    pub most: u32,
    /// Print one JSON object instead of tables.
    #[arg(long)]
    pub json: bool,
    /// Write the results between the markers of this page, and draw img/interest.svg beside it.
    #[arg(long, value_name = "PAGE")]
    pub write: Option<PathBuf>,
}

/// The result of a run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct InterestBench {
    /// In process, one thread.
    pub local: Vec<LocalRow>,
    /// In process, one and two threads.
    pub threads: Vec<ThreadRow>,
    /// Over gRPC on loopback.
    pub service: Vec<ServiceRow>,
}

impl InterestBench {
    /// The results as tables in Markdown.
    pub fn to_markdown(&self) -> String {
        tables::markdown(self)
    }
}

/// Runs the benchmark. `program` is the command `purview`; `progress` receives each row when it is
/// done.
///
/// # Errors
/// The service does not start, or a page cannot be written.
pub fn bench_interest(
    args: &BenchInterestArgs,
    program: &Path,
    progress: &mut dyn FnMut(&str),
) -> anyhow::Result<InterestBench> {
    if let Some(page) = &args.write {
        page::check(page)?;
    }
    let (length, most) = (Duration::from_secs_f64(args.seconds), args.most as usize);
    let bench = InterestBench {
        local: local::all(length, most, progress)?,
        threads: local::threads(length, most, progress)?,
        service: service::all(program, length, progress)?,
    };
    if let Some(page) = &args.write {
        write(page, &bench)?;
    }
    Ok(bench)
}

fn write(page: &Path, bench: &InterestBench) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(page)?;
    let text = page::with_results(&text, &bench.to_markdown()).context("the page lacks markers")?;
    let picture = page.with_file_name("img").join("interest.svg");
    for (file, text) in [(page, text), (&picture, plot::draw(&bench.local))] {
        std::fs::write(file, text)
            .with_context(|| format!("{} cannot be written", file.display()))?;
    }
    Ok(())
}

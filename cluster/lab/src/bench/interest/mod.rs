//! `purview-lab bench interest`: what interest management costs, in process and as a service.

mod capped;
mod local;
mod service;
pub(super) mod waypoint_walkers;

use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::Shown;
use crate::rng;
use crate::shown::table;
use crate::testbed::program;

pub use capped::CappedRow;
pub use local::{LocalRow, ThreadRow};
pub use service::ServiceRow;

#[derive(Debug, Clone, Args)]
#[command(
    after_help = "All entities walk at 5 m/s, ten ticks per second, and see each other within 80 m (leave radius \
    85 m), or within 5 x 5 patches of the same area. CPU times, one run each. Close other programs before.\n\n\
    Exit codes: 0 done, 1 failed, 2 invalid command line."
)]
pub struct BenchInterestArgs {
    /// How long each row is measured, seconds.
    #[arg(long, default_value_t = 2.0, value_parser = crate::args::positive)]
    pub seconds: f64,
    /// The most entities of a row, 1,000 to 1,000,000: rows with more are left out.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1_000..=1_000_000))]
    pub most: u32,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct InterestBench {
    /// In process, one thread.
    pub local: Vec<LocalRow>,
    /// In process, one and two threads.
    pub threads: Vec<ThreadRow>,
    /// In process, with a cap.
    pub capped: Vec<CappedRow>,
    pub service: Vec<ServiceRow>,
}

pub fn bench_interest(args: &BenchInterestArgs) -> anyhow::Result<InterestBench> {
    let (length, most) = (Duration::from_secs_f64(args.seconds), args.most as usize);
    Ok(InterestBench {
        local: local::all(length, most)?,
        threads: local::threads(length, most)?,
        capped: capped::all(length, most)?,
        service: service::all(&program::purview()?, length)?,
    })
}

impl Shown for InterestBench {
    fn text(&self) -> serde_json::Result<String> {
        let tables = [
            table(&self.local)?,
            table(&self.threads)?,
            table(&self.capped)?,
            table(&self.service)?,
        ];
        Ok(tables.join("\n"))
    }
}

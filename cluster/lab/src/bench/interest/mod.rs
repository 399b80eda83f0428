//! `purview-lab bench interest`: what interest management costs, in process and as a service.

mod local;
mod service;
pub(super) mod waypoint_walkers;

use std::fmt;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::Shown;
use crate::rng;
use crate::testbed::program;

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
    pub service: Vec<ServiceRow>,
}

pub fn bench_interest(args: &BenchInterestArgs) -> anyhow::Result<InterestBench> {
    let (length, most) = (Duration::from_secs_f64(args.seconds), args.most as usize);
    Ok(InterestBench {
        local: local::all(length, most)?,
        threads: local::threads(length, most)?,
        service: service::all(&program::purview()?, length)?,
    })
}

impl Shown for InterestBench {}

impl fmt::Display for InterestBench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head =
            "| mode | density | entities | ns per move | events per move | bytes per entity |";
        writeln!(f, "### In process, one thread\n\n{head}\n|{}", "---|".repeat(6))?;
        for LocalRow { mode, density, entities, ns, events, bytes } in &self.local {
            writeln!(f, "| {mode} | {density} | {entities} | {ns:.1} | {events:.3} | {bytes} |")?;
        }
        let head = "| mode | density | entities | moves, ms | tick, ms | on 2 threads, ms | faster \
                    | serial share | on 8 | on 16 |";
        writeln!(f, "\n### In process, two threads\n\n{head}\n|{}", "---|".repeat(10))?;
        for row in &self.threads {
            let ThreadRow { mode, density, entities, moves_ms, one_ms, two_ms, faster, .. } = row;
            write!(f, "| {mode} | {density} | {entities} | {moves_ms:.2} | {one_ms:.2} ")?;
            let (eight, sixteen) = (row.projected(8.0), row.projected(16.0));
            let serial = 100.0 * row.serial;
            write!(f, "| {two_ms:.2} | {faster:.2} | {serial:.1} % ")?;
            writeln!(f, "| {eight:.1} | {sixteen:.1} |")?;
        }
        let head = "| moves per batch | client, M per CPU second | service, M per CPU second | M per \
                    second | events per move |";
        writeln!(f, "\n### As a service\n\n{head}\n|{}", "---|".repeat(5))?;
        for ServiceRow { batch, client, server, wall, events } in &self.service {
            let [client, server, wall] = [client, server, wall].map(|n| n / 1e6);
            writeln!(f, "| {batch} | {client:.2} | {server:.2} | {wall:.2} | {events:.3} |")?;
        }
        Ok(())
    }
}

//! `purview ctl region`: decides what to do with a region whose checkpoint cannot be read.

use clap::{Args, ValueEnum};

use super::orders::{HowArgs, region};
use purview_server::admin::orders::{DownOrder, Ordered};
use purview_server::node::ClusterSurvey;
use purview_server::node::down::RegionOrder;

/// `purview ctl region`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview ctl region R4 restore\n  \
    purview ctl region R4 empty --within 10s --json\n\n\
    `purview ctl status regions` shows which regions are down. `restore` reads the checkpoint again, after you have repaired \
    it or restored a copy. `empty` sets the checkpoint aside in its store and starts the region without it: its NPCs \
    and things are lost.\n\n\
    Exit codes: 0 the region runs, 1 failed, 2 invalid command line, 3 still in progress when --within ended.")]
pub struct RegionArgs {
    /// The region, for example R4.
    #[arg(value_parser = region)]
    pub region: u32,
    /// What to do with the region.
    pub order: OrderArg,
    /// Server, time limit and output.
    #[command(flatten)]
    pub how: HowArgs,
}

/// What to do with a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OrderArg {
    /// Read its checkpoint again.
    Restore,
    /// Set its checkpoint aside and start it empty.
    Empty,
}

pub(super) async fn run(args: &RegionArgs) -> anyhow::Result<u8> {
    let order = match args.order {
        OrderArg::Restore => RegionOrder::Restore,
        OrderArg::Empty => RegionOrder::Empty,
    };
    let order = DownOrder { region: args.region, order };
    let _: Ordered = args.how.console.post("/api/cluster/region", &order).await?.read()?;
    let find =
        |survey: &ClusterSurvey| survey.regions.iter().find(|r| r.region == args.region).cloned();
    let told = |survey: &ClusterSurvey| match find(survey) {
        Some(region) if region.state == "down" => {
            format!("R{} is down: {}", region.region, region.why.unwrap_or_default())
        }
        Some(region) => format!("R{} runs on {}", region.region, region.node),
        None => format!("R{} has no owner", args.region),
    };
    let runs = |survey: &ClusterSurvey| find(survey).is_some_and(|region| region.state != "down");
    args.how.follow(runs, told).await
}

//! `purview ctl region`: what becomes of a region whose checkpoint cannot be read.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};

use super::orders::{HowArgs, region};
use purview_server::admin::orders::{DownOrder, Ordered};
use purview_server::node::ClusterSurvey;
use purview_server::node::down::RegionOrder;
use purview_server::storage::Checkpoints;
use purview_server::storage::checkpoints::redb::{FILE, Redb};

/// `purview ctl region`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview ctl region R4 restore\n  \
    purview ctl region R4 empty --within 10s --json\n  \
    purview ctl region R4 empty --data-dir /var/lib/purview\n\n\
    `purview ctl regions` tells which regions are down. `restore` reads the checkpoint again, once its bytes were \
    mended or restored from a copy. `empty` sets the bytes aside in their store and starts the region without: what no \
    client steers is lost. A server that is a single process does not start while one of its checkpoints cannot be \
    read: name its folder with --data-dir.\n\n\
    Exit codes: 0 the region runs (or what was kept is set aside), 3 not in time (the order stands), 1 failed, 2 not \
    understood.")]
pub struct RegionArgs {
    /// Which region, for example R4.
    #[arg(value_parser = region)]
    pub region: u32,
    /// What becomes of it.
    pub order: OrderArg,
    /// The `server.data_dir` of a server that is a single process and does not run.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// How it is asked and told.
    #[command(flatten)]
    pub how: HowArgs,
}

/// What becomes of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OrderArg {
    /// Its checkpoint is read again.
    Restore,
    /// Its checkpoint is set aside.
    Empty,
}

pub(super) async fn run(args: &RegionArgs) -> anyhow::Result<u8> {
    if let Some(dir) = &args.data_dir {
        return set_aside(args, dir).await;
    }
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
        Some(region) => format!("R{} runs at {}", region.region, region.node),
        None => format!("R{} is nobody's", args.region),
    };
    let runs = |survey: &ClusterSurvey| find(survey).is_some_and(|region| region.state != "down");
    args.how.follow(runs, told).await
}

/// The same in the file of a server that does not run.
async fn set_aside(args: &RegionArgs, dir: &std::path::Path) -> anyhow::Result<u8> {
    if args.order == OrderArg::Restore {
        bail!(
            "with --data-dir only `empty` is an order: a server that starts reads its checkpoints again by itself"
        );
    }
    if !dir.join(FILE).exists() {
        bail!("{} has no {FILE}: want the server.data_dir of a server", dir.display());
    }
    let redb = Redb::open(dir)?;
    let all = redb.regions().await?;
    let key = all.iter().find(|key| key.region == args.region);
    let key = key.with_context(|| {
        let all: Vec<String> = all.iter().map(ToString::to_string).collect();
        format!("no region R{} is kept there; there are: {}", args.region, all.join(", "))
    })?;
    let kept = redb.set_aside(key).await?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{kept} checkpoints of region {key} are set aside; it starts empty")?;
    Ok(0)
}

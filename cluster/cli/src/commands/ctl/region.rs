//! `purview ctl region`: decides what to do with a region whose checkpoint cannot be read.

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
    `purview ctl status regions` shows which regions are down. `restore` reads the checkpoint again, after you have repaired \
    it or restored a copy. `empty` sets the checkpoint aside in its store and starts the region without it: its NPCs \
    and things are lost. A single-process server does not start while one of its checkpoints cannot be read: name its \
    folder with --data-dir.\n\n\
    Exit codes: 0 the region runs (with --data-dir: the checkpoint is set aside), 1 failed, 2 invalid command line, \
    3 still in progress when --within ended.")]
pub struct RegionArgs {
    /// The region, for example R4.
    #[arg(value_parser = region)]
    pub region: u32,
    /// What to do with the region.
    pub order: OrderArg,
    /// The `server.data_dir` of a stopped single-process server.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
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
        Some(region) => format!("R{} runs on {}", region.region, region.node),
        None => format!("R{} has no owner", args.region),
    };
    let runs = |survey: &ClusterSurvey| find(survey).is_some_and(|region| region.state != "down");
    args.how.follow(runs, told).await
}

/// Sets the checkpoint aside in the store of a stopped single-process server.
async fn set_aside(args: &RegionArgs, dir: &std::path::Path) -> anyhow::Result<u8> {
    if args.order == OrderArg::Restore {
        bail!(
            "--data-dir works with `empty` only: a server reads its checkpoints again whenever it starts"
        );
    }
    if !dir.join(FILE).exists() {
        bail!("{} contains no {FILE}: expected the server.data_dir of a server", dir.display());
    }
    let redb = Redb::open(dir)?;
    let all = redb.regions().await?;
    let key = all.iter().find(|key| key.region == args.region);
    let key = key.with_context(|| {
        let all: Vec<String> = all.iter().map(ToString::to_string).collect();
        format!("there is no checkpoint of R{}; there are: {}", args.region, all.join(", "))
    })?;
    let kept = redb.set_aside(key).await?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{kept} checkpoints of region {key} are set aside; it starts empty")?;
    Ok(0)
}

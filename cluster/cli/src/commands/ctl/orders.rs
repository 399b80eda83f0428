//! `purview ctl move` and `drain`: orders to the cluster. The command waits until the order is done.

use std::io::Write;
use std::time::{Duration, Instant};

use clap::Args;

use super::ConsoleArgs;
use purview_server::admin::orders::{DrainOrder, MoveCommand, Ordered};
use purview_server::node::ClusterSurvey;

/// The exit code if an order is still in progress at the end of the time limit. The cluster continues it.
const NOT_YET: u8 = 3;

/// Between two queries of the state.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// `purview ctl move`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview ctl move R4 node-2\n  \
    purview ctl move 4 node-2 --within 10s --json\n\n\
    Clients stay connected. `purview ctl status regions` lists the regions and their nodes.\n\n\
    Exit codes: 0 moved, 1 failed, 2 invalid command line, 3 still in progress when --within ended.")]
pub struct MoveArgs {
    /// The region, for example R4.
    #[arg(value_parser = region)]
    pub region: u32,
    /// The name of the new node.
    pub node: String,
    /// Server, time limit and output.
    #[command(flatten)]
    pub how: HowArgs,
}

/// `purview ctl drain`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview ctl drain node-2\n  \
    purview ctl drain node-2 --within 2m --json\n\n\
    The regions of the node migrate to other nodes one by one, with all their entities. Then its process ends \
    with exit code 0. SIGTERM to the process does the same.\n\n\
    Exit codes: 0 the node has ended, 1 failed, 2 invalid command line, 3 still in progress when --within ended.")]
pub struct DrainArgs {
    /// The name of the node.
    pub node: String,
    /// Server, time limit and output.
    #[command(flatten)]
    pub how: HowArgs,
}

/// The flags of an order.
#[derive(Debug, Clone, Args)]
pub struct HowArgs {
    /// The server: any process of the cluster, except a node to be drained.
    #[command(flatten)]
    pub console: ConsoleArgs,
    /// How long to wait until the order is done.
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = purview_demo::flags::time)]
    pub within: Duration,
    /// Print one JSON object with the fields done and seconds.
    #[arg(long)]
    pub json: bool,
}

pub(super) fn region(text: &str) -> Result<u32, String> {
    let number = text.strip_prefix(['R', 'r']).unwrap_or(text);
    number.parse().map_err(|_| format!("{text:?} is not a region: expected a number such as R4"))
}

/// Migrates a region.
pub(super) async fn move_region(args: &MoveArgs) -> anyhow::Result<u8> {
    let order = MoveCommand { region: args.region, node: args.node.clone() };
    let _: Ordered = args.how.console.post("/api/cluster/move", &order).await?.read()?;
    let there = |survey: &ClusterSurvey| {
        survey.regions.iter().any(|r| r.region == args.region && r.node == args.node)
    };
    let told = |survey: &ClusterSurvey| {
        let at = survey.regions.iter().find(|r| r.region == args.region);
        format!("R{} is owned by {}", args.region, at.map_or("no node", |r| &r.node))
    };
    args.how.follow(there, told).await
}

/// Drains a node.
pub(super) async fn drain(args: &DrainArgs) -> anyhow::Result<u8> {
    let order = DrainOrder { node: args.node.clone() };
    let _: Ordered = args.how.console.post("/api/cluster/drain", &order).await?.read()?;
    let node = |survey: &ClusterSurvey| survey.nodes.iter().find(|n| n.name == args.node).cloned();
    let told = |survey: &ClusterSurvey| match node(survey) {
        Some(node) => format!("{} has {} regions", args.node, node.owns),
        None => format!("{} has ended", args.node),
    };
    args.how.follow(|survey| node(survey).is_none(), told).await
}

impl HowArgs {
    /// Waits until the order is done, and reports progress on standard error.
    pub(super) async fn follow(
        &self,
        done: impl Fn(&ClusterSurvey) -> bool,
        told: impl Fn(&ClusterSurvey) -> String,
    ) -> anyhow::Result<u8> {
        let begin = Instant::now();
        let mut last = String::new();
        let done = loop {
            let survey: ClusterSurvey = self.console.get("/api/cluster").await?.read()?;
            let now = told(&survey);
            if now != last {
                eprintln!("{now}");
                last = now;
            }
            if done(&survey) {
                break true;
            }
            if begin.elapsed() >= self.within {
                break false;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        };
        let mut out = std::io::stdout().lock();
        let seconds = begin.elapsed().as_secs_f64();
        match self.json {
            true => writeln!(out, "{}", serde_json::json!({ "done": done, "seconds": seconds }))?,
            false if done => writeln!(out, "done in {seconds:.1} s")?,
            false => writeln!(out, "not done after {seconds:.1} s; the cluster continues")?,
        }
        Ok(if done { 0 } else { NOT_YET })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_named_by_its_number() {
        assert_eq!(region("R4"), Ok(4));
        assert_eq!(region("17"), Ok(17));
        for text in ["", "R", "RR4", "-1", "4x", "4294967296"] {
            assert!(region(text).is_err(), "{text:?}");
        }
    }
}

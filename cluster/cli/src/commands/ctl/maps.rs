//! `purview ctl scene scale`, `split` and `merge`: other regions for a scene, while players walk.

use clap::{Args, Subcommand};

use super::orders::{HowArgs, region};
use purview_server::admin::orders::MapOrdered;
use purview_server::node::layout_change::MapOrder;
use purview_server::node::{ClusterSurvey, MapLine};

/// The exit code when the change was called off.
const CALLED_OFF: u8 = 1;

/// `purview ctl scene`.
#[derive(Debug, Clone, Args)]
pub struct SceneArgs {
    /// What to do with it.
    #[command(subcommand)]
    pub what: SceneCommand,
}

/// What can be done with a scene.
#[derive(Debug, Clone, Subcommand)]
pub enum SceneCommand {
    /// Cut it into so many regions.
    Scale(ScaleArgs),
}

/// `purview ctl scene scale`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview ctl scene scale meadow --regions 4x4\n  \
    purview ctl scene scale station --regions 2x1 --within 10s --json\n\n\
    Everybody stays connected and sees what they saw. Regions that are new start where most of their \
    players are; `purview ctl move` moves them.\n\n\
    Exit codes: 0 done, 3 not in time (the order stands), 1 failed or called off, 2 not understood.")]
pub struct ScaleArgs {
    /// The scene's name.
    pub name: String,
    /// How many, east by south, for example 4x4.
    #[arg(long, value_name = "COLUMNSxROWS", value_parser = grid)]
    pub regions: (i32, i32),
    /// How it is asked and told.
    #[command(flatten)]
    pub how: HowArgs,
}

/// `purview ctl split`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  purview ctl split R4\n\n\
    It is cut across its longer side; the eastern or southern half is a new region on the same node.\n\n\
    Exit codes: 0 done, 3 not in time (the order stands), 1 failed or called off, 2 not understood.")]
pub struct SplitArgs {
    /// Which region, for example R4.
    #[arg(value_parser = region)]
    pub region: u32,
    /// How it is asked and told.
    #[command(flatten)]
    pub how: HowArgs,
}

/// `purview ctl merge`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  purview ctl merge R4 R5\n\n\
    They share a whole side. The first one keeps its name and node, the other is given up.\n\n\
    Exit codes: 0 done, 3 not in time (the order stands), 1 failed or called off, 2 not understood.")]
pub struct MergeArgs {
    /// The region that stays, for example R4.
    #[arg(value_parser = region)]
    pub region: u32,
    /// The region that is given up, for example R5.
    #[arg(value_parser = region)]
    pub gone: u32,
    /// How it is asked and told.
    #[command(flatten)]
    pub how: HowArgs,
}

fn grid(text: &str) -> Result<(i32, i32), String> {
    let both =
        text.split_once(['x', 'X']).and_then(|(x, z)| Some((x.parse().ok()?, z.parse().ok()?)));
    let some = both.filter(|(x, z): &(i32, i32)| *x > 0 && *z > 0);
    some.ok_or_else(|| format!("{text:?} is no grid: want columns and rows such as 4x4"))
}

/// Cuts a scene anew.
pub(super) async fn scene(args: &SceneArgs) -> anyhow::Result<u8> {
    let SceneCommand::Scale(args) = &args.what;
    let (columns, rows) = args.regions;
    change(&args.how, MapOrder::Scale { scene: args.name.clone(), columns, rows }).await
}

/// Cuts a region in two.
pub(super) async fn split(args: &SplitArgs) -> anyhow::Result<u8> {
    change(&args.how, MapOrder::Split { region: args.region }).await
}

/// Makes one region of two.
pub(super) async fn merge(args: &MergeArgs) -> anyhow::Result<u8> {
    change(&args.how, MapOrder::Merge { region: args.region, gone: args.gone }).await
}

async fn change(how: &HowArgs, order: MapOrder) -> anyhow::Result<u8> {
    let ordered: MapOrdered = how.console.post("/api/cluster/map", &order).await?.read()?;
    let line = |survey: &ClusterSurvey| -> Option<MapLine> {
        survey.maps.iter().find(|map| map.scene == ordered.scene).cloned()
    };
    let has = |survey: &ClusterSurvey| line(survey).is_some_and(|m| m.version >= ordered.version);
    let seen = std::cell::Cell::new(false);
    let off = std::cell::Cell::new(false);
    let done = |survey: &ClusterSurvey| {
        let coming = line(survey).is_some_and(|map| map.next.is_some());
        seen.set(seen.get() || coming);
        off.set(seen.get() && !coming && !has(survey));
        has(survey) || off.get()
    };
    let told = |survey: &ClusterSurvey| match line(survey) {
        Some(map) if map.version >= ordered.version => {
            format!(
                "{} has {} regions by version {} of its map",
                map.scene, map.regions, map.version
            )
        }
        Some(map) => format!("{} is by version {} of its map", map.scene, map.version),
        None => format!("{} is not known there", ordered.scene),
    };
    let code = how.follow(done, told).await?;
    if off.get() {
        eprintln!("called off: not every region has promised in time; nothing has changed");
        return Ok(CALLED_OFF);
    }
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_is_columns_and_rows() {
        assert_eq!(grid("4x3"), Ok((4, 3)));
        for text in ["", "4", "x4", "4x", "0x4", "4x-1", "4x4x4", "axb"] {
            assert!(grid(text).is_err(), "{text:?}");
        }
    }
}

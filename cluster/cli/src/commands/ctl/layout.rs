//! `purview ctl layout`, `split` and `merge`: change the layout of a scene while players walk.

use clap::Args;

use super::orders::{HowArgs, region};
use purview_server::admin::orders::MapOrdered;
use purview_server::node::layout_change::MapOrder;
use purview_server::node::{ClusterSurvey, MapLine};

/// The exit code if the change was called off.
const CALLED_OFF: u8 = 1;

/// `purview ctl layout`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview ctl layout meadow --regions 4x4\n  \
    purview ctl layout station --regions 2x1 --within 10s --json\n\n\
    Clients stay connected, and views do not change. A new region starts on the node that has most of its \
    players; `purview ctl move` migrates it.\n\n\
    Exit codes: 0 done, 1 failed or called off, 2 invalid command line, 3 still in progress when --within ended.")]
pub struct LayoutArgs {
    /// The name of the scene.
    pub name: String,
    /// The number of regions from west to east and from north to south, for example 4x4.
    #[arg(long, value_name = "COLUMNSxROWS", value_parser = grid)]
    pub regions: (i32, i32),
    /// Server, time limit and output.
    #[command(flatten)]
    pub how: HowArgs,
}

/// `purview ctl split`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  purview ctl split R4\n\n\
    Cuts the region across its longer side. The eastern or southern half becomes a new region on the same node.\n\n\
    Exit codes: 0 done, 1 failed or called off, 2 invalid command line, 3 still in progress when --within ended.")]
pub struct SplitArgs {
    /// The region, for example R4.
    #[arg(value_parser = region)]
    pub region: u32,
    /// Server, time limit and output.
    #[command(flatten)]
    pub how: HowArgs,
}

/// `purview ctl merge`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  purview ctl merge R4 R5\n\n\
    The two regions must share a whole side. The first region keeps its id and node; the second one ends.\n\n\
    Exit codes: 0 done, 1 failed or called off, 2 invalid command line, 3 still in progress when --within ended.")]
pub struct MergeArgs {
    /// The region that remains, for example R4.
    #[arg(value_parser = region)]
    pub region: u32,
    /// The region that ends, for example R5.
    #[arg(value_parser = region)]
    pub gone: u32,
    /// Server, time limit and output.
    #[command(flatten)]
    pub how: HowArgs,
}

fn grid(text: &str) -> Result<(i32, i32), String> {
    let both =
        text.split_once(['x', 'X']).and_then(|(x, z)| Some((x.parse().ok()?, z.parse().ok()?)));
    let some = both.filter(|(x, z): &(i32, i32)| *x > 0 && *z > 0);
    some.ok_or_else(|| format!("{text:?} is not a grid: expected columns and rows such as 4x4"))
}

/// Changes the number of regions of a scene.
pub(super) async fn layout(args: &LayoutArgs) -> anyhow::Result<u8> {
    let (columns, rows) = args.regions;
    change(&args.how, MapOrder::Scale { scene: args.name.clone(), columns, rows }).await
}

/// Splits a region.
pub(super) async fn split(args: &SplitArgs) -> anyhow::Result<u8> {
    change(&args.how, MapOrder::Split { region: args.region }).await
}

/// Merges two regions.
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
                "{} has {} regions in version {} of its layout",
                map.scene, map.regions, map.version
            )
        }
        Some(map) => format!("{} has version {} of its layout", map.scene, map.version),
        None => format!("{} is not a scene of this server", ordered.scene),
    };
    let code = how.follow(done, told).await?;
    if off.get() {
        eprintln!("called off: not every region has agreed in time; nothing has changed");
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

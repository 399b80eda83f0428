//! `purview ctl status`: the state of the cluster, as one of its processes knows it.

use clap::{Args, ValueEnum};

use super::ConsoleArgs;
use super::workers::workers;
use purview_server::node::{ClusterSurvey, NodeLine};

/// The exit code if some region cannot be reached.
const NOT_WHOLE: u8 = 3;

/// Which part of the state is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// The processes
    Nodes,
    /// The regions and their owners
    Regions,
    /// The logic workers, and whether they answer in time
    Workers,
}

/// `purview ctl status`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview ctl status --console http://10.0.0.7:7780\n  \
    purview ctl status regions --json\n  \
    purview ctl status workers\n\n\
    The console of any process of the cluster answers.\n\n\
    Of workers: regions and answers of a worker of another process are only those of the process that is asked. A \
    worker is late if it has not answered in time. It is slow, and has fewer regions, while its answers take more than \
    two ticks on average. `refused` counts commands: those of an outdated or malicious worker.\n\n\
    Exit codes: 0 every region can be reached, or every worker answers; 1 failed (no answer, or the server is not part \
    of a cluster); 2 invalid command line; 3 some region cannot be reached, or some worker is late.")]
pub struct StatusArgs {
    /// Which part to list [default: a summary and the processes].
    pub part: Option<Part>,
    /// The server.
    #[command(flatten)]
    pub console: ConsoleArgs,
    /// Print the JSON of the console: of `/api/workers`, or else of `/api/cluster`.
    #[arg(long)]
    pub json: bool,
}

/// Prints the state; the exit code says whether every region can be reached.
pub(super) async fn run(args: &StatusArgs) -> anyhow::Result<u8> {
    if args.part == Some(Part::Workers) {
        return workers(&args.console, args.json).await;
    }
    let told = args.console.get("/api/cluster").await?;
    let survey: ClusterSurvey = told.read()?;
    told.print(args.json, &text(args.part, &survey))?;
    let whole = survey.regions_all > 0 && survey.regions_located == survey.regions_all;
    Ok(if whole { 0 } else { NOT_WHOLE })
}

/// The zone and the labels of a process, and whether it is drained.
fn facts(node: &NodeLine) -> String {
    let drains = node.drains.then(|| "drains".to_owned());
    let zone = Some(node.about.zone.clone()).filter(|zone| !zone.is_empty());
    let labels = node.about.labels.iter().map(|(key, value)| format!("{key}={value}"));
    drains.into_iter().chain(zone).chain(labels).collect::<Vec<_>>().join(", ")
}

fn text(part: Option<Part>, survey: &ClusterSurvey) -> String {
    let mut out = String::new();
    if part.is_none() {
        let leader = survey.leader.as_deref().unwrap_or("none");
        let (located, all) = (survey.regions_located, survey.regions_all);
        out += &format!("{located} of {all} regions have an owner; leader: {leader}\n");
        for region in survey.regions.iter().filter(|region| region.state == "down") {
            let (name, why) = (region.region, region.why.as_deref().unwrap_or_default());
            out += &format!(
                "R{name} is down: {why}; run `purview ctl region R{name} restore` or `empty`\n"
            );
        }
        let overdue = survey.regions.iter().filter(|region| region.state == "overdue").count();
        if overdue > 0 {
            out +=
                &format!("the checkpoints of {overdue} regions are overdue: is PostgreSQL up?\n");
        }
    }
    if part != Some(Part::Regions) {
        out += "node              process  address                regions  gateway  release   zone, labels\n";
        for node in &survey.nodes {
            let gateway = if node.gateway { "yes" } else { "no" };
            let owns = if node.takes_regions { node.owns.to_string() } else { "-".into() };
            let (name, process, address) = (&node.name, node.process, &node.address);
            let (release, facts) = (&node.about.release, facts(node));
            let line = format!(
                "{name:<17} {process:<8} {address:<22} {owns:<8} {gateway:<8} {release:<9} {facts}"
            );
            out += line.trim_end();
            out.push('\n');
        }
    }
    if part == Some(Part::Regions) {
        out += "region    scene             node              epoch      state\n";
        for region in &survey.regions {
            let name = format!("R{}", region.region);
            let (scene, node, epoch) = (&region.scene, &region.node, region.epoch);
            let state = &region.state;
            out += &format!("{name:<9} {scene:<17} {node:<17} {epoch:<10} {state}\n");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use purview_server::node::RegionLine;
    use purview_server::storage::About;

    #[test]
    fn the_state_is_printed_in_lines() {
        let survey = ClusterSurvey {
            leader: Some("a".into()),
            regions_all: 2,
            regions_located: 1,
            nodes: vec![NodeLine {
                name: "a".into(),
                process: 3,
                address: "10.0.0.1:7790".into(),
                takes_regions: true,
                gateway: false,
                capacity: 100,
                owns: 1,
                joined: 7,
                drains: true,
                about: About {
                    zone: "eu-1a".into(),
                    labels: [("map".to_owned(), "city".to_owned())].into(),
                    release: "0.1.0".into(),
                },
            }],
            regions: vec![RegionLine {
                scene: "city".into(),
                region: 0,
                node: "a".into(),
                epoch: 17,
                planes: 0,
                state: "down".into(),
                why: Some("that of tick 7: torn".into()),
            }],
            ..ClusterSurvey::default()
        };
        assert_eq!(
            text(None, &survey),
            "1 of 2 regions have an owner; leader: a\n\
             R0 is down: that of tick 7: torn; run `purview ctl region R0 restore` or `empty`\n\
             node              process  address                regions  gateway  release   zone, labels\n\
             a                 3        10.0.0.1:7790          1        no       0.1.0     drains, eu-1a, map=city\n"
        );
        assert_eq!(
            text(Some(Part::Regions), &survey),
            "region    scene             node              epoch      state\n\
             R0        city              a                 17         down\n"
        );
    }
}

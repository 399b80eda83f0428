//! `purview ctl balance`: what the balancer knows, decides and refuses, and what operators want of it.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::orders::region;
use super::{ApiAnswer, ConsoleArgs};
use purview_server::admin::balance::{PauseOrder, PinOrder, ReserveOrder, ReserveOrdered};
use purview_server::admin::orders::Ordered;
use purview_server::node::balancer::{BalanceSurvey, RecordLine, ReservationLine};

/// The subcommands of `purview ctl balance`.
#[derive(Debug, Clone, Subcommand)]
pub enum BalanceCommand {
    /// Print the loads of nodes and regions, and what was decided lately.
    #[command(after_help = "Example:\n  purview ctl balance status\n\n\
        Shares are of a node's capacity, or of a tick. `explained` says that an action was decided and not done, since \
        cluster.balance is \"explain\".\n\n\
        Exit codes: 0 told, 1 failed (no answer, or no leader tells of balancing), 2 invalid command line.")]
    Status(AskArgs),
    /// Explain why something is done, or nothing: with figures and the best candidates.
    Explain(ExplainArgs),
    /// Print what is ordered and not done, and what would be decided now if loads stay as they are.
    #[command(after_help = "Example:\n  purview ctl balance plan\n\n\
        `ordered` is under way or comes next. `next` would be decided now if loads had lasted for long enough and nothing \
        had moved lately; it is done only where cluster.balance is \"on\".\n\n\
        Exit codes: 0 told, 1 failed (no answer, or no leader tells of balancing), 2 invalid command line.")]
    Plan(AskArgs),
    /// Balance nothing for a while.
    Pause(PauseArgs),
    /// Move a region to a node and keep it there.
    Pin(PinArgs),
    /// Let a pinned region move again.
    Unpin(UnpinArgs),
    /// Give ground of a scene nodes of its own for a while.
    Reserve(ReserveArgs),
}

/// `purview ctl balance explain`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview ctl balance explain\n  \
    purview ctl balance explain R4\n\n\
    Prints the newest record of each node and region within ten minutes: the rule, the figures, and up to three \
    candidates, each with its gain, its charge and why it is refused.\n\n\
    Exit codes: 0 told, 1 failed (no answer, or no leader tells of balancing), 2 invalid command line.")]
pub struct ExplainArgs {
    /// Only records that name this region, for example R4.
    #[arg(value_parser = region)]
    pub region: Option<u32>,
    /// Server and output.
    #[command(flatten)]
    pub how: AskArgs,
}

/// `purview ctl balance reserve`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview ctl balance reserve city 0,0,1024,512 --nodes 2 --for 3h\n  \
    purview ctl balance reserve city 0,0,1024,512 --for 0s\n\n\
    The nodes with fewest regions that fit the scene run all regions that meet the ground, and nothing else, until the \
    time is over. It needs no balancing. --for 0s ends the reservations that meet the ground.\n\n\
    Exit codes: 0 the order is stored, 1 failed, 2 invalid command line.")]
pub struct ReserveArgs {
    /// The scene.
    pub scene: String,
    /// West, north, east and south edge, metres; whole lands count.
    #[arg(value_name = "X0,Z0,X1,Z1", value_parser = area)]
    pub area: Area,
    /// How many nodes.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub nodes: u32,
    /// For how long.
    #[arg(long = "for", value_name = "TIME", value_parser = purview_demo::flags::time)]
    pub time: Duration,
    /// Server and output.
    #[command(flatten)]
    pub how: AskArgs,
}

/// The edges of a rectangle, metres.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Area([u32; 4]);

fn area(text: &str) -> Result<Area, String> {
    let edges: Result<Vec<u32>, _> = text.split(',').map(|edge| edge.trim().parse()).collect();
    let edges = edges.ok().and_then(|edges| <[u32; 4]>::try_from(edges).ok());
    edges.map(Area).ok_or_else(|| "want four whole metres, such as 0,0,1024,512".to_owned())
}

/// `purview ctl balance pause`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  \
    purview ctl balance pause --for 30m\n  \
    purview ctl balance pause --for 0s\n\n\
    What is under way ends. Nodes that end give their regions away, as without balancing. --for 0s ends a pause.\n\n\
    Exit codes: 0 the order is stored, 1 failed, 2 invalid command line.")]
pub struct PauseArgs {
    /// For how long.
    #[arg(long = "for", value_name = "TIME", value_parser = purview_demo::flags::time)]
    pub time: Duration,
    /// Server and output.
    #[command(flatten)]
    pub how: AskArgs,
}

/// `purview ctl balance pin`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  purview ctl balance pin R4 node-2\n\n\
    The region moves to the node, stays there, and keeps its ground. While no node of this name is there, the pin does \
    not count.\n\n\
    Exit codes: 0 the order is stored, 1 failed, 2 invalid command line.")]
pub struct PinArgs {
    /// The region, for example R4.
    #[arg(value_parser = region)]
    pub region: u32,
    /// The name of the node.
    pub node: String,
    /// Server and output.
    #[command(flatten)]
    pub how: AskArgs,
}

/// `purview ctl balance unpin`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  purview ctl balance unpin R4\n\n\
    Exit codes: 0 the order is stored, 1 failed, 2 invalid command line.")]
pub struct UnpinArgs {
    /// The region, for example R4.
    #[arg(value_parser = region)]
    pub region: u32,
    /// Server and output.
    #[command(flatten)]
    pub how: AskArgs,
}

/// The flags of all of them.
#[derive(Debug, Clone, Args)]
pub struct AskArgs {
    /// The server: any process of the cluster.
    #[command(flatten)]
    pub console: ConsoleArgs,
    /// Print the JSON of the console.
    #[arg(long)]
    pub json: bool,
}

impl AskArgs {
    /// Prints an answer, or what it says in words.
    fn print(&self, told: &ApiAnswer, text: &str) -> anyhow::Result<u8> {
        told.print(self.json, text)?;
        Ok(0)
    }

    /// Asks for what the balancer knows, and prints it.
    async fn ask(&self, text: impl FnOnce(&BalanceSurvey) -> String) -> anyhow::Result<u8> {
        let told = self.console.get("/api/balance").await?;
        self.print(&told, &text(&told.read()?))
    }

    async fn order(
        &self,
        path: &str,
        order: &impl serde::Serialize,
        text: &str,
    ) -> anyhow::Result<u8> {
        let told = self.console.post(path, order).await?;
        let _: Ordered = told.read()?;
        self.print(&told, text)
    }
}

/// Runs a subcommand.
pub(super) async fn run(command: &BalanceCommand) -> anyhow::Result<u8> {
    match command {
        BalanceCommand::Status(how) => how.ask(status).await,
        BalanceCommand::Explain(args) => {
            args.how.ask(|survey| explained(survey, args.region)).await
        }
        BalanceCommand::Plan(how) => how.ask(planned).await,
        BalanceCommand::Reserve(args) => reserve(args).await,
        BalanceCommand::Pause(args) => {
            let for_ms = u64::try_from(args.time.as_millis()).unwrap_or(u64::MAX);
            let text = match for_ms {
                0 => "balancing goes on\n".to_owned(),
                _ => format!("balancing is paused for {:?}\n", args.time),
            };
            args.how.order("/api/balance/pause", &PauseOrder { for_ms }, &text).await
        }
        BalanceCommand::Pin(PinArgs { region, node, how }) => {
            let order = PinOrder { region: *region, node: Some(node.clone()) };
            how.order("/api/balance/pin", &order, &format!("R{region} is pinned to {node}\n")).await
        }
        BalanceCommand::Unpin(UnpinArgs { region, how }) => {
            let order = PinOrder { region: *region, node: None };
            how.order("/api/balance/pin", &order, &format!("R{region} may move\n")).await
        }
    }
}

async fn reserve(args: &ReserveArgs) -> anyhow::Result<u8> {
    let for_ms = u64::try_from(args.time.as_millis()).unwrap_or(u64::MAX);
    let (scene, area_m) = (args.scene.clone(), args.area.0);
    let order = ReserveOrder { scene, area_m, nodes: args.nodes, for_ms };
    let told = args.how.console.post("/api/balance/reserve", &order).await?;
    let ReserveOrdered { nodes } = told.read()?;
    let (scene, nodes) = (&args.scene, nodes.join(", "));
    let text = match (for_ms, nodes.is_empty()) {
        (0, true) => format!("nothing was reserved there in {scene}\n"),
        (0, false) => format!("{nodes} may run everything again\n"),
        _ => format!("{nodes} will run this ground of {scene} alone for {:?}\n", args.time),
    };
    args.how.print(&told, &text)
}

fn planned(survey: &BalanceSurvey) -> String {
    let mut out = String::new();
    for line in &survey.plan {
        let (gain, charge) = (percent(line.gain), percent(line.charge));
        out += &match line.ordered {
            true => format!("ordered: {}\n", line.action),
            false => format!("next: {}: gain {gain}, charge {charge}\n", line.action),
        };
    }
    if out.is_empty() {
        out += "nothing is ordered, and nothing would be gained\n";
    }
    out
}

fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

fn status(survey: &BalanceSurvey) -> String {
    let BalanceSurvey { mode, leader, nodes_wanted, .. } = survey;
    let mut out =
        format!("balancing is {mode:?}; leader: {leader}; the loads need {nodes_wanted} nodes\n");
    if survey.paused_s > 0 {
        out += &format!("paused for {} s more\n", survey.paused_s);
    }
    out += "node              load     cores    regions  without a report\n";
    for node in &survey.nodes {
        let (name, load, cores) = (&node.node, percent(node.share), node.cores);
        let (regions, unreported) = (node.regions, node.unreported);
        out += &format!("{name:<17} {load:<8} {cores:<8} {regions:<8} {unreported}\n");
    }
    out += "region    scene             node              tick     p99      players  pinned to\n";
    for region in &survey.regions {
        let (name, scene) = (format!("R{}", region.region), &region.scene);
        let node = region.node.as_deref().unwrap_or("-");
        let share = |share: Option<f64>| share.map_or("-".into(), percent);
        let (tick, p99, players) = (share(region.share), share(region.share_p99), region.players);
        let pinned = region.pinned.as_deref().unwrap_or_default();
        let line =
            format!("{name:<9} {scene:<17} {node:<17} {tick:<8} {p99:<8} {players:<8} {pinned}");
        out += line.trim_end();
        out.push('\n');
    }
    for ReservationLine { scene, lands, nodes, for_s } in &survey.reservations {
        let [x0, z0, x1, z1] = lands;
        let nodes = nodes.join(", ");
        out += &format!(
            "lands {x0},{z0} to {x1},{z1} of {scene} are reserved for {nodes} for {for_s} s more\n"
        );
    }
    for action in &survey.actions {
        out += &format!("{} s ago: {}: {}\n", action.age_s, action.action, action.outcome);
    }
    out
}

/// Whether a record is about a region, or weighs an action with it.
fn names(record: &RecordLine, region: u32) -> bool {
    let name = format!("R{region}");
    let in_text = |text: &str| text.split(|c: char| !c.is_alphanumeric()).any(|word| word == name);
    record.subject == name
        || record.action.as_deref().is_some_and(in_text)
        || record.candidates.iter().any(|candidate| in_text(&candidate.action))
}

fn explained(survey: &BalanceSurvey, region: Option<u32>) -> String {
    let mut out = String::new();
    let about = |record: &&RecordLine| region.is_none_or(|region| names(record, region));
    for record in survey.records.iter().filter(about) {
        let outcome = match (&record.action, &record.refusal) {
            (Some(action), _) => action.clone(),
            (None, Some(refusal)) => format!("nothing is done: {refusal}"),
            (None, None) => "nothing is done".into(),
        };
        let (age, subject, rule) = (record.age_s, &record.subject, &record.rule);
        out += &format!("{age} s ago, {subject}, rule {rule}: {outcome}\n");
        let inputs: Vec<String> =
            record.inputs.iter().map(|(name, value)| format!("{name} {value}")).collect();
        if !inputs.is_empty() {
            out += &format!("    by {}\n", inputs.join(", "));
        }
        for candidate in &record.candidates {
            let (gain, charge) = (percent(candidate.gain), percent(candidate.charge));
            let refusal = candidate.refusal.as_ref().map(|why| format!("; refused: {why}"));
            out += &format!(
                "    {}: gain {gain}, charge {charge}{}\n",
                candidate.action,
                refusal.unwrap_or_default()
            );
        }
    }
    if out.is_empty() {
        let of = region.map_or(String::new(), |region| format!(" names R{region}"));
        out = format!("no record of the last ten minutes{of}\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use purview_server::node::balancer::{
        ActionLine, CandidateLine, NodeLoad, PlanLine, RegionLoad,
    };

    fn survey() -> BalanceSurvey {
        BalanceSurvey {
            mode: "explain".into(),
            leader: "a".into(),
            paused_s: 0,
            nodes_wanted: 2,
            nodes: vec![NodeLoad {
                node: "a".into(),
                cores: 1.0,
                share: 0.75,
                regions: 2,
                unreported: 1,
            }],
            regions: vec![RegionLoad {
                region: 4,
                scene: "city".into(),
                node: Some("a".into()),
                share: Some(0.7512),
                share_p99: Some(0.9),
                players: 312,
                pinned: None,
            }],
            borders: Vec::new(),
            reservations: vec![ReservationLine {
                scene: "city".into(),
                lands: [0, 0, 2, 1],
                nodes: vec!["b".into(), "c".into()],
                for_s: 90,
            }],
            plan: vec![
                PlanLine {
                    action: "move R7 from b to a".into(),
                    ordered: true,
                    ..PlanLine::default()
                },
                PlanLine {
                    action: "move R4 from a to b".into(),
                    ordered: false,
                    gain: 0.1,
                    charge: 0.02,
                },
            ],
            actions: vec![ActionLine {
                age_s: 3,
                action: "move R4 from a to b".into(),
                outcome: "explained".into(),
            }],
            records: vec![RecordLine {
                age_s: 3,
                subject: "a".into(),
                rule: "move".into(),
                action: None,
                refusal: Some("safety".into()),
                inputs: vec![("mean".into(), 0.4)],
                candidates: vec![CandidateLine {
                    action: "move R41 from a to b".into(),
                    gain: 0.1,
                    charge: 0.02,
                    refusal: Some("safety".into()),
                }],
            }],
        }
    }

    #[test]
    fn loads_are_printed_in_lines() {
        assert_eq!(
            status(&survey()),
            "balancing is \"explain\"; leader: a; the loads need 2 nodes\n\
             node              load     cores    regions  without a report\n\
             a                 75.0%    1        2        1\n\
             region    scene             node              tick     p99      players  pinned to\n\
             R4        city              a                 75.1%    90.0%    312\n\
             lands 0,0 to 2,1 of city are reserved for b, c for 90 s more\n\
             3 s ago: move R4 from a to b: explained\n"
        );
        assert_eq!(
            planned(&survey()),
            "ordered: move R7 from b to a\nnext: move R4 from a to b: gain 10.0%, charge 2.0%\n"
        );
    }

    #[test]
    fn an_area_is_four_edges() {
        assert_eq!(area("0, 0,1024,512"), Ok(Area([0, 0, 1024, 512])));
        for wrong in ["", "1,2,3", "1,2,3,4,5", "-1,0,2,2", "0,0,a,1"] {
            assert!(area(wrong).unwrap_err().contains("four whole metres"), "{wrong}");
        }
    }

    #[test]
    fn records_are_explained_with_their_candidates() {
        let all = "3 s ago, a, rule move: nothing is done: safety\n    by mean 0.4\n    \
                   move R41 from a to b: gain 10.0%, charge 2.0%; refused: safety\n";
        assert_eq!(explained(&survey(), None), all);
        assert_eq!(explained(&survey(), Some(41)), all);
        assert_eq!(explained(&survey(), Some(4)), "no record of the last ten minutes names R4\n");
    }
}

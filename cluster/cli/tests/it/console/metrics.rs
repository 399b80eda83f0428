//! The metrics of a real cluster: Prometheus' own tools accept them, and the page that lists them is complete.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Stdio};

use purview_lab::testbed::local_cluster::LocalCluster;
use purview_server::config::Config;
use purview_server::http;
use purview_server::node::ClusterSurvey;
use tokio::runtime::Runtime;

use crate::common::{ANY_PORTS, cluster, console, members, runtime, try_for};
use crate::foreign::root;

/// What `promtool` says of this input, which must be nothing bad.
pub fn promtool(args: &[&str], input: &str) {
    let mut command = Command::new("promtool");
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let missing = "promtool is missing: `bash .ci/test` installs it";
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{missing}: {error}"));
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (said, problems) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "promtool {args:?}: {said}{problems}");
    assert!(!problems.contains("purview_"), "promtool {args:?}: {problems}");
}

/// The metrics of a text: names and types.
pub fn families(text: &str) -> BTreeMap<String, String> {
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    types.map(|(name, kind)| (name.to_owned(), kind.to_owned())).collect()
}

/// The metrics of the page: names and types, of tables and of lists.
fn documented() -> BTreeMap<String, String> {
    let page = std::fs::read_to_string(root().join("docs/metrics.md")).unwrap();
    let mut all = BTreeMap::new();
    for line in page.lines() {
        let names: Vec<&str> = line.split('`').skip(1).step_by(2).collect();
        let kind = match line.split_once("| `") {
            Some(("", _)) => line.split('|').nth(2).map(str::trim),
            _ if line.starts_with("- `") => {
                line.split_once('(').map(|(_, kind)| kind.split([',', ')']).next().unwrap_or(""))
            }
            _ => None,
        };
        let kind = kind.map(|kind| kind.trim_end_matches('s'));
        let Some(kind @ ("counter" | "gauge" | "histogram")) = kind else { continue };
        let own = names.into_iter().take_while(|name| {
            (name.starts_with("purview_") || name.starts_with("process_")) && !name.contains('{')
        });
        // In a list the names before the bracket are meant, in a table the first.
        let most = if line.starts_with('|') { 1 } else { usize::MAX };
        let before = line.split_once('(').map_or(line, |(before, _)| before);
        let own = own.filter(|name| line.starts_with('|') || before.contains(*name)).take(most);
        all.extend(own.map(|name| (name.to_owned(), kind.to_owned())));
    }
    all
}

/// The values of a metric with their labels.
fn values(text: &str, name: &str) -> Vec<(String, f64)> {
    let of_name = |line: &str| {
        let rest = line.strip_prefix(name).filter(|rest| rest.starts_with(['{', ' ']))?;
        let (labels, value) = rest.rsplit_once(' ')?;
        Some((labels.to_owned(), value.parse().ok()?))
    };
    text.lines().filter_map(of_name).collect()
}

struct Consoles {
    runtime: Runtime,
    all: Vec<String>,
}

impl Consoles {
    fn of(cluster: &LocalCluster) -> Consoles {
        let all = members(cluster).map(|member| format!("http://{}", console(member)));
        Consoles { runtime: runtime(), all: all.collect() }
    }

    fn get(&self, console: &str, path: &str) -> String {
        let answer = self.runtime.block_on(http::get(console, path)).unwrap();
        String::from_utf8(answer.body.to_vec()).unwrap()
    }

    fn metrics(&self) -> Vec<String> {
        self.all.iter().map(|console| self.get(console, "/metrics")).collect()
    }

    /// The metrics as soon as they fulfil a condition.
    fn metrics_when(&self, what: &str, holds: impl Fn(&[String]) -> bool) -> Vec<String> {
        try_for(what, || {
            let texts = self.metrics();
            if holds(&texts) { Ok(texts) } else { Err(texts) }
        })
    }

    /// The names of all processes, as the first one knows them.
    fn names(&self) -> BTreeSet<String> {
        let survey: ClusterSurvey =
            serde_json::from_str(&self.get(&self.all[0], "/api/cluster")).unwrap();
        survey.nodes.into_iter().map(|node| node.name).collect()
    }
}

/// The peers of which a process serves metrics.
fn peers(text: &str) -> BTreeSet<String> {
    let of = values(text, "purview_link_connected").into_iter().filter(|(_, up)| *up == 1.0);
    of.filter_map(|(labels, _)| {
        let (_, rest) = labels.split_once("peer=\"")?;
        Some(rest.split_once('"')?.0.to_owned())
    })
    .collect()
}

#[test]
fn promtool_and_the_page_agree_with_what_a_cluster_serves() {
    let text = "[server]\ndemo = true\n\
         [[scene]]\nname = \"field\"\nwidth = \"256m\"\ndepth = \"256m\"\nland = \"64m\"\n\
         region = [2, 2]\npatch = \"16m\"\ntop_speed = \"20m/s\"\n";
    let config = Config::parse(&format!("{ANY_PORTS}{text}")).unwrap();
    let cluster = cluster(&config, 2, 1);
    let consoles = Consoles::of(&cluster);
    let names = consoles.names();
    assert_eq!(names.len(), 3, "{names:?}");
    // Labels are names, which a restart does not change.
    let texts = consoles.metrics_when("every process is connected to each other one", |texts| {
        texts.iter().all(|text| peers(text).len() == 2)
    });
    for text in &texts {
        assert!(peers(text).is_subset(&names), "{:?} of {names:?}", peers(text));
        promtool(&["check", "metrics"], text);
        let [(_, margin)] = &values(text, "purview_lease_margin_seconds")[..] else {
            panic!("{text}");
        };
        let lease = config.cluster.lease.as_secs_f64();
        assert!(*margin > 0.0 && *margin <= lease, "{margin} s of {lease} s");
        let fullness = values(text, "purview_link_fullness_ratio");
        assert_eq!(fullness.len(), 4, "two peers with two channels each: {fullness:?}");
        assert!(fullness.iter().all(|(_, share)| (0.0..0.1).contains(share)), "{fullness:?}");
        let moving = values(text, "purview_migrations_in_progress");
        let labels: Vec<&str> = moving.iter().map(|(labels, _)| labels.as_str()).collect();
        assert_eq!(labels, ["{direction=\"in\"}", "{direction=\"out\"}"]);
    }
    let leaders = |texts: &[String]| {
        texts.iter().flat_map(|text| values(text, "purview_leader")).map(|(_, n)| n).sum::<f64>()
    };
    consoles.metrics_when("one process leads", |texts| leaders(texts) == 1.0);

    let served: BTreeMap<String, String> = texts.iter().flat_map(|text| families(text)).collect();
    let (page, mut wrong) = (documented(), Vec::new());
    for name in served.keys().chain(page.keys()).collect::<BTreeSet<_>>() {
        if served.get(name) != page.get(name) {
            wrong.push(format!("{name}: {:?}, page {:?}", served.get(name), page.get(name)));
        }
    }
    assert!(wrong.is_empty(), "docs/metrics.md:\n{}", wrong.join("\n"));
}

#[test]
fn promtool_accepts_the_rules_and_they_name_documented_metrics() {
    let file = root().join("deploy/prometheus-rules.yml");
    promtool(&["check", "rules", file.to_str().unwrap()], "");
    let (text, page) = (std::fs::read_to_string(&file).unwrap(), documented());
    let sentences = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let used: BTreeSet<&str> = sentences.filter(|word| word.starts_with("purview_")).collect();
    assert!(used.len() > 10, "{used:?}");
    for name in used {
        let family = name.strip_suffix("_bucket").unwrap_or(name);
        assert!(page.contains_key(family), "{name} is not in docs/metrics.md");
    }
}

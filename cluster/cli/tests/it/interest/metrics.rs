//! The metrics of the service: the page lists what is served, and Prometheus accepts it.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use super::support::{Service, ask, circle, create, runtime, scene, tick};

/// The metrics of the page: names and types.
fn documented() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/interest-service.md")).unwrap();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let name = cells.get(1)?.strip_prefix('`')?.strip_suffix('`')?;
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        name.starts_with("purview_").then(|| (name.to_owned(), kind.to_owned()))
    };
    page.lines().filter_map(row).collect()
}

fn promtool(text: &str) {
    let mut command = Command::new("promtool");
    command.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let missing = "promtool is missing: `bash .ci/test` installs it";
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{missing}: {error}"));
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "{text}");
}

#[test]
fn the_page_lists_the_metrics_and_promtool_accepts_them() {
    let service = Service::start(&[]);
    runtime().block_on(async {
        let mut stream = service.address().begin().await.unwrap();
        let changes = vec![scene(1, &circle()), create(1, &[(1, 0, 0), (2, 50, 0)]), tick(1)];
        ask(&mut stream, changes).await;
        let text = service.metrics().await;
        promtool(&text);
        let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
        let mut served: BTreeMap<String, String> =
            types.map(|(name, kind)| (name.to_owned(), kind.to_owned())).collect();
        served.retain(|name, _| name.starts_with("purview_"));
        assert_eq!(served, documented());
        for (name, value) in
            [("entities", 2.0), ("scenes", 1.0), ("items_total", 4.0), ("events_total", 2.0)]
        {
            assert_eq!(service.metric(&format!("purview_interest_{name}")).await, value, "{name}");
        }
    });
}

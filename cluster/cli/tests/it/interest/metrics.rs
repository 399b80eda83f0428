//! The metrics of the service: the page lists what is served, and Prometheus accepts it.

use std::collections::BTreeMap;

use super::support::{ask, circle, create, scene, tick, with_stream};
use crate::console::metrics::{families, promtool};
use crate::foreign::root;

fn documented() -> BTreeMap<String, String> {
    let page = std::fs::read_to_string(root().join("docs/interest-service.md")).unwrap();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let name = cells.get(1)?.strip_prefix('`')?.strip_suffix('`')?;
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        name.starts_with("purview_").then(|| (name.to_owned(), kind.to_owned()))
    };
    page.lines().filter_map(row).collect()
}

#[test]
fn the_page_lists_the_metrics_and_promtool_accepts_them() {
    with_stream(&[], async |service, mut stream| {
        let changes = vec![scene(1, &circle()), create(1, &[(1, 0, 0), (2, 50, 0)]), tick(1)];
        ask(&mut stream, changes).await;
        let text = service.metrics().await;
        promtool(&["check", "metrics"], &text);
        let mut served = families(&text);
        served.retain(|name, _| name.starts_with("purview_"));
        assert_eq!(served, documented());
        for (name, value) in
            [("entities", 2.0), ("scenes", 1.0), ("items_total", 4.0), ("events_total", 2.0)]
        {
            assert_eq!(service.metric(&format!("purview_interest_{name}")).await, value, "{name}");
        }
    });
}

//! One fact stands in one way everywhere: ports, paths of health checks, grace periods and keys are the same in the
//! program, the compose file, the chart, the units, the rules and the documents.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use super::missing::{files, root, run, seconds};

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The configuration as the program prints it.
fn defaults() -> serde_json::Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_purview"));
    let text = run(command.args(["check", "--print", "--json"])).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The port of a key, by default.
fn port(defaults: &serde_json::Value, section: &str, key: &str) -> String {
    let address = defaults[section][key].as_str().unwrap();
    address.rsplit_once(':').unwrap().1.to_owned()
}

/// Whether a text has a number as a word.
fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|found| found == word)
}

#[test]
fn ports_are_the_same_everywhere() {
    let defaults = defaults();
    let ports =
        [("gateway", "ws"), ("gateway", "tcp"), ("console", "listen"), ("cluster", "listen")];
    for (section, key) in ports {
        let port = port(&defaults, section, key);
        for file in [
            "deploy/compose/purview.toml",
            "deploy/Dockerfile",
            "deploy/Dockerfile.source",
            "deploy/chart/templates/deployment.yaml",
            "deploy/chart/templates/_helpers.tpl",
            "deploy/chart/templates/networkpolicy.yaml",
            "docs/deploy.md",
        ] {
            assert!(has_word(&read(file), &port), "{file} has no port {port} of {section}.{key}");
        }
    }
    // Logic workers have no default address: one port serves all examples.
    for file in [
        "deploy/compose/purview.toml",
        "deploy/compose.yaml",
        "deploy/chart/templates/service.yaml",
        "docs/deploy.md",
    ] {
        assert!(has_word(&read(file), "7795"), "{file}");
    }
}

#[test]
fn health_checks_are_those_of_the_console() {
    let document: serde_json::Value =
        serde_json::from_str(&read("cluster/server/src/admin/openapi.json")).unwrap();
    let has = |path: &str| document["paths"].get(path).is_some();
    let mut asked = BTreeSet::new();
    for file in ["deploy/chart/templates/deployment.yaml", "deploy/compose/haproxy.cfg"] {
        let text = read(file);
        let words = text
            .split([' ', ',', '\n'])
            .filter(|word| word.starts_with('/') && !word.contains('.'));
        asked.extend(words.filter(|word| word.matches('/').count() == 1).map(str::to_owned));
    }
    assert!(asked.contains("/ready") && asked.contains("/alive"), "{asked:?}");
    asked.iter().for_each(|path| assert!(has(path), "{path}"));
    assert!(has("/whole") && read("docs/operations.md").contains("`/whole`"));
}

#[test]
fn processes_are_killed_no_earlier_than_they_expect() {
    let defaults = defaults();
    let seconds = seconds(defaults["server"]["grace"].as_str().unwrap());
    assert!(read("deploy/compose.yaml").contains(&format!("stop_grace_period: {seconds}s")));
    assert!(read("deploy/compose/purview.toml").contains(&format!("grace = \"{seconds}s\"")));
    for unit in ["serve", "node", "gateway"] {
        let text = read(&format!("deploy/systemd/purview-{unit}.service"));
        assert!(text.contains(&format!("TimeoutStopSec={seconds}\n")), "{unit}");
    }
    // The chart adds the steps of a shutdown itself.
    let mut check = Command::new(env!("CARGO_BIN_EXE_purview"));
    let file = root().join("deploy/scenes/dev.toml");
    let said = run(check.arg("check").arg(file)).unwrap();
    let steps = ["order", "gateway", "flush", "console", "leave"].map(|step| {
        let (_, rest) =
            said.split_once(&format!("{step} ")).unwrap_or_else(|| panic!("{step}: {said}"));
        rest.split_whitespace().next().unwrap().to_owned()
    });
    let [order, rest @ ..] = &steps;
    let sum = format!("add {order} $longest {}", rest.join(" "));
    assert!(read("deploy/chart/templates/_helpers.tpl").contains(&sum), "{sum}");
}

#[test]
fn keys_in_the_environment_of_deployments_exist() {
    let mut found = BTreeSet::new();
    for file in files("deploy", "") {
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        found.extend(
            words.filter(|w| w.starts_with("PURVIEW_") && w.contains("__")).map(str::to_owned),
        );
    }
    assert!(found.len() >= 5, "{found:?}");
    let sample = |name: &str| match name {
        name if name.ends_with("__ARBITERS") || name.ends_with("__CAPACITY") => "2",
        name if name.ends_with("__ADVERTISE") => "10.0.0.1:7790",
        _ => "name",
    };
    let names = found.iter().filter(|name| !name.ends_with("__"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_purview"));
    command.args(["check", "--print"]).envs(names.map(|name| (name.clone(), sample(name))));
    command.env("PURVIEW_CLUSTER__ETCD", "https://etcd:2379");
    run(&mut command).unwrap();
}

#[test]
fn the_rules_of_the_chart_are_no_copy() {
    let linked = std::fs::read_link(root().join("deploy/chart/prometheus-rules.yml")).unwrap();
    assert_eq!(linked, PathBuf::from("../prometheus-rules.yml"));
}

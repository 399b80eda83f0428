//! The chart: linted, rendered for every case in `ci/`, validated against the API of Kubernetes; and each rendered
//! configuration is one that the program accepts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::missing::{Missing, need_python, root, run, seconds};

/// Where Helm's and Kubernetes' schemas are not installed.
fn need_helm() -> Result<(), Missing> {
    need_python("helm_python, kubernetes_validate, jsonschema, yaml")
}

/// Checks a chart; the rendered configurations are in `out`.
fn check(chart: &Path, out: &Path) -> Result<String, String> {
    let script = root().join("cluster/cli/tests/deployment/chart.py");
    run(Command::new("python3").arg(script).arg(chart).arg(out))
}

fn copy(folder: &Path) -> PathBuf {
    let chart = folder.join("chart");
    run(Command::new("cp").arg("-rL").arg(root().join("deploy/chart")).arg(&chart)).unwrap();
    chart
}

#[test]
fn every_case_of_the_chart_is_valid_and_gives_a_configuration_that_is_accepted() {
    if let Err(missing) = need_helm() {
        return missing.skips("chart::every_case");
    }
    let out = tempfile::tempdir().unwrap();
    check(&root().join("deploy/chart"), out.path()).unwrap();
    let mut checked = 0;
    for entry in std::fs::read_dir(out.path()).unwrap().flatten() {
        let file = entry.path();
        if file.extension().is_none_or(|ext| ext != "toml") {
            continue;
        }
        let told = std::fs::read_to_string(file.with_extension("env")).unwrap();
        let told: BTreeMap<String, String> = serde_json::from_str(&told).unwrap();
        let settings = told.iter().filter(|(name, _)| name.starts_with("PURVIEW_"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_purview"));
        command.args(["check", "--print", "--json"]).arg(&file).envs(settings);
        let printed = run(&mut command).unwrap_or_else(|said| panic!("{}: {said}", file.display()));
        let config: serde_json::Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(config["cluster"]["advertise"], "[2001:db8::7]:7790");
        // The pod is killed no earlier than the process expects.
        let said = seconds(config["server"]["grace"].as_str().unwrap());
        assert_eq!(said, seconds(&told["GRACE_PERIOD"]), "{}", file.display());
        checked += 1;
    }
    assert!(checked >= 15, "{checked} configurations");
    let refused = super::schema::refused(out.path());
    assert!(refused.len() == checked && refused.values().all(String::is_empty), "{refused:?}");
}

#[test]
fn a_mistake_in_the_chart_is_found() {
    if let Err(missing) = need_helm() {
        return missing.skips("chart::a_mistake");
    }
    for (file, was, becomes, said) in [
        ("templates/disruption.yaml", "maxUnavailable: 1", "maxUnavailible: 1", "maxUnavailible"),
        ("templates/monitoring.yaml", "path: /metrics", "pathh: /metrics", "pathh"),
        (
            "templates/deployment.yaml",
            "whenUnsatisfiable: ScheduleAnyway",
            "whenUnsatisfiable: Maybe",
            "Maybe",
        ),
        (
            "templates/networkpolicy.yaml",
            "kind: NetworkPolicy",
            "kind: NetworkPolice",
            "unknown kind",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let chart = copy(folder.path());
        let path = chart.join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(was), "{file}");
        std::fs::write(&path, text.replace(was, becomes)).unwrap();
        let found = check(&chart, folder.path()).unwrap_err();
        assert!(found.contains(said), "{file}: {found}");
    }
}

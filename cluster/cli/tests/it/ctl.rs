//! Runs `purview ctl` against a process of a test's cluster. Tests of the cluster give their orders and read its
//! state the way an operator does.

use std::process::{Command, Output};

use purview_lab::testbed::local_cluster::Member;
use purview_server::node::ClusterSurvey;
use serde_json::Value;

/// Runs an order, whatever comes of it.
pub fn run(at: &Member, args: &[&str]) -> Output {
    let console = at.ready().and_then(|ready| ready.console).expect("the member has a console");
    let mut command = Command::new(env!("CARGO_BIN_EXE_purview"));
    command.arg("ctl").args(args).args(["--json", "--console", &format!("http://{console}")]);
    command.output().unwrap()
}

/// Runs an order that succeeds, and returns its JSON output.
pub fn ctl(at: &Member, args: &[&str]) -> Value {
    let output = run(at, args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ctl {args:?}: {stderr}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Runs an order that the console refuses, and returns the error message.
pub fn refused(at: &Member, args: &[&str]) -> String {
    let output = run(at, args);
    assert_eq!(output.status.code(), Some(1), "ctl {args:?} is refused");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs an order that may still be in progress when `ctl` ends.
pub fn order(at: &Member, args: &[&str]) {
    let output = run(at, args);
    assert!(matches!(output.status.code(), Some(0 | 3)), "ctl {args:?}: {output:?}");
}

/// The state of the cluster as one of its members knows it.
pub fn survey(at: &Member) -> ClusterSurvey {
    serde_json::from_value(ctl(at, &["status", "regions"])).unwrap()
}

/// The same at any time: while regions change their nodes, some cannot be reached.
pub fn survey_now(at: &Member) -> ClusterSurvey {
    let output = run(at, &["status", "regions"]);
    assert!(matches!(output.status.code(), Some(0 | 3)), "ctl status regions: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

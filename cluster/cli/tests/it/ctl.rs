//! Runs `purview ctl` against a process of a test's cluster. Tests of the cluster give their orders and read its
//! state the way an operator does.

use purview_lab::testbed::local_cluster::Member;
use purview_server::node::ClusterSurvey;
use serde_json::Value;

use crate::common::console;
use crate::end_to_end::process::{self, Done};

/// Runs an order, whatever comes of it.
pub fn run(at: &Member, args: &[&str]) -> Done {
    let console = format!("http://{}", console(at));
    process::run(&[&["ctl"], args, &["--json", "--console", &console]].concat())
}

/// Runs an order that succeeds, and returns its JSON output.
pub fn ctl(at: &Member, args: &[&str]) -> Value {
    let done = run(at, args);
    assert_eq!(done.code, Some(0), "ctl {args:?}: {done:?}");
    serde_json::from_str(&done.stdout).unwrap()
}

/// Runs an order that the console refuses, and returns the error message.
pub fn refused(at: &Member, args: &[&str]) -> String {
    let done = run(at, args);
    assert_eq!(done.code, Some(1), "ctl {args:?} is refused");
    done.stderr
}

/// Runs an order that may still be in progress when `ctl` ends.
pub fn order(at: &Member, args: &[&str]) {
    let done = run(at, args);
    assert!(matches!(done.code, Some(0 | 3)), "ctl {args:?}: {done:?}");
}

/// The state of the cluster as one of its members knows it.
pub fn survey(at: &Member) -> ClusterSurvey {
    serde_json::from_value(ctl(at, &["status", "regions"])).unwrap()
}

/// The same at any time: while regions change their nodes, some cannot be reached.
pub fn survey_now(at: &Member) -> ClusterSurvey {
    let done = run(at, &["status", "regions"]);
    assert!(matches!(done.code, Some(0 | 3)), "ctl status regions: {done:?}");
    serde_json::from_str(&done.stdout).unwrap()
}

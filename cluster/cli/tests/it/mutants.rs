//! Deliberate bugs. For each there is the smallest run that finds it: with the bug the judge finds a violation, and
//! without it none.
//!
//! A bug whose run does not find it any more wants a new one:
//!
//! ```sh
//! purview sim --mutants NAME --seeds 100 --smallest cluster/cli/tests/mutants
//! ```

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use purview::scene::mutants::{Mutant, every};
use purview_lab::sim::mutation::finds_its_bug;
use purview_lab::sim::schedule::Schedule;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mutants")
}

fn run_of(bug: Mutant) -> Schedule {
    let schedule = Schedule::read(&folder().join(format!("{bug:?}.toml")));
    schedule.unwrap_or_else(|e| panic!("{e}"))
}

/// Each of these bugs is found by its run.
fn are_found(bugs: impl Iterator<Item = Mutant>) {
    let is_missed = |bug: &Mutant| !finds_its_bug(&run_of(*bug)).unwrap_or_else(|e| panic!("{e}"));
    let missed: Vec<Mutant> = bugs.filter(is_missed).collect();
    assert!(missed.is_empty(), "not found any more, or found without the bug: {missed:?}");
}

/// Every third of them, in four parts.
fn third(part: usize) {
    are_found(every().step_by(3).skip(part).step_by(4));
}

#[test]
fn every_deliberate_bug_has_a_run_and_every_run_a_bug() {
    let files = std::fs::read_dir(folder()).expect("the folder of runs is there");
    let files = files.map(|file| file.expect("it is read").file_name().into_string().unwrap());
    let of_bugs: BTreeSet<String> = every().map(|bug| format!("{bug:?}.toml")).collect();
    assert_eq!(files.collect::<BTreeSet<_>>(), of_bugs);
    assert!(every().all(|bug| run_of(bug).finds == Some(bug)));
}

#[test]
fn a_third_of_the_deliberate_bugs_is_found_1_of_4() {
    third(0);
}

#[test]
fn a_third_of_the_deliberate_bugs_is_found_2_of_4() {
    third(1);
}

#[test]
fn a_third_of_the_deliberate_bugs_is_found_3_of_4() {
    third(2);
}

#[test]
fn a_third_of_the_deliberate_bugs_is_found_4_of_4() {
    third(3);
}

#[test]
#[ignore = "long; .ci/nightly runs it"]
fn all_deliberate_bugs_are_found() {
    are_found(every());
}

//! Deliberate bugs. For each there is the smallest run that finds it: with the bug the judge finds a violation, and
//! without it none.
//!
//! A bug whose run does not find it any more wants a new one:
//!
//! ```sh
//! purview-lab sim --mutants NAME --seeds 100 --smallest cluster/lab/tests/mutants
//! ```

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use purview::scene::mutants::{Mutant, every};
use purview_lab::sim::mutation::finds_its_bug;
use purview_lab::sim::schedule::Schedule;

/// Bugs that no run is known to find since the numbers of entities come from joins: they were found before, most of
/// them by one seed of thousands.
const OPEN: [Mutant; 11] = [
    Mutant::NowhereLost,
    Mutant::AnyEpoch,
    Mutant::LateHandoff,
    Mutant::HandedTwice,
    Mutant::OwnerPassedOver,
    Mutant::RunsTwice,
    Mutant::AheadSilent,
    Mutant::ThresholdOutdated,
    Mutant::AskedEarly,
    Mutant::KeptByOlder,
    Mutant::Disowned,
];

/// Every bug that has a run.
fn with_run() -> impl Iterator<Item = Mutant> {
    every().filter(|bug| !OPEN.contains(bug))
}

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

#[test]
fn every_deliberate_bug_has_a_run_and_every_run_a_bug() {
    let files = std::fs::read_dir(folder()).expect("the folder of runs is there");
    let files = files.map(|file| file.expect("it is read").file_name().into_string().unwrap());
    let of_bugs: BTreeSet<String> = with_run().map(|bug| format!("{bug:?}.toml")).collect();
    assert_eq!(files.collect::<BTreeSet<_>>(), of_bugs);
    assert!(with_run().all(|bug| run_of(bug).finds == Some(bug)));
}

macro_rules! quarters {
    ($($name:ident $part:literal)*) => {
        $(
            #[test]
            fn $name() {
                are_found(with_run().skip($part).step_by(4));
            }
        )*
    };
}

quarters! {
    deliberate_bugs_are_found_1_of_4 0
    deliberate_bugs_are_found_2_of_4 1
    deliberate_bugs_are_found_3_of_4 2
    deliberate_bugs_are_found_4_of_4 3
}

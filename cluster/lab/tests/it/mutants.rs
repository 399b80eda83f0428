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

/// The tests of what holds of every decision of the planner.
const PLANNER: &str = "cluster/server/src/node/balance/properties.rs";

/// Bugs that no run is known to find, most of which were found by one seed of thousands before the numbers of entities
/// came from joins: a test beside the protocol notices each.
const BY_TESTS: [(Mutant, &str); 18] = [
    (Mutant::NowhereLost, "tests/it/departing.rs"),
    (Mutant::AnyEpoch, "tests/it/failover.rs"),
    (Mutant::LateHandoff, "tests/it/failover.rs"),
    (Mutant::HandedTwice, "tests/it/failover.rs"),
    (Mutant::OwnerPassedOver, "src/scene/player/tests/resumption.rs"),
    (Mutant::RunsTwice, "cluster/server/src/node/migration/tests.rs"),
    (Mutant::MovesUnheard, "cluster/server/src/node/migration/tests.rs"),
    (Mutant::AheadSilent, "src/scene/region/border/inbound.rs"),
    (Mutant::ThresholdOutdated, "src/scene/region/border/inbound.rs"),
    (Mutant::AskedEarly, "tests/it/failover.rs"),
    (Mutant::HandedOnce, "tests/it/failover.rs"),
    (Mutant::KeptByOlder, "tests/it/failover.rs"),
    (Mutant::TermsIgnored, "tests/it/commands.rs"),
    (Mutant::RowTorn, "tests/it/commands.rs"),
    (Mutant::RelievedAtOnce, PLANNER),
    (Mutant::GhostsFree, PLANNER),
    (Mutant::MovesUnlimited, PLANNER),
    (Mutant::NarrowCut, PLANNER),
];

/// A bug of several processes and threads, in which no mutant can be set: without it
/// `nodes::late_news::a_process_that_all_others_have_dropped_ends_whatever_the_store_says` passes.
const OF_PROCESSES: Mutant = Mutant::Disowned;

/// Every bug that has a run.
fn with_run() -> impl Iterator<Item = Mutant> {
    every().filter(|bug| *bug != OF_PROCESSES && BY_TESTS.iter().all(|(of, _)| of != bug))
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

#[test]
fn every_deliberate_bug_without_a_run_is_noticed_by_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (bug, file) in BY_TESTS {
        let text =
            std::fs::read_to_string(root.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        let call = format!("is_noticed_by(Mutant::{bug:?},");
        assert!(text.contains(&call), "{file} has no test that notices {bug:?}");
    }
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

//! Recorded fault schedules: the faults of a run with their times and targets, in a text file.
//!
//! A seed stands for another run as soon as the product draws one random number more or less. A schedule does not:
//! each fault has its absolute time, its target and its length, so it remains the same test in every later release.
//! `purview-lab sim --record` writes a schedule, `purview-lab sim --schedule` runs one, and the tests run all in
//! `cluster/lab/tests/schedules`.
//!
//! The seed still determines where clients walk, how long each message takes, and which answers are lost.

mod file;

use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

use anyhow::anyhow;
use purview::scene::mutants::Mutant;
use serde::{Deserialize, Serialize};

use super::Options;
use super::blow::Blow;
use super::written::{maybe_seconds, seconds};
use file::FileForm;

/// The version of the format that this release reads and writes.
pub const VERSION: u32 = 1;

/// A phase of faults, followed by a quiet phase in which the cluster must recover.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Storm {
    /// The strikes, in order of time.
    pub strikes: Vec<Strike>,
}

impl Storm {
    pub fn faults(&self) -> u32 {
        let numbers = self.strikes.iter().flat_map(|strike| &strike.faults).map(|f| f.number + 1);
        numbers.max().unwrap_or(0)
    }
}

/// Faults that overlap. Processes that ended restart when all of the faults are over.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Strike {
    /// One or two faults; none if the recorded run left them out.
    pub faults: Vec<TimedFault>,
    /// When all of them were over, since the start; `None`: the run ended before.
    #[serde(rename = "over_s", with = "maybe_seconds", skip_serializing_if = "Option::is_none")]
    #[serde(default)]
    pub over: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimedFault {
    /// The number, by which `--only-faults` names the fault.
    pub number: u32,
    /// When the fault begins, since the start of the run.
    #[serde(rename = "at_s", with = "seconds")]
    pub at: Duration,
    #[serde(flatten)]
    pub blow: Blow,
}

#[derive(Debug, Default)]
pub(super) struct Recorder(RefCell<Vec<Storm>>);

impl Recorder {
    pub(super) fn begins_storm(&self) {
        self.0.borrow_mut().push(Storm::default());
    }

    pub(super) fn begins_strike(&self) {
        if let Some(storm) = self.0.borrow_mut().last_mut() {
            storm.strikes.push(Strike::default());
        }
    }

    pub(super) fn strikes(&self, number: u32, at: Duration, blow: &Blow) {
        let blow = blow.clone();
        self.strike(|strike| strike.faults.push(TimedFault { number, at, blow }));
    }

    pub(super) fn ends_strike(&self, at: Duration) {
        self.strike(|strike| strike.over = Some(at));
    }

    fn strike(&self, change: impl FnOnce(&mut Strike)) {
        let mut storms = self.0.borrow_mut();
        if let Some(strike) = storms.last_mut().and_then(|storm| storm.strikes.last_mut()) {
            change(strike);
        }
    }

    pub(super) fn storms(&self) -> Vec<Storm> {
        self.0.borrow().clone()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// What the run found, in one sentence.
    pub about: String,
    pub finds: Option<Mutant>,
    /// The deliberate bug that the run must survive, because the product compensates it.
    pub withstands: Option<Mutant>,
    pub options: Options,
    pub storms: Vec<Storm>,
}

impl Schedule {
    pub fn read(path: &Path) -> anyhow::Result<Schedule> {
        let text = std::fs::read_to_string(path)
            .map_err(|e| anyhow!("the schedule {}: {e}", path.display()))?;
        Schedule::parse(&text, path)
    }

    pub fn parse(text: &str, path: &Path) -> anyhow::Result<Schedule> {
        let form = toml::from_str::<FileForm>(text).map_err(anyhow::Error::from);
        let schedule = form.and_then(FileForm::schedule);
        schedule.map_err(|e| anyhow!("the schedule {}: {e}", path.display()))
    }

    /// Writes the schedule to a file, with one line for each strike.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        std::fs::write(path, self.to_string())
            .map_err(|e| anyhow!("the schedule {}: {e}", path.display()))
    }
}

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
use std::path::{Path, PathBuf};
use std::time::Duration;

use purview::scene::mutants::Mutant;

use super::Options;
use super::blow::Blow;
use file::{FileForm, Unfit};

/// The version of the format that this release reads and writes.
pub const VERSION: u32 = 1;

/// A phase of faults, followed by a quiet phase in which the cluster must recover.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Storm {
    /// The strikes, in order of time.
    pub strikes: Vec<Strike>,
}

impl Storm {
    /// One more than the highest number of its faults.
    pub fn faults(&self) -> u32 {
        let numbers = self.strikes.iter().flat_map(|strike| &strike.faults).map(|f| f.number + 1);
        numbers.max().unwrap_or(0)
    }
}

/// Faults that overlap. Processes that ended restart when all of the faults are over.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Strike {
    /// One or two faults; none if the recorded run left them out.
    pub faults: Vec<TimedFault>,
    /// When all of them were over, since the start; `None`: the run ended before.
    pub over: Option<Duration>,
}

/// A fault and its time.
#[derive(Debug, Clone, PartialEq)]
pub struct TimedFault {
    /// The number, by which `--only-faults` names the fault.
    pub number: u32,
    /// When the fault begins, since the start of the run.
    pub at: Duration,
    /// The fault.
    pub blow: Blow,
}

/// Records the faults of a run.
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

    /// The storms so far.
    pub(super) fn storms(&self) -> Vec<Storm> {
        self.0.borrow().clone()
    }
}

/// A recorded run.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// What the run found, in one sentence.
    pub about: String,
    /// The deliberate bug that the run finds.
    pub finds: Option<Mutant>,
    /// The deliberate bug that the run must survive, because the product compensates it.
    pub withstands: Option<Mutant>,
    /// The cluster and its clients.
    pub options: Options,
    /// The faults.
    pub storms: Vec<Storm>,
}

/// Why a schedule cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// The file cannot be read or written.
    #[error("the schedule {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The text is not valid TOML, or has wrong keys.
    #[error("the schedule {path} is invalid: {source}")]
    Form {
        /// The file.
        path: PathBuf,
        /// The error with its line.
        source: Box<toml::de::Error>,
    },
    /// The format has another version.
    #[error("the schedule {path} has version {found}; this release reads version {VERSION}")]
    Version {
        /// The file.
        path: PathBuf,
        /// The version in the file.
        found: u32,
    },
    /// A value is invalid.
    #[error("the schedule {path}: {key} = {found}: expected {want}")]
    Value {
        /// The file.
        path: PathBuf,
        /// The key.
        key: &'static str,
        /// The value in the file.
        found: String,
        /// The legal values.
        want: String,
    },
}

impl Schedule {
    /// Reads a schedule from a file.
    ///
    /// # Errors
    /// [`ScheduleError`].
    pub fn read(path: &Path) -> Result<Schedule, ScheduleError> {
        let file = |source| ScheduleError::File { path: path.to_owned(), source };
        let text = std::fs::read_to_string(path).map_err(file)?;
        Schedule::parse(&text, path)
    }

    /// Parses a schedule. Errors name `path`.
    ///
    /// # Errors
    /// [`ScheduleError`].
    pub fn parse(text: &str, path: &Path) -> Result<Schedule, ScheduleError> {
        let form: FileForm = toml::from_str(text).map_err(|source| ScheduleError::Form {
            path: path.to_owned(),
            source: Box::new(source),
        })?;
        if form.version != VERSION {
            return Err(ScheduleError::Version { path: path.to_owned(), found: form.version });
        }
        form.schedule().map_err(|Unfit { key, found, want }| ScheduleError::Value {
            path: path.to_owned(),
            key,
            found,
            want,
        })
    }

    /// Writes the schedule to a file, with one line for each strike.
    ///
    /// # Errors
    /// [`ScheduleError::File`].
    pub fn write(&self, path: &Path) -> Result<(), ScheduleError> {
        std::fs::write(path, self.to_string())
            .map_err(|source| ScheduleError::File { path: path.to_owned(), source })
    }
}

//! The kinds of faults of the simulator, with their names and rates on the command line.

use std::collections::BTreeMap;
use std::str::FromStr;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// A kind of fault.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// A node crashes, and a new one starts on its host.
    Crash,
    /// A gateway crashes, and a new one starts on its host.
    Gateway,
    /// A node is suspended for a while, perhaps for longer than its lease.
    Stop,
    /// Two processes cannot reach each other.
    Partition,
    /// The messages from one process to another are held.
    OneWay,
    /// A node can reach neither other processes nor the store.
    CutOff,
    /// Messages are late.
    Delay,
    /// No process can reach the lease store.
    Engine,
    /// Some answers of the lease store are lost.
    Answers,
    /// The checkpoint store does not answer.
    CheckpointStore,
    /// Checkpoints are lost, old or damaged, and a node crashes.
    Checkpoint,
    /// A region migrates.
    Move,
    /// A layout changes.
    Map,
    /// A node is drained and ends; a new one starts.
    Drain,
    /// Clients lose their connections.
    Clients,
    /// The clocks of the processes differ.
    Skew,
    /// Some clients read nothing for a while.
    Slow,
    /// The lease store grants all regions of a node to others and does not tell the node.
    Lease,
    /// The lease store grants one region of a node to another node, and does not tell the first one, whose lease holds.
    Twice,
    /// Half of the clients gather at one place, mostly at a border.
    HotSpot,
    /// Half of the clients leave, then log in at the same time.
    Logins,
    /// A logic worker is killed, and another one begins.
    Worker,
    /// A logic worker neither reads nor sends anything for a while.
    WorkerStop,
    /// The stream of a logic worker breaks.
    WorkerLink,
}

/// The kinds of faults of logic workers. `all` is without these: they change nothing where rules are others'.
const OF_WORKERS: [Fault; 3] = [Fault::Worker, Fault::WorkerStop, Fault::WorkerLink];

impl Fault {
    /// Whether this is a fault of logic workers.
    pub fn is_of_workers(&self) -> bool {
        OF_WORKERS.contains(self)
    }

    fn name(self) -> String {
        self.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
    }
}

/// The kinds to choose from. A kind with the rate 3 is in the list three times.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Faults(pub Vec<Fault>);

/// The legal rates of a kind.
const RATES: std::ops::RangeInclusive<u32> = 1..=100;

impl FromStr for Faults {
    type Err = String;

    fn from_str(text: &str) -> Result<Faults, String> {
        let every = Fault::value_variants().iter().copied();
        match text {
            "all" => return Ok(Faults(every.filter(|f| !f.is_of_workers()).collect())),
            "none" => return Ok(Faults::default()),
            _ => {}
        }
        let mut rates = BTreeMap::new();
        for word in text.split(',') {
            let (name, rate) = word.split_once('=').unwrap_or((word, "1"));
            let fault = <Fault as ValueEnum>::from_str(name.trim(), false).map_err(|_| {
                let names = every.clone().map(Fault::name).collect::<Vec<_>>().join(", ");
                format!(
                    "{:?} is not a fault: expected all, none, or a comma-separated list of {names}",
                    name.trim()
                )
            })?;
            let often = rate.trim().parse().ok().filter(|rate| RATES.contains(rate));
            let often = often.ok_or_else(|| {
                let (least, most) = (RATES.start(), RATES.end());
                format!(
                    "{:?} is not a rate: expected a number from {least} to {most}, as in crash=3",
                    word.trim()
                )
            })?;
            rates.insert(fault, often);
        }
        let often = |(fault, rate): (Fault, u32)| std::iter::repeat_n(fault, rate as usize);
        Ok(Faults(rates.into_iter().flat_map(often).collect()))
    }
}

impl std::fmt::Display for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        let word = |same: &[Fault]| match same {
            [fault] => fault.name(),
            [fault, ..] => format!("{}={}", fault.name(), same.len()),
            [] => String::new(),
        };
        f.write_str(&self.0.chunk_by(|a, b| a == b).map(word).collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_faults_with_rates_survives_printing_and_parsing() {
        let read = |text: &str| text.parse::<Faults>();
        assert_eq!(read("none").unwrap().to_string(), "none");
        assert_eq!(read("all").unwrap().0.len(), 21);
        let some = read("move=3, crash,twice=1").unwrap();
        assert_eq!(some.0, [Fault::Crash, Fault::Move, Fault::Move, Fault::Move, Fault::Twice]);
        assert_eq!(some.to_string(), "crash,move=3,twice");
        assert_eq!(read(&some.to_string()), Ok(some));
    }

    #[test]
    fn an_unknown_fault_or_rate_is_an_error_that_names_the_legal_ones() {
        let refused = |text: &str| text.parse::<Faults>().unwrap_err().to_string();
        let name = refused("crash,boom");
        assert!(name.contains("\"boom\"") && name.contains("hot-spot, logins"), "{name}");
        for rate in ["crash=0", "crash=101", "crash=", "crash=-1", "crash=x"] {
            let text = refused(rate);
            assert!(text.contains(rate) && text.contains("1 to 100"), "{text}");
        }
    }
}

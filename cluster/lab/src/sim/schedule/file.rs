//! The text form of a schedule: TOML, one line for each strike.

use std::fmt::Display;

use anyhow::{anyhow, ensure};
use purview::scene::mutants::{self, Mutant};
use serde::Deserialize;

use super::{Schedule, Storm, VERSION};
use crate::sim::Options;
use crate::sim::blow::Blow;
use crate::sim::cluster::{gateway_hosts, node_hosts};

fn unfit(key: &str, found: impl Display, want: impl Display) -> anyhow::Error {
    anyhow!("{key} = {found}: expected {want}")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileForm {
    version: u32,
    about: String,
    finds: Option<String>,
    withstands: Option<String>,
    run: toml::Table,
    #[serde(default)]
    storm: Vec<Storm>,
}

impl FileForm {
    pub(super) fn schedule(self) -> anyhow::Result<Schedule> {
        let version = self.version;
        ensure!(
            version == VERSION,
            "it has version {version}; this release reads version {VERSION}"
        );
        let options = Options::read(&self.run)?;
        let strikes = self.storm.iter().flat_map(|storm| &storm.strikes);
        strikes
            .flat_map(|strike| &strike.faults)
            .try_for_each(|fault| check(&fault.blow, &options))?;
        let every: Vec<Mutant> = mutants::every().collect();
        let finds = self.finds.map(|name| bug("finds", &name, &every)).transpose()?;
        let withstands = self
            .withstands
            .map(|name| bug("withstands", &name, &mutants::WITHSTOOD))
            .transpose()?;
        Ok(Schedule { about: self.about, finds, withstands, options, storms: self.storm })
    }
}

/// Whether the hosts of a fault are those of the run.
fn check(blow: &Blow, options: &Options) -> anyhow::Result<()> {
    let (nodes, gateways) = (node_hosts(options), gateway_hosts(options));
    let all = [&nodes[..], &gateways[..]].concat();
    for (key, host, of) in [
        ("node", blow.node, &nodes),
        ("gateway", blow.gateway, &gateways),
        ("other", blow.other, &all),
    ] {
        ensure!(of.contains(&host), unfit(key, host, format!("one of {of:?}")));
    }
    let first = "a fraction of all clients, 0 to below 1";
    ensure!((0.0..1.0).contains(&blow.first), unfit("first", blow.first, first));
    Ok(())
}

fn bug(key: &'static str, name: &str, all: &[Mutant]) -> anyhow::Result<Mutant> {
    let bug = all.iter().find(|bug| format!("{bug:?}") == name);
    bug.copied().ok_or_else(|| unfit(key, format!("{name:?}"), format!("one of {all:?}")))
}

impl std::fmt::Display for Schedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "version = {VERSION}")?;
        writeln!(f, "about = {}", toml::Value::String(self.about.clone()))?;
        for (key, bug) in [("finds", self.finds), ("withstands", self.withstands)] {
            if let Some(bug) = bug {
                writeln!(f, "{key} = \"{bug:?}\"")?;
            }
        }
        writeln!(f, "\n[run]")?;
        // The storms are without the faults that are left out.
        for (key, value) in self.options.keys().into_iter().filter(|(key, _)| *key != "only_faults")
        {
            writeln!(f, "{key} = {value}")?;
        }
        for storm in &self.storms {
            writeln!(f, "\n[[storm]]\nstrikes = [")?;
            for strike in &storm.strikes {
                let strike = toml::Value::try_from(strike).map_err(|_| std::fmt::Error)?;
                writeln!(f, "  {strike},")?;
            }
            writeln!(f, "]")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::sim::faults::Fault;
    use crate::sim::schedule::{Strike, TimedFault};

    fn sample() -> Schedule {
        let text = "version = 1\nabout = \"a \\\"quoted\\\" finding\"\nfinds = \"NoFence\"\n[run]\nseed = \"18446744073709551615\"\n\
            seconds = 60\nnodes = 3\ngateways = 2\nplayers = 24\nfaults = \"crash=2,move\"\ncap = 4\ncut = true\njudged = true\nnpcs = false\nportals = true\nwalls = true\nbalance = true\n\
            beat_ms = 50\nonly_players = [3, 7]\n";
        let mut schedule = Schedule::parse(text, Path::new("sample")).unwrap();
        let blow = Blow {
            fault: Fault::HotSpot,
            node: 2,
            gateway: 101,
            other: 3,
            lasts: Duration::from_nanos(3_141_592_653),
            lost: true,
            stores: true,
            first: 0.1 + 0.2,
            seed: u64::MAX - 1,
        };
        let at = |ns| Duration::from_nanos(ns);
        let one = TimedFault { number: 4, at: at(12_000_000_001), blow: blow.clone() };
        let two = TimedFault { number: 5, at: at(12_500_000_000), blow };
        let whole = Strike { faults: vec![one, two.clone()], over: Some(at(99_999_999_999)) };
        let (left_out, torn) = (
            Strike { faults: vec![], over: Some(at(7)) },
            Strike { faults: vec![two], over: None },
        );
        schedule.storms =
            vec![Storm { strikes: vec![whole, left_out] }, Storm { strikes: vec![torn] }];
        schedule
    }

    #[test]
    fn a_schedule_survives_writing_and_reading_to_the_nanosecond() {
        let schedule = sample();
        assert_eq!(Schedule::parse(&schedule.to_string(), Path::new("x")).unwrap(), schedule);
        assert_eq!(schedule.storms[0].faults(), 6);
    }

    #[test]
    fn an_invalid_value_is_an_error_that_names_the_legal_ones() {
        let good = sample().to_string();
        for (from, to, named) in [
            ("version = 1", "version = 2", "has version 2; this release reads version 1"),
            ("nodes = 3", "nodes = 91", "91 is not in 1..=90"),
            ("node = 2", "node = 4", "node = 4: expected one of [1, 2, 3]"),
            ("gateway = 101", "gateway = 3", "gateway = 3: expected one of [100, 101]"),
            (
                "\"hot-spot\"",
                "\"boom\"",
                "unknown variant `boom`, expected one of `crash`, `gateway`",
            ),
            ("over_s = 99.999999999", "over_s = -1.0", "-1: expected seconds from 0"),
            ("at_s = 12.5", "at_s = nan", "NaN: expected seconds from 0"),
            ("beat_ms = 50", "beat_ms = 30", "expected a divisor"),
            ("cut = true", "cut = true\nbeasts = 3", "beasts"),
            ("NoFence", "NoFences", "finds = \"NoFences\": expected one of"),
            ("seed = \"18446744073709551615\"", "seed = \"-1\"", "'-1' for '--seed"),
        ] {
            let text = good.replacen(from, to, 1);
            assert_ne!(text, good, "{from}");
            let error = Schedule::parse(&text, Path::new("kept.toml")).unwrap_err().to_string();
            assert!(error.contains(named) && error.contains("kept.toml"), "{error}");
        }
    }
}

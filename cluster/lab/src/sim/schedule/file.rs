//! The text form of a schedule: TOML, one line for each strike.

use std::fmt::Write;
use std::time::Duration;

use purview::scene::mutants::{self, Mutant};
use serde::Deserialize;

use super::super::Logic;
use super::super::client::beat_of;
use super::{Schedule, Storm, Strike, TimedFault, VERSION};
use crate::sim::blow::Blow;
use crate::sim::cluster::{gateway_hosts, node_hosts};
use crate::sim::faults::{NoFaults, named};
use crate::sim::network::Host;
use crate::sim::{Only, Options};

/// The greatest numbers of nodes and of gateways, as on the command line.
const MOST_HOSTS: u32 = 90;

/// The greatest number of players.
const MOST_PLAYERS: u32 = 10_000;

/// An invalid value, before the file is known.
pub(super) struct Unfit {
    pub(super) key: &'static str,
    pub(super) found: String,
    pub(super) want: String,
}

fn unfit(key: &'static str, found: impl ToString, want: impl Into<String>) -> Unfit {
    Unfit { key, found: found.to_string(), want: want.into() }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileForm {
    pub(super) version: u32,
    about: String,
    finds: Option<String>,
    withstands: Option<String>,
    run: RunForm,
    #[serde(default)]
    storm: Vec<StormForm>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RunForm {
    seed: String,
    seconds: u64,
    nodes: u32,
    gateways: u32,
    players: u32,
    faults: String,
    #[serde(default = "one")]
    plane_groups: u32,
    #[serde(default = "one")]
    scenes: u32,
    cap: Option<u32>,
    #[serde(default)]
    judged: bool,
    #[serde(default)]
    cut: bool,
    #[serde(default)]
    stairs: bool,
    #[serde(default)]
    portals: bool,
    #[serde(default)]
    balance: bool,
    #[serde(default)]
    walls: bool,
    #[serde(default)]
    npcs: bool,
    logic: Option<String>,
    beat_ms: Option<u64>,
    only_players: Option<Vec<u32>>,
}

fn one() -> u32 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StormForm {
    strikes: Vec<StrikeForm>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StrikeForm {
    over_s: Option<f64>,
    faults: Vec<FaultForm>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FaultForm {
    at_s: f64,
    fault: String,
    number: u32,
    node: Host,
    gateway: Host,
    other: Host,
    lasts_s: f64,
    lost: bool,
    #[serde(default)]
    stores: bool,
    first: f64,
    seed: String,
}

impl FileForm {
    pub(super) fn schedule(self) -> Result<Schedule, Unfit> {
        let options = self.run.options()?;
        let storm = |storm: StormForm| {
            let strikes = storm.strikes.into_iter().map(|strike| strike.strike(&options));
            Ok(Storm { strikes: strikes.collect::<Result<_, Unfit>>()? })
        };
        let storms = self.storm.into_iter().map(storm).collect::<Result<_, Unfit>>()?;
        let every: Vec<Mutant> = mutants::every().collect();
        let finds = self.finds.map(|name| bug("finds", &name, &every)).transpose()?;
        let withstands = self
            .withstands
            .map(|name| bug("withstands", &name, &mutants::WITHSTOOD))
            .transpose()?;
        Ok(Schedule { about: self.about, finds, withstands, options, storms })
    }
}

impl RunForm {
    fn options(self) -> Result<Options, Unfit> {
        let within = |key, value: u32, least: u32, most: u32| match (least..=most).contains(&value)
        {
            true => Ok(value),
            false => Err(unfit(key, value, format!("a whole number from {least} to {most}"))),
        };
        let faults = self
            .faults
            .parse()
            .map_err(|e: NoFaults| unfit("faults", format!("{:?}", self.faults), e.to_string()))?;
        let beat = self.beat_ms.map(beat_of).transpose();
        let beat = beat.map_err(|want| unfit("beat_ms", self.beat_ms.unwrap_or(0), want))?;
        let game = |name: String| match Logic::ALL.iter().find(|l| l.name() == name) {
            Some(logic) => Ok(*logic),
            None => Err(unfit(
                "logic",
                format!("{name:?}"),
                "\"hunt\", \"workers\", \"messages\", \"sessions\" or \"linger\"",
            )),
        };
        Ok(Options {
            seed: seed(&self.seed)?,
            lasts: Duration::from_secs(self.seconds),
            nodes: within("nodes", self.nodes, 1, MOST_HOSTS)?,
            gateways: within("gateways", self.gateways, 0, MOST_HOSTS)?,
            players: within("players", self.players, 0, MOST_PLAYERS)?,
            faults,
            at_once: 2,
            view_cap: self.cap.map(|cap| within("cap", cap, 1, 1_000)).transpose()?,
            plane_groups: within("plane_groups", self.plane_groups, 1, 2)?,
            scenes: within("scenes", self.scenes, 1, 2)?,
            judged: self.judged,
            cut: self.cut,
            stairs: self.stairs,
            portals: self.portals,
            balance: self.balance,
            walls: self.walls,
            npcs: self.npcs,
            logic: self.logic.map(game).transpose()?,
            beat,
            until: None,
            trace: false,
            mutant: None,
            only: Only { faults: None, players: self.only_players },
        })
    }
}

impl StrikeForm {
    fn strike(self, options: &Options) -> Result<Strike, Unfit> {
        let faults = self.faults.into_iter().map(|fault| fault.fault(options));
        let over = self.over_s.map(|over| duration("over_s", over)).transpose()?;
        Ok(Strike { faults: faults.collect::<Result<_, _>>()?, over })
    }
}

impl FaultForm {
    fn fault(self, options: &Options) -> Result<TimedFault, Unfit> {
        let known = named().find(|(_, name)| *name == self.fault);
        let names = || named().map(|(_, name)| name).collect::<Vec<_>>().join(", ");
        let fault = known.ok_or_else(|| unfit("fault", format!("{:?}", self.fault), names()))?.0;
        let (nodes, gateways) = (node_hosts(options), gateway_hosts(options));
        let host = |key, host: Host, of: &[Host]| match of.contains(&host) {
            true => Ok(host),
            false => Err(unfit(key, host, format!("one of {of:?}"))),
        };
        let all = [&nodes[..], &gateways[..]].concat();
        let first = match (0.0..1.0).contains(&self.first) {
            true => self.first,
            false => {
                return Err(unfit("first", self.first, "a fraction of all clients, 0 to below 1"));
            }
        };
        let blow = Blow {
            fault,
            node: host("node", self.node, &nodes)?,
            gateway: host("gateway", self.gateway, &gateways)?,
            other: host("other", self.other, &all)?,
            lasts: duration("lasts_s", self.lasts_s)?,
            lost: self.lost,
            stores: self.stores,
            first,
            seed: seed(&self.seed)?,
        };
        Ok(TimedFault { number: self.number, at: duration("at_s", self.at_s)?, blow })
    }
}

/// The deliberate bug of this name, among `all`.
fn bug(key: &'static str, name: &str, all: &[Mutant]) -> Result<Mutant, Unfit> {
    let bug = all.iter().find(|bug| format!("{bug:?}") == name);
    bug.copied().ok_or_else(|| unfit(key, format!("{name:?}"), format!("one of {all:?}")))
}

/// Seconds in a file, exact to the nanosecond.
fn duration(key: &'static str, seconds: f64) -> Result<Duration, Unfit> {
    const MOST_S: f64 = 1e6;
    match (0.0..=MOST_S).contains(&seconds) {
        true => Ok(Duration::from_nanos((seconds * 1e9).round() as u64)),
        false => Err(unfit(key, seconds, "seconds from 0 to 1000000")),
    }
}

/// A seed is a string in a file, because integers of TOML end below 2^63.
fn seed(text: &str) -> Result<u64, Unfit> {
    text.parse()
        .map_err(|_| unfit("seed", format!("{text:?}"), "a number from 0 to 2^64 - 1, quoted"))
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
        write_run(f, &self.options)?;
        for storm in &self.storms {
            writeln!(f, "\n[[storm]]\nstrikes = [")?;
            for strike in &storm.strikes {
                writeln!(f, "  {},", strike_text(strike)?)?;
            }
            writeln!(f, "]")?;
        }
        Ok(())
    }
}

fn write_run(f: &mut std::fmt::Formatter<'_>, options: &Options) -> std::fmt::Result {
    let Options { seed, nodes, gateways, players, plane_groups, scenes, .. } = options;
    writeln!(f, "\n[run]\nseed = \"{seed}\"\nseconds = {}", options.lasts.as_secs())?;
    writeln!(f, "nodes = {nodes}\ngateways = {gateways}\nplayers = {players}")?;
    writeln!(f, "faults = \"{}\"", options.faults)?;
    writeln!(f, "plane_groups = {plane_groups}\nscenes = {scenes}")?;
    if let Some(cap) = options.view_cap {
        writeln!(f, "cap = {cap}")?;
    }
    writeln!(f, "judged = {}\nnpcs = {}", options.judged, options.npcs)?;
    let flags = [
        ("cut", options.cut),
        ("stairs", options.stairs),
        ("portals", options.portals),
        ("walls", options.walls),
        ("balance", options.balance),
    ];
    for (key, on) in flags {
        if on {
            writeln!(f, "{key} = true")?;
        }
    }
    if let Some(logic) = options.logic {
        writeln!(f, "logic = {:?}", logic.name())?;
    }
    if let Some(beat) = options.beat {
        writeln!(f, "beat_ms = {}", beat.as_millis())?;
    }
    match &options.only.players {
        Some(players) => writeln!(f, "only_players = {players:?}"),
        None => Ok(()),
    }
}

fn strike_text(strike: &Strike) -> Result<String, std::fmt::Error> {
    let mut text = String::from("{ ");
    if let Some(over) = strike.over {
        write!(text, "over_s = {:?}, ", over.as_secs_f64())?;
    }
    text += "faults = [";
    for (i, TimedFault { number, at, blow }) in strike.faults.iter().enumerate() {
        let Blow { fault, node, gateway, other, lasts, lost, stores, first, seed } = blow;
        let fault = named().find(|(of, _)| of == fault).map_or("", |(_, name)| name);
        let stores = if *stores { "stores = true, " } else { "" };
        let (comma, at, lasts) =
            (if i > 0 { ", " } else { "" }, at.as_secs_f64(), lasts.as_secs_f64());
        write!(
            text,
            "{comma}{{ at_s = {at:?}, fault = \"{fault}\", number = {number}, node = {node}, \
             gateway = {gateway}, other = {other}, lasts_s = {lasts:?}, lost = {lost}, \
             {stores}first = {first:?}, seed = \"{seed}\" }}"
        )?;
    }
    text += "] }";
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::sim::faults::Fault;

    fn sample() -> Schedule {
        let text = "version = 1\nabout = \"a \\\"quoted\\\" finding\"\nfinds = \"NoFence\"\n[run]\nseed = \"18446744073709551615\"\n\
            seconds = 60\nnodes = 3\ngateways = 2\nplayers = 24\nfaults = \"crash=2,move\"\ncap = 4\ncut = true\nstairs = true\nportals = true\nwalls = true\nbalance = true\n\
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
            ("nodes = 3", "nodes = 91", "nodes = 91: expected a whole number from 1 to 90"),
            ("node = 2", "node = 4", "node = 4: expected one of [1, 2, 3]"),
            ("gateway = 101", "gateway = 3", "gateway = 3: expected one of [100, 101]"),
            ("\"hot-spot\"", "\"boom\"", "fault = \"boom\": expected crash, gateway"),
            ("over_s = 99.999999999", "over_s = -1.0", "over_s = -1: expected seconds from 0"),
            ("at_s = 12.5", "at_s = nan", "at_s = NaN: expected seconds from 0"),
            ("beat_ms = 50", "beat_ms = 30", "beat_ms = 30: expected a divisor"),
            ("npcs = false", "npcs = false\nbeasts = 3", "beasts"),
            ("NoFence", "NoFences", "finds = \"NoFences\": expected one of"),
            (
                "seed = \"18446744073709551615\"",
                "seed = \"-1\"",
                "seed = \"-1\": expected a number",
            ),
        ] {
            let text = good.replacen(from, to, 1);
            assert_ne!(text, good, "{from}");
            let error = Schedule::parse(&text, Path::new("kept.toml")).unwrap_err().to_string();
            assert!(error.contains(named) && error.contains("kept.toml"), "{error}");
        }
    }
}

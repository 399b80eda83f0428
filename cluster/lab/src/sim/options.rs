//! The options of a run: on the command line, in a schedule, and as the command line that repeats a run.

use std::time::Duration;

use clap::{Args, Parser, ValueEnum};
use purview::scene::mutants::Mutant;
use purview_demo::flags::time;
use toml::Value;

use super::faults::Faults;
use crate::args::name;

/// The time between two inputs of a client.
pub(super) const STEP: Duration = Duration::from_millis(200);

/// The options of a run.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct Options {
    /// The seed of the run; the same seed repeats the same run.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The length of the run in virtual time: 90s, 10m, 1h.
    #[arg(long = "for", value_name = "TIME", default_value = "2m", value_parser = time)]
    pub lasts: Duration,
    /// The number of nodes.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=90))]
    pub nodes: u32,
    /// The number of gateways; with 0 each node is a gateway too, as with `purview node --role all`.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(..=90))]
    pub gateways: u32,
    /// The number of clients.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(..=10_000))]
    pub players: u32,
    /// The faults: all, none, or a comma-separated list, with weights if wanted: crash=3,move.
    #[arg(long, default_value = "all")]
    pub faults: Faults,
    /// The greatest number of faults at the same time.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=2))]
    pub at_once: u32,
    /// The capacity of a view list [default: that of the configuration, which no crowd reaches].
    #[arg(long = "cap", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub view_cap: Option<u32>,
    /// The number of plane groups of each scene; each group has regions of its own.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=2))]
    pub plane_groups: u32,
    /// The number of scenes, between which players teleport.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=2))]
    pub scenes: u32,
    /// Judge moves: clients send move commands instead of positions.
    #[arg(long)]
    pub judged: bool,
    /// Let the edge of each scene cut its last lands.
    #[arg(long)]
    pub cut: bool,
    /// Let heights count: clients climb stairs.
    #[arg(long, conflicts_with_all = ["judged", "npcs", "logic"])]
    pub stairs: bool,
    /// Give the scenes portals, into which clients walk.
    #[arg(long, requires = "judged")]
    pub portals: bool,
    /// Let the leader balance loads: ticks cost what the players and ghosts of a region say.
    #[arg(long)]
    pub balance: bool,
    /// Give the scenes walls along the borders of regions: entities that block the way, as NPCs then do.
    #[arg(long, requires = "judged", conflicts_with = "logic")]
    pub walls: bool,
    /// Add demo NPCs, which server logic spawns and moves.
    #[arg(long)]
    pub npcs: bool,
    /// Let the regions run the rules of a game, which the judge knows; clients play it.
    #[arg(long, value_enum, value_name = "GAME")]
    pub logic: Option<Logic>,
    /// Let all clients send their inputs at the same moments, so many milliseconds apart, instead of each at its own: the
    /// simulation runs faster.
    #[arg(long, value_name = "MS", value_parser = beat)]
    pub beat: Option<Duration>,
    /// End the run before this step.
    #[arg(long)]
    pub until: Option<u64>,
    /// Print each step.
    #[arg(long)]
    pub trace: bool,
    /// The deliberate bug to run with.
    #[arg(skip)]
    pub mutant: Option<Mutant>,
    #[command(flatten)]
    pub only: Only,
}

/// The faults and players that a run keeps. The random draws are the same as those of the full run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
pub struct Only {
    /// Apply only the faults with these numbers: 0,3,17, or none.
    #[arg(id = "only_faults", long = "only-faults", value_name = "NUMBERS", value_parser = numbers)]
    pub faults: Option<std::vec::Vec<u32>>,
    /// Run only the clients with these numbers: 0,3,17, or none.
    #[arg(id = "only_players", long = "only-players", value_name = "NUMBERS", value_parser = numbers)]
    pub players: Option<std::vec::Vec<u32>>,
}

impl Only {
    pub fn fault(&self, number: u32) -> bool {
        self.faults.as_ref().is_none_or(|some| some.contains(&number))
    }

    pub fn player(&self, number: u32) -> bool {
        self.players.as_ref().is_none_or(|some| some.contains(&number))
    }
}

/// Parses the interval of common inputs, milliseconds.
fn beat(text: &str) -> Result<Duration, String> {
    let step = STEP.as_millis() as u64;
    let ms = text.parse().ok().filter(|ms| *ms > 0 && step.is_multiple_of(*ms));
    let want = || {
        format!("expected a divisor of the {step} ms between two inputs of a client, such as 50")
    };
    ms.map(Duration::from_millis).ok_or_else(want)
}

fn numbers(text: &str) -> Result<Vec<u32>, String> {
    if text == "none" {
        return Ok(Vec::new());
    }
    let number = |word: &str| {
        word.trim().parse().map_err(|_| {
            format!("{word:?} is not a number: expected a list such as 0,3,17, or none")
        })
    };
    text.split(',').map(number).collect()
}

/// A game whose rules the regions of a run have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Logic {
    /// The example game `hunt`: `docs/contributing/simulation.md` says what the judge knows of it.
    Hunt,
    /// The rules of logic workers, which are killed and silenced, too.
    Workers,
    /// Every region tells players and groups numbered messages.
    Messages,
    /// No rules: three clients at a time log in as one subject, whose player has a value that each raises.
    Sessions,
    /// The same, and players linger after their clients are gone.
    Linger,
    /// Things stand and walk about, and every region limits and frees how far players are shown them.
    Sights,
}

impl Logic {
    /// Whether several clients have one subject.
    pub fn shares_subjects(self) -> bool {
        matches!(self, Logic::Sessions | Logic::Linger)
    }

    /// Whether scenes have the kinds of `hunt`.
    pub fn is_game(self) -> bool {
        matches!(self, Logic::Hunt | Logic::Workers)
    }
}

/// A command line of nothing but options.
#[derive(Parser)]
struct Line {
    #[command(flatten)]
    options: Options,
}

impl Default for Options {
    fn default() -> Options {
        Line::parse_from(["sim"]).options
    }
}

impl Options {
    /// Reads the keys of a schedule.
    pub fn read(keys: &toml::Table) -> Result<Options, clap::Error> {
        let words = keys.iter().filter_map(|(key, value)| {
            let (flag, value) = flag(key, value)?;
            Some(value.map_or(flag.clone(), |value| format!("{flag}={value}")))
        });
        Ok(Line::try_parse_from(std::iter::once("sim".into()).chain(words))?.options)
    }

    /// The options that differ from the defaults, and the most important ones, as in a schedule.
    pub fn keys(&self) -> Vec<(&'static str, Value)> {
        let number = |n: u32| Value::Integer(n.into());
        let numbers = |all: &Vec<u32>| Value::Array(all.iter().map(|n| number(*n)).collect());
        let seconds = Value::Integer(self.lasts.as_secs() as i64);
        // Integers of TOML end below 2^63.
        let mut keys = vec![("seed", Value::String(self.seed.to_string())), ("seconds", seconds)];
        let numbers_of =
            [("nodes", self.nodes), ("gateways", self.gateways), ("players", self.players)];
        keys.extend(numbers_of.map(|(key, n)| (key, number(n))));
        keys.push(("faults", Value::String(self.faults.to_string())));
        let rare = [
            ("at_once", self.at_once, 2),
            ("plane_groups", self.plane_groups, 1),
            ("scenes", self.scenes, 1),
        ];
        let rare = rare.into_iter().filter(|(_, n, usual)| n != usual);
        keys.extend(rare.map(|(key, n, _)| (key, number(n))));
        let flags = [
            ("judged", self.judged),
            ("cut", self.cut),
            ("stairs", self.stairs),
            ("portals", self.portals),
            ("walls", self.walls),
            ("balance", self.balance),
            ("npcs", self.npcs),
        ];
        keys.extend(flags.into_iter().filter(|(_, on)| *on).map(|(key, on)| (key, on.into())));
        let some = [
            ("cap", self.view_cap.map(number)),
            ("logic", self.logic.map(|logic| name(&logic).into())),
            ("beat_ms", self.beat.map(|beat| Value::Integer(beat.as_millis() as i64))),
            ("only_faults", self.only.faults.as_ref().map(numbers)),
            ("only_players", self.only.players.as_ref().map(numbers)),
        ];
        keys.extend(some.into_iter().filter_map(|(key, value)| Some((key, value?))));
        keys
    }

    /// The flags for those keys that `which` chooses, with a space before each.
    pub fn flags(&self, which: impl Fn(&str) -> bool) -> String {
        let keys = self.keys().into_iter().filter(|(key, _)| which(key));
        let words = keys.filter_map(|(key, value)| {
            let (flag, value) = flag(key, &value)?;
            Some(value.map_or(format!(" {flag}"), |value| format!(" {flag} {value}")))
        });
        words.collect()
    }
}

/// A key of a schedule on the command line: the flag and its value.
fn flag(key: &str, value: &Value) -> Option<(String, Option<String>)> {
    let (name, unit) = match key {
        "seconds" => ("for", "s"),
        "beat_ms" => ("beat", ""),
        key => (key, ""),
    };
    let value = match value {
        Value::Boolean(false) => return None,
        Value::Boolean(true) => None,
        Value::Array(none) if none.is_empty() => Some("none".to_owned()),
        Value::Array(some) => Some(some.iter().map(Value::to_string).collect::<Vec<_>>().join(",")),
        Value::String(text) => Some(text.clone()),
        other => Some(format!("{other}{unit}")),
    };
    Some((format!("--{}", name.replace('_', "-")), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beat_divides_the_step_of_a_client() {
        assert_eq!(beat("50"), Ok(Duration::from_millis(50)));
        assert_eq!(beat("200"), Ok(Duration::from_millis(200)));
        for wrong in ["0", "30", "400", "-50", "50ms", ""] {
            assert!(beat(wrong).unwrap_err().contains("such as 50"), "{wrong}");
        }
    }
}

//! `purview sim`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use purview::scene::mutants::Mutant;
use serde_json::json;

use purview_lab::sim::client::{beat_of, beat_rule};
use purview_lab::sim::faults::Faults;
use purview_lab::sim::report::{again, in_words_by, only};
use purview_lab::sim::schedule::{Schedule, Storm};
use purview_lab::sim::{Only, Options, Outcome, mutation, shrink, simulate_by};
use purview_server::config::LogSettings;

/// `purview sim`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    purview sim --seed 7 --for 10m --nodes 5 --players 300 --faults all\n  \
    purview sim --seed 7 --faults crash,move --until 48210 --trace\n\n\
    Exits with 0 when nothing was found, or with 1, what was found, and the steps that led there.")]
pub struct SimArgs {
    /// From which everything follows; the same again is the same run.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// How many seeds, one after the other.
    #[arg(long, default_value_t = 1)]
    pub seeds: u64,
    /// For how long, in the clock of the simulation: 90s, 10m, 1h.
    #[arg(long = "for", value_name = "TIME", default_value = "2m", value_parser = time)]
    pub lasts: Duration,
    /// Nodes.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=90))]
    pub nodes: u32,
    /// Gateways; with 0 each node is one, too, as with `purview node --gateway`.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(..=90))]
    pub gateways: u32,
    /// Clients.
    #[arg(long, default_value_t = 100)]
    pub players: u32,
    /// What is done to it: all, none, or a list, with how often each comes for one of another kind: crash=3,move.
    #[arg(long, default_value = "all")]
    pub faults: Faults,
    /// How many faults there may be at once.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=2))]
    pub at_once: u32,
    /// Most players in a view list; without it as many as a configuration has by default, which is more than there are near.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub cap: Option<u32>,
    /// In how many groups of planes the scene is cut, each with regions of its own.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=2))]
    pub plane_groups: u32,
    /// How many scenes there are, between which players jump.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=2))]
    pub scenes: u32,
    /// Judge moves: players say how they walk, and not where they are.
    #[arg(long)]
    pub judged: bool,
    /// Let beasts roam the scene, as server logic makes them and moves them.
    #[arg(long)]
    pub fauna: bool,
    /// Let clients speak together, at every so many milliseconds, and not each at a time of its own: more virtual seconds for
    /// a second of a core.
    #[arg(long, value_name = "MS", value_parser = beat)]
    pub beat: Option<Duration>,
    /// End before this step.
    #[arg(long)]
    pub until: Option<u64>,
    /// Print every step as it happens.
    #[arg(long)]
    pub trace: bool,
    /// Do only these of its faults, by their numbers: 0,3,17.
    #[arg(long, value_name = "NUMBERS", value_parser = numbers)]
    pub only_faults: Option<Numbers>,
    /// Let only these of its clients play, by their numbers.
    #[arg(long, value_name = "NUMBERS", value_parser = numbers)]
    pub only_players: Option<Numbers>,
    /// Where something is found, leave out faults and players for as long as it still is, and print the smallest run.
    #[arg(long)]
    pub shrink: bool,
    /// Write the faults of the run to this file, with their times and targets; with --shrink those of the smallest run.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seeds", "mutants"])]
    pub record: Option<PathBuf>,
    /// What the run shows, in one sentence, for the file that --record writes.
    #[arg(long, value_name = "TEXT", requires = "record", default_value = "")]
    pub about: String,
    /// Run the faults that this file holds, on the cluster that it describes.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seed", "seeds", "lasts", "nodes", "gateways",
        "players", "faults", "at_once", "cap", "plane_groups", "scenes", "judged", "fauna", "beat", "mutants"])]
    pub schedule: Option<PathBuf>,
    /// Try deliberate bugs, one after the other, and print which of the seeds finds which: all, or a list of their names;
    /// only in builds with debug assertions.
    #[arg(long, value_name = "NAMES", num_args = 0..=1, default_missing_value = "all", value_parser = mutants)]
    pub mutants: Option<Mutants>,
    /// Log what processes say at this level, for example warn; not at all without it.
    #[arg(long, value_name = "LEVEL")]
    pub log: Option<String>,
    /// Print one JSON object for each seed instead.
    #[arg(long)]
    pub json: bool,
}

/// Numbers, or none.
#[derive(Debug, Clone)]
pub struct Numbers(Vec<u32>);

/// Deliberate bugs.
#[derive(Debug, Clone)]
pub struct Mutants(Vec<Mutant>);

fn mutants(text: &str) -> Result<Mutants, String> {
    mutation::named(text).map(Mutants)
}

fn numbers(text: &str) -> Result<Numbers, String> {
    if text == "none" {
        return Ok(Numbers(Vec::new()));
    }
    let number = |word: &str| {
        word.trim().parse().map_err(|_| format!("{word:?} is no number: write 0,3,17, or none"))
    };
    text.split(',').map(number).collect::<Result<_, _>>().map(Numbers)
}

/// What clients' steps are a multiple of, so that they stay on the beat.
fn beat(text: &str) -> Result<Duration, String> {
    let ms = text.parse().map_err(|_| format!("{text:?} is no beat: write {}", beat_rule()))?;
    beat_of(ms).map_err(|rule| format!("{text:?} is no beat: write {rule}"))
}

fn time(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no time: write 90s, 10m or 1h");
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let unit = match &text[digits.len()..] {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        _ => return Err(wrong()),
    };
    number.checked_mul(unit).map(Duration::from_secs).ok_or_else(wrong)
}

impl SimArgs {
    /// What holds beside a schedule: what is left out, and how the run is shown.
    fn narrow(&self, options: &mut Options) {
        let some = |numbers: &Option<Numbers>| numbers.as_ref().map(|numbers| numbers.0.clone());
        (options.until, options.trace) = (self.until, self.trace);
        options.only.faults = some(&self.only_faults);
        options.only.players = some(&self.only_players).or(options.only.players.take());
    }

    fn options(&self, seed: u64) -> Options {
        let (lasts, nodes, gateways, players) =
            (self.lasts, self.nodes, self.gateways, self.players);
        let (faults, at_once, view_cap) = (self.faults.clone(), self.at_once, self.cap);
        let plane_groups = self.plane_groups;
        let (until, trace, mutant) = (self.until, self.trace, None);
        let some = |numbers: &Option<Numbers>| numbers.as_ref().map(|numbers| numbers.0.clone());
        let only = Only { faults: some(&self.only_faults), players: some(&self.only_players) };
        Options {
            seed,
            lasts,
            nodes,
            gateways,
            players,
            faults,
            at_once,
            view_cap,
            plane_groups,
            scenes: self.scenes,
            judged: self.judged,
            fauna: self.fauna,
            beat: self.beat,
            until,
            trace,
            mutant,
            only,
        }
    }
}

/// Runs `purview sim` to its end.
///
/// # Errors
/// The system gives no runtime, or no output.
pub fn run_sim(args: &SimArgs) -> anyhow::Result<u8> {
    let init = |level| purview_server::logs::init(&LogSettings { level, ..LogSettings::default() });
    let _logs = args.log.clone().map(init).transpose()?;
    if let Some(Mutants(mutants)) = &args.mutants {
        return mutation::run(&args.options(args.seed), mutants, args.seeds);
    }
    let mut found = false;
    if let Some(file) = &args.schedule {
        let mut schedule = Schedule::read(file)?;
        args.narrow(&mut schedule.options);
        let again = format!("purview sim --schedule {}", file.display());
        return Ok(u8::from(run_one(args, &schedule.options, Some(&schedule.storms), &again)?));
    }
    for seed in args.seed..args.seed.saturating_add(args.seeds) {
        let options = args.options(seed);
        found |= run_one(args, &options, None, &again(&options))?;
    }
    Ok(u8::from(found))
}

/// Simulates once and prints the outcome; whether something was found.
fn run_one(
    args: &SimArgs,
    options: &Options,
    recorded: Option<&[Storm]>,
    again: &str,
) -> anyhow::Result<bool> {
    let outcome = simulate_by(options, recorded)?;
    match args.json {
        true => println!("{}", in_json(options, &outcome, again)),
        false => print!("{}", in_words_by(options, &outcome, again)),
    }
    let found = outcome.violation.is_some();
    let shrunk = match args.shrink && found {
        true => print_shrunk(options, recorded, args.json)?,
        false => None,
    };
    if let Some(file) = &args.record {
        let (options, storms) = match shrunk {
            Some(smallest) => {
                let storms = simulate_by(&smallest, recorded)?.storms;
                (smallest, storms)
            }
            None => (options.clone(), outcome.storms),
        };
        let (about, finds, withstands) = (args.about.clone(), None, None);
        Schedule { about, finds, withstands, options, storms }.write(file)?;
    }
    Ok(found)
}

/// Prints the smallest run that was found to break the same invariant, and returns its options.
fn print_shrunk(
    options: &Options,
    recorded: Option<&[Storm]>,
    json: bool,
) -> anyhow::Result<Option<Options>> {
    let shrunk = shrink::shrink(options, recorded, |step| eprintln!("{step}"))?;
    let Some(shrunk) = shrunk else { return Ok(None) };
    let ((faults, all_faults), (players, all_players)) = (shrunk.faults, shrunk.players);
    let again = match recorded {
        Some(_) => only(&shrunk.options),
        None => again(&shrunk.options),
    };
    match json {
        true => {
            let shrunk = json!({ "faults": faults, "players": players, "runs": shrunk.runs, "again": again });
            println!("{}", json!({ "shrunk": shrunk }));
        }
        false => println!(
            "after {} runs {faults} of {all_faults} faults and {players} of {all_players} players are left: {again}",
            shrunk.runs
        ),
    }
    Ok(Some(shrunk.options))
}

fn in_json(options: &Options, outcome: &Outcome, again: &str) -> serde_json::Value {
    let violation = outcome.violation.as_ref().map(|(violation, steps)| {
        json!({
            "invariant": format!("{:?}", violation.invariant),
            "step": violation.step,
            "at_s": violation.at.as_secs_f64(),
            "text": violation.text,
            "who": violation.who.iter().map(|id| id.0).collect::<Vec<_>>(),
            "last": steps.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
    });
    json!({
        "seed": options.seed,
        "hash": format!("{:016x}", outcome.hash),
        "steps": outcome.steps,
        "virtual_s": outcome.virtual_time.as_secs_f64(),
        "core_s": outcome.core_time.as_secs_f64(),
        "frames": outcome.frames,
        "inputs": outcome.inputs,
        "bytes": outcome.bytes,
        "rests": outcome.rests,
        "violation": violation,
        "again": again,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beat_is_a_part_of_a_clients_step() {
        assert_eq!(beat("50"), Ok(Duration::from_millis(50)));
        assert_eq!(beat("200"), Ok(Duration::from_millis(200)));
        for wrong in ["0", "30", "400", "-50", "50ms", ""] {
            let told = beat(wrong).unwrap_err();
            assert!(told.contains(wrong) && told.contains("such as 50"), "{told}");
        }
    }
}

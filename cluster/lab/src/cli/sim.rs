//! `purview-lab sim`: simulates a cluster in one thread and checks its invariants, as
//! `docs/contributing/simulation.md` explains.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use purview::scene::mutants::Mutant;
use serde_json::json;

use purview_demo::flags::time;
use purview_lab::sim::client::{beat_of, beat_rule};
use purview_lab::sim::faults::Faults;
use purview_lab::sim::mutation::Runs;
use purview_lab::sim::report::{again, in_words_by, only};
use purview_lab::sim::schedule::{Schedule, Storm};
use purview_lab::sim::{Logic, Only, Options, Outcome, mutation, shrink, simulate_by};
use purview_server::config::LogSettings;

/// `purview-lab sim`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    purview-lab sim --seed 7 --for 10m --nodes 5 --players 300 --faults all\n  \
    purview-lab sim --seed 7 --faults crash,move --until 48210 --trace\n\n\
    Exit codes: 0 no violation, 1 failed, or a violation (printed with the steps before it), 2 invalid command line.")]
pub struct SimArgs {
    /// The seed of the run; the same seed repeats the same run.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The number of seeds to run, one after the other.
    #[arg(long, default_value_t = 1)]
    pub seeds: u64,
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
    #[arg(long, default_value_t = 100)]
    pub players: u32,
    /// The faults: all, none, or a comma-separated list, with weights if wanted: crash=3,move.
    #[arg(long, default_value = "all")]
    pub faults: Faults,
    /// The greatest number of faults at the same time.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=2))]
    pub at_once: u32,
    /// The capacity of a view list [default: that of the configuration, which no crowd reaches].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub cap: Option<u32>,
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
    /// Apply only the faults with these numbers: 0,3,17, or none.
    #[arg(long, value_name = "NUMBERS", value_parser = numbers)]
    pub only_faults: Option<Numbers>,
    /// Run only the clients with these numbers: 0,3,17, or none.
    #[arg(long, value_name = "NUMBERS", value_parser = numbers)]
    pub only_players: Option<Numbers>,
    /// On a violation, remove faults and clients as long as it still occurs, and print the smallest run.
    #[arg(long)]
    pub shrink: bool,
    /// Write the faults of the run, with their times and targets, to this schedule file; with --shrink those of the smallest run.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seeds", "mutants"])]
    pub record: Option<PathBuf>,
    /// One sentence for the file of --record: what the run shows.
    #[arg(long, value_name = "TEXT", requires = "record", default_value = "")]
    pub about: String,
    /// Run the schedule in this file: its cluster and its faults.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seed", "seeds", "lasts", "nodes", "gateways",
        "players", "faults", "at_once", "cap", "plane_groups", "scenes", "judged", "cut", "stairs", "portals", "walls",
        "balance", "npcs", "logic", "beat"])]
    pub schedule: Option<PathBuf>,
    /// Run the seeds with deliberate bugs (mutants), one after the other, and print which seed finds which bug: all, game
    /// (those that show only with --logic hunt), workers, messages, or a list of names; only in builds with debug assertions.
    #[arg(long, value_name = "NAMES", num_args = 0..=1, default_missing_value = "all", value_parser = mutants)]
    pub mutants: Option<Mutants>,
    /// With --mutants: write the smallest run that finds each bug to this folder, as NAME.toml.
    #[arg(long, value_name = "FOLDER", requires = "mutants")]
    pub smallest: Option<PathBuf>,
    /// The log level of the simulated processes, for example warn [default: no log].
    #[arg(long, value_name = "LEVEL")]
    pub log: Option<String>,
    /// Print one JSON object for each seed.
    #[arg(long)]
    pub json: bool,
}

/// A list of numbers, which may be empty.
#[derive(Debug, Clone)]
pub struct Numbers(Vec<u32>);

/// A list of deliberate bugs.
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
        word.trim().parse().map_err(|_| {
            format!("{word:?} is not a number: expected a list such as 0,3,17, or none")
        })
    };
    text.split(',').map(number).collect::<Result<_, _>>().map(Numbers)
}

/// The common interval of the clients' inputs.
fn beat(text: &str) -> Result<Duration, String> {
    let ms =
        text.parse().map_err(|_| format!("{text:?} is not a beat: expected {}", beat_rule()))?;
    beat_of(ms).map_err(|rule| format!("{text:?} is not a beat: expected {rule}"))
}

impl SimArgs {
    /// Applies the flags that may stand beside a schedule.
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
            cut: self.cut,
            stairs: self.stairs,
            portals: self.portals,
            balance: self.balance,
            walls: self.walls,
            npcs: self.npcs,
            logic: self.logic,
            beat: self.beat,
            until,
            trace,
            mutant,
            only,
        }
    }
}

/// Runs `purview-lab sim`; the exit code is 1 when a violation was found.
///
/// # Errors
/// The schedule cannot be read, or the result cannot be written.
pub fn run_sim(args: &SimArgs) -> anyhow::Result<u8> {
    let init = |level| purview_server::logs::init(&LogSettings { level, ..LogSettings::default() });
    let _logs = args.log.clone().map(init).transpose()?;
    let mut found = false;
    if let Some(file) = &args.schedule {
        let mut schedule = Schedule::read(file)?;
        args.narrow(&mut schedule.options);
        if let Some(Mutants(mutants)) = &args.mutants {
            let runs = Runs::Recorded(schedule.options, schedule.storms);
            return mutation::run(mutants, &runs, args.smallest.as_deref());
        }
        let again = format!("purview-lab sim --schedule {}", file.display());
        return Ok(u8::from(run_one(args, &schedule.options, Some(&schedule.storms), &again)?));
    }
    if let Some(Mutants(mutants)) = &args.mutants {
        let runs = Runs::Seeds(args.options(args.seed), args.seeds);
        return mutation::run(mutants, &runs, args.smallest.as_deref());
    }
    for seed in args.seed..args.seed.saturating_add(args.seeds) {
        let options = args.options(seed);
        found |= run_one(args, &options, None, &again(&options))?;
    }
    Ok(u8::from(found))
}

/// Simulates once, prints the outcome, and returns whether a violation was found.
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

/// Prints the smallest run that violates the same invariant, and returns its options.
fn print_shrunk(
    options: &Options,
    recorded: Option<&[Storm]>,
    json: bool,
) -> anyhow::Result<Option<Options>> {
    let shrunk =
        shrink::shrink(options, recorded, (shrink::MOST_RUNS, |step| eprintln!("{step}")))?;
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
            "shrunk in {} runs to {faults} of {all_faults} faults and {players} of {all_players} players: {again}",
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
    fn a_beat_divides_the_step_of_a_client() {
        assert_eq!(beat("50"), Ok(Duration::from_millis(50)));
        assert_eq!(beat("200"), Ok(Duration::from_millis(200)));
        for wrong in ["0", "30", "400", "-50", "50ms", ""] {
            let told = beat(wrong).unwrap_err();
            assert!(told.contains(wrong) && told.contains("such as 50"), "{told}");
        }
    }
}

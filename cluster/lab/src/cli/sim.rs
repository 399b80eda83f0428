//! `purview-lab sim`: simulates a cluster in one thread and checks its invariants, as
//! `docs/contributing/simulation.md` explains.

use std::path::PathBuf;

use clap::Args;
use purview::scene::mutants::Mutant;
use serde_json::json;

use purview_lab::sim::mutation::Runs;
use purview_lab::sim::report::{again, in_words_by};
use purview_lab::sim::schedule::{Schedule, Storm};
use purview_lab::sim::{Options, Outcome, mutation, shrink, simulate_by};
use purview_server::config::LogSettings;

/// `purview-lab sim`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    purview-lab sim --seed 7 --for 10m --nodes 5 --players 300 --faults all\n  \
    purview-lab sim --seed 7 --faults crash,move --until 48210 --trace\n\n\
    Exit codes: 0 no violation, 1 failed, or a violation (printed with the steps before it), 2 invalid command line.")]
pub struct SimArgs {
    #[command(flatten)]
    pub run: Options,
    /// The number of seeds to run, one after the other.
    #[arg(long, default_value_t = 1)]
    pub seeds: u64,
    /// Draw faults, logic, scenes, NPCs and the rest of a run's shape by its seed, so that seeds in a row are a pairwise
    /// sample; nodes, players and time are those of the command line.
    #[arg(long, conflicts_with_all = ["faults", "at_once", "view_cap", "plane_groups", "scenes", "judged", "cut", "stairs",
        "portals", "walls", "balance", "npcs", "logic", "beat", "mutants", "schedule"])]
    pub sample: bool,
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
        "players", "faults", "at_once", "view_cap", "plane_groups", "scenes", "judged", "cut", "stairs", "portals", "walls",
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

/// A list of deliberate bugs.
#[derive(Debug, Clone)]
pub struct Mutants(Vec<Mutant>);

fn mutants(text: &str) -> Result<Mutants, String> {
    mutation::named(text).map(Mutants)
}

/// Runs `purview-lab sim`; the exit code is 1 when a violation was found.
pub fn run_sim(args: &SimArgs) -> anyhow::Result<u8> {
    let init = |level| purview_server::logs::init(&LogSettings { level, ..LogSettings::default() });
    let _logs = args.log.clone().map(init).transpose()?;
    let mut found = false;
    if let Some(file) = &args.schedule {
        let mut schedule = Schedule::read(file)?;
        let (run, options) = (&args.run, &mut schedule.options);
        (options.until, options.trace) = (run.until, run.trace);
        options.only.faults = run.only.faults.clone();
        options.only.players = run.only.players.clone().or(options.only.players.take());
        if let Some(Mutants(mutants)) = &args.mutants {
            let runs = Runs::Recorded(schedule.options, schedule.storms);
            return mutation::run(mutants, &runs, args.smallest.as_deref());
        }
        let again = format!("purview-lab sim --schedule {}", file.display());
        return Ok(u8::from(run_one(args, &schedule.options, Some(&schedule.storms), &again)?));
    }
    if let Some(Mutants(mutants)) = &args.mutants {
        let runs = Runs::Seeds(args.run.clone(), args.seeds);
        return mutation::run(mutants, &runs, args.smallest.as_deref());
    }
    let first = args.run.seed;
    for seed in first..first.saturating_add(args.seeds) {
        let options = Options { seed, ..args.run.clone() };
        let options = if args.sample { options.sampled() } else { options };
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
        Some(_) => shrunk.options.flags(|key| key.starts_with("only")),
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
        "regions": outcome.regions,
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

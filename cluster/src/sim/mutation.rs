//! Deliberate bugs: which of them the simulation finds, and with which seed.

use anyhow::bail;
use purview::scene::mutants::{self, Mutant};

use super::{Options, simulate};

/// What became of a deliberate bug.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// Which.
    pub mutant: Mutant,
    /// The seed that found it, after how many tried, and the invariant that it broke.
    pub found: Option<(u64, usize, String)>,
}

/// Tries each bug on these seeds, all of which find nothing without it.
///
/// # Errors
/// Nothing can be simulated.
pub fn try_all(
    options: &Options,
    seeds: &[u64],
    mut tell: impl FnMut(&Trial),
) -> anyhow::Result<Vec<Trial>> {
    let mut trials = Vec::new();
    for mutant in mutants::ALL {
        let mut found = None;
        for (tried, seed) in seeds.iter().enumerate() {
            let options = Options { seed: *seed, mutant: Some(mutant), ..options.clone() };
            if let Some((violation, _)) = simulate(&options)?.violation {
                found = Some((*seed, tried + 1, format!("{:?}", violation.invariant)));
                break;
            }
        }
        let trial = Trial { mutant, found };
        tell(&trial);
        trials.push(trial);
    }
    Ok(trials)
}

/// Runs `purview sim --mutants`: prints the table of `docs/simulation.md`. The exit code says whether all were found.
///
/// # Errors
/// This build has no deliberate bugs, or nothing can be simulated.
pub fn run(options: &Options, most: u64) -> anyhow::Result<u8> {
    if !mutants::exist() {
        bail!(
            "this build has no deliberate bugs: they want debug assertions (cargo run, not --release)"
        );
    }
    let mut seeds = Vec::new();
    for seed in options.seed..options.seed.saturating_add(most) {
        match simulate(&Options { seed, ..options.clone() })?.violation {
            None => seeds.push(seed),
            Some((violation, _)) => eprintln!("seed {seed} is left out: {violation}"),
        }
    }
    println!(
        "| deliberate bug | found by seed | seeds tried | what it breaks |\n|---|---|---|---|"
    );
    let trials = try_all(options, &seeds, |trial| {
        let Trial { mutant, found } = trial;
        match found {
            Some((seed, tried, what)) => println!("| {mutant:?} | {seed} | {tried} | `{what}` |"),
            None => println!("| {mutant:?} | none | {} | |", seeds.len()),
        }
    })?;
    Ok(u8::from(trials.iter().any(|trial| trial.found.is_none())))
}

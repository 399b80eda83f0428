//! Mutation testing: which deliberate bugs the simulation finds, and with which seed.

use anyhow::bail;
use purview::scene::mutants::{self, Mutant};

use super::{Options, simulate};

/// The result for a deliberate bug.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The bug.
    pub mutant: Mutant,
    /// The seed that found it, the number of seeds tried, and the violated invariant.
    pub found: Option<(u64, usize, String)>,
}

/// Runs each bug with one seed after the other, until a seed finds a violation with the bug but none without it.
///
/// # Errors
/// A run cannot start.
pub fn try_all(
    options: &Options,
    (mutants, most): (&[Mutant], u64),
    mut tell: impl FnMut(&Trial),
) -> anyhow::Result<Vec<Trial>> {
    let mut trials = Vec::new();
    for mutant in mutants {
        let mutant = *mutant;
        let (mut found, mut tried) = (None, 0);
        for seed in options.seed..options.seed.saturating_add(most) {
            let sound = Options { seed, ..options.clone() };
            let options = Options { mutant: Some(mutant), ..sound.clone() };
            tried += 1;
            let Some((violation, _)) = simulate(&options)?.violation else { continue };
            if let Some((other, _)) = simulate(&sound)?.violation {
                eprintln!(
                    "seed {seed} is skipped, because it finds a violation without a deliberate bug: {other}"
                );
                continue;
            }
            found = Some((seed, tried, format!("{:?}", violation.invariant)));
            break;
        }
        let trial = Trial { mutant, found };
        tell(&trial);
        trials.push(trial);
    }
    Ok(trials)
}

/// Runs `purview sim --mutants`: prints the table of `docs/simulation.md`. The exit code says whether every bug was
/// found.
///
/// # Errors
/// This build contains no deliberate bugs, or a run cannot start.
pub fn run(options: &Options, mutants: &[Mutant], most: u64) -> anyhow::Result<u8> {
    if !mutants::exist() {
        bail!(
            "this build has no deliberate bugs: they want debug assertions (cargo run, not --release)"
        );
    }
    println!("| deliberate bug | found by seed | seeds tried | invariant |\n|---|---|---|---|");
    let trials = try_all(options, (mutants, most), |trial| {
        let Trial { mutant, found } = trial;
        match found {
            Some((seed, tried, what)) => println!("| {mutant:?} | {seed} | {tried} | `{what}` |"),
            None => println!("| {mutant:?} | none | {most} | |"),
        }
    })?;
    Ok(u8::from(trials.iter().any(|trial| trial.found.is_none())))
}

/// Parses `all`, `game`, `workers`, `messages`, `sessions`, or names of [`Mutant`]s.
///
/// # Errors
/// A name is unknown; the text lists the known ones.
pub fn named(text: &str) -> Result<Vec<Mutant>, String> {
    if text == "all" {
        return Ok(mutants::ALL.to_vec());
    }
    if text == "game" {
        return Ok(mutants::GAME.to_vec());
    }
    if text == "workers" {
        return Ok(mutants::WORKERS.to_vec());
    }
    if text == "messages" {
        return Ok(mutants::MESSAGES.to_vec());
    }
    if text == "sessions" {
        return Ok(mutants::SESSIONS.to_vec());
    }
    let name = |mutant: &Mutant| format!("{mutant:?}");
    let of_logic = || {
        mutants::GAME
            .iter()
            .chain(&mutants::WORKERS)
            .chain(&mutants::MESSAGES)
            .chain(&mutants::SESSIONS)
    };
    let known = || mutants::ALL.iter().chain(of_logic());
    let one = |word: &str| {
        known().find(|mutant| name(mutant) == word).copied().ok_or_else(|| {
            let all: Vec<String> = known().map(name).collect();
            format!(
                "{word:?} is not a deliberate bug: expected all, game, workers, messages, sessions, or a list of {}",
                all.join(",")
            )
        })
    };
    text.split(',').map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deliberate_bugs_are_parsed_by_name() {
        assert_eq!(named("all").unwrap().len(), mutants::ALL.len());
        assert_eq!(named("NoMarks,AnyEpoch").unwrap(), [Mutant::NoMarks, Mutant::AnyEpoch]);
        let error = named("NoMarks,None").unwrap_err();
        assert!(error.contains("\"None\"") && error.contains("AnyNumber,"), "{error}");
    }
}

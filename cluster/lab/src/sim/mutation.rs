//! Mutation testing: which deliberate bugs the simulation finds, and the smallest run that finds each.

use std::path::Path;

use anyhow::bail;
use purview::scene::mutants::{self, Mutant, every};

use super::schedule::{Schedule, Storm};
use super::shrink::shrink;
use super::{Options, simulate_by};

/// The greatest number of runs by which a run that finds a bug is made smaller.
const SHRINK_RUNS: usize = 80;

#[derive(Debug, Clone)]
pub enum Runs {
    Seeds(Options, u64),
    Recorded(Options, Vec<Storm>),
}

#[derive(Debug)]
pub struct Trial {
    pub mutant: Mutant,
    /// The seed that found it, the number of runs tried, and the violated invariant.
    pub found: Option<(u64, usize, String)>,
    /// The smallest run that was found, if it was looked for.
    pub smallest: Option<Schedule>,
}

/// Runs each of `bugs` until a run finds a violation with the bug but none without it; `found` gets each result. A
/// bug is tried on a seed only if the sound run of that seed comes to a place where the bug makes a difference. With
/// `shrinks` the run that finds it is made smaller.
pub fn attempt(
    bugs: &[Mutant],
    runs: &Runs,
    shrinks: bool,
    mut found: impl FnMut(Trial) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let (options, most, storms) = match runs {
        Runs::Seeds(options, most) => (options, *most, None),
        Runs::Recorded(options, storms) => (options, 1, Some(&storms[..])),
    };
    let mut open: Vec<(Mutant, usize)> = bugs.iter().map(|bug| (*bug, 0)).collect();
    for seed in options.seed..options.seed.saturating_add(most) {
        if open.is_empty() {
            break;
        }
        let sound = Options { seed, mutant: None, ..options.clone() };
        drop(mutants::take_reached());
        let outcome = simulate_by(&sound, storms)?;
        let reached = mutants::take_reached();
        if let Some((other, _)) = outcome.violation {
            eprintln!("seed {seed} is skipped: it violates {other} without a deliberate bug");
            continue;
        }
        let mut left = Vec::new();
        for (mutant, tried) in std::mem::take(&mut open) {
            if !reached(mutant) {
                left.push((mutant, tried));
                continue;
            }
            match try_one(mutant, &sound, storms, shrinks)? {
                Some((invariant, smallest)) => {
                    found(Trial { mutant, found: Some((seed, tried + 1, invariant)), smallest })?;
                }
                None => left.push((mutant, tried + 1)),
            }
        }
        open = left;
    }
    open.into_iter().try_for_each(|(mutant, tried)| {
        eprintln!("{mutant:?} makes a difference in {tried} of the runs, and none finds it");
        found(Trial { mutant, found: None, smallest: None })
    })
}

/// The violated invariant and the smallest run that violates it, if the run with the bug finds it.
fn try_one(
    mutant: Mutant,
    sound: &Options,
    storms: Option<&[Storm]>,
    shrinks: bool,
) -> anyhow::Result<Option<(String, Option<Schedule>)>> {
    let with_bug = Options { mutant: Some(mutant), ..sound.clone() };
    let Some((violation, _)) = simulate_by(&with_bug, storms)?.violation else { return Ok(None) };
    let invariant = format!("{:?}", violation.invariant);
    let smallest = if shrinks { smallest(&with_bug, storms, &invariant)? } else { None };
    if shrinks && smallest.is_none() {
        let seed = sound.seed;
        eprintln!("seed {seed}: {mutant:?} is not found when its faults are repeated");
        return Ok(None);
    }
    Ok(Some((invariant, smallest)))
}

/// The smallest run that violates the invariant with the bug of the options, and none without it.
fn smallest(
    with_bug: &Options,
    storms: Option<&[Storm]>,
    invariant: &str,
) -> anyhow::Result<Option<Schedule>> {
    let Some(shrunk) = shrink(with_bug, storms, (SHRINK_RUNS, |_| {}))? else { return Ok(None) };
    for options in [&shrunk.options, with_bug] {
        let storms = simulate_by(options, storms)?.storms;
        let about = format!("The deliberate bug violates {invariant}.");
        let (finds, withstands) = (options.mutant, None);
        let options = Options { mutant: None, ..options.clone() };
        let schedule = Schedule { about, finds, withstands, options, storms };
        if finds_its_bug(&schedule)? {
            return Ok(Some(schedule));
        }
    }
    Ok(None)
}

/// Whether a schedule finds a violation with the bug that it names, and none without it.
pub fn finds_its_bug(schedule: &Schedule) -> anyhow::Result<bool> {
    let finds = |mutant| {
        let options = Options { mutant, ..schedule.options.clone() };
        anyhow::Ok(simulate_by(&options, Some(&schedule.storms))?.violation.is_some())
    };
    Ok(finds(schedule.finds)? && !finds(None)?)
}

/// Runs `purview-lab sim --mutants`: prints which run finds which bug, and writes the smallest run of each to
/// `folder/NAME.toml` if there is a folder. The exit code says whether every bug was found.
pub fn run(mutants: &[Mutant], runs: &Runs, folder: Option<&Path>) -> anyhow::Result<u8> {
    if !mutants::exist() {
        bail!(
            "this build has no deliberate bugs: they want debug assertions (cargo run, not --release)"
        );
    }
    println!("| deliberate bug | found by seed | runs tried | invariant |\n|---|---|---|---|");
    let mut all_found = true;
    attempt(mutants, runs, folder.is_some(), |trial| {
        let mutant = trial.mutant;
        all_found &= trial.found.is_some();
        match trial.found {
            Some((seed, tried, what)) => println!("| {mutant:?} | {seed} | {tried} | `{what}` |"),
            None => println!("| {mutant:?} | none | | |"),
        }
        if let (Some(folder), Some(schedule)) = (folder, trial.smallest) {
            schedule.write(&folder.join(format!("{mutant:?}.toml")))?;
        }
        Ok(())
    })?;
    Ok(u8::from(!all_found))
}

/// Parses `all`, `game`, `workers`, `messages`, `sessions`, `sights`, or names of [`Mutant`]s.
pub fn named(text: &str) -> Result<Vec<Mutant>, String> {
    let groups = [
        ("all", &mutants::ALL[..]),
        ("game", &mutants::GAME),
        ("workers", &mutants::WORKERS),
        ("messages", &mutants::MESSAGES),
        ("sessions", &mutants::SESSIONS),
        ("sights", &mutants::SIGHTS),
    ];
    if let Some((_, group)) = groups.into_iter().find(|(name, _)| *name == text) {
        return Ok(group.to_vec());
    }
    let one = |word: &str| {
        every().find(|mutant| format!("{mutant:?}") == word).ok_or_else(|| {
            let all: Vec<String> = every().map(|mutant| format!("{mutant:?}")).collect();
            format!(
                "{word:?} is not a deliberate bug: expected all, game, workers, messages, sessions, sights, or a list of {}",
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

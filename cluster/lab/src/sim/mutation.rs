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

/// Tries each bug on one seed after the other, until one finds it that finds nothing without it.
///
/// # Errors
/// Nothing can be simulated.
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
                eprintln!("seed {seed} is left out: without a deliberate bug, {other}");
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

/// Runs `purview sim --mutants`: prints the table of `docs/simulation.md`. The exit code says whether all were found.
///
/// # Errors
/// This build has no deliberate bugs, or nothing can be simulated.
pub fn run(options: &Options, mutants: &[Mutant], most: u64) -> anyhow::Result<u8> {
    if !mutants::exist() {
        bail!(
            "this build has no deliberate bugs: they want debug assertions (cargo run, not --release)"
        );
    }
    println!(
        "| deliberate bug | found by seed | seeds tried | what it breaks |\n|---|---|---|---|"
    );
    let trials = try_all(options, (mutants, most), |trial| {
        let Trial { mutant, found } = trial;
        match found {
            Some((seed, tried, what)) => println!("| {mutant:?} | {seed} | {tried} | `{what}` |"),
            None => println!("| {mutant:?} | none | {most} | |"),
        }
    })?;
    Ok(u8::from(trials.iter().any(|trial| trial.found.is_none())))
}

/// Reads `all`, or names as [`Mutant`] has them.
///
/// # Errors
/// There is no bug of such a name; the error tells those that there are.
pub fn named(text: &str) -> Result<Vec<Mutant>, String> {
    if text == "all" {
        return Ok(mutants::ALL.to_vec());
    }
    let name = |mutant: &Mutant| format!("{mutant:?}");
    let one = |word: &str| {
        mutants::ALL.iter().find(|mutant| name(mutant) == word).copied().ok_or_else(|| {
            let all: Vec<String> = mutants::ALL.iter().map(name).collect();
            format!("{word:?} is no deliberate bug: write all, or some of {}", all.join(","))
        })
    };
    text.split(',').map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deliberate_bugs_are_known_by_their_names() {
        assert_eq!(named("all").unwrap().len(), mutants::ALL.len());
        assert_eq!(named("NoMarks,AnyEpoch").unwrap(), [Mutant::NoMarks, Mutant::AnyEpoch]);
        let error = named("NoMarks,None").unwrap_err();
        assert!(error.contains("\"None\"") && error.contains("AnyNumber,"), "{error}");
    }
}

//! Shrinks a failing run: removes faults and players as long as the run violates the same invariant.

use super::schedule::Storm;
use super::{Only, Options, simulate_by};

/// The number of runs that are enough for nearly every failing run.
pub const MOST_RUNS: usize = 300;

#[derive(Debug, Clone, PartialEq)]
pub struct Shrunk {
    pub options: Options,
    /// The number of faults left, and the number in the full run.
    pub faults: (usize, usize),
    /// The number of players left, and the number in the full run.
    pub players: (usize, usize),
    pub runs: usize,
}

/// The smallest part of `all` that was found to fail. All of it fails. Removes halves, quarters and so on down to
/// single elements, as long as the rest fails (Zeller and Hildebrandt, "Simplifying and isolating failure-inducing
/// input", 2002).
pub fn smallest<E>(
    all: &[u32],
    mut fails: impl FnMut(&[u32]) -> Result<bool, E>,
) -> Result<Vec<u32>, E> {
    let mut left = all.to_vec();
    let mut size = left.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        let before = left.len();
        while at < left.len() {
            let end = (at + size).min(left.len());
            let without = [&left[..at], &left[end..]].concat();
            match fails(&without)? {
                true => left = without,
                false => at = end,
            }
        }
        if size == 1 && left.len() == before {
            break;
        }
        size = if size == 1 { 1 } else { size.div_ceil(2) };
    }
    Ok(left)
}

/// Shrinks the failing run of `options`, with the faults of a schedule if there is one, by at most so many runs;
/// `None`: the run does not fail. `say` receives a line for each smaller run that fails.
pub fn shrink(
    options: &Options,
    recorded: Option<&[Storm]>,
    (most_runs, mut say): (usize, impl FnMut(String)),
) -> anyhow::Result<Option<Shrunk>> {
    let broken = |options: &Options| {
        let violation = simulate_by(options, recorded)?.violation;
        anyhow::Ok(violation.map(|(violation, _)| violation.invariant))
    };
    let whole = simulate_by(options, recorded)?;
    let Some((violation, _)) = &whole.violation else { return Ok(None) };
    let invariant = violation.invariant;
    let faults: Vec<u32> = (0..whole.faults).filter(|n| options.only.fault(*n)).collect();
    let players: Vec<u32> = (0..options.players).filter(|n| options.only.player(*n)).collect();
    // The smaller run need not be longer than the failing one.
    let seconds = whole.virtual_time.as_secs() + 1;
    let lasts = options.lasts.min(std::time::Duration::from_secs(seconds));
    let mut runs = 1;
    let mut best = Options { lasts, trace: false, until: None, ..options.clone() };
    if broken(&best)? != Some(invariant) {
        best.lasts = options.lasts;
    }
    let all = best.clone();
    let mut attempt = |only: Only, what: &str| {
        if runs >= most_runs {
            return anyhow::Ok(false);
        }
        runs += 1;
        let fails = broken(&Options { only, ..all.clone() })? == Some(invariant);
        if fails {
            say(format!("run {runs}: {what} suffice"));
        }
        Ok(fails)
    };
    let known = Only { players: options.only.players.clone(), faults: None };
    let fewer_faults = smallest(&faults, |some| {
        let only = Only { faults: Some(some.to_vec()), ..known.clone() };
        attempt(only, &format!("{} faults", some.len()))
    })?;
    let known = Only { faults: Some(fewer_faults.clone()), players: None };
    let fewer_players = smallest(&players, |some| {
        let only = Only { players: Some(some.to_vec()), ..known.clone() };
        attempt(only, &format!("{} players", some.len()))
    })?;
    let counts = ((fewer_faults.len(), faults.len()), (fewer_players.len(), players.len()));
    best.only = Only { faults: Some(fewer_faults), players: Some(fewer_players) };
    Ok(Some(Shrunk { options: best, faults: counts.0, players: counts.1, runs }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shrinking_removes_everything_that_is_not_needed() {
        for needed in [vec![], vec![0], vec![7, 3], vec![19, 18, 2, 11], (0..20).collect()] {
            let all: Vec<u32> = (0..20).collect();
            let mut runs = 0;
            let fails = |some: &[u32]| {
                runs += 1;
                Ok::<_, ()>(needed.iter().all(|one| some.contains(one)))
            };
            let mut left = smallest(&all, fails).unwrap();
            left.sort_unstable();
            let mut want = needed.clone();
            want.sort_unstable();
            assert_eq!(left, want);
            assert!(runs < 120, "{runs} runs");
        }
    }
}

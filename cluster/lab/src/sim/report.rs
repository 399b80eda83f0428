//! The outcome of a run as text, and the command line that repeats the run.

use super::{Options, Outcome};

pub fn again(options: &Options) -> String {
    format!("purview-lab sim{}", options.flags(|_| true))
}

/// The outcome of a run with drawn faults, as text.
pub fn in_words(options: &Options, outcome: &Outcome) -> String {
    in_words_by(options, outcome, &again(options))
}

/// The outcome as text; `again` is the command line that repeats the run.
pub fn in_words_by(options: &Options, outcome: &Outcome, again: &str) -> String {
    let (core, simulated) = (outcome.core_time.as_secs_f64(), outcome.virtual_time.as_secs_f64());
    let mut out = format!(
        "seed {}: {simulated:.0} s in {core:.2} s of a core ({:.0} a second), {} steps, {} inputs, {} frames, {} \
         rests, hash {:016x}\n",
        options.seed,
        simulated / core.max(1e-9),
        outcome.steps,
        outcome.inputs,
        outcome.frames,
        outcome.rests,
        outcome.hash,
    );
    if let Some((violation, steps)) = &outcome.violation {
        for step in steps {
            out += &format!("{step}\n");
        }
        out += &format!("VIOLATION of {violation}\nagain: {again}\n");
        out += &format!("trace: {again} --until {} --trace\n", violation.step);
    }
    out
}

//! The outcome of a run as text, and the command line that repeats the run.

use super::{Options, Outcome};

/// The command line that repeats a run.
pub fn again(options: &Options) -> String {
    let Options { seed, lasts, nodes, gateways, players, faults, at_once, .. } = options;
    let seconds = lasts.as_secs();
    let mut again = format!(
        "purview-lab sim --seed {seed} --for {seconds}s --nodes {nodes} --gateways {gateways} \
         --players {players} --faults {faults} --at-once {at_once}"
    );
    if let Some(cap) = options.view_cap {
        again += &format!(" --cap {cap}");
    }
    if options.plane_groups != 1 {
        again += &format!(" --plane-groups {}", options.plane_groups);
    }
    if options.scenes != 1 {
        again += &format!(" --scenes {}", options.scenes);
    }
    if options.judged {
        again += " --judged";
    }
    if options.cut {
        again += " --cut";
    }
    if options.stairs {
        again += " --stairs";
    }
    if options.portals {
        again += " --portals";
    }
    if options.walls {
        again += " --walls";
    }
    if options.balance {
        again += " --balance";
    }
    if options.npcs {
        again += " --npcs";
    }
    if let Some(logic) = options.logic {
        again += &format!(" --logic {}", logic.name());
    }
    if let Some(beat) = options.beat {
        again += &format!(" --beat {}", beat.as_millis());
    }
    again + &only(options)
}

/// The flags that leave out the same faults and players.
pub fn only(options: &Options) -> String {
    let numbers = |of: &[u32]| match of {
        [] => "none".to_owned(),
        some => some.iter().map(u32::to_string).collect::<Vec<_>>().join(","),
    };
    let flags = [("faults", &options.only.faults), ("players", &options.only.players)];
    let flag = |(flag, some): (&str, &Option<Vec<u32>>)| {
        Some(format!(" --only-{flag} {}", numbers(some.as_ref()?)))
    };
    flags.into_iter().filter_map(flag).collect()
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

//! What the oracle found.

use serde::Serialize;

/// How many violations of each kind. Each is an episode, counted once however long it lasts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Violations {
    /// Pairs in range of which not both are shown the other although each has room or shows
    /// somebody with a worse key (a blocking pair), for longer than the slack.
    pub missing: u64,
    /// Somebody shown who is out of range, on another plane or gone, or a list above the cap, for
    /// longer than the slack.
    pub extra: u64,
    /// One of a pair shown the other, alone, at more than one consecutive tick.
    pub asymmetric: u64,
    /// Somebody shown at a place where it has not been for longer than its ring's update interval
    /// and the slack, or where it never was.
    pub stale: u64,
    /// An input never acknowledged, an act not delivered or delivered twice, a frame that
    /// contradicts those before it, a client cut off or left without frames.
    pub lost: u64,
    /// A pair parted and met again within 2 s although it was in range throughout and neither list
    /// was full. Where one had no frame it is not known where it was: then the pair is not judged.
    pub flicker_at_handoff: u64,
}

impl Violations {
    /// Of every kind together.
    pub fn total(&self) -> u64 {
        let Violations { missing, extra, asymmetric, stale, lost, flicker_at_handoff } = self;
        missing + extra + asymmetric + stale + lost + flicker_at_handoff
    }
}

/// What had to be told, and what of it was told in time: moves by the rates of their rings, enters,
/// leaves and acts. What was told earlier than it had to be counts in neither.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Updates {
    /// What had to be told.
    pub expected: u64,
    /// What of it was told by its deadline.
    pub delivered: u64,
}

impl Updates {
    pub(super) fn came(&mut self) {
        self.expected += 1;
        self.delivered += 1;
    }
}

/// How calm what clients were shown was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Calm {
    /// Players who came into somebody's view.
    pub enters: u64,
    /// Of these, such as had gone out of the same view within the last 2 s
    /// ([`super::Options::flicker_ticks`]).
    pub flickers: u64,
    /// Ticks for which players were there, over all players.
    pub player_ticks: u64,
}

/// Ticks from the first at which two were near enough and both had room, to the frame that said so.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Latency {
    counts: Vec<u64>,
}

impl Latency {
    const TICKS_MAX: usize = 10_000;

    pub(super) fn record(&mut self, ticks: u64) {
        let at = (ticks as usize).min(Self::TICKS_MAX);
        if self.counts.len() <= at {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += 1;
    }

    /// How many were measured.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The least number of ticks that `share` (0 to 1) of all enters needed at most; 0 of none.
    pub fn quantile(&self, share: f64) -> u64 {
        let want = (self.count() as f64 * share).ceil() as u64;
        let mut sum = 0;
        for (ticks, n) in self.counts.iter().enumerate() {
            sum += n;
            if sum >= want {
                return ticks as u64;
            }
        }
        0
    }
}

/// An example of a violation, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Example {
    /// Its kind, as [`Violations`] names it.
    pub kind: &'static str,
    /// The tick at which it was found.
    pub tick: u64,
    /// Who and what.
    pub what: String,
}

/// Everything that the oracle found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// Clients that joined.
    pub players: u64,
    /// Ticks judged.
    pub ticks: u64,
    /// Violations.
    pub violations: Violations,
    /// Updates due and delivered.
    pub updates: Updates,
    /// How calm views were.
    pub calm: Calm,
    /// How often a client's epoch grew, summed.
    pub handoffs: u64,
    /// How long it took to be shown somebody.
    pub latency: Latency,
    /// The first few violations of each kind.
    pub examples: Vec<Example>,
    /// Inputs refused by the server.
    pub refused: u64,
    /// Frames delivered.
    pub frames: u64,
    /// Ticks of clients for which no frame came (its content may have come later).
    pub frames_missing: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    Missing,
    Extra,
    Asymmetric,
    Stale,
    Lost,
    Flicker,
}

#[derive(Debug)]
pub(super) struct Log {
    pub findings: Findings,
    examples_max: usize,
}

impl Log {
    pub fn new(examples_max: usize) -> Log {
        Log { findings: Findings::default(), examples_max }
    }

    pub fn fault(&mut self, fault: Fault, tick: u64, what: impl FnOnce() -> String) {
        let v = &mut self.findings.violations;
        let (count, kind) = match fault {
            Fault::Missing => (&mut v.missing, "missing"),
            Fault::Extra => (&mut v.extra, "extra"),
            Fault::Asymmetric => (&mut v.asymmetric, "asymmetric"),
            Fault::Stale => (&mut v.stale, "stale"),
            Fault::Lost => (&mut v.lost, "lost"),
            Fault::Flicker => (&mut v.flicker_at_handoff, "flicker_at_handoff"),
        };
        *count += 1;
        if *count <= self.examples_max as u64 {
            self.findings.examples.push(Example { kind, tick, what: what() });
        }
    }
}

//! The findings of the oracle.

use std::borrow::Cow;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::errors::DisplayedErrors;

/// The number of violations of each kind. Each is an episode, counted once however long it lasts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violations {
    /// Pairs in range that do not see each other although each of the two has room or sees a player with a worse key
    /// (a blocking pair), for longer than the slack.
    pub missing: u64,
    /// A visible entity that is out of range, on another plane or gone, or a list above the cap, for longer than the
    /// slack.
    pub extra: u64,
    /// A pair of which only one sees the other, at more than one consecutive tick.
    pub asymmetric: u64,
    /// A visible entity at a position where it has not been for longer than the update interval of its ring and the
    /// slack, or where it never was. Where clients extrapolate, also one that is farther off than the scene tolerates
    /// for longer than the slack. A step ahead on its way, as if a message of its client came late, is no violation
    /// for a tick.
    pub stale: u64,
    /// An input never acknowledged, an action not delivered or delivered twice, a frame that contradicts earlier
    /// ones, a client cut off or left without frames.
    pub lost: u64,
    /// A pair that parted and met again within 2 s although it was in range throughout and neither list was full. If
    /// one of the two had no frame, its position is unknown, and the pair is not judged.
    pub flicker_at_handoff: u64,
}

impl Violations {
    pub fn total(&self) -> u64 {
        let Violations { missing, extra, asymmetric, stale, lost, flicker_at_handoff } = self;
        missing + extra + asymmetric + stale + lost + flicker_at_handoff
    }

    /// Those of both.
    pub fn and(&self, other: &Violations) -> Violations {
        Violations {
            missing: self.missing + other.missing,
            extra: self.extra + other.extra,
            asymmetric: self.asymmetric + other.asymmetric,
            stale: self.stale + other.stale,
            lost: self.lost + other.lost,
            flicker_at_handoff: self.flicker_at_handoff + other.flicker_at_handoff,
        }
    }
}

/// Updates that were due, and those of them that were delivered in time: moves by the rates of their rings, enters,
/// leaves and actions. An update that was delivered before it was due counts in neither number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Updates {
    pub expected: u64,
    pub delivered: u64,
}

impl Updates {
    pub(super) fn came(&mut self) {
        self.expected += 1;
        self.delivered += 1;
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Calm {
    pub enters: u64,
    /// Of these, enters of a player that had left the same view within the last 2 s
    /// (`FLICKER_TICKS`).
    pub flickers: u64,
    pub player_ticks: u64,
}

/// The delay, in ticks, from the first tick at which two players were near enough and both had room, to the frame
/// that showed it.
#[derive(Debug, Clone, PartialEq)]
pub struct Latency(Histogram<u64>);

impl Default for Latency {
    fn default() -> Latency {
        // Three digits: exact below 2,048 ticks.
        Latency(Histogram::new_with_max(Latency::TICKS_MAX, 3).expect("the bounds are legal"))
    }
}

impl Latency {
    /// A longer delay counts as this one.
    const TICKS_MAX: u64 = 10_000;

    pub(super) fn record(&mut self, ticks: u64) {
        self.0.saturating_record(ticks.min(Latency::TICKS_MAX));
    }

    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The least number of ticks within which `share` (0 to 1) of all enters happened; 0 without any.
    pub fn quantile(&self, share: f64) -> u64 {
        self.0.value_at_quantile(share)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Example {
    /// The kind, as [`Violations`] names it.
    pub kind: Cow<'static, str>,
    pub tick: u64,
    pub what: String,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Findings {
    pub players: u64,
    pub ticks: u64,
    pub violations: Violations,
    pub updates: Updates,
    pub calm: Calm,
    /// How often the epochs of clients grew, summed.
    pub handoffs: u64,
    pub latency: Latency,
    pub errors: DisplayedErrors,
    pub examples: Vec<Example>,
    pub refused: u64,
    pub frames: u64,
    /// Ticks of clients without a frame. A later frame may have contained their content.
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

/// The number of examples of each kind of violation.
const EXAMPLES_MAX: u64 = 5;

#[derive(Debug, Default)]
pub(super) struct Log {
    pub findings: Findings,
}

impl Log {
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
        if *count <= EXAMPLES_MAX {
            self.findings.examples.push(Example { kind: kind.into(), tick, what: what() });
        }
    }
}

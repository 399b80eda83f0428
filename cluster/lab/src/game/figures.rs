//! How often the example game was judged, and what was wrong: the part `game` of a report.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    Gold,
    TakenTwice,
    /// Hit points are outside their range, or have returned by themselves.
    HitPoints,
}

impl FaultKind {
    pub fn key(self) -> &'static str {
        match self {
            FaultKind::Gold => "gold",
            FaultKind::TakenTwice => "taken_twice",
            FaultKind::HitPoints => "hit_points",
        }
    }
}

/// How a run of the game was judged. Each fault counts once, however long it lasts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GameFigures {
    /// How often the scenes were judged.
    pub checks: u64,
    pub minted: i64,
    /// Gold that players have, or had when they left.
    pub won: i64,
    pub gold: u64,
    pub taken_twice: u64,
    /// Entities whose hit points were outside their range, or have returned by themselves.
    pub hit_points: u64,
}

impl GameFigures {
    pub fn count(&mut self, kind: FaultKind) {
        match kind {
            FaultKind::Gold => self.gold += 1,
            FaultKind::TakenTwice => self.taken_twice += 1,
            FaultKind::HitPoints => self.hit_points += 1,
        }
    }

    pub fn faults(&self) -> u64 {
        self.gold + self.taken_twice + self.hit_points
    }
}

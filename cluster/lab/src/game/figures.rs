//! How often the example game was judged, and what was wrong: the part `game` of a report.

use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FaultKind {
    Gold,
    TakenTwice,
    /// Hit points are outside their range, or have returned by themselves.
    HitPoints,
    DeadActs,
    /// What a monster has in sight differs from the players within its radii.
    Sighted,
    /// What the rules were told does not add up to what lives in the region.
    Told,
}

impl FaultKind {
    pub fn key(self) -> &'static str {
        match self {
            FaultKind::Gold => "gold",
            FaultKind::TakenTwice => "taken_twice",
            FaultKind::HitPoints => "hit_points",
            FaultKind::DeadActs => "dead_acts",
            FaultKind::Sighted => "sighted",
            FaultKind::Told => "told",
        }
    }
}

/// How a run of the game was judged. Each fault counts once, however long it lasts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GameFigures {
    /// How often a region, or with several processes the whole scene, was judged.
    pub checks: u64,
    pub minted: i64,
    /// Gold that players have, or had when they left.
    pub won: i64,
    pub gold: u64,
    pub taken_twice: u64,
    /// Entities whose hit points were outside their range, or have returned by themselves.
    pub hit_points: u64,
    /// Dead monsters that acted. `None` where only the process of a region can see it.
    pub dead_acts: Option<u64>,
    /// Pairs of a monster and a player that `sighted` and `lost` told wrong. `None` as above.
    pub sighted: Option<u64>,
    /// Entities that live in a region and that its rules were not told of, or the reverse. `None` as above.
    pub told: Option<u64>,
}

impl GameFigures {
    /// No faults yet, in a run where all of them are looked for.
    pub fn of_ticks() -> GameFigures {
        let none = Some(0);
        GameFigures { dead_acts: none, sighted: none, told: none, ..GameFigures::default() }
    }

    pub fn count(&mut self, kind: FaultKind) {
        let more = |count: &mut Option<u64>| *count = Some(count.unwrap_or(0) + 1);
        match kind {
            FaultKind::Gold => self.gold += 1,
            FaultKind::TakenTwice => self.taken_twice += 1,
            FaultKind::HitPoints => self.hit_points += 1,
            FaultKind::DeadActs => more(&mut self.dead_acts),
            FaultKind::Sighted => more(&mut self.sighted),
            FaultKind::Told => more(&mut self.told),
        }
    }

    pub fn faults(&self) -> u64 {
        let seen_inside = [self.dead_acts, self.sighted, self.told];
        self.gold + self.taken_twice + self.hit_points + seen_inside.iter().flatten().sum::<u64>()
    }
}

impl fmt::Display for GameFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GameFigures { gold, taken_twice, hit_points, .. } = self;
        write!(f, "gold {gold}, taken twice {taken_twice}, hit points {hit_points}")?;
        let inside = [("dead", self.dead_acts), ("sighted", self.sighted), ("told", self.told)];
        for (name, count) in inside {
            if let Some(count) = count {
                write!(f, ", {name} {count}")?;
            }
        }
        Ok(())
    }
}

//! One row of the benchmark: the lists of one method for one walking crowd, judged tick by tick.

use purview::scene::Pos;
use serde::Serialize;

use super::calm::Calm;
use super::gathering::Walkers;
use super::lists::Soundness;
use super::quality::{Good, Quality, Range};
use super::{Lists, ViewLists};
use crate::bench::cpu_us;

/// Ticks in a second.
pub const TICKS_S: u64 = 10;

/// Ticks between two measurements of quality.
const MEASURE_TICKS: u64 = 5;

/// The method that makes the lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// The classic heuristic.
    Classic,
    /// Negotiation, in a circle whose enter and leave radius are equal.
    TightCircle,
    /// Negotiation, in a circle whose leave radius is greater than its enter radius.
    Circle,
    /// Negotiation, in 5 x 5 patches.
    Patches,
}

/// The result of one method on one crowd.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// A description of the method.
    pub lists: String,
    /// The method.
    pub way: Way,
    /// The number of regions.
    pub regions: usize,
    /// The margin before a player in view is replaced, centimetres; `None` for the classic heuristic.
    pub margin_cm: Option<i32>,
    /// Entries that came into a list, per player and second.
    pub churn: f64,
    /// Of these, entries that had left the list within the last 2 s.
    pub flicker: f64,
    /// CPU microseconds per player and tick.
    pub us: f64,
    /// Messages between players, per player and second.
    pub messages: f64,
    /// Of these, messages to another region.
    pub between_regions: f64,
    /// Batches between regions, per region and tick.
    pub batches: f64,
    /// The mean number of pairs of which only one listed the other at the end of a tick.
    pub one_sided: f64,
    /// Pairs that were one-sided for too long, lists above the cap, and players whose position in the region was
    /// wrong.
    pub faults: u64,
    /// The quality of the lists; `None` if it was not measured.
    #[serde(flatten)]
    pub good: Option<Good>,
}

/// What is measured.
#[derive(Debug)]
pub struct Trial {
    /// A description of the method.
    pub name: String,
    /// The method.
    pub way: Way,
    /// The margin of the negotiation, centimetres.
    pub margin_cm: Option<i32>,
    /// The number of regions.
    pub regions: usize,
    /// The capacity of a list.
    pub cap: usize,
    /// The range by which lists are judged, if they are.
    pub range: Option<Range>,
    /// The number of ticks in a row for which a pair may be one-sided.
    pub patience: u32,
    /// The warm-up, seconds.
    pub warm_up_s: u64,
    /// The measured time, seconds.
    pub seconds: u64,
}

/// A walking crowd, the lists that are made for it, and their judges.
struct Walk<'a> {
    crowd: Walkers,
    places: Vec<Pos>,
    made: &'a mut dyn ViewLists,
    lists: Lists,
    calm: Calm,
    sound: Soundness,
    quality: Quality,
    astray: u64,
}

impl Walk<'_> {
    /// Moves the crowd by a tick. Returns the CPU time of making the lists, microseconds.
    fn step(&mut self) -> f64 {
        self.crowd.step();
        self.crowd.places(&mut self.places);
        let from = cpu_us();
        self.made.step(&self.places);
        let us = cpu_us() - from;
        self.astray += self.made.lists(&self.places, &mut self.lists);
        self.sound.see(&self.lists);
        self.calm.see(&self.lists);
        us
    }
}

/// Lets a crowd walk and measures the lists that are made for it. Only making the lists is timed.
pub fn measure(trial: &Trial, crowd: Walkers, made: &mut dyn ViewLists) -> Row {
    let mut walk = Walk {
        crowd,
        places: Vec::new(),
        made,
        lists: Lists::default(),
        calm: Calm::default(),
        sound: Soundness::new(trial.cap, trial.patience),
        quality: Quality::new(trial.cap, trial.margin_cm.unwrap_or(0)),
        astray: 0,
    };
    for _ in 0..(trial.warm_up_s * TICKS_S).max(1) {
        walk.step();
    }
    walk.calm.restart();
    walk.sound.one_sided = 0;
    let before = walk.made.sent();
    let ticks = trial.seconds * TICKS_S;
    let mut us = 0.0;
    for tick in 0..ticks {
        us += walk.step();
        if let Some(range) = trial.range.filter(|_| tick.is_multiple_of(MEASURE_TICKS)) {
            walk.quality.measure(&walk.places, &walk.lists, range);
        }
    }
    let sent = walk.made.sent();
    let players = walk.lists.players().max(1) as f64;
    let player_s = players * trial.seconds as f64;
    let (within, between) = (sent.within - before.within, sent.between - before.between);
    let batches = sent.batches - before.batches;
    Row {
        lists: trial.name.clone(),
        way: trial.way,
        regions: trial.regions,
        margin_cm: trial.margin_cm,
        churn: walk.calm.enters as f64 / player_s,
        flicker: walk.calm.flickers as f64 / player_s,
        us: us / (players * ticks as f64),
        messages: (within + between) as f64 / player_s,
        between_regions: between as f64 / player_s,
        batches: batches as f64 / (trial.regions as u64 * ticks) as f64,
        one_sided: walk.sound.one_sided as f64 / ticks as f64,
        faults: walk.sound.faults + walk.astray,
        good: trial.range.map(|_| walk.quality.sum_up()),
    }
}

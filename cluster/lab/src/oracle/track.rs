//! The true positions of a player.

use std::collections::VecDeque;

use purview::scene::movement::Trajectory;
use purview::scene::{EntityId, Plane, Pos, RangeSet, Visibility};
use purview::wire::{JoinRules, OwnMove};

use super::SLACK_TICKS;
use super::rules::{self, Range, Reading, interval};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TrackPoint {
    pub scene: u32,
    pub plane: Plane,
}

/// The part of a player that judging other clients reads: its true position now and in some earlier ticks.
#[derive(Debug, Clone)]
pub(super) struct Track {
    /// The id; 0 for a slot that is not in a scene.
    pub id: EntityId,
    /// The space; `None` during a teleport to another plane or scene.
    pub place: Option<TrackPoint>,
    pub place_since: u64,
    /// The last tick in which it came by a teleport: nobody could foresee where to.
    teleported_at: Option<u64>,
    pub rules: JoinRules,
    pub range: Range,
    pub pos: Pos,
    /// The trajectory by the server's account, where moves are judged. It determines the position in every tick.
    trajectory: Option<Trajectory>,
    pub patch: (i32, i32),
    /// The position that other regions last received.
    pub late: Pos,
    late_patch: (i32, i32),
    /// Position and first tick of each, the newest last.
    runs: VecDeque<(u64, Pos)>,
    keep_ticks: u64,
    /// The last tick without a frame, at which the position is unknown.
    pub held_at: Option<u64>,
    /// The last tick at which the list was full, with the players that are to come into it.
    pub full_at: Option<u64>,
    pub listed: usize,
}

impl Default for Track {
    fn default() -> Self {
        let rules = JoinRules {
            visibility: Visibility::All,
            range: RangeSet::NONE,
            sight: RangeSet::NONE,
            patch_cm: [1; 2],
            patch_margin_cm: 0,
            height_cm: None,
            view_cap: 0,
            view_margin_cm: 0,
            rates: [1; 3],
            size_cm: [0; 2],
            movement: None,
            updates: None,
        };
        Track {
            id: EntityId(0),
            place: None,
            place_since: 0,
            teleported_at: None,
            range: Range::All,
            rules,
            pos: Pos::default(),
            trajectory: None,
            patch: (0, 0),
            late: Pos::default(),
            late_patch: (0, 0),
            runs: VecDeque::new(),
            keep_ticks: 0,
            held_at: None,
            full_at: None,
            listed: 0,
        }
    }
}

impl Track {
    /// A player that stands at `pos` from tick `t` on.
    pub fn new(id: EntityId, place: TrackPoint, rules: JoinRules, pos: Pos, t: u64) -> Track {
        let longest = rules.rates.iter().copied().max().unwrap_or(1);
        let mut track = Track {
            id,
            place: Some(place),
            place_since: t,
            range: Range::of(&rules),
            rules,
            keep_ticks: u64::from(longest) + 2 * SLACK_TICKS + 8,
            ..Track::default()
        };
        track.stand(pos, t);
        track
    }

    pub fn arrive(&mut self, place: TrackPoint, rules: JoinRules, pos: Pos, t: u64) {
        if self.place != Some(place) {
            self.place = Some(place);
            self.place_since = t;
            self.teleported_at = Some(t);
        }
        self.range = Range::of(&rules);
        self.rules = rules;
        self.stand(pos, t);
    }

    pub fn teleport(&mut self, pos: Pos, t: u64) {
        self.teleported_at = Some(t);
        self.stand(pos, t);
    }

    /// Whether the player has teleported in any tick from `t` on.
    pub fn has_teleported_since(&self, t: u64) -> bool {
        self.teleported_at.is_some_and(|at| at >= t)
    }

    /// The player receives its own movement; `None`: the earlier one no longer holds.
    pub fn follow(&mut self, own: Option<&OwnMove>) {
        self.trajectory = own.and_then(|own| rules::trajectory(&self.rules, &own.trajectory));
    }

    pub fn walk_on(&mut self, t: u64) {
        if let Some(trajectory) = &self.trajectory {
            self.stand(rules::place(&self.rules, trajectory, t), t);
        }
    }

    /// The player is at `pos` from tick `t` on.
    pub fn stand(&mut self, pos: Pos, t: u64) {
        self.pos = pos;
        self.patch = rules::patch(pos, &self.rules);
        match self.runs.back_mut() {
            Some((since, at)) if *since == t => *at = pos,
            Some((_, at)) if *at == pos => {}
            _ => self.runs.push_back((t, pos)),
        }
        while self.runs.len() > 1 && self.runs[1].0 + self.keep_ticks <= t {
            self.runs.pop_front();
        }
    }

    /// The last tick up to `t` at which the player was at `pos`, as far back as is kept.
    pub fn was_at(&self, pos: Pos, t: u64) -> Option<u64> {
        let mut until = t;
        for &(since, at) in self.runs.iter().rev() {
            if at == pos {
                return Some(until);
            }
            until = since.saturating_sub(1);
        }
        None
    }

    /// The number of ticks for which the player has stood where it is.
    pub fn rested(&self, t: u64) -> u64 {
        self.runs.back().map_or(0, |(since, _)| t.saturating_sub(*since))
    }

    /// The position at tick `t`, or the oldest known position if that is later.
    pub fn at(&self, t: u64) -> Pos {
        let run = self.runs.iter().rev().find(|(since, _)| *since <= t);
        run.or(self.runs.front()).map_or(self.pos, |(_, pos)| *pos)
    }

    pub fn is_held(&self, t: u64) -> bool {
        self.held_at == Some(t)
    }

    /// Whether the position was unknown at any tick from `t` on.
    pub fn was_held_since(&self, t: u64) -> bool {
        self.held_at.is_some_and(|at| at >= t)
    }

    /// Whether the list was full at any tick from `t` on.
    pub fn was_full_since(&self, t: u64) -> bool {
        self.full_at.is_some_and(|at| at >= t)
    }

    pub fn has_room(&self) -> bool {
        self.listed < self.rules.view_cap as usize
    }

    /// Finds the position `mirror_ticks` before tick `t`.
    pub fn review(&mut self, t: u64, mirror_ticks: u64) {
        self.late = self.at(t.saturating_sub(mirror_ticks));
        self.late_patch = rules::patch(self.late, &self.rules);
    }

    /// The number of ticks between two updates about `other`, in the slowest ring that the server may believe.
    pub fn rate(&self, other: &Track) -> u64 {
        let now = interval(&self.rules, rules::ring(self.patch, other.patch));
        now.max(interval(&self.rules, rules::ring(self.patch, other.late_patch)))
    }

    /// How the two lie to each other, with their true positions and with either one late.
    fn readings(&self, other: &Track) -> [Reading; 3] {
        let reading = |a: Pos, b: Pos| Reading::of(a, b, &self.rules);
        [reading(self.pos, other.pos), reading(self.late, other.pos), reading(self.pos, other.late)]
    }

    /// Whether the two may see each other by any reading.
    pub fn may_see(&self, other: &Track) -> bool {
        let both = self.rules.range.and(other.rules.range);
        self.place == other.place
            && self.readings(other).iter().any(|reading| self.range.may(both, reading))
    }

    /// Whether the two are in leave range by every reading.
    pub fn is_near(&self, other: &Track) -> bool {
        let both = self.rules.range.and(other.rules.range);
        self.place == other.place
            && self.readings(other).iter().all(|reading| self.range.may(both, reading))
    }

    /// Whether the two are in enter range by every reading.
    pub fn must_see(&self, other: &Track) -> bool {
        let both = self.rules.range.and(other.rules.range);
        self.place == other.place
            && self.readings(other).iter().all(|reading| self.range.must(both, reading))
    }

    /// The greatest squared distance of the two by any reading.
    pub fn dist2_max(&self, other: &Track) -> u64 {
        self.readings(other).iter().map(|reading| reading.d2).fold(0, u64::max)
    }

    /// Whether the two were in leave range, by every reading, at each of the ticks `from..=to`.
    pub fn was_near(&self, other: &Track, (from, to): (u64, u64), mirror_ticks: u64) -> bool {
        let both = self.rules.range.and(other.rules.range);
        let since = self.place_since.max(other.place_since);
        let near = |a: Pos, b: Pos| self.range.may(both, &Reading::of(a, b, &self.rules));
        self.place == other.place
            && since <= from
            && (from..=to).all(|t| {
                let late = t.saturating_sub(mirror_ticks);
                let (a, b) = (self.at(t), other.at(t));
                near(a, b) && near(self.at(late), b) && near(a, other.at(late))
            })
    }
}

//! Where a player truly was.

use std::collections::VecDeque;

use purview::scene::movement::Course;
use purview::scene::{EntityId, Plane, Pos, RangeSet, Visibility};
use purview::wire::{JoinRules, OwnMove};

use super::rules::{self, Range, interval};

/// Where entities may see each other at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub scene: u32,
    pub plane: Plane,
}

/// What others may look at of a player: its truth of the present tick and of some before.
#[derive(Debug, Clone)]
pub(super) struct Track {
    /// Who; 0 for a slot not in a scene.
    pub id: EntityId,
    /// Where it is; `None` while it jumps from one plane or scene to another.
    pub place: Option<Place>,
    pub place_since: u64,
    pub rules: JoinRules,
    pub range: Range,
    pub pos: Pos,
    /// What it does by the server's account, where moves are judged: where it is in every tick follows.
    course: Option<Course>,
    pub patch: (i32, i32),
    /// Where it was when the server's other regions last heard of it.
    pub late: Pos,
    late_patch: (i32, i32),
    /// It was somewhere from a tick on; newest last.
    runs: VecDeque<(u64, Pos)>,
    keep_ticks: u64,
    /// The last tick for which it had no frame, so that nobody knows where it was.
    pub held_at: Option<u64>,
    /// The last tick at which its list was at the cap.
    pub full_at: Option<u64>,
    /// Players in its list.
    pub listed: usize,
}

impl Default for Track {
    fn default() -> Self {
        let rules = JoinRules {
            visibility: Visibility::All,
            range: RangeSet::NONE,
            patch_cm: 1,
            view_cap: 0,
            view_margin_cm: 0,
            rates: [1; 3],
            size_cm: [0; 2],
            movement: None,
        };
        Track {
            id: EntityId(0),
            place: None,
            place_since: 0,
            range: Range::All,
            rules,
            pos: Pos::default(),
            course: None,
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
    pub fn new(
        id: EntityId,
        place: Place,
        rules: JoinRules,
        pos: Pos,
        t: u64,
        slack: u64,
    ) -> Track {
        let longest = rules.rates.iter().copied().max().unwrap_or(1);
        let mut track = Track {
            id,
            place: Some(place),
            place_since: t,
            range: Range::of(&rules),
            rules,
            keep_ticks: u64::from(longest) + 2 * slack + 8,
            ..Track::default()
        };
        track.stand(pos, t);
        track
    }

    /// It comes to another scene or plane.
    pub fn arrive(&mut self, place: Place, rules: JoinRules, pos: Pos, t: u64) {
        if self.place != Some(place) {
            self.place = Some(place);
            self.place_since = t;
        }
        self.range = Range::of(&rules);
        self.rules = rules;
        self.stand(pos, t);
    }

    /// It is told of its own movement; `None`: what was told before does not hold any more.
    pub fn follow(&mut self, own: Option<&OwnMove>) {
        self.course = own.and_then(|own| rules::course(&self.rules, &own.course));
    }

    /// It is where its course has come to at tick `t`.
    pub fn walk_on(&mut self, t: u64) {
        if let Some(course) = &self.course {
            self.stand(rules::place(&self.rules, course, t), t);
        }
    }

    /// It is at `pos` from tick `t` on.
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

    /// The last tick up to `t` at which it was at `pos`, as far back as is kept.
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

    /// Where it was at tick `t`; its oldest known place when that is later.
    pub fn at(&self, t: u64) -> Pos {
        let run = self.runs.iter().rev().find(|(since, _)| *since <= t);
        run.or(self.runs.front()).map_or(self.pos, |(_, pos)| *pos)
    }

    /// Whether its place at tick `t` is unknown.
    pub fn is_held(&self, t: u64) -> bool {
        self.held_at == Some(t)
    }

    /// Whether its place was unknown at any of the ticks from `t` on.
    pub fn was_held_since(&self, t: u64) -> bool {
        self.held_at.is_some_and(|at| at >= t)
    }

    /// Whether its list was at the cap at any of the ticks from `t` on.
    pub fn was_full_since(&self, t: u64) -> bool {
        self.full_at.is_some_and(|at| at >= t)
    }

    /// Whether it has room for one more.
    pub fn has_room(&self) -> bool {
        self.listed < self.rules.view_cap as usize
    }

    /// Finds where it was `mirror_ticks` before tick `t`.
    pub fn look_back(&mut self, t: u64, mirror_ticks: u64) {
        self.late = self.at(t.saturating_sub(mirror_ticks));
        self.late_patch = rules::patch(self.late, &self.rules);
    }

    /// Ticks between two updates that it is told of `other`, at the slowest ring in which the server
    /// may believe the other to be.
    pub fn rate(&self, other: &Track) -> u64 {
        let now = interval(&self.rules, rules::ring(self.patch, other.patch));
        now.max(interval(&self.rules, rules::ring(self.patch, other.late_patch)))
    }

    /// Ring and squared distance of the two, as they are and as one who knows either late reads them.
    fn readings(&self, other: &Track) -> [(u32, u64); 3] {
        [
            (rules::ring(self.patch, other.patch), self.pos.dist2(other.pos)),
            (rules::ring(self.late_patch, other.patch), self.late.dist2(other.pos)),
            (rules::ring(self.patch, other.late_patch), self.pos.dist2(other.late)),
        ]
    }

    /// Whether the two may be shown to each other by any reading.
    pub fn may_see(&self, other: &Track) -> bool {
        let both = self.rules.range.and(other.rules.range);
        self.place == other.place
            && self.readings(other).iter().any(|(ring, d2)| self.range.may(both, *ring, *d2))
    }

    /// Whether the two are in leave range by every reading.
    pub fn is_near(&self, other: &Track) -> bool {
        let both = self.rules.range.and(other.rules.range);
        self.place == other.place
            && self.readings(other).iter().all(|(ring, d2)| self.range.may(both, *ring, *d2))
    }

    /// The longest squared distance of the two by any reading.
    pub fn dist2_max(&self, other: &Track) -> u64 {
        self.readings(other).iter().map(|(_, d2)| *d2).fold(0, u64::max)
    }

    /// Whether the two were in leave range, by every reading, at each of the ticks `from..=to`.
    pub fn was_near(&self, other: &Track, (from, to): (u64, u64), mirror_ticks: u64) -> bool {
        let both = self.rules.range.and(other.rules.range);
        let since = self.place_since.max(other.place_since);
        let near = |a: Pos, b: Pos| {
            let ring = rules::ring(rules::patch(a, &self.rules), rules::patch(b, &self.rules));
            self.range.may(both, ring, a.dist2(b))
        };
        self.place == other.place
            && since <= from
            && (from..=to).all(|t| {
                let late = t.saturating_sub(mirror_ticks);
                let (a, b) = (self.at(t), other.at(t));
                near(a, b) && near(self.at(late), b) && near(a, other.at(late))
            })
    }
}

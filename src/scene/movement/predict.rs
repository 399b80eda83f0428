//! A client's own movement: where it is before the server has answered, and what it says when.

use std::collections::VecDeque;

use super::walk::Walk;
use super::{
    Blend, ClientMs, Footing, Go, Move, MoveOrder, Path, Rules, Ruling, Steps, Tiles, Vector,
};
use crate::scene::{Pos, Seq};

/// Least time between two turns that are said, milliseconds. What the player does in between is done with
/// the next.
const TURN_MS: u64 = 50;

/// What the player wishes to do, from wherever it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// Stand.
    Stand,
    /// Walk straight on: east and south per second, millimetres.
    Straight {
        /// East.
        vx_mm_s: i32,
        /// South.
        vz_mm_s: i32,
        /// For how long, milliseconds; `None`: until another wish.
        lasts_ms: Option<u32>,
    },
    /// Walk tile by tile.
    Steps {
        /// The way.
        steps: Steps,
        /// Speed, centimetres per second.
        speed_cm_s: u32,
    },
}

impl Wish {
    /// Straight on in the direction of (`dx`, `dz`).
    pub fn heading(dx: i32, dz: i32, speed_cm_s: u32) -> Wish {
        let Vector { vx_mm_s, vz_mm_s, .. } = Vector::heading(Pos::default(), dx, dz, speed_cm_s);
        Wish::Straight { vx_mm_s, vz_mm_s, lasts_ms: None }
    }

    fn speed_cm_s(&self) -> u32 {
        self.course(Pos::default(), 1).speed_cm_s()
    }

    fn course(&self, start: Pos, tile_cm: i32) -> Move {
        match *self {
            Wish::Stand => Move::stand(start),
            Wish::Straight { vx_mm_s, vz_mm_s, lasts_ms } => {
                Vector { start, vx_mm_s, vz_mm_s, lasts_ms }.into()
            }
            Wish::Steps { steps, speed_cm_s } => {
                Path::new(start, steps, speed_cm_s, tile_cm).into()
            }
        }
    }

    /// What is left of a walk that has been walked for so long.
    fn left(course: &Move, walked_ms: u32) -> Wish {
        match course {
            Move::Vector(v) => {
                let lasts_ms = v.lasts_ms.map(|ms| ms.saturating_sub(walked_ms));
                Wish::Straight { vx_mm_s: v.vx_mm_s, vz_mm_s: v.vz_mm_s, lasts_ms }
            }
            Move::Path(p) => Wish::Steps { steps: p.rest(walked_ms), speed_cm_s: p.speed_cm_s() },
        }
    }
}

/// A word that the server has not acknowledged.
#[derive(Debug, Clone, Copy)]
struct Unacked {
    seq: Seq,
    /// How much the client had walked by then, milliseconds.
    walked_ms: u64,
}

/// A client's own entity: where it is by its own account, which the server's is held to be equal to until it
/// says otherwise. Without clock and socket: `now` is the client's time, in every call not less than in the
/// one before.
#[derive(Debug)]
pub struct Predictor {
    rules: Rules,
    walk: Walk,
    /// When a walk that the server ordered was heard of.
    ordered_at: ClientMs,
    ruling: u32,
    /// What is to be done next: a wish that was not said yet.
    wish: Option<Wish>,
    /// The present wish, as it was said.
    said: Wish,
    /// The last word's time.
    word: ClientMs,
    /// A stop that the leash made and that was not said yet.
    stopped_at: Option<ClientMs>,
    held: bool,
    unacked: VecDeque<Unacked>,
    /// Milliseconds walked before the present walk.
    walked_ms: u64,
    blend: Blend,
}

impl Predictor {
    /// An entity that stands at `pos` by ruling number `ruling`.
    pub fn new(now: ClientMs, pos: Pos, ruling: u32, rules: Rules, blend: Blend) -> Predictor {
        Predictor {
            rules,
            walk: Walk::stand(pos),
            ordered_at: now,
            ruling,
            wish: None,
            said: Wish::Stand,
            word: ClientMs(0),
            stopped_at: None,
            held: false,
            unacked: VecDeque::new(),
            walked_ms: 0,
            blend,
        }
    }

    /// The player wishes something else; [`Predictor::poll`] has it done.
    pub fn wish(&mut self, wish: Wish) {
        let same = self.wish.unwrap_or(self.said) == wish;
        // What ends by itself can be wished again.
        let endless = matches!(wish, Wish::Stand | Wish::Straight { lasts_ms: None, .. });
        if !same || !endless {
            self.wish = Some(wish);
        }
    }

    /// What is to be said at `now`, if anything is; to be sent at once as input number `seq`. To be asked in
    /// every frame of the game, until there is nothing.
    pub fn poll<T: Tiles>(
        &mut self,
        now: ClientMs,
        seq: Seq,
        tiles: &T,
        plane: crate::scene::Plane,
    ) -> Option<MoveOrder> {
        let rules = self.rules;
        let on = Footing { tiles, plane, rules: &rules };
        self.keep_leash(now);
        if let Some(at) = self.stopped_at.take() {
            let stand = self.walk.course;
            return Some(self.word(at.max(self.word), seq, Go::Walk(stand)));
        }
        if self.held || self.is_ordered(now) {
            return None;
        }
        let passed_ms = self.walk.passed(now);
        if self.walk.is_clients() && self.walk.has_lapsed(passed_ms) && self.wish.is_none() {
            // The game stood still for too long, and so did the entity: walk on from there.
            self.wish = Some(Wish::left(&self.walk.course, self.walk.walked(passed_ms)));
        }
        if let Some(wish) = self.due(now) {
            return self.begin(now, seq, wish, &on);
        }
        let walking = self.walk.is_clients() && !self.walk.is_over(passed_ms);
        if !walking || now.since(self.word) < self.rules.word_ms.into() {
            return None;
        }
        self.walk.go_on(now, &on);
        Some(self.word(now, seq, Go::On))
    }

    /// The wish that is to be said now. Turns wait a little, so that a stick does not flood the server; to
    /// slow down does not.
    fn due(&mut self, now: ClientMs) -> Option<Wish> {
        let wish = self.wish?;
        let turns = wish.speed_cm_s() >= self.said.speed_cm_s() && self.said != Wish::Stand;
        let waits = turns && now.since(self.word) < TURN_MS;
        if waits { None } else { self.wish.take() }
    }

    fn begin<T: Tiles>(
        &mut self,
        now: ClientMs,
        seq: Seq,
        wish: Wish,
        on: &Footing<'_, T>,
    ) -> Option<MoveOrder> {
        let here = self.position(now);
        let stood = !self.walk.is_clients() || self.walk.is_over(self.walk.passed(now));
        let mut next = Walk::begin(wish.course(here, on.tile_cm()), now, on);
        self.said = wish;
        if next.is_err() {
            // A path that the map does not allow is not walked.
            self.said = Wish::Stand;
            next = Walk::begin(Move::stand(here), now, on);
        }
        let next = next.ok()?;
        self.walked_ms = self.walked(now);
        self.walk = next;
        if stood && next.course.is_standing() {
            return None;
        }
        Some(self.word(now, seq, Go::Walk(next.course)))
    }

    fn word(&mut self, at: ClientMs, seq: Seq, go: Go) -> MoveOrder {
        self.word = at;
        self.unacked.push_back(Unacked { seq, walked_ms: self.walked(at) });
        MoveOrder { ruling: self.ruling, at, go }
    }

    /// Milliseconds walked since the beginning, all told.
    fn walked(&self, now: ClientMs) -> u64 {
        match self.walk.is_clients() {
            true => self.walked_ms + u64::from(self.walk.walked(self.walk.passed(now))),
            false => self.walked_ms,
        }
    }

    /// Stops where it has walked as far as it may without an answer, which may have been before `now`.
    fn keep_leash(&mut self, now: ClientMs) {
        let Some(oldest) = self.unacked.front() else {
            self.held = false;
            return;
        };
        let end_ms = oldest.walked_ms + u64::from(self.rules.leash_ms);
        self.held = self.walked(now) >= end_ms;
        let walked_ms = end_ms.saturating_sub(self.walked_ms);
        if !self.held || !self.walk.is_clients() || self.walked(now) == self.walked_ms {
            return;
        }
        let at = self.walk.moment(walked_ms).unwrap_or(now);
        let walked_ms = self.walk.walked(walked_ms);
        let left = Wish::left(&self.walk.course, walked_ms);
        self.wish = self.wish.or(Some(left));
        self.said = Wish::Stand;
        self.walked_ms += u64::from(walked_ms);
        let here = self.walk.course.position(walked_ms);
        self.walk = Walk::stand(here).clients(at);
        self.stopped_at = Some(at);
    }

    /// The server has applied all inputs up to number `seq`.
    pub fn acked(&mut self, now: ClientMs, seq: Seq) {
        self.keep_leash(now);
        while self.unacked.front().is_some_and(|word| word.seq <= seq) {
            self.unacked.pop_front();
        }
        self.keep_leash(now);
    }

    /// From now on it moves by other rules: those of another scene.
    pub fn set_rules(&mut self, rules: Rules) {
        self.rules = rules;
    }

    /// The server overrules the client. An older ruling than the last one is no news.
    pub fn ruled(&mut self, now: ClientMs, ruling: &Ruling) {
        if ruling.number <= self.ruling {
            return;
        }
        let shown = self.shown(now);
        self.keep_leash(now);
        self.walked_ms = self.walked(now);
        self.ruling = ruling.number;
        self.walk = Walk::stand(ruling.course.start()).doing(ruling.course, ruling.lasts_ms);
        self.ordered_at = now;
        (self.wish, self.said, self.stopped_at) = (None, Wish::Stand, None);
        self.blend.begin(now.0, shown, self.position(now));
    }

    /// Whether the server moves the entity just now.
    fn is_ordered(&self, now: ClientMs) -> bool {
        !self.walk.is_clients() && !self.walk.is_over(now.since(self.ordered_at))
    }

    /// Where the entity is, which is where the server will say that it was.
    pub fn position(&self, now: ClientMs) -> Pos {
        match self.walk.is_clients() {
            true => self.walk.at(now),
            false => {
                let passed_ms = now.since(self.ordered_at);
                self.walk.course.position(self.walk.walked(passed_ms))
            }
        }
    }

    /// Where to show it: where it is, reached without a leap after a ruling.
    pub fn shown(&self, now: ClientMs) -> Pos {
        self.blend.shown(now.0, self.position(now))
    }

    /// Whether it waits for the server's answer, because it has walked as far as it may without one.
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// The number of the last ruling that was followed.
    pub fn ruling(&self) -> u32 {
        self.ruling
    }
}

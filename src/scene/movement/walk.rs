//! A move in progress: the arithmetic that client and server share.
//!
//! [`Mover`](super::Mover) and [`Predictor`](super::Predictor) own one [`Walk`] each. Both must
//! compute the same position from the same commands.

use serde::{Deserialize, Serialize};

use super::trace::{Clear, check_path, clear_path, clear_vector};
use super::{ClientMs, Footing, Path, Reason, Tiles, Vector};
use crate::scene::Pos;

/// A move in one of its two forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Move {
    /// Tile by tile.
    Path(Path),
    /// Straight on.
    Vector(Vector),
}

impl Move {
    /// Standing at a position.
    pub fn stand(at: Pos) -> Move {
        Move::Vector(Vector::stand(at))
    }

    /// Start position.
    pub fn start(&self) -> Pos {
        match self {
            Move::Path(p) => p.start(),
            Move::Vector(v) => v.start,
        }
    }

    /// Position `elapsed_ms` after the start, if nothing stops the move. Height is that of the
    /// start.
    pub fn position(&self, elapsed_ms: u32) -> Pos {
        match self {
            Move::Path(p) => p.position(elapsed_ms),
            Move::Vector(v) => v.position(elapsed_ms),
        }
    }

    /// The same on the ground: what walks is on it; what stands keeps the height at which it was put.
    pub fn position_on<T: Tiles>(&self, tiles: &T, elapsed_ms: u32) -> Pos {
        let pos = self.position(elapsed_ms);
        if self.is_standing() { pos } else { tiles.grounded(pos) }
    }

    /// Milliseconds after which the entity stands; 0 for a move that stands, `u32::MAX` if it never
    /// stops.
    pub fn walk_ms(&self) -> u32 {
        match self {
            Move::Path(p) => p.walk_ms(),
            Move::Vector(v) => v.walk_ms(),
        }
    }

    /// Whether the move stands from its start.
    pub fn is_standing(&self) -> bool {
        self.walk_ms() == 0
    }

    /// The same move from another start.
    pub(super) fn begun_at(self, start: Pos) -> Move {
        match self {
            Move::Path(p) => Move::Path(p.begun_at(start)),
            Move::Vector(v) => Move::Vector(Vector { start, ..v }),
        }
    }

    /// The same move over tiles with sides of `tile_cm`.
    fn on_tiles(self, tile_cm: i32) -> Move {
        match self {
            Move::Path(p) => Move::Path(p.with_tile(tile_cm)),
            Move::Vector(v) => Move::Vector(v),
        }
    }

    /// Speed, centimetres per second, rounded up.
    pub fn speed_cm_s(&self) -> u32 {
        match self {
            Move::Path(p) => p.speed_cm_s(),
            Move::Vector(v) => v.speed_cm_s(),
        }
    }
}

impl From<Path> for Move {
    fn from(path: Path) -> Move {
        Move::Path(path)
    }
}

impl From<Vector> for Move {
    fn from(vector: Vector) -> Move {
        Move::Vector(vector)
    }
}

/// Longest move that the server orders, milliseconds.
const ORDERED_MS_MAX: u32 = 60_000;

/// A move in progress. It ends where its way is blocked, and a while after the last command about
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Walk {
    pub motion: Move,
    /// When it started, by the client's clock; `None` for a move that the server ordered, which is
    /// over before the client's commands count again.
    since: Option<ClientMs>,
    /// Milliseconds from the start to the client's last command about it.
    said_ms: u64,
    /// For how long it goes on after that command, milliseconds.
    reach_ms: u32,
    /// Milliseconds from the start to where the way is blocked; `None`: not blocked.
    blocked_ms: Option<u32>,
}

impl Walk {
    /// A client's move that starts at `at`.
    ///
    /// # Errors
    /// The path cannot be walked. A vector is never refused: it stops where its way is blocked.
    pub fn begin<T: Tiles>(
        motion: Move,
        at: ClientMs,
        on: &Footing<'_, T>,
    ) -> Result<Walk, Reason> {
        let reach_ms = on.rules.reach_ms();
        let mut walk = Walk { since: Some(at), reach_ms, ..Walk::stand(motion.start()) };
        walk.motion = motion.on_tiles(on.tile_cm());
        match &walk.motion {
            Move::Path(p) => check_path(p, on)?,
            Move::Vector(_) => walk.check_path(0, on),
        }
        Ok(walk)
    }

    /// A move ordered by the server, as far as its way is clear and for at most a minute.
    pub fn ordered<T: Tiles>(motion: Move, on: &Footing<'_, T>) -> Walk {
        let mut walk = Walk::stand(motion.start());
        walk.motion = motion.on_tiles(on.tile_cm());
        walk.check_path(0, on);
        walk
    }

    /// Standing, by order of the server.
    pub fn stand(at: Pos) -> Walk {
        let (motion, reach_ms) = (Move::stand(at), ORDERED_MS_MAX);
        Walk { motion, since: None, said_ms: 0, reach_ms, blocked_ms: None }
    }

    /// The same, started by the client at `at`.
    pub fn clients(self, at: ClientMs) -> Walk {
        Walk { since: Some(at), ..self }
    }

    /// A move ordered by the server, which also gives its duration.
    pub fn doing(self, motion: Move, lasts_ms: u32) -> Walk {
        Walk { motion, blocked_ms: Some(lasts_ms), ..self }
    }

    /// Whether the client started it.
    pub fn is_clients(&self) -> bool {
        self.since.is_some()
    }

    /// Milliseconds walked when `ms` have passed since the start. Fewer if the way is blocked, if
    /// the move has ended, or if the client's last command is too old.
    pub fn walked(&self, ms: u64) -> u32 {
        u32::try_from(ms.min(self.lapses_ms())).unwrap_or(u32::MAX).min(self.lasts_ms())
    }

    /// Milliseconds after which the move ends unless a command arrives.
    fn lapses_ms(&self) -> u64 {
        self.said_ms.saturating_add(self.reach_ms.into())
    }

    /// Milliseconds from the start to a client time. A move that the server ordered counts as over.
    pub fn passed(&self, at: ClientMs) -> u64 {
        self.since.map_or(u64::MAX, |since| at.since(since))
    }

    /// The client time `passed_ms` after the start; `None` for a move that the server ordered.
    pub fn moment(&self, passed_ms: u64) -> Option<ClientMs> {
        self.since.map(|since| since.plus(passed_ms))
    }

    /// Position at a client time.
    pub fn at(&self, at: ClientMs) -> Pos {
        self.motion.position(self.walked(self.passed(at)))
    }

    /// Milliseconds walked up to the client's last command.
    pub fn said(&self) -> u32 {
        match self.since {
            Some(_) => self.walked(self.said_ms),
            None => 0,
        }
    }

    /// Milliseconds walked from the client's last command to `at`.
    pub fn walked_since_command(&self, at: ClientMs) -> u32 {
        match self.since {
            Some(_) => self.walked(self.passed(at)).saturating_sub(self.said()),
            None => 0,
        }
    }

    /// Whether it is over for good `ms` after the start, whatever the client sends.
    pub fn is_over(&self, ms: u64) -> bool {
        u64::from(self.lasts_ms()) <= ms
    }

    /// Whether it has ended `ms` after the start, before its own end, because no command arrived.
    pub fn has_lapsed(&self, ms: u64) -> bool {
        ms > self.lapses_ms() && u64::from(self.lasts_ms()) > self.lapses_ms()
    }

    /// Milliseconds from the start to where it ends unless a command arrives; `None`: its own end
    /// comes first.
    pub fn lapse_ms(&self) -> Option<u64> {
        Some(self.lapses_ms()).filter(|ms| u64::from(self.lasts_ms()) > *ms)
    }

    /// When it ended for good, by the client's clock, if that was before `at` and the client has sent no command since.
    pub fn unsaid_end(&self, at: ClientMs) -> Option<ClientMs> {
        let (since, lasts_ms) = (self.since?, u64::from(self.lasts_ms()));
        let ends = (self.said_ms + 1..=self.lapses_ms()).contains(&lasts_ms);
        (ends && lasts_ms <= at.since(since)).then(|| since.plus(lasts_ms))
    }

    /// Whether something in the way ends it before its own end.
    pub fn is_blocked(&self) -> bool {
        self.blocked_ms.is_some_and(|ms| ms < self.motion.walk_ms())
    }

    /// The client says at `at` that it goes on. A walk that ended because no command arrived stays
    /// ended.
    pub fn go_on<T: Tiles>(&mut self, at: ClientMs, on: &Footing<'_, T>) {
        let Some(since) = self.since else { return };
        let passed_ms = at.since(since);
        if self.has_lapsed(passed_ms) {
            *self = Walk { since: Some(at), reach_ms: self.reach_ms, ..Walk::stand(self.at(at)) };
            return;
        }
        let known = self.walked(u64::MAX);
        self.said_ms = self.said_ms.max(passed_ms);
        if self.blocked_ms.is_none() && matches!(self.motion, Move::Vector(_)) {
            self.check_path(known, on);
        }
    }

    /// What stopped it for good before the client time `at`, if something was in its way.
    pub fn overrun<T: Tiles>(&self, at: ClientMs, on: &Footing<'_, T>) -> Option<Reason> {
        self.blocked_ms.filter(|ms| self.is_clients() && self.passed(at) > u64::from(*ms))?;
        self.stop(on)
    }

    /// Checks how far the way is clear from `from_ms` after the start on, or from its end so far.
    pub fn check_path<T: Tiles>(&mut self, from_ms: u32, on: &Footing<'_, T>) {
        let from_ms = self.walked(from_ms.into());
        self.blocked_ms = None;
        let clear = self.clear(from_ms, on);
        self.blocked_ms = clear.stop.map(|_| clear.ms);
    }

    /// As [`Walk::check_path`], but the walk never gets longer.
    pub fn check_path_again<T: Tiles>(&mut self, from_ms: u32, on: &Footing<'_, T>) {
        let was = self.blocked_ms;
        self.check_path(from_ms, on);
        self.blocked_ms = was.into_iter().chain(self.blocked_ms).min();
    }

    /// What blocks the way, if anything.
    pub fn stop<T: Tiles>(&self, on: &Footing<'_, T>) -> Option<Reason> {
        self.blocked_ms.and_then(|ms| self.clear(ms, on).stop)
    }

    fn clear<T: Tiles>(&self, from_ms: u32, on: &Footing<'_, T>) -> Clear {
        match &self.motion {
            Move::Path(p) => clear_path(p, from_ms, on),
            Move::Vector(v) => {
                let to_ms = u32::try_from(self.lapses_ms()).unwrap_or(u32::MAX);
                clear_vector(v, (from_ms, to_ms), on)
            }
        }
    }

    /// Milliseconds from the start to the end, as far as known.
    pub fn lasts_ms(&self) -> u32 {
        self.motion.walk_ms().min(self.blocked_ms.unwrap_or(u32::MAX))
    }
}

//! A move as it is walked, by word of the client: the part that both sides compute alike.

use serde::{Deserialize, Serialize};

use super::trace::{Clear, check_path, clear_path, clear_vector};
use super::{ClientMs, Footing, Path, Reason, Tiles, Vector};
use crate::scene::Pos;

/// A move, in either of its two forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Move {
    /// Tile by tile.
    Path(Path),
    /// Straight on.
    Vector(Vector),
}

impl Move {
    /// To stand at a place.
    pub fn stand(at: Pos) -> Move {
        Move::Vector(Vector::stand(at))
    }

    /// Where it begins.
    pub fn start(&self) -> Pos {
        match self {
            Move::Path(p) => p.start(),
            Move::Vector(v) => v.start,
        }
    }

    /// Where it is `elapsed_ms` after its beginning, if nothing stops it. Height is that of the
    /// start.
    pub fn position(&self, elapsed_ms: u32) -> Pos {
        match self {
            Move::Path(p) => p.position(elapsed_ms),
            Move::Vector(v) => v.position(elapsed_ms),
        }
    }

    /// Milliseconds after which it stands; 0 when it is to stand, `u32::MAX` when it never does.
    pub fn walk_ms(&self) -> u32 {
        match self {
            Move::Path(p) => p.walk_ms(),
            Move::Vector(v) => v.walk_ms(),
        }
    }

    /// Whether it is to stand.
    pub fn is_standing(&self) -> bool {
        self.walk_ms() == 0
    }

    /// The same, begun elsewhere.
    pub(super) fn begun_at(self, start: Pos) -> Move {
        match self {
            Move::Path(p) => Move::Path(p.begun_at(start)),
            Move::Vector(v) => Move::Vector(Vector { start, ..v }),
        }
    }

    /// The same over tiles with sides of `tile_cm`.
    fn on_tiles(self, tile_cm: i32) -> Move {
        match self {
            Move::Path(p) => Move::Path(p.with_tile(tile_cm)),
            Move::Vector(v) => Move::Vector(v),
        }
    }

    /// Its speed, centimetres per second, rounded up.
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

/// Longest walk that the server orders, milliseconds.
const ORDERED_MS_MAX: u32 = 60_000;

/// A move as it is walked. It ends where its way is blocked, and some time after the last word about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Walk {
    pub course: Move,
    /// The client's time at which it began; `None` for one that the server ordered, which is over before
    /// the client has a say again.
    since: Option<ClientMs>,
    /// Milliseconds from its beginning to the client's last word about it.
    said_ms: u64,
    /// For how long it goes on after that, milliseconds.
    reach_ms: u32,
    /// Milliseconds from its beginning to where its way is blocked, if it is.
    blocked_ms: Option<u32>,
}

impl Walk {
    /// A client's move that begins at `at`.
    ///
    /// # Errors
    /// A path that cannot be walked. A vector is stopped only by what is in its way.
    pub fn begin<T: Tiles>(
        course: Move,
        at: ClientMs,
        on: &Footing<'_, T>,
    ) -> Result<Walk, Reason> {
        let reach_ms = on.rules.reach_ms();
        let mut walk = Walk { since: Some(at), reach_ms, ..Walk::stand(course.start()) };
        walk.course = course.on_tiles(on.tile_cm());
        match &walk.course {
            Move::Path(p) => check_path(p, on)?,
            Move::Vector(_) => walk.look(0, on),
        }
        Ok(walk)
    }

    /// A move by order of the server, as far as its way is clear, for at most a minute.
    pub fn ordered<T: Tiles>(course: Move, on: &Footing<'_, T>) -> Walk {
        let mut walk = Walk::stand(course.start());
        walk.course = course.on_tiles(on.tile_cm());
        walk.look(0, on);
        walk
    }

    /// The server has the entity stand.
    pub fn stand(at: Pos) -> Walk {
        let (course, reach_ms) = (Move::stand(at), ORDERED_MS_MAX);
        Walk { course, since: None, said_ms: 0, reach_ms, blocked_ms: None }
    }

    /// The same, begun by the client at `at`.
    pub fn clients(self, at: ClientMs) -> Walk {
        Walk { since: Some(at), ..self }
    }

    /// By order of the server, which says for how long.
    pub fn doing(self, course: Move, lasts_ms: u32) -> Walk {
        Walk { course, blocked_ms: Some(lasts_ms), ..self }
    }

    /// Whether the client began it.
    pub fn is_clients(&self) -> bool {
        self.since.is_some()
    }

    /// Milliseconds that have been walked when `ms` have passed since its beginning: less where its way
    /// is blocked, where it ends, and where it is too long ago that the client said a word.
    pub fn walked(&self, ms: u64) -> u32 {
        u32::try_from(ms.min(self.lapses_ms())).unwrap_or(u32::MAX).min(self.lasts_ms())
    }

    /// Milliseconds after which it ends for want of a word.
    fn lapses_ms(&self) -> u64 {
        self.said_ms.saturating_add(self.reach_ms.into())
    }

    /// Milliseconds from its beginning to a moment of the client's. One that the server ordered is over.
    pub fn passed(&self, at: ClientMs) -> u64 {
        self.since.map_or(u64::MAX, |since| at.since(since))
    }

    /// The moment of the client's so long after its beginning.
    pub fn moment(&self, passed_ms: u64) -> Option<ClientMs> {
        self.since.map(|since| since.plus(passed_ms))
    }

    /// Where it is at a moment of the client's.
    pub fn at(&self, at: ClientMs) -> Pos {
        self.course.position(self.walked(self.passed(at)))
    }

    /// Milliseconds walked by the client's last word.
    pub fn said(&self) -> u32 {
        match self.since {
            Some(_) => self.walked(self.said_ms),
            None => 0,
        }
    }

    /// Milliseconds walked from the client's last word to `at`.
    pub fn walked_since_word(&self, at: ClientMs) -> u32 {
        match self.since {
            Some(_) => self.walked(self.passed(at)).saturating_sub(self.said()),
            None => 0,
        }
    }

    /// Whether it is over for good `ms` after its beginning, whatever the client says.
    pub fn is_over(&self, ms: u64) -> bool {
        u64::from(self.lasts_ms()) <= ms
    }

    /// Whether it has ended for want of a word, before its end, `ms` after its beginning.
    pub fn has_lapsed(&self, ms: u64) -> bool {
        ms > self.lapses_ms() && u64::from(self.lasts_ms()) > self.lapses_ms()
    }

    /// Milliseconds from its beginning to where it ends for want of a word, if that is before its end.
    pub fn lapse_ms(&self) -> Option<u64> {
        Some(self.lapses_ms()).filter(|ms| u64::from(self.lasts_ms()) > *ms)
    }

    /// The client says at `at` that it goes on. One that has ended for want of a word stays ended.
    pub fn go_on<T: Tiles>(&mut self, at: ClientMs, on: &Footing<'_, T>) {
        let Some(since) = self.since else { return };
        let passed_ms = at.since(since);
        if self.has_lapsed(passed_ms) {
            *self = Walk { since: Some(at), reach_ms: self.reach_ms, ..Walk::stand(self.at(at)) };
            return;
        }
        let known = self.walked(u64::MAX);
        self.said_ms = self.said_ms.max(passed_ms);
        if self.blocked_ms.is_none() && matches!(self.course, Move::Vector(_)) {
            self.look(known, on);
        }
    }

    /// What has stopped it for good before a moment of the client's, if something was in its way.
    pub fn overrun<T: Tiles>(&self, at: ClientMs, on: &Footing<'_, T>) -> Option<Reason> {
        self.blocked_ms.filter(|ms| self.is_clients() && self.passed(at) > u64::from(*ms))?;
        self.stop(on)
    }

    /// Looks how far its way is clear from `from_ms` after its beginning on, or from where it ended so far.
    pub fn look<T: Tiles>(&mut self, from_ms: u32, on: &Footing<'_, T>) {
        let from_ms = self.walked(from_ms.into());
        self.blocked_ms = None;
        let clear = self.clear(from_ms, on);
        self.blocked_ms = clear.stop.map(|_| clear.ms);
    }

    /// As [`Walk::look`]; its way gets no longer by it.
    pub fn look_again<T: Tiles>(&mut self, from_ms: u32, on: &Footing<'_, T>) {
        let was = self.blocked_ms;
        self.look(from_ms, on);
        self.blocked_ms = was.into_iter().chain(self.blocked_ms).min();
    }

    /// What blocks its way, if anything does.
    pub fn stop<T: Tiles>(&self, on: &Footing<'_, T>) -> Option<Reason> {
        self.blocked_ms.and_then(|ms| self.clear(ms, on).stop)
    }

    fn clear<T: Tiles>(&self, from_ms: u32, on: &Footing<'_, T>) -> Clear {
        match &self.course {
            Move::Path(p) => clear_path(p, from_ms, on),
            Move::Vector(v) => {
                let to_ms = u32::try_from(self.lapses_ms()).unwrap_or(u32::MAX);
                clear_vector(v, (from_ms, to_ms), on)
            }
        }
    }

    /// Milliseconds from its beginning to where it ends, as far as that is known.
    pub fn lasts_ms(&self) -> u32 {
        self.course.walk_ms().min(self.blocked_ms.unwrap_or(u32::MAX))
    }
}

//! What the server says of an entity's movement over its client's head.

use serde::{Deserialize, Serialize};

use super::{ClientMs, Flags, Granted, MAX_GRANTS, Move, Reason, ServerMs};
use crate::scene::Seq;

/// A client's word about its own movement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveOrder {
    /// The number of the last ruling that the client has followed. What answers to an older one was said
    /// before the client knew better, and is dropped.
    pub ruling: u32,
    /// When, by the client's clock.
    pub at: ClientMs,
    /// What it does from then on.
    pub go: Go,
}

/// What a client does from a moment on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Go {
    /// As before.
    On,
    /// Another move, which begins where the last one has come to.
    Walk(Move),
}

/// The server's word on where an entity is, which overrules its client's moves until the client answers
/// with the ruling's number. At most one is unanswered: what the client said before it knew is
/// dropped without another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ruling {
    /// Counts an entity's rulings, from 1.
    pub number: u32,
    /// What the entity does from now on: it stands, or is pushed. Only after that the client has a say
    /// again.
    pub course: Move,
    /// For how long it lasts, milliseconds; less than the move itself where something is in its way.
    pub lasts_ms: u32,
}

/// A refused move. The entity does as the ruling says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The input's number.
    pub seq: Seq,
    /// Why.
    pub why: Reason,
    /// Where the entity is.
    pub ruling: Ruling,
}

/// What became of a move that was not refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepted {
    /// The entity moves otherwise than viewers were told.
    Changed,
    /// Viewers need not be told anything.
    Kept,
    /// The client said it before it knew of the last ruling, or had said it before. Nothing was changed.
    Dropped,
}

/// A move as viewers are told it: once, and they compute where the entity is at any time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Course {
    /// The move.
    pub course: Move,
    /// When it began, by the server's clock.
    pub start: ServerMs,
    /// Milliseconds after which it ends, as far as is known; `u32::MAX`: until another is told.
    pub lasts_ms: u32,
}

/// An entity's movement as its own client is told of it, as a level: whoever knows the newest one needs
/// none of those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Own {
    /// The number of the last ruling; where the client has not followed it yet the course is what it
    /// says.
    pub ruling: u32,
    /// What viewers are told.
    pub course: Course,
    /// Its own top speed, centimetres per second.
    pub speed_cm_s: u32,
    /// What keeps it from moving.
    pub flags: Flags,
    /// Speeds beyond its own that it was granted.
    pub grants: [Option<Granted>; MAX_GRANTS],
}

impl Own {
    /// The last ruling, for a client that has not followed it yet.
    pub fn ruling(&self) -> Ruling {
        let Course { course, lasts_ms, .. } = self.course;
        Ruling { number: self.ruling, course, lasts_ms }
    }
}

impl Course {
    /// Where the entity is at `now`. Height is that of the start; where a scene has heights it is the
    /// ground's.
    pub fn position(&self, now: ServerMs) -> crate::scene::Pos {
        let elapsed = u32::try_from(now.since(self.start)).unwrap_or(u32::MAX);
        self.course.position(elapsed.min(self.lasts_ms))
    }
}

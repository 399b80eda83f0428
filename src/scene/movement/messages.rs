//! The messages of movement: commands from a client, corrections to it, and trajectories for
//! viewers.
//!
//! The wire modules encode them; [`Mover`](super::Mover) and [`Predictor`](super::Predictor)
//! exchange them.

use serde::{Deserialize, Serialize};

use super::{ClientMs, Flags, Granted, MAX_GRANTS, Move, Reason, ServerMs};
use crate::scene::Seq;

/// A client's command for its own entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveCommand {
    /// Number of the last correction that the client has followed. A command with an older number
    /// was sent before the client knew better, and is dropped.
    pub correction: u32,
    /// When the command was given, by the client's clock.
    pub at: ClientMs,
    /// What the entity does from then on.
    pub go: Go,
}

/// What an entity does from a moment on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Go {
    /// Go on as before.
    On,
    /// Another move, which starts where the last one has come to.
    Walk(Move),
}

/// A correction: the server's decision on where an entity is. It overrides the client's moves until
/// a command answers with its number. At most one is unanswered: commands sent before the client
/// knew are dropped and cause no other correction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Correction {
    /// Counts an entity's corrections, from 1.
    pub number: u32,
    /// What the entity does from now on: it stands, or is pushed. The client's commands count again
    /// after that.
    pub motion: Move,
    /// Duration, milliseconds; shorter than the move itself if something is in the way.
    pub lasts_ms: u32,
}

/// A refused command. The entity follows the correction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedCommand {
    /// The input's number.
    pub seq: Seq,
    /// The reason.
    pub why: Reason,
    /// The correction that the client must be sent.
    pub correction: Correction,
}

/// Outcome of a command that was not refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepted {
    /// The trajectory changed: viewers must be told.
    Changed,
    /// The trajectory is as viewers know it.
    Kept,
    /// The command was sent before the client knew of the last correction, or is a duplicate.
    /// Nothing was changed.
    Dropped,
}

/// A trajectory: a move as viewers are told it, once. Viewers compute the position at any time from
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trajectory {
    /// The move.
    pub motion: Move,
    /// When it started, by the server's clock.
    pub start: ServerMs,
    /// Milliseconds after which the move ends, as far as known; `u32::MAX`: until the next
    /// trajectory.
    pub lasts_ms: u32,
}

/// An entity's movement as its own client is told it: a level, so that only the newest one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Own {
    /// Number of the last correction. If the client has not followed it yet, `trajectory` is what
    /// it orders.
    pub correction: u32,
    /// The trajectory that viewers are told.
    pub trajectory: Trajectory,
    /// The entity's own top speed, centimetres per second.
    pub speed_cm_s: u32,
    /// What keeps the entity from moving.
    pub flags: Flags,
    /// Granted speeds beyond the entity's own.
    pub grants: [Option<Granted>; MAX_GRANTS],
}

impl Own {
    /// The last correction, for a client that has not followed it yet.
    pub fn correction(&self) -> Correction {
        let Trajectory { motion, lasts_ms, .. } = self.trajectory;
        Correction { number: self.correction, motion, lasts_ms }
    }
}

impl Trajectory {
    /// The entity's position at `now`. Height is that of the start; in a scene with heights the
    /// ground's height applies.
    pub fn position(&self, now: ServerMs) -> crate::scene::Pos {
        self.motion.position(self.elapsed_ms(now))
    }

    /// Milliseconds after which it ends; `None`: not before the next one.
    pub(crate) fn ends_ms(&self) -> Option<u32> {
        (self.lasts_ms != u32::MAX).then_some(self.lasts_ms)
    }

    /// Milliseconds of the move that are over at `now`.
    pub(crate) fn elapsed_ms(&self, now: ServerMs) -> u32 {
        let elapsed = u32::try_from(now.since(self.start)).unwrap_or(u32::MAX);
        elapsed.min(self.lasts_ms)
    }
}

//! The limits by which move commands are judged.
//!
//! Each scene's specification builds one [`Rules`]; server and clients must use equal ones.

use serde::{Deserialize, Serialize};

use super::Tiles;
use crate::scene::{Plane, Pos, Rect};

/// How far a move may begin from where the entity was, as a time at its top speed, milliseconds.
/// With equal arithmetic on both sides it is 0; this is for clients that round in their own way.
pub(super) const STRAY_MS: u64 = 50;

/// The figures by which the moves of a scene are judged. Client and server use the same ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// Where an entity may be.
    pub bounds: Rect,
    /// How far from height 0 a move may begin, centimetres.
    pub height_limit_cm: u32,
    /// A walking client sends a command at least this often, milliseconds.
    pub command_ms: u32,
    /// How long beyond `command_ms` an entity walks on without a command before it stops,
    /// milliseconds.
    pub grace_ms: u32,
    /// A client stops after this much walking without an acknowledgement, milliseconds: it does not
    /// walk on into a world that may not know of it. Less than `allowance_ms`.
    pub leash_ms: u32,
    /// How much more walking a client may claim than time has passed at the server, milliseconds.
    /// It is a debt: a command beyond it is refused until time has paid.
    pub allowance_ms: u32,
    /// How much higher or lower the next tile may lie; `None`: heights block no move.
    pub climb: Option<Climb>,
}

/// How much higher or lower the next tile may lie, centimetres; not negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Climb {
    /// Upwards.
    pub up_cm: i32,
    /// Downwards.
    pub down_cm: i32,
}

impl Rules {
    /// The defaults within `bounds`: heights within 10 km of 0, a command every 500 ms, 300 ms of grace, a leash of 1 s, an
    /// allowance of 1.1 s, no limit on climbing.
    pub fn within(bounds: Rect) -> Rules {
        Rules {
            bounds,
            height_limit_cm: 1_000_000,
            command_ms: 500,
            grace_ms: 300,
            leash_ms: 1_000,
            allowance_ms: 1_100,
            climb: None,
        }
    }

    /// Whether a move may begin at a height.
    pub(super) fn has_height(&self, pos: Pos) -> bool {
        pos.y.unsigned_abs() <= self.height_limit_cm
    }

    /// How long a walk goes on after the client's last command, milliseconds.
    pub fn reach_ms(&self) -> u32 {
        self.command_ms.saturating_add(self.grace_ms)
    }

    /// How far from the displayed position the commands of one moment can bring an entity at most,
    /// in milliseconds of walking. Viewers saw the entity walk on for as long as no command
    /// arrived; the commands may say that it went elsewhere meanwhile, and for as long as can be
    /// owed.
    pub fn unchecked_ms(&self) -> u32 {
        self.reach_ms().saturating_add(self.allowance_ms).saturating_add(STRAY_MS as u32)
    }
}

/// Where an entity moves: the tiles of its plane, and the scene's rules.
#[derive(Debug)]
pub struct Footing<'a, T> {
    /// The tiles.
    pub tiles: &'a T,
    /// The entity's plane.
    pub plane: Plane,
    /// The rules.
    pub rules: &'a Rules,
}

impl<T> Clone for Footing<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Footing<'_, T> {}

impl<T: Tiles> Footing<'_, T> {
    /// A tile's side, centimetres; at least 1.
    pub(super) fn tile_cm(&self) -> i32 {
        self.tiles.tile_cm().max(1)
    }
}

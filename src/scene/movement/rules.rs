//! The figures by which moves are judged.

use serde::{Deserialize, Serialize};

use super::Tiles;
use crate::scene::{Plane, Rect};

/// How far a move may begin from where the entity was, as a time at its top speed, milliseconds.
/// With equal arithmetic on both sides it is 0; this is for clients that round in their own way.
pub(super) const STRAY_MS: u64 = 50;

/// The figures by which the moves of a scene are judged. Client and server use the same ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// Where an entity may be.
    pub bounds: Rect,
    /// A client that walks says a word at least this often, milliseconds.
    pub word_ms: u32,
    /// For how long beyond that an entity walks on without a word before it stops, milliseconds.
    pub grace_ms: u32,
    /// A client stops when no word of this age, milliseconds, has been acknowledged: it does not go on
    /// into a world that may not know of it. Less than `allowance_ms`.
    pub leash_ms: u32,
    /// How much more walking a client may have claimed than time has passed at the server,
    /// milliseconds. It is a debt: what is claimed beyond it is refused until time has paid for it.
    pub allowance_ms: u32,
    /// How much higher or lower the next tile may lie; `None` where heights stop nobody.
    pub climb: Option<Climb>,
}

/// How much higher or lower the next tile may lie, centimetres, at least 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Climb {
    /// Upwards.
    pub up_cm: i32,
    /// Downwards.
    pub down_cm: i32,
}

impl Rules {
    /// Usual figures, within `bounds`: a word every half second, 0.3 s of grace, a leash of 1 s and an allowance
    /// of 1.1 s, no limit to climbing.
    pub fn within(bounds: Rect) -> Rules {
        Rules {
            bounds,
            word_ms: 500,
            grace_ms: 300,
            leash_ms: 1_000,
            allowance_ms: 1_100,
            climb: None,
        }
    }

    /// For how long a walk goes on after the client's last word, milliseconds.
    pub fn reach_ms(&self) -> u32 {
        self.word_ms.saturating_add(self.grace_ms)
    }

    /// How far from where it was shown a client's words of one moment may bring an entity at most, in
    /// milliseconds of walking: it was shown to walk on for as long as it is without a word, and they
    /// say that it went elsewhere meanwhile, and for as long as can be owed.
    pub fn leap_ms(&self) -> u32 {
        self.reach_ms().saturating_add(self.allowance_ms).saturating_add(STRAY_MS as u32)
    }
}

/// The ground on which an entity moves: the tiles of its plane, and the rules there.
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

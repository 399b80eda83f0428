//! Why a move is refused.

use serde::{Deserialize, Serialize};

use super::Tile;
use crate::scene::Pos;

/// What keeps an entity from moving, set by the server's logic. A set of bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Flags(pub u8);

impl Flags {
    /// Nothing does.
    pub const NONE: Flags = Flags(0);
    /// It is held where it is.
    pub const ROOTED: Flags = Flags(1);
    /// It is dead.
    pub const DEAD: Flags = Flags(2);
    /// It plays a part in a scene that it does not steer.
    pub const CUTSCENE: Flags = Flags(4);

    /// Both together.
    pub fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// Whether nothing keeps it.
    pub fn is_free(self) -> bool {
        self == Flags::NONE
    }
}

impl std::fmt::Display for Flags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = [(1, "rooted"), (2, "dead"), (4, "cutscene")];
        let mut said = false;
        for (bit, name) in names.into_iter().filter(|(bit, _)| self.0 & bit != 0) {
            write!(f, "{}{name}", if said { ", " } else { "" })?;
            said |= bit != 0;
        }
        if said { Ok(()) } else { write!(f, "{:#x}", self.0) }
    }
}

/// Why a move was refused: what was found and what would be right. Nothing of the move was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Reason {
    /// The move begins or leads outside of where an entity may be.
    #[error("({}, {}) cm lies outside the scene", .at.x, .at.z)]
    OutOfBounds {
        /// The place.
        at: Pos,
    },
    /// The entity may not move at all.
    #[error("may not move: {flags}")]
    MayNotMove {
        /// What keeps it.
        flags: Flags,
    },
    /// The server moves the entity just now.
    #[error("is being moved by the server for another {left_ms} ms")]
    Pushed {
        /// For how much longer.
        left_ms: u32,
    },
    /// The move does not begin where the entity was at that time.
    #[error("begins {found_cm} cm from where the entity was, at ({}, {}); at most {allowed_cm} cm are allowed", .at.x, .at.z)]
    Displaced {
        /// How far off, centimetres.
        found_cm: u32,
        /// How far would have been allowed.
        allowed_cm: u32,
        /// Where the entity was at that time by the server's account.
        at: Pos,
    },
    /// The moves of late begin too far off, all together.
    #[error(
        "moves begin off their places by {found_cm} cm of late; at most {allowed_cm} cm are allowed"
    )]
    Strayed {
        /// How far off, centimetres.
        found_cm: u32,
        /// How far would have been allowed.
        allowed_cm: u32,
    },
    /// A tile on the way is blocked.
    #[error("tile ({}, {}) is blocked", .tile.0, .tile.1)]
    Blocked {
        /// The tile, counted along x and z.
        tile: (i32, i32),
    },
    /// A diagonal step between two blocked tiles.
    #[error("tile ({}, {}) cannot be entered between two blocked ones", .tile.0, .tile.1)]
    Squeezed {
        /// The tile to which the step leads.
        tile: (i32, i32),
    },
    /// The next tile lies too high or too low.
    #[error("tile ({}, {}) lies {rise_cm} cm higher; -{down_cm} to {up_cm} cm can be climbed", .tile.0, .tile.1)]
    TooSteep {
        /// The tile.
        tile: (i32, i32),
        /// How much higher it lies, centimetres.
        rise_cm: i32,
        /// How much higher it might lie.
        up_cm: i32,
        /// How much lower it might lie.
        down_cm: i32,
    },
    /// Faster than the entity may be.
    #[error("{found_cm_s} cm/s; at most {allowed_cm_s} cm/s are allowed")]
    TooFast {
        /// How fast, centimetres per second.
        found_cm_s: u32,
        /// How fast it may be.
        allowed_cm_s: u32,
    },
    /// A speed that was granted for a time was used for longer.
    #[error("walked at {found_cm_s} cm/s for {over_ms} ms more than was granted")]
    Overused {
        /// How fast, centimetres per second.
        found_cm_s: u32,
        /// For how much too long, milliseconds.
        over_ms: u32,
    },
    /// The client's clock goes back.
    #[error("the client's clock went back by {by_ms} ms")]
    ClockBack {
        /// By how much, milliseconds.
        by_ms: u64,
    },
    /// The client's clock runs ahead of the server's: more walking was claimed than time has passed.
    #[error(
        "the client's clock is {ahead_ms} ms ahead of the server's; at most {allowed_ms} ms are allowed"
    )]
    ClockAhead {
        /// By how much, milliseconds.
        ahead_ms: u64,
        /// How much would have been allowed.
        allowed_ms: u64,
    },
    /// The client answers to a ruling that was never made.
    #[error("answers to ruling {found}; the last one was {last}")]
    UnknownRuling {
        /// The number in the move.
        found: u32,
        /// The number of the last ruling.
        last: u32,
    },
}

impl Reason {
    /// Each reason's short name, as in metrics and documents.
    pub const WORDS: [&'static str; 13] = [
        "out_of_bounds",
        "may_not_move",
        "pushed",
        "displaced",
        "strayed",
        "blocked",
        "squeezed",
        "too_steep",
        "too_fast",
        "overused",
        "clock_back",
        "clock_ahead",
        "unknown_ruling",
    ];

    /// The reason's place in [`Reason::WORDS`].
    pub fn index(&self) -> usize {
        match self {
            Reason::OutOfBounds { .. } => 0,
            Reason::MayNotMove { .. } => 1,
            Reason::Pushed { .. } => 2,
            Reason::Displaced { .. } => 3,
            Reason::Strayed { .. } => 4,
            Reason::Blocked { .. } => 5,
            Reason::Squeezed { .. } => 6,
            Reason::TooSteep { .. } => 7,
            Reason::TooFast { .. } => 8,
            Reason::Overused { .. } => 9,
            Reason::ClockBack { .. } => 10,
            Reason::ClockAhead { .. } => 11,
            Reason::UnknownRuling { .. } => 12,
        }
    }

    /// The reason's short name.
    pub fn word(&self) -> &'static str {
        Reason::WORDS[self.index()]
    }

    pub(super) fn blocked(tile: Tile) -> Reason {
        Reason::Blocked { tile: (tile.x, tile.z) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_said_by_name() {
        assert_eq!(Flags::ROOTED.with(Flags::CUTSCENE).to_string(), "rooted, cutscene");
        assert_eq!(Flags(64).to_string(), "0x40");
    }
}

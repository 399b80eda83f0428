//! Why a move command is refused: a closed list of typed reasons.
//!
//! [`Mover`](super::Mover) produces them; the wire, metrics and the client show them. Their order
//! is part of the protocol.

use serde::{Deserialize, Serialize};

use super::Tile;
use crate::scene::Pos;

/// What keeps an entity from moving, set by the game's logic. A set of bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Flags(pub u8);

impl Flags {
    /// Nothing: the entity may move.
    pub const NONE: Flags = Flags(0);
    /// The entity is held where it is.
    pub const ROOTED: Flags = Flags(1);
    /// It is dead.
    pub const DEAD: Flags = Flags(2);
    /// A cutscene moves the entity.
    pub const CUTSCENE: Flags = Flags(4);

    /// The union of both sets.
    pub fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// Whether the entity may move.
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

/// Why a move was refused: what was found and what would be allowed. The move left no trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Reason {
    /// The move starts or leads outside the scene's bounds.
    #[error("({}, {}) cm at height {} cm is outside the scene's bounds", .at.x, .at.z, .at.y)]
    OutOfBounds {
        /// The position outside.
        at: Pos,
    },
    /// A flag keeps the entity from moving.
    #[error("the entity may not move: {flags}")]
    MayNotMove {
        /// The flags that are set.
        flags: Flags,
    },
    /// The server moves the entity at the moment.
    #[error("the server moves the entity for another {left_ms} ms")]
    Pushed {
        /// For how much longer, milliseconds.
        left_ms: u32,
    },
    /// The move does not start where the entity was at that time.
    #[error("the move starts {found_cm} cm from where the entity was, at ({}, {}); at most {allowed_cm} cm are allowed", .at.x, .at.z)]
    Displaced {
        /// Distance between claimed and computed start, centimetres.
        found_cm: u32,
        /// Distance that would be allowed, centimetres.
        allowed_cm: u32,
        /// Where the entity was at that time by the server's account.
        at: Pos,
    },
    /// Recent moves start too far off in sum.
    #[error("recent moves start {found_cm} cm off in sum; at most {allowed_cm} cm are allowed")]
    Strayed {
        /// Sum of the distances that time has not paid for, centimetres.
        found_cm: u32,
        /// Sum that would be allowed, centimetres.
        allowed_cm: u32,
    },
    /// A tile on the way is blocked.
    #[error("tile ({}, {}) is blocked", .tile.0, .tile.1)]
    Blocked {
        /// The tile's column and row (along x and z).
        tile: (i32, i32),
    },
    /// A diagonal step between two blocked tiles.
    #[error("tile ({}, {}) cannot be entered diagonally between two blocked tiles", .tile.0, .tile.1)]
    Squeezed {
        /// The tile where the step leads: column and row.
        tile: (i32, i32),
    },
    /// The next tile lies too high or too low.
    #[error("tile ({}, {}) lies {rise_cm} cm higher; -{down_cm} to {up_cm} cm can be climbed", .tile.0, .tile.1)]
    TooSteep {
        /// The tile's column and row.
        tile: (i32, i32),
        /// How much higher the tile lies than the one before it, centimetres.
        rise_cm: i32,
        /// Greatest climb allowed, centimetres.
        up_cm: i32,
        /// Greatest descent allowed, centimetres.
        down_cm: i32,
    },
    /// The move is faster than the entity may be.
    #[error("the move has {found_cm_s} cm/s; at most {allowed_cm_s} cm/s are allowed")]
    TooFast {
        /// Speed of the move, centimetres per second.
        found_cm_s: u32,
        /// Speed that would be allowed, centimetres per second.
        allowed_cm_s: u32,
    },
    /// A granted speed was used for longer than it was granted.
    #[error("walked at {found_cm_s} cm/s for {over_ms} ms more than was granted")]
    Overused {
        /// The speed, centimetres per second.
        found_cm_s: u32,
        /// Time over the grant, milliseconds.
        over_ms: u32,
    },
    /// The client's clock went back.
    #[error("the client's clock went back by {by_ms} ms")]
    ClockBack {
        /// By how much, milliseconds.
        by_ms: u64,
    },
    /// The client's clock runs ahead of the server's: it claims more walking than time has passed.
    #[error(
        "the client's clock is {ahead_ms} ms ahead of the server's; at most {allowed_ms} ms are allowed"
    )]
    ClockAhead {
        /// Lead of the client's clock, milliseconds.
        ahead_ms: u64,
        /// Lead that would be allowed, milliseconds.
        allowed_ms: u64,
    },
    /// The client acknowledges a correction that was never made.
    #[error("the command answers correction {found}; the last correction was {last}")]
    UnknownCorrection {
        /// The correction's number in the command.
        found: u32,
        /// Number of the last correction.
        last: u32,
    },
}

impl Reason {
    /// The short name of each reason, as in metrics and documents.
    pub const NAMES: [&'static str; 13] = [
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
        "unknown_correction",
    ];

    /// The reason's position in [`Reason::NAMES`].
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
            Reason::UnknownCorrection { .. } => 12,
        }
    }

    /// The reason's short name.
    pub fn name(&self) -> &'static str {
        Reason::NAMES[self.index()]
    }

    pub(super) fn blocked(tile: Tile) -> Reason {
        Reason::Blocked { tile: (tile.x, tile.z) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_displayed_by_name() {
        assert_eq!(Flags::ROOTED.with(Flags::CUTSCENE).to_string(), "rooted, cutscene");
        assert_eq!(Flags(64).to_string(), "0x40");
    }
}

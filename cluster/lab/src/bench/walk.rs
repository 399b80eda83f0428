//! How the players of a benchmark walk.

use purview::scene::{Pos, Tick};

use super::crowd::Crowd;
use super::squad::Squad;

pub(super) enum Walk {
    Positions(Crowd),
    Vector(Squad),
}

impl Walk {
    pub(super) fn pos(&self, i: usize) -> Pos {
        match self {
            Walk::Positions(crowd) => crowd.pos(i),
            Walk::Vector(squad) => squad.pos(i),
        }
    }

    /// The position of walker `i`, and the tick since when its viewers must know it.
    pub(super) fn truth(&self, i: usize, now: Tick) -> (Pos, Tick) {
        match self {
            Walk::Positions(crowd) => (crowd.pos(i), now),
            Walk::Vector(squad) => (squad.pos(i), squad.turned(i)),
        }
    }
}

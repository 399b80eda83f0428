//! The places that a session holds in the lines (planes with a limit) of a scene.
//!
//! A join and a jump to another plane each bring a place. The session gives every place back, kept or
//! not, with [`PlayerEffect::GiveBack`]: a place that is forgotten stays taken for good.

use super::{Place, PlayerEffect};
use crate::scene::Seq;

/// The place where the player is, and one that was taken for a jump.
#[derive(Debug, Default)]
pub(super) struct Places {
    now: Option<Place>,
    jump: Option<(Seq, Place)>,
}

impl Places {
    /// Where the player is, or is about to enter.
    pub(super) fn now(&self) -> Option<Place> {
        self.now
    }

    /// The player is about to enter here; the place was taken.
    pub(super) fn enter(&mut self, place: Place) {
        self.now = Some(place);
    }

    /// The player did not enter.
    pub(super) fn leave(&mut self, out: &mut Vec<PlayerEffect>) {
        out.extend(self.now.take().map(give_back));
    }

    /// Whether a jump that brought a place is under way.
    pub(super) fn is_jumping(&self) -> bool {
        self.jump.is_some()
    }

    /// A jump with this number is under way, for which a place was taken.
    pub(super) fn jump(&mut self, seq: Seq, place: Place) {
        self.jump = Some((seq, place));
    }

    /// A region refused an input, which may be the jump.
    pub(super) fn refused(&mut self, refused: Seq, out: &mut Vec<PlayerEffect>) {
        let jump = self.jump.take_if(|(seq, _)| *seq == refused);
        out.extend(jump.map(|(_, place)| give_back(place)));
    }

    /// The place of the jump, if it was applied with the inputs up to this one.
    pub(super) fn take_jump(&mut self, last_applied: Seq) -> Option<Place> {
        self.jump.take_if(|(seq, _)| *seq <= last_applied).map(|(_, place)| place)
    }

    /// Keeps exactly one place: `now`, where the player is.
    pub(super) fn occupy(
        &mut self,
        now: Place,
        jumped: Option<Place>,
        out: &mut Vec<PlayerEffect>,
    ) {
        let mut held = false;
        for place in self.now.take().into_iter().chain(jumped) {
            if place == now && !held {
                held = true;
            } else {
                out.push(give_back(place));
            }
        }
        if !held {
            out.push(PlayerEffect::Take(now.0, now.1));
        }
        self.now = Some(now);
    }

    /// Gives all places back.
    pub(super) fn give_back(&mut self, out: &mut Vec<PlayerEffect>) {
        let jump = self.jump.take().map(|(_, place)| place);
        out.extend(jump.into_iter().chain(self.now.take()).map(give_back));
    }
}

fn give_back((scene, plane): Place) -> PlayerEffect {
    PlayerEffect::GiveBack(scene, plane)
}

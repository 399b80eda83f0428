//! The places that a session holds in the lines (planes with a limit) of a scene.
//!
//! A join and a teleport to another plane each bring a place. The session gives every place back,
//! kept or not, with [`PlayerEffect::GiveBack`]: a place that is forgotten stays taken for good.

use super::{PlayerEffect, ScenePlane};
use crate::scene::Seq;

/// The place where the player is, and one that was taken for a teleport.
#[derive(Debug, Default)]
pub(super) struct LinePlaces {
    now: Option<ScenePlane>,
    teleport: Option<(Seq, ScenePlane)>,
}

impl LinePlaces {
    /// Where the player is, or is about to enter.
    pub(super) fn now(&self) -> Option<ScenePlane> {
        self.now
    }

    /// The player is about to enter here; the place was taken.
    pub(super) fn enter(&mut self, place: ScenePlane) {
        self.now = Some(place);
    }

    /// The player did not enter.
    pub(super) fn leave(&mut self, out: &mut Vec<PlayerEffect>) {
        out.extend(self.now.take().map(give_back));
    }

    /// Whether a teleport that brought a place is under way.
    pub(super) fn is_teleporting(&self) -> bool {
        self.teleport.is_some()
    }

    /// A teleport with this number is under way, for which a place was taken.
    pub(super) fn teleport(&mut self, seq: Seq, place: ScenePlane) {
        self.teleport = Some((seq, place));
    }

    /// A region refused an input, which may be the teleport.
    pub(super) fn refused(&mut self, refused: Seq, out: &mut Vec<PlayerEffect>) {
        let teleport = self.teleport.take_if(|(seq, _)| *seq == refused);
        out.extend(teleport.map(|(_, place)| give_back(place)));
    }

    /// The place of the teleport, if it was applied with the inputs up to this one.
    pub(super) fn take_teleport(&mut self, last_applied: Seq) -> Option<ScenePlane> {
        self.teleport.take_if(|(seq, _)| *seq <= last_applied).map(|(_, place)| place)
    }

    /// Keeps exactly one place: `now`, where the player is.
    pub(super) fn occupy(
        &mut self,
        now: ScenePlane,
        teleported: Option<ScenePlane>,
        out: &mut Vec<PlayerEffect>,
    ) {
        let mut held = false;
        for place in self.now.take().into_iter().chain(teleported) {
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
        let teleport = self.teleport.take().map(|(_, place)| place);
        out.extend(teleport.into_iter().chain(self.now.take()).map(give_back));
    }
}

fn give_back((scene, plane): ScenePlane) -> PlayerEffect {
    PlayerEffect::GiveBack(scene, plane)
}

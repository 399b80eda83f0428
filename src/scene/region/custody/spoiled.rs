//! Deliberate bugs that drop a part of a handoff.

use crate::scene::messages::Handoff;
use crate::scene::mutants::{self, Mutant};
use crate::scene::properties::Level;
use crate::scene::{Account, Scene, Seq};

/// What a handoff must contain.
const LOST: [Mutant; 8] = [
    Mutant::NumberLost,
    Mutant::AccountLost,
    Mutant::PeersLost,
    Mutant::ShownLost,
    Mutant::WatchLost,
    Mutant::SightForgotten,
    Mutant::NumbersLost,
    Mutant::SecretsLost,
];

/// Drops from a handoff what the enabled mutant drops, if it is one of these.
pub(super) fn spoil(handoff: &mut Handoff, scene: &Scene) {
    match mutants::has_one_of(&LOST) {
        Some(Mutant::NumberLost) => handoff.last_applied = Seq(0),
        Some(Mutant::AccountLost) => handoff.state.account = Account::NONE,
        Some(Mutant::PeersLost) => handoff.peers.clear(),
        Some(Mutant::ShownLost) => handoff.peers.iter_mut().for_each(|peer| peer.shown = false),
        Some(Mutant::WatchLost) => handoff.watch = None,
        Some(Mutant::SightForgotten) => {
            handoff.watch.iter_mut().for_each(|watch| watch.sight_cm = None);
        }
        Some(Mutant::NumbersLost) => {
            handoff.watch.iter_mut().for_each(|watch| watch.taken = Default::default());
        }
        Some(Mutant::SecretsLost) => {
            let Some(schema) = scene.schema(handoff.state.kind) else { return };
            let told = |level: &Level| schema.audience(level.id).admits_owner();
            handoff.state.properties = handoff.state.properties.select(told);
        }
        _ => {}
    }
}

//! Other processes that come and go, and regions here of which somebody else was heard as the owner.

use super::action::Action;
use super::local::{Local, LocalRegion};
use crate::storage::View;

/// Processes that have come are called.
pub(super) fn greet(view: &View, local: &Local, actions: &mut Vec<Action>) {
    let is_new = |i: &_| *i != local.me && !local.peers.contains_key(i);
    actions.extend(view.nodes.keys().filter(|i| is_new(*i)).map(|i| Action::Greet(*i)));
}

/// Regions here whose next owners were heard end, unless they are moving there.
pub(super) fn depose(local: &Local, actions: &mut Vec<Action>) {
    let is_deposed = |region: &LocalRegion| {
        region.epoch_here().is_some_and(|own| own < region.known_epoch) && !region.moves
    };
    if local.regions.values().any(is_deposed) {
        actions.push(Action::EndDeposed);
    }
}

/// Processes that are no members any more are called no more.
pub(super) fn forget_processes(view: &View, local: &Local, actions: &mut Vec<Action>) {
    let gone = local.peers.iter().filter(|(i, _)| !view.nodes.contains_key(i));
    actions.extend(gone.map(|(i, process)| Action::ForgetProcess(*i, *process)));
}

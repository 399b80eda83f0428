//! Processes that join and leave, and regions here that have a newer owner elsewhere.

use super::action::Action;
use super::local::{Local, LocalRegion};
use crate::storage::View;

pub(super) fn greet(view: &View, local: &Local, actions: &mut Vec<Action>) {
    let is_new = |i: &_| *i != local.me && !local.peers.contains_key(i);
    actions.extend(view.nodes.keys().filter(|i| is_new(*i)).map(|i| Action::Greet(*i)));
}

/// Ends regions here whose next owners are known, unless they are moving there.
pub(super) fn end_superseded(local: &Local, actions: &mut Vec<Action>) {
    let is_superseded = |region: &LocalRegion| {
        region.epoch_here().is_some_and(|own| own < region.known_epoch) && !region.moves
    };
    if local.regions.values().any(is_superseded) {
        actions.push(Action::EndSuperseded);
    }
}

/// Stops calling processes that are no longer members.
pub(super) fn forget_processes(view: &View, local: &Local, actions: &mut Vec<Action>) {
    let gone = local.peers.iter().filter(|(i, _)| !view.nodes.contains_key(i));
    actions.extend(gone.map(|(i, process)| Action::ForgetProcess(*i, *process)));
}

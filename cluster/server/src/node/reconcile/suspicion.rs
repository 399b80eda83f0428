//! A process whose machine says that nobody listens there any more is dead. When two have been told so the leader ends
//! its lease, which would else run out some time later.

use super::action::Action;
use super::local::Local;
use crate::storage::View;

/// Tells what this process suspects, and ends the leases of those who are dead if it is this process's to do.
pub(super) fn suspect(view: &View, local: &Local, actions: &mut Vec<Action>) {
    for suspect in &local.suspects {
        let found = local.peers.iter().find(|(_, process)| **process == suspect.process);
        let Some((incarnation, _)) = found else { continue };
        actions.push(Action::TellSuspicion(suspect.process));
        // Where the leader itself is dead everybody may.
        let leads = local.leads
            || view.leader.as_ref().is_some_and(|leader| leader.incarnation == *incarnation);
        let others = view.nodes.len().saturating_sub(2);
        if leads && suspect.reporters >= others.min(1) {
            actions.push(Action::Evict(*incarnation, suspect.process));
        }
    }
}

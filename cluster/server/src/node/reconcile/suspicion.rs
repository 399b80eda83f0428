//! A process whose machine reports that no process listens there any more is dead. When two
//! processes have this report the leader ends its lease, which would else run out some time later.

use super::action::Action;
use super::local::Local;
use crate::storage::View;

/// Reports what this process suspects, and ends the leases of dead processes if that is this
/// process's task.
pub(super) fn suspect(view: &View, local: &Local, actions: &mut Vec<Action>) {
    for suspect in &local.suspects {
        let found = local.peers.iter().find(|(_, process)| **process == suspect.process);
        let Some((incarnation, _)) = found else { continue };
        actions.push(Action::TellSuspicion(suspect.process));
        // If the leader itself is dead any process may.
        let leads = local.leads
            || view.leader.as_ref().is_some_and(|leader| leader.incarnation == *incarnation);
        let others = view.nodes.len().saturating_sub(2);
        if leads && suspect.reporters >= others.min(1) {
            actions.push(Action::Evict(*incarnation, suspect.process));
        }
    }
}

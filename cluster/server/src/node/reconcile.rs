//! What a process does next: a view of the store and the local state go in, actions come out. Pure.
//!
//! ```text
//! view ──┐                ┌─ peers: greet, suspect, end superseded, forget
//!        ├─► reconcile ───┼─ follow the layouts, then decide anew: only then is it known what regions there are
//! local ─┘                ├─ regions: retire, give up, forget, route, claim
//!                         └─ troubles, the move that is due, the leader's part
//! ```
//!
//! [`super::reconciler`] takes a copy of the local state, asks for the actions, and has
//! [`super::apply`] carry them out in their order. After an action that waits for the store it asks
//! anew, so that nothing is done by an old state. *Absent on purpose:* a clock, a lock, a request,
//! a log line.

mod action;
mod local;
mod peers;
mod regions;
mod routes;
mod suspicion;
#[cfg(test)]
mod tests;
mod troubles;

pub(super) use action::Action;
pub(super) use local::{Local, LocalRegion, Route, Running, Suspect};
pub(super) use troubles::is_over;

use super::status::Status;
use super::{down, plan};
use crate::storage::View;

/// All actions that are due now, in this order.
pub(super) fn reconcile(view: &View, local: &Local) -> Vec<Action> {
    if local.shuts_down {
        return vec![Action::EndAll(local.running().collect())];
    }
    if view.nodes.is_empty() {
        // The store has not answered yet.
        return Vec::new();
    }
    let mut actions = Vec::new();
    if !local.follows_layouts {
        peers::greet(view, local, &mut actions);
        suspicion::suspect(view, local, &mut actions);
        peers::end_superseded(local, &mut actions);
        peers::forget_processes(view, local, &mut actions);
        actions.push(Action::FollowLayouts);
        return actions;
    }
    regions::retire(local, &mut actions);
    regions::give_up(view, local, &mut actions);
    let gone = regions::forget(view, local, &mut actions);
    routes::route(view, local, &gone, &mut actions);
    actions.push(Action::TellRegions);
    regions::claim(view, local, &gone, &mut actions);
    troubles::tell(view, local, &mut actions);
    regions::send_off(view, local, &mut actions);
    if local.leads {
        actions.push(Action::Lead);
    }
    actions
}

pub(super) fn status(view: &View, local: &Local) -> Status {
    let down = down::all(view);
    let present = || local.regions.iter().filter(|(_, region)| region.has_ground);
    let is_down = |id: u32| down.contains_key(&id);
    let draining = plan::is_drained(view, local.me);
    let idle = local.regions.values().all(|region| !region.moves && region.runs.is_none());
    let owns = view.owners.values().any(|owner| owner.incarnation == local.me);
    Status {
        peers: local.peers.len(),
        regions: present().count(),
        located: present().filter(|(id, r)| r.route != Route::Nowhere && !is_down(id.0)).count(),
        here: local.running().count(),
        down: present().filter(|(id, _)| is_down(id.0)).count(),
        recovered_late: local.recovered_late,
        leads: local.leads,
        draining,
        drained: draining && idle && !owns,
    }
}

//! Reports of problems: which regions are no longer down, and which checkpoints are overdue.

use purview::scene::RegionId;

use super::action::Action;
use super::local::Local;
use crate::node::down::{self, Down};
use crate::storage::View;

pub(super) fn tell(view: &View, local: &Local, actions: &mut Vec<Action>) {
    if down::all(view).iter().any(|(id, down)| is_over(local, RegionId(*id), down)) {
        actions.push(Action::ClearDown);
    }
    if let Some(overdue) = &local.overdue
        && !down::is_overdue_told(view, &local.name, overdue)
    {
        actions.push(Action::TellOverdue(overdue.clone()));
    }
}

/// Whether a region that the store lists as down is so no more, as far as it is this process's to say.
pub(in crate::node) fn is_over(local: &Local, id: RegionId, down: &Down) -> bool {
    let is_known = local.regions.contains_key(&id);
    local.runs(id)
        || (down.node == local.name && !local.down.contains(&id))
        || (local.leads && !is_known)
}

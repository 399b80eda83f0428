//! Where every region is: the store's view, compared with local knowledge, which may be newer.
//!
//! What must never happen: a region ends here, or is looked for elsewhere, by a view that is older than what is known
//! of its owner.

use std::collections::BTreeSet;

use purview::scene::{Epoch, RegionId};

use super::action::Action;
use super::local::{Local, LocalRegion, Route};
use crate::storage::View;

/// Routes all regions but those that are no more.
pub(super) fn route(
    view: &View,
    local: &Local,
    gone: &BTreeSet<RegionId>,
    actions: &mut Vec<Action>,
) {
    for (id, region) in local.regions.iter().filter(|(id, _)| !gone.contains(id)) {
        // Else the newest owner itself is known, and the store shows it later: a search for the
        // region at the store's present owner would fail.
        if view.knows_of(region.known_epoch) {
            let found = found(view, local, region);
            route_one(*id, region, found, actions);
        }
    }
}

/// Where the store says that a region is, and since which owner it has neither started nor
/// recovered from a checkpoint.
fn found(view: &View, local: &Local, region: &LocalRegion) -> (Route, Epoch) {
    let Some(owner) = view.owners.get(&region.key) else { return (Route::Nowhere, Epoch(0)) };
    let route = match owner.incarnation == local.me {
        true => Route::Here(owner.epoch),
        false => match local.peers.get(&owner.incarnation) {
            Some(process) => Route::At(*process, owner.epoch),
            None => Route::Nowhere,
        },
    };
    (route, owner.lineage)
}

fn route_one(
    id: RegionId,
    region: &LocalRegion,
    (at, lineage): (Route, Epoch),
    actions: &mut Vec<Action>,
) {
    if let (Some(moved), Some(epoch)) = (region.moved, at.epoch())
        && epoch <= moved
    {
        // The store does not show the move yet.
        return;
    }
    actions.extend(region.moved.map(|moved| Action::ForgetMove(id, moved)));
    actions
        .extend(at.epoch().filter(|e| *e > region.known_epoch).map(|e| Action::LearnEpoch(id, e)));
    let here = region.epoch_here();
    match at {
        // Granted, and running or about to: a claim, or the migration, starts it.
        Route::Here(epoch) => {
            if let Some(runs) = region.runs.filter(|runs| runs.epoch == epoch) {
                // Not an older grant of this process's, which it has given up.
                actions.extend((!runs.is_confirmed).then_some(Action::Confirm(id)));
                if region.route != at {
                    actions.push(Action::RouteHere { region: id, epoch, lineage });
                }
            }
        }
        // The view is older than the grant.
        Route::At(_, epoch) if here.is_some_and(|own| own > epoch) => {}
        Route::Nowhere if region.runs.is_some_and(|runs| !runs.is_confirmed) => {}
        Route::Nowhere | Route::At(..) if region.route == at => {}
        Route::Nowhere | Route::At(..) => {
            let is_newer = region.told.is_some_and(|before| before < lineage);
            actions.push(Action::RouteRemote {
                region: id,
                to: at,
                lineage,
                here,
                was_told: region.moved.is_some(),
                is_new: matches!(at, Route::At(..)) && is_newer,
            });
        }
    }
}

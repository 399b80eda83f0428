//! Regions that end here, begin here, or are handed over.

use std::collections::{BTreeMap, BTreeSet};

use purview::scene::{Epoch, RegionId};

use super::action::Action;
use super::local::Local;
use crate::node::{down, layout_change, plan};
use crate::storage::{Incarnation, View};

/// Regions that were given up by a change of their layout and have nothing to do any more end.
pub(super) fn retire(local: &Local, actions: &mut Vec<Action>) {
    let over = local.regions.iter().filter(|(_, r)| r.runs.is_some_and(|runs| runs.is_over));
    actions.extend(over.map(|(id, _)| Action::Retire(*id)));
}

/// Releases regions that the store grants to this process, that do not run here and must run
/// elsewhere or nowhere: the store did not answer to their first release. Other processes would
/// take such a region for a silent one.
pub(super) fn give_up(view: &View, local: &Local, actions: &mut Vec<Action>) {
    let plan = plan::plan_of(view).of;
    for (id, region) in &local.regions {
        let Some(owner) = view.owners.get(&region.key) else { continue };
        let lives = region.runs.is_some() || region.moves;
        // The store does not show its present owner yet.
        let is_anothers = region.known_epoch > owner.epoch;
        if owner.incarnation != local.me || lives || is_anothers {
            continue;
        }
        let is_meant = plan.get(&id.0).is_none_or(|node| *node == local.me.0);
        if is_meant && region.has_ground {
            continue;
        }
        let (key, epoch) = (region.key.clone(), owner.epoch);
        actions.push(Action::GiveUp { region: *id, key, epoch, unless_due: is_meant });
    }
}

/// Forgets regions that have neither a layout nor an owner.
pub(super) fn forget(view: &View, local: &Local, actions: &mut Vec<Action>) -> BTreeSet<RegionId> {
    let mut records = BTreeMap::new();
    let mut gone = BTreeSet::new();
    for (id, region) in &local.regions {
        if region.has_ground || region.runs.is_some() || view.owners.contains_key(&region.key) {
            continue;
        }
        let scene = region.key.scene.as_str();
        let record =
            records.entry(scene).or_insert_with(|| layout_change::record_named(view, scene));
        if !record.comes(*id) {
            gone.insert(*id);
        }
    }
    actions.extend(gone.iter().map(|id| Action::Forget(*id)));
    gone
}

/// Claims regions that are planned for this process and have no owner.
pub(super) fn claim(
    view: &View,
    local: &Local,
    gone: &BTreeSet<RegionId>,
    actions: &mut Vec<Action>,
) {
    if !local.clock_is_set || local.has_claimed {
        return;
    }
    let plan = plan::plan_of(view).of;
    let own = plan.iter().filter(|(_, to)| **to == local.me.0);
    let meant: BTreeSet<RegionId> = own.map(|(id, _)| RegionId(*id)).collect();
    actions.extend(local.down.difference(&meant).map(|id| Action::LeaveDown(*id)));
    let down = down::all(view);
    let is_free = |id: &RegionId| {
        let Some(region) = local.regions.get(id).filter(|_| !gone.contains(id)) else {
            return false;
        };
        let owner = view.owners.get(&region.key);
        let stays_down =
            local.down.contains(id) && !down.get(&id.0).is_some_and(|d| d.is_ordered());
        region.runs.is_none()
            && !region.moves
            && owner.is_none_or(|owner| owner.incarnation == local.me)
            && !stays_down
    };
    let free: Vec<RegionId> = meant.into_iter().filter(is_free).collect();
    if !free.is_empty() {
        actions.push(Action::Claim(free));
    }
}

/// The regions that the leader says are to move, if they run here, are handed over.
pub(super) fn send_off(view: &View, local: &Local, actions: &mut Vec<Action>) {
    for order in plan::moves_of(view).into_iter().filter(|order| order.from == local.me.0) {
        let (id, to, epoch) = (RegionId(order.region), Incarnation(order.to), Epoch(order.epoch));
        let found = local.regions.get(&id).zip(local.peers.get(&to));
        let Some((region, process)) = found else { continue };
        let owns = view.owners.get(&region.key).is_some_and(|owner| owner.epoch == epoch);
        if owns && region.epoch_here() == Some(epoch) && !region.moves {
            let (key, to) = (region.key.clone(), (to, *process));
            actions.push(Action::SendOff { region: id, key, epoch, to });
        }
    }
}

//! Carries out what was decided: moves through the plan, changes of layouts through orders.

use std::sync::Arc;

use purview::scene::RegionId;

use super::BalanceMode;
use crate::node::balance::{Action, Decision};
use crate::node::layout_change::{self, MapOrder};
use crate::node::maps::Maps;
use crate::node::plan::{PLAN, plan_of};
use crate::node::values::put;
use crate::storage::{LeaseError, Leases, View};

/// What has become of the actions of a decision, in their order.
pub(super) type Outcomes = Vec<Outcome>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    Explained,
    /// It stands in the store.
    Ordered,
    /// It was not done, and why.
    Failed(String),
}

/// Does what was decided by this view, in this order: moves, then changes of layouts.
pub(super) async fn act(
    store: &Arc<dyn Leases>,
    (view, maps): (&View, &Maps),
    mode: BalanceMode,
    decision: &Decision,
) -> Outcomes {
    if mode != BalanceMode::On {
        return vec![Outcome::Explained; decision.actions.len()];
    }
    let moved = match plan_moves(&**store, view, &decision.actions).await {
        Ok(true) => Outcome::Ordered,
        Ok(false) => Outcome::Failed("the plan has changed meanwhile".into()),
        Err(error) => Outcome::Failed(error.to_string()),
    };
    let mut outcomes = Vec::with_capacity(decision.actions.len());
    for action in &decision.actions {
        let outcome = match order(action) {
            None => moved.clone(),
            Some(order) => match layout_change::order(&**store, maps, &order).await {
                Ok(_) => Outcome::Ordered,
                Err(error) => Outcome::Failed(error.to_string()),
            },
        };
        match &outcome {
            Outcome::Failed(why) => {
                purview::log_limited!(warn, ?action, why, "an action of the balancer was not done");
            }
            _ => tracing::info!(?action, "the balancer acts"),
        }
        outcomes.push(outcome);
    }
    outcomes
}

/// Writes moves into the plan, if it is still that of the view.
async fn plan_moves(
    store: &dyn Leases,
    view: &View,
    actions: &[Action],
) -> Result<bool, LeaseError> {
    let mut plan = plan_of(view);
    let before = plan.clone();
    for action in actions {
        if let Action::Move { region, to, .. } = action {
            plan.of.insert(region.0, to.0);
        }
    }
    if plan == before {
        return Ok(true);
    }
    let expected = view.values.get(PLAN).map(|value| value.revision);
    put(store, PLAN, expected, &plan).await
}

/// The order that changes a layout so.
fn order(action: &Action) -> Option<MapOrder> {
    let number = |id: &RegionId| id.0;
    Some(match action {
        Action::Move { .. } => return None,
        Action::Shift { from, to, lands } => {
            MapOrder::Shift { from: number(from), to: number(to), lands: *lands }
        }
        Action::Split { region, axis, land, first } => {
            MapOrder::SplitAt { region: number(region), axis: *axis, land: *land, first: *first }
        }
        Action::Merge { region, gone } => {
            MapOrder::Merge { region: number(region), gone: number(gone) }
        }
    })
}

//! What the console of a process looks at: put together here, so that the parts do not know the console.

use std::sync::Arc;

use futures::FutureExt;

use crate::admin::{AskOthers, ConsoleState, ListWorkers};
use crate::gateway::GatewayMetrics;
use crate::logic::{LogicMetrics, LogicService};
use crate::metrics::Collector;
use crate::node::Node;
use crate::node::readiness::Readiness;
use crate::storage::checkpoints::player_records::PlayerRecords;
use crate::storage::checkpoints::writer::CheckpointQueue;

fn list_workers(logic: &LogicService) -> ListWorkers {
    let hub = logic.hub().clone();
    Box::new(move || hub.status())
}

pub(super) fn of_cluster(
    node: &Node,
    (gateway, logic): (Option<Arc<GatewayMetrics>>, Option<&LogicService>),
    (checkpoint_queue, players): (Option<Arc<CheckpointQueue>>, Option<PlayerRecords>),
    readiness: &Arc<Readiness>,
) -> ConsoleState {
    let (survey, asks) = (node.surveyor().clone(), node.surveyor().clone());
    let mut collectors: Vec<Box<dyn Collector>> = Vec::new();
    collectors.extend(gateway.map(|metrics| Box::new(metrics) as _));
    collectors.extend(checkpoint_queue.map(|checkpoint_queue| Box::new(checkpoint_queue) as _));
    collectors.extend(players.map(|players| Box::new(players) as _));
    collectors.extend(logic.map(|logic| Box::new(LogicMetrics(logic.hub().clone())) as _));
    collectors.push(Box::new(node.clock().clone()));
    collectors.push(Box::new(node.collector()));
    let others: AskOthers = Box::new(move |question| asks.ask_others(&question).boxed());
    let (ready, whole) = (readiness.clone(), readiness.clone());
    ConsoleState {
        directory: node.directory().clone(),
        regions: node.hosted().clone(),
        collectors,
        node: node.name().to_owned(),
        orders: Some(node.orders().clone()),
        // The survey is plain data.
        cluster: Some(Box::new(move || serde_json::to_value(survey.survey()).unwrap_or_default())),
        others: Some(others),
        balance: Some(Box::new(node.balance())),
        readiness: Some(Box::new(move || ready.lacks())),
        whole: Some(Box::new(move || whole.lacks_of_whole())),
        workers: logic.map(list_workers),
    }
}

//! What the console of a process looks at: put together here, so that the parts do not know the console.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt;
use purview::actor::directory::Directory;

use crate::admin::{AskOthers, ConsoleState, ExtraMetrics, Readiness};
use crate::gateway::{Gateway, GatewayMetrics};
use crate::node::Node;
use crate::node::hosted::Hosted;
use crate::storage::checkpoints::last_positions::PlaceBook;
use crate::storage::checkpoints::writer::Shelf;
use crate::storage::restore::Durable;

/// The console of a server that is a single process.
pub(super) fn single(
    (directory, regions): (&Arc<Directory>, Hosted),
    gateway: &Gateway,
    durable: Option<&Durable>,
    readiness: Readiness,
) -> ConsoleState {
    let metrics = gateway.metrics().clone();
    let mut extra: Vec<ExtraMetrics> = vec![Box::new(move |text| metrics.write(text))];
    extra.extend(durable.map(|durable| Box::new(durable.metrics()) as _));
    ConsoleState {
        directory: directory.clone(),
        regions,
        extra_metrics: extra,
        node: "local".into(),
        cluster: None,
        orders: None,
        others: None,
        readiness: Some(readiness),
    }
}

/// What keeps a server that is a single process from being ready.
pub(super) fn single_readiness(hosted: Hosted, ending: Arc<AtomicBool>) -> Readiness {
    Box::new(move || {
        let ends = ending.load(Ordering::Relaxed).then_some("this process is asked to end");
        let empty = hosted.now().is_empty().then_some("there is no region");
        ends.into_iter().chain(empty).map(str::to_owned).collect()
    })
}

/// The console of a process of a cluster.
pub(super) fn of_cluster(
    node: &Node,
    gateway: Option<Arc<GatewayMetrics>>,
    (shelf, places): (Option<Arc<Shelf>>, Option<Arc<PlaceBook>>),
    readiness: Readiness,
) -> ConsoleState {
    let (survey, also, clock) = (node.surveyor().clone(), node.surveyor().clone(), node.clock());
    let (asks, clock) = (survey.clone(), clock.clone());
    let others: AskOthers = Box::new(move |question| asks.ask_others(&question).boxed());
    ConsoleState {
        directory: node.directory().clone(),
        regions: node.hosted().clone(),
        extra_metrics: vec![
            Box::new(move |text| gateway.iter().for_each(|metrics| metrics.write(text))),
            Box::new(move |text| shelf.iter().for_each(|shelf| shelf.write_metrics(text))),
            Box::new(move |text| places.iter().for_each(|places| places.write_metrics(text))),
            Box::new(move |text| clock.write_metrics(text)),
            Box::new(move |text| survey.look().write_metrics(text)),
        ],
        node: node.name().to_owned(),
        orders: Some(node.orders().clone()),
        // The survey is plain data.
        cluster: Some(Box::new(move || serde_json::to_value(also.look()).unwrap_or_default())),
        others: Some(others),
        readiness: Some(readiness),
    }
}

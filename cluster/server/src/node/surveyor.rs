//! What a process's console tells of its cluster.

use std::sync::{Arc, PoisonError, RwLock};

use futures::FutureExt;
use purview::actor::directory::Directory;
use tokio::sync::watch;

use super::clock_sync::ClockStatus;
use super::leader::Orders;
use super::maps::Maps;
use super::{ClusterSurvey, Status};
use crate::admin::{AskOthers, ConsoleState, Hosted};
use crate::gateway::GatewayMetrics;
use crate::peer::Links;
use crate::storage::View;
use crate::storage::checkpoints::last_positions::PlaceBook;
use crate::storage::checkpoints::writer::Shelf;

/// What the console needs to tell of the cluster.
#[derive(Clone)]
pub(super) struct Surveyor {
    pub(super) name: String,
    pub(super) views: Arc<RwLock<View>>,
    pub(super) maps: Maps,
    pub(super) status: watch::Receiver<Status>,
    pub(super) links: Links,
}

impl Surveyor {
    fn look(&self) -> ClusterSurvey {
        let view = self.views.read().unwrap_or_else(PoisonError::into_inner);
        let known = (&*view, &self.maps);
        ClusterSurvey::new(&self.name, known, &self.status.borrow(), &self.links)
    }

    /// Asks all others that have regions, at once.
    fn others(&self) -> AskOthers {
        let Surveyor { views, links, .. } = self.clone();
        Box::new(move |question| {
            let others: Vec<(String, u64)> = {
                let view = views.read().unwrap_or_else(PoisonError::into_inner);
                let others = view.nodes.values().filter(|node| node.regions);
                let others = others.filter(|node| node.process != links.process());
                others.map(|node| (node.name.clone(), node.process)).collect()
            };
            let links = links.clone();
            let asked = others.into_iter().map(move |(name, process)| {
                let links = links.clone();
                let question = question.clone();
                async move { (name, links.ask(process, question).await) }
            });
            futures::future::join_all(asked).boxed()
        })
    }
}

pub(super) fn console_state(
    directory: &Arc<Directory>,
    regions: Hosted,
    gateway: Option<Arc<GatewayMetrics>>,
    (shelf, places, clock): (Option<Arc<Shelf>>, Option<Arc<PlaceBook>>, Arc<ClockStatus>),
    (survey, orders): (Surveyor, Orders),
) -> ConsoleState {
    let (node, also, others) = (survey.name.clone(), survey.clone(), survey.others());
    ConsoleState {
        directory: directory.clone(),
        regions,
        extra_metrics: vec![
            Box::new(move |text| gateway.iter().for_each(|metrics| metrics.write(text))),
            Box::new(move |text| shelf.iter().for_each(|shelf| shelf.write_metrics(text))),
            Box::new(move |text| places.iter().for_each(|places| places.write_metrics(text))),
            Box::new(move |text| clock.write_metrics(text)),
            Box::new(move |text| survey.look().write_metrics(text)),
        ],
        node,
        // The survey is plain data.
        orders: Some(orders),
        cluster: Some(Box::new(move || serde_json::to_value(also.look()).unwrap_or_default())),
        others: Some(others),
        readiness: None,
    }
}

//! What this process can tell of its cluster: its own view, and what the other processes answer.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::RwLock;
use purview::wire::peer::query::{Answer, Question};
use tokio::sync::watch;

use super::maps::Maps;
use super::{ClusterSurvey, Status};
use crate::peer::Links;
use crate::storage::View;

/// Tells of the cluster. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Surveyor {
    name: String,
    views: Arc<RwLock<View>>,
    maps: Maps,
    status: watch::Receiver<Status>,
    links: Links,
}

impl Surveyor {
    pub(super) fn new(
        name: String,
        (views, maps): (Arc<RwLock<View>>, Maps),
        status: watch::Receiver<Status>,
        links: Links,
    ) -> Surveyor {
        Surveyor { name, views, maps, status, links }
    }

    pub(super) fn views(&self) -> &Arc<RwLock<View>> {
        &self.views
    }

    /// What this process knows of its cluster, as it changes.
    pub(super) fn status(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }

    pub(super) fn links(&self) -> &Links {
        &self.links
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn survey(&self) -> ClusterSurvey {
        let view = self.views.read();
        let known = (&*view, &self.maps);
        ClusterSurvey::new(&self.name, known, &self.status.borrow(), &self.links)
    }

    /// Asks the leader, if it is another process and answers in time.
    pub(super) async fn ask_leader(&self, question: &Question) -> Option<Answer> {
        let leader = {
            let view = self.views.read();
            let incarnation = view.leader.as_ref()?.incarnation;
            view.nodes.get(&incarnation)?.process
        };
        let is_other = leader != self.links.process();
        if is_other { self.links.ask(leader, question.clone()).await } else { None }
    }

    /// Asks all others that have regions, at once: the name of each, and its answer if it came in time.
    pub(crate) fn ask_others(
        &self,
        question: &Question,
    ) -> BoxFuture<'static, Vec<(String, Option<Answer>)>> {
        let others: Vec<(String, u64)> = {
            let view = self.views.read();
            let others = view.nodes.values().filter(|node| node.regions);
            let others = others.filter(|node| node.process != self.links.process());
            others.map(|node| (node.name.clone(), node.process)).collect()
        };
        let asked = others.into_iter().map(|(name, process)| {
            let (links, question) = (self.links.clone(), question.clone());
            async move { (name, links.ask(process, question).await) }
        });
        futures::future::join_all(asked).boxed()
    }
}

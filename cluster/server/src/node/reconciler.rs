//! The task that keeps a process in line with the store: it watches, decides, and carries out the
//! decision.
//!
//! ```text
//! store ── watch ──► StoreWatch ──► reconcile (pure) ──► actions ──► apply ──► store, links,
//!                                       ▲                              │       directory, regions
//!                                       └──── local state ◄────────────┘
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use super::apply::{Apply, Then};
use super::handles::Handles;
use super::migration::Migrator;
use super::reconcile::{Action, reconcile, status};
use super::status::Status;
use super::store_watch::{StoreNews, StoreWatch};
use crate::storage::View;

/// How often what has not come to pass is tried again.
const AGAIN: Duration = Duration::from_millis(250);

/// Keeps a process in line with the store.
pub(super) struct Reconciler {
    handles: Handles,
    leads: Arc<AtomicBool>,
    apply: Apply,
    status: watch::Sender<Status>,
}

impl std::fmt::Debug for Reconciler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reconciler").finish_non_exhaustive()
    }
}

impl Reconciler {
    pub(super) fn new(handles: Handles, apply: Apply, status: watch::Sender<Status>) -> Reconciler {
        Reconciler { handles, leads: Arc::default(), apply, status }
    }

    pub(super) fn migrator(&self) -> Migrator {
        self.apply.migrator().clone()
    }

    /// Follows until `stop` is dropped or the lease is gone; then no region runs here any more.
    pub(super) async fn run(mut self, mut stop: oneshot::Receiver<()>) {
        // A gateway never leads: the leader plans for regions, and ends leases of others.
        let campaign = self.handles.me.node().regions.then(|| self.campaign());
        let mut store_watch = StoreWatch::new(self.handles.store.watch());
        let suspicion = self.handles.links.router().suspicion();
        let superseded = self.apply.superseded_regions();
        let shuts_down = self.handles.executor.spawn(self.apply.superseded_regions().run());
        let mut again = tokio::time::interval(AGAIN);
        let me = self.handles.me.clone();
        let lost = me.lost();
        tokio::pin!(lost);
        loop {
            tokio::select! {
                biased;
                _ = &mut stop => break,
                loss = &mut lost => {
                    tracing::error!(?loss, "the lease is gone: no region runs here any more");
                    break;
                }
                news = store_watch.next() => match news {
                    StoreNews::More => {}
                    StoreNews::Nothing => continue,
                    StoreNews::Over => break,
                },
                () = suspicion.notified() => {}
                _ = again.tick() => self.handles.directory.send_kept(),
            }
            let view = store_watch.view();
            store_watch.while_doing(self.follow(&view), |newer| superseded.heed(newer)).await;
        }
        campaign.iter().for_each(JoinHandle::abort);
        shuts_down.abort();
        self.act(&store_watch.view(), true).await;
        if self.leads() {
            self.apply.keep_layouts().await;
        }
    }

    /// Stands in line to lead.
    fn campaign(&self) -> JoinHandle<()> {
        let (leads, store, me) =
            (self.leads.clone(), self.handles.store.clone(), self.handles.me.clone());
        self.handles.executor.spawn(async move {
            match store.campaign(&me).await {
                Ok(_) => leads.store(true, Ordering::Relaxed),
                Err(error) => tracing::debug!(%error, "not in line to lead any more"),
            }
        })
    }

    fn leads(&self) -> bool {
        self.leads.load(Ordering::Relaxed)
    }

    /// Brings this process in line with what the store says.
    async fn follow(&mut self, view: &View) {
        if view.nodes.is_empty() {
            // Not known yet.
            return;
        }
        self.show(view);
        self.act(view, false).await;
        let status = status(view, &self.apply.local(self.leads(), false));
        self.status.send_if_modified(|now| std::mem::replace(now, status.clone()) != status);
    }

    /// Lets others of this process see what the store says.
    fn show(&self, view: &View) {
        let mut told = self.handles.view.write();
        if told.revision != view.revision {
            told.clone_from(view);
        }
    }

    /// Decides, and does it; anew after each action that has waited for the store. Nothing is done twice by one view.
    async fn act(&mut self, view: &View, shuts_down: bool) {
        self.apply.begin();
        let mut done: BTreeSet<Action> = BTreeSet::new();
        'anew: loop {
            for action in reconcile(view, &self.apply.local(self.leads(), shuts_down)) {
                if !done.insert(action.clone()) {
                    continue;
                }
                if self.apply.apply(action, view, self.leads()).await == Then::Replan {
                    continue 'anew;
                }
            }
            return;
        }
    }
}

//! The store's events, also while the reconciler waits for its answers; and regions that end as
//! soon as they have another owner.

use std::pin::pin;
use std::sync::Arc;

use purview::scene::mutants::{self, Mutant};

use super::handles::Handles;
use super::migration::Migrator;
use crate::storage::{Event, View, Watch};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoreNews {
    /// The view is another one.
    More,
    /// It is not.
    Nothing,
    /// There will be none any more.
    Over,
}

/// The state of the store, as it was last reported.
pub(super) struct StoreWatch {
    watch: Watch,
    /// Shared with the tasks that act by it.
    view: Arc<View>,
    /// Includes all events since the last action: a task that acted by one event after the other,
    /// and asked the store each time, would fall behind.
    newest: Option<Arc<View>>,
    over: bool,
}

fn take(view: &mut Arc<View>, event: Event) {
    match event {
        Event::Snapshot(all) => *view = Arc::new(all),
        Event::Change(change) => Arc::make_mut(view).apply(&change),
    }
}

impl StoreWatch {
    pub(super) fn new(watch: Watch) -> StoreWatch {
        StoreWatch { watch, view: Arc::default(), newest: None, over: false }
    }

    pub(super) fn view(&self) -> Arc<View> {
        self.view.clone()
    }

    /// Waits for what it tells next, or tells of all that came while something was done.
    pub(super) async fn next(&mut self) -> StoreNews {
        if let Some(newest) = self.newest.take() {
            self.view = newest;
            return StoreNews::More;
        }
        if self.over {
            return StoreNews::Over;
        }
        match self.watch.next().await {
            Some(Ok(event)) => {
                take(&mut self.view, event);
                StoreNews::More
            }
            Some(Err(error)) => {
                tracing::warn!(%error, "cannot follow the store now");
                StoreNews::Nothing
            }
            None => StoreNews::Over,
        }
    }

    /// Listens on while something is done that asks the store, which may take its time for each answer; `heed` sees each view
    /// at once.
    pub(super) async fn while_doing(
        &mut self,
        work: impl Future<Output = ()>,
        heed: impl Fn(&View),
    ) {
        let mut work = pin!(work);
        loop {
            let told = tokio::select! {
                biased;
                () = &mut work => return,
                told = self.watch.next(), if !self.over => told,
            };
            match told {
                Some(Ok(event)) => {
                    let newest = self.newest.get_or_insert_with(|| self.view.clone());
                    take(newest, event);
                    heed(newest);
                }
                Some(Err(error)) => tracing::warn!(%error, "cannot follow the store now"),
                None => self.over = true,
            }
        }
    }
}

/// Ends regions here that other processes own by now.
pub(super) struct SupersededRegions {
    pub(super) handles: Handles,
    pub(super) migrator: Migrator,
}

impl SupersededRegions {
    /// Ends regions as soon as their next owners are known, and all regions once the others say
    /// that this process is not a member, however long the store takes to report the same.
    pub(super) async fn run(self) {
        let (superseded, disowned) =
            (self.handles.links.router().superseded(), self.handles.links.disowned());
        loop {
            tokio::select! {
                biased;
                () = superseded.notified() => self.end(),
                () = disowned.notified() => self.heed_others(),
            }
        }
    }

    /// The others know whether this process is a member, even if a faulty store does not say so.
    fn heed_others(&self) {
        if self.handles.links.is_disowned()
            && self.handles.me.loss().is_none()
            && !mutants::has(Mutant::Disowned)
        {
            tracing::error!("other processes say that this process is no longer a member: it ends");
            self.handles.me.disown();
        }
    }

    /// Ends regions here whose next owners are known.
    pub(super) fn end(&self) {
        let mut local_regions = self.handles.local_regions.lock();
        for id in local_regions.ids() {
            let newest = self.handles.links.router().epoch(id);
            if local_regions.epoch(id).is_some_and(|own| own < newest)
                && !self.migrator.is_moving(id)
            {
                purview::log_limited!(warn, region = %id, %newest, "a region has another owner and ends here");
                local_regions.end(id);
            }
        }
    }

    /// Ends regions here that the store shows with other owners. Only a faulty store does that:
    /// regions are handed over, or end with their lease.
    pub(super) fn heed(&self, view: &View) {
        let ids = self.handles.local_regions.lock().ids();
        for id in ids {
            let owner = self.handles.maps.key(id).and_then(|key| view.owners.get(&key));
            if let Some(owner) =
                owner.filter(|owner| owner.incarnation != self.handles.me.incarnation())
            {
                self.handles.links.router().set_epoch(id, owner.epoch);
            }
        }
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::time::Duration;

    use bytes::Bytes;
    use futures::FutureExt;
    use purview::scene::Epoch;
    use tokio::sync::Notify;

    use super::*;
    use crate::storage::Leases;
    use crate::storage::leases::embedded::Embedded;

    #[tokio::test(start_paused = true)]
    async fn what_is_told_while_the_store_is_asked_is_heeded_at_once_and_told_once() {
        const VALUES: usize = 3;
        let store = Embedded::new(Epoch(0));
        let mut store_watch = StoreWatch::new(store.watch());
        assert_eq!(store_watch.next().await, StoreNews::More);
        let (acted_by, seen, all) = (store_watch.view(), RefCell::new(Vec::new()), Notify::new());
        let work = async {
            for n in 0..VALUES {
                store.put_if(&format!("value/{n}"), None, Bytes::new()).await.unwrap();
            }
            all.notified().await;
        };
        let heed = |view: &View| {
            seen.borrow_mut().push(view.values.len());
            if view.values.len() == VALUES {
                all.notify_one();
            }
        };
        let works = store_watch.while_doing(work, heed);
        tokio::time::timeout(Duration::from_secs(5), works)
            .await
            .expect("the event arrives meanwhile");
        assert_eq!(*seen.borrow(), [1, 2, 3]);
        assert_eq!(acted_by.values.len(), 0, "the view that was acted by is what it was");
        assert_eq!(store_watch.next().await, StoreNews::More, "it is to be acted by, too");
        assert_eq!(store_watch.view().values.len(), VALUES, "and by all of it at once");
        assert_eq!(store_watch.next().now_or_never(), None, "nothing is told twice");
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_is_no_more_ends_nothing_halfway() {
        let store = Embedded::new(Epoch(0));
        let mut store_watch = StoreWatch::new(store.watch());
        assert_eq!(store_watch.next().await, StoreNews::More);
        let mut done = false;
        let work = async {
            drop(store);
            tokio::time::sleep(Duration::from_secs(1)).await;
            done = true;
        };
        store_watch.while_doing(work, |_| {}).await;
        assert!(done);
        assert_eq!(store_watch.next().await, StoreNews::Over);
    }
}

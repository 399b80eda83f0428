//! The followers of the store of a single process: first the whole state, then each step, while the
//! path is open.

use std::sync::{Arc, Weak};

use tokio::sync::{Notify, mpsc, watch};

use super::state::Missed;
use super::{Shared, Way, cut_off};
use crate::storage::leases::Result;
use crate::storage::leases::store::{FOLLOWER_QUEUE, Follower, Step, StoreEvent};

pub fn start(shared: &Arc<Shared>, way: &Way, prefix: &str) -> Follower {
    let (tell, told) = mpsc::channel(FOLLOWER_QUEUE);
    let task = Task {
        changed: shared.changed.clone(),
        shared: Arc::downgrade(shared),
        open: way.open.subscribe(),
        prefix: prefix.into(),
        tell,
    };
    tokio::spawn(task.run());
    told
}

struct Task {
    shared: Weak<Shared>,
    changed: Arc<Notify>,
    open: watch::Receiver<bool>,
    prefix: String,
    tell: mpsc::Sender<Result<StoreEvent>>,
}

/// The follower or the store was dropped.
struct Over;

impl Task {
    /// Runs until the follower or the store is dropped.
    async fn run(mut self) {
        let mut at = None;
        while let Ok(now) = self.round(at).await {
            at = now;
        }
    }

    /// Sends the steps after revision `at`, then waits for more; returns the revision that was
    /// sent.
    async fn round(&mut self, mut at: Option<u64>) -> Result<Option<u64>, Over> {
        if !*self.open.borrow_and_update() {
            self.tell(Err(cut_off("watch for changes"))).await?;
            self.open.wait_for(|open| *open).await.map_err(|_| Over)?;
        }
        let changed = self.changed.clone();
        let mut more = std::pin::pin!(changed.notified());
        // From here on no change is missed.
        more.as_mut().enable();
        for told in self.missed(&mut at)? {
            self.tell(Ok(told)).await?;
        }
        tokio::select! {
            biased;
            () = more => {}
            cut = self.open.changed() => cut.map_err(|_| Over)?,
            () = self.tell.closed() => return Err(Over),
        }
        Ok(at)
    }

    async fn tell(&self, told: Result<StoreEvent>) -> Result<(), Over> {
        self.tell.send(told).await.map_err(|_| Over)
    }

    fn missed(&self, at: &mut Option<u64>) -> Result<Vec<StoreEvent>, Over> {
        let shared = self.shared.upgrade().ok_or(Over)?;
        let state = shared.state.lock();
        let missed = at.map_or(Missed::TooMuch, |at| state.missed(at));
        *at = Some(state.revision());
        Ok(match missed {
            Missed::Nothing => Vec::new(),
            Missed::TooMuch => vec![StoreEvent::All(state.list(&self.prefix))],
            Missed::Steps(steps) => steps
                .into_iter()
                .filter_map(|step| self.below(step))
                .map(StoreEvent::Step)
                .collect(),
        })
    }

    fn below(&self, mut step: Step) -> Option<Step> {
        step.keys.retain(|(key, _)| key.starts_with(&self.prefix));
        (!step.keys.is_empty()).then_some(step)
    }
}

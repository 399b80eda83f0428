//! The followers of etcd: first the whole state, then each step in order, over watches that are
//! reopened when they end.
//!
//! ```text
//! list ── all, revision r ──▶ watch from r + 1 ── steps ──▶ ... ── it ends ──▶ watch from the last + 1
//!   ▲                                                                                   │
//!   └──────────────────────── those steps are no longer known ◀────────────────────────┘
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;

use super::client::Stream;
use super::request::{self, Failed};
use super::rpc::event::EventType;
use super::rpc::watch_request::RequestUnion;
use super::rpc::{
    Event, RangeRequest, WatchCreateRequest, WatchProgressRequest, WatchRequest, WatchResponse,
};
use super::{ANSWER_LIMIT, Shared, end_of, one, revision, signed};
use crate::storage::LeaseError;
use crate::storage::leases::store::{FOLLOWER_QUEUE, Follower, Step, StoreEntry, StoreEvent};

/// How long a watch may be silent before it is probed.
const QUIET: Duration = Duration::from_secs(1);

/// How many probes in a row may stay unanswered.
const QUIET_MAX: u32 = 3;

/// Shortest and longest pause before a watch is reopened.
const PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

pub fn start(shared: &Arc<Shared>, prefix: &str) -> Follower {
    let (tell, told) = mpsc::channel(FOLLOWER_QUEUE);
    let task =
        Task { shared: shared.clone(), prefix: prefix.into(), tell, at: None, unreachable: false };
    shared.runtime.spawn(task.run());
    told
}

struct Task {
    shared: Arc<Shared>,
    prefix: String,
    tell: mpsc::Sender<Result<StoreEvent, LeaseError>>,
    /// The last revision that was sent to the follower.
    at: Option<u64>,
    /// Whether the current outage was reported.
    unreachable: bool,
}

enum Ended {
    Over,
    Compacted,
    Failed(Failed),
}

impl From<Failed> for Ended {
    fn from(failed: Failed) -> Ended {
        Ended::Failed(failed)
    }
}

impl Task {
    /// Runs until the follower is dropped.
    async fn run(mut self) {
        let mut pause = PAUSE.0;
        let tell = self.tell.clone();
        loop {
            let told = self.at;
            let (at, _) = self.shared.client();
            let ended = tokio::select! {
                ended = self.watch() => ended,
                () = tell.closed() => return,
            };
            if self.at != told {
                pause = PAUSE.0;
            }
            match ended {
                Ended::Over => return,
                Ended::Compacted => self.at = None,
                Ended::Failed(failed) => {
                    self.shared.next(at);
                    if !std::mem::replace(&mut self.unreachable, true) {
                        let error = failed.told(&self.shared.name, "watch for changes");
                        if self.tell.send(Err(error)).await.is_err() {
                            return;
                        }
                    }
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE.1);
        }
    }

    /// Sends steps until the watch ends.
    async fn watch(&mut self) -> Ended {
        match self.try_watch().await {
            Ok(never) => match never {},
            Err(ended) => ended,
        }
    }

    async fn try_watch(&mut self) -> Result<std::convert::Infallible, Ended> {
        let at = match self.at {
            Some(at) => {
                self.shared.still_at(&self.prefix).await?;
                at
            }
            None => self.list().await?,
        };
        let mut stream = self.open(at + 1).await?;
        let mut quiet = 0;
        loop {
            let Ok(message) = timeout(QUIET, stream.message()).await else {
                quiet += 1;
                if quiet > QUIET_MAX {
                    return Err(lost("it is silent").into());
                }
                let progress = RequestUnion::ProgressRequest(WatchProgressRequest {});
                let asked = stream.send(WatchRequest { request_union: Some(progress) });
                asked.map_err(|e| request::failed(&e))?;
                continue;
            };
            quiet = 0;
            let message = message.map_err(|e| request::failed(&e))?;
            let message = message.ok_or_else(|| lost("the stream ended"))?;
            self.take(&message).await?;
        }
    }

    /// Sends the whole state and returns its revision.
    async fn list(&mut self) -> Result<u64, Ended> {
        let listing = self.shared.list(&self.prefix).await.map_err(|e| Ended::Failed(again(e)))?;
        let revision = listing.revision;
        self.tell(StoreEvent::All(listing)).await?;
        self.at = Some(revision);
        Ok(revision)
    }

    async fn open(&self, from: u64) -> Result<Stream<WatchRequest, WatchResponse>, Ended> {
        let prefix = self.shared.key(&self.prefix);
        let create = WatchCreateRequest {
            range_end: end_of(&prefix),
            key: prefix.into_bytes(),
            start_revision: signed(from),
        };
        let first = WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) };
        let (_, client) = self.shared.client();
        let opened = timeout(ANSWER_LIMIT, client.watch(first)).await;
        let opened = opened.map_err(|_| lost("no answer in time"))?;
        Ok(opened.map_err(|e| request::failed(&e))?)
    }

    async fn take(&mut self, message: &WatchResponse) -> Result<(), Ended> {
        if message.compact_revision > 0 {
            return Err(Ended::Compacted);
        }
        if message.canceled {
            return Err(lost(&message.cancel_reason).into());
        }
        self.unreachable = false;
        for step in self.steps(&message.events) {
            if Some(step.revision) > self.at {
                let revision = step.revision;
                self.tell(StoreEvent::Step(step)).await?;
                self.at = Some(revision);
            }
        }
        Ok(())
    }

    /// The events of a message, grouped by revision.
    fn steps(&self, events: &[Event]) -> Vec<Step> {
        let mut steps: BTreeMap<u64, Vec<(String, Option<StoreEntry>)>> = BTreeMap::new();
        for event in events {
            let Some(kv) = &event.kv else { continue };
            let put = event.r#type() == EventType::Put;
            let Some(entry) = self.shared.entry(kv) else { continue };
            let revision = entry.changed;
            steps.entry(revision).or_default().push((entry.key.clone(), put.then_some(entry)));
        }
        steps.into_iter().map(|(revision, keys)| Step { revision, keys }).collect()
    }

    async fn tell(&mut self, told: StoreEvent) -> Result<(), Ended> {
        self.tell.send(Ok(told)).await.map_err(|_| Ended::Over)
    }
}

fn lost(cause: &str) -> Failed {
    Failed::Unreachable(cause.into())
}

/// Converts a reported error back into a failure.
fn again(error: LeaseError) -> Failed {
    match error {
        LeaseError::Unreachable { cause, .. } => Failed::Unreachable(cause),
        LeaseError::WentBack { seen, found } => Failed::WentBack { seen, found },
        error => Failed::Refused(error.to_string()),
    }
}

impl Shared {
    /// Whether the store's revision has not gone back: a watch on a wiped store would stay silent.
    async fn still_at(&self, prefix: &str) -> Result<(), Failed> {
        let key = self.key(prefix);
        let asked = self.ask("say its revision", |client| {
            let range = RangeRequest { limit: 1, keys_only: true, ..one(&key) };
            async move { Ok((revision(client.range(range).await?.header.as_ref()), ())) }
        });
        asked.await.map(|_| ())
    }
}

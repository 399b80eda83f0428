//! All sessions, by their names. A stream finds its session here, or begins a new one.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use super::proto::{Open, Request, request};
use super::session::{Answers, Attach, Received, Session, SessionStatus};
use super::state::Shared;
use crate::grpc::opening;
use crate::random::random;

/// Bytes of the name of a session.
const NAME: usize = 16;

/// A session, as streams and calls find it.
#[derive(Debug, Clone)]
struct Entry {
    attach: mpsc::Sender<Attach>,
    status: Arc<SessionStatus>,
}

#[derive(Debug)]
pub struct Sessions {
    shared: Shared,
    all: Mutex<HashMap<Bytes, Entry>>,
    stop: CancellationToken,
}

impl Sessions {
    /// No sessions. All end when the token is cancelled.
    pub fn new(shared: Shared, stop: CancellationToken) -> Sessions {
        Sessions { shared, all: Mutex::default(), stop }
    }

    /// Waits for the first request of a stream, and gives the stream to its session.
    pub async fn open(self: Arc<Self>, mut requests: Streaming<Request>, answers: Answers) {
        let open = opening(&mut requests, |request: Request| match request.message {
            Some(request::Message::Open(open)) => Some(open),
            _ => None,
        });
        let attached = match open.await {
            Ok(open) => self.attach(open, requests, &answers).await,
            Err(status) => Err(status),
        };
        if let Err(status) = attached {
            // An error means that the stream is gone.
            drop(answers.send(Err(status)).await);
        }
    }

    async fn attach(
        self: Arc<Self>,
        Open { session, received, acknowledges, lost }: Open,
        requests: Streaming<Request>,
        answers: &Answers,
    ) -> Result<(), Status> {
        let known = self.all.lock().get(&session).cloned();
        let (reason, answers) = (String::new(), answers.clone());
        let received = if lost { Received::Lost } else { Received::UpTo(received) };
        let mut attach = Attach { received, acknowledges, reason, requests, answers };
        if let Some(known) = known {
            match known.attach.send(attach).await {
                Ok(()) => return Ok(()),
                // It has ended at this moment.
                Err(refused) => attach = refused.0,
            }
        }
        attach.received = Received::New;
        if !session.is_empty() {
            attach.reason = "no session has this name, or its time is over".into();
        }
        self.begin(attach)
    }

    /// A client says which updates it has applied.
    ///
    /// # Errors
    /// There is no such session, or the update was not sent.
    pub fn acknowledge(&self, session: &Bytes, received: u64) -> Result<(), Status> {
        let entry = self.all.lock().get(session).cloned();
        let unknown = || Status::not_found("no session has this name, or its time is over");
        entry.ok_or_else(unknown)?.status.acknowledge(received)
    }

    /// Adds a session. The one that has waited for longest gives way if there are too many.
    fn insert(&self, name: &Bytes, entry: Entry) -> Result<(), Status> {
        let mut all = self.all.lock();
        if all.len() >= self.shared.limits.sessions {
            let Some(oldest) = oldest_waiting(&all).and_then(|name| all.remove(&name)) else {
                let text =
                    format!("{} sessions have a stream, as many as may be (--sessions)", all.len());
                return Err(Status::resource_exhausted(text));
            };
            oldest.status.give_way();
            self.shared.metrics.evicted.fetch_add(1, Relaxed);
        }
        all.insert(name.clone(), entry);
        Ok(())
    }

    fn begin(self: Arc<Self>, attach: Attach) -> Result<(), Status> {
        let name = random::<NAME>().map_err(|no| Status::internal(no.to_string()))?;
        let name = Bytes::copy_from_slice(&name);
        let (to, from) = mpsc::channel(1);
        let status = Arc::new(SessionStatus::default());
        self.insert(&name, Entry { attach: to.clone(), status: Arc::clone(&status) })?;
        // The queue has room, and the session is about to take it.
        drop(to.try_send(attach));
        let shared = self.shared.clone();
        let session = Session::new(name.clone(), shared, (from, status), self.stop.clone());
        tokio::spawn(async move {
            let ended = tokio::spawn(session.run()).await;
            self.all.lock().remove(&name);
            if let Err(error) = ended
                && error.is_panic()
            {
                tracing::error!("a session ended in a panic");
            }
        });
        Ok(())
    }
}

fn oldest_waiting(all: &HashMap<Bytes, Entry>) -> Option<Bytes> {
    let waiting = all.iter().filter_map(|(name, entry)| Some((entry.status.waits_since()?, name)));
    waiting.min().map(|(_, name)| name.clone())
}

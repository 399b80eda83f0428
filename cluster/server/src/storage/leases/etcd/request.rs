//! Requests to etcd: one endpoint after the other, within time limits, until one answers.

use std::future::Future;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;
use tonic::{Code, Status};

use super::client::Client;
use super::{ANSWER_LIMIT, REQUEST_LIMIT, Shared};
use crate::causes::whole;
use crate::storage::LeaseError;

/// Shortest and longest pause before all endpoints are asked again.
const PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failed {
    /// No usable answer now: another endpoint or a later try may succeed.
    Unreachable(String),
    Refused(String),
    NoLease,
    WentBack {
        seen: u64,
        found: u64,
    },
}

impl Failed {
    pub fn told(self, store: &str, asked: &'static str) -> LeaseError {
        let store = format!("etcd ({store})");
        match self {
            Failed::Unreachable(cause) => LeaseError::Unreachable { store, asked, cause },
            Failed::Refused(cause) => LeaseError::Refused { store, asked, cause },
            Failed::NoLease => {
                LeaseError::Refused { store, asked, cause: "there is no such lease".into() }
            }
            Failed::WentBack { seen, found } => LeaseError::WentBack { seen, found },
        }
    }
}

pub fn failed(status: &Status) -> Failed {
    let cause = format!("{:?}: {}", status.code(), status.message());
    match status.code() {
        Code::NotFound if status.message().contains("lease") => Failed::NoLease,
        // "Too many requests" passes; "no space" does not.
        Code::ResourceExhausted if !status.message().contains("space") => {
            Failed::Unreachable(cause)
        }
        Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::ResourceExhausted
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::Unauthenticated => Failed::Refused(cause),
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::DeadlineExceeded
        | Code::Aborted
        | Code::Internal
        | Code::Unavailable
        | Code::DataLoss => Failed::Unreachable(whole(status)),
    }
}

impl Shared {
    pub fn client(&self) -> (usize, Client) {
        let at = self.at.load(Ordering::Relaxed);
        (at, self.clients[at % self.clients.len()].clone())
    }

    /// Moves on to the next client, unless another task has.
    pub fn next(&self, from: usize) {
        let next = from.wrapping_add(1);
        // A failure means that another task has moved on.
        let _moved = self.at.compare_exchange(from, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Repeats a request until there is an answer, for at most [`REQUEST_LIMIT`]. The request must
    /// be idempotent; it returns its answer and the store's revision. The flag is true if the
    /// request was sent more than once.
    pub async fn ask<T, F>(
        &self,
        asked: &'static str,
        request: impl Fn(Client) -> F,
    ) -> Result<(T, bool), Failed>
    where
        F: Future<Output = Result<(u64, T), Status>>,
    {
        let seen = self.seen.load(Ordering::Acquire);
        let until = Instant::now() + REQUEST_LIMIT;
        let mut pause = PAUSE.0;
        for round in 1.. {
            let (at, client) = self.client();
            let cause = match tokio::time::timeout(ANSWER_LIMIT, request(client)).await {
                Ok(Ok((revision, answer))) => {
                    self.check(seen, revision)?;
                    return Ok((answer, round > 1));
                }
                Ok(Err(e)) => match failed(&e) {
                    Failed::Unreachable(cause) => cause,
                    failed => return Err(failed),
                },
                Err(_) => format!("no answer within {ANSWER_LIMIT:?}"),
            };
            tracing::debug!(asked, cause, "etcd does not answer");
            self.next(at);
            if Instant::now() + pause >= until {
                return Err(Failed::Unreachable(cause));
            }
            if round % self.clients.len() == 0 {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE.1);
            }
        }
        Err(Failed::Unreachable("every retry failed".into()))
    }

    /// Checks that an answer is not older than `seen`, the highest revision before the request.
    pub fn check(&self, seen: u64, found: u64) -> Result<(), Failed> {
        self.seen.fetch_max(found, Ordering::AcqRel);
        if found < seen { Err(Failed::WentBack { seen, found }) } else { Ok(()) }
    }
}

//! The status of a session, for those who look at it from outside: calls, and new sessions for which it
//! may have to give way.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::outbox::RewindError;

/// Orders sessions by when they began to wait.
static WAITED: AtomicU64 = AtomicU64::new(0);

#[derive(Debug, Default)]
pub struct SessionStatus {
    /// Its place among the sessions that wait for their client; 0: it does not wait.
    pub waiting: AtomicU64,
    pub sent: AtomicU64,
    /// The number of the last update that the client has applied.
    pub received: AtomicU64,
    pub acknowledged: Notify,
    /// The session ends, so that another one has room.
    pub gave_way: CancellationToken,
}

impl SessionStatus {
    pub fn wait(&self) {
        self.waiting.store(WAITED.fetch_add(1, Relaxed) + 1, Relaxed);
    }

    /// Its place among the sessions that wait.
    pub fn waits_since(&self) -> Option<u64> {
        Some(self.waiting.load(Relaxed)).filter(|place| *place > 0)
    }

    /// The session ends, so that another one has room.
    pub fn give_way(&self) {
        self.gave_way.cancel();
    }

    /// The client has applied the updates up to this one.
    ///
    /// # Errors
    /// It was not sent.
    pub fn acknowledge(&self, received: u64) -> Result<(), Status> {
        let last = self.sent.load(Relaxed);
        if received > last {
            let error = RewindError::Never { received, last };
            return Err(Status::invalid_argument(error.to_string()));
        }
        self.received.fetch_max(received, Relaxed);
        self.acknowledged.notify_one();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_sent_is_not_acknowledged() {
        let status = SessionStatus::default();
        status.sent.store(5, Relaxed);
        status.acknowledge(4).unwrap();
        status.acknowledge(3).unwrap();
        let refused = status.acknowledge(6).unwrap_err();
        assert_eq!(refused.message(), "received 6, but the last update that was sent is 5");
        assert_eq!(status.received.load(Relaxed), 4);
    }
}

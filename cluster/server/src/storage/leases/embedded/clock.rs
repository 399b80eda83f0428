//! The clock by which leases run out: the machine's, or one that a test advances.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

#[derive(Debug, Clone)]
pub enum Clock {
    Monotonic,
    Manual(ManualClock),
}

impl Clock {
    pub fn now(&self) -> Instant {
        match self {
            Clock::Monotonic => Instant::now(),
            Clock::Manual(clock) => clock.now(),
        }
    }

    pub(super) async fn sleep_until(&self, time: Instant) {
        match self {
            Clock::Monotonic => tokio::time::sleep_until(time).await,
            Clock::Manual(clock) => {
                let mut passed = clock.passed.subscribe();
                let wait = time.saturating_duration_since(clock.origin);
                // This clock holds the sender, so the wait cannot fail.
                let _there = passed.wait_for(|passed| *passed >= wait).await.is_ok();
            }
        }
    }
}

/// A clock that a test advances. Clones show the same time.
#[derive(Debug, Clone)]
pub struct ManualClock {
    origin: Instant,
    passed: watch::Sender<Duration>,
}

impl Default for ManualClock {
    fn default() -> ManualClock {
        ManualClock { origin: Instant::now(), passed: watch::Sender::new(Duration::ZERO) }
    }
}

impl ManualClock {
    pub fn now(&self) -> Instant {
        self.origin + *self.passed.borrow()
    }

    pub fn advance(&self, by: Duration) {
        self.passed.send_modify(|passed| *passed += by);
    }
}

//! Waits for PostgreSQL and etcd at the start of a process: all parts of a cluster may start in any order.
//!
//! While a process waits, its console answers health checks alone: it is alive, and not ready with the reason. systemd
//! and the log are told the reason, too. Only a store that does not answer is waited for, and by gateways the first node of
//! a cluster: a refusal, such as a wrong password, ends the start at once.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::error::ProcessError;
use crate::admin::Console;
use crate::config::Config;
use crate::node::NodeError;
use crate::storage::{CheckpointError, LeaseError};
use crate::supervisor;

/// Shortest and longest pause between two attempts.
const PAUSE: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(2));

/// Longest time of one attempt, by which systemd is asked to wait longer.
const ATTEMPT: Duration = Duration::from_secs(30);

/// Repeats `open` while a store does not answer, for `cluster.patience`.
///
/// # Errors
/// The last error, when the time is over; or another error than that of a store that does not answer.
pub(super) async fn patiently<T>(
    config: &Config,
    mut open: impl AsyncFnMut() -> Result<T, ProcessError>,
) -> Result<T, ProcessError> {
    let (until, mut pause) = (Instant::now() + config.cluster.patience, PAUSE.0);
    let mut waiting = None;
    let opened = loop {
        let error = match open().await {
            Err(error) if passes(&error) && Instant::now() + pause < until => error,
            ended => break ended,
        };
        let why = format!("waiting: {error}");
        purview::log_limited!(warn, %error, "a store or the first node is not there yet; will retry");
        supervisor::waits(&why, ATTEMPT);
        waiting.get_or_insert_with(|| WaitingConsole::start(config)).tell(why);
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE.1);
    };
    if let Some(waiting) = waiting {
        waiting.stop().await;
    }
    opened
}

fn passes(error: &ProcessError) -> bool {
    matches!(
        error,
        ProcessError::Store(LeaseError::Unreachable { .. } | LeaseError::NotBegun)
            | ProcessError::Checkpoints(CheckpointError::Unreachable { .. })
            | ProcessError::Node(
                NodeError::Store(LeaseError::Unreachable { .. })
                    | NodeError::Checkpoints(CheckpointError::Unreachable { .. })
            )
    )
}

/// Answers health checks while the process waits.
struct WaitingConsole {
    why: Arc<Mutex<String>>,
    console: Option<Console>,
}

impl WaitingConsole {
    fn start(config: &Config) -> WaitingConsole {
        let why = Arc::new(Mutex::new(String::new()));
        // A port that the system chooses is known to nobody yet.
        let addr = config.console.listen.filter(|addr| addr.port() != 0);
        let console = addr.and_then(|addr| {
            Console::waiting(why.clone(), addr, &config.console)
                .inspect_err(|error| tracing::warn!(%error, "health checks are not answered yet"))
                .ok()
        });
        WaitingConsole { why, console }
    }

    fn tell(&self, why: String) {
        *self.why.lock() = why;
    }

    /// Frees the address for the console.
    async fn stop(self) {
        if let Some(console) = self.console {
            console.stop().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unreachable() -> ProcessError {
        let (store, cause) = ("http://e:1".into(), "refused".into());
        ProcessError::Store(LeaseError::Unreachable { store, asked: "connect", cause })
    }

    fn with(patience: Duration) -> Config {
        let mut config = Config::default();
        (config.cluster.patience, config.console.listen) = (patience, None);
        config
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_comes_late_is_waited_for() {
        let config = with(Duration::from_secs(60));
        let (began, mut tries) = (Instant::now(), 0);
        let opened = patiently(&config, async || {
            tries += 1;
            if began.elapsed() < Duration::from_secs(30) { Err(unreachable()) } else { Ok(7) }
        });
        assert_eq!(opened.await.unwrap(), 7);
        assert!(began.elapsed() < Duration::from_secs(33), "{:?}", began.elapsed());
        assert!((15..30).contains(&tries), "{tries}");
    }

    #[tokio::test(start_paused = true)]
    async fn patience_ends_with_the_last_error_and_a_refusal_ends_it_at_once() {
        let (config, began) = (with(Duration::from_secs(60)), Instant::now());
        let never = patiently(&config, async || Err::<(), _>(unreachable()));
        assert!(never.await.unwrap_err().to_string().contains("http://e:1 is unreachable"));
        let waited = began.elapsed();
        assert!((55..=60).contains(&waited.as_secs()), "{waited:?}");
        let refused = patiently(&config, async || {
            let (store, cause) = ("s".into(), "wrong password".into());
            Err::<(), _>(LeaseError::Refused { store, asked: "connect", cause }.into())
        });
        assert!(refused.await.is_err());
        assert_eq!(began.elapsed(), waited, "a refusal is not waited for");
    }
}

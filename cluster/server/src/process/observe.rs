//! Watches how a process is: tells systemd what it has, answers for its threads, and logs why it is not ready.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::arbiters::Arbiters;
use super::runtime::TaskRuntime;
use crate::executor::Executor;
use crate::gateway::{Gateway, GatewayMetrics};
use crate::node::Node;
use crate::node::hosted::Hosted;
use crate::node::readiness::Readiness;
use crate::supervisor;
use crate::supervisor::watchdog::{Watchdog, Watched};

const EVERY: Duration = Duration::from_secs(1);

/// How long a process may be unready before the log says why, and how often it says so again.
const UNREADY: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(60));

/// The tasks that watch a process; they end when this is dropped.
#[derive(Debug)]
pub(super) struct Observation {
    task: JoinHandle<()>,
    _watchdog: Option<Watchdog>,
}

impl Drop for Observation {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Watches a process from now on; a simulated one is not watched.
///
/// # Errors
/// The system gives no thread.
pub(super) fn observe(
    runtime: &TaskRuntime,
    arbiters: &Arbiters,
    (node, gateway): (&Node, Option<&Gateway>),
    readiness: &Arc<Readiness>,
) -> std::io::Result<Option<Observation>> {
    let Executor::Machine(handle) = runtime.executor() else { return Ok(None) };
    let mut watched = vec![Watched::runtime("links and stores", handle.clone())];
    if let Some(main) = actix::Arbiter::try_current() {
        watched.push(Watched::arbiter("main", main));
    }
    let threads = arbiters.handles().into_iter().enumerate();
    watched.extend(threads.map(|(i, arbiter)| Watched::arbiter(format!("regions {i}"), arbiter)));
    let looks = Looks {
        readiness: readiness.clone(),
        hosted: node.hosted().clone(),
        sessions: gateway.map(|gateway| gateway.metrics().clone()),
    };
    let task = handle.spawn(looks.run());
    Ok(Some(Observation { task, _watchdog: Watchdog::start(watched)? }))
}

struct Looks {
    readiness: Arc<Readiness>,
    hosted: Hosted,
    sessions: Option<Arc<GatewayMetrics>>,
}

impl Looks {
    async fn run(self) {
        let (mut told, mut unready) = (String::new(), Unready::default());
        loop {
            let lacks = self.readiness.lacks();
            match unready.look(lacks.is_empty(), Instant::now()) {
                Some(true) => tracing::info!("ready again"),
                Some(false) => tracing::warn!(why = lacks.join("; "), "this process is not ready"),
                None => {}
            }
            let status = self.status(&lacks);
            if status != told {
                supervisor::status(&status);
                told = status;
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    fn status(&self, lacks: &[String]) -> String {
        let regions = format!("{} regions", self.hosted.now().len());
        let sessions = self.sessions.as_ref().map(|metrics| {
            format!(", {} sessions", metrics.admission.sessions_open.load(Ordering::Relaxed))
        });
        let state = if lacks.is_empty() { "ready".to_owned() } else { lacks.join("; ") };
        format!("{regions}{}; {state}", sessions.unwrap_or_default())
    }
}

/// Decides when the log says that a process is not ready.
#[derive(Debug, Default)]
struct Unready {
    since: Option<Instant>,
    /// When the log said so last.
    told: Option<Instant>,
}

impl Unready {
    /// What is to be said: that it is ready again, that it is not ready, or nothing.
    fn look(&mut self, is_ready: bool, now: Instant) -> Option<bool> {
        if is_ready {
            self.since = None;
            return self.told.take().map(|_| true);
        }
        let since = *self.since.get_or_insert(now);
        let is_due = match self.told {
            None => now.duration_since(since) > UNREADY.0,
            Some(told) => now.duration_since(told) >= UNREADY.1,
        };
        is_due.then(|| {
            self.told = Some(now);
            false
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_says_that_a_process_is_unready_after_five_seconds_and_once_a_minute() {
        let (mut unready, begin) = (Unready::default(), Instant::now());
        let mut look = |ready, s| unready.look(ready, begin + Duration::from_secs(s));
        assert_eq!([look(false, 0), look(false, 5), look(true, 6)], [None, None, None]);
        assert_eq!([look(false, 7), look(false, 13), look(false, 72)], [None, Some(false), None]);
        assert_eq!(
            [look(false, 73), look(true, 74), look(true, 75)],
            [Some(false), Some(true), None]
        );
    }
}

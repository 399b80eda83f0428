//! Where the tasks of a process run, and what time of day it is there.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::runtime::Handle;
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::Instant;

/// Where a process's tasks run. Cheap to clone.
#[derive(Debug, Clone)]
pub enum Executor {
    /// On a runtime that outlives them, by the machine's clock.
    Machine(Handle),
    /// In the [`tokio::task::LocalSet`] of the task that spawns them, with which they end: a
    /// process that is simulated, whose clock goes by the runtime's.
    Simulated {
        /// A time of the runtime's clock.
        at: Instant,
        /// The time of day that the process believes it was then.
        time_of_day: Duration,
    },
}

impl Executor {
    pub fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        match self {
            Executor::Machine(handle) => handle.spawn(work),
            Executor::Simulated { .. } => spawn_local(work),
        }
    }

    /// Runs work where the tasks run, and waits for it. A panic of the work goes on here.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        match self.spawn(work).await {
            Ok(done) => done,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }

    /// The time of day: time since the beginning of 1970.
    pub fn time_of_day(&self) -> Duration {
        match self {
            Executor::Machine(_) => {
                SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
            }
            Executor::Simulated { at, time_of_day } => *time_of_day + at.elapsed(),
        }
    }
}

impl From<Handle> for Executor {
    fn from(handle: Handle) -> Executor {
        Executor::Machine(handle)
    }
}

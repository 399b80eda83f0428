//! The watchdog of systemd (`WatchdogSec`): a thread of its own tells systemd that the process lives, as long as every
//! worker thread of the process answers. A thread that is stuck for longer lets systemd restart the process.
//!
//! What must never happen here: an answer in the name of a thread that has not run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use sd_notify::NotifyState;

/// Runs a closure on one worker thread; false: the thread has ended.
type Ask = Box<dyn Fn(Box<dyn FnOnce() + Send>) -> bool + Send>;

/// A worker thread that must answer.
pub struct Watched {
    name: String,
    ask: Ask,
    answered: Arc<AtomicU64>,
}

impl Watched {
    /// `ask` runs a closure on the thread, and says whether the thread still takes one.
    pub fn new(
        name: impl Into<String>,
        ask: impl Fn(Box<dyn FnOnce() + Send>) -> bool + Send + 'static,
    ) -> Watched {
        Watched { name: name.into(), ask: Box::new(ask), answered: Arc::default() }
    }

    /// The thread of an arbiter.
    pub fn arbiter(name: impl Into<String>, arbiter: actix::ArbiterHandle) -> Watched {
        Watched::new(name, move |answer| arbiter.spawn_fn(answer))
    }

    /// A runtime: one of its threads answers.
    pub fn runtime(name: impl Into<String>, runtime: tokio::runtime::Handle) -> Watched {
        Watched::new(name, move |answer| {
            drop(runtime.spawn(async move { answer() }));
            true
        })
    }

    fn ask(&self, round: u64) {
        let answered = self.answered.clone();
        let takes = (self.ask)(Box::new(move || answered.store(round, Ordering::Relaxed)));
        if !takes {
            tracing::debug!(thread = self.name, "a watched thread has ended");
        }
    }

    fn has_answered(&self, round: u64) -> bool {
        self.answered.load(Ordering::Relaxed) >= round
    }
}

/// The running watchdog; it ends when this is dropped.
#[derive(Debug)]
pub struct Watchdog(Arc<AtomicBool>);

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Watchdog {
    /// Watches these threads, if systemd wants to hear of them. `None`: it does not.
    pub fn start(watched: Vec<Watched>) -> std::io::Result<Option<Watchdog>> {
        let Some(limit) = sd_notify::watchdog_enabled() else { return Ok(None) };
        let tell = || {
            if let Err(error) = sd_notify::notify(&[NotifyState::Watchdog]) {
                purview::log_limited!(warn, %error, "systemd's watchdog cannot be told");
            }
        };
        Watchdog::run(watched, limit, tell).map(Some)
    }

    /// Calls `tell` whenever all have answered, three times within `limit`.
    fn run(
        watched: Vec<Watched>,
        limit: Duration,
        tell: impl Fn() + Send + 'static,
    ) -> std::io::Result<Watchdog> {
        let ended = Arc::new(AtomicBool::new(false));
        let ends = ended.clone();
        let work = move || {
            let mut round = 1;
            watched.iter().for_each(|thread| thread.ask(round));
            while !ends.load(Ordering::Relaxed) {
                std::thread::sleep(limit / 3);
                match watched.iter().find(|thread| !thread.has_answered(round)) {
                    None => {
                        tell();
                        round += 1;
                        watched.iter().for_each(|thread| thread.ask(round));
                    }
                    Some(silent) => {
                        tracing::error!(thread = silent.name, "a thread is stuck");
                    }
                }
            }
        };
        std::thread::Builder::new().name("watchdog".into()).spawn(work)?;
        Ok(Watchdog(ended))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};
    use std::thread::JoinHandle;

    use super::*;

    type Work = Box<dyn FnOnce() + Send>;

    /// A worker thread, which ends with its sender.
    fn worker() -> (Sender<Work>, JoinHandle<()>) {
        let (give, take) = channel::<Work>();
        (give, std::thread::spawn(move || take.into_iter().for_each(|work| work())))
    }

    #[test]
    fn a_thread_that_is_stuck_silences_the_watchdog_until_it_runs_again() {
        const LIMIT: Duration = Duration::from_millis(30);
        let ((one, _), (other, _)) = (worker(), worker());
        let watched = [&one, &other].map(|worker| {
            let worker = worker.clone();
            Watched::new("worker", move |answer| worker.send(answer).is_ok())
        });
        let (told, heard) = channel();
        let _watchdog = Watchdog::run(watched.into(), LIMIT, move || _ = told.send(())).unwrap();
        let soon = Duration::from_secs(10);
        heard.recv_timeout(soon).expect("all threads run");
        let (release, held) = channel::<()>();
        other.send(Box::new(move || _ = held.recv())).unwrap();
        // What was asked before the thread was stuck may still be answered.
        while heard.recv_timeout(LIMIT * 5).is_ok() {}
        assert!(heard.recv_timeout(LIMIT * 5).is_err(), "a stuck thread is not vouched for");
        drop(release);
        heard.recv_timeout(soon).expect("it runs again");
    }
}

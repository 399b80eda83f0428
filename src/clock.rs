//! The present time, for code that asks often.
//!
//! It is the machine's time, or that of a paused runtime. In a simulation time stands still while
//! code runs, so the answer is cached until the simulation's clock advances. Only simulations may
//! hold the clock; the pure scene must not call this module.

use std::cell::Cell;
use std::sync::OnceLock;
use std::time::Duration;

use actix_rt::time::Instant;

thread_local! {
    static HOLDS: Cell<bool> = const { Cell::new(false) };
    static NOW: Cell<Option<Instant>> = const { Cell::new(None) };
    /// The last argument and answer of [`since`].
    static SINCE: Cell<Option<(Instant, Duration)>> = const { Cell::new(None) };
}

/// While it exists, this thread's time changes only when [`was_set`] is called. For simulations,
/// which alone know when their clock advances.
#[derive(Debug)]
pub struct Hold(());

impl Hold {
    /// Holds the time from now on.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Hold {
        HOLDS.set(true);
        was_set();
        Hold(())
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        HOLDS.set(false);
        was_set();
    }
}

/// Drops the cached time: the clock may have advanced.
pub fn was_set() {
    NOW.set(None);
    SINCE.set(None);
}

/// The present time.
pub fn now() -> Instant {
    if let Some(now) = NOW.get() {
        return now;
    }
    let now = Instant::now();
    if HOLDS.get() {
        NOW.set(Some(now));
    }
    now
}

/// Time since `then`; zero if `then` is in the future. The last answer is cached, because most
/// callers ask for the same start.
pub fn since(then: Instant) -> Duration {
    if let Some((_, since)) = SINCE.get().filter(|(asked, _)| *asked == then) {
        return since;
    }
    let since = now() - then;
    if HOLDS.get() {
        SINCE.set(Some((then, since)));
    }
    since
}

/// The time for log limits: milliseconds since the first call.
pub fn log_ms() -> u64 {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    let first = *FIRST.get_or_init(now);
    u64::try_from(now().saturating_duration_since(first).as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use actix_rt::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn held_time_advances_only_when_told() {
        let began = now();
        sleep(Duration::from_millis(5)).await;
        assert_eq!(now() - began, Duration::from_millis(5), "time is not held");
        let hold = Hold::new();
        assert_eq!(now() - began, Duration::from_millis(5));
        sleep(Duration::from_millis(5)).await;
        assert_eq!(now() - began, Duration::from_millis(5), "time is held");
        assert_eq!(since(began), Duration::from_millis(5));
        was_set();
        assert_eq!(now() - began, Duration::from_millis(10));
        assert_eq!(since(began), Duration::from_millis(10));
        assert_eq!(since(began + Duration::from_millis(4)), Duration::from_millis(6));
        sleep(Duration::from_millis(5)).await;
        drop(hold);
        assert_eq!(
            (now() - began, since(began)),
            (Duration::from_millis(15), Duration::from_millis(15))
        );
    }
}

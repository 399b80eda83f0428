//! What time it is, for what asks often. It is the machine's time, or that of a paused runtime: in a simulation time
//! stands still while anything is done, and is asked for once each time that it has leapt.

use std::cell::Cell;
use std::sync::OnceLock;
use std::time::Duration;

use actix_rt::time::Instant;

thread_local! {
    static HOLDS: Cell<bool> = const { Cell::new(false) };
    static NOW: Cell<Option<Instant>> = const { Cell::new(None) };
    /// The last answer of [`since`].
    static SINCE: Cell<Option<(Instant, Duration)>> = const { Cell::new(None) };
}

/// While it lives, time only leaps in this thread when [`leaps`] says so. For simulations: nobody else knows when it
/// leaps.
#[derive(Debug)]
pub struct Hold(());

impl Hold {
    /// Time stands still from now on.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Hold {
        HOLDS.set(true);
        leaps();
        Hold(())
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        HOLDS.set(false);
        leaps();
    }
}

/// Time may have leapt.
pub fn leaps() {
    NOW.set(None);
    SINCE.set(None);
}

/// What time it is.
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

/// How long ago that was; no time at all if it is still to come. Most ask for the time since one beginning.
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

/// The time by which log lines are limited: milliseconds since this was asked first.
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
    async fn held_time_leaps_when_it_is_said_to() {
        let began = now();
        sleep(Duration::from_millis(5)).await;
        assert_eq!(now() - began, Duration::from_millis(5), "nobody holds it");
        let hold = Hold::new();
        assert_eq!(now() - began, Duration::from_millis(5));
        sleep(Duration::from_millis(5)).await;
        assert_eq!(now() - began, Duration::from_millis(5), "it is held");
        assert_eq!(since(began), Duration::from_millis(5));
        leaps();
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

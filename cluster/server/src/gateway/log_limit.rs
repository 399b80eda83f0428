//! Log lines that would repeat for each connection are written at most once a second.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use purview::clock;
use tokio::time::Instant;

/// Time between two lines.
const EVERY: Duration = Duration::from_secs(1);

/// Decides when a line is due.
#[derive(Debug, Default)]
pub(super) struct Seldom(Mutex<(Option<Instant>, u64)>);

impl Seldom {
    /// Whether the line is due: with the number of those that were left out since the last one.
    pub(super) fn due(&self) -> Option<u64> {
        let now = clock::now();
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, more) = &mut *state;
        if last.is_some_and(|last| now.saturating_duration_since(last) < EVERY) {
            *more += 1;
            return None;
        }
        *last = Some(now);
        Some(std::mem::take(more))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_line_is_due_once_a_second_and_tells_how_many_were_left_out() {
        let seldom = Seldom::default();
        assert_eq!([seldom.due(), seldom.due(), seldom.due()], [Some(0), None, None]);
        tokio::time::advance(EVERY).await;
        assert_eq!([seldom.due(), seldom.due()], [Some(2), None]);
    }
}

//! Limits log lines that would repeat for each connection to one per second.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use purview::clock;
use tokio::time::Instant;

/// Time between two lines.
const EVERY: Duration = Duration::from_secs(1);

/// Decides whether a line is written.
#[derive(Debug, Default)]
pub(super) struct LogLimit(Mutex<(Option<Instant>, u64)>);

impl LogLimit {
    /// Some if the line is to be written, with the number of lines that were left out since the
    /// last one.
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
    async fn one_line_per_second_is_due_with_the_number_of_lines_left_out() {
        let limit = LogLimit::default();
        assert_eq!([limit.due(), limit.due(), limit.due()], [Some(0), None, None]);
        tokio::time::advance(EVERY).await;
        assert_eq!([limit.due(), limit.due()], [Some(2), None]);
    }
}

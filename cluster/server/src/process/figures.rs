//! How the regions of a process keep up.

use serde::{Deserialize, Serialize};

pub use crate::admin::TickTimes as TickMs;

/// What the server itself says of how it kept up; only where it runs in this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerFigures {
    /// Ticks that a region left out because it was late by more than a tick.
    pub skipped_ticks: u64,
    /// Ticks that a region closed without the ghosts of a neighbour, which was late.
    pub forced_closes: u64,
    /// Frames lost because the queue of a thread's sessions was full.
    pub frames_lost: u64,
    /// Ghost batches lost because a neighbour's mailbox was full.
    pub borders_lost: u64,
}

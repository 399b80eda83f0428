//! Figures that a region keeps of itself, readable from any thread without asking it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::scene::movement::Reason;

/// Upper bounds of the tick-time buckets, microseconds; a last bucket takes the rest.
pub const TICK_BUCKETS_US: [u64; 24] = [
    10, 20, 50, 100, 150, 200, 300, 500, 750, 1_000, 1_500, 2_000, 3_000, 4_000, 5_000, 7_500,
    10_000, 15_000, 20_000, 30_000, 50_000, 75_000, 100_000, 250_000,
];

/// The figures of one region. Counters only grow; the others are as of the last tick.
#[derive(Debug, Default)]
pub struct RegionMetrics {
    /// Ticks done.
    pub ticks: AtomicU64,
    /// Ticks left out because the region, or a neighbour that it waited for, was late.
    pub skipped_ticks: AtomicU64,
    /// Ticks closed without a neighbour that was waited for in vain.
    pub forced_closes: AtomicU64,
    /// Neighbours whose ghosts were looked at, summed over ticks.
    pub border_ticks: AtomicU64,
    /// Of these, those whose ghosts were older than the tick.
    pub stale_border_ticks: AtomicU64,
    /// By how many ticks at most.
    pub stalest_ticks: AtomicU64,
    /// Entities that came from other regions.
    pub arrivals: AtomicU64,
    /// Of these, those that act here later than in the tick after their last one there.
    pub late_arrivals: AtomicU64,
    /// Acts that found no room in a client's frame.
    pub acts_dropped: AtomicU64,
    /// Moves that were due and waited, a tick each.
    pub moves_waited: AtomicU64,
    /// Entities that live here.
    pub reals: AtomicU64,
    /// Of these, players with a session.
    pub players: AtomicU64,
    /// Mirrored entities.
    pub ghosts: AtomicU64,
    /// Entities handed to another region.
    pub handoffs: AtomicU64,
    /// Frames given to sessions.
    pub frames: AtomicU64,
    /// Enters, leaves, moves and acts in these frames.
    pub updates: AtomicU64,
    /// Frames lost because the queue of a thread's sessions was full.
    pub frames_lost: AtomicU64,
    /// Ghost batches lost because a neighbour's mailbox was full.
    pub borders_lost: AtomicU64,
    /// Messages for other regions for which no room was left to wait: negotiation, which is said anew,
    /// and what sessions or the server's logic asked for.
    pub outbox_lost: AtomicU64,
    /// News for sessions for which no room was left to wait; these sessions count as gone.
    pub notices_lost: AtomicU64,
    /// Inputs that found no room to wait for the next tick; clients' are sent again.
    pub inputs_refused: AtomicU64,
    /// Messages of the view negotiation from other regions that found no room; they are said anew.
    pub view_messages_lost: AtomicU64,
    /// Messages of other regions that could not be true.
    pub implausible: AtomicU64,
    /// Sessions' statements about players of other subjects.
    pub other_subjects: AtomicU64,
    /// Messages of the view negotiation sent to other regions.
    pub view_messages: AtomicU64,
    /// Microseconds of work in the ticks, summed.
    pub tick_us_sum: AtomicU64,
    /// Nanoseconds of this work in which frames were encoded and given to sessions, summed.
    pub delivery_ns_sum: AtomicU64,
    /// Longest tick, microseconds.
    pub tick_us_max: AtomicU64,
    /// Move commands that were refused, by reason: as [`Reason::NAMES`].
    pub moves_refused: [AtomicU64; Reason::NAMES.len()],
    /// The region was given up, and nothing is left to do for it.
    pub over: AtomicBool,
    tick_us: [AtomicU64; 25],
}

impl RegionMetrics {
    /// Counts a tick that took `us` microseconds of work.
    pub fn tick_took(&self, us: u64) {
        self.ticks.fetch_add(1, Ordering::Relaxed);
        self.tick_us_sum.fetch_add(us, Ordering::Relaxed);
        self.tick_us_max.fetch_max(us, Ordering::Relaxed);
        let bucket = TICK_BUCKETS_US.iter().position(|b| us <= *b).unwrap_or(TICK_BUCKETS_US.len());
        self.tick_us[bucket].fetch_add(1, Ordering::Relaxed);
    }

    /// Ticks per bucket of [`TICK_BUCKETS_US`], then those beyond the last.
    pub fn tick_buckets(&self) -> [u64; 25] {
        std::array::from_fn(|i| self.tick_us[i].load(Ordering::Relaxed))
    }
}

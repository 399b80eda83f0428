//! What a region counts, for metrics and tests.

use crate::scene::movement::Reason;

/// Counts of a region, as of its last closed tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Entities that live here.
    pub reals: u64,
    /// Of these, players with a session.
    pub players: u64,
    /// Mirrored entities.
    pub ghosts: u64,
    /// Entities handed off since the start.
    pub handoffs: u64,
    /// Frames made since the start.
    pub frames: u64,
    /// Enters, leaves, moves and acts in these frames.
    pub updates: u64,
    /// Messages of the view negotiation that were sent to other regions since the start.
    pub view_messages: u64,
    /// Messages of the view negotiation between two local players since the start.
    pub local_view_messages: u64,
    /// Acts that a viewer was not told since the start, because its frame was full.
    pub acts_dropped: u64,
    /// Moves that were due and waited since the start, a tick each, because a frame or a client's byte budget was
    /// full.
    pub moves_waited: u64,
    /// Ticks closed without the ghosts of every neighbour.
    pub forced_closes: u64,
    /// Neighbours whose ghosts were looked at, summed over the ticks since the start.
    pub border_ticks: u64,
    /// Of these, those whose ghosts were older than the tick.
    pub stale_border_ticks: u64,
    /// By how many ticks at most.
    pub stalest_ticks: u64,
    /// Entities that have come from regions of this scene since the start.
    pub arrivals: u64,
    /// Of these, those that act here later than in the tick after their last one there.
    pub late_arrivals: u64,
    /// Messages of regions that had died before they came, since the start.
    pub fenced: u64,
    /// Messages that could not be true and were refused since the start.
    pub implausible: u64,
    /// Sessions' statements about players of other subjects that were refused since the start.
    pub other_subjects: u64,
    /// Inputs that were refused since the start, since too many waited.
    pub inputs_refused: u64,
    /// Messages of the view negotiation that found no room since the start.
    pub view_messages_lost: u64,
    /// Players of a checkpoint that no session has presented yet.
    pub unclaimed: u64,
    /// Move commands that were refused since the start, by reason: as [`Reason::NAMES`].
    pub moves_refused: [u64; Reason::NAMES.len()],
}

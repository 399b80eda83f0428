//! What sessions are given: deliveries, and which frames found no room.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::scene::messages::Notice;
use crate::scene::{Epoch, RegionId, Tick};
use crate::wire::EncodedBatch;

/// Something for a player's session. When its thread's queue is full the frame is lost and the
/// region is told to resync; a notice waits in the region's outbox.
#[derive(Debug, Clone)]
pub enum Delivery {
    /// The frame at this index of the batch is for this session.
    Frame(Arc<EncodedBatch>, u32),
    /// News of the entity.
    Notice(Notice),
    /// A region goes on from a checkpoint under a new owner, of this epoch.
    Owner(RegionId, Epoch),
}

/// Of which ticks frames for a session found no room: the first, and the last.
#[derive(Debug, Default)]
pub(in crate::actor) struct LostFrames(AtomicU64);

/// How a frame stands to those that were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::actor) enum GapPosition {
    /// It was made before them, or none were lost.
    Before,
    /// It was made among them: even one that tells everything anew is followed by a gap.
    Among,
    /// It was made after them, which are known now.
    After,
}

impl LostFrames {
    /// A frame of this tick found no room.
    pub fn note(&self, tick: Tick) {
        let tick = tick.0 & u64::from(u32::MAX);
        let with = |lost: u64| {
            let (first, last) = (lost >> 32, lost & u64::from(u32::MAX));
            let first = if lost == 0 { tick } else { first.min(tick) };
            Some(first << 32 | last.max(tick))
        };
        // It always gives a value.
        self.0.fetch_update(Relaxed, Relaxed, with).ok();
    }

    /// How a frame of this tick stands to those that were lost.
    pub(in crate::actor) fn gap_position(&self, tick: Tick) -> GapPosition {
        let lost = self.0.load(Relaxed);
        let (first, last) = (lost >> 32, lost & u64::from(u32::MAX));
        match tick.0 & u64::from(u32::MAX) {
            tick if lost == 0 || tick < first => GapPosition::Before,
            tick if tick <= last => GapPosition::Among,
            // Another one may have been lost in this moment: then it is so with the next frame, too.
            _ => {
                self.0.compare_exchange(lost, 0, Relaxed, Relaxed).ok();
                GapPosition::After
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_frames_stand_between_earlier_and_later_frames() {
        let lost = LostFrames::default();
        let position = |tick| lost.gap_position(Tick(tick));
        assert_eq!(position(5), GapPosition::Before);
        [9, 7, 12].into_iter().for_each(|tick| lost.note(Tick(tick)));
        // Those wait in the mailbox yet.
        assert_eq!([position(5), position(6)], [GapPosition::Before; 2]);
        // Some found room between two that did not.
        assert_eq!([position(8), position(10), position(12)], [GapPosition::Among; 3]);
        assert_eq!([position(13), position(14)], [GapPosition::After, GapPosition::Before]);
        lost.note(Tick(20));
        assert_eq!(
            [position(19), position(21), position(22)],
            [GapPosition::Before, GapPosition::After, GapPosition::Before]
        );
    }
}

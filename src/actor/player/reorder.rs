//! The order in which a session takes what regions of different processes tell it.
//!
//! Regions of one process reach a session in order: the last frame of the old owner is in the session's
//! mailbox before the new owner knows of the entity. Two processes send by different ways, and the new owner
//! may be first. Then its messages wait in the reorder buffer until the old owner's last frame is there,
//! within bounds.

use std::collections::VecDeque;
use std::time::Duration;

use actix_rt::time::Instant;

use crate::actor::address::Delivery;
use crate::scene::messages::{Notice, RouteNotice};
use crate::scene::mutants::{self, Mutant};
use crate::scene::{Epoch, Tick};

/// How long a new owner's messages wait at least for the old owner's last frame, which may not exist; the
/// session checks a few times a second whether the time is over.
const PATIENCE: Duration = Duration::from_millis(200);

/// Most messages that wait; beyond, they go on as if the time were over.
const MAX_WAITING: usize = 64;

/// Messages that wait for their turn.
#[derive(Debug, Default)]
pub struct ReorderBuffer {
    /// The tick of the last frame that had its turn.
    last: Tick,
    /// The epoch of the newest owner that had its turn.
    epoch: Epoch,
    waiting: VecDeque<Delivery>,
    since: Option<Instant>,
    /// The last messages went on before the frame that they had waited for.
    given_up: bool,
}

impl ReorderBuffer {
    /// Takes a message; all messages that have their turn now go to `out`, in order. `now` is called only
    /// when a wait begins.
    pub fn take(
        &mut self,
        now: impl FnOnce() -> Instant,
        delivery: Delivery,
        out: &mut Vec<Delivery>,
    ) {
        let old = self.waiting.front().and_then(epoch_of);
        match epoch_of(&delivery) {
            // An older owner's message waits for nothing.
            Some(epoch) if old.is_some_and(|first| epoch < first) => {
                self.pass(delivery, out);
                self.flush_due(out);
            }
            _ if old.is_some() => {
                self.waiting.push_back(delivery);
                if self.waiting.len() > MAX_WAITING {
                    self.flush(out);
                }
            }
            Some(_) if self.must_wait(&delivery) => {
                self.since = Some(now());
                self.waiting.push_back(delivery);
            }
            _ => self.pass(delivery, out),
        }
    }

    /// Messages that have waited for too long have their turn.
    pub fn poll(&mut self, now: Instant, out: &mut Vec<Delivery>) {
        if self.since.is_some_and(|since| now.saturating_duration_since(since) >= PATIENCE) {
            self.flush(out);
        }
    }

    /// Whether a frame was waited for in vain since the last call: then the session must resync before the
    /// messages that have their turn now.
    pub fn has_given_up(&mut self) -> bool {
        std::mem::take(&mut self.given_up)
    }

    /// Whether anything waits.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether the old owner's last frame is missing before this.
    fn must_wait(&self, delivery: &Delivery) -> bool {
        match delivery {
            Delivery::Notice(Notice::Route(RouteNotice { epoch, tick, .. })) => {
                // An owner that died sends nothing more.
                let dead = self.epoch.is_of_a_life_before(*epoch);
                !mutants::has(Mutant::NoReorder)
                    && self.epoch > Epoch(0)
                    && !dead
                    && *epoch > self.epoch
                    && self.last > Tick(0)
                    && self.last.next() < *tick
            }
            _ => false,
        }
    }

    /// Messages have their turn up to the next owner that has to wait.
    fn flush_due(&mut self, out: &mut Vec<Delivery>) {
        while let Some(first) = self.waiting.pop_front() {
            if self.must_wait(&first) {
                return self.waiting.push_front(first);
            }
            self.pass(first, out);
        }
        self.since = None;
    }

    fn pass(&mut self, delivery: Delivery, out: &mut Vec<Delivery>) {
        match &delivery {
            Delivery::Frame(encoded, _) => self.last = self.last.max(encoded.batch().tick),
            // The first owner owes a frame of this tick, even if it hands the player off at once.
            Delivery::Notice(Notice::Route(RouteNotice { tick, .. })) if self.last == Tick(0) => {
                self.last = Tick(tick.0.saturating_sub(1));
            }
            _ => {}
        }
        self.epoch = self.epoch.max(epoch_of(&delivery).unwrap_or_default());
        out.push(delivery);
    }

    fn flush(&mut self, out: &mut Vec<Delivery>) {
        (self.since, self.given_up) = (None, true);
        for delivery in std::mem::take(&mut self.waiting) {
            self.pass(delivery, out);
        }
    }
}

/// The entity's epoch under the sender, where the message has it.
fn epoch_of(delivery: &Delivery) -> Option<Epoch> {
    match delivery {
        Delivery::Frame(encoded, index) => {
            encoded.batch().sessions.get(*index as usize).map(|frame| frame.epoch)
        }
        Delivery::Notice(Notice::Route(route)) => Some(route.epoch),
        Delivery::Notice(_) | Delivery::Owner(..) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::scene::messages::{FrameBatch, SessionFrame};
    use crate::wire::EncodedBatch;

    fn frame(tick: u64, epoch: u64) -> Delivery {
        let session = SessionFrame { epoch: Epoch(epoch), ..SessionFrame::default() };
        let batch =
            FrameBatch { tick: Tick(tick), sessions: vec![session], ..FrameBatch::default() };
        Delivery::Frame(Arc::new(EncodedBatch::new(batch)), 0)
    }

    fn route(tick: u64, epoch: u64, arrived: bool) -> Delivery {
        let (epoch, tick) = (Epoch(epoch), Tick(tick));
        Delivery::Notice(Notice::Route(RouteNotice {
            epoch,
            tick,
            arrived,
            ..RouteNotice::default()
        }))
    }

    /// What is delivered when these come, as text: `f10@1` is the frame of tick 10 under epoch 1.
    fn reordered(reordered: &mut ReorderBuffer, now: Instant, come: Vec<Delivery>) -> Vec<String> {
        let mut out = Vec::new();
        come.into_iter().for_each(|delivery| reordered.take(|| now, delivery, &mut out));
        reordered.poll(now, &mut out);
        texts(out)
    }

    fn texts(out: Vec<Delivery>) -> Vec<String> {
        out.iter()
            .map(|delivery| match delivery {
                Delivery::Frame(encoded, _) => {
                    let batch = encoded.batch();
                    format!("f{}@{}", batch.tick, batch.sessions[0].epoch)
                }
                Delivery::Notice(Notice::Route(route)) => format!("r@{}", route.epoch),
                Delivery::Notice(_) | Delivery::Owner(..) => "n".into(),
            })
            .collect()
    }

    #[test]
    fn a_new_owner_that_is_first_waits_for_the_last_frame_of_the_old_one() {
        let (mut t, now) = (ReorderBuffer::default(), Instant::now());
        let first = vec![route(10, 1, true), frame(10, 1), frame(11, 1)];
        assert_eq!(reordered(&mut t, now, first), ["r@1", "f10@1", "f11@1"]);
        assert_eq!(reordered(&mut t, now, vec![route(13, 2, false), frame(13, 2)]), [""; 0]);
        assert!(t.is_waiting());
        assert_eq!(reordered(&mut t, now, vec![frame(12, 1)]), ["f12@1", "r@2", "f13@2"]);
        assert_eq!(reordered(&mut t, now, vec![frame(14, 2)]), ["f14@2"]);
        assert!(!t.has_given_up());
    }

    #[test]
    fn a_player_that_is_handed_off_as_soon_as_it_has_joined_waits_for_its_first_frame() {
        let (mut t, now) = (ReorderBuffer::default(), Instant::now());
        assert_eq!(reordered(&mut t, now, vec![route(10, 1, true)]), ["r@1"]);
        assert_eq!(reordered(&mut t, now, vec![route(11, 2, false), frame(11, 2)]), [""; 0]);
        assert_eq!(reordered(&mut t, now, vec![frame(10, 1)]), ["f10@1", "r@2", "f11@2"]);
    }

    #[test]
    fn an_owner_whose_last_frame_never_comes_is_not_waited_for_for_long() {
        let (mut t, now) = (ReorderBuffer::default(), Instant::now());
        reordered(&mut t, now, vec![route(10, 1, true), frame(10, 1)]);
        assert_eq!(reordered(&mut t, now, vec![route(13, 2, false), frame(13, 2)]), [""; 0]);
        assert!(!t.has_given_up());
        assert_eq!(reordered(&mut t, now + PATIENCE, vec![]), ["r@2", "f13@2"]);
        assert!(t.has_given_up() && !t.has_given_up());
        let many = (0..100).map(|tick| frame(20 + tick, 3)).collect();
        assert_eq!(reordered(&mut t, now, vec![route(18, 3, false)]), [""; 0]);
        assert_eq!(reordered(&mut t, now, many).len(), 101);
        assert!(t.has_given_up());
    }

    #[test]
    fn messages_do_not_wait_for_an_owner_that_has_died() {
        let (mut t, now) = (ReorderBuffer::default(), Instant::now());
        reordered(&mut t, now, vec![route(10, 1, true), frame(10, 1)]);
        let life = Epoch(1).next_life(Epoch(2)).0;
        assert_eq!(reordered(&mut t, now, vec![route(40, life, false)]), [format!("r@{life}")]);
    }

    #[test]
    fn messages_in_order_wait_for_nothing() {
        let (mut t, now) = (ReorderBuffer::default(), Instant::now());
        reordered(&mut t, now, vec![route(10, 1, true), frame(10, 1)]);
        assert_eq!(
            reordered(&mut t, now, vec![route(11, 2, false), frame(11, 2)]),
            ["r@2", "f11@2"]
        );
        assert_eq!(
            reordered(&mut t, now, vec![route(12, 3, true), frame(12, 3)]),
            ["r@3", "f12@3"]
        );
    }

    #[test]
    fn two_owners_in_a_row_have_their_turns_in_order() {
        let (mut t, now) = (ReorderBuffer::default(), Instant::now());
        reordered(&mut t, now, vec![route(10, 1, true), frame(10, 1)]);
        let both = vec![route(12, 2, false), route(13, 3, false), frame(13, 3)];
        assert_eq!(reordered(&mut t, now, both), [""; 0]);
        let late = vec![frame(11, 1), frame(12, 2)];
        assert_eq!(reordered(&mut t, now, late), ["f11@1", "r@2", "f12@2", "r@3", "f13@3"]);
    }
}

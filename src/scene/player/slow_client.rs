//! What to do with a client that reads too slowly: coalesce to the latest state (the region holds),
//! then tell it everything anew (resync), then close it.

use crate::scene::messages::Input;
use crate::scene::mutants::{self, Mutant};
use crate::scene::{EntityId, SessionId, Tick};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Resync {
    #[default]
    No,
    Due,
    // Since this time of the session's clock.
    Asked(u64),
    // It comes without a request; expected since this time.
    Coming(u64),
}

/// Levels, not edges: what the region should be doing and what it was told. The difference is sent
/// when the region can be reached.
#[derive(Debug, Clone, Default)]
pub(super) struct SlowClient {
    capacity: usize,
    held_since_ms: Option<u64>,
    told_hold: bool,
    // A release that was lost on the way to a region which has handed the entity off would leave
    // the client without frames for good: it is repeated to a new region until a frame comes.
    release_unproven: bool,
    // When the last frame came, or the region was told to go on since none did.
    frame_ms: u64,
    // The tick of the last frame that was passed on; 0: none was here.
    told: Tick,
    resync: Resync,
    // The number of the last question for one, and whether it is to be asked again elsewhere.
    question: u32,
    is_asked_again: bool,
}

impl SlowClient {
    /// For a queue in which `capacity` messages may wait.
    pub(super) fn new(capacity: usize) -> SlowClient {
        SlowClient { capacity: capacity.max(1), ..SlowClient::default() }
    }

    /// Whether a frame of this tick may be passed on while `queued` messages wait. A resync says after which frame it
    /// tells everything, 0 if that is not known.
    pub(super) fn admit(
        &mut self,
        now_ms: u64,
        queued: usize,
        (tick, resync): (Tick, Option<Tick>),
    ) -> bool {
        self.release_unproven = false;
        if (queued + 1) * 2 > self.capacity {
            self.held_since_ms.get_or_insert(now_ms);
        }
        if queued >= self.capacity {
            self.resync = Resync::Due;
            return false;
        }
        let is_due = match (self.resync, resync) {
            (Resync::No, None) => true,
            // Not an answer that comes twice, or late: the client was told since what it tells again.
            (Resync::No | Resync::Coming(_), Some(after)) => after == Tick(0) || after >= self.told,
            // The answer, and no other resync: the client would miss what the lost frames have told.
            (Resync::Due | Resync::Asked(_), Some(after)) => after == self.told,
            // Without the frames that were lost this one makes no sense to the client.
            (_, None) => false,
        };
        match (is_due, self.resync) {
            (true, _) => (self.resync, self.told) = (Resync::No, tick),
            (false, Resync::No) => self.resync = Resync::Due,
            (false, _) => {}
        }
        is_due
    }

    /// A frame has come, of any owner, whether it is passed on or not.
    pub(super) fn received(&mut self, now_ms: u64) {
        self.frame_ms = now_ms;
    }

    /// A region that makes no frame for so long although it was not asked to hold may have got an old request
    /// by way of the entity's former region: it is told again to go on.
    pub(super) fn go_on_again(&mut self, now_ms: u64, after_ms: u64) {
        let silent = now_ms.saturating_sub(self.frame_ms) >= after_ms;
        if silent && self.held_since_ms.is_none() && !self.told_hold {
            self.frame_ms = now_ms;
            self.told_hold = true;
        }
    }

    /// A frame could not be passed on.
    pub(super) fn lost(&mut self) {
        self.resync = Resync::Due;
    }

    /// Frames before the next one were lost on their way to the session.
    pub(super) fn lost_before(&mut self) {
        if !mutants::has(Mutant::GapShown) {
            self.lost();
        }
    }

    /// The player is elsewhere: what the client was told before does not count.
    pub(super) fn arrived(&mut self) {
        self.told = Tick(0);
        self.lost();
    }

    /// The next frame that makes sense is a resync, which comes without a request.
    pub(super) fn expect(&mut self, now_ms: u64) {
        self.resync = Resync::Coming(now_ms);
    }

    /// Asks again for a resync that did not come within so long: the request or the answer was lost.
    pub(super) fn ask_again(&mut self, now_ms: u64, after_ms: u64) {
        if let Resync::Asked(since) | Resync::Coming(since) = self.resync
            && now_ms.saturating_sub(since) >= after_ms
        {
            self.resync = Resync::Due;
        }
    }

    /// `queued` messages wait now.
    pub(super) fn drained(&mut self, queued: usize) {
        if queued * 4 <= self.capacity {
            self.held_since_ms = None;
        }
    }

    /// For how long the client has been held.
    pub(super) fn held_for_ms(&self, now_ms: u64) -> Option<u64> {
        self.held_since_ms.map(|since| now_ms.saturating_sub(since))
    }

    /// Tells the region what it has to be told, if anything; it counts as told from now on.
    pub(super) fn flush(
        &mut self,
        now_ms: u64,
        (id, session): (EntityId, SessionId),
        mut tell: impl FnMut(Input),
    ) {
        if self.resync == Resync::Due {
            self.resync = Resync::Asked(now_ms);
            if !std::mem::take(&mut self.is_asked_again) {
                self.question = self.question.wrapping_add(1).max(1);
            }
            if !mutants::has(Mutant::NoResync) {
                tell(Input::Resync { id, session, told: self.told, question: self.question });
            }
        }
        let hold = self.held_since_ms.is_some();
        if hold != self.told_hold {
            self.told_hold = hold;
            self.release_unproven = !hold;
            tell(match hold {
                true => Input::Hold { id, session },
                false => Input::Release { id, session },
            });
        }
    }

    /// The region's mailbox was full.
    pub(super) fn undelivered(&mut self, input: &Input) {
        match input {
            Input::Hold { .. } => self.told_hold = false,
            Input::Release { .. } => self.told_hold = true,
            Input::Resync { .. } => self.resync = Resync::Due,
            _ => {}
        }
    }

    /// The entity lives in another region, which may not know what the old one was told last.
    pub(super) fn rerouted(&mut self) {
        if self.release_unproven {
            self.told_hold = true;
        } else if self.held_since_ms.is_some() {
            self.told_hold = false;
        }
        if matches!(self.resync, Resync::Asked(_)) {
            (self.resync, self.is_asked_again) = (Resync::Due, true);
        }
    }
}

//! What a region could not say to another region or to a session yet, within bounds.
//!
//! | waits | bound | when it is full |
//! |---|---|---|
//! | ghosts for a neighbour | one batch | a newer one replaces it, and the next is a full one |
//! | negotiation for a neighbour | [`OUTBOX`] messages with all below | lost and counted: players say again what stands |
//! | what sessions say again, orders of the server's logic | the same | refused and counted |
//! | handoffs, and what regions owe each other after a death or in a layout change | never lost | from half of [`OUTBOX`] on no entity is handed off there |
//! | news for a session | one of each kind for a session, [`NOTICES`] sessions | a newer one replaces it; beyond, the session counts as gone |

use std::collections::{BTreeMap, VecDeque};

use crate::actor::address::ToRegion;
use crate::scene::SessionId;
use crate::scene::messages::{Input, Notice};

/// Messages that a region's mailbox holds.
pub const MAILBOX: usize = 16_384;

/// Messages that wait for one region.
pub(super) const OUTBOX: usize = MAILBOX;

/// Sessions for which news waits.
pub(super) const NOTICES: usize = 65_536;

/// What a full queue does with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Policy {
    /// It is said anew, by regions in their next tick or by players now and then: it is lost first.
    Repeatable,
    /// A session says it again until it is answered, or it is the server's logic's: it is refused.
    Refused,
    /// It is never lost.
    Kept,
}

fn policy(input: &Input) -> Policy {
    match input {
        Input::Border(_) | Input::BorderRound(_) | Input::View(_) => Policy::Repeatable,
        Input::Handoff(_)
        | Input::Recovered(_)
        | Input::Claims(_)
        | Input::Elsewhere { .. }
        | Input::Map(_)
        | Input::BorderLost(_) => Policy::Kept,
        Input::Enter(_)
        | Input::Leave(_)
        | Input::Client { .. }
        | Input::Bonds { .. }
        | Input::Tell { .. }
        | Input::Group(_)
        | Input::Hold { .. }
        | Input::Release { .. }
        | Input::Resync { .. }
        | Input::Present(_)
        | Input::Disconnected { .. }
        | Input::Kicked { .. }
        | Input::Resume(_)
        | Input::Scene(_)
        | Input::Command(_)
        | Input::Locate(_)
        | Input::CommandResult(_) => Policy::Refused,
    }
}

/// What waits for one region.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    waiting: VecDeque<ToRegion>,
    /// How many of these are told anew.
    anew: usize,
    /// How many of the first ones outlive the owner of the region that they are for.
    lasting: usize,
}

impl Outbox {
    /// Adds a message, unless there is no room for it. How many messages were lost by that.
    pub(super) fn push(&mut self, msg: ToRegion) -> u64 {
        // Twice the same says no more than once.
        if let Input::BorderLost(of) = msg.input
            && self.waiting.iter().any(|m| matches!(m.input, Input::BorderLost(o) if o == of))
        {
            return 0;
        }
        let policy = policy(&msg.input);
        let mut lost = 0;
        if self.waiting.len() >= OUTBOX {
            if policy == Policy::Repeatable {
                return 1;
            }
            lost = self.drop_anew();
            if self.waiting.len() >= OUTBOX && policy == Policy::Refused {
                return lost + 1;
            }
        }
        self.anew += usize::from(policy == Policy::Repeatable);
        self.waiting.push_back(msg);
        lost
    }

    fn drop_anew(&mut self) -> u64 {
        if self.anew == 0 {
            return 0;
        }
        self.waiting.retain(|msg| policy(&msg.input) != Policy::Repeatable);
        std::mem::take(&mut self.anew) as u64
    }

    /// Drops ghosts that wait, since newer ones come. Whether there were any.
    pub(super) fn drop_ghosts(&mut self) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|msg| !matches!(msg.input, Input::Border(_)));
        self.anew -= before - self.waiting.len();
        self.waiting.len() < before
    }

    /// The next message to send.
    pub(super) fn pop(&mut self) -> Option<ToRegion> {
        let msg = self.waiting.pop_front()?;
        self.lasting = self.lasting.saturating_sub(1);
        self.anew -= usize::from(policy(&msg.input) == Policy::Repeatable);
        Some(msg)
    }

    /// Gives back a message that was not taken: it is the next one again.
    pub(super) fn give_back(&mut self, msg: ToRegion) {
        self.anew += usize::from(policy(&msg.input) == Policy::Repeatable);
        self.lasting = if outlives_owner(&msg.input) { self.lasting + 1 } else { 0 };
        self.waiting.push_front(msg);
    }

    /// The region's owner is gone: keeps only what outlives it. What was looked at before is not again: this is done with
    /// each message for a region that is down.
    pub(super) fn keep_lasting(&mut self) {
        let new = self.waiting.split_off(self.lasting.min(self.waiting.len()));
        self.waiting.extend(new.into_iter().filter(|msg| outlives_owner(&msg.input)));
        (self.lasting, self.anew) = (self.waiting.len(), 0);
    }

    /// Everything is lost.
    pub(super) fn clear(&mut self) {
        *self = Outbox::default();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether no entity is to be handed off there for now; `before` says whether that was so already.
    pub(super) fn is_crowded(&self, before: bool) -> bool {
        self.waiting.len() >= if before { OUTBOX / 4 } else { OUTBOX / 2 }
    }

    /// Everything, in order.
    pub(super) fn into_messages(self) -> impl Iterator<Item = ToRegion> {
        self.waiting.into_iter()
    }
}

/// Whether a message outlives the owner of the region that it is for.
pub(super) fn outlives_owner(input: &Input) -> bool {
    !matches!(
        input,
        Input::Border(_) | Input::BorderLost(_) | Input::BorderRound(_) | Input::View(_)
    )
}

/// News for sessions that could not be told yet.
#[derive(Debug, Default)]
pub(super) struct Notices(BTreeMap<SessionId, Vec<Notice>>);

impl Notices {
    /// Adds news of a session, in whose place older news of the same kind goes.
    ///
    /// # Errors
    /// Too many sessions wait for news; this one's is given back.
    pub(super) fn push(&mut self, session: SessionId, mut notice: Notice) -> Result<(), Notice> {
        if !self.0.contains_key(&session) && self.0.len() >= NOTICES {
            return Err(notice);
        }
        let waiting = self.0.entry(session).or_default();
        let kind = std::mem::discriminant(&notice);
        let last = matches!(
            notice,
            Notice::Left { .. } | Notice::Refused(_) | Notice::Replaced | Notice::OtherSubject
        );
        waiting.retain(|old| {
            if let (Notice::Route(old), Notice::Route(route)) = (old, &mut notice) {
                route.arrived |= old.arrived;
            }
            !last && std::mem::discriminant(old) != kind
        });
        waiting.push(notice);
        Ok(())
    }

    /// Takes a session's notices: another region sends newer ones. Whether the session still had to
    /// receive that its player has arrived.
    pub(super) fn take_arrival(&mut self, session: SessionId) -> bool {
        let news = self.0.remove(&session).unwrap_or_default();
        news.iter().any(|notice| matches!(notice, Notice::Route(route) if route.arrived))
    }

    /// All news, each session's in order.
    pub(super) fn take(&mut self) -> impl Iterator<Item = (SessionId, Notice)> + use<> {
        let all = std::mem::take(&mut self.0).into_iter();
        all.flat_map(|(session, news)| news.into_iter().map(move |notice| (session, notice)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::messages::{Refusal, RouteNotice};
    use crate::scene::views::{ViewMsg, ViewMsgBody};
    use crate::scene::{EntityId, Epoch, RegionId, SubjectHash};

    fn to_region(input: Input) -> ToRegion {
        ToRegion { input, client: None }
    }

    fn message(n: u64) -> ToRegion {
        let (from_region, from_epoch, say) = (RegionId(1), Epoch(1), ViewMsgBody::Yes(1));
        to_region(Input::View(ViewMsg {
            from: EntityId(n),
            from_region,
            from_epoch,
            to: EntityId(1),
            say,
        }))
    }

    fn kept(n: u64) -> ToRegion {
        let claim =
            crate::scene::messages::Claim { id: EntityId(n), epoch: Epoch(1), region: RegionId(1) };
        let (session, subject) = (SessionId(1), SubjectHash::NONE);
        to_region(Input::Elsewhere { claim, session, subject })
    }

    #[test]
    fn messages_that_are_sent_anew_give_way_to_messages_that_must_arrive_within_the_bound() {
        let mut outbox = Outbox::default();
        let lost: u64 = (0..OUTBOX as u64 + 100).map(|n| outbox.push(message(n))).sum();
        assert_eq!((outbox.waiting.len(), lost), (OUTBOX, 100));
        assert_eq!(outbox.push(to_region(Input::Leave(EntityId(5)))), OUTBOX as u64);
        assert_eq!(outbox.waiting.len(), 1);
        let leaves = (0..OUTBOX as u64 + 7).map(|n| to_region(Input::Leave(EntityId(n))));
        assert_eq!(leaves.map(|msg| outbox.push(msg)).sum::<u64>(), 8);
        assert_eq!(outbox.waiting.len(), OUTBOX);
        assert_eq!(outbox.push(message(1)), 1);
        // No message that must arrive is lost; its sender is told to stop.
        assert!(outbox.is_crowded(false));
        assert_eq!((0..9).map(|n| outbox.push(kept(n))).sum::<u64>(), 0);
        assert_eq!(outbox.waiting.len(), OUTBOX + 9);
        while outbox.waiting.len() > OUTBOX / 3 {
            outbox.pop();
        }
        assert!(outbox.is_crowded(true) && !outbox.is_crowded(false));
    }

    #[test]
    fn what_waits_for_a_region_without_an_owner_is_looked_at_once() {
        let mut outbox = Outbox::default();
        for n in 0..OUTBOX as u64 - 1 {
            outbox.push(if n % 2 == 0 { message(n) } else { to_region(Input::Leave(EntityId(n))) });
            // As the actor does with each message while the region has no owner.
            let first = outbox.pop().unwrap();
            outbox.give_back(first);
            outbox.keep_lasting();
            assert_eq!((outbox.lasting, outbox.anew), (outbox.waiting.len(), 0));
        }
        assert_eq!(outbox.waiting.len(), OUTBOX / 2 - 1);
        // Some were sent, more has come, and the next owner is gone, too.
        (0..10).for_each(|_| drop(outbox.pop()));
        (0..10).for_each(|n| _ = outbox.push(message(n)));
        outbox.push(to_region(Input::Leave(EntityId(1))));
        outbox.keep_lasting();
        assert_eq!(outbox.waiting.len(), OUTBOX / 2 - 10);
        assert!(outbox.into_messages().all(|msg| outlives_owner(&msg.input)));
    }

    #[test]
    fn a_neighbour_is_asked_for_everything_once() {
        let mut outbox = Outbox::default();
        (0..5).for_each(|_| assert_eq!(outbox.push(to_region(Input::BorderLost(RegionId(3)))), 0));
        outbox.push(to_region(Input::BorderLost(RegionId(4))));
        assert_eq!(outbox.waiting.len(), 2);
    }

    fn route(epoch: u64, arrived: bool) -> Notice {
        Notice::Route(RouteNotice { epoch: Epoch(epoch), arrived, ..RouteNotice::default() })
    }

    #[test]
    fn a_session_that_does_not_read_has_the_newest_notice_of_each_kind() {
        let (mut notices, session) = (Notices::default(), SessionId(4));
        for epoch in 1..1_000 {
            notices.push(session, route(epoch, epoch == 3)).unwrap();
            notices.push(session, Notice::Nowhere { asked: RegionId(1) }).unwrap();
        }
        let all: Vec<_> = notices.take().collect();
        let nowhere = Notice::Nowhere { asked: RegionId(1) };
        assert_eq!(all, [(session, route(999, true)), (session, nowhere)], "it has arrived once");
        notices.push(session, route(5, true)).unwrap();
        notices.push(session, Notice::Refused(Refusal::Busy)).unwrap();
        assert!(!notices.take_arrival(session), "it is refused, whatever came before");
    }

    #[test]
    fn beyond_so_many_sessions_a_notice_is_given_back() {
        let mut notices = Notices::default();
        for n in 0..NOTICES as u64 {
            notices.push(SessionId(n), Notice::Replaced).unwrap();
        }
        assert_eq!(notices.push(SessionId(u64::MAX), Notice::Replaced), Err(Notice::Replaced));
        assert_eq!(notices.push(SessionId(0), Notice::Replaced), Ok(()), "it waits already");
        assert_eq!(notices.0.len(), NOTICES);
    }
}

//! Messages of the game's logic to the clients of players that live here.
//!
//! The tick's inputs call these rules, and so does the installation of a player that arrives: a message
//! for a group goes to every region, and a player that is on its way from one to another may pass it. So
//! regions keep such messages for a while. Each region takes the messages of a sender in their order, so
//! one number for each sender says which of them a player has received, or has not received because they
//! were not for it; players take these numbers along.

use std::collections::VecDeque;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::Region;
use super::custody::Past;
use super::views::Viewer;
use crate::scene::Tick;
use crate::scene::messages::{
    Bond, GroupMessage, Handoff, Heard, LogicMessage, MAX_MESSAGE_BYTES, MessageKind, Recipients,
};
use crate::scene::mutants::{self, Mutant};

/// For how long a region keeps messages for groups, for players that arrive.
const KEPT_TICKS: u64 = 50;

/// Most messages for groups that a region keeps; the oldest ones give way.
const MAX_KEPT: usize = 1_024;

/// How far ahead of this region a sender's clock may be, milliseconds; beyond, it counts as so far.
const AHEAD_MS: u64 = 10_000;

/// Messages for groups that came of late.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct GroupMessages {
    /// The messages, the oldest first.
    kept: VecDeque<(Tick, GroupMessage)>,
    /// Which have come.
    heard: Heard,
}

impl GroupMessages {
    /// Keeps a message; false if it has come before.
    fn keep(&mut self, (now, now_ms): (Tick, u64), message: &GroupMessage) -> bool {
        let sent_ms = message.sent_ms.min(now_ms.saturating_add(AHEAD_MS));
        if !self.heard.note(message.id, sent_ms) {
            return false;
        }
        let old = |(at, _): &(Tick, _)| at.0.saturating_add(KEPT_TICKS) <= now.0;
        while self.kept.len() >= MAX_KEPT || self.kept.front().is_some_and(old) {
            self.kept.pop_front();
        }
        self.kept.push_back((now, message.clone()));
        true
    }
}

impl Region {
    /// A message for the player at `slot`.
    pub(super) fn tell_player(&mut self, slot: u32, payload: Bytes) {
        if payload.len() > MAX_MESSAGE_BYTES {
            return self.refuse_message(payload.len());
        }
        if let Some(viewer) = self.views.of_mut(&self.entities, slot) {
            viewer.mailbox.put(LogicMessage { kind: MessageKind::Tell, payload });
        }
    }

    /// A message for a group, some of whose members may live here.
    pub(super) fn tell_group(&mut self, message: GroupMessage) {
        if message.payload.len() > MAX_MESSAGE_BYTES {
            return self.refuse_message(message.payload.len());
        }
        let now = (self.clock.tick(), self.log_ms());
        if !self.group_messages.keep(now, &message) {
            return;
        }
        let own = self.own_bond(&message.to);
        for ix in 0..self.views.viewers().len() {
            let viewer = &self.views.viewers()[ix];
            if self.is_recipient(viewer, &message.to, own) {
                self.views.viewers_mut()[ix].mailbox.put_once(&message);
            }
        }
    }

    /// Says in a handoff which messages for groups a player has received, or was not to receive. Where the region
    /// goes on, too, it knows its part itself.
    pub(super) fn describe_heard(&self, viewer: &Viewer, past: Past, handoff: &mut Handoff) {
        handoff.heard_since_ms = viewer.mailbox.since_ms;
        match past {
            Past::ToTell => {
                handoff.heard = self.group_messages.heard.clone();
                handoff.heard.add(viewer.mailbox.heard());
            }
            Past::AsItIs => handoff.heard = viewer.mailbox.heard().clone(),
            Past::Left => {}
        }
    }

    fn refuse_message(&self, len: usize) {
        crate::log_limited!(at self.log_ms(); warn, region = %self.identity.id(), len, most = MAX_MESSAGE_BYTES, "a message of the server's logic is too long");
    }

    /// The bond of those for whom a message is, if the scene has that kind.
    fn own_bond(&self, to: &Recipients) -> Option<Bond> {
        match to {
            Recipients::Bond(bond) => self.identity.scene().spec.bonds.bond(bond),
            Recipients::Plane(..) | Recipients::Scene(_) => None,
        }
    }

    /// Whether a player is one of those for whom a message is; `own`: of [`Region::own_bond`].
    fn is_recipient(&self, viewer: &Viewer, to: &Recipients, own: Option<Bond>) -> bool {
        let (record, scene) = (self.entities.record(viewer.slot), self.identity.scene().id);
        match to {
            Recipients::Bond(_) if mutants::has(Mutant::ToldToAll) => true,
            Recipients::Bond(bond) => match own {
                Some(own) => record.ties.bonds.contains(&own),
                None => viewer.other_bonds.named.contains(bond),
            },
            Recipients::Plane(of, plane) => *of == scene && record.plane == *plane,
            Recipients::Scene(of) => *of == scene,
        }
    }

    /// The player at `slot` has arrived: it is given the messages that it has missed on its way. If it has
    /// teleported, those to its present place were not for it.
    pub(super) fn tell_missed(&mut self, slot: u32, handoff: &Handoff) {
        if mutants::has(Mutant::MissedUntold) {
            return;
        }
        let Some(viewer) = self.views.of(&self.entities, slot) else { return };
        let is_for_it = |to: &Recipients| {
            let announced = matches!(to, Recipients::Plane(..) | Recipients::Scene(_));
            self.is_recipient(viewer, to, self.own_bond(to)) && !(announced && handoff.teleported)
        };
        let kept = self.group_messages.kept.iter().enumerate();
        let missed = kept.filter(|(_, (_, message))| is_for_it(&message.to));
        let missed: Vec<usize> = missed.map(|(ix, _)| ix).collect();
        let Region { views, group_messages, entities, .. } = self;
        let viewer: Option<&mut Viewer> = views.of_mut(entities, slot);
        if let Some(viewer) = viewer {
            for ix in missed {
                viewer.mailbox.put_once(&group_messages.kept[ix].1);
            }
            viewer.mailbox.forget_known_to(&group_messages.heard);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::messages::{Input, MessageId};
    use crate::scene::region::fixtures;
    use crate::scene::region::mailbox::Mailbox;
    use crate::scene::{EntityId, Pos, SceneId, SceneSpec};

    #[test]
    fn a_player_takes_few_senders_along_and_is_told_nothing_again() {
        let mut region = fixtures::region(SceneSpec::default(), 0);
        fixtures::enter(&mut region, 1, Pos::ground(100, 100));
        region.tick(Tick(1), &mut Vec::new());
        // Processes that each live for a second.
        let message = |sender, sent_ms| GroupMessage {
            id: MessageId { sender, number: 0 },
            to: Recipients::Scene(SceneId(0)),
            payload: Bytes::from_static(b"hear"),
            sent_ms,
        };
        let told: Vec<_> = (1..1_000).map(|n| message(n, 1_000 * n)).collect();
        for (message, n) in told.iter().zip(1..) {
            region.handle(Input::Group(Box::new(message.clone())), &mut Vec::new());
            region.tick(Tick(10 * n), &mut Vec::new());
        }
        let slot = region.entities.real_slot(EntityId(1)).unwrap();
        let handoff = region.describe(slot, Past::ToTell);
        assert!(handoff.heard.senders() <= 64, "{} senders", handoff.heard.senders());
        assert_eq!(region.describe(slot, Past::Left).heard.senders(), 0);
        let mut there = Mailbox::default().arrived(&handoff);
        let waits = there.waiting.len();
        told.iter().for_each(|message| there.put_once(message));
        assert_eq!(there.waiting.len(), waits, "nothing is told again");
        there.put_once(&message(2_000, 1_000_000));
        assert_eq!(there.waiting.len(), waits + 1);
    }
}

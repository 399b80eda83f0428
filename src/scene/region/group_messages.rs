//! Messages of the game's logic to the clients of players that live here.
//!
//! The tick's inputs call these rules, and so does the installation of a player that arrives: a message
//! for a group goes to every region, and a player that is on its way from one to another may pass it. So
//! regions keep such messages for a while. Each region takes the messages of a sender in their order, so
//! one number for each sender says which of them a player has received, or has not received because they
//! were not for it; players take these numbers along.

use std::collections::VecDeque;

use bytes::Bytes;

use super::Region;
use super::mailbox::Heard;
use super::views::Viewer;
use crate::scene::Tick;
use crate::scene::messages::{
    GroupMessage, Handoff, MAX_MESSAGE_BYTES, MessageId, MessageKind, Recipients, Told,
};
use crate::scene::mutants::{self, Mutant};

/// For how long a region keeps messages for groups, for players that arrive.
const KEPT_TICKS: u64 = 50;

/// Most messages for groups that a region keeps; the oldest ones give way.
const MAX_KEPT: usize = 1_024;

/// Messages for groups that came of late.
#[derive(Debug, Default)]
pub struct GroupMessages {
    /// The messages, the oldest first.
    kept: VecDeque<(Tick, GroupMessage)>,
    /// The last one of each sender.
    heard: Heard,
}

impl GroupMessages {
    /// Keeps a message; false if it has come before.
    fn keep(&mut self, now: Tick, message: &GroupMessage) -> bool {
        if !self.heard.note(message.id) {
            return false;
        }
        let old = |(at, _): &(Tick, _)| at.0.saturating_add(KEPT_TICKS) <= now.0;
        while self.kept.len() >= MAX_KEPT || self.kept.front().is_some_and(old) {
            self.kept.pop_front();
        }
        self.kept.push_back((now, message.clone()));
        true
    }

    /// What is kept, for a snapshot.
    pub fn save(&self) -> SavedGroupMessages {
        let kept = self.kept.iter().cloned().collect();
        (kept, self.heard.ids().collect())
    }

    /// What a snapshot has kept.
    pub fn restored((kept, heard): SavedGroupMessages) -> GroupMessages {
        GroupMessages { kept: kept.into(), heard: heard.into_iter().collect() }
    }
}

/// The messages of [`GroupMessages`], and the last ones of their senders.
pub type SavedGroupMessages = (Vec<(Tick, GroupMessage)>, Vec<MessageId>);

impl Region {
    /// A message for the player at `slot`.
    pub(super) fn tell_player(&mut self, slot: u32, payload: Bytes) {
        if payload.len() > MAX_MESSAGE_BYTES {
            return self.refuse_message(payload.len());
        }
        if let Some(viewer) = self.views.of_mut(&self.entities, slot) {
            viewer.mailbox.put(Told { kind: MessageKind::Tell, payload });
        }
    }

    /// A message for a group, some of whose members may live here.
    pub(super) fn tell_group(&mut self, message: GroupMessage) {
        if message.payload.len() > MAX_MESSAGE_BYTES {
            return self.refuse_message(message.payload.len());
        }
        if !self.group_messages.keep(self.clock.tick(), &message) {
            return;
        }
        for ix in 0..self.views.viewers().len() {
            let slot = self.views.viewers()[ix].slot;
            if self.is_recipient(slot, message.to) {
                self.views.viewers_mut()[ix].mailbox.put_once(&message);
            }
        }
    }

    /// Says in a handoff which messages for groups a player has received, or was not to receive.
    pub(super) fn describe_heard(&self, viewer: &Viewer, handoff: &mut Handoff) {
        let mut all = self.group_messages.heard.clone();
        for id in viewer.mailbox.heard().ids() {
            all.note(id);
        }
        (handoff.heard, handoff.heard_since_ms) = (all.ids().collect(), viewer.mailbox.since_ms);
    }

    fn refuse_message(&self, len: usize) {
        crate::log_limited!(at self.log_ms(); warn, region = %self.identity.id(), len, most = MAX_MESSAGE_BYTES, "a message of the server's logic is too long");
    }

    /// Whether the player at `slot` is one of those for whom a message is.
    fn is_recipient(&self, slot: u32, to: Recipients) -> bool {
        let (record, scene) = (self.entities.record(slot), self.identity.scene().id);
        match to {
            Recipients::Bond(_) if mutants::has(Mutant::ToldToAll) => true,
            Recipients::Bond(bond) => record.ties.bonds.contains(&bond),
            Recipients::Plane(of, plane) => of == scene && record.plane == plane,
            Recipients::Scene(of) => of == scene,
        }
    }

    /// The player at `slot` has arrived: it is given the messages that it has missed on its way. If it has
    /// teleported, those to its present place were not for it.
    pub(super) fn tell_missed(&mut self, slot: u32, handoff: &Handoff) {
        if mutants::has(Mutant::MissedUntold) {
            return;
        }
        let is_for_it = |to| {
            let announced = matches!(to, Recipients::Plane(..) | Recipients::Scene(_));
            self.is_recipient(slot, to) && !(announced && handoff.teleported)
        };
        let kept = self.group_messages.kept.iter().enumerate();
        let missed = kept.filter(|(_, (_, message))| is_for_it(message.to));
        let missed: Vec<usize> = missed.map(|(ix, _)| ix).collect();
        let Region { views, group_messages, entities, .. } = self;
        let viewer: Option<&mut Viewer> = views.of_mut(entities, slot);
        if let Some(viewer) = viewer {
            for ix in missed {
                viewer.mailbox.put_once(&group_messages.kept[ix].1);
            }
        }
    }
}

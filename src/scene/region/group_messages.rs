//! Messages of the game's logic to the clients of players that live here.
//!
//! The tick's inputs call these rules, and so does the installation of a player that arrives: a message
//! for a group goes to every region, and a player that is on its way from one to another may pass it. So
//! regions keep such messages for a while, and players take along which ones they have received.

use std::collections::VecDeque;

use bytes::Bytes;

use super::Region;
use super::views::Viewer;
use crate::scene::Tick;
use crate::scene::messages::{
    GroupMessage, MAX_MESSAGE_BYTES, MessageId, MessageKind, Recipients, Told,
};

/// For how long a region keeps messages for groups, for players that arrive.
const KEPT_TICKS: u64 = 50;

/// Most messages for groups that a region keeps; the oldest ones give way.
const MAX_KEPT: usize = 1_024;

/// Messages for groups that came of late, the oldest first.
#[derive(Debug, Default)]
pub struct GroupMessages(VecDeque<(Tick, GroupMessage)>);

impl GroupMessages {
    fn keep(&mut self, now: Tick, message: GroupMessage) {
        let old = |(at, _): &(Tick, _)| at.0.saturating_add(KEPT_TICKS) <= now.0;
        while self.0.len() >= MAX_KEPT || self.0.front().is_some_and(old) {
            self.0.pop_front();
        }
        self.0.push_back((now, message));
    }

    /// What is kept, for a snapshot.
    pub fn save(&self) -> Vec<(Tick, GroupMessage)> {
        self.0.iter().cloned().collect()
    }

    /// What a snapshot has kept.
    pub fn restored(kept: Vec<(Tick, GroupMessage)>) -> GroupMessages {
        GroupMessages(kept.into())
    }

    fn knows(&self, id: MessageId) -> bool {
        self.0.iter().any(|(_, kept)| kept.id == id)
    }
}

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
        if self.group_messages.knows(message.id) {
            return;
        }
        for ix in 0..self.views.viewers().len() {
            let slot = self.views.viewers()[ix].slot;
            if self.is_recipient(slot, message.to) {
                self.views.viewers_mut()[ix].mailbox.put_once(&message);
            }
        }
        self.group_messages.keep(self.clock.tick(), message);
    }

    fn refuse_message(&self, len: usize) {
        crate::log_limited!(at self.log_ms(); warn, region = %self.identity.id(), len, most = MAX_MESSAGE_BYTES, "a message of the server's logic is too long");
    }

    /// Whether the player at `slot` is one of those for whom a message is.
    fn is_recipient(&self, slot: u32, to: Recipients) -> bool {
        let (record, scene) = (self.entities.record(slot), self.identity.scene().id);
        match to {
            Recipients::Bond(bond) => record.ties.bonds.contains(&bond),
            Recipients::Plane(of, plane) => of == scene && record.plane == plane,
            Recipients::Scene(of) => of == scene,
        }
    }

    /// The player at `slot` has arrived: it is given the messages that it has missed on its way. If it has
    /// teleported, those to its present place were not for it.
    pub(super) fn tell_missed(&mut self, slot: u32, teleported: bool) {
        let is_for_it = |to| {
            let announced = matches!(to, Recipients::Plane(..) | Recipients::Scene(_));
            self.is_recipient(slot, to) && !(announced && teleported)
        };
        let kept = self.group_messages.0.iter().enumerate();
        let missed = kept.filter(|(_, (_, message))| is_for_it(message.to));
        let missed: Vec<usize> = missed.map(|(ix, _)| ix).collect();
        let Region { views, group_messages, entities, .. } = self;
        let viewer: Option<&mut Viewer> = views.of_mut(entities, slot);
        if let Some(viewer) = viewer {
            for ix in missed {
                viewer.mailbox.put_once(&group_messages.0[ix].1);
            }
        }
    }
}

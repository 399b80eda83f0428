//! Messages of the game's logic: each client is told those that are for it, each once, those of one sender in order; and
//! all of them, unless a fault is known to lose some (`docs/properties.md`).
//!
//! Every message is judged a while after it was sent. It may be missing where its sender was told that it was refused,
//! where a region has died since, where messages were cut off, or where the client has missed frames, which a resync
//! shows. A message to a group is also not for players that have just joined, and one to a place not for those that have
//! just teleported.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use purview::scene::messages::{EnterCause, NamedBond, Recipients};
use purview::scene::{EntityId, Region};
use purview::wire::Frame;

use super::quiescence::FRESH;
use super::{Inner, Invariant, Judge, STARTS};
use crate::sim::Logic;
use crate::sim::messages::{Herald, Sender, To};

const DUE: Duration = Duration::from_secs(10);

/// A disturbance of a client that ended less than this before a message may still cost the message.
const BEFORE: Duration = Duration::from_secs(3);

/// For how long after a player has changed regions messages to it may go different ways.
const DETOUR: Duration = Duration::from_secs(1);

/// The name of a message, and whether it is for a group. Messages to players and to groups go different ways.
type Name = (Sender, bool, u64);

#[derive(Debug)]
struct Sent {
    at: Duration,
    herald: Herald,
    command: u64,
    due: Vec<EntityId>,
}

#[derive(Debug, Default)]
struct Heard {
    all: BTreeSet<Name>,
    /// The number of the last message, by its sender and way.
    last: BTreeMap<(Sender, bool), u64>,
    /// When the client has joined or has missed frames last.
    disturbed: Duration,
    /// When it has joined or teleported last.
    moved: Duration,
}

#[derive(Debug, Default)]
pub(super) struct Messages {
    sent: VecDeque<Sent>,
    heard: BTreeMap<EntityId, Heard>,
    refused: BTreeSet<(Sender, u64)>,
    /// The bond of each player, and whether it has been given that.
    bonds: BTreeMap<EntityId, (NamedBond, bool)>,
    /// Players whose bonds any region is to set by their subjects.
    to_bind: VecDeque<(EntityId, String)>,
    /// When a region has gone on from a checkpoint or from nothing last.
    died: Duration,
}

impl Messages {
    /// Whether a player has this bond, or is about to be given it.
    fn may_have(&self, id: &EntityId, bond: &NamedBond) -> bool {
        self.bonds.get(id).is_some_and(|(its, _)| its == bond)
    }

    /// Whether two players have been given the same bond.
    pub(super) fn share_a_bond(&self, one: &EntityId, other: &EntityId) -> bool {
        self.bonds.get(one).is_some_and(|(bond, has)| *has && self.is_bonded(other, bond))
    }

    fn is_bonded(&self, id: &EntityId, bond: &NamedBond) -> bool {
        self.bonds.get(id).is_some_and(|(its, has)| its == bond && *has)
    }
}

fn is_group(herald: &Herald) -> bool {
    matches!(herald.to, To::Group(_))
}

fn name(herald: &Herald) -> Name {
    (herald.sender, is_group(herald), herald.number)
}

impl Judge {
    pub fn players(&self) -> Vec<EntityId> {
        let (now, inner) = (self.journal.now(), self.inner());
        let acts = inner.acting.iter().filter(|(_, a)| now.saturating_sub(a.at) <= FRESH);
        acts.map(|(id, _)| *id).filter(|id| !inner.npcs.contains(id)).collect()
    }

    /// A region's logic sends a message by a command.
    pub fn message_sent(&self, region: &Region, herald: Herald, command: u64) {
        let (at, mut inner) = (self.journal.now(), self.inner());
        let owner = inner.regions.get(&region.id());
        let outdated = owner.is_some_and(|owner| region.epoch() < owner.epoch);
        // Two processes may act for the region, or processes may not have found each other yet.
        let unsure = outdated || !inner.double_granted.is_empty() || at < STARTS;
        let due = if unsure { Vec::new() } else { inner.recipients(at, &herald.to) };
        inner.messages.sent.push_back(Sent { at, herald, command, due });
    }

    /// A player has come to a region, whose logic is to give it this bond unless it has that.
    pub fn comes(
        &self,
        region: &Region,
        (id, bond): (EntityId, &NamedBond),
        has: bool,
        cause: Option<EnterCause>,
    ) {
        let had = {
            let bonds = &mut self.inner().messages.bonds;
            let known = bonds.entry(id).or_insert_with(|| (bond.clone(), has));
            std::mem::replace(&mut known.1, has)
        };
        let alive = matches!(cause, Some(EnterCause::HandedOff(..) | EnterCause::Teleported(..)));
        if had && !has && alive {
            let text = format!("{id} has come to region {} without its bond", region.id());
            self.violated(Invariant::BondsLast, vec![id], text);
        }
    }

    /// Any region is to give a player its bond, by its subject.
    pub fn bind_by_subject(&self, id: EntityId, subject: &str) {
        self.inner().messages.to_bind.push_back((id, subject.to_owned()));
    }

    /// The next player of [`Judge::bind_by_subject`].
    pub fn next_to_bind(&self) -> Option<(EntityId, String)> {
        self.inner().messages.to_bind.pop_front()
    }

    /// A player has been given its bond. By its subject it has it for good, where the stores keep their promises.
    pub fn is_bound(&self, id: EntityId, by_subject: bool) {
        let mut inner = self.inner();
        let counts = !by_subject || inner.stores_keep_promises();
        if let Some((_, has)) = inner.messages.bonds.get_mut(&id).filter(|_| counts) {
            *has = true;
        }
    }

    pub fn message_refused(&self, sender: Sender, command: u64) {
        self.inner().messages.refused.insert((sender, command));
    }

    pub(super) fn messages_told(&self, id: EntityId, frame: &Frame) {
        // The rules of `hunt` tell players that they fell.
        if self.logic == Some(Logic::Hunt) {
            return;
        }
        let now = self.journal.now();
        for message in &frame.messages {
            let Some(herald) = Herald::read(&message.payload) else {
                let text = format!("{id} was told {:?}, which no logic has sent", message.payload);
                return self.violated(Invariant::ToldOnce, vec![id], text);
            };
            let wrong = self.inner().hears(now, id, &herald);
            if let Err((invariant, text)) = wrong {
                let text = format!("{id} was told {herald:?}, {text}");
                return self.violated(invariant, vec![id], text);
            }
        }
        if frame.resync {
            self.inner().messages.heard.entry(id).or_default().disturbed = now;
        }
    }

    /// A client has joined, has lost its connection, or has it again.
    pub(super) fn messages_disturbed(&self, id: EntityId) {
        let (now, mut inner) = (self.journal.now(), self.inner());
        let heard = inner.messages.heard.entry(id).or_default();
        (heard.disturbed, heard.moved) = (now, now);
    }

    pub(super) fn messages_teleport(&self, id: EntityId) {
        let (now, mut inner) = (self.journal.now(), self.inner());
        inner.messages.heard.entry(id).or_default().moved = now;
    }

    /// A region acts, for the first time under its epoch if `is_new`.
    pub(super) fn messages_due(&self, region: &Region, is_new: bool) {
        let now = self.journal.now();
        if is_new && region.lost_since().is_some() {
            self.inner().messages.died = now;
        }
        loop {
            let mut inner = self.inner();
            let front = inner.messages.sent.front();
            if front.is_none_or(|sent| now.saturating_sub(sent.at) < DUE) {
                return;
            }
            let Some(sent) = inner.messages.sent.pop_front() else { return };
            let missed = inner.missed(&sent);
            drop(inner);
            if let Some(id) = missed {
                let text = format!("{id} was not told {:?} of {:?}", sent.herald, sent.at);
                self.violated(Invariant::ToldAll, vec![id], text);
            }
        }
    }
}

impl Inner {
    /// Notes that a client is told a message; what is wrong with that.
    fn hears(
        &mut self,
        now: Duration,
        id: EntityId,
        herald: &Herald,
    ) -> Result<(), (Invariant, String)> {
        let is_for = match &herald.to {
            To::Player(player) => *player == id,
            To::Group(Recipients::Bond(bond)) => self.messages.may_have(&id, bond),
            To::Group(_) => true,
        };
        if !is_for {
            return Err((Invariant::ToldOnce, "which is for others".into()));
        }
        let heard = self.messages.heard.entry(id).or_default();
        if !heard.all.insert(name(herald)) {
            return Err((Invariant::ToldOnce, "for the second time".into()));
        }
        let before = heard.last.insert((herald.sender, is_group(herald)), herald.number);
        let walked = self.moved.get(&id).is_some_and(|at| now.saturating_sub(*at) < DETOUR);
        let overtakes = !is_group(herald) && (walked || now.saturating_sub(DUE) < self.cut);
        match before.filter(|before| *before > herald.number && !overtakes) {
            Some(before) => Err((Invariant::ToldOrder, format!("after message {before}"))),
            None => Ok(()),
        }
    }

    /// The clients that are to be told, if nothing happens.
    fn recipients(&self, at: Duration, to: &To) -> Vec<EntityId> {
        let acts = |id: &EntityId| self.acting.get(id).filter(|a| at.saturating_sub(a.at) <= FRESH);
        let all = self.clients.keys().filter_map(|id| Some((*id, acts(id)?)));
        let is_for = |(id, acting): &(EntityId, &super::Acting)| match to {
            To::Player(player) => player == id,
            To::Group(Recipients::Bond(bond)) => self.messages.is_bonded(id, bond),
            To::Group(Recipients::Plane(scene, plane)) => {
                (acting.scene, acting.player.plane) == (*scene, *plane)
            }
            To::Group(Recipients::Scene(scene)) => acting.scene == *scene,
        };
        all.filter(is_for).map(|(id, _)| id).collect()
    }

    /// A client that a message has not reached, and no fault explains it.
    fn missed(&self, sent: &Sent) -> Option<EntityId> {
        let since = sent.at.saturating_sub(BEFORE);
        let messages = &self.messages;
        let excused = messages.refused.contains(&(sent.herald.sender, sent.command))
            || messages.died.max(self.cut).max(STARTS) > since;
        if excused {
            return None;
        }
        let is_place =
            matches!(sent.herald.to, To::Group(Recipients::Plane(..) | Recipients::Scene(_)));
        let owed = |id: &&EntityId| {
            let quiet = messages.heard.get(id).is_some_and(|heard| {
                let moved = if is_place { heard.moved } else { Duration::ZERO };
                heard.disturbed.max(moved) < since
            });
            let client = self.clients.get(id).is_some_and(|client| !client.is_disconnected);
            quiet && client
        };
        let has = |id: &EntityId| messages.heard[id].all.contains(&name(&sent.herald));
        sent.due.iter().filter(owed).find(|id| !has(id)).copied()
    }
}

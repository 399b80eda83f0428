//! The sessions of the players that live in a region, and where each is reached.
//!
//! A region learns of a session with its player, and forgets it when the player leaves or is handed
//! off.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::actor::address::SessionAddress;
use crate::scene::{EntityId, SessionId};

/// Where a player's session is reached.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) entity: EntityId,
    pub(super) to: SessionAddress,
}

/// The sessions of a region.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    clients: FxHashMap<SessionId, Client>,
    /// Sessions that have asked for a player that is not known here, and were told so. They may have asked
    /// by way of other regions, too.
    answered: BTreeSet<SessionId>,
    /// Sessions whose frame was lost in this delivery: if their entity is handed off in it too, the
    /// new owner must resync them before it learns of them in any other way.
    lost: BTreeSet<SessionId>,
}

impl Sessions {
    /// Where a session is reached.
    pub(super) fn get(&self, session: SessionId) -> Option<&Client> {
        self.clients.get(&session)
    }

    /// A player's session is reached here from now on.
    pub(super) fn insert(&mut self, session: SessionId, entity: EntityId, to: SessionAddress) {
        self.clients.insert(session, Client { entity, to });
    }

    /// A player comes to live here, with its session.
    pub(super) fn enter(&mut self, session: SessionId, entity: EntityId, to: SessionAddress) {
        self.answered.remove(&session);
        self.insert(session, entity, to);
    }

    /// A session has no player here any more.
    pub(super) fn remove(&mut self, session: SessionId) -> Option<SessionAddress> {
        self.clients.remove(&session).map(|client| client.to)
    }

    /// Sessions that are gone, with their players.
    pub(super) fn gone(&self) -> Vec<(SessionId, EntityId)> {
        let gone = self.clients.iter().filter(|(s, c)| !c.to.connected(**s));
        gone.map(|(session, client)| (*session, client.entity)).collect()
    }

    /// A session was told that its player is not known here.
    pub(super) fn was_told_nowhere(&mut self, session: SessionId) {
        self.answered.insert(session);
    }

    /// Forgets sessions that were told that their player is not known here, unless it `lives` here by now.
    pub(super) fn forget_answered(&mut self, lives: impl Fn(EntityId) -> bool) {
        for session in std::mem::take(&mut self.answered) {
            if !self.clients.get(&session).is_some_and(|client| lives(client.entity)) {
                self.clients.remove(&session);
            }
        }
    }

    /// A session's frame was lost in this delivery.
    pub(super) fn frame_lost(&mut self, session: SessionId) {
        self.lost.insert(session);
    }

    /// Whether a session's frame was lost in this delivery.
    pub(super) fn has_lost_frame(&self, session: SessionId) -> bool {
        self.lost.contains(&session)
    }

    /// The delivery is over.
    pub(super) fn end_delivery(&mut self) {
        self.lost.clear();
    }

    /// Gives all sessions away, with their players.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = (SessionId, EntityId)> + use<> {
        std::mem::take(&mut self.clients).into_iter().map(|(session, c)| (session, c.entity))
    }
}

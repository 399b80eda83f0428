//! A player that has left for good is kept until its last state is stored.
//!
//! ```text
//!   removed ----> Effect::Depart ----> departing ----> Region::departed: stored ----> Notice::Left
//!                      ^                   |
//!                      '-- the region goes on from a snapshot (moved, or died)
//! ```
//!
//! Where no store keeps players, a player has left at once. A question about a departing player has no
//! answer until the state is stored: the player neither lives here nor is gone.

use std::collections::BTreeMap;

use crate::scene::messages::{Departed, Effect};
use crate::scene::region::Region;
use crate::scene::{EntityId, SessionId};

/// Players that have left and whose last state is not stored yet.
#[derive(Debug, Default)]
pub struct Departing {
    /// Whether players are stored at all.
    stores: bool,
    players: BTreeMap<EntityId, Departed>,
}

impl Departing {
    /// Whether a player has left and is not stored yet.
    pub fn has(&self, id: EntityId) -> bool {
        self.players.contains_key(&id)
    }

    /// All of them, in order.
    pub fn all(&self) -> impl Iterator<Item = &Departed> {
        self.players.values()
    }
}

impl Region {
    /// From now on the state of a player that leaves is stored before its session is told.
    pub fn store_players(&mut self) {
        self.custody.departing.stores = true;
    }

    /// A player has left for good.
    pub(in crate::scene::region) fn depart(&mut self, departed: Departed, fx: &mut Vec<Effect>) {
        if self.custody.departing.stores {
            fx.push(Effect::Depart(Box::new(departed.clone())));
            self.custody.departing.players.insert(departed.id, departed);
        } else {
            fx.extend(departed.notice().map(|(to, notice)| Effect::Notice(to, notice)));
        }
    }

    /// The last state of a player that has left is stored.
    pub fn departed(&mut self, id: EntityId, fx: &mut Vec<Effect>) {
        let departed = self.custody.departing.players.remove(&id);
        let notice = departed.and_then(Departed::notice);
        fx.extend(notice.map(|(to, notice)| Effect::Notice(to, notice)));
    }

    /// The region goes on from a snapshot: what its owner before was to store may be lost.
    pub(in crate::scene::region) fn depart_again(
        &mut self,
        departing: Vec<Departed>,
        fx: &mut Vec<Effect>,
    ) {
        let again = |departed: &Departed| Effect::Depart(Box::new(departed.clone()));
        fx.extend(departing.iter().map(again));
        self.custody.departing.players = departing.into_iter().map(|d| (d.id, d)).collect();
    }

    /// Sessions that are still to be told that their players have left.
    pub(in crate::scene::region) fn departing_sessions(
        &self,
    ) -> impl Iterator<Item = (EntityId, SessionId)> {
        self.custody.departing.all().filter_map(|d| Some((d.id, d.session?)))
    }
}

//! What the judge knows of a client and of the client's view.

use std::collections::BTreeMap;
use std::time::Duration;

use purview::scene::{EntityId, Epoch, Pos, Seq};
use rustc_hash::FxHashMap;

use super::rules::PlacedAt;
use super::trails::Mark;
use super::{Judge, LATE};

/// An action that a client was shown: its number, the time, and the tick.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShownAct {
    pub number: u64,
    pub at: Duration,
    pub of: Duration,
}

/// What a client was told of another entity, which may have left its view since.
#[derive(Debug, Clone, Default)]
pub(super) struct Told {
    /// The last action, and since when it may have received all of them.
    pub act: Option<ShownAct>,
    pub since: Duration,
    /// The last position, on the entity's trail.
    pub mark: Mark,
}

#[derive(Debug, Clone, Default)]
pub struct Client {
    /// Its number among all clients: several may have an entity, one after the other.
    pub life: u64,
    pub cap: usize,
    pub joined_at: Duration,
    pub said: Seq,
    pub place: PlacedAt,
    pub acked: Seq,
    pub teleported_at: Duration,
    /// The last teleport among its inputs.
    pub teleported_by: Seq,
    pub is_disconnected: bool,
    /// The players in its view, and where it shows them.
    pub(super) shown: BTreeMap<EntityId, Pos>,
    pub(super) told: FxHashMap<EntityId, Told>,
    /// Near players that it was not shown, and since when.
    pub(super) unseen: Vec<(EntityId, Duration)>,
    /// The epoch of its last frame; none since its connection was resumed.
    last_epoch: Option<Epoch>,
}

impl Client {
    /// A client that has joined now. All inputs up to `acked` are applied: a login before has sent them.
    pub(super) fn new(
        (life, cap): (u64, usize),
        (place, now): (PlacedAt, Duration),
        acked: Seq,
    ) -> Client {
        let (joined_at, teleported_at, said) = (now, now, acked);
        Client { life, cap, joined_at, said, place, acked, teleported_at, ..Client::default() }
    }

    /// Notes a frame. Returns whether the client misses no action of what stays in view since the frame before: it has
    /// kept its connection, and its player's region has not died.
    pub(super) fn continues_at(&mut self, epoch: Epoch) -> bool {
        let before = self.last_epoch.replace(epoch);
        before.is_some_and(|before| before.lives() == epoch.lives())
    }
}

impl Judge {
    /// A client has joined, and its view list has this cap: the number of its life.
    pub fn joined(&self, (id, cap): (EntityId, usize), place: PlacedAt, acked: Seq) -> u64 {
        let now = self.journal.now();
        self.messages_disturbed(id);
        let mut inner = self.inner();
        inner.lives += 1;
        let life = inner.lives;
        inner.clients.insert(id, Client::new((life, cap), (place, now), acked));
        life
    }

    /// Whether a client's life is the present one of its entity.
    pub fn is_current(&self, id: EntityId, life: u64) -> bool {
        self.inner().clients.get(&id).is_some_and(|client| client.life == life)
    }

    /// Whether an entity has recovered from an older state within this time, or is about to: its region has a new owner.
    pub fn is_recovered(&self, id: EntityId, within: Duration) -> bool {
        let (inner, now) = (self.inner(), self.journal.now());
        inner.is_to_recover(id)
            || inner.recovered.get(&id).is_some_and(|at| now.saturating_sub(*at) <= within + LATE)
    }

    pub fn placed(&self, id: EntityId, place: PlacedAt) {
        if let Some(client) = self.inner().clients.get_mut(&id) {
            client.place = place;
        }
    }

    /// A client was told that the rules have put its player elsewhere. Its view may change at once.
    pub fn put_by_rules(&self, id: EntityId, place: PlacedAt) {
        self.messages_teleport(id);
        let now = self.journal.now();
        if let Some(client) = self.inner().clients.get_mut(&id) {
            (client.place, client.teleported_at) = (place, now);
        }
    }

    /// A client is about to leave. Others may be told before it is gone.
    pub fn leaves(&self, id: EntityId) {
        let now = self.journal.now();
        if let Some(client) = self.inner().clients.get_mut(&id) {
            client.teleported_at = now;
        }
    }

    pub fn gone(&self, id: EntityId, life: u64) {
        if self.is_current(id, life) {
            self.inner().clients.remove(&id);
        }
    }

    /// A client has lost its connection, or has it again.
    pub fn set_disconnected(&self, id: EntityId, is_disconnected: bool) {
        self.messages_disturbed(id);
        if let Some(client) = self.inner().clients.get_mut(&id) {
            client.is_disconnected = is_disconnected;
        }
    }

    /// A client has a connection again: it is not told what it missed meanwhile.
    pub fn resumed(&self, id: EntityId) {
        if let Some(client) = self.inner().clients.get_mut(&id) {
            client.last_epoch = None;
        }
    }

    /// A client has sent an input that leads to a position. With `is_teleport` its view may change
    /// at once.
    pub fn said(&self, id: EntityId, seq: Seq, place: PlacedAt, is_teleport: bool) {
        let now = self.journal.now();
        if is_teleport {
            self.messages_teleport(id);
        }
        let mut inner = self.inner();
        inner.inputs += 1;
        if let Some(client) = inner.clients.get_mut(&id) {
            (client.said, client.place) = (seq, place);
            if is_teleport {
                (client.teleported_at, client.teleported_by) = (now, seq);
            }
        }
    }
}

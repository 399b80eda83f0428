//! What the judge knows of a client and of the client's view.

use std::collections::BTreeMap;
use std::time::Duration;

use purview::scene::{EntityId, Epoch, Pos, Seq};
use rustc_hash::FxHashMap;

use super::rules::PlacedAt;
use super::trails::{Mark, Trails};
use super::{Judge, LATE};

/// An action that a client was shown: its number, the time, and the tick.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShownAct {
    pub number: u64,
    pub at: Duration,
    pub of: Duration,
}

/// The position at which a client was last shown an entity, which may have left the view since. It is looked up for
/// each moved entity in each frame, so it is kept apart from rarely used data.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// The last view that contained the entity, and its position there.
    picture: u32,
    pos: Pos,
    pub mark: Mark,
}

/// The actions of another entity that a client was shown.
#[derive(Debug, Clone, Default)]
pub(super) struct LastFrame {
    pub act: Option<ShownAct>,
    pub since: Duration,
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
    pub is_disconnected: bool,
    /// The entities that it was ever shown, by their numbers.
    seen: Vec<Seen>,
    /// The entities whose actions it may have received.
    pub(super) received: FxHashMap<EntityId, LastFrame>,
    /// The number of its view, from 1. Each resync begins a new view.
    picture: u32,
    shown: usize,
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
        let (joined_at, teleported_at, said, picture) = (now, now, acked, 1);
        Client {
            life,
            cap,
            joined_at,
            said,
            place,
            acked,
            teleported_at,
            picture,
            ..Client::default()
        }
    }

    pub(super) fn shown(&self, trails: &Trails) -> BTreeMap<EntityId, Pos> {
        let all = self.seen.iter().enumerate();
        let here = all.filter(|(_, seen)| seen.picture == self.picture);
        here.map(|(number, seen)| (trails.of(number).0, seen.pos)).collect()
    }

    pub(super) fn view_size(&self) -> usize {
        self.shown
    }

    /// Notes a frame. Returns whether the client misses no action of what stays in view since the frame before: it has
    /// kept its connection, and its player's region has not died.
    pub(super) fn continues_at(&mut self, epoch: Epoch) -> bool {
        let before = self.last_epoch.replace(epoch);
        before.is_some_and(|before| before.lives() == epoch.lives())
    }

    /// Whether its view contains the entity.
    pub(super) fn is_shown(&self, number: usize) -> bool {
        self.seen.get(number).is_some_and(|seen| seen.picture == self.picture)
    }

    /// Whether the view before this one contained the entity.
    pub(super) fn was_shown(&self, number: usize) -> bool {
        self.seen.get(number).is_some_and(|seen| seen.picture + 1 == self.picture)
    }

    pub(super) fn begins_anew(&mut self) {
        (self.picture, self.shown) = (self.picture + 1, 0);
    }

    /// The client is told a position of an entity. Returns the entity's position in this view before, or in the view
    /// before if this one began at `began_anew` without the entity; and the actions shown.
    pub(super) fn shows(
        &mut self,
        number: usize,
        pos: Pos,
        began_anew: bool,
    ) -> (Option<Pos>, &mut Seen) {
        if number >= self.seen.len() {
            self.seen.resize(number + 1, Seen::default());
        }
        let seen = &mut self.seen[number];
        let here = seen.picture == self.picture;
        let before = here || (began_anew && seen.picture + 1 == self.picture);
        let known = before.then_some(seen.pos);
        self.shown += usize::from(!here);
        (seen.picture, seen.pos) = (self.picture, pos);
        (known, seen)
    }

    pub(super) fn hides(&mut self, number: usize) {
        let here = self.seen.get_mut(number).filter(|seen| seen.picture == self.picture);
        if let Some(seen) = here {
            seen.picture = 0;
            self.shown -= 1;
        }
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
                client.teleported_at = now;
            }
        }
    }
}

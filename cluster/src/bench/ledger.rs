//! Keeps the books of a benchmark: what each client should have been told by the rules, and what it
//! was told. Runs outside the measured time.

use purview::scene::spec::Rates;
use purview::scene::{EntityId, Pos, Tick};
use purview::wire::{Frame, ServerMsg};
use rustc_hash::FxHashMap;

/// What one client shows: where each entity is, and when it was told.
type Shown = FxHashMap<EntityId, (Pos, Tick)>;

/// The books.
#[derive(Debug)]
pub struct Ledger {
    rates: Rates,
    patch_cm: i32,
    clients: Vec<Shown>,
    /// Updates that were due by the rules.
    pub expected: u64,
    /// Updates that came.
    pub delivered: u64,
    /// Frames that could not be read or contradicted what the client knew.
    pub faults: u64,
}

fn ring(a: Pos, b: Pos, side: i32) -> u32 {
    (a.x / side).abs_diff(b.x / side).max((a.z / side).abs_diff(b.z / side))
}

impl Ledger {
    /// Books of `clients` clients.
    pub fn new(clients: usize, rates: Rates, patch_cm: i32) -> Ledger {
        let clients = vec![Shown::default(); clients];
        Ledger { rates, patch_cm, clients, expected: 0, delivered: 0, faults: 0 }
    }

    /// Books one frame of the client at `ix`, who stands at `me`; `truth` tells where everybody is
    /// (all of whom moved in this tick).
    pub fn book(&mut self, ix: usize, me: Pos, bytes: &[u8], truth: impl Fn(EntityId) -> Pos) {
        let Ok(ServerMsg::Frame(frame)) = ServerMsg::decode(bytes) else {
            self.faults += 1;
            return;
        };
        let Frame { tick, enters, leaves, moves, .. } = frame;
        let shown = &mut self.clients[ix];
        for id in &leaves {
            self.faults += u64::from(shown.remove(id).is_none());
        }
        for (id, (_, told)) in shown.iter() {
            let ring = ring(me, truth(*id), self.patch_cm);
            self.expected += u64::from(tick.0 - told.0 >= self.rates.of_ring(ring).into());
        }
        for e in &enters {
            let at = Pos { x: e.x, y: e.y, z: e.z };
            self.faults += u64::from(at != truth(e.id));
            self.faults += u64::from(shown.insert(e.id, (at, tick)).is_some());
        }
        for m in &moves {
            let at = Pos { x: m.x, y: m.y, z: m.z };
            self.faults += u64::from(at != truth(m.id));
            match shown.get_mut(&m.id) {
                Some(entry) => *entry = (at, tick),
                None => self.faults += 1,
            }
        }
        self.delivered += moves.len() as u64;
    }

    /// Mean number of entities that a client shows.
    pub fn mean_visible(&self) -> f64 {
        let shown: usize = self.clients.iter().map(|c| c.len()).sum();
        shown as f64 / self.clients.len().max(1) as f64
    }
}

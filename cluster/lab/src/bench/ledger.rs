//! The accounts of a benchmark: the updates that each client should have received by the rules, and those that it
//! received. Runs outside the measured time.

use purview::scene::movement::{ServerMs, Trajectory};
use purview::scene::spec::Rates;
use purview::scene::{EntityId, Pos, Tick};
use purview::wire::{Frame, Going, ServerMsg};
use rustc_hash::FxHashMap;

/// The view of one client: each entity as the client was told of it.
type Shown = FxHashMap<EntityId, LedgerEntry>;

/// What a client knows of an entity.
#[derive(Debug, Clone, Copy)]
struct LedgerEntry {
    pos: Pos,
    /// The trajectory, where moves are judged.
    trajectory: Option<Trajectory>,
    at: Tick,
}

impl LedgerEntry {
    fn place(&self, tick: Tick) -> Pos {
        self.trajectory
            .map_or(self.pos, |trajectory| trajectory.position(ServerMs(tick.0 * TICK_MS)))
    }
}

/// Milliseconds per tick of a benchmark.
const TICK_MS: u64 = 100;

/// The accounts of all clients.
#[derive(Debug)]
pub struct Ledger {
    rates: Rates,
    patch_cm: i32,
    clients: Vec<Shown>,
    /// The number of updates due by the rules.
    pub expected: u64,
    /// The number of updates received.
    pub delivered: u64,
    /// The number of frames that could not be read or contradicted the client's view.
    pub faults: u64,
}

fn ring(a: Pos, b: Pos, side: i32) -> u32 {
    (a.x / side).abs_diff(b.x / side).max((a.z / side).abs_diff(b.z / side))
}

impl Ledger {
    /// Accounts for `clients` clients.
    pub fn new(clients: usize, rates: Rates, patch_cm: i32) -> Ledger {
        let clients = vec![Shown::default(); clients];
        Ledger { rates, patch_cm, clients, expected: 0, delivered: 0, faults: 0 }
    }

    /// Records a frame of the client at `ix`, which stands at `me`. `truth` has the position of each entity and the
    /// tick since when viewers must know it; where positions are sent that is the present tick.
    pub fn book(
        &mut self,
        ix: usize,
        me: Pos,
        bytes: &[u8],
        truth: impl Fn(EntityId) -> (Pos, Tick),
    ) {
        let Ok(ServerMsg::Frame(frame)) = ServerMsg::decode(bytes) else {
            self.faults += 1;
            return;
        };
        let Frame { tick, enters, leaves, moves, trajectories, .. } = *frame;
        let shown = &mut self.clients[ix];
        for id in &leaves {
            self.faults += u64::from(shown.remove(id).is_none());
        }
        for (id, told) in shown.iter() {
            let (pos, since) = truth(*id);
            let interval = u64::from(self.rates.of_ring(ring(me, pos, self.patch_cm)));
            self.expected += u64::from(since > told.at && tick.0 - told.at.0 >= interval);
        }
        let trajectory = |going: &Going| going.on_tiles(1);
        for e in &enters {
            let pos = Pos { x: e.x, y: e.y, z: e.z };
            let told =
                LedgerEntry { pos, trajectory: e.trajectory.as_ref().map(trajectory), at: tick };
            self.faults += u64::from(pos != truth(e.id).0);
            self.faults += u64::from(shown.insert(e.id, told).is_some());
        }
        let places = moves.iter().map(|m| (m.id, Pos { x: m.x, y: m.y, z: m.z }, None));
        let turns =
            trajectories.iter().map(|c| (c.id, Pos::default(), Some(trajectory(&c.trajectory))));
        for (id, pos, trajectory) in places.chain(turns) {
            match shown.get_mut(&id) {
                Some(entry) => *entry = LedgerEntry { pos, trajectory, at: tick },
                None => self.faults += 1,
            }
        }
        for (id, told) in shown.iter() {
            let (pos, since) = truth(*id);
            self.faults += u64::from(told.at >= since && told.place(tick) != pos);
        }
        self.delivered += (moves.len() + trajectories.len()) as u64;
    }

    /// The mean number of entities in a view.
    pub fn mean_visible(&self) -> f64 {
        let shown: usize = self.clients.iter().map(|c| c.len()).sum();
        shown as f64 / self.clients.len().max(1) as f64
    }
}

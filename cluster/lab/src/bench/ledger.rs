//! The accounts of a benchmark: the updates that each client should have received by the rules, and those that it
//! received. Runs outside the measured time.

use purview::scene::movement::{ServerMs, Trajectory};
use purview::scene::spec::{Rates, UpdateError};
use purview::scene::{EntityId, Pos, SceneSpec, Tick};
use purview::wire::{Frame, Going, ServerMsg};
use rustc_hash::FxHashMap;

use crate::oracle::DisplayedErrors;

/// The view of one client: each entity as the client was told of it.
type Shown = FxHashMap<EntityId, LedgerEntry>;

#[derive(Debug, Clone, Copy)]
struct LedgerEntry {
    pos: Pos,
    trajectory: Option<Trajectory>,
    at: Tick,
}

impl LedgerEntry {
    fn place(&self, tick: Tick) -> Pos {
        self.place_at(ServerMs(tick.0 * TICK_MS))
    }

    fn place_at(&self, at: ServerMs) -> Pos {
        self.trajectory.map_or(self.pos, |trajectory| trajectory.position(at))
    }
}

const TICK_MS: u64 = 100;

#[derive(Debug)]
pub struct Ledger {
    rates: Rates,
    /// The tolerance by which clients are told; `None`: by the rates alone.
    rule: Option<UpdateError>,
    /// How far an entity may be off beyond the tolerance, centimetres: a step, where positions may come late.
    slack_cm: u64,
    patch_cm: [i32; 2],
    clients: Vec<Shown>,
    /// The number of updates due by the rules.
    pub expected: u64,
    pub delivered: u64,
    /// The number of frames that could not be read or contradicted the client's view, and of entities that were
    /// shown too far off.
    pub faults: u64,
    /// How far off entities were shown, right before each frame.
    pub errors: DisplayedErrors,
}

fn ring(a: Pos, b: Pos, [width, depth]: [i32; 2]) -> u32 {
    (a.x / width).abs_diff(b.x / width).max((a.z / depth).abs_diff(b.z / depth))
}

impl Ledger {
    /// Accounts for `clients` clients of a scene.
    pub fn new(clients: usize, spec: &SceneSpec, slack_cm: u64) -> Ledger {
        Ledger {
            rates: spec.rates,
            rule: spec.update_error_in_force(),
            slack_cm,
            patch_cm: spec.player_patch_cm(),
            clients: vec![Shown::default(); clients],
            expected: 0,
            delivered: 0,
            faults: 0,
            errors: DisplayedErrors::default(),
        }
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
            let ring = ring(me, pos, self.patch_cm);
            self.errors.record(ring, told.place(tick).dist2(pos).isqrt());
            let interval = u64::from(self.rates.of_ring(ring));
            let due = since > told.at && tick.0 - told.at.0 >= interval;
            self.expected += u64::from(due && self.rule.is_none());
        }
        let trajectory = |going: &Going| going.on_tiles(1);
        for e in &enters {
            let pos = Pos { x: e.x, y: e.y, z: e.z };
            let told =
                LedgerEntry { pos, trajectory: e.trajectory.as_ref().map(trajectory), at: tick };
            self.faults += u64::from(pos != truth(e.id).0);
            self.faults += u64::from(shown.insert(e.id, told).is_some());
        }
        let now = ServerMs(tick.0 * TICK_MS);
        let places =
            moves.iter().map(|m| (m.id, Pos { x: m.x, y: m.y, z: m.z }, m.trajectory(now)));
        for (id, pos, trajectory) in places {
            match shown.get_mut(&id) {
                Some(entry) => *entry = LedgerEntry { pos, trajectory, at: tick },
                None => self.faults += 1,
            }
        }
        for update in &trajectories {
            let Some(entry) = shown.get_mut(&update.id()) else {
                self.faults += 1;
                continue;
            };
            let trajectory = update.trajectory(1, now, |at| entry.place_at(at));
            *entry = LedgerEntry { trajectory: Some(trajectory), at: tick, ..*entry };
        }
        for (id, told) in shown.iter() {
            let (pos, since) = truth(*id);
            let off2 = told.place(tick).dist2(pos);
            let wrong = match &self.rule {
                Some(rule) => {
                    off2.isqrt() > rule.tolerance2(me.dist2(pos)).isqrt() + self.slack_cm + 2
                }
                None => told.at >= since && off2 > 0,
            };
            self.faults += u64::from(wrong);
        }
        self.delivered += (moves.len() + trajectories.len()) as u64;
    }

    pub fn mean_visible(&self) -> f64 {
        let shown: usize = self.clients.iter().map(|c| c.len()).sum();
        shown as f64 / self.clients.len().max(1) as f64
    }
}

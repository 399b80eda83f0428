//! A lease of a region: what its worker knows, and the conversation with it.
//!
//! ```text
//!            tell: a part, or the difference since the last one
//!   Free ─────────────────────────────────────────────────────► Waits
//!    ▲                                                            │
//!    └──────────────── an answer to it counts ────────────────────┘
//! ```
//!
//! Whatever else happens ends the lease: the region drops it, and the next one begins with everything.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use purview::scene::{EntityId, Region, Scene, Tick};
use purview::wire::peer::{LeaseName, WorkerTold};

use super::acts::{Acts, Handled};
use super::ledger::{self, Ledger};
use super::picture::{Picture, Pieces};
use super::proto::{Rect, Told};
use super::told::encode_told;
use super::worker::Worker;

/// Bytes of the first part of a lease, and of a message in general while the worker is slow.
const FIRST_PART: usize = 16 << 10;

/// Most bytes of a part, beside one entity.
const MOST_PART: usize = 1 << 20;

const LEAST_PART: usize = 1 << 10;

/// An answer within so many ticks lets the next part be larger.
const QUICK_TICKS: u64 = 2;

/// What was told and not answered.
#[derive(Debug, Clone, Copy)]
struct Waits {
    since: Tick,
    handled: Handled,
}

#[derive(Debug)]
pub struct Lease {
    pub worker: Arc<Worker>,
    pub name: LeaseName,
    seq: u64,
    waits: Option<Waits>,
    picture: Picture,
    /// What is left of the difference that is told, and what its parts have in common.
    pieces: VecDeque<Bytes>,
    head: Told,
    part: usize,
    most: usize,
}

impl Lease {
    /// A lease that begins. At most about so many bytes may wait for the worker.
    pub fn new(worker: Arc<Worker>, name: LeaseName, most: usize) -> Lease {
        let most = most.clamp(LEAST_PART, MOST_PART);
        Lease {
            worker,
            name,
            seq: 0,
            waits: None,
            picture: Picture::default(),
            pieces: VecDeque::new(),
            head: Told::default(),
            part: FIRST_PART.min(most),
            most,
        }
    }

    pub fn waits_since(&self) -> Option<Tick> {
        self.waits.map(|waits| waits.since)
    }

    /// What the worker was told of actions and has not answered.
    pub fn not_handled(&self) -> Handled {
        self.waits.map(|waits| waits.handled).unwrap_or_default()
    }

    /// Whether a worker's answer to this message counts.
    pub fn expects(&self, worker: u64, name: LeaseName, seq: u64) -> bool {
        self.waits.is_some() && (worker, name, seq) == (self.worker.id, self.name, self.seq)
    }

    /// The answer counts: what is handled with it, and how many ticks the answer has taken. `patience`: how many it
    /// may take.
    pub fn answered(&mut self, now: Tick, patience: u64) -> (Handled, u64) {
        let Some(Waits { since, handled }) = self.waits.take() else {
            return (Handled::default(), 1);
        };
        let took = now.0.saturating_sub(since.0);
        if took <= QUICK_TICKS {
            self.part = (2 * self.part).min(self.most);
        } else if 4 * took > patience {
            self.part = (self.part / 2).max(LEAST_PART);
        }
        (handled, took)
    }

    /// An entity has changed in more than position and properties.
    pub fn changes(&mut self, id: EntityId) {
        self.picture.changes(id);
    }

    pub fn ends(&mut self, id: EntityId) {
        self.picture.ends(id);
    }

    /// Tells the worker what there is, if it has answered. The tick is over.
    pub fn tell(&mut self, of: (&Region, &Scene), (acts, ledger): (&Acts, &Ledger)) {
        if self.waits.is_some() {
            return;
        }
        let now = of.0.current_tick();
        if self.pieces.is_empty() {
            self.look(of, ledger);
        }
        let mut part = Vec::new();
        let mut bytes = 0;
        while let Some(piece) = self.pieces.front() {
            if bytes > 0 && bytes + piece.len() > self.part {
                break;
            }
            bytes += piece.len();
            part.extend(self.pieces.pop_front());
        }
        self.seq += 1;
        let mut told = Told { seq: self.seq, more: !self.pieces.is_empty(), ..self.head.clone() };
        let mut handled = Handled::default();
        if self.seq == 1 {
            let rect = of.0.rect();
            told.rect = Some(Rect { x0: rect.x0, z0: rect.z0, x1: rect.x1, z1: rect.z1 });
        }
        if !told.more {
            (told.acts, handled) = acts.next(self.part.saturating_sub(bytes));
            told.missed = handled.missed();
        }
        self.waits = Some(Waits { since: now, handled });
        let response = encode_told(&told, &part);
        let (lease, seq) = (self.name, self.seq);
        self.worker.tell(WorkerTold { worker: self.worker.id, lease, seq, response });
    }

    /// Takes the difference between what the worker knows and the region.
    fn look(&mut self, (region, scene): (&Region, &Scene), ledger: &Ledger) {
        let followed = self.worker.profile.followed;
        let pieces = Pieces::new((self.part / 4).min(4 << 10));
        self.pieces = self.picture.difference((region, scene), followed, pieces);
        let (counted, durable) = ledger.of(self.worker.id);
        self.head = Told {
            lease: Some(ledger::lease(self.name)),
            tick: region.current_tick().0,
            counted,
            durable,
            answer_ticks: self.worker.pace().ticks as f32,
            ..Told::default()
        };
    }
}

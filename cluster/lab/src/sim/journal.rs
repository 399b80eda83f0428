//! The journal of a simulated cluster: every step, as a hash that two runs of one seed share, and the last steps as
//! text.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use purview::clock;
use purview::scene::{EntityId, Epoch, Pos, RegionId, Seq, Tick};
use rustc_hash::FxHasher;
use tokio::time::Instant;

use super::network::Host;

const REMEMBERED: usize = 20_000;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum What {
    Fault(String),
    /// A process starts, as which join of its host.
    Begins(Host, u64),
    ShutdownSignals(Host, &'static str),
    Owner {
        id: EntityId,
        epoch: Epoch,
        region: RegionId,
        region_epoch: Epoch,
        host: Host,
        tick: Tick,
        applied: Seq,
    },
    /// A region acts under another owner than before.
    Authority {
        region: RegionId,
        epoch: Epoch,
        host: Host,
        tick: Tick,
    },
    Said {
        id: EntityId,
        seq: Seq,
        command: &'static str,
        pos: Pos,
    },
    Shown {
        id: EntityId,
        tick: Tick,
        epoch: Epoch,
        ack: Seq,
        resync: bool,
        enters: Vec<EntityId>,
        leaves: Vec<EntityId>,
    },
    /// A client has resumed its session at a gateway.
    Back(EntityId),
    Joined(EntityId, Pos),
    Gone(EntityId, String),
    Registers(EntityId, String),
}

impl What {
    fn concerns(&self, who: &[EntityId]) -> bool {
        match self {
            What::Fault(_)
            | What::Begins(..)
            | What::ShutdownSignals(..)
            | What::Authority { .. } => true,
            What::Owner { id, .. } | What::Said { id, .. } => who.contains(id),
            What::Shown { id, enters, leaves, .. } => {
                who.contains(id) || enters.iter().chain(leaves).any(|id| who.contains(id))
            }
            What::Back(id) | What::Joined(id, _) | What::Gone(id, _) | What::Registers(id, _) => {
                who.contains(id)
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The number, from 1.
    pub number: u64,
    /// The virtual time since the start.
    pub at: Duration,
    pub what: What,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>9} {:>10.3} s  {:?}", self.number, self.at.as_secs_f64(), self.what)
    }
}

struct Book {
    hash: FxHasher,
    steps: u64,
    bytes: u64,
    last: VecDeque<Step>,
    trace: bool,
    until: u64,
}

#[derive(Clone)]
pub struct Journal {
    began: Instant,
    book: Arc<Mutex<Book>>,
}

impl Journal {
    pub fn new(trace: bool, until: Option<u64>) -> Journal {
        let (hash, last) = (FxHasher::default(), VecDeque::with_capacity(REMEMBERED));
        let until = until.unwrap_or(u64::MAX);
        let book = Book { hash, steps: 0, bytes: 0, last, trace, until };
        Journal { began: clock::now(), book: Arc::new(Mutex::new(book)) }
    }

    pub fn note(&self, what: What) {
        let mut book = self.book.lock();
        if book.steps >= book.until {
            return;
        }
        book.steps += 1;
        let step = Step { number: book.steps, at: self.now(), what };
        (step.number, step.at).hash(&mut book.hash);
        step.what.hash(&mut book.hash);
        if book.trace {
            println!("{step}");
        }
        if book.last.len() == REMEMBERED {
            book.last.pop_front();
        }
        book.last.push_back(step);
    }

    /// Adds bytes that a client has received to the hash. They are no step of their own, but must not differ between
    /// two runs.
    pub fn received(&self, id: u32, bytes: &[u8]) {
        let mut book = self.book.lock();
        book.bytes += bytes.len() as u64;
        id.hash(&mut book.hash);
        book.hash.write(bytes);
    }

    pub fn now(&self) -> Duration {
        clock::since(self.began)
    }

    pub fn steps(&self) -> u64 {
        self.book.lock().steps
    }

    pub fn bytes(&self) -> u64 {
        self.book.lock().bytes
    }

    pub fn is_over(&self) -> bool {
        let book = self.book.lock();
        book.steps >= book.until
    }

    pub fn hash(&self) -> u64 {
        self.book.lock().hash.finish()
    }

    /// The last steps that concern some entities, and all faults, oldest first.
    pub fn last_of(&self, who: &[EntityId], most: usize) -> Vec<Step> {
        let book = self.book.lock();
        let mut found: Vec<Step> =
            book.last.iter().rev().filter(|s| s.what.concerns(who)).take(most).cloned().collect();
        found.reverse();
        found
    }
}

//! What happens in a simulated cluster, step by step: a number that two runs of one seed share, and the last steps
//! in words.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use purview::clock;
use purview::scene::{EntityId, Epoch, Pos, RegionId, Seq, Tick};
use rustc_hash::FxHasher;
use tokio::time::Instant;

use super::network::Host;

/// Steps that are remembered.
const REMEMBERED: usize = 20_000;

/// Something that has happened.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum What {
    /// Something is done to the cluster.
    Fault(String),
    /// A process begins, as which join of its host.
    Begins(Host, u64),
    /// A process is no more.
    Ends(Host, &'static str),
    /// An entity acts in another place than before.
    Owner {
        /// Who.
        id: EntityId,
        /// Its epoch.
        epoch: Epoch,
        /// Where.
        region: RegionId,
        /// The region's epoch.
        region_epoch: Epoch,
        /// In the process of this host.
        host: Host,
        /// Of this tick.
        tick: Tick,
        /// With this input.
        applied: Seq,
    },
    /// A region acts under another owner than before.
    Authority {
        /// Which.
        region: RegionId,
        /// Its epoch.
        epoch: Epoch,
        /// In the process of this host.
        host: Host,
        /// From this tick on.
        tick: Tick,
    },
    /// A client says an input.
    Said {
        /// Its player.
        id: EntityId,
        /// The input's number.
        seq: Seq,
        /// What it is.
        word: &'static str,
        /// Where it wants to be.
        pos: Pos,
    },
    /// A client is shown something.
    Shown {
        /// Its player.
        id: EntityId,
        /// The tick.
        tick: Tick,
        /// The player's epoch.
        epoch: Epoch,
        /// The last input that was applied.
        ack: Seq,
        /// Everything is told anew.
        resync: bool,
        /// Who comes.
        enters: Vec<EntityId>,
        /// Who goes.
        leaves: Vec<EntityId>,
    },
    /// A client has lost its connection and is back, at a gateway.
    Back(EntityId),
    /// A client is in its scene.
    Joined(EntityId, Pos),
    /// A client is not in its scene any more.
    Gone(EntityId, String),
    /// What a player has agreed on with others.
    Registers(EntityId, String),
}

impl What {
    /// Whether it concerns an entity.
    fn concerns(&self, who: &[EntityId]) -> bool {
        match self {
            What::Fault(_) | What::Begins(..) | What::Ends(..) | What::Authority { .. } => true,
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

/// Something that has happened, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Its number, from 1.
    pub number: u64,
    /// Time since the beginning.
    pub at: Duration,
    /// What.
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
    /// The step before which it ends.
    until: u64,
}

/// The journal. Cheap to clone.
#[derive(Clone)]
pub struct Journal {
    began: Instant,
    book: Arc<Mutex<Book>>,
}

impl Journal {
    /// Nothing has happened yet. With `trace` each step is printed as it happens.
    pub fn new(trace: bool, until: Option<u64>) -> Journal {
        let (hash, last) = (FxHasher::default(), VecDeque::with_capacity(REMEMBERED));
        let until = until.unwrap_or(u64::MAX);
        let book = Book { hash, steps: 0, bytes: 0, last, trace, until };
        Journal { began: clock::now(), book: Arc::new(Mutex::new(book)) }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something has happened.
    pub fn note(&self, what: What) {
        let mut book = self.book();
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

    /// A client has heard these bytes: no step of their own, but two runs must not differ in them.
    pub fn heard(&self, id: u32, bytes: &[u8]) {
        let mut book = self.book();
        book.bytes += bytes.len() as u64;
        id.hash(&mut book.hash);
        book.hash.write(bytes);
    }

    /// Time since the beginning.
    pub fn now(&self) -> Duration {
        clock::since(self.began)
    }

    /// How many steps there were.
    pub fn steps(&self) -> u64 {
        self.book().steps
    }

    /// Bytes that clients were told.
    pub fn bytes(&self) -> u64 {
        self.book().bytes
    }

    /// Whether the run has come to where it was to end.
    pub fn is_over(&self) -> bool {
        let book = self.book();
        book.steps >= book.until
    }

    /// What two runs of one seed have in common.
    pub fn hash(&self) -> u64 {
        self.book().hash.finish()
    }

    /// The last steps that concern some entities, oldest first, and everything that was done to the cluster.
    pub fn last_of(&self, who: &[EntityId], most: usize) -> Vec<Step> {
        let book = self.book();
        let mut found: Vec<Step> =
            book.last.iter().rev().filter(|s| s.what.concerns(who)).take(most).cloned().collect();
        found.reverse();
        found
    }
}

//! What all clients, or some of them, are told to do together.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use parking_lot::Mutex;
use purview::scene::Pos;

/// The common instructions. Without any, clients walk about, act, teleport, leave and come back.
#[derive(Debug, Default)]
pub struct Will {
    /// All clients stand still, and none joins or leaves.
    stand: AtomicBool,
    some: Mutex<Orders>,
}

/// The instructions for some clients.
#[derive(Debug, Default)]
struct Orders {
    /// These clients gather at a hot spot.
    meet: Option<(Range<u32>, Pos)>,
    /// These clients leave, and do not come back before they are told to.
    out: Range<u32>,
}

impl Will {
    /// Stops all clients, or lets them go on.
    pub fn stand(&self, stand: bool) {
        self.stand.store(stand, Relaxed);
    }

    pub fn is_to_stand(&self) -> bool {
        self.stand.load(Relaxed)
    }

    /// Lets these clients gather at one place; `None`: none.
    pub fn meet(&self, who: Option<(Range<u32>, Pos)>) {
        self.some.lock().meet = who;
    }

    /// The gathering place of a client, if it has one.
    pub fn meeting(&self, number: u32) -> Option<Pos> {
        let meet = &self.some.lock().meet;
        meet.as_ref().filter(|(who, _)| who.contains(&number)).map(|(_, at)| *at)
    }

    /// Lets these clients leave. They log in again at the same time, when none must be out any more.
    pub fn send_out(&self, who: Range<u32>) {
        self.some.lock().out = who;
    }

    /// Whether a client must leave or stay out.
    pub fn is_out(&self, number: u32) -> bool {
        self.some.lock().out.contains(&number)
    }
}

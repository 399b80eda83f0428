//! Names and versions that a process gives out. Two processes of a cluster never give out the same.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::Directory;
use crate::scene::{COUNT_BITS, EntityId, SessionId};

/// Names of a process.
const NAMES: u64 = 1 << COUNT_BITS;

/// Names that are not used yet.
#[derive(Debug)]
pub(super) struct Names {
    entities: AtomicU64,
    sessions: AtomicU64,
    door_versions: AtomicU64,
}

impl Names {
    /// Those of a process that is alone.
    pub(super) fn alone() -> Names {
        let first = || AtomicU64::new(1);
        Names { entities: first(), sessions: first(), door_versions: first() }
    }

    /// Those of one process of many, which starts at this time of the cluster's clock.
    pub(super) fn of_process(process: u64, clock: Duration) -> Names {
        let first = || AtomicU64::new((process << COUNT_BITS) + 1);
        // A later order has a higher version, whichever process gives it.
        let door_versions = AtomicU64::new(clock.as_micros() as u64);
        Names { entities: first(), sessions: first(), door_versions }
    }
}

impl Directory {
    /// A name for a new entity; `None`: the process has used all of its names, and has to be started anew.
    pub fn new_entity(&self) -> Option<EntityId> {
        self.new_entities(1)
    }

    /// The first of so many names for new entities, which follow each other; `None`: the process has not
    /// so many left, and none was used.
    pub fn new_entities(&self, count: u64) -> Option<EntityId> {
        let next = |first: u64| {
            let left = NAMES - (first & (NAMES - 1));
            (count <= left.saturating_sub(1)).then(|| first + count)
        };
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        self.names.entities.fetch_update(set, fetch, next).ok().map(EntityId)
    }

    /// A name for a new session.
    pub fn new_session(&self) -> SessionId {
        SessionId(self.names.sessions.fetch_add(1, Ordering::Relaxed))
    }

    /// The version of a new order about a door: greater than that of every earlier one of this
    /// process, and than those that others gave before it.
    pub(super) fn new_door_version(&self) -> u64 {
        let versions = &self.names.door_versions;
        if self.process() > 0 {
            let now = self.uptime().as_micros() as u64;
            versions.fetch_max(now, Ordering::Relaxed);
        }
        versions.fetch_add(1, Ordering::Relaxed)
    }
}

//! The sessions of a process, where regions of other processes look for them, and the way to sessions of
//! other processes.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustc_hash::FxHashMap;

use super::Directory;
use super::process::FindSession;
use crate::actor::address::{FanOut, SessionAddress, SessionEntry};
use crate::scene::{EntityId, Epoch, RegionId, SessionId, Tick};
use crate::wire::EncodedBatch;

/// The sessions that a process knows.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    /// `None` where the process is alone: no other process looks for sessions.
    here: Option<Mutex<FxHashMap<SessionId, SessionEntry>>>,
    finder: OnceLock<Arc<dyn FindSession>>,
}

impl Sessions {
    /// Those of a process that is one of many.
    pub(super) fn of_cluster() -> Sessions {
        Sessions { here: Some(Mutex::default()), finder: OnceLock::new() }
    }

    fn here(&self) -> Option<MutexGuard<'_, FxHashMap<SessionId, SessionEntry>>> {
        self.here.as_ref().map(|here| here.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Frames of another process that were not delivered.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct NotDelivered {
    /// The entities of sessions for whose frames there was no room, these sessions, and the ticks of their frames before:
    /// each must be told everything anew.
    pub lost: Vec<(EntityId, SessionId, Tick)>,
    /// Sessions that are no more.
    pub gone: Vec<SessionId>,
}

impl Directory {
    /// Makes a session known to regions of other processes.
    pub(in crate::actor) fn register(&self, session: SessionId, entry: SessionEntry) {
        if let Some(mut sessions) = self.sessions.here() {
            sessions.insert(session, entry);
        }
    }

    /// A session of this process has ended.
    pub(in crate::actor) fn unregister(&self, session: SessionId) {
        if let Some(mut sessions) = self.sessions.here() {
            sessions.remove(&session);
        }
    }

    /// Tells every session of this process that a region continues from a checkpoint under a new owner, of
    /// this epoch: a session whose player lives there presents it.
    pub fn tell_owner(&self, region: RegionId, epoch: Epoch) {
        let Some(sessions) = self.sessions.here() else { return };
        for entry in sessions.values() {
            entry.to.tell_owner(region, epoch);
        }
    }

    /// Whether this process has sessions that other processes look for.
    pub fn has_sessions(&self) -> bool {
        self.sessions.here().is_some_and(|sessions| !sessions.is_empty())
    }

    /// Sets the finder of sessions; only the first call counts.
    pub fn find_sessions_by(&self, finder: Arc<dyn FindSession>) {
        self.sessions.finder.get_or_init(|| finder);
    }

    /// Where a session of any process is; `None`: there is no finder. `Some(None)`: the session has ended.
    pub(in crate::actor) fn find_session(
        &self,
        session: SessionId,
    ) -> Option<Option<SessionAddress>> {
        self.sessions.finder.get().map(|finder| finder.find(session))
    }

    /// A session of this process, where the process is one of many.
    pub fn session(&self, session: SessionId) -> Option<SessionEntry> {
        self.sessions.here()?.get(&session).cloned()
    }

    /// Gives the sessions of this process the frames of a region of another process.
    pub fn deliver_frames(&self, batch: &Arc<EncodedBatch>) -> NotDelivered {
        let mut not = NotDelivered::default();
        let Some(sessions) = self.sessions.here() else { return not };
        let mut fan_out = FanOut::default();
        for (i, frame) in batch.batch().sessions.iter().enumerate() {
            match sessions.get(&frame.session).filter(|entry| entry.to.connected()) {
                Some(entry) => fan_out.add(&entry.to, i as u32),
                None => not.gone.push(frame.session),
            }
        }
        for index in fan_out.send(batch) {
            let (frame, tick) = (&batch.batch().sessions[index as usize], batch.batch().tick);
            if let Some(entry) = sessions.get(&frame.session) {
                entry.to.note_lost(tick);
                not.lost.push((entry.entity, frame.session, frame.before(tick)));
            }
        }
        not
    }
}

//! Sessions that are gone: their players are disconnected, and stay for a while.

use super::RegionActor;
use crate::scene::messages::Input;
use crate::scene::{EntityId, SessionId, Tick};

/// Ticks between two checks for sessions that have ended without saying so. A frame finds that out at once,
/// but a client that is held gets no frames.
pub(super) const SWEEP_TICKS: u64 = 32;

impl RegionActor {
    /// Finds sessions that are gone, and sessions of players that came without one.
    pub(super) fn sweep_clients(&mut self) {
        self.sessions.gone().into_iter().for_each(|(session, id)| self.is_gone(session, id));
        self.region.ask_for_unclaimed(&mut self.fx);
        // Players that came while their gateway was not known here, or was dead.
        let unknown = self.region.attended().filter(|(s, _)| self.sessions.get(*s).is_none());
        for (session, entity) in unknown.collect::<Vec<_>>() {
            match self.directory.find_session(session) {
                Some(Some(to)) => {
                    self.sessions.insert(session, entity, to);
                    let (id, told, question) = (entity, Tick(0), 0);
                    let resync = Input::Resync { id, session, told, question };
                    self.region.handle(resync, &mut self.fx);
                }
                Some(None) => self.is_gone(session, entity),
                None => {}
            }
        }
    }

    /// Forgets sessions that were told that their player is not here.
    pub(super) fn forget_answered(&mut self) {
        let region = &self.region;
        self.sessions.forget_answered(|id| region.find(id).is_some_and(|e| !e.ghost));
    }

    /// A session has ended without saying so.
    pub(super) fn is_gone(&mut self, session: SessionId, id: EntityId) {
        let ms = self.directory.grace_period_ms();
        self.region.handle(Input::Disconnected { id, session, ms }, &mut self.fx);
    }
}

//! What comes to a region's mailbox: each input goes to the region at once. A region that may not act
//! keeps what is not told anew; a region that has left passes everything on.

use actix::Handler;

use super::outbox::outlives_owner;
use super::{MAILBOX, RegionActor};
use crate::actor::address::{Passing, ToRegion};
use crate::clock;
use crate::scene::messages::Input;

/// Messages that wait while the region may not act; beyond that, messages that are sent anew are lost.
const MAX_WITHHELD: usize = MAILBOX;

impl Handler<ToRegion> for RegionActor {
    type Result = ();

    fn handle(&mut self, msg: ToRegion, ctx: &mut Self::Context) {
        self.take(msg);
        if self.departing.is_some() {
            self.depart_if_asked(ctx);
        }
    }
}

impl RegionActor {
    /// Takes a message from the mailbox: it goes to the region, and its effects are delivered.
    pub(super) fn take(&mut self, msg: ToRegion) {
        let Some(msg) = self.has_left(msg) else { return };
        if !self.directory.may_act() {
            return self.withhold(msg);
        }
        let entering = match &msg.input {
            Input::Enter(spawn) => Some((spawn.session, spawn.id)),
            Input::Handoff(handoff) => Some((handoff.state.session, handoff.state.id)),
            Input::Present(presented) => Some((Some(presented.session), presented.id)),
            Input::Resume(resume) => Some((Some(resume.session), resume.id)),
            _ => None,
        };
        let outdated = match (entering, &msg.client, &msg.input) {
            (Some((Some(session), id)), None, Input::Handoff(_)) => Some((session, id)),
            _ => None,
        };
        if let (Some((Some(session), entity)), Some(to)) = (entering, msg.client) {
            self.sessions.enter(session, entity, to);
        }
        // Work outside of a tick is not counted.
        let started = (!self.counted).then(clock::now);
        let was_held = self.region.is_held();
        self.region.handle(msg.input, &mut self.fx);
        if let Some((session, id)) = outdated.filter(|_| self.directory.process() > 0) {
            // The gateway's process is gone: no one else would report that the session is gone.
            self.is_gone(session, id);
        }
        self.deliver();
        if let Some(started) = started {
            self.work += clock::now() - started;
            if self.end_tick() && self.departing.is_none() {
                self.catch_up();
            }
        }
        self.go_on_if(was_held);
    }

    /// Whether the region has left. Then what came is passed on.
    fn has_left(&mut self, msg: ToRegion) -> Option<ToRegion> {
        match &mut self.forwarder {
            None => Some(msg),
            Some(forwarder) => {
                forwarder.pass_on(Passing::Message(msg));
                None
            }
        }
    }

    /// Keeps a message while the process may not act: the lease may turn out to have outlived the time in
    /// which the store could not be reached.
    fn withhold(&mut self, msg: ToRegion) {
        let is_repeatable =
            !outlives_owner(&msg.input) || matches!(msg.input, Input::Client { .. });
        if self.withheld.len() < MAX_WITHHELD || !is_repeatable {
            self.withheld.push(msg);
        }
    }
}

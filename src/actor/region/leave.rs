//! How a region ends its life in this process and goes on in another one.
//!
//! Between two ticks the region is frozen and handed out with all that its actor had; from then on the
//! actor only forwards. Before that nothing has changed, and the caller may still give up.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use actix::{AsyncContext, Context, Handler};

use super::RegionActor;
use super::migration::depart::{Depart, Leaving};
use super::migration::forwarder::Forwarder;
use super::outbox::Outbox;
use crate::actor::address::{Passing, RegionAddress, SessionAddress, ToRegion};
use crate::actor::directory::Leaver;
use crate::actor::messages::Departure;
use crate::scene::messages::Input;
use crate::scene::{Region, RegionId, SessionId};
use crate::wire::peer::{ActorState, Mark};

/// How soon what found no room is passed on again.
const AGAIN: Duration = Duration::from_millis(5);

impl RegionActor {
    /// Leaves as soon as it may: between two ticks.
    pub(super) fn depart_if_asked(&mut self, ctx: &mut Context<RegionActor>) {
        if self.departing.as_ref().is_some_and(Depart::is_forgotten) {
            self.departing = None;
        }
        let may = self.region.may_freeze() && self.fx.is_empty();
        let Some(depart) = self.departing.take_if(|_| may) else { return };
        self.empty_outboxes();
        let id = self.region.id();
        let Some(empty) = self.empty_region() else { return };
        // The caller may have given up just now: until here nothing has changed.
        let Some(Leaving { to, tell }) = depart.begin() else { return };
        let checkpoint = self.region.checkpoint();
        let epoch = self.region.epoch();
        let snapshot = match std::mem::replace(&mut self.region, empty).freeze() {
            Ok(snapshot) => snapshot,
            Err(back) => {
                crate::log_limited!(error, region = %id, "a closed region does not freeze");
                self.region = *back;
                return;
            }
        };
        if let Some(checkpoint_writer) = self.directory.checkpoint_writer() {
            checkpoint_writer.forget(id, epoch);
        }
        let actor_state = self.pack();
        let backlog: Arc<AtomicUsize> = Arc::default();
        if let Some(to) = &to {
            // All earlier messages of this process are in this mailbox; the mark comes after them.
            let remote = RegionAddress::Remote(to.clone());
            let own = ctx.address();
            let (messages, marks) = (own.clone().recipient(), own.clone().recipient());
            let leaver = Leaver::new(messages, marks, Arc::clone(&backlog));
            self.directory.leave(id, remote, leaver);
            own.do_send(Mark { process: self.directory.process(), sessions: false });
            ctx.run_interval(AGAIN, |me, _| me.forwarder.iter_mut().for_each(Forwarder::try_again));
        }
        let withheld = std::mem::take(&mut self.withheld).into_iter().map(Passing::Message);
        let mut forwarder = Forwarder::new(to, withheld.collect(), backlog);
        let departure = Departure { snapshot, checkpoint, actor_state };
        if tell.send(departure).is_err() {
            crate::log_limited!(error, region = %id, "the process ends while a region leaves");
        }
        forwarder.try_again();
        self.forwarder = Some(forwarder);
    }

    /// What is here when the region is not.
    fn empty_region(&self) -> Option<Region> {
        Some(Region::unborn(self.directory.scenes().next()?, self.region.id()))
    }

    fn pack(&mut self) -> ActorState {
        let outbox = std::mem::take(&mut self.outbox);
        let said = |(to, waiting): (RegionId, Outbox)| {
            waiting.into_messages().map(move |msg| (to, msg.input))
        };
        ActorState {
            clients: self.sessions.take_all().collect(),
            outbox: outbox.into_iter().flat_map(said).collect(),
            notices: self.notices.take().collect(),
        }
    }

    /// The same region in another process: with what its actor had. `session` finds sessions.
    pub fn unpack(
        mut self,
        actor_state: ActorState,
        session: impl Fn(SessionId) -> Option<SessionAddress>,
        of: impl Fn(&Input) -> Option<SessionAddress>,
    ) -> RegionActor {
        for (id, entity) in actor_state.clients {
            match session(id) {
                Some(to) => self.sessions.insert(id, entity, to),
                // Its process is no more; its client may come back by another one.
                None => self.is_gone(id, entity),
            }
        }
        for (to, input) in actor_state.outbox {
            let client = of(&input);
            self.outbox.entry(to).or_default().push(ToRegion { input, client });
        }
        for (session, notice) in actor_state.notices {
            self.tell_later(session, notice);
        }
        self
    }
}

impl Handler<Depart> for RegionActor {
    type Result = ();

    fn handle(&mut self, msg: Depart, ctx: &mut Self::Context) {
        if self.forwarder.is_none() {
            self.departing = Some(msg);
            self.depart_if_asked(ctx);
        }
    }
}

impl Handler<Mark> for RegionActor {
    type Result = ();

    fn handle(&mut self, mark: Mark, _: &mut Self::Context) {
        if let Some(forwarder) = &mut self.forwarder {
            forwarder.pass_on(Passing::Mark(mark));
        }
    }
}

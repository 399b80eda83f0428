//! A region's actor that leaves: it ends the region's life at the end of a tick, and then is nothing but
//! the way by which late messages follow it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use actix::dev::SendError;
use actix::{AsyncContext, Context, Handler};

use super::address::{AwayRegion, Passing, RegionAddress, SessionAddress};
use super::departing::{Depart, Leaving};
use super::messages::{Departure, ToRegion};
use super::region::{Client, RegionActor};
use crate::scene::effects::Input;
use crate::scene::mutants::{self, Mutant};
use crate::scene::{Region, RegionId, SessionId};
use crate::wire::peer::{Baggage, Mark};

/// How soon what found no room is passed on again.
const AGAIN: Duration = Duration::from_millis(5);

/// Passes on what comes for a region that has left, in order.
#[derive(Debug)]
pub(super) struct Passer {
    /// None: the region went nowhere, and what comes is not for its actor any more.
    to: Option<Arc<dyn AwayRegion>>,
    waiting: VecDeque<Passing>,
}

impl Passer {
    fn pass_on(&mut self, passing: Passing) {
        let lost = mutants::has(Mutant::NothingPassed) && matches!(passing, Passing::Message(_));
        if self.to.is_some() && !lost {
            self.waiting.push_back(passing);
            self.try_again();
        }
    }

    fn try_again(&mut self) {
        let Some(to) = &self.to else { return };
        while let Some(passing) = self.waiting.pop_front() {
            match to.pass_on(passing) {
                Ok(()) => {}
                Err(SendError::Full(passing)) => return self.waiting.push_front(passing),
                // Whoever owns the region next hears of everything anew.
                Err(SendError::Closed(_)) => {}
            }
        }
    }
}

impl RegionActor {
    /// Whether the region has left. Then what came is passed on.
    pub(super) fn has_left(&mut self, msg: ToRegion) -> Option<ToRegion> {
        match &mut self.passer {
            None => Some(msg),
            Some(passer) => {
                passer.pass_on(Passing::Message(msg));
                None
            }
        }
    }

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
        // Whoever asked may have given up just now: until here nothing has changed.
        let Some(Leaving { to, tell }) = depart.begin() else { return };
        let checkpoint = self.region.checkpoint();
        let snapshot = match std::mem::replace(&mut self.region, empty).freeze() {
            Ok(snapshot) => snapshot,
            Err(back) => {
                crate::log_limited!(error, region = %id, "a closed region does not freeze");
                self.region = *back;
                return;
            }
        };
        let baggage = self.pack();
        if let Some(to) = &to {
            // Whoever here has sent before now has sent to this mailbox; the mark comes after it.
            let away = RegionAddress::Away(to.clone());
            let own = ctx.address();
            self.directory.leave(id, away, own.clone().recipient(), own.clone().recipient());
            own.do_send(Mark { process: self.directory.process(), sessions: false });
            ctx.run_interval(AGAIN, |me, _| me.passer.iter_mut().for_each(Passer::try_again));
        }
        let withheld = std::mem::take(&mut self.withheld).into_iter().map(Passing::Message);
        let mut passer = Passer { to, waiting: withheld.collect() };
        let departure = Departure { snapshot, checkpoint, baggage };
        if tell.send(departure).is_err() {
            crate::log_limited!(error, region = %id, "the process ends while a region leaves");
        }
        passer.try_again();
        self.passer = Some(passer);
    }

    /// What is here when the region is not.
    fn empty_region(&self) -> Option<Region> {
        Some(Region::unborn(self.directory.scenes().next()?, self.region.id()))
    }

    fn pack(&mut self) -> Baggage {
        let clients = std::mem::take(&mut self.clients);
        let outbox = std::mem::take(&mut self.outbox);
        let said = |(to, waiting): (RegionId, VecDeque<ToRegion>)| {
            waiting.into_iter().map(move |msg| (to, msg.input))
        };
        Baggage {
            clients: clients.into_iter().map(|(session, c)| (session, c.entity)).collect(),
            outbox: outbox.into_iter().flat_map(said).collect(),
            notices: std::mem::take(&mut self.notices).into(),
        }
    }

    /// The same region in another process: with what its actor had. `session` finds sessions.
    pub fn unpack(
        mut self,
        baggage: Baggage,
        session: impl Fn(SessionId) -> Option<SessionAddress>,
        of: impl Fn(&Input) -> Option<SessionAddress>,
    ) -> RegionActor {
        for (id, entity) in baggage.clients {
            match session(id) {
                Some(to) => drop(self.clients.insert(id, Client { entity, to })),
                // Its process is no more; its client may come back by another one.
                None => self.is_gone(id, entity),
            }
        }
        for (to, input) in baggage.outbox {
            let client = of(&input);
            self.outbox.entry(to).or_default().push_back(ToRegion { input, client });
        }
        self.notices = baggage.notices.into();
        self
    }
}

impl Handler<Depart> for RegionActor {
    type Result = ();

    fn handle(&mut self, msg: Depart, ctx: &mut Self::Context) {
        if self.passer.is_none() {
            self.departing = Some(msg);
            self.depart_if_asked(ctx);
        }
    }
}

impl Handler<Mark> for RegionActor {
    type Result = ();

    fn handle(&mut self, mark: Mark, _: &mut Self::Context) {
        if let Some(passer) = &mut self.passer {
            passer.pass_on(Passing::Mark(mark));
        }
    }
}

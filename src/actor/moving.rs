//! A region's actor that leaves: it ends the region's life at the end of a tick, and then is nothing but
//! the way by which late messages follow it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use actix::dev::SendError;
use actix::{AsyncContext, Context, Handler};

use super::address::{AwayRegion, Passing, RegionAddress, SessionAddress};
use super::departing::{Depart, Leaving};
use super::messages::{Departure, ToRegion};
use super::outbox::Outbox;
use super::region::{Client, RegionActor};
use super::routes::Leaver;
use crate::scene::messages::Input;
use crate::scene::mutants::{self, Mutant};
use crate::scene::{Region, RegionId, SessionId};
use crate::wire::peer::{Baggage, Mark};

/// How soon what found no room is passed on again.
const AGAIN: Duration = Duration::from_millis(5);

/// Messages that wait to be passed on; while there are as many, peers keep theirs.
pub(super) const PASSING: usize = 65_536;

/// Passes on what comes for a region that has left, in order. Nothing is lost: when [`PASSING`] messages wait, because the
/// new owner's process takes no more, peers are told that there is no room, and keep what they have.
#[derive(Debug)]
pub(super) struct Passer {
    /// None: the region went nowhere, and what comes is not for its actor any more.
    to: Option<Arc<dyn AwayRegion>>,
    waiting: VecDeque<Passing>,
    /// How many these are, for those who send.
    backlog: Arc<AtomicUsize>,
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
        self.pass();
        self.backlog.store(self.waiting.len(), Relaxed);
    }

    fn pass(&mut self) {
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
        let epoch = self.region.epoch();
        let snapshot = match std::mem::replace(&mut self.region, empty).freeze() {
            Ok(snapshot) => snapshot,
            Err(back) => {
                crate::log_limited!(error, region = %id, "a closed region does not freeze");
                self.region = *back;
                return;
            }
        };
        if let Some(archive) = self.directory.archive() {
            archive.forget(id, epoch);
        }
        let baggage = self.pack();
        let backlog = Arc::default();
        if let Some(to) = &to {
            // Whoever here has sent before now has sent to this mailbox; the mark comes after it.
            let away = RegionAddress::Away(to.clone());
            let own = ctx.address();
            let leaver = Leaver::new(&own, &backlog);
            self.directory.leave(id, away, leaver);
            own.do_send(Mark { process: self.directory.process(), sessions: false });
            ctx.run_interval(AGAIN, |me, _| me.passer.iter_mut().for_each(Passer::try_again));
        }
        let withheld = std::mem::take(&mut self.withheld).into_iter().map(Passing::Message);
        let mut passer = Passer { to, waiting: withheld.collect(), backlog };
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
        let said = |(to, waiting): (RegionId, Outbox)| {
            waiting.into_messages().map(move |msg| (to, msg.input))
        };
        Baggage {
            clients: clients.into_iter().map(|(session, c)| (session, c.entity)).collect(),
            outbox: outbox.into_iter().flat_map(said).collect(),
            notices: self.notices.take().collect(),
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
            self.outbox.entry(to).or_default().push(ToRegion { input, client });
        }
        for (session, notice) in baggage.notices {
            self.tell_later(session, notice);
        }
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::scene::EntityId;

    /// A process that takes nothing until it is told to.
    #[derive(Debug, Default)]
    struct Slow {
        takes: AtomicBool,
        taken: AtomicUsize,
    }

    impl AwayRegion for Slow {
        fn try_send(&self, msg: ToRegion) -> Result<(), SendError<ToRegion>> {
            Err(SendError::Full(msg))
        }

        fn pass_on(&self, passing: Passing) -> Result<(), SendError<Passing>> {
            if !self.takes.load(Relaxed) {
                return Err(SendError::Full(passing));
            }
            self.taken.fetch_add(1, Relaxed);
            Ok(())
        }
    }

    #[test]
    fn what_waits_to_be_passed_on_is_counted_for_those_who_send_and_none_of_it_is_lost() {
        let (to, backlog) = (Arc::new(Slow::default()), Arc::new(AtomicUsize::new(0)));
        let (waiting, shared) = (VecDeque::new(), backlog.clone());
        let mut passer = Passer { to: Some(to.clone()), waiting, backlog: shared };
        for n in 0..PASSING {
            let input = Input::Leave(EntityId(n as u64));
            passer.pass_on(Passing::Message(ToRegion { input, client: None }));
        }
        assert_eq!(backlog.load(Relaxed), PASSING, "from here on peers keep what they have");
        to.takes.store(true, Relaxed);
        passer.try_again();
        assert_eq!((backlog.load(Relaxed), to.taken.load(Relaxed)), (0, PASSING));
    }
}

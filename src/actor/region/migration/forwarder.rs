//! What is left of a region's actor once its region has left: the way by which late messages follow the
//! region, in order.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use actix::dev::SendError;

use crate::actor::address::{Passing, RemoteRegion};
#[cfg(any(test, doc))]
use crate::actor::directory::PASSING;
use crate::scene::mutants::{self, Mutant};

/// Passes on what comes for a region that has left, in order. Nothing is lost: when [`PASSING`] messages
/// wait, because the new owner's process takes no more, peers are told that there is no room, and keep
/// what they have.
#[derive(Debug)]
pub(in crate::actor::region) struct Forwarder {
    /// None: the region went nowhere, and what comes is not for its actor any more.
    to: Option<Arc<dyn RemoteRegion>>,
    waiting: VecDeque<Passing>,
    /// How many messages wait, for their senders.
    backlog: Arc<AtomicUsize>,
}

impl Forwarder {
    /// A forwarder to where the region has gone, with messages that came before; `backlog` tells senders how
    /// many wait.
    pub(in crate::actor::region) fn new(
        to: Option<Arc<dyn RemoteRegion>>,
        waiting: VecDeque<Passing>,
        backlog: Arc<AtomicUsize>,
    ) -> Forwarder {
        Forwarder { to, waiting, backlog }
    }

    /// Passes a message on, after all that wait.
    pub(in crate::actor::region) fn pass_on(&mut self, passing: Passing) {
        let lost = mutants::has(Mutant::NothingPassed) && matches!(passing, Passing::Message(_));
        if self.to.is_some() && !lost {
            self.waiting.push_back(passing);
            self.try_again();
        }
    }

    /// Passes on as much as there is room for.
    pub(in crate::actor::region) fn try_again(&mut self) {
        self.pass();
        self.backlog.store(self.waiting.len(), Relaxed);
    }

    fn pass(&mut self) {
        let Some(to) = &self.to else { return };
        while let Some(passing) = self.waiting.pop_front() {
            match to.pass_on(passing) {
                Ok(()) => {}
                Err(SendError::Full(passing)) => return self.waiting.push_front(passing),
                // The region's next owner is told everything anew.
                Err(SendError::Closed(_)) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::actor::address::ToRegion;
    use crate::scene::EntityId;
    use crate::scene::messages::Input;

    /// A process that takes nothing until it is told to.
    #[derive(Debug, Default)]
    struct Slow {
        takes: AtomicBool,
        taken: AtomicUsize,
    }

    impl RemoteRegion for Slow {
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
    fn waiting_messages_are_counted_for_senders_and_none_is_lost() {
        let (to, backlog) = (Arc::new(Slow::default()), Arc::new(AtomicUsize::new(0)));
        let (waiting, shared) = (VecDeque::new(), backlog.clone());
        let mut forwarder = Forwarder { to: Some(to.clone()), waiting, backlog: shared };
        for n in 0..PASSING {
            let input = Input::Leave(EntityId(n as u64));
            forwarder.pass_on(Passing::Message(ToRegion { input, client: None }));
        }
        assert_eq!(backlog.load(Relaxed), PASSING, "from here on peers keep what they have");
        to.takes.store(true, Relaxed);
        forwarder.try_again();
        assert_eq!((backlog.load(Relaxed), to.taken.load(Relaxed)), (0, PASSING));
    }
}

//! How a region's actor is asked to leave, and says what the region was.
//!
//! ```text
//! the caller                    the actor
//!   Depart ───────────────────────►
//!                                 between two ticks: does the caller still wait?
//!   ◄──────────────────── it leaves          no: it stays, as if it had not been asked
//!   ◄────────────── what it was
//! ```
//!
//! Two answers, so that nothing has to be undone: after the first answer there is no way back, and before it
//! nothing has changed. The second answer follows at once.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use actix::Message;
use futures::channel::oneshot;
use futures::future::{Either, select};

use crate::actor::address::RemoteRegion;
use crate::actor::messages::Departure;

/// Ends a region's life here at the end of a tick, and has its actor pass on what still comes for it.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Depart {
    to: Option<Arc<dyn RemoteRegion>>,
    tell: oneshot::Sender<oneshot::Receiver<Departure>>,
}

impl Depart {
    /// To go to another process; `None`: nowhere, and then nothing is passed on.
    pub fn new(to: Option<Arc<dyn RemoteRegion>>) -> (Depart, Departing) {
        let (tell, told) = oneshot::channel();
        (Depart { to, tell }, Departing(told))
    }

    /// Whether the caller has given up.
    pub(in crate::actor::region) fn is_forgotten(&self) -> bool {
        self.tell.is_canceled()
    }

    /// The region leaves from now on. `None` when the caller has given up: then the region stays.
    pub(in crate::actor::region) fn begin(self) -> Option<Leaving> {
        let (tell, told) = oneshot::channel();
        self.tell.send(told).ok()?;
        Some(Leaving { to: self.to, tell })
    }
}

/// A region that leaves, and has not said yet what it was.
pub(in crate::actor::region) struct Leaving {
    pub(in crate::actor::region) to: Option<Arc<dyn RemoteRegion>>,
    pub(in crate::actor::region) tell: oneshot::Sender<Departure>,
}

/// The caller's end of a request to leave. If it is dropped before the region has begun to leave, the region
/// stays.
pub struct Departing(oneshot::Receiver<oneshot::Receiver<Departure>>);

impl fmt::Debug for Departing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Departing")
    }
}

impl Departing {
    /// What the region was, once it has left. `None` when it stays: it had not begun to leave when
    /// `too_late` was over, or its actor is no more.
    pub async fn unless(mut self, too_late: impl Future<Output = ()>) -> Option<Departure> {
        let told = match select(&mut self.0, pin!(too_late)).await {
            Either::Left((told, _)) => told.ok(),
            Either::Right(_) => {
                // It may have begun in this very moment.
                self.0.close();
                self.0.try_recv().ok().flatten()
            }
        };
        told?.await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{Region, RegionId, Scene, SceneId, SceneSpec};
    use crate::wire::peer::ActorState;

    #[test]
    fn a_caller_that_gives_up_just_as_the_region_leaves_still_gets_it() {
        let scene = Scene::new(SceneId(0), SceneSpec::default(), 100, RegionId(0)).unwrap();
        let region = Region::new(Arc::new(scene), RegionId(0)).unwrap();
        let snapshot = region.freeze().unwrap();
        let actor_state = ActorState { clients: vec![], outbox: vec![], notices: vec![] };
        let departure = Departure { snapshot, checkpoint: None, actor_state };
        let (depart, departing) = Depart::new(None);
        // It was looked for in vain, and begins before it is known that it is too late.
        let too_late = async {
            let leaving = depart.begin().expect("a caller waits");
            assert!(leaving.tell.send(departure).is_ok(), "the caller receives the departure");
        };
        let departure = futures::executor::block_on(departing.unless(too_late));
        assert_eq!(departure.expect("what it was").snapshot.region(), RegionId(0));
    }
}

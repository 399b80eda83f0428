//! Gates in front of regions, which delay or refuse messages to them.

use std::sync::{Arc, OnceLock};

use actix::prelude::*;
use futures::channel::oneshot;
use purview::actor::messages::ToRegion;
use purview::actor::region::RegionActor;

/// Capacity of an open gate: never reached.
const ROOM: usize = 100_000;

/// A gate in front of a region. While it is shut, messages wait in a small mailbox, and are refused
/// beyond its capacity.
pub struct Gate {
    pub region: Arc<OnceLock<Addr<RegionActor>>>,
}

/// Lets nothing through until the other end is dropped.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Shut {
    /// Messages that may wait at the gate.
    pub room: usize,
    pub open: oneshot::Receiver<()>,
}

/// Answered when all earlier messages have passed.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Flush;

impl Actor for Gate {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(ROOM);
    }
}

impl Handler<ToRegion> for Gate {
    type Result = ();

    fn handle(&mut self, msg: ToRegion, _: &mut Self::Context) {
        self.region.get().expect("the regions have started").do_send(msg);
    }
}

impl Handler<Shut> for Gate {
    type Result = ();

    fn handle(&mut self, msg: Shut, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(msg.room);
        let open = actix::fut::wrap_future::<_, Self>(msg.open);
        ctx.wait(open.map(|_, _, ctx| ctx.set_mailbox_capacity(ROOM)));
    }
}

impl Handler<Flush> for Gate {
    type Result = ();

    fn handle(&mut self, _: Flush, _: &mut Self::Context) {}
}

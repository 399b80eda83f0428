//! Doors before regions, to hold up or refuse what is sent to them.

use std::sync::{Arc, OnceLock};

use actix::prelude::*;
use futures::channel::oneshot;
use purview::actor::messages::ToRegion;
use purview::actor::region::RegionActor;

/// Messages that may wait at an open gate: more than ever do.
const ROOM: usize = 100_000;

/// A region's front door, which can be shut: what is sent then waits in a small mailbox, and beyond
/// that is refused.
pub struct Gate {
    pub region: Arc<OnceLock<Addr<RegionActor>>>,
}

/// Lets nothing through until the other end is dropped.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Shut {
    /// Messages that may wait at the door.
    pub room: usize,
    pub open: oneshot::Receiver<()>,
}

/// Is answered when all that was sent before has gone through.
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

//! What operators and the process ask of a region's actor: copies of its state, steps of a layout change,
//! and its end.

use actix::{ActorContext, Context, Handler, MessageResult};

use super::RegionActor;
use crate::actor::messages::{DecideMap, Halt, Inspect, InspectEntity, ProposeMap};
use crate::scene::inspect::{InspectedEntity, RegionDetails};
use crate::scene::region::NotProposed;

impl Handler<Halt> for RegionActor {
    type Result = ();

    fn handle(&mut self, _: Halt, ctx: &mut Context<Self>) {
        ctx.stop();
    }
}

impl Handler<ProposeMap> for RegionActor {
    type Result = Result<(), NotProposed>;

    fn handle(&mut self, msg: ProposeMap, _: &mut Self::Context) -> Self::Result {
        if self.forwarder.is_some() || self.departing.is_some() {
            return Err(NotProposed::Moving);
        }
        self.region.propose(msg.scene, msg.after)
    }
}

impl Handler<DecideMap> for RegionActor {
    type Result = ();

    fn handle(&mut self, msg: DecideMap, _: &mut Self::Context) {
        let DecideMap { scene, after, comes } = msg;
        let version = scene.map.version;
        if comes && !self.region.is_remapping() && self.region.map_version() < version {
            // It was not there when the others promised.
            let after = after.max(self.region.current_tick());
            if let Err(why) = self.region.propose(scene, after) {
                return crate::log_limited!(error, region = %self.region.id(), %why, "a region cannot follow a layout change");
            }
        }
        let was_held = self.region.is_held();
        self.region.decide(version, comes, &mut self.fx);
        self.deliver();
        self.go_on_if(was_held);
    }
}

impl Handler<Inspect> for RegionActor {
    type Result = MessageResult<Inspect>;

    fn handle(&mut self, msg: Inspect, _: &mut Self::Context) -> MessageResult<Inspect> {
        let snapshot: RegionDetails = self.region.inspect(msg.plane);
        MessageResult(snapshot)
    }
}

impl Handler<InspectEntity> for RegionActor {
    type Result = Option<InspectedEntity>;

    fn handle(&mut self, msg: InspectEntity, _: &mut Self::Context) -> Option<InspectedEntity> {
        self.region.inspect_entity(msg.0)
    }
}

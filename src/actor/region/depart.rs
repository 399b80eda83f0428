//! The last state of a player that has left is stored, and then the region is told, which tells the
//! player's session.
//!
//! The region does not wait for the store. What is not stored when the region moves, or when its process
//! dies, is in the region's snapshot, and is stored from there.

use actix::{Context, Handler, Message};

use super::RegionActor;
use crate::actor::player_store::{KeptProperty, LastState};
use crate::scene::messages::Departed;
use crate::scene::properties::Level;
use crate::scene::{EntityId, Kind, Plane};

/// The last state of a player is stored.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Stored(EntityId);

impl Handler<Stored> for RegionActor {
    type Result = ();

    fn handle(&mut self, Stored(id): Stored, ctx: &mut Context<Self>) {
        if self.forwarder.is_none() {
            self.region.departed(id, &mut self.fx);
            self.deliver();
            self.depart_if_asked(ctx);
        }
    }
}

impl RegionActor {
    /// Stores the last state of a player.
    pub(super) fn store(&mut self, departed: Departed) {
        let id = departed.id;
        let (Some(store), Some(me)) = (self.directory.player_store(), self.me.clone()) else {
            return self.region.departed(id, &mut self.fx);
        };
        let stored = store.ended(id, Some(self.last_state(departed)));
        actix_rt::spawn(async move {
            stored.await;
            me.do_send(Stored(id));
        });
    }

    fn last_state(&self, departed: Departed) -> LastState {
        let Departed { as_of, plane, pos, properties, bonds, .. } = departed;
        let scene = self.directory.scene(self.region.scene_id());
        let schema = scene.as_ref().and_then(|scene| scene.schema(Kind::PLAYER));
        let persists = |level: &&Level| {
            schema.and_then(|schema| schema.get(level.id)).is_some_and(|spec| spec.persist)
        };
        let kept = |level: &Level| KeptProperty { id: level.id, value: level.value.clone() };
        let at = scene.as_ref().filter(|_| plane != Plane::LIMBO);
        LastState {
            clock_ms: as_of.0.saturating_mul(self.tick_ms.into()),
            at: at.map(|scene| (scene.spec.name.clone(), plane, pos)),
            properties: properties.levels().iter().filter(persists).map(kept).collect(),
            bonds,
            declared: schema.into_iter().flat_map(|s| s.iter().map(|spec| spec.id)).collect(),
        }
    }
}

//! The player's record, as its session knows it: the claim under which the session has the player, and what
//! the session reports now and then.
//!
//! A session without a claim reports nothing: it would overwrite what it has not read.

use std::time::Duration;

use actix::{ActorFuture, ActorFutureExt};
use actix_rt::time::Instant;

use super::{PlayerActor, Session};
use crate::actor::player_store::{
    ClaimOver, Claimed, KeptProperty, LastPosition, NotClaimed, Stamp,
};
use crate::clock;
use crate::scene::player::{End, PlayerInput, State};
use crate::scene::properties::{Level, MAX_ENTITY_BYTES, Properties, PropertyRefusal};
use crate::scene::{EntityId, Kind, Scene};
use crate::wire::FirstProperty;

/// What a session knows of its player's record.
#[derive(Debug, Default)]
pub(super) struct Record {
    claim: Option<Claim>,
    /// Whether the store is asked now.
    is_asking: bool,
    /// The place that was reported last, and when.
    kept: Option<(Instant, LastPosition)>,
}

/// The claim of a session.
#[derive(Debug)]
struct Claim {
    entity: EntityId,
    claimed: Claimed,
    /// The entity was in the world before the claim was made.
    resumes: bool,
}

impl Record {
    /// The session has claimed the record for an entity that joins.
    pub(super) fn join(&mut self, entity: EntityId, claimed: Claimed) {
        self.claim = Some(Claim { entity, claimed, resumes: false });
    }

    /// The session has claimed the record for an entity that is in the world.
    pub(super) fn resume(&mut self, entity: EntityId, claimed: Claimed) {
        self.claim = Some(Claim { entity, claimed, resumes: true });
    }

    fn before(&self) -> &[KeptProperty] {
        let kept = self.claim.as_ref().and_then(|claim| claim.claimed.kept.as_ref());
        kept.map_or(&[], |kept| &kept.place.properties)
    }
}

impl Session {
    /// Reports where the player is, now and then.
    pub(super) fn keep_position(&mut self) {
        let due = |(at, every): (Instant, Duration)| clock::now() - at >= every;
        let Some((store, subject)) = self.store() else { return };
        let last = self.record.kept.as_ref().map(|(at, _)| (*at, store.every()));
        if self.player.state() != State::InWorld || !last.is_none_or(due) {
            return;
        }
        let claim = self.record.claim.as_ref().filter(|c| c.entity == self.player.id());
        let Some(claim) = claim else { return };
        let (entity, number) = (claim.entity, claim.claimed.number);
        let tick_ms = self.directory.scenes().next().map_or(100, |scene| scene.tick_ms);
        let Some((scene, plane, pos)) = self.player.last_position(tick_ms) else { return };
        let Some(scene) = self.directory.scene(scene) else { return };
        let properties = self.persistent(&scene);
        let (scene, bonds) = (scene.spec.name.clone(), self.player.bonds().to_vec());
        let place = LastPosition { scene, plane, pos, properties, bonds };
        if self.record.kept.as_ref().is_none_or(|(_, kept)| *kept != place) {
            let clock_ms = self.player.last_tick().0.saturating_mul(tick_ms.into());
            store.keep(subject, entity, place.clone(), Stamp { number, clock_ms });
            self.record.kept = Some((clock::now(), place));
        }
    }

    /// A claim for an entity that will never be in the world ends.
    pub(super) fn release_unused(&mut self) {
        let is_over = matches!(self.player.state(), State::Greeted | State::Closed);
        if !is_over || self.is_joining || self.player.may_have_entered() {
            return;
        }
        let unused = self.record.claim.take_if(|claim| !claim.resumes);
        if let (Some(claim), Some(store)) = (unused, self.directory.player_store()) {
            // The store goes on by itself until this is safe.
            actix_rt::spawn(store.ended(claim.entity, None));
        }
    }

    /// The player's persistent properties. What was kept of properties that its present scene does not have
    /// stays as it was.
    fn persistent(&self, scene: &Scene) -> Vec<KeptProperty> {
        let before = self.record.before();
        let Some(schema) = scene.schema(Kind::PLAYER) else { return before.to_vec() };
        let others = before.iter().filter(|kept| schema.get(kept.id).is_none());
        let levels = self.player.properties().levels().iter();
        let here = levels.filter(|level| schema.get(level.id).is_some_and(|spec| spec.persist));
        let kept = |level: &Level| KeptProperty { id: level.id, value: level.value.clone() };
        others.cloned().chain(here.map(kept)).collect()
    }
}

/// The properties with which a player begins: those that were kept and may be here, and those that its
/// client says.
pub(super) fn first_properties(
    scene: &Scene,
    kept: Option<&LastPosition>,
    said: &[FirstProperty],
) -> Result<Properties, PropertyRefusal> {
    let mut properties = Properties::default();
    let Some(schema) = scene.schema(Kind::PLAYER) else { return Ok(properties) };
    for KeptProperty { id, value } in kept.map_or(&[][..], |kept| &kept.properties) {
        let persists = schema.get(*id).is_some_and(|spec| spec.persist);
        if persists && schema.check(*id, value).is_ok() {
            properties.begin_with(*id, value.clone());
        }
    }
    for FirstProperty { id, value } in said {
        schema.check_owner(*id, value)?;
        properties.begin_with(*id, value.clone());
    }
    match properties.value_bytes() > MAX_ENTITY_BYTES {
        true => Err(PropertyRefusal::Full),
        false => Ok(properties),
    }
}

impl PlayerActor {
    /// Claims the record for a player that came back while the store was away.
    pub(super) fn claim_again(
        &mut self,
    ) -> Option<impl ActorFuture<Self, Output = ()> + 'static + use<>> {
        let mut session = self.session();
        let (state, entity) = (session.player.state(), session.player.id());
        let claimed = session.record.claim.as_ref().is_some_and(|claim| claim.entity == entity);
        if state != State::InWorld || claimed || session.record.is_asking {
            return None;
        }
        let (store, subject) = session.store()?;
        let claim = store.claim(subject, entity, ClaimOver::Itself);
        session.record.is_asking = true;
        let claim = actix::fut::wrap_future::<_, Self>(claim);
        Some(claim.map(move |claimed, actor, _| actor.session().claimed_again(entity, claimed)))
    }
}

impl Session {
    fn claimed_again(&mut self, entity: EntityId, claimed: Result<Claimed, NotClaimed>) {
        self.record.is_asking = false;
        match claimed {
            Ok(claimed) => self.record.resume(entity, claimed),
            Err(NotClaimed::Away(_)) => {}
            Err(NotClaimed::Held(_)) => {
                let why = "the player has left, and its last state is stored: join anew";
                self.handle(PlayerInput::Dismiss(End::Replaced, why), None);
            }
        }
    }
}

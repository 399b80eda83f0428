//! The player's last position and persistent properties: what was kept of them when the session
//! began, and what the session keeps for the player's next join.
//!
//! Until it is known what was kept, nothing is kept: else a session would overwrite a place that it has
//! not seen.

use actix::{ActorFuture, ActorFutureExt};
use actix_rt::time::Instant;

use super::{PlayerActor, Session};
use crate::actor::last_positions::{Found, KeptProperty, LastPosition, NotFoundNow, Stamp};
use crate::clock;
use crate::scene::movement::ServerMs;
use crate::scene::properties::{Level, MAX_ENTITY_BYTES, Properties, PropertyRefusal};
use crate::scene::{Kind, Scene};
use crate::wire::FirstProperty;

/// What a session knows of its player's last position.
#[derive(Debug, Default)]
pub(super) struct PositionTracker {
    /// What was kept of the player; `None`: the store could not be read so far.
    found: Option<Found>,
    /// Whether the store is asked now.
    is_looking: bool,
    /// The place that was told last, and when.
    kept: Option<(Instant, LastPosition)>,
    /// Whether that was the last one: what comes now is another session's to tell.
    has_kept_last: bool,
}

impl PositionTracker {
    /// Whether it is known what was kept.
    pub(super) fn is_known(&self) -> bool {
        self.found.is_some()
    }

    /// The place that was kept, if one was.
    pub(super) fn found(&self) -> Option<&LastPosition> {
        self.found.as_ref()?.place.as_ref()
    }

    /// When the player was there.
    pub(super) fn left_at(&self) -> ServerMs {
        ServerMs(self.found.as_ref().map_or(0, |found| found.left_ms))
    }
}

impl Session {
    /// Tells where the player is, now and then and when it is over.
    pub(super) fn keep_position(&mut self, over: bool) {
        let Some(last_positions) = self.directory.last_positions() else { return };
        let due = |(at, _): &(Instant, LastPosition)| clock::now() - *at >= last_positions.every();
        let Some(Found { number, .. }) = self.last_position.found else { return };
        if self.last_position.has_kept_last {
            return;
        }
        self.last_position.has_kept_last = over;
        if !over && !self.last_position.kept.as_ref().is_none_or(due) {
            return;
        }
        let tick_ms = self.directory.scenes().next().map_or(100, |scene| scene.tick_ms);
        let Some((scene, plane, pos)) = self.player.last_position(tick_ms) else { return };
        let Some(scene) = self.directory.scene(scene) else { return };
        let properties = self.persistent(&scene);
        let place = LastPosition { scene: scene.spec.name.clone(), plane, pos, properties };
        if self.last_position.kept.as_ref().is_none_or(|(_, kept)| *kept != place) {
            let clock_ms = self.player.last_tick().0.saturating_mul(tick_ms.into());
            last_positions.keep(
                self.credentials.subject(),
                place.clone(),
                Stamp { number, clock_ms },
            );
            self.last_position.kept = Some((clock::now(), place));
        }
    }

    /// The player's persistent properties. What was kept of properties that its present scene does not have
    /// stays as it was.
    fn persistent(&self, scene: &Scene) -> Vec<KeptProperty> {
        let before = self.last_position.found().map_or(&[][..], |found| &found.properties);
        let Some(schema) = scene.schema(Kind::PLAYER) else { return before.to_vec() };
        let others = before.iter().filter(|kept| schema.get(kept.id).is_none());
        let levels = self.player.properties().levels().iter();
        let here = levels.filter(|level| schema.get(level.id).is_some_and(|spec| spec.persist));
        let kept = |level: &Level| KeptProperty { id: level.id, value: level.value.clone() };
        others.cloned().chain(here.map(kept)).collect()
    }

    /// The properties with which a player begins: those that were kept and may be here, and those that its
    /// client says.
    pub(super) fn first_properties(
        &self,
        scene: &Scene,
        said: Vec<FirstProperty>,
    ) -> Result<Properties, PropertyRefusal> {
        let mut properties = Properties::default();
        let Some(schema) = scene.schema(Kind::PLAYER) else { return Ok(properties) };
        let kept = self.last_position.found().map_or(&[][..], |found| &found.properties);
        for KeptProperty { id, value } in kept {
            let persists = schema.get(*id).is_some_and(|spec| spec.persist);
            if persists && schema.check(*id, value).is_ok() {
                properties.begin_with(*id, value.clone());
            }
        }
        for FirstProperty { id, value } in said {
            schema.check_owner(id, &value)?;
            properties.begin_with(id, value);
        }
        match properties.value_bytes() > MAX_ENTITY_BYTES {
            true => Err(PropertyRefusal::Full),
            false => Ok(properties),
        }
    }
}

impl PlayerActor {
    /// Asks what is kept of the player, if that is not known yet.
    pub(super) fn look_up(
        &mut self,
    ) -> Option<impl ActorFuture<Self, Output = ()> + 'static + use<>> {
        let mut session = self.session();
        if session.last_position.is_known()
            || session.last_position.is_looking
            || session.credentials.subject().is_empty()
        {
            return None;
        }
        let load = session.directory.last_positions()?.load(session.credentials.subject());
        session.last_position.is_looking = true;
        let load = actix::fut::wrap_future::<_, Self>(load);
        Some(load.map(|found, actor, _| actor.session().looked_up(found)))
    }
}

impl Session {
    fn looked_up(&mut self, found: Result<Found, NotFoundNow>) {
        self.last_position.is_looking = false;
        match found {
            Ok(found) => self.last_position.found = Some(found),
            Err(NotFoundNow { why }) => {
                tracing::debug!(session = %self.player.session(), why, "no last place");
            }
        }
    }
}

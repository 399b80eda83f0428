//! The player's last position: what was kept of it when the session began, and what the session
//! keeps for the player's next join.
//!
//! Until it is known what was kept, nothing is kept: else a session would overwrite a place that it has
//! not seen.

use actix::{ActorFuture, ActorFutureExt};
use actix_rt::time::Instant;

use super::PlayerActor;
use crate::actor::last_positions::{Found, LastPosition, NotFoundNow, Stamp};
use crate::clock;

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
}

impl PlayerActor {
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
        let place = LastPosition { scene: scene.spec.name.clone(), plane, pos };
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

    /// Asks what is kept of the player, if that is not known yet.
    pub(super) fn look_up(
        &mut self,
    ) -> Option<impl ActorFuture<Self, Output = ()> + 'static + use<>> {
        let last_positions =
            self.directory.last_positions().filter(|_| self.last_position.found.is_none())?;
        if self.last_position.is_looking || self.credentials.subject().is_empty() {
            return None;
        }
        let load =
            actix::fut::wrap_future::<_, Self>(last_positions.load(self.credentials.subject()));
        self.last_position.is_looking = true;
        Some(load.map(|found, actor, _| {
            actor.last_position.is_looking = false;
            match found {
                Ok(found) => actor.last_position.found = Some(found),
                Err(NotFoundNow { why }) => {
                    tracing::debug!(session = %actor.player.session(), why, "no last place");
                }
            }
        }))
    }
}

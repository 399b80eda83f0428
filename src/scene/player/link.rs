//! Which region owns the session's player, and what that region was told beside inputs: levels that
//! are sent again until they are known to have arrived.

use crate::scene::messages::Spawn;
use crate::scene::{EntityHandle, Epoch, RegionId};

/// Where a session's inputs go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Route {
    pub(super) region: RegionId,
    /// The entity's epoch there. Known from the first route on.
    pub(super) epoch: Option<Epoch>,
    /// Under which the region finds the player, as its last frame says.
    pub(super) handle: EntityHandle,
}

impl Route {
    /// A route to a region that has sent no frame yet.
    pub(super) fn new(region: RegionId, epoch: Option<Epoch>) -> Route {
        Route { region, epoch, handle: EntityHandle::default() }
    }
}

/// The session's link to its player's region.
#[derive(Debug, Default)]
pub(super) struct Link {
    route: Option<Route>,
    /// The region's mailbox was full: nothing is sent before the next frame, notice or timer.
    blocked: bool,
    /// What the region is asked to add, until the player lives in a region.
    entering: Option<Box<Spawn>>,
    enter_sent: bool,
    /// A region was asked, and has not refused.
    may_have_entered: bool,
    /// When the region was told that the player leaves, or that its client is disconnected.
    leave_sent_ms: Option<u64>,
}

impl Link {
    /// Where inputs go.
    pub(super) fn route(&self) -> Option<Route> {
        self.route
    }

    /// The player's epoch, once it is known.
    pub(super) fn epoch(&self) -> Option<Epoch> {
        self.route.and_then(|route| route.epoch)
    }

    /// The region is to add the player.
    pub(super) fn enter(&mut self, region: RegionId, spawn: Box<Spawn>) {
        self.route = Some(Route::new(region, None));
        self.enter_sent = false;
        self.entering = Some(spawn);
    }

    /// What the region is to add, if it was not asked yet; it counts as asked from now on.
    pub(super) fn take_enter(&mut self) -> Option<Box<Spawn>> {
        let spawn = self.entering.as_ref().filter(|_| !self.enter_sent)?;
        (self.enter_sent, self.may_have_entered) = (true, true);
        Some(spawn.clone())
    }

    /// Whether a region was asked to add the player.
    pub(super) fn was_asked_to_enter(&self) -> bool {
        self.enter_sent
    }

    /// Whether a region may have added the player.
    pub(super) fn may_have_entered(&self) -> bool {
        self.may_have_entered
    }

    /// Whether no region has the player yet.
    pub(super) fn is_entering(&self) -> bool {
        self.entering.is_some()
    }

    /// The region did not add the player.
    pub(super) fn enter_refused(&mut self) {
        (self.route, self.entering) = (None, None);
        (self.enter_sent, self.may_have_entered) = (false, false);
    }

    /// The player lives here from now on; what an earlier owner was told counts no more.
    pub(super) fn reroute(&mut self, route: Route) {
        (self.route, self.entering, self.leave_sent_ms) = (Some(route), None, None);
    }

    /// The player was found, or has gone on, here.
    pub(super) fn found(&mut self, route: Route) {
        self.route = Some(route);
    }

    /// A frame says under which handle the region finds the player.
    pub(super) fn note_handle(&mut self, handle: EntityHandle) {
        if let Some(route) = &mut self.route {
            route.handle = handle;
        }
    }

    /// The region has another owner, which may not know what the owner before was told.
    pub(super) fn owner_changed(&mut self) {
        (self.enter_sent, self.leave_sent_ms) = (false, None);
    }

    /// The region has sent a message, or time has passed: its mailbox may have room again.
    pub(super) fn unblock(&mut self) {
        self.blocked = false;
    }

    /// The region's mailbox is full.
    pub(super) fn block(&mut self) {
        self.blocked = true;
    }

    /// Whether nothing is to be sent now.
    pub(super) fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// The request to enter was not delivered.
    pub(super) fn enter_undelivered(&mut self) {
        self.enter_sent = false;
    }

    /// The region was told that the player leaves or that its client is disconnected.
    pub(super) fn told_leave(&mut self, now_ms: u64) {
        self.leave_sent_ms = Some(now_ms);
    }

    /// That was not delivered, or something else is to be told.
    pub(super) fn forget_leave(&mut self) {
        self.leave_sent_ms = None;
    }

    /// Whether the region was told.
    pub(super) fn was_told_leave(&self) -> bool {
        self.leave_sent_ms.is_some()
    }

    /// Whether the region is to be told: it was not, or not for so long.
    pub(super) fn is_to_tell_leave(&self, now_ms: u64, again_ms: u64) -> bool {
        self.leave_sent_ms.is_none_or(|sent| now_ms.saturating_sub(sent) >= again_ms)
    }
}

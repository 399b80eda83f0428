//! Takes a region's whole state: to go on elsewhere (a frozen region), or to be kept (a checkpoint).

use super::{RegionSnapshot, SavedGhost, SavedReal};
use crate::scene::messages::Input;
use crate::scene::region::Region;
use crate::scene::region::border::state_of;
use crate::scene::region::custody::Past;
use crate::scene::region::entities::{Ghost, Role};

impl Region {
    /// Ends the region's life here: everything that another needs to go on with the next tick
    /// ([`Region::restore`]). Later messages for it go to the new owner.
    ///
    /// # Errors
    /// It may not ([`Region::may_freeze`]), and is as it was.
    pub fn freeze(mut self) -> Result<RegionSnapshot, Box<Region>> {
        if !self.may_freeze() {
            return Err(Box::new(self));
        }
        let mut snapshot = self.save(true);
        snapshot.view_queue.unsent = self.take_outgoing();
        Ok(snapshot)
    }

    /// Whether the region may end its life here: no tick is open, the first one after a death was, it has said again all
    /// that its dead owner may have said in vain, and the region map does not change.
    pub fn may_freeze(&self) -> bool {
        self.clock.is_closed()
            && !self.is_recovering()
            && !self.has_handoffs_to_repeat()
            && !self.is_remapping()
    }

    /// What is to be kept in case that the region dies: everything that is of use some time later
    /// ([`Region::recover`]). In an open tick, and before the first one after a death, `None`:
    /// later.
    pub fn checkpoint(&self) -> Option<RegionSnapshot> {
        let done = self.clock.is_closed() && !self.is_recovering();
        done.then(|| self.save(false))
    }

    fn save(&self, whole: bool) -> RegionSnapshot {
        let slots = 0..self.entities.slot_count();
        let mut ghosts = Vec::new();
        let mut reals = Vec::new();
        for slot in slots {
            match self.entities.role(slot) {
                Role::Real(_) if !whole && self.is_left_out(slot) => {}
                Role::Real(_) => reals.extend(self.save_real(slot, whole)),
                Role::Ghost(ghost) if whole => ghosts.push(self.save_ghost(slot, ghost)),
                Role::Ghost(_) | Role::Free => {}
            }
        }
        // Sessions send theirs again.
        let kept =
            |input: &&Input| whole || !matches!(input, Input::Client { .. } | Input::Resume(_));
        let (inbound, swept, crashed) = self.border.save_inbound(whole);
        let searched = self.searched_commands().filter(|_| whole).map(Input::from);
        RegionSnapshot {
            scene: self.identity.scene().id,
            region: self.identity.id(),
            epoch: self.identity.epoch(),
            lineage: self.identity.lineage(),
            tick: self.clock.tick(),
            whole,
            reals,
            ghosts,
            doors: self.doors.save(),
            relations: self.entities.relations().all(),
            contents: self.save_contents(whole),
            moved: self.custody.save_moved(),
            // Commands whose entities are searched are given again where the region goes on.
            inbox: searched.chain(self.inbox.queued().filter(kept).cloned()).collect(),
            arrivals: self.inbox.entering().cloned().collect(),
            incoming: self.custody.incoming().cloned().collect(),
            view_queue: if whole { self.views.save_queue() } else { Default::default() },
            inbound,
            swept,
            crashed,
            outbound: if whole { self.border.save_outbound() } else { Vec::new() },
            escrow: self.custody.escrow().lent().cloned().collect(),
            came: self.custody.escrow().came().copied().collect(),
            unclaimed: self.unclaimed().cloned().collect(),
            recent_actions: self.recent_actions.clone(),
            group_messages: if whole { self.group_messages.clone() } else { Default::default() },
            fences: self.custody.save_fences(),
            departing: self.custody.departing().all().cloned().collect(),
            logic: self.save_logic(),
            outbox: self.outbox.save(),
        }
    }

    fn save_real(&self, slot: u32, whole: bool) -> Option<SavedReal> {
        let (body, record) = (self.entities.body(slot), self.entities.record(slot));
        let Role::Real(real) = &record.role else { return None };
        let viewer = self.views.get(body.viewer);
        let mut state = self.describe(slot, if whole { Past::AsItIs } else { Past::Left });
        if let Some(lives_in) = viewer.and_then(|v| v.came_from) {
            state.from = lives_in;
        }
        Some(SavedReal {
            state,
            frames_from: viewer.map_or(self.clock.tick(), |v| v.frames_from),
            changed: body.changed,
            cut: self.entities.moving(slot).is_some_and(|track| track.cut),
            mirrors: real.mirrors,
            restate: real.restate,
            threshold_told: real.threshold_told,
            bound: real.bound_for.map(|bound| (bound.region, bound.plane)),
            missed_from: viewer.map(|v| v.missed_from).unwrap_or_default(),
        })
    }

    fn save_ghost(&self, slot: u32, ghost: &Ghost) -> SavedGhost {
        SavedGhost {
            state: state_of(&self.entities, self.identity.scene(), slot),
            owner: ghost.owner,
            orphan_since: ghost.orphan_since,
            changed: self.entities.body(slot).changed,
        }
    }
}

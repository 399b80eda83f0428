//! Taking a region's whole state: to go on elsewhere, or to be kept.

use super::bodies::{Ghost, Role};
use super::border_out::state_of;
use super::handoff::Past;
use super::snapshot::{RegionSnapshot, SavedGhost, SavedReal};
use super::{Phase, Region};
use crate::scene::effects::Input;

impl Region {
    /// Ends the region's life here: everything that another needs to go on with the next tick
    /// ([`Region::restore`]). What comes for it afterwards is for that one.
    ///
    /// # Errors
    /// It may not ([`Region::may_freeze`]), and is as it was.
    pub fn freeze(mut self) -> Result<RegionSnapshot, Box<Region>> {
        if !self.may_freeze() {
            return Err(Box::new(self));
        }
        let mut snapshot = self.save(true);
        snapshot.mail.unsent = self.take_letters();
        Ok(snapshot)
    }

    /// Whether the region may end its life here: no tick is open, the first one after a death was, it has said again all
    /// that its dead owner may have said in vain, and the region map does not change.
    pub fn may_freeze(&self) -> bool {
        self.phase == Phase::Closed
            && !self.is_rising()
            && !self.owes_words()
            && !self.is_remapping()
    }

    /// What is to be kept in case that the region dies: everything that is of use some time later
    /// ([`Region::recover`]). In an open tick, and before the first one after a death, `None`:
    /// later.
    pub fn checkpoint(&self) -> Option<RegionSnapshot> {
        let done = self.phase == Phase::Closed && !self.is_rising();
        done.then(|| self.save(false))
    }

    fn save(&self, whole: bool) -> RegionSnapshot {
        let slots = 0..self.bodies.hot.len() as u32;
        let mut ghosts = Vec::new();
        let mut reals = Vec::new();
        for slot in slots {
            match &self.bodies.cold[slot as usize].role {
                Role::Real(_) => reals.extend(self.save_real(slot, whole)),
                Role::Ghost(ghost) if whole => ghosts.push(self.save_ghost(slot, ghost)),
                Role::Ghost(_) | Role::Free => {}
            }
        }
        // Sessions send theirs again.
        let kept =
            |input: &&Input| whole || !matches!(input, Input::Client { .. } | Input::Resume(_));
        let mut moved: Vec<_> = self.moved.iter().map(|(id, moved)| (*id, *moved)).collect();
        moved.sort_unstable_by_key(|(id, _)| *id);
        let mut fences: Vec<_> = self.fences.iter().map(|(id, epoch)| (*id, *epoch)).collect();
        fences.sort_unstable();
        RegionSnapshot {
            scene: self.scene.id,
            region: self.id,
            epoch: self.epoch,
            lineage: self.lineage,
            tick: self.tick,
            whole,
            reals,
            ghosts,
            doors: self.ground.as_ref().map(|ground| ground.save()),
            moved,
            inbox: self.inbox.iter().filter(kept).cloned().collect(),
            arrivals: self.arrivals.clone(),
            incoming: self.incoming.clone(),
            mail: if whole { self.mail.save() } else { Default::default() },
            inbound: self.inbound.save(whole),
            swept: self.inbound.swept,
            crashed: self.inbound.crashed.clone(),
            outbound: if whole { self.outbound.save() } else { Vec::new() },
            escrow: self.escrow.lent().cloned().collect(),
            came: self.escrow.came().copied().collect(),
            dormant: self.dormant().cloned().collect(),
            fences,
        }
    }

    fn save_real(&self, slot: u32, whole: bool) -> Option<SavedReal> {
        let (body, cold) = (&self.bodies.hot[slot as usize], &self.bodies.cold[slot as usize]);
        let Role::Real(real) = &cold.role else { return None };
        let viewer = self.viewers.get(body.viewer as usize);
        let mut state = self.describe(slot, if whole { Past::AsItIs } else { Past::Left });
        if let Some(home) = viewer.and_then(|v| v.came_from) {
            state.from = home;
        }
        Some(SavedReal {
            state,
            frames_from: viewer.map_or(self.tick, |v| v.frames_from),
            changed: body.changed,
            cut: self.bodies.tracks.get(slot).is_some_and(|track| track.cut),
            mirrors: real.mirrors,
            restate: real.restate,
            thr_told: real.thr_told,
            bound: real.bound_for.map(|bound| (bound.region, bound.plane)),
        })
    }

    fn save_ghost(&self, slot: u32, ghost: &Ghost) -> SavedGhost {
        SavedGhost {
            state: state_of(&self.bodies, slot),
            owner: ghost.owner,
            orphan_since: ghost.orphan_since,
            changed: self.bodies.hot[slot as usize].changed,
        }
    }
}

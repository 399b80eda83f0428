//! Entities whose moves the region judges: what their clients and the server's logic say of them, and
//! where they are in each tick.
//!
//! A judged entity that lives here has a [`Mover`]; its trajectory, and that of a ghost, is in the
//! trajectories, from which its place in every tick follows. What changes is told in two ways: a
//! *place* changes what is in range of what, a *trajectory* is what viewers and neighbours are
//! told.

use super::{EntityStore, Floor, MovingEntity, Role};
use crate::scene::messages::Handoff;
use crate::scene::messages::Refusal;
use crate::scene::messages::{Motion, Spawn};
use crate::scene::movement::{
    Accepted, Footing, Move, MoveCommand, Mover, Own, Reason, ServerMs, Trajectory,
};
use crate::scene::region::Region;
use crate::scene::{Kind, Plane, Pos, Seq, TickStamp, Tile, TileRect};

impl Region {
    /// The time of the tick that is open, by the server's clock.
    pub(in crate::scene::region) fn now(&self) -> ServerMs {
        ServerMs(self.clock.tick().0.saturating_mul(self.identity.scene().tick_ms.into()))
    }

    /// Does something with the mover of the entity at `slot`, if it has one and moves are judged.
    fn with_mover<T>(
        &mut self,
        slot: u32,
        act: impl FnOnce(&mut Mover, ServerMs, &Footing<'_, Floor<'_>>) -> T,
    ) -> Option<T> {
        let now = self.now();
        let rules = self.identity.scene().judged.as_ref()?;
        let EntityStore { hot, records, blockers, .. } = &mut self.entities;
        let obstacles = blockers.for_entity(hot[slot as usize].id);
        let tiles = self.doors.floor(self.identity.scene()).among(obstacles);
        let record = &mut records[slot as usize];
        let Role::Real(real) = &mut record.role else { return None };
        let on = Footing { tiles: &tiles, plane: record.plane, rules };
        real.mover.as_deref_mut().map(|mover| act(mover, now, &on))
    }

    /// A client's move command.
    pub(in crate::scene::region) fn take_command(
        &mut self,
        slot: u32,
        seq: Seq,
        order: &MoveCommand,
    ) -> Result<(), Refusal> {
        let outcome = self.with_mover(slot, |mover, now, on| mover.accept(now, seq, order, on));
        match outcome {
            None => Err(Refusal::WrongForm),
            Some(Ok(Accepted::Dropped)) => Ok(()),
            Some(Ok(Accepted::Kept)) => {
                self.follow_mover(slot, false);
                Ok(())
            }
            Some(Ok(Accepted::Changed)) => {
                self.follow_mover(slot, true);
                Ok(())
            }
            Some(Err(refused)) => {
                self.follow_mover(slot, true);
                self.counts.moves_refused[refused.why.index()] += 1;
                Err(Refusal::Move(refused.why))
            }
        }
    }

    /// The server's logic on an entity's movement. An entity without a trajectory has one from now on.
    pub(in crate::scene::region) fn set_in_motion(
        &mut self,
        slot: u32,
        motion: Motion,
    ) -> Result<(), Refusal> {
        if self.identity.scene().judged.is_none() {
            return Err(Refusal::WrongForm);
        }
        self.check_speed(&motion)?;
        self.give_mover(slot, None);
        let done = self.with_mover(slot, |mover, now, on| match motion {
            Motion::Walk(walk) => {
                mover.push(now, walk, on);
                Ok(true)
            }
            Motion::Stop => {
                mover.stop(now, on);
                Ok(true)
            }
            Motion::Flags(flags) => Ok(mover.set_flags(now, flags, on).is_some()),
            Motion::Speed(speed) => {
                mover.set_speed(now, speed);
                Ok(false)
            }
            Motion::Grant { id, speed_cm_s, lasts_ms } => {
                let granted = mover.grant_as(now, id, speed_cm_s, lasts_ms);
                granted.map(|()| false).map_err(|_| Refusal::Busy)
            }
            Motion::Revoke(id) => {
                mover.revoke(now, id);
                Ok(false)
            }
        });
        let changed = done.unwrap_or(Err(Refusal::WrongForm))?;
        self.follow_mover(slot, changed);
        self.views.own_is_due(&self.entities, slot);
        Ok(())
    }

    /// The borders have room for what goes at top speed and not for more.
    fn check_speed(&self, motion: &Motion) -> Result<(), Refusal> {
        let found_cm_s = match motion {
            Motion::Walk(walk) => walk.speed_cm_s(),
            Motion::Speed(speed) => *speed,
            Motion::Grant { speed_cm_s, .. } => *speed_cm_s,
            Motion::Stop | Motion::Flags(_) | Motion::Revoke(_) => 0,
        };
        let allowed_cm_s = self.identity.scene().spec.top_speed_cm_s.unsigned_abs();
        match found_cm_s > allowed_cm_s {
            true => Err(Refusal::Move(Reason::TooFast { found_cm_s, allowed_cm_s })),
            false => Ok(()),
        }
    }

    /// The entity at `slot` stands at `pos` from now on, whatever its client wishes: it was put there.
    /// Without a mover it is simply there.
    pub(in crate::scene::region) fn place_at(&mut self, slot: u32, pos: Pos) {
        let put = self.with_mover(slot, |mover, now, on| mover.correct(now, Move::stand(pos), on));
        match put {
            Some(_) => self.follow_mover(slot, true),
            None if self.entities.body(slot).pos != pos => {
                self.entities.drop_trajectory(slot);
                self.entities.set_pos(slot, pos);
                self.entities.set_changed(slot, TickStamp::of(self.clock.tick()));
            }
            None => {}
        }
    }

    /// Begins to judge the moves of the entity at `slot`: where it came with a mover by that, else by a new
    /// one. Players are judged from the start, others from when they are first set in motion.
    pub(in crate::scene::region) fn give_mover(&mut self, slot: u32, mover: Option<Box<Mover>>) {
        if self.identity.scene().judged.is_none() {
            return;
        }
        let now = self.now();
        let body = self.entities.body(slot);
        let (kind, pos) = (body.kind, body.pos);
        let speed = self.identity.scene().speed_of(kind);
        let Some(real) = self.entities.real_mut(slot) else { return };
        if mover.is_none() && real.mover.is_some() {
            return;
        }
        let is_new = mover.is_none();
        real.mover = Some(mover.unwrap_or_else(|| Box::new(Mover::new(now, pos, speed))));
        self.follow_mover(slot, is_new);
        if !is_new && !self.entities.blockers.is_empty() {
            // Where it comes from, others may have been in sight.
            self.recheck_path(slot);
        }
    }

    /// The account of a player that comes back to its last place; `None`: a new one will do.
    pub(in crate::scene::region) fn mover_of_spawn(&self, spawn: &Spawn) -> Option<Box<Mover>> {
        let scene = self.identity.scene();
        let (left, rules) = (spawn.left_at?, scene.judged.as_ref()?);
        let speed = scene.speed_of(spawn.kind);
        Some(Box::new(Mover::back((self.now(), left), spawn.pos, speed, rules)))
    }

    /// Adapts the mover of an entity from another scene to this scene: it stands, and answers to a
    /// new correction.
    pub(in crate::scene::region) fn adopt(&self, handoff: &mut Handoff) {
        let Some(rules) = self.identity.scene().judged.as_ref() else {
            handoff.mover = None;
            return;
        };
        let Spawn { kind, plane, pos, .. } = handoff.state;
        let comes_along = handoff.mover.is_some() || kind == Kind::PLAYER;
        if self.identity.is_of_this_scene(handoff) || !comes_along {
            return;
        }
        let (now, speed) = (self.now(), self.identity.scene().speed_of(kind));
        let tiles = self.doors.floor(self.identity.scene());
        let new = || Box::new(Mover::new(now, pos, speed));
        let mover = handoff.mover.get_or_insert_with(new);
        mover.stop_at(now, pos, speed, &Footing { tiles: &tiles, plane, rules });
    }

    /// Brings the track of the entity at `slot` to what its mover says, and it to its place.
    fn follow_mover(&mut self, slot: u32, changed: bool) {
        let never = ServerMs(u64::MAX);
        let told = self.with_mover(slot, |mover, _, _| (mover.trajectory(), mover.lapses_at()));
        let Some((trajectory, lapses_at)) = told else { return };
        self.entities.trajectories.set(slot, trajectory, lapses_at.unwrap_or(never));
        if changed {
            self.entities.set_changed(slot, TickStamp::of(self.clock.tick()));
            self.views.own_is_due(&self.entities, slot);
        }
        self.update_position(slot);
    }

    /// A neighbour says where an entity that it owns goes; `None`: it stands at `pos`. Says whether
    /// that is news.
    pub(in crate::scene::region) fn follow_owner(
        &mut self,
        slot: u32,
        pos: Pos,
        trajectory: Option<Trajectory>,
    ) -> bool {
        let known = self.entities.trajectory(slot);
        match trajectory {
            Some(trajectory) => {
                if known != Some(trajectory) {
                    self.entities.trajectories.set(slot, trajectory, ServerMs(u64::MAX));
                }
                self.update_position(slot);
                known != Some(trajectory)
            }
            None => {
                self.entities.drop_trajectory(slot);
                let news = self.entities.body(slot).pos != pos;
                if news {
                    self.entities.set_pos(slot, pos);
                }
                news || known.is_some()
            }
        }
    }

    /// Moves the entity at `slot` to its trajectory's present position.
    pub(in crate::scene::region) fn update_position(&mut self, slot: u32) {
        let (now, floor) = (self.now(), self.doors.floor(self.identity.scene()));
        let Some(track) = self.entities.moving(slot) else { return };
        let pos = floor.place(&track.trajectory, now);
        if self.entities.body(slot).pos != pos {
            self.entities.set_pos(slot, pos);
        }
    }

    /// Brings every moving entity to its present position, and ends trajectories for which no command has come.
    pub(in crate::scene::region) fn advance_walkers(&mut self) {
        let now = self.now();
        self.recheck_paths_to_taken(now);
        for at in 0..self.entities.trajectories.all.len() {
            let track = &mut self.entities.trajectories.all[at];
            if track.rests {
                continue;
            }
            let slot = track.slot;
            if now >= track.lapses_at {
                self.lapse(slot);
                continue;
            }
            let over = now.since(track.trajectory.start) >= track.trajectory.lasts_ms.into();
            track.rests = over;
            if over && track.cut {
                // Its client may believe that it is past the door.
                self.with_mover(slot, |mover, now, on| mover.stop(now, on));
                self.follow_mover(slot, true);
            } else {
                let floor = self.doors.floor(self.identity.scene());
                advance(&mut self.entities, &floor, at, now);
            }
        }
    }

    /// A trajectory for which no command has come ends.
    fn lapse(&mut self, slot: u32) {
        let advanced = self.with_mover(slot, |mover, now, on| mover.advance(now, on));
        self.follow_mover(slot, advanced.is_some_and(|a| a.halted));
    }

    /// Doors have turned: checks anew how far each path is clear.
    pub(in crate::scene::region) fn recheck_paths(&mut self) {
        for at in 0..self.entities.trajectories.all.len() {
            let MovingEntity { slot, rests, .. } = self.entities.trajectories.all[at];
            if !rests {
                self.recheck_path(slot);
            }
        }
    }

    /// Checks anew how far the path of the entity at `slot` is clear.
    fn recheck_path(&mut self, slot: u32) {
        if self.with_mover(slot, |mover, now, on| mover.refresh(now, on)) == Some(true) {
            self.follow_mover(slot, true);
            self.entities.set_cut(slot, true);
        }
    }

    /// Bodies have come to occupy tiles: checks those paths anew that may come there. A tile that is free again lets an
    /// entity pass with its next command, as a door that has opened does.
    fn recheck_paths_to_taken(&mut self, now: ServerMs) {
        let taken = self.entities.blockers.take_taken();
        if taken.is_empty() {
            return;
        }
        let tile_cm = self.identity.scene().tile_cm();
        for at in 0..self.entities.trajectories.all.len() {
            let track = &self.entities.trajectories.all[at];
            let slot = track.slot;
            if track.rests || !self.entities.is_real(slot) {
                continue;
            }
            let way_cm = track.way_cm(now).saturating_add(2 * tile_cm.unsigned_abs());
            let (plane, pos) = (self.entities.record(slot).plane, self.entities.body(slot).pos);
            let here = Tile::of(pos, tile_cm.max(1));
            let is_near = |(where_, tiles): &(Plane, TileRect)| {
                let middle = tiles.nearest(here).middle(tile_cm, pos.y);
                let off_cm = middle.x.abs_diff(pos.x).max(middle.z.abs_diff(pos.z));
                *where_ == plane && off_cm <= way_cm
            };
            if taken.iter().any(is_near) {
                self.recheck_path(slot);
            }
        }
    }

    /// The movement of the entity at `slot`, as its client is told; `None` where places are trusted.
    pub(in crate::scene::region) fn own_of(&self, slot: u32) -> Option<Own> {
        own_of(&self.entities, slot, self.now())
    }
}

/// The movement of the entity at `slot`, as its client is told.
pub fn own_of(entities: &EntityStore, slot: u32, now: ServerMs) -> Option<Own> {
    entities.real(slot)?.mover.as_ref().map(|mover| mover.own(now))
}

#[inline]
fn advance(entities: &mut EntityStore, floor: &Floor<'_>, at: usize, now: ServerMs) {
    let track = &entities.trajectories.all[at];
    let (slot, pos) = (track.slot, floor.place(&track.trajectory, now));
    if entities.body(slot).pos != pos {
        entities.set_pos(slot, pos);
    }
}

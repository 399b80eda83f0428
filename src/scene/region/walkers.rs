//! Entities whose moves the region judges: what their clients and the server's logic say of them, and
//! where they are in each tick.
//!
//! A judged entity that lives here has a [`Mover`]; its course, and that of a mirrored one, is in the
//! tracks, from which its place in every tick follows. What changes is told in two ways: a *place*
//! changes what is in range of whom, a *course* is what viewers and neighbours are told.

use super::Region;
use super::bodies::{Bodies, Role};
use super::tracks::Track;
use crate::scene::border::Handoff;
use crate::scene::effects::{Motion, Spawn};
use crate::scene::frames::Refusal;
use crate::scene::movement::{
    Accepted, Course, Footing, Move, MoveOrder, Mover, Open, Own, Reason, ServerMs, Tiles,
};
use crate::scene::terrain::Ground;
use crate::scene::{Kind, Plane, Pos, Scene, Seq, TickStamp, Tile};

/// What one walks on: the map, or flat and free where there is none.
#[derive(Debug, Clone, Copy)]
pub enum Floor<'a> {
    Map(&'a Ground),
    Flat(Open),
}

impl<'a> Floor<'a> {
    pub fn of(scene: &Scene, ground: &'a Option<Ground>) -> Floor<'a> {
        match ground {
            Some(ground) => Floor::Map(ground),
            None => Floor::Flat(Open { tile_cm: scene.tile_cm() }),
        }
    }

    /// A place at the ground's height.
    fn grounded(&self, pos: Pos) -> Pos {
        match self {
            Floor::Flat(_) => pos,
            Floor::Map(ground) => {
                let height = Tiles::height_cm(*ground, ground.tile_of(pos));
                Pos { y: height.unwrap_or(pos.y), ..pos }
            }
        }
    }
}

impl Tiles for Floor<'_> {
    fn tile_cm(&self) -> i32 {
        match self {
            Floor::Map(ground) => ground.tile_cm(),
            Floor::Flat(open) => open.tile_cm,
        }
    }

    fn is_free(&self, plane: Plane, tile: Tile) -> bool {
        match self {
            Floor::Map(ground) => ground.is_free(plane, tile),
            Floor::Flat(open) => open.is_free(plane, tile),
        }
    }

    fn height_cm(&self, tile: Tile) -> Option<i32> {
        match self {
            Floor::Map(ground) => Tiles::height_cm(*ground, tile),
            Floor::Flat(_) => None,
        }
    }
}

impl Region {
    /// The time of the tick that is open, by the server's clock.
    pub(super) fn now(&self) -> ServerMs {
        ServerMs(self.tick.0.saturating_mul(self.scene.tick_ms.into()))
    }

    /// Does something with the mover of the entity at `slot`, if it has one and moves are judged.
    fn with_mover<T>(
        &mut self,
        slot: u32,
        act: impl FnOnce(&mut Mover, ServerMs, &Footing<'_, Floor<'_>>) -> T,
    ) -> Option<T> {
        let now = self.now();
        let rules = self.scene.judged.as_ref()?;
        let tiles = Floor::of(&self.scene, &self.ground);
        let cold = &mut self.bodies.cold[slot as usize];
        let Role::Real(real) = &mut cold.role else { return None };
        let on = Footing { tiles: &tiles, plane: cold.plane, rules };
        real.mover.as_deref_mut().map(|mover| act(mover, now, &on))
    }

    /// A client's word.
    pub(super) fn take_word(
        &mut self,
        slot: u32,
        seq: Seq,
        order: &MoveOrder,
    ) -> Result<(), Refusal> {
        let heard = self.with_mover(slot, |mover, now, on| mover.accept(now, seq, order, on));
        match heard {
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

    /// The server's logic on an entity's movement. Whoever had no course has one from now on.
    pub(super) fn set_in_motion(&mut self, slot: u32, motion: Motion) -> Result<(), Refusal> {
        if self.scene.judged.is_none() {
            return Err(Refusal::WrongForm);
        }
        self.check_speed(&motion)?;
        self.give_mover(slot, None);
        let done = self.with_mover(slot, |mover, now, on| match motion {
            Motion::Walk(course) => {
                mover.push(now, course, on);
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
        self.own_is_due(slot);
        Ok(())
    }

    /// The borders have room for what goes at top speed and not for more.
    fn check_speed(&self, motion: &Motion) -> Result<(), Refusal> {
        let found_cm_s = match motion {
            Motion::Walk(course) => course.speed_cm_s(),
            Motion::Speed(speed) => *speed,
            Motion::Grant { speed_cm_s, .. } => *speed_cm_s,
            Motion::Stop | Motion::Flags(_) | Motion::Revoke(_) => 0,
        };
        let allowed_cm_s = self.scene.spec.top_speed_cm_s.unsigned_abs();
        match found_cm_s > allowed_cm_s {
            true => Err(Refusal::Move(Reason::TooFast { found_cm_s, allowed_cm_s })),
            false => Ok(()),
        }
    }

    /// The entity at `slot` stands at `pos` from now on, whatever its client wishes: it was put there.
    /// Without a mover it is simply there.
    pub(super) fn put(&mut self, slot: u32, pos: Pos) {
        let put = self.with_mover(slot, |mover, now, on| mover.rule(now, Move::stand(pos), on));
        match put {
            Some(_) => self.follow_mover(slot, true),
            None if self.bodies.hot[slot as usize].pos != pos => {
                self.bodies.tracks.drop(slot);
                self.bodies.set_pos(slot, pos);
                self.bodies.hot[slot as usize].changed = TickStamp::of(self.tick);
            }
            None => {}
        }
    }

    /// Begins to judge the moves of the entity at `slot`: where it came with a mover by that, else by a new
    /// one. Players are judged from the start, others from when they are first set in motion.
    pub(super) fn give_mover(&mut self, slot: u32, mover: Option<Box<Mover>>) {
        if self.scene.judged.is_none() {
            return;
        }
        let now = self.now();
        let body = &self.bodies.hot[slot as usize];
        let (kind, pos) = (body.kind, body.pos);
        let speed = self.scene.speed_of(kind);
        let Role::Real(real) = &mut self.bodies.cold[slot as usize].role else { return };
        if mover.is_none() && real.mover.is_some() {
            return;
        }
        let is_new = mover.is_none();
        real.mover = Some(mover.unwrap_or_else(|| Box::new(Mover::new(now, pos, speed))));
        self.follow_mover(slot, is_new);
    }

    /// Makes the mover of who comes from another scene one of this scene: it stands, and answers to a new
    /// ruling.
    pub(super) fn adopt(&self, handoff: &mut Handoff) {
        let Some(rules) = self.scene.judged.as_ref() else {
            handoff.mover = None;
            return;
        };
        let Spawn { kind, plane, pos, .. } = handoff.state;
        let comes_along = handoff.mover.is_some() || kind == Kind::PLAYER;
        if self.is_of_this_scene(handoff) || !comes_along {
            return;
        }
        let (now, speed) = (self.now(), self.scene.speed_of(kind));
        let tiles = Floor::of(&self.scene, &self.ground);
        let new = || Box::new(Mover::new(now, pos, speed));
        let mover = handoff.mover.get_or_insert_with(new);
        mover.settle_down(now, pos, speed, &Footing { tiles: &tiles, plane, rules });
    }

    /// Brings the track of the entity at `slot` to what its mover says, and it to its place.
    fn follow_mover(&mut self, slot: u32, changed: bool) {
        let never = ServerMs(u64::MAX);
        let told = self.with_mover(slot, |mover, _, _| (mover.course(), mover.lapses_at()));
        let Some((course, lapses_at)) = told else { return };
        self.bodies.tracks.set(slot, course, lapses_at.unwrap_or(never));
        if changed {
            self.bodies.hot[slot as usize].changed = TickStamp::of(self.tick);
            self.own_is_due(slot);
        }
        self.bring_up(slot);
    }

    fn own_is_due(&mut self, slot: u32) {
        let viewer = self.bodies.hot[slot as usize].viewer as usize;
        if let Some(viewer) = self.viewers.get_mut(viewer) {
            viewer.own_due = true;
        }
    }

    /// A neighbour's word on where an entity that it owns goes; `None`: it stands at `pos`. Says whether
    /// that is news.
    pub(super) fn follow_owner(&mut self, slot: u32, pos: Pos, course: Option<Course>) -> bool {
        let known = self.bodies.tracks.get(slot).map(|track| track.course);
        match course {
            Some(course) => {
                if known != Some(course) {
                    self.bodies.tracks.set(slot, course, ServerMs(u64::MAX));
                }
                self.bring_up(slot);
                known != Some(course)
            }
            None => {
                self.bodies.tracks.drop(slot);
                let news = self.bodies.hot[slot as usize].pos != pos;
                if news {
                    self.bodies.set_pos(slot, pos);
                }
                news || known.is_some()
            }
        }
    }

    /// Brings the entity at `slot` to where its course has come to.
    pub(super) fn bring_up(&mut self, slot: u32) {
        let (now, floor) = (self.now(), Floor::of(&self.scene, &self.ground));
        let Some(track) = self.bodies.tracks.get(slot) else { return };
        let pos = floor.grounded(track.course.position(now));
        if self.bodies.hot[slot as usize].pos != pos {
            self.bodies.set_pos(slot, pos);
        }
    }

    /// Brings everybody who walks to where it is now, and ends what no word has come for.
    pub(super) fn advance_walkers(&mut self) {
        let now = self.now();
        for at in 0..self.bodies.tracks.all.len() {
            let track = &mut self.bodies.tracks.all[at];
            if track.rests {
                continue;
            }
            let slot = track.slot;
            if now >= track.lapses_at {
                self.lapse(slot);
                continue;
            }
            let over = now.since(track.course.start) >= track.course.lasts_ms.into();
            track.rests = over;
            if over && track.cut {
                // Its client may believe that it is past the door.
                self.with_mover(slot, |mover, now, on| mover.stop(now, on));
                self.follow_mover(slot, true);
            } else {
                let floor = Floor::of(&self.scene, &self.ground);
                advance(&mut self.bodies, &floor, at, now);
            }
        }
    }

    /// A walk for which no word has come ends.
    fn lapse(&mut self, slot: u32) {
        let advanced = self.with_mover(slot, |mover, now, on| mover.advance(now, on));
        self.follow_mover(slot, advanced.is_some_and(|a| a.halted));
    }

    /// Doors have turned: looks how far everybody's way is clear now.
    pub(super) fn look_at_ways(&mut self) {
        for at in 0..self.bodies.tracks.all.len() {
            let Track { slot, rests, .. } = self.bodies.tracks.all[at];
            if rests {
                continue;
            }
            if self.with_mover(slot, |mover, now, on| mover.look(now, on)) == Some(true) {
                self.follow_mover(slot, true);
                self.bodies.tracks.all[at].cut = true;
            }
        }
    }

    /// The movement of the entity at `slot`, as its client is told; `None` where places are trusted.
    pub(super) fn own_of(&self, slot: u32) -> Option<Own> {
        own_of(&self.bodies, slot, self.now())
    }
}

/// The movement of the entity at `slot`, as its client is told.
pub fn own_of(bodies: &Bodies, slot: u32, now: ServerMs) -> Option<Own> {
    match &bodies.cold[slot as usize].role {
        Role::Real(real) => real.mover.as_ref().map(|mover| mover.own(now)),
        Role::Ghost(_) | Role::Free => None,
    }
}

#[inline]
fn advance(bodies: &mut Bodies, floor: &Floor<'_>, at: usize, now: ServerMs) {
    let track = &bodies.tracks.all[at];
    let (slot, pos) = (track.slot, floor.grounded(track.course.position(now)));
    if bodies.hot[slot as usize].pos != pos {
        bodies.set_pos(slot, pos);
    }
}

//! What viewers were told of each entity's movement, and how wrong each of these tellings is by now.
//!
//! The frame builder calls [`Histories::bring_up`] once per tick and then asks, for each viewer of a changed
//! entity, how far off the viewer shows the entity. Viewers are not kept here: the tick of which a viewer
//! was last told says which trajectory that was.
//!
//! Where moves are judged, viewers are told the entity's own trajectories. Where positions are trusted, they are
//! told a position and a velocity estimated here. Such a trajectory holds until the entity is farther from it than
//! half of the least tolerance: only then is there something to tell.

use super::estimate::PastPositions;
use crate::scene::messages::Moving;
use crate::scene::movement::{Move, ServerMs, Trajectory, Vector};
use crate::scene::region::entities::{EntityStore, Renumbering};
use crate::scene::spec::UpdateError;
use crate::scene::{EntityId, Pos, Scene, Tick, TickStamp};

/// Trajectories that are kept of an entity. A viewer that was told an older one is told anew at once.
const KEPT: usize = 12;

const NONE: u32 = u32::MAX;

/// The squared error of a trajectory that is not kept any more.
pub const UNKNOWN: u64 = u64::MAX;

/// What was told of one entity, the newest first.
#[derive(Debug, Clone)]
struct Told {
    len: usize,
    /// From which tick on.
    since: [TickStamp; KEPT],
    /// How far off a viewer is now that was told this, square centimetres.
    error2: [u64; KEPT],
    trajectories: [Trajectory; KEPT],
}

/// An entity that has moved since it came.
#[derive(Debug, Clone)]
struct EntityHistory {
    told: Told,
    slot: u32,
    id: EntityId,
    past: PastPositions,
    /// In the last tick it was a step ahead or behind, as if a message of its client had come early or late.
    was_late: bool,
    /// It may change, or viewers may show it where it is not.
    active: bool,
}

/// Of one tick, what is the same for all entities.
#[derive(Debug, Clone, Copy)]
struct Now {
    tick: TickStamp,
    ms: ServerMs,
    tick_ms: u32,
    /// How long a viewer may wait for an update by the rates, ticks.
    longest: u32,
    /// A longer step within a tick is no walk, centimetres.
    jump_cm: i64,
    /// How far a trusted position may be from the trajectory that is told, squared, square centimetres.
    slack2: u64,
    judged: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Histories {
    rule: Option<UpdateError>,
    judged: bool,
    /// By slot: the place in `all`.
    of: Vec<u32>,
    all: Vec<EntityHistory>,
    /// Places in `all` of the entities that are active.
    active: Vec<u32>,
    stirred: Vec<u32>,
}

impl Told {
    fn of(since: TickStamp, trajectory: Trajectory) -> Told {
        Told { len: 1, since: [since; KEPT], error2: [0; KEPT], trajectories: [trajectory; KEPT] }
    }

    fn push(&mut self, since: TickStamp, trajectory: Trajectory) {
        if self.since[0] != since {
            self.len = (self.len + 1).min(KEPT);
            self.since.copy_within(..KEPT - 1, 1);
            self.trajectories.copy_within(..KEPT - 1, 1);
        }
        (self.since[0], self.trajectories[0]) = (since, trajectory);
    }

    /// Forgets what every viewer that was told it is owed an update for anyway.
    fn forget(&mut self, now: &Now) {
        let owed = |since: TickStamp| now.tick.ticks_since(since) >= now.longest;
        while self.len > 1 && owed(self.since[self.len - 2]) {
            self.len -= 1;
        }
    }

    /// Finds how far each trajectory is from where the entity is.
    fn measure(&mut self, now: &Now, pos: Pos) {
        let is = if now.judged { self.trajectories[0].position(now.ms) } else { pos };
        for i in 0..self.len {
            let shown = self.trajectories[i].position(now.ms);
            let rise = u64::from(shown.y.abs_diff(is.y)).pow(2);
            // In a judged scene the height is that of the ground, for viewers too.
            let rise = if now.judged { 0 } else { rise };
            self.error2[i] = shown.dist2(is).saturating_add(rise);
        }
    }

    #[inline]
    fn error2(&self, sent: TickStamp) -> u64 {
        let told = self.since[..self.len].iter().position(|since| !since.is_after(sent));
        told.map_or(UNKNOWN, |i| self.error2[i])
    }
}

impl EntityHistory {
    fn new(slot: u32, id: EntityId, pos: Pos, now: &Now) -> EntityHistory {
        let told = Told::of(now.tick, stand(pos, now));
        EntityHistory {
            told,
            slot,
            id,
            past: PastPositions::of(pos),
            was_late: false,
            active: false,
        }
    }

    /// Takes the trajectory that the entity has in a scene that judges moves.
    fn follow_judged(&mut self, trajectory: Option<Trajectory>, pos: Pos, now: &Now) {
        let newest = self.told.trajectories[0];
        let standing = newest.motion == Move::stand(pos);
        let next = match trajectory {
            None if standing => newest,
            None => stand(pos, now),
            Some(trajectory) => trajectory,
        };
        if next != newest {
            self.told.push(now.tick, next);
        }
    }

    /// Estimates how the entity moves on, in a scene that trusts positions. Says whether that is news.
    fn follow_trusted(&mut self, pos: Pos, now: &Now) -> bool {
        let newest = &self.told.trajectories[0];
        let shown = newest.position(now.ms);
        let rise = u64::from(shown.y.abs_diff(pos.y)).pow(2);
        let strayed = shown.dist2(pos).saturating_add(rise) > now.slack2;
        let stands = newest.motion.is_standing();
        let rests = self.past.rests_at(pos) || (stands && self.past.last() == pos);
        let late = strayed && !self.was_late && now.is_a_step_late(&newest.motion, shown, pos);
        self.was_late = late;
        let news = (strayed && !late) || (rests && !(stands && shown == pos));
        if news {
            let (vx, vz) = self.past.velocity(pos, now.tick_ms, now.jump_cm);
            let vector = Vector {
                vx_mm_s: vx.saturating_mul(10),
                vz_mm_s: vz.saturating_mul(10),
                ..Vector::stand(pos)
            };
            let motion = Move::Vector(vector);
            let trajectory = Trajectory { motion, start: now.ms, lasts_ms: u32::MAX };
            self.told.push(now.tick, trajectory);
        }
        self.past.push(pos, now.jump_cm);
        news
    }

    /// Whether every viewer has been told where it stands, or is told by the rates.
    fn is_settled(&self, pos: Pos, now: &Now) -> bool {
        let newest = &self.told.trajectories[0];
        let stands = newest.position(now.ms) == pos && newest.motion.is_standing();
        self.told.len == 1 && (now.judged || (stands && self.past.rests_at(pos)))
    }
}

fn stand(pos: Pos, now: &Now) -> Trajectory {
    Trajectory { motion: Move::stand(pos), start: now.ms, lasts_ms: u32::MAX }
}

impl Histories {
    /// The tolerance in force; `None`: viewers are told by the rates alone.
    #[inline]
    pub fn rule(&self) -> Option<&UpdateError> {
        self.rule.as_ref()
    }

    /// Whether viewers were told things here that no other region knows.
    pub fn is_estimated(&self) -> bool {
        self.rule.is_some() && !self.judged
    }

    /// Takes the positions of a tick, before its frames are made.
    pub fn bring_up(&mut self, tick: Tick, scene: &Scene, entities: &mut EntityStore) {
        self.rule = scene.spec.update_error_in_force();
        self.judged = scene.judged.is_some();
        let Some(rule) = self.rule else { return };
        let now = Now::of(tick, scene, &rule);
        self.take_stirred(entities, &now);
        let mut i = 0;
        while let Some(&ix) = self.active.get(i) {
            let e = &mut self.all[ix as usize];
            if !entities.is_at(e.slot, e.id) || e.bring_up(entities, &now) {
                e.active = false;
                self.active.swap_remove(i);
            } else {
                i += 1;
            }
        }
    }

    /// Finds the entities that have changed.
    fn take_stirred(&mut self, entities: &mut EntityStore, now: &Now) {
        let mut stirred = std::mem::take(&mut self.stirred);
        entities.swap_stirred(&mut stirred);
        self.of.resize(entities.slot_count() as usize, NONE);
        for slot in stirred.drain(..) {
            if entities.is_free(slot) {
                continue;
            }
            let ix = self.place_of(slot, entities, now);
            let e = &mut self.all[ix as usize];
            if !std::mem::replace(&mut e.active, true) {
                self.active.push(ix);
            }
            if now.judged {
                let (trajectory, pos) = (entities.trajectory(slot), entities.body(slot).pos);
                e.follow_judged(trajectory, pos, now);
            }
        }
        self.stirred = stirred;
    }

    /// The place in `all` of the entity at `slot`, which may be new there.
    fn place_of(&mut self, slot: u32, entities: &mut EntityStore, now: &Now) -> u32 {
        let (id, pos) = (entities.body(slot).id, entities.body(slot).pos);
        let ix = self.of[slot as usize];
        let known = self.all.get_mut(ix as usize);
        if known.as_ref().is_some_and(|e| e.id == id) {
            return ix;
        }
        entities.set_shown(slot, now.tick);
        let new = EntityHistory::new(slot, id, pos, now);
        match known {
            Some(other) => {
                *other = EntityHistory { active: other.active, ..new };
                ix
            }
            None => {
                self.all.push(new);
                self.of[slot as usize] = self.all.len() as u32 - 1;
                self.of[slot as usize]
            }
        }
    }

    /// How far off a viewer shows the entity at `slot` that was last told of it at `sent`, squared,
    /// square centimetres.
    #[inline]
    pub fn error2(&self, slot: u32, sent: TickStamp) -> u64 {
        let ix = self.of.get(slot as usize).copied().unwrap_or(NONE);
        self.all.get(ix as usize).map_or(UNKNOWN, |e| e.told.error2(sent))
    }

    /// What viewers are told of the entity at `slot`, which is `id` and stands at `pos`: where positions
    /// are trusted.
    pub fn moving(&self, slot: u32, id: EntityId, pos: Pos, now: ServerMs) -> Moving {
        let standing = Moving::standing(id, pos);
        if !self.is_estimated() {
            return standing;
        }
        let ix = self.of.get(slot as usize).copied().unwrap_or(NONE);
        let newest = self.all.get(ix as usize).filter(|e| e.id == id);
        let newest = newest.map(|e| e.told.trajectories[0]);
        match newest.map(|trajectory| (trajectory.motion, trajectory.position(now))) {
            Some((Move::Vector(v), pos)) => {
                Moving { id, pos, vx_cm_s: v.vx_mm_s / 10, vz_cm_s: v.vz_mm_s / 10 }
            }
            _ => standing,
        }
    }

    /// Follows entities to other slots.
    pub fn renumber(&mut self, new: &Renumbering) {
        self.of.fill(NONE);
        for (ix, e) in self.all.iter_mut().enumerate() {
            new.apply(&mut e.slot);
            if let Some(of) = self.of.get_mut(e.slot as usize) {
                *of = ix as u32;
            }
        }
    }
}

impl EntityHistory {
    /// Brings the entity to this tick. Says whether it needs no more attention until it changes.
    fn bring_up(&mut self, entities: &mut EntityStore, now: &Now) -> bool {
        let pos = entities.body(self.slot).pos;
        if !now.judged && self.follow_trusted(pos, now) {
            entities.set_shown(self.slot, now.tick);
        }
        self.told.forget(now);
        self.told.measure(now, pos);
        self.is_settled(pos, now)
    }
}

impl Now {
    /// Whether a position is off what is shown by a step at most, ahead or behind on the same way: the client
    /// may have sent it a tick earlier or later. The next tick will tell.
    fn is_a_step_late(&self, motion: &Move, shown: Pos, pos: Pos) -> bool {
        let Move::Vector(v) = motion else { return false };
        let (dx, dz) =
            (i128::from(pos.x) - i128::from(shown.x), i128::from(pos.z) - i128::from(shown.z));
        let (vx, vz) = (i128::from(v.vx_mm_s), i128::from(v.vz_mm_s));
        let (off2, speed2) = (dx * dx + dz * dz, vx * vx + vz * vz);
        let across = dx * vz - dz * vx;
        // Five quarters of a step: millimetres per second times milliseconds, in ten-thousandths of a centimetre.
        let reach = 5 * i128::from(self.tick_ms);
        off2 * 40_000 * 40_000 <= speed2 * reach * reach
            && across * across <= speed2 * i128::from(self.slack2)
            && shown.y == pos.y
    }

    fn of(tick: Tick, scene: &Scene, rule: &UpdateError) -> Now {
        let (spec, tick_ms) = (&scene.spec, scene.tick_ms);
        let step_cm = i64::from(spec.top_speed_cm_s) * i64::from(tick_ms) / 1_000;
        let slack = u64::from(rule.min_cm.unsigned_abs() / 2);
        Now {
            tick: TickStamp::of(tick),
            ms: ServerMs(tick.0.saturating_mul(tick_ms.into())),
            tick_ms,
            longest: spec.rates.near.max(spec.rates.middle).max(spec.rates.far),
            // A few steps at once: a client's inputs may come in bursts.
            jump_cm: 4 * step_cm + 100,
            slack2: slack * slack,
            judged: scene.judged.is_some(),
        }
    }
}

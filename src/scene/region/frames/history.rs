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
use crate::scene::messages::{Following, Moving};
use crate::scene::movement::{Move, ServerMs, Trajectory, Vector};
use crate::scene::region::entities::{Body, EntityStore, Renumbering};
use crate::scene::spec::UpdateError;
use crate::scene::{EntityId, Pos, Scene, Tick, TickStamp};

/// Trajectories that are kept of an entity. A viewer that was told an older one is told anew at once.
const KEPT: usize = 12;

const NONE: u32 = u32::MAX;

/// The squared error of a trajectory that is not kept any more.
pub const UNKNOWN: u32 = u32::MAX;

/// When an entity's trajectories were told, the newest first, and how wrong they are: what is asked for each viewer.
#[derive(Debug, Clone, Copy)]
#[repr(align(128))]
struct SentTrajectories {
    len: u32,
    /// From which tick on.
    since: [TickStamp; KEPT],
    /// How far off a viewer is now that was told this, square centimetres, 65 m at most.
    error2: [u32; KEPT],
}

/// An entity that has moved since it came.
#[derive(Debug, Clone)]
struct EntityHistory {
    slot: u32,
    id: EntityId,
    /// What viewers are told.
    newest: Trajectory,
    past: PastPositions,
    /// In the last tick it was a step ahead or behind, as if a message of its client had come early or late.
    was_late: bool,
    /// It may change, or viewers may show it where it is not.
    active: bool,
}

/// What was told of an entity before, the newest first: as many as [`SentTrajectories`] says, but for one.
type Older = [Trajectory; KEPT - 1];

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
    /// By slot: the place in the next three.
    of: Vec<u32>,
    all: Vec<EntityHistory>,
    told: Vec<SentTrajectories>,
    older: Vec<Older>,
    /// Places in `all` of the entities that are active.
    active: Vec<u32>,
    stirred: Vec<u32>,
}

impl SentTrajectories {
    fn of(since: TickStamp) -> SentTrajectories {
        SentTrajectories { len: 1, since: [since; KEPT], error2: [0; KEPT] }
    }

    /// Something else is told from now on. Says whether what was told before counts on.
    fn push(&mut self, since: TickStamp) -> bool {
        let was_told = self.since[0] != since;
        if was_told {
            self.len = (self.len + 1).min(KEPT as u32);
            self.since.copy_within(..KEPT - 1, 1);
            self.since[0] = since;
        }
        was_told
    }

    /// Forgets what every viewer that was told it is owed an update for anyway.
    fn forget(&mut self, now: &Now) {
        let owed = |since: TickStamp| now.tick.ticks_since(since) >= now.longest;
        while self.len > 1 && owed(self.since[self.len as usize - 2]) {
            self.len -= 1;
        }
    }

    /// Finds how far each older trajectory is from where the entity is. Viewers that were told the newest have nothing
    /// to be told.
    fn measure(&mut self, now: &Now, is: Pos, older: &Older) {
        for i in 1..self.len as usize {
            let shown = older[i - 1].position(now.ms);
            // In a judged scene the height is that of the ground, for viewers too.
            let rise = if now.judged { 0 } else { u64::from(shown.y.abs_diff(is.y)).pow(2) };
            self.error2[i] = shown.dist2(is).saturating_add(rise).min(UNKNOWN as u64 - 1) as u32;
        }
    }

    /// Which a viewer has that was last told at `sent`.
    #[inline]
    fn index(&self, sent: TickStamp) -> Option<usize> {
        self.since[..self.len as usize].iter().position(|since| !since.is_after(sent))
    }

    #[inline]
    fn error2(&self, sent: TickStamp) -> u32 {
        self.index(sent).map_or(UNKNOWN, |i| self.error2[i])
    }
}

impl EntityHistory {
    fn new(slot: u32, id: EntityId, pos: Pos, now: &Now) -> EntityHistory {
        let newest = stand(pos, now);
        EntityHistory {
            slot,
            id,
            newest,
            past: PastPositions::of(pos),
            was_late: false,
            active: false,
        }
    }

    /// The trajectory that the entity has in a scene that judges moves, if it is news.
    fn judged(&self, trajectory: Option<Trajectory>, pos: Pos, now: &Now) -> Option<Trajectory> {
        let stands = self.newest.motion == Move::stand(pos);
        let next = match trajectory {
            None if stands => self.newest,
            None => stand(pos, now),
            Some(trajectory) => trajectory,
        };
        (next != self.newest).then_some(next)
    }

    /// Estimates how the entity goes on, in a scene that trusts positions, if that is news.
    fn estimate(&mut self, pos: Pos, now: &Now) -> Option<Trajectory> {
        let shown = self.newest.position(now.ms);
        let rise = u64::from(shown.y.abs_diff(pos.y)).pow(2);
        let strayed = shown.dist2(pos).saturating_add(rise) > now.slack2;
        let stands = self.newest.motion.is_standing();
        let rests = self.past.rests_at(pos) || (stands && self.past.last() == pos);
        let late = strayed && !self.was_late && now.is_a_step_late(&self.newest.motion, shown, pos);
        self.was_late = late;
        let news = (strayed && !late) || (rests && !(stands && shown == pos));
        let next = news.then(|| {
            let begun = self.newest.motion.start();
            let ticks = now.ms.since(self.newest.start) / u64::from(now.tick_ms.max(1));
            let (vx, vz) = self.past.velocity(pos, now.tick_ms, now.jump_cm, (begun, ticks));
            let vector = Vector {
                vx_mm_s: vx.saturating_mul(10),
                vz_mm_s: vz.saturating_mul(10),
                ..Vector::stand(pos)
            };
            Trajectory { motion: Move::Vector(vector), start: now.ms, lasts_ms: u32::MAX }
        });
        self.past.push(pos, now.jump_cm);
        next
    }

    /// Whether every viewer has been told where it stands, or is told by the rates.
    fn is_settled(&self, told: &SentTrajectories, pos: Pos, now: &Now) -> bool {
        let stands = self.newest.motion.is_standing() && self.newest.position(now.ms) == pos;
        told.len == 1 && (now.judged || (stands && self.past.rests_at(pos)))
    }
}

fn stand(pos: Pos, now: &Now) -> Trajectory {
    Trajectory { motion: Move::stand(pos), start: now.ms, lasts_ms: u32::MAX }
}

/// An entity that stands until another position is told.
pub fn standing(body: &Body) -> Moving {
    Moving::standing(body.id, body.pos, body.facing)
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
            if self.bring_up_entity(ix as usize, entities, &now) {
                self.all[ix as usize].active = false;
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
                let news = e.judged(trajectory, pos, now);
                self.tell(ix as usize, news, now);
            }
        }
        self.stirred = stirred;
    }

    /// The place of the entity at `slot`, which may be new there.
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
                self.told[ix as usize] = SentTrajectories::of(now.tick);
                ix
            }
            None => {
                self.older.push([new.newest; KEPT - 1]);
                self.told.push(SentTrajectories::of(now.tick));
                self.all.push(new);
                self.of[slot as usize] = self.all.len() as u32 - 1;
                self.of[slot as usize]
            }
        }
    }

    /// Viewers are told something else of the entity at `ix` from now on.
    fn tell(&mut self, ix: usize, news: Option<Trajectory>, now: &Now) {
        let Some(news) = news else { return };
        let before = std::mem::replace(&mut self.all[ix].newest, news);
        if self.told[ix].push(now.tick) {
            let older = &mut self.older[ix];
            older.copy_within(..KEPT - 2, 1);
            older[0] = before;
        }
    }

    /// Brings an entity to this tick. Says whether it needs no more attention until it changes.
    fn bring_up_entity(&mut self, ix: usize, entities: &mut EntityStore, now: &Now) -> bool {
        let e = &mut self.all[ix];
        let (slot, body) = (e.slot, entities.get(e.slot));
        let Some(pos) = body.filter(|body| body.id == e.id).map(|body| body.pos) else {
            return true;
        };
        if !now.judged {
            let news = e.estimate(pos, now);
            if news.is_some() {
                entities.set_shown(slot, now.tick);
                self.tell(ix, news, now);
            }
        }
        let (e, told) = (&self.all[ix], &mut self.told[ix]);
        if told.len > 1 {
            told.forget(now);
            let is = if now.judged { e.newest.position(now.ms) } else { pos };
            told.measure(now, is, &self.older[ix]);
        }
        e.is_settled(told, pos, now)
    }

    /// How far off a viewer shows the entity at `slot` that was last told of it at `sent`, squared,
    /// square centimetres.
    #[inline]
    pub fn error2(&self, slot: u32, sent: TickStamp) -> u32 {
        let ix = self.of.get(slot as usize).copied().unwrap_or(NONE);
        self.told.get(ix as usize).map_or(UNKNOWN, |told| told.error2(sent))
    }

    /// Whether a viewer that was last told of the entity at `slot` at `sent` was told then the trajectory before the
    /// present one.
    #[inline]
    pub fn was_told_before(&self, slot: u32, sent: TickStamp) -> bool {
        let ix = self.of.get(slot as usize).copied().unwrap_or(NONE);
        self.told.get(ix as usize).is_some_and(|told| told.index(sent) == Some(1))
    }

    /// How a trajectory, which viewers of the entity at `slot` are told now, follows from the one that they were told
    /// before. `None` if it is no vector without an end of its own, or is not what is noted here.
    pub fn following(
        &self,
        slot: u32,
        trajectory: &Trajectory,
        now: ServerMs,
    ) -> Option<Following> {
        let ix = *self.of.get(slot as usize)? as usize;
        let Move::Vector(Vector { start, lasts_ms: None, .. }) = &trajectory.motion else {
            return None;
        };
        if self.all.get(ix)?.newest != *trajectory || self.told[ix].len < 2 {
            return None;
        }
        let before = self.older[ix][0].position(trajectory.start);
        let ago_ms = now.0.checked_sub(trajectory.start.0)?.try_into().ok()?;
        let offset = |from: i32, to: i32| to.checked_sub(from);
        let (x, y) = (offset(before.x, start.x)?, offset(before.y, start.y)?);
        Some(Following { offset_cm: [x, y, offset(before.z, start.z)?], ago_ms })
    }

    /// What viewers are told of the entity at `slot`, whose body is `body`: where positions are trusted.
    pub fn moving(&self, slot: u32, body: &Body, now: ServerMs) -> Moving {
        let (id, facing, standing) = (body.id, body.facing, standing(body));
        if !self.is_estimated() {
            return standing;
        }
        let ix = self.of.get(slot as usize).copied().unwrap_or(NONE);
        let newest = self.all.get(ix as usize).filter(|e| e.id == id).map(|e| e.newest);
        match newest.map(|trajectory| (trajectory.motion, trajectory.position(now))) {
            Some((Move::Vector(v), pos)) => {
                Moving { id, pos, vx_cm_s: v.vx_mm_s / 10, vz_cm_s: v.vz_mm_s / 10, facing }
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

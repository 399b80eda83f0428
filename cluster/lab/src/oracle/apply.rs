//! Applies a frame to the view of a client.

use purview::scene::movement::Trajectory;
use purview::scene::{EntityId, Kind, Pos};
use purview::wire::{Entered, Frame, JoinRules};
use rustc_hash::FxHashMap;

use super::acts::Acts;
use super::errors::{is_a_step_ahead, is_estimated, is_tolerable, off2};
use super::findings::{Fault, Log};
use super::pairs::{Waiting, pair};
use super::player::{NO_SLOT, Parted, Player, SeenEntity};
use super::rules;
use super::track::Track;
use super::{ClientId, Options, SLACK_TICKS};

/// What applying a frame reads besides the client itself.
pub(super) struct Scope<'a> {
    pub t: u64,
    pub me: &'a Track,
    pub tracks: &'a [Track],
    pub by_id: &'a FxHashMap<EntityId, u32>,
    pub players: &'a mut [Option<Player>],
    pub waiting: &'a Waiting,
    pub acts: &'a mut Acts,
    pub log: &'a mut Log,
    pub options: &'a Options,
}

impl Scope<'_> {
    fn track(&self, id: EntityId) -> Option<(u32, &Track)> {
        let slot = *self.by_id.get(&id)?;
        let track = &self.tracks[slot as usize];
        (track.id == id).then_some((slot, track))
    }

    fn contradiction(&mut self, client: ClientId, id: EntityId, what: &str) {
        self.log.fault(Fault::Lost, self.t, || format!("client {client}: {id} {what}"));
    }
}

/// Moves every visible entity with a known trajectory to its position at tick `t`.
pub(super) fn walk_on(player: &mut Player, by: &JoinRules, t: u64) {
    for entry in player.shown.values_mut() {
        if let Some(trajectory) = &entry.trajectory {
            entry.pos = rules::place(by, trajectory, t);
        }
    }
}

/// Measures how far off the players are that the client shows at tick `t`, before its frame. Not in the tick of a
/// teleport, and until it is known across a region border: it is no error that the client could not foresee it.
pub(super) fn measure(player: &Player, scope: &mut Scope<'_>) {
    let (t, me) = (scope.t, scope.me);
    let known = t.saturating_sub(scope.options.mirror_ticks);
    if me.is_held(t) || me.place.is_none() || me.has_teleported_since(known) {
        return;
    }
    for (id, entry) in &player.shown {
        let track = scope.tracks.get(entry.slot as usize).filter(|track| track.id == *id);
        let stays = |other: &&Track| other.place == me.place && !other.has_teleported_since(known);
        let Some(other) = track.filter(|other| !other.is_held(t)).filter(stays) else {
            continue;
        };
        let ring = rules::ring(me.patch, other.patch);
        scope.log.findings.errors.record(ring, off2(entry.pos, other.pos).isqrt());
    }
}

/// Applies a frame: leaves, enters, moves, actions. A contradiction is counted; the frame is applied as far as
/// possible.
pub(super) fn frame(player: &mut Player, frame: &Frame, scope: &mut Scope<'_>) {
    let acting_last: Vec<EntityId> =
        frame.leaves.iter().filter(|id| player.shown.contains_key(id)).copied().collect();
    let before =
        if frame.resync { std::mem::take(&mut player.shown) } else { FxHashMap::default() };
    for id in &frame.leaves {
        match player.shown.remove(id) {
            Some(entry) => leave(player, *id, &entry, scope),
            None => scope.contradiction(player.client, *id, "leaves without being in view"),
        }
    }
    for e in &frame.enters {
        enter(player, e, before.get(&e.id), scope);
    }
    for (id, entry) in &before {
        if !player.shown.contains_key(id) {
            leave(player, *id, entry, scope);
        }
    }
    for m in &frame.moves {
        let goes = m.trajectory(rules::time(&scope.me.rules, scope.t));
        if goes.is_some() && !is_estimated(&scope.me.rules) {
            let what = "has a velocity in a scene whose clients do not estimate";
            scope.contradiction(player.client, m.id, what);
        }
        moved(player, m.id, Pos { x: m.x, y: m.y, z: m.z }, goes, scope);
    }
    for update in &frame.trajectories {
        let (id, known) = (update.id(), player.shown.get(&update.id()));
        let before = |at| known.map_or_else(Pos::default, |entry| entry.place(at));
        let Some(trajectory) = rules::update(&scope.me.rules, update, scope.t, before) else {
            let what = "has a trajectory in a scene that trusts positions";
            scope.contradiction(player.client, id, what);
            continue;
        };
        let pos = rules::place(&scope.me.rules, &trajectory, scope.t);
        moved(player, id, pos, Some(trajectory), scope);
    }
    for a in &frame.acts {
        if !player.shown.contains_key(&a.id) && !acting_last.contains(&a.id) {
            scope.contradiction(player.client, a.id, "acts without being in view");
        }
        // What the game's logic lets an entity do no client has sent.
        let actor = scope.track(a.id).map(|(slot, _)| slot).filter(|_| !a.logic);
        if let Some(actor) = actor.and_then(|slot| scope.players[slot as usize].as_mut()) {
            let when = (scope.t, scope.options.late_ticks);
            scope.acts.received(player.client, actor, &a.payload, when, scope.log);
        }
    }
}

fn leave(player: &mut Player, id: EntityId, entry: &SeenEntity, scope: &mut Scope<'_>) {
    if entry.extra <= SLACK_TICKS {
        scope.log.findings.updates.came();
    }
    if entry.kind != Kind::PLAYER {
        return;
    }
    let (t, me) = (scope.t, scope.me);
    let (since, mirror) = (t.saturating_sub(SLACK_TICKS), scope.options.mirror_ticks);
    let known = |track: &Track| !track.was_held_since(since.saturating_sub(mirror));
    let calm = scope.track(id).is_some_and(|(_, other)| {
        me.was_near(other, (since, t), mirror)
            && known(me)
            && known(other)
            && !me.was_full_since(since)
            && !other.was_full_since(since)
    });
    player.parted.retain(|p| p.id != id);
    let lists = [me.listed, scope.track(id).map_or(0, |(_, other)| other.listed)];
    player.parted.push(Parted { id, at: t, calm, lists });
}

fn enter(player: &mut Player, e: &Entered, before: Option<&SeenEntity>, scope: &mut Scope<'_>) {
    let t = scope.t;
    let trajectory = e.trajectory.and_then(|going| rules::trajectory(&scope.me.rules, &going));
    let said = Pos { x: e.x, y: e.y, z: e.z };
    let pos = trajectory.map_or(said, |trajectory| rules::place(&scope.me.rules, &trajectory, t));
    if player.shown.contains_key(&e.id) {
        scope.contradiction(player.client, e.id, "enters while in view");
    }
    if before.is_none() && e.kind == Kind::PLAYER {
        let wait = scope.waiting.get(&pair(player.id, e.id));
        scope.log.findings.latency.record(wait.map_or(0, |w| w.since.map_or(0, |since| t - since)));
        if !wait.is_some_and(|w| w.counted) {
            scope.log.findings.updates.came();
        }
        scope.log.findings.calm.enters += 1;
        let parted = player.parted.iter().position(|p| p.id == e.id);
        let parted = parted.map(|at| player.parted.swap_remove(at));
        scope.log.findings.calm.flickers += u64::from(parted.is_some());
        if let Some(Parted { at, lists: [mine, other], .. }) = parted.filter(|parted| parted.calm) {
            let (me, id) = (player.id, e.id);
            scope.log.fault(Fault::Flicker, t, || {
                format!(
                    "{id} left the view of {me} at tick {at}, from lists of {other} and {mine}, \
                     and entered again"
                )
            });
        }
    } else if before.is_none() {
        scope.log.findings.updates.came();
    }
    let mut entry = SeenEntity {
        kind: e.kind,
        slot: NO_SLOT,
        pos,
        trajectory,
        since: before.map_or(t, |b| b.since),
        told: t,
        fresh: t,
        span: 1,
        due: None,
        stale: false,
        wrong: before.map_or(0, |b| b.wrong),
        extra: before.map_or(0, |b| b.extra),
        alone: before.map_or(0, |b| b.alone),
    };
    told(player, e.id, &mut entry, scope);
    player.shown.insert(e.id, entry);
}

fn moved(
    player: &mut Player,
    id: EntityId,
    pos: Pos,
    trajectory: Option<Trajectory>,
    scope: &mut Scope<'_>,
) {
    let Some(mut entry) = player.shown.get(&id).copied() else {
        scope.contradiction(player.client, id, "moves without being in view");
        return;
    };
    if let Some((_, other)) = scope.track(id) {
        let rate = scope.me.rate(other);
        let differs = entry.pos != other.pos || entry.pos != pos;
        if entry.due.is_some() || (differs && scope.t >= entry.told + rate) {
            scope.log.findings.updates.came();
        }
    }
    (entry.pos, entry.trajectory, entry.told, entry.due) = (pos, trajectory, scope.t, None);
    told(player, id, &mut entry, scope);
    player.shown.insert(id, entry);
}

/// Finds the age of the position that a client was just told.
fn told(player: &Player, id: EntityId, entry: &mut SeenEntity, scope: &mut Scope<'_>) {
    let t = scope.t;
    let Some((slot, other)) = scope.track(id) else { return };
    entry.slot = slot;
    entry.span = scope.me.rate(other);
    let unsure =
        other.place.is_none() || other.was_held_since(t.saturating_sub(scope.options.ack_ticks));
    let recent = t.saturating_sub(SLACK_TICKS + scope.options.mirror_ticks)..=t;
    let eye = scope.me.pos;
    let near =
        |rules| recent.clone().rev().find(|at| is_tolerable(rules, eye, entry.pos, other.at(*at)));
    let estimated = scope.me.rules.updates.as_ref().filter(|_| is_estimated(&scope.me.rules));
    let is_ahead = || {
        let ahead =
            |rules, way| recent.clone().any(|at| is_a_step_ahead(rules, eye, way, other.at(at)));
        estimated.zip(entry.trajectory.as_ref()).is_some_and(|(rules, way)| ahead(rules, way))
    };
    match other.was_at(entry.pos, t).or_else(|| estimated.and_then(near)) {
        Some(at) => (entry.fresh, entry.stale) = (at, false),
        None if unsure => (entry.fresh, entry.stale) = (t, false),
        // The next ticks must show it where it is: it counts as wrong for a while already.
        None if is_ahead() => {
            (entry.fresh, entry.stale) = (t, false);
            entry.wrong = entry.wrong.max(SLACK_TICKS);
        }
        None => {
            entry.fresh = t;
            let (client, pos, truth) = (player.client, entry.pos, other.pos);
            if !entry.stale {
                scope.log.fault(Fault::Stale, t, || {
                    format!("client {client}: {id} is shown at {pos:?}, where it never was; it is at {truth:?}")
                });
            }
            entry.stale = true;
        }
    }
}

/// Checks that a visible entity is, or lately was, where it is shown, and that updates come in time.
pub(super) fn check_fresh(
    (client, id): (ClientId, EntityId),
    entry: &mut SeenEntity,
    (me, other): (&Track, &Track),
    t: u64,
    log: &mut Log,
) {
    let rate = me.rate(other);
    let right = is_right(entry, me, other, t);
    entry.wrong = if right { 0 } else { entry.wrong + 1 };
    if entry.wrong == 2 * SLACK_TICKS + 1 {
        let (shown, truth) = (entry.pos, other.pos);
        log.fault(Fault::Stale, t, || {
            format!("client {client}: {id} is shown at {shown:?}, farther off than is tolerated; it is at {truth:?}")
        });
    }
    // While it moves, the position is the server's estimate. Where it rests, the client must know exactly.
    let foreseen = is_estimated(&me.rules) && right && other.rested(t) <= rate + SLACK_TICKS;
    if entry.pos == other.pos || foreseen {
        (entry.fresh, entry.span, entry.due, entry.stale) = (t, rate, None, false);
        return;
    }
    entry.span = entry.span.max(rate);
    let age = t - entry.fresh;
    if age > entry.span + SLACK_TICKS && !entry.stale {
        entry.stale = true;
        let (shown, truth) = (entry.pos, other.pos);
        log.fault(Fault::Stale, t, || {
            format!(
                "client {client}: {id} is shown at {shown:?} for {age} ticks; it is at {truth:?}"
            )
        });
    }
    match entry.due {
        // The entity went to a slower ring before the update was due.
        _ if t < entry.told + rate => entry.due = None,
        None => entry.due = Some(t),
        Some(due) if t > due + SLACK_TICKS => {
            log.findings.updates.expected += 1;
            (entry.due, entry.told) = (None, t);
        }
        Some(_) => {}
    }
}

/// Whether the entity is as near to its true position, of this tick or the one before, as the scene wants.
fn is_right(entry: &SeenEntity, me: &Track, other: &Track, t: u64) -> bool {
    let Some(rules) = me.rules.updates.as_ref() else { return true };
    let near = |is| is_tolerable(rules, me.pos, entry.pos, is);
    near(other.pos) || near(other.at(t.saturating_sub(1)))
}

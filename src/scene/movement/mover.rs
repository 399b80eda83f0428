//! The server's account of one entity's movement.
//!
//! The region owns one [`Mover`] per entity, passes it every move command and advances it once a
//! tick. A refused command must leave no trace except its correction, and no sequence of commands
//! may gain more way than time and the allowance permit (`tests/bounds.rs`).

use serde::{Deserialize, Serialize};

use super::debt::Debt;
use super::grants::{Speeds, TooManyGrants};
use super::last_command::LastCommand;
use super::rules::STRAY_MS;
use super::trace::check_line;
use super::vector::ceil_sqrt;
use super::walk::Walk;
use super::{
    Accepted, ClientMs, Correction, Flags, Footing, Go, GrantId, Move, MoveCommand, Own, Reason,
    RefusedCommand, Rules, ServerMs, Tiles, Trajectory,
};
use crate::scene::{Pos, Seq};

/// How far moves that begin off their places may add up, as a time at top speed, milliseconds.
const STRAYED_MS_MAX: u64 = 100;

/// Time pays for inexact starts at this fraction of the top speed: one part in 400.
const STRAY_PART: u64 = 400;

/// Microseconds of walking that one millisecond pays for: real time, plus a thousandth for drift.
const PAID_US: u64 = 1_001;

/// Smallest change of a walk's start that viewers are told, milliseconds.
const RETIME_MS: u64 = 100;

fn to_u32(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// An entity's state after a tick's movement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advanced {
    /// The position.
    pub pos: Pos,
    /// Whether the entity has just stopped because no command arrived: viewers must be told.
    pub halted: bool,
}

/// The server's account of one entity's movement: what the entity does, how fast it may move, and
/// what its client has claimed.
///
/// Two clocks run side by side. *Where* the entity was when the client sent a command is computed
/// by the client's clock, from the same numbers that the client uses. So an honest move starts
/// exactly where the previous one has come to, however late the message is. *How much* time may
/// have passed on the client's clock is bounded by the server's: claimed walking is a
/// [debt](super::Rules), paid by the time between receptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mover {
    walk: Walk,
    /// When the walk started, by the server's clock: what viewers are told.
    start: ServerMs,
    /// Whether viewers were told that the walk ended because no command arrived.
    halted: bool,
    /// Milliseconds of the walk that viewers are shown at most: its speed is granted for no longer.
    shown_ms: u32,
    speeds: Speeds,
    flags: Flags,
    correction: u32,
    last_seq: Seq,
    last_command: Option<LastCommand>,
    /// Claimed walking that time has not paid yet, microseconds.
    walked: Debt,
    /// Sum of the inexact starts that time has not paid yet, thousandths of a centimetre.
    strayed: Debt,
    /// Distance between claimed and computed start of the last move, centimetres.
    off_cm: u32,
}

impl Mover {
    /// An entity that stands at `pos`, with its own top speed.
    pub fn new(now: ServerMs, pos: Pos, speed_cm_s: u32) -> Mover {
        Mover {
            walk: Walk::stand(pos),
            start: now,
            halted: false,
            shown_ms: u32::MAX,
            speeds: Speeds::new(speed_cm_s),
            flags: Flags::NONE,
            correction: 0,
            last_seq: Seq(0),
            last_command: None,
            walked: Debt::new(now),
            strayed: Debt::new(now),
            off_cm: 0,
        }
    }

    /// An entity that comes back to `pos`, where an earlier session of its player had left it at `left`.
    /// It owes what that session might have owed at most, but for what time has paid since: so no player
    /// gains by leaving and joining again.
    pub fn back(
        (now, left): (ServerMs, ServerMs),
        pos: Pos,
        speed_cm_s: u32,
        rules: &Rules,
    ) -> Mover {
        // A clock that was set back pays from now on.
        let since = left.min(now);
        Mover {
            walked: Debt::owing(since, u64::from(rules.allowance_ms) * 1_000),
            strayed: Debt::owing(since, u64::from(speed_cm_s) * STRAYED_MS_MAX),
            ..Mover::new(now, pos, speed_cm_s)
        }
    }

    /// Applies a client's command with input number `seq` at `now`. Numbers grow; other kinds of
    /// input leave gaps.
    ///
    /// # Errors
    /// The command is refused. The entity stops where it is, and the client must be sent the
    /// correction.
    pub fn accept<T: Tiles>(
        &mut self,
        now: ServerMs,
        seq: Seq,
        order: &MoveCommand,
        on: &Footing<'_, T>,
    ) -> Result<Accepted, RefusedCommand> {
        if seq <= self.last_seq {
            return Ok(Accepted::Dropped);
        }
        self.last_seq = seq;
        if order.correction < self.correction {
            return Ok(Accepted::Dropped);
        }
        let mut next = *self;
        match next.follow(now, order, on) {
            Ok(accepted) => {
                *self = next;
                Ok(accepted)
            }
            Err(why) => Err(RefusedCommand { seq, why, correction: self.stop(now, on) }),
        }
    }

    /// The entity's own top speed, centimetres per second.
    pub fn speed_cm_s(&self) -> u32 {
        self.speeds.own_cm_s()
    }

    /// Sets the entity's own top speed. A lower one applies once the client knows of it.
    pub fn set_speed(&mut self, now: ServerMs, speed_cm_s: u32) {
        self.speeds.set_own(now, speed_cm_s);
    }

    /// Grants a speed (centimetres per second) until it is revoked, or for `lasts_ms` of walking
    /// that must start soon after the client learns of it.
    ///
    /// # Errors
    /// The entity holds too many grants; nothing was changed.
    pub fn grant(
        &mut self,
        now: ServerMs,
        speed_cm_s: u32,
        lasts_ms: Option<u32>,
    ) -> Result<GrantId, TooManyGrants> {
        self.speeds.grant(now, speed_cm_s, lasts_ms)
    }

    /// As [`Mover::grant`], with an id chosen by the caller, above 0. A grant with that id is
    /// replaced.
    ///
    /// # Errors
    /// The entity holds too many grants; nothing was changed.
    pub fn grant_as(
        &mut self,
        now: ServerMs,
        id: GrantId,
        speed_cm_s: u32,
        lasts_ms: Option<u32>,
    ) -> Result<(), TooManyGrants> {
        self.speeds.grant_as(now, id, speed_cm_s, lasts_ms)
    }

    /// Revokes a grant; it stays usable until the client knows of it. Returns whether there was
    /// such a grant without an end.
    pub fn revoke(&mut self, now: ServerMs, id: GrantId) -> bool {
        self.speeds.revoke(now, id)
    }

    /// What keeps the entity from moving.
    pub fn flags(&self) -> Flags {
        self.flags
    }

    /// Distance between claimed and computed start of the client's last move, centimetres: 0 where
    /// both sides compute alike.
    pub fn off_cm(&self) -> u32 {
        self.off_cm
    }

    /// Number of the last correction; 0 before the first.
    pub fn correction(&self) -> u32 {
        self.correction
    }

    /// The movement state that the entity's own client is sent.
    pub fn own(&self, now: ServerMs) -> Own {
        Own {
            correction: self.correction,
            trajectory: self.trajectory(),
            speed_cm_s: self.speed_cm_s(),
            flags: self.flags,
            grants: self.speeds.granted(now),
        }
    }

    /// When the walk ends unless a command arrives, by the server's clock; `None`: not before its
    /// own end.
    pub fn lapses_at(&self) -> Option<ServerMs> {
        let ms = self.walk.lapse_ms().filter(|_| !self.halted && self.walk.is_clients())?;
        Some(self.start.plus(ms + 1))
    }

    fn follow<T: Tiles>(
        &mut self,
        now: ServerMs,
        order: &MoveCommand,
        on: &Footing<'_, T>,
    ) -> Result<Accepted, Reason> {
        if order.correction > self.correction {
            return Err(Reason::UnknownCorrection {
                found: order.correction,
                last: self.correction,
            });
        }
        let was = self.trajectory();
        let last_command = self.read_clock(now, order.at, on.rules.allowance_ms)?;
        match order.go {
            Go::On => {
                // A client that computes as the server does knows that its walk has ended.
                if let Some(why) = self.walk.overrun(order.at, on) {
                    return Err(why);
                }
                self.walk.go_on(order.at, on);
                let start = last_command.at_server(&self.walk).unwrap_or(self.start);
                if start.0.abs_diff(self.start.0) >= RETIME_MS {
                    self.start = start;
                }
            }
            Go::Walk(motion) => {
                self.turn(now, motion, order.at, on)?;
                self.start = last_command.at_server(&self.walk).unwrap_or(now);
            }
        }
        self.halted = self.walk.has_lapsed(now.since(self.start));
        let is = self.trajectory();
        let stood = was.motion.is_standing() && is.motion.is_standing();
        let same = was == is || (stood && was.motion.start() == is.motion.start());
        Ok(if same { Accepted::Kept } else { Accepted::Changed })
    }

    /// Records that the client sent a command at `at` by its clock, and charges what it has walked
    /// until then.
    fn read_clock(
        &mut self,
        now: ServerMs,
        at: ClientMs,
        allowance_ms: u32,
    ) -> Result<LastCommand, Reason> {
        let last = self.last_command.unwrap_or(LastCommand::new(now, at));
        last.check(now, at)?;
        let moved_ms = self.walk.walked_since_command(at);
        self.speeds.spend(now, self.walk.motion.speed_cm_s(), moved_ms)?;
        self.speeds.command_received(now, allowance_ms);
        let owed_us = self.walked.charge(now, PAID_US, u64::from(moved_ms) * 1_000);
        let allowed_us = u64::from(allowance_ms) * 1_000;
        if owed_us > allowed_us {
            let (ahead_ms, allowed_ms) = (owed_us.div_ceil(1_000), allowance_ms.into());
            return Err(Reason::ClockAhead { ahead_ms, allowed_ms });
        }
        let last_command = last.next(now, at, allowed_us - owed_us);
        self.last_command = Some(last_command);
        Ok(last_command)
    }

    /// Starts another move.
    fn turn<T: Tiles>(
        &mut self,
        now: ServerMs,
        motion: Move,
        at: ClientMs,
        on: &Footing<'_, T>,
    ) -> Result<(), Reason> {
        let flags = self.flags;
        if !flags.is_free() && !motion.is_standing() {
            return Err(Reason::MayNotMove { flags });
        }
        if !on.rules.has_height(motion.start()) {
            return Err(Reason::OutOfBounds { at: motion.start() });
        }
        let left_ms = self.pushed_ms(now);
        if left_ms > STRAY_MS {
            return Err(Reason::Pushed { left_ms: to_u32(left_ms) });
        }
        let motion = self.at_height(motion, at, on);
        let top_cm_s = self.speeds.top_cm_s(now);
        self.check_start(now, motion.start(), at, top_cm_s, on)?;
        let found_cm_s = motion.speed_cm_s();
        if found_cm_s > top_cm_s {
            return Err(Reason::TooFast { found_cm_s, allowed_cm_s: top_cm_s });
        }
        self.walk = Walk::begin(motion, at, on)?;
        self.speeds.begin(now, found_cm_s);
        self.shown_ms = self.speeds.lasts_ms(now, found_cm_s);
        Ok(())
    }

    /// A client's move: where there are heights it stands on the ground, or stays where it was put.
    fn at_height<T: Tiles>(&self, motion: Move, at: ClientMs, on: &Footing<'_, T>) -> Move {
        let (ground, here) = (on.tiles.grounded(motion.start()), self.walk.at(at));
        let was_put = self.walk.motion.is_standing() && on.tiles.grounded(here) == ground;
        let start = if was_put { here } else { ground };
        if motion.is_standing() { motion.begun_at(start) } else { motion }
    }

    /// Checks whether a move may start at `claimed`, given where the entity is at `at`.
    fn check_start<T: Tiles>(
        &mut self,
        now: ServerMs,
        claimed: Pos,
        at: ClientMs,
        top_cm_s: u32,
        on: &Footing<'_, T>,
    ) -> Result<(), Reason> {
        let here = self.walk.at(at);
        let found_cm = ceil_sqrt(here.dist2(claimed).min(1 << 62));
        self.off_cm = to_u32(found_cm);
        if found_cm == 0 {
            return Ok(());
        }
        let allowed_cm = u64::from(top_cm_s) * STRAY_MS / 1_000;
        if found_cm > allowed_cm {
            let (found_cm, allowed_cm) = (to_u32(found_cm), to_u32(allowed_cm));
            let displaced = Reason::Displaced { found_cm, allowed_cm, at: here };
            return Err(self.walk.stop(on).unwrap_or(displaced));
        }
        let rate = u64::from(top_cm_s) / STRAY_PART;
        let owed = self.strayed.charge(now, rate, found_cm * 1_000);
        let allowed = u64::from(top_cm_s) * STRAYED_MS_MAX;
        if owed > allowed {
            let found_cm = to_u32(owed.div_ceil(1_000));
            return Err(Reason::Strayed { found_cm, allowed_cm: to_u32(allowed / 1_000) });
        }
        check_line(here, claimed, on)
    }

    /// Milliseconds for which the server still moves the entity against its client's will.
    fn pushed_ms(&self, now: ServerMs) -> u64 {
        match self.walk.is_clients() {
            true => 0,
            false => u64::from(self.walk.lasts_ms()).saturating_sub(now.since(self.start)),
        }
    }

    /// Overrides the client: from `now` on the entity follows `motion`, as far as the way is clear
    /// and for at most a minute. It stands (here or elsewhere) or is pushed. For an entity without
    /// a client this is an ordinary order.
    pub fn correct<T: Tiles>(
        &mut self,
        now: ServerMs,
        motion: Move,
        on: &Footing<'_, T>,
    ) -> Correction {
        self.halt(now, on);
        self.walk = Walk::ordered(motion, on);
        self.speeds.begin(now, 0);
        (self.start, self.halted, self.shown_ms) = (now, false, u32::MAX);
        self.correction = self.correction.saturating_add(1);
        Correction {
            number: self.correction,
            motion: self.walk.motion,
            lasts_ms: self.walk.lasts_ms(),
        }
    }

    /// As [`Mover::correct`], starting from the entity's position.
    pub fn push<T: Tiles>(
        &mut self,
        now: ServerMs,
        motion: Move,
        on: &Footing<'_, T>,
    ) -> Correction {
        let here = self.halt(now, on);
        self.correct(now, motion.begun_at(here), on)
    }

    /// The entity arrives from another scene and stands at `pos` with its own top speed. Grants of
    /// the old scene end.
    pub fn stop_at<T: Tiles>(
        &mut self,
        now: ServerMs,
        pos: Pos,
        speed_cm_s: u32,
        on: &Footing<'_, T>,
    ) -> Correction {
        self.speeds = Speeds::new(speed_cm_s);
        self.correct(now, Move::stand(pos), on)
    }

    /// The entity resumes after a restore. Its client knows correction `correction` as the last
    /// one, and perhaps another own speed and other flags.
    pub fn go_on(&mut self, now: ServerMs, correction: u32, told: Option<(u32, Flags)>) {
        self.correction = self.correction.max(correction);
        if let Some((speed_cm_s, flags)) = told {
            self.speeds.set_own(now, speed_cm_s);
            self.flags = flags;
        }
    }

    /// Stops the entity where it is.
    pub fn stop<T: Tiles>(&mut self, now: ServerMs, on: &Footing<'_, T>) -> Correction {
        let here = self.halt(now, on);
        self.correct(now, Move::stand(here), on)
    }

    /// Sets what keeps the entity from moving. If a flag is new, the entity stops, and the client
    /// must be sent the correction.
    pub fn set_flags<T: Tiles>(
        &mut self,
        now: ServerMs,
        flags: Flags,
        on: &Footing<'_, T>,
    ) -> Option<Correction> {
        let old = std::mem::replace(&mut self.flags, flags);
        let more = flags.0 & !old.0 != 0;
        more.then(|| self.stop(now, on))
    }

    /// Ends the present walk at the position that viewers see and charges the client for the part
    /// not claimed yet; earlier, if the client could not have claimed that much. Returns the
    /// position.
    fn halt<T: Tiles>(&mut self, now: ServerMs, on: &Footing<'_, T>) -> Pos {
        let shown_ms = self.shown(now);
        let stood = self.walk.motion.is_standing();
        if self.walk.is_clients() {
            let said_ms = self.walk.said();
            let allowed_us = u64::from(on.rules.allowance_ms) * 1_000;
            let room_us = self.walked.room(now, PAID_US, allowed_us);
            let more_ms = shown_ms.saturating_sub(said_ms).min(to_u32(room_us / 1_000));
            let speed = self.walk.motion.speed_cm_s();
            let more_ms = more_ms.min(self.speeds.lasts_ms(now, speed));
            // `more_ms` is limited to what the grants hold, so this cannot fail.
            let _: Result<(), Reason> = self.speeds.spend(now, speed, more_ms);
            self.walked.charge(now, PAID_US, u64::from(more_ms) * 1_000);
            self.walk = Walk::stand(self.walk.motion.position(said_ms.saturating_add(more_ms)));
        } else {
            self.walk = Walk::stand(self.walk.motion.position(shown_ms));
        }
        self.start = now;
        let here = self.walk.motion.start();
        if stood { here } else { on.tiles.grounded(here) }
    }

    /// Advances the entity to `now` without a command.
    pub fn advance<T: Tiles>(&mut self, now: ServerMs, on: &Footing<'_, T>) -> Advanced {
        let lapsed = self.walk.is_clients() && self.walk.has_lapsed(now.since(self.start));
        let halted = lapsed && !self.halted;
        self.halted |= lapsed;
        Advanced { pos: self.position(now, on), halted }
    }

    /// The entity's position at `now`, as viewers see it.
    pub fn position<T: Tiles>(&self, now: ServerMs, on: &Footing<'_, T>) -> Pos {
        self.walk.motion.position_on(on.tiles, self.shown(now))
    }

    /// Checks again whether the way is clear, as after a door has closed. A door that has opened
    /// lets the entity pass only with its next move, because the client may not know. Returns
    /// whether viewers must be told.
    pub fn refresh<T: Tiles>(&mut self, now: ServerMs, on: &Footing<'_, T>) -> bool {
        let was = self.trajectory();
        let from_ms = self.walk.walked(now.since(self.start)).max(self.walk.said());
        self.walk.check_path_again(from_ms, on);
        self.trajectory() != was
    }

    /// The trajectory that viewers are told.
    pub fn trajectory(&self) -> Trajectory {
        let end_ms = if self.halted { self.walk.walked(u64::MAX) } else { self.walk.lasts_ms() };
        Trajectory {
            motion: self.walk.motion,
            start: self.start,
            lasts_ms: end_ms.min(self.shown_ms),
        }
    }

    /// Milliseconds of the walk that viewers have seen at `now`.
    fn shown(&self, now: ServerMs) -> u32 {
        self.walk.walked(now.since(self.start)).min(self.shown_ms)
    }
}

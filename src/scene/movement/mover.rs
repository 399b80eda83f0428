//! The server's account of one entity's movement.

use serde::{Deserialize, Serialize};

use super::debt::Debt;
use super::grants::{Speeds, TooManyGrants};
use super::rules::STRAY_MS;
use super::trace::check_line;
use super::vector::ceil_sqrt;
use super::walk::Walk;
use super::{
    Accepted, ClientMs, Course, Flags, Footing, Go, GrantId, Move, MoveOrder, Own, Reason, Refused,
    Ruling, ServerMs, Tile, Tiles,
};
use crate::scene::{Pos, Seq};

/// How far moves that begin off their places may add up, as a time at top speed, milliseconds.
const STRAYED_MS_MAX: u64 = 100;

/// One part in so many of the way at top speed pays for moves that begin off their places.
const STRAY_PART: u64 = 400;

/// Microseconds of walking that a millisecond pays for: clocks that are equal, and a thousandth more.
const PAID_US: u64 = 1_001;

/// How much further than the server's a client's clock may go between two words even while the
/// entity stands: longer than any session lives without being heard, milliseconds.
const LEAP_MS_MAX: u64 = 60_000;

/// The last moment of a client's clock that is taken, so that no sum overflows: 35,000 years.
const CLIENT_MS_MAX: u64 = 1 << 50;

/// What the server tells apart in time, so that viewers are not told of less, milliseconds.
const RETIME_MS: u64 = 100;

/// One part in so many of the time that passes is taken back from how quickly words have come.
const FORGET_PART: u64 = 256;

/// What the server knows of a client's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Heard {
    /// The client's last word, by its clock and by the server's.
    word: ClientMs,
    at: ServerMs,
    /// Server's time less client's, microseconds: the least that was seen, forgotten slowly. A word that
    /// came quickly is the better one.
    shift_us: i64,
}

impl Heard {
    /// When a client's walk began, by the server's clock.
    fn at_server(&self, walk: &Walk) -> Option<ServerMs> {
        let since = walk.moment(0)?;
        let us = (since.0.min(CLIENT_MS_MAX) as i64 * 1_000).saturating_add(self.shift_us);
        Some(ServerMs(us.max(0) as u64 / 1_000))
    }
}

/// By how much the server's clock is ahead of a client's, microseconds. Both are below 2^50.
fn shift_us(now: ServerMs, at: ClientMs) -> i64 {
    (now.0.min(CLIENT_MS_MAX) as i64 - at.0.min(CLIENT_MS_MAX) as i64) * 1_000
}

fn to_u32(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Where an entity is at the end of a tick's moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advanced {
    /// The place.
    pub pos: Pos,
    /// Whether it has just stopped for want of a word: viewers must be told.
    pub halted: bool,
}

/// The server's account of one entity's movement: what it does, how fast it may, and what its client has
/// claimed.
///
/// Two times run side by side. *Where* the entity was when the client said something is computed by the
/// client's clock, from the very numbers that the client computes with; so an honest move begins
/// exactly where the last one has come to, however late the message is. *How much* time may have
/// passed by the client's clock is bounded by the server's: walking that is claimed is a [debt](super::Rules),
/// paid by the time in which it was heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mover {
    walk: Walk,
    /// When the walk began, by the server's clock: what viewers are told.
    start: ServerMs,
    /// Whether viewers were told that the walk has ended for want of a word.
    halted: bool,
    /// Milliseconds of the walk beyond which it is not shown: its speed is granted for no longer.
    shown_ms: u32,
    speeds: Speeds,
    flags: Flags,
    ruling: u32,
    last_seq: Seq,
    heard: Option<Heard>,
    /// Walking that was claimed and not yet paid, microseconds.
    walked: Debt,
    /// Ways between where moves began and where they should have, thousandths of a centimetre.
    strayed: Debt,
    /// How far the last move began from where it should have, centimetres.
    off_cm: u32,
}

impl Mover {
    /// An entity that stands at `pos`, with a top speed of its own.
    pub fn new(now: ServerMs, pos: Pos, speed_cm_s: u32) -> Mover {
        Mover {
            walk: Walk::stand(pos),
            start: now,
            halted: false,
            shown_ms: u32::MAX,
            speeds: Speeds::new(speed_cm_s),
            flags: Flags::NONE,
            ruling: 0,
            last_seq: Seq(0),
            heard: None,
            walked: Debt::new(now),
            strayed: Debt::new(now),
            off_cm: 0,
        }
    }

    /// Takes a client's word, which is numbered `seq`, at `now`. Numbers grow, with gaps where other inputs
    /// are.
    ///
    /// # Errors
    /// The move is refused: the entity stands where it is now, which the client is to be told.
    pub fn accept<T: Tiles>(
        &mut self,
        now: ServerMs,
        seq: Seq,
        order: &MoveOrder,
        on: &Footing<'_, T>,
    ) -> Result<Accepted, Refused> {
        if seq <= self.last_seq {
            return Ok(Accepted::Dropped);
        }
        self.last_seq = seq;
        if order.ruling < self.ruling {
            return Ok(Accepted::Dropped);
        }
        let mut next = *self;
        match next.follow(now, order, on) {
            Ok(accepted) => {
                *self = next;
                Ok(accepted)
            }
            Err(why) => Err(Refused { seq, why, ruling: self.stop(now, on) }),
        }
    }

    /// Its own top speed, centimetres per second.
    pub fn speed_cm_s(&self) -> u32 {
        self.speeds.own_cm_s()
    }

    /// Gives it another top speed of its own. A lower one counts from when the client has heard of it.
    pub fn set_speed(&mut self, now: ServerMs, speed_cm_s: u32) {
        self.speeds.set_own(now, speed_cm_s);
    }

    /// Grants a speed for `lasts_ms` of walking, which must begin soon after the client hears of it, or until
    /// it is revoked.
    ///
    /// # Errors
    /// It has too many grants; nothing was changed.
    pub fn grant(
        &mut self,
        now: ServerMs,
        speed_cm_s: u32,
        lasts_ms: Option<u32>,
    ) -> Result<GrantId, TooManyGrants> {
        self.speeds.grant(now, speed_cm_s, lasts_ms)
    }

    /// As [`Mover::grant`], under a name of the caller's, above 0; a grant of that name is replaced.
    ///
    /// # Errors
    /// It has too many grants; nothing was changed.
    pub fn grant_as(
        &mut self,
        now: ServerMs,
        id: GrantId,
        speed_cm_s: u32,
        lasts_ms: Option<u32>,
    ) -> Result<(), TooManyGrants> {
        self.speeds.grant_as(now, id, speed_cm_s, lasts_ms)
    }

    /// Takes a grant back from when the client has heard of it. Says whether there was such a one that
    /// had no end yet.
    pub fn revoke(&mut self, now: ServerMs, id: GrantId) -> bool {
        self.speeds.revoke(now, id)
    }

    /// What keeps it from moving.
    pub fn flags(&self) -> Flags {
        self.flags
    }

    /// How far the client's last move began from where it should have, centimetres: 0 where both sides
    /// compute alike.
    pub fn off_cm(&self) -> u32 {
        self.off_cm
    }

    /// The number of the last ruling; 0 before the first.
    pub fn ruling(&self) -> u32 {
        self.ruling
    }

    /// What its client is to know.
    pub fn own(&self, now: ServerMs) -> Own {
        Own {
            ruling: self.ruling,
            course: self.course(),
            speed_cm_s: self.speed_cm_s(),
            flags: self.flags,
            grants: self.speeds.granted(now),
        }
    }

    /// When its walk ends for want of a word, by the server's clock; `None`: not before its end.
    pub fn lapses_at(&self) -> Option<ServerMs> {
        let ms = self.walk.lapse_ms().filter(|_| !self.halted && self.walk.is_clients())?;
        Some(self.start.plus(ms + 1))
    }

    fn follow<T: Tiles>(
        &mut self,
        now: ServerMs,
        order: &MoveOrder,
        on: &Footing<'_, T>,
    ) -> Result<Accepted, Reason> {
        if order.ruling > self.ruling {
            return Err(Reason::UnknownRuling { found: order.ruling, last: self.ruling });
        }
        let was = self.course();
        let heard = self.hear(now, order.at, on.rules.allowance_ms)?;
        match order.go {
            Go::On => {
                // Whoever computes as the server does knows that it has come to an end.
                if let Some(why) = self.walk.overrun(order.at, on) {
                    return Err(why);
                }
                self.walk.go_on(order.at, on);
                let start = heard.at_server(&self.walk).unwrap_or(self.start);
                if start.0.abs_diff(self.start.0) >= RETIME_MS {
                    self.start = start;
                }
            }
            Go::Walk(course) => {
                self.turn(now, course, order.at, on)?;
                self.start = heard.at_server(&self.walk).unwrap_or(now);
            }
        }
        self.halted = self.walk.has_lapsed(now.since(self.start));
        let is = self.course();
        let stood = was.course.is_standing() && is.course.is_standing();
        let same = was == is || (stood && was.course.start() == is.course.start());
        Ok(if same { Accepted::Kept } else { Accepted::Changed })
    }

    /// Notes that the client has said something at `at` by its clock, and charges it for what it has walked
    /// until then.
    fn hear(&mut self, now: ServerMs, at: ClientMs, allowance_ms: u32) -> Result<Heard, Reason> {
        let last = self.heard.unwrap_or(Heard { word: at, at: now, shift_us: shift_us(now, at) });
        if at < last.word {
            return Err(Reason::ClockBack { by_ms: last.word.since(at) });
        }
        let passed_ms = now.since(last.at);
        let leap_ms = at.since(last.word);
        if at.0 > CLIENT_MS_MAX || leap_ms > passed_ms.saturating_add(LEAP_MS_MAX) {
            let (ahead_ms, allowed_ms) = (leap_ms.saturating_sub(passed_ms), LEAP_MS_MAX);
            return Err(Reason::ClockAhead { ahead_ms, allowed_ms });
        }
        let moved_ms = self.walk.walked_since_word(at);
        self.speeds.spend(now, self.walk.course.speed_cm_s(), moved_ms)?;
        self.speeds.heard(now, allowance_ms);
        let owed_us = self.walked.charge(now, PAID_US, u64::from(moved_ms) * 1_000);
        let allowed_us = u64::from(allowance_ms) * 1_000;
        if owed_us > allowed_us {
            let (ahead_ms, allowed_ms) = (owed_us.div_ceil(1_000), allowance_ms.into());
            return Err(Reason::ClockAhead { ahead_ms, allowed_ms });
        }
        // Not in the server's future, and not so far in its past that time would be counted twice: as
        // walking that is owed, and as walking that viewers are shown beyond the client's word.
        let latest = shift_us(now, at);
        let back_us = passed_ms.saturating_mul(1_000) / FORGET_PART;
        let forgotten = last.shift_us.saturating_add(back_us as i64);
        let shift_us = forgotten.clamp(latest - (allowed_us - owed_us) as i64, latest);
        let heard = Heard { word: at, at: now, shift_us };
        self.heard = Some(heard);
        Ok(heard)
    }

    /// Begins another move.
    fn turn<T: Tiles>(
        &mut self,
        now: ServerMs,
        course: Move,
        at: ClientMs,
        on: &Footing<'_, T>,
    ) -> Result<(), Reason> {
        let flags = self.flags;
        if !flags.is_free() && !course.is_standing() {
            return Err(Reason::MayNotMove { flags });
        }
        let left_ms = self.pushed_ms(now);
        if left_ms > STRAY_MS {
            return Err(Reason::Pushed { left_ms: to_u32(left_ms) });
        }
        let top_cm_s = self.speeds.top_cm_s(now);
        self.check_start(now, course.start(), at, top_cm_s, on)?;
        let found_cm_s = course.speed_cm_s();
        if found_cm_s > top_cm_s {
            return Err(Reason::TooFast { found_cm_s, allowed_cm_s: top_cm_s });
        }
        self.walk = Walk::begin(course, at, on)?;
        self.speeds.begin(now, found_cm_s);
        self.shown_ms = self.speeds.lasts_ms(now, found_cm_s);
        Ok(())
    }

    /// Whether a move may begin at `claimed`.
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

    /// For how many milliseconds more the server moves the entity against its client's will.
    fn pushed_ms(&self, now: ServerMs) -> u64 {
        match self.walk.is_clients() {
            true => 0,
            false => u64::from(self.walk.lasts_ms()).saturating_sub(now.since(self.start)),
        }
    }

    /// Overrules the client: the entity does this from now on, as far as its way is clear and for at most a
    /// minute: stands (where it is or elsewhere), or is pushed. For an entity without a client it is simply
    /// an order.
    pub fn rule<T: Tiles>(&mut self, now: ServerMs, course: Move, on: &Footing<'_, T>) -> Ruling {
        self.settle(now, on);
        self.walk = Walk::ordered(course, on);
        self.speeds.begin(now, 0);
        (self.start, self.halted, self.shown_ms) = (now, false, u32::MAX);
        self.ruling = self.ruling.saturating_add(1);
        Ruling { number: self.ruling, course: self.walk.course, lasts_ms: self.walk.lasts_ms() }
    }

    /// As [`Mover::rule`], from where the entity is.
    pub fn push<T: Tiles>(&mut self, now: ServerMs, course: Move, on: &Footing<'_, T>) -> Ruling {
        let here = self.settle(now, on);
        self.rule(now, course.begun_at(here), on)
    }

    /// It comes from another scene to stand at `pos`, with a top speed of its own; what it was granted
    /// there ends.
    pub fn settle_down<T: Tiles>(
        &mut self,
        now: ServerMs,
        pos: Pos,
        speed_cm_s: u32,
        on: &Footing<'_, T>,
    ) -> Ruling {
        self.speeds = Speeds::new(speed_cm_s);
        self.rule(now, Move::stand(pos), on)
    }

    /// It goes on in another life, of which its client knows `ruling` as the last one, and perhaps another
    /// speed of its own and other flags.
    pub fn go_on(&mut self, now: ServerMs, ruling: u32, told: Option<(u32, Flags)>) {
        self.ruling = self.ruling.max(ruling);
        if let Some((speed_cm_s, flags)) = told {
            self.speeds.set_own(now, speed_cm_s);
            self.flags = flags;
        }
    }

    /// Has the entity stand where it is.
    pub fn stop<T: Tiles>(&mut self, now: ServerMs, on: &Footing<'_, T>) -> Ruling {
        let here = self.settle(now, on);
        self.rule(now, Move::stand(here), on)
    }

    /// Sets what keeps the entity from moving. Where that is more than before it stops, and the client is to
    /// be told.
    pub fn set_flags<T: Tiles>(
        &mut self,
        now: ServerMs,
        flags: Flags,
        on: &Footing<'_, T>,
    ) -> Option<Ruling> {
        let old = std::mem::replace(&mut self.flags, flags);
        let more = flags.0 & !old.0 != 0;
        more.then(|| self.stop(now, on))
    }

    /// Ends the present walk where viewers see it, and charges the client for what it had not claimed yet;
    /// less far where it could not have claimed as much. Returns where that is.
    fn settle<T: Tiles>(&mut self, now: ServerMs, on: &Footing<'_, T>) -> Pos {
        let shown_ms = self.shown(now);
        if self.walk.is_clients() {
            let said_ms = self.walk.said();
            let allowed_us = u64::from(on.rules.allowance_ms) * 1_000;
            let room_us = self.walked.room(now, PAID_US, allowed_us);
            let more_ms = shown_ms.saturating_sub(said_ms).min(to_u32(room_us / 1_000));
            let speed = self.walk.course.speed_cm_s();
            let more_ms = more_ms.min(self.speeds.lasts_ms(now, speed));
            // It is no more than there is.
            let _: Result<(), Reason> = self.speeds.spend(now, speed, more_ms);
            self.walked.charge(now, PAID_US, u64::from(more_ms) * 1_000);
            self.walk = Walk::stand(self.walk.course.position(said_ms.saturating_add(more_ms)));
        } else {
            self.walk = Walk::stand(self.walk.course.position(shown_ms));
        }
        self.start = now;
        self.grounded(self.walk.course.start(), on)
    }

    /// Brings the entity to `now`: what happens when no word comes.
    pub fn advance<T: Tiles>(&mut self, now: ServerMs, on: &Footing<'_, T>) -> Advanced {
        let lapsed = self.walk.is_clients() && self.walk.has_lapsed(now.since(self.start));
        let halted = lapsed && !self.halted;
        self.halted |= lapsed;
        Advanced { pos: self.position(now, on), halted }
    }

    /// Where it is at `now`, as viewers see it.
    pub fn position<T: Tiles>(&self, now: ServerMs, on: &Footing<'_, T>) -> Pos {
        self.grounded(self.walk.course.position(self.shown(now)), on)
    }

    /// Looks anew whether its way is clear, as after a door has closed. One that has opened lets nobody
    /// through before the next move: the client may not know. Says whether viewers must be told.
    pub fn look<T: Tiles>(&mut self, now: ServerMs, on: &Footing<'_, T>) -> bool {
        let was = self.course();
        let from_ms = self.walk.walked(now.since(self.start)).max(self.walk.said());
        self.walk.look_again(from_ms, on);
        self.course() != was
    }

    /// What viewers are told.
    pub fn course(&self) -> Course {
        let end_ms = if self.halted { self.walk.walked(u64::MAX) } else { self.walk.lasts_ms() };
        Course { course: self.walk.course, start: self.start, lasts_ms: end_ms.min(self.shown_ms) }
    }

    /// Milliseconds of its walk that viewers have seen at `now`.
    fn shown(&self, now: ServerMs) -> u32 {
        self.walk.walked(now.since(self.start)).min(self.shown_ms)
    }

    fn grounded<T: Tiles>(&self, pos: Pos, on: &Footing<'_, T>) -> Pos {
        let height = on.tiles.height_cm(Tile::of(pos, on.tile_cm()));
        Pos { y: height.unwrap_or(pos.y), ..pos }
    }
}

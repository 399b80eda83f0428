//! The client's side of its own movement: predicts the position, and decides which commands to send
//! when.
//!
//! Clients own one [`Predictor`] and poll it in every frame of the game. It must never send a
//! command that an honest server refuses: it stops at the leash and follows every correction.

use std::collections::VecDeque;

use super::walk::Walk;
use super::{
    Blend, ClientMs, Correction, Footing, Go, Move, MoveCommand, Path, Rules, Steps, Tiles, Vector,
};
use crate::scene::{Pos, Seq};

/// Least time between two commands that change direction, milliseconds. A change in between is sent
/// with the next command.
const TURN_MS: u64 = 50;

/// What the player wants to do from the entity's position on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// Stand.
    Stand,
    /// Walk straight on, velocity in millimetres per second.
    Straight {
        /// Velocity to the east.
        vx_mm_s: i32,
        /// Velocity to the south.
        vz_mm_s: i32,
        /// Duration, milliseconds; `None`: until the next wish.
        lasts_ms: Option<u32>,
    },
    /// Walk tile by tile.
    Steps {
        /// The steps.
        steps: Steps,
        /// Speed, centimetres per second.
        speed_cm_s: u32,
    },
}

impl Wish {
    /// Straight on in the direction (`dx`, `dz`) at `speed_cm_s`; never faster.
    pub fn heading(dx: i32, dz: i32, speed_cm_s: u32) -> Wish {
        let Vector { vx_mm_s, vz_mm_s, .. } = Vector::heading(Pos::default(), dx, dz, speed_cm_s);
        Wish::Straight { vx_mm_s, vz_mm_s, lasts_ms: None }
    }

    fn speed_cm_s(&self) -> u32 {
        self.motion(Pos::default(), 1).speed_cm_s()
    }

    fn motion(&self, start: Pos, tile_cm: i32) -> Move {
        match *self {
            Wish::Stand => Move::stand(start),
            Wish::Straight { vx_mm_s, vz_mm_s, lasts_ms } => {
                Vector { start, vx_mm_s, vz_mm_s, lasts_ms }.into()
            }
            Wish::Steps { steps, speed_cm_s } => {
                Path::new(start, steps, speed_cm_s, tile_cm).into()
            }
        }
    }

    /// The rest of a move after `walked_ms` of it.
    fn left(motion: &Move, walked_ms: u32) -> Wish {
        match motion {
            Move::Vector(v) => {
                let lasts_ms = v.lasts_ms.map(|ms| ms.saturating_sub(walked_ms));
                Wish::Straight { vx_mm_s: v.vx_mm_s, vz_mm_s: v.vz_mm_s, lasts_ms }
            }
            Move::Path(p) => Wish::Steps { steps: p.rest(walked_ms), speed_cm_s: p.speed_cm_s() },
        }
    }
}

/// A command that the server has not acknowledged.
#[derive(Debug, Clone, Copy)]
struct Unacked {
    seq: Seq,
    /// How much the client had walked when it sent the command, milliseconds.
    walked_ms: u64,
}

/// A client's own entity: where it is by the client's account, which equals the server's until a
/// correction says otherwise. Reads no clock and opens no socket: `now` is the client's time and
/// must not decrease from call to call.
#[derive(Debug)]
pub struct Predictor {
    rules: Rules,
    walk: Walk,
    /// When the present walk, if the server ordered it, arrived.
    ordered_at: ClientMs,
    correction: u32,
    /// The next wish, not sent yet.
    wish: Option<Wish>,
    /// The present wish, as it was sent.
    said: Wish,
    /// Time of the last command.
    commanded_at: ClientMs,
    /// A stop at the leash that was not sent yet.
    stopped_at: Option<ClientMs>,
    held: bool,
    unacked: VecDeque<Unacked>,
    /// Milliseconds walked before the present walk.
    walked_ms: u64,
    blend: Blend,
}

impl Predictor {
    /// An entity that stands at `pos` by correction number `correction`.
    pub fn new(now: ClientMs, pos: Pos, correction: u32, rules: Rules, blend: Blend) -> Predictor {
        Predictor {
            rules,
            walk: Walk::stand(pos),
            ordered_at: now,
            correction,
            wish: None,
            said: Wish::Stand,
            commanded_at: ClientMs(0),
            stopped_at: None,
            held: false,
            unacked: VecDeque::new(),
            walked_ms: 0,
            blend,
        }
    }

    /// Sets what the player wants; [`Predictor::poll`] sends it.
    pub fn wish(&mut self, wish: Wish) {
        let same = self.wish.unwrap_or(self.said) == wish;
        // A wish that ends by itself can be repeated.
        let endless = matches!(wish, Wish::Stand | Wish::Straight { lasts_ms: None, .. });
        if !same || !endless {
            self.wish = Some(wish);
        }
    }

    /// The command to send at `now`, if any; send it at once as input number `seq`. Poll in every
    /// frame of the game until it returns `None`.
    pub fn poll<T: Tiles>(
        &mut self,
        now: ClientMs,
        seq: Seq,
        tiles: &T,
        plane: crate::scene::Plane,
    ) -> Option<MoveCommand> {
        let rules = self.rules;
        let on = Footing { tiles, plane, rules: &rules };
        self.keep_leash(now);
        if let Some(at) = self.stopped_at.take() {
            let stand = self.walk.motion;
            return Some(self.command(at.max(self.commanded_at), seq, Go::Walk(stand)));
        }
        if self.held || self.is_ordered(now) {
            return None;
        }
        let passed_ms = self.walk.passed(now);
        if self.walk.is_clients() && self.walk.has_lapsed(passed_ms) && self.wish.is_none() {
            // The game froze for too long, so the entity stopped: walk on from there.
            self.wish = Some(Wish::left(&self.walk.motion, self.walk.walked(passed_ms)));
        }
        let moves_on = self.wish.is_some_and(|wish| wish != Wish::Stand);
        if let Some(end) = self.walk.unsaid_end(now).filter(|_| !moves_on) {
            return Some(self.end(end, seq, &on));
        }
        if let Some(wish) = self.due(now) {
            return self.begin(now, seq, wish, &on);
        }
        let walking = self.walk.is_clients() && !self.walk.is_over(passed_ms);
        if !walking || now.since(self.commanded_at) < self.rules.command_ms.into() {
            return None;
        }
        self.walk.go_on(now, &on);
        Some(self.command(now, seq, Go::On))
    }

    /// The wish to send now. A change of direction waits up to 50 ms, so that an analogue stick
    /// does not flood the server; slowing down does not wait.
    fn due(&mut self, now: ClientMs) -> Option<Wish> {
        let wish = self.wish?;
        let turns = wish.speed_cm_s() >= self.said.speed_cm_s() && self.said != Wish::Stand;
        let waits = turns && now.since(self.commanded_at) < TURN_MS;
        if waits { None } else { self.wish.take() }
    }

    fn begin<T: Tiles>(
        &mut self,
        now: ClientMs,
        seq: Seq,
        wish: Wish,
        on: &Footing<'_, T>,
    ) -> Option<MoveCommand> {
        let here = self.position(now);
        let stood = !self.walk.is_clients() || self.walk.is_over(self.walk.passed(now));
        let mut next = Walk::begin(wish.motion(here, on.tile_cm()), now, on);
        self.said = wish;
        if next.is_err() {
            // The map does not allow the path: stand instead.
            self.said = Wish::Stand;
        }
        if next.as_ref().map_or(true, |next| next.is_blocked() && next.lasts_ms() == 0) {
            next = Walk::begin(Move::stand(here), now, on);
        }
        let next = next.ok()?;
        self.walked_ms = self.walked(now);
        self.walk = next;
        if stood && next.motion.is_standing() {
            return None;
        }
        Some(self.command(now, seq, Go::Walk(next.motion)))
    }

    /// The walk has ended at `at`, by itself or at an obstacle that the client knows. The server is told, because it
    /// may know of another obstacle, or of none.
    fn end<T: Tiles>(&mut self, at: ClientMs, seq: Seq, on: &Footing<'_, T>) -> MoveCommand {
        if !self.walk.is_blocked() {
            self.walk.go_on(at, on);
            return self.command(at, seq, Go::On);
        }
        let here = self.walk.at(at);
        self.walked_ms = self.walked(at);
        self.walk = Walk::stand(here).clients(at);
        self.command(at, seq, Go::Walk(self.walk.motion))
    }

    fn command(&mut self, at: ClientMs, seq: Seq, go: Go) -> MoveCommand {
        self.commanded_at = at;
        self.unacked.push_back(Unacked { seq, walked_ms: self.walked(at) });
        MoveCommand { correction: self.correction, at, go }
    }

    /// Milliseconds walked in total.
    fn walked(&self, now: ClientMs) -> u64 {
        match self.walk.is_clients() {
            true => self.walked_ms + u64::from(self.walk.walked(self.walk.passed(now))),
            false => self.walked_ms,
        }
    }

    /// Stops at the leash: where the client has walked as far as it may without an acknowledgement,
    /// possibly before `now`.
    fn keep_leash(&mut self, now: ClientMs) {
        let Some(oldest) = self.unacked.front() else {
            self.held = false;
            return;
        };
        let end_ms = oldest.walked_ms + u64::from(self.rules.leash_ms);
        self.held = self.walked(now) >= end_ms;
        let walked_ms = end_ms.saturating_sub(self.walked_ms);
        if !self.held || !self.walk.is_clients() || self.walked(now) == self.walked_ms {
            return;
        }
        let at = self.walk.moment(walked_ms).unwrap_or(now);
        let walked_ms = self.walk.walked(walked_ms);
        let left = Wish::left(&self.walk.motion, walked_ms);
        self.wish = self.wish.or(Some(left));
        self.said = Wish::Stand;
        self.walked_ms += u64::from(walked_ms);
        let here = self.walk.motion.position(walked_ms);
        self.walk = Walk::stand(here).clients(at);
        self.stopped_at = Some(at);
    }

    /// The server has applied all inputs up to number `seq`.
    pub fn acked(&mut self, now: ClientMs, seq: Seq) {
        self.keep_leash(now);
        while self.unacked.front().is_some_and(|command| command.seq <= seq) {
            self.unacked.pop_front();
        }
        self.keep_leash(now);
    }

    /// Replaces the rules, as after entering another scene.
    pub fn set_rules(&mut self, rules: Rules) {
        self.rules = rules;
    }

    /// Follows a correction. One that is not newer than the last is ignored.
    pub fn corrected(&mut self, now: ClientMs, correction: &Correction) {
        if correction.number <= self.correction {
            return;
        }
        let shown = self.shown(now);
        self.keep_leash(now);
        self.walked_ms = self.walked(now);
        self.correction = correction.number;
        self.walk =
            Walk::stand(correction.motion.start()).doing(correction.motion, correction.lasts_ms);
        self.ordered_at = now;
        (self.wish, self.said, self.stopped_at) = (None, Wish::Stand, None);
        self.blend.begin(now.0, shown, self.position(now));
    }

    /// Whether the server moves the entity at the moment.
    fn is_ordered(&self, now: ClientMs) -> bool {
        !self.walk.is_clients() && !self.walk.is_over(now.since(self.ordered_at))
    }

    /// The entity's position, equal to the server's unless a correction is on its way.
    pub fn position(&self, now: ClientMs) -> Pos {
        match self.walk.is_clients() {
            true => self.walk.at(now),
            false => {
                let passed_ms = now.since(self.ordered_at);
                self.walk.motion.position(self.walk.walked(passed_ms))
            }
        }
    }

    /// The position to display: the predicted position, blended after a correction.
    pub fn shown(&self, now: ClientMs) -> Pos {
        self.blend.shown(now.0, self.position(now))
    }

    /// Whether the entity stands at the leash and waits for the server's acknowledgement.
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// Number of the last correction that was followed.
    pub fn correction(&self) -> u32 {
        self.correction
    }
}

//! The player's own movement in a scene that judges moves.
//!
//! Games own one [`Walker`], give it wishes and frames, and send the commands it returns. It
//! follows every correction, and sends no command that an honest server refuses.
//!
//! ```text
//!   walk, walk_to, steps, stop          poll              send_walk
//!   the game ------------------> Walker ----> MoveCommand ------------> server
//!                                  ^                                    |
//!                                  '- frame, joined: acks, corrections <'
//! ```

use purview::scene::movement::{
    Blend, ClientMs, Flags, MoveCommand, Open, Predictor, ServerMs, Steps, Tiles, Wish,
};
use purview::scene::{Plane, Pos, Seq};
use purview::wire::client::Joined;
use purview::wire::{Frame, MoveRules, OwnMove};

use crate::occupied::Occupied;
use crate::view::View;

/// The player's own entity: what it wants to do, which commands to send, and where it is meanwhile.
/// It moves at once and tells the server; if the server disagrees, it follows the correction.
///
/// It has no clock and no socket: `now` is the client's time ([`crate::Clock::now`]) and must not
/// decrease from call to call. `T` is the ground as the game knows it. With [`Open`] ground only
/// the server knows the walls, and its corrections stop the player one round trip late.
#[derive(Debug)]
pub struct Walker<T = Open> {
    predictor: Predictor,
    ground: Occupied<T>,
    plane: Plane,
    rules: MoveRules,
    own: OwnMove,
    /// The present wish, kept so that it can be changed when the player becomes slower.
    wish: Wish,
}

impl Walker<Open> {
    /// The movement of a player that has just joined, on ground without a map; `None` if positions
    /// are trusted.
    pub fn new(now: ClientMs, joined: &Joined) -> Option<Walker> {
        let tile_cm = joined.rules.movement.as_ref()?.tile_cm;
        Walker::on(now, joined, Open { tile_cm })
    }
}

impl<T: Tiles> Walker<T> {
    /// As [`Walker::new`], on ground that the game knows. Its tiles must have the scene's side.
    pub fn on(now: ClientMs, joined: &Joined, tiles: T) -> Option<Walker<T>> {
        let (rules, own) = (joined.rules.movement.clone()?, joined.own.clone()?);
        let limits = rules.rules(joined.rules.size_cm);
        let predictor = Predictor::new(now, joined.pos, own.correction, limits, Blend::default());
        let ground = Occupied::nowhere(tiles);
        Some(Walker { predictor, ground, plane: joined.plane, rules, own, wish: Wish::Stand })
    }

    /// The player has teleported or resumed: it is where the last correction puts it, by the rules
    /// of the same or another scene. If a frame has brought that correction before, the player
    /// continues what it did since, and the server is told. Returns false, with nothing changed, if
    /// positions are trusted.
    pub fn joined(&mut self, now: ClientMs, joined: &Joined) -> bool {
        let (Some(rules), Some(own)) = (joined.rules.movement.clone(), joined.own.clone()) else {
            return false;
        };
        self.predictor.set_rules(rules.rules(joined.rules.size_cm));
        (self.rules, self.plane) = (rules, joined.plane);
        self.take(now, &own);
        true
    }

    /// The ground, for opening and closing doors.
    pub fn tiles_mut(&mut self) -> &mut T {
        &mut self.ground.tiles
    }

    /// The entities in view: those of kinds that block are in the way from now on. A game that does not say what it sees
    /// is corrected where they stop the player.
    pub fn sees(&mut self, view: &View) {
        self.ground.see(view, &self.rules.blocks);
    }

    /// Applies a frame's acknowledgement and own movement.
    pub fn frame(&mut self, now: ClientMs, frame: &Frame) {
        if let Some(own) = &frame.own {
            self.take(now, own);
        }
        self.predictor.acked(now, frame.ack);
    }

    fn take(&mut self, now: ClientMs, own: &OwnMove) {
        let trajectory = own.trajectory.on_tiles(self.rules.tile_cm);
        let (number, lasts_ms) = (own.correction, trajectory.lasts_ms);
        if number > self.predictor.correction() {
            self.wish = Wish::Stand;
        }
        let motion = trajectory.motion;
        self.predictor
            .corrected(now, &purview::scene::movement::Correction { number, motion, lasts_ms });
        self.own = own.clone();
        self.slow_down();
    }

    /// After the speed has dropped: walks on at the speed that is allowed now.
    fn slow_down(&mut self) {
        match self.wish {
            Wish::Straight { vx_mm_s, vz_mm_s, lasts_ms: None } => {
                let wished = self.wish_speed();
                if wished > self.speed() {
                    self.walk(vx_mm_s, vz_mm_s, self.speed());
                }
            }
            Wish::Steps { speed_cm_s, .. } if speed_cm_s > self.speed() => self.stop(),
            Wish::Stand | Wish::Straight { .. } | Wish::Steps { .. } => {}
        }
    }

    fn wish_speed(&self) -> u32 {
        match self.wish {
            Wish::Stand => 0,
            Wish::Straight { vx_mm_s, vz_mm_s, .. } => {
                let square = |v: i32| i64::from(v).pow(2) as u64;
                ((square(vx_mm_s) + square(vz_mm_s)).isqrt() / 10) as u32
            }
            Wish::Steps { speed_cm_s, .. } => speed_cm_s,
        }
    }

    /// The greatest speed without a time limit, centimetres per second.
    pub fn speed(&self) -> u32 {
        let endless = self.own.grants.iter().filter(|g| g.left_ms.is_none());
        endless.map(|g| g.speed).fold(self.own.speed, u32::max)
    }

    /// What keeps the player from moving. Wishes to walk are ignored meanwhile.
    pub fn flags(&self) -> Flags {
        self.own.flags
    }

    /// The last own movement that the server sent.
    pub fn own(&self) -> &OwnMove {
        &self.own
    }

    /// Walks straight on towards (`dx`, `dz`) until the next wish, at `speed_cm_s`, but at most
    /// [`Walker::speed`].
    pub fn walk(&mut self, dx: i32, dz: i32, speed_cm_s: u32) {
        self.wish(Wish::heading(dx, dz, speed_cm_s.min(self.speed())));
    }

    /// Walks straight to a position and stands there, within a centimetre or two.
    pub fn walk_to(&mut self, now: ClientMs, goal: Pos, speed_cm_s: u32) {
        let here = self.predictor.position(now);
        let (dx, dz) = (goal.x.saturating_sub(here.x), goal.z.saturating_sub(here.z));
        let way_cm = here.dist2(goal).isqrt();
        self.walk_for(dx, dz, speed_cm_s.min(self.speed()), |speed_cm_s| {
            u32::try_from(way_cm * 1_000 / u64::from(speed_cm_s.max(1))).unwrap_or(u32::MAX)
        });
    }

    /// Spends a speed that was granted for a time: straight on towards (`dx`, `dz`) for as long as
    /// it lasts. Returns false if there is no such grant.
    pub fn dash(&mut self, dx: i32, dz: i32) -> bool {
        let best = self.own.grants.iter_mut().filter(|g| g.left_ms.is_some_and(|ms| ms > 0));
        let Some(grant) = best.max_by_key(|g| g.speed) else { return false };
        let (speed, left_ms) = (grant.speed, grant.left_ms.replace(0).unwrap_or(0));
        self.walk_for(dx, dz, speed, |_| left_ms);
        true
    }

    fn walk_for(&mut self, dx: i32, dz: i32, speed_cm_s: u32, lasts: impl FnOnce(u32) -> u32) {
        let Wish::Straight { vx_mm_s, vz_mm_s, .. } = Wish::heading(dx, dz, speed_cm_s) else {
            return;
        };
        self.wish(Wish::Straight { vx_mm_s, vz_mm_s, lasts_ms: Some(lasts(speed_cm_s)) });
    }

    /// Walks tile by tile, at most at [`Walker::speed`]. A path that the ground does not allow is
    /// not walked.
    pub fn steps(&mut self, steps: Steps, speed_cm_s: u32) {
        self.wish(Wish::Steps { steps, speed_cm_s: speed_cm_s.min(self.speed()) });
    }

    /// Stands still.
    pub fn stop(&mut self) {
        self.wish(Wish::Stand);
    }

    fn wish(&mut self, wish: Wish) {
        if self.own.flags.is_free() || wish == Wish::Stand {
            self.wish = wish;
            self.predictor.wish(wish);
        }
    }

    /// The command to send at `now`, if any; send it at once as input number `seq`. Poll in every
    /// frame of the game until it returns `None`; [`crate::Sender::walk`] does.
    pub fn poll(&mut self, now: ClientMs, seq: Seq) -> Option<MoveCommand> {
        self.predictor.poll(now, seq, &self.ground, self.plane)
    }

    /// The player's position, equal to the server's unless a correction is on its way.
    pub fn position(&self, now: ClientMs) -> Pos {
        self.predictor.position(now)
    }

    /// The position to display: the same, blended after a correction.
    pub fn shown(&self, now: ClientMs) -> Pos {
        self.predictor.shown(now)
    }

    /// Whether the player stands at the leash and waits for an acknowledgement.
    pub fn is_held(&self) -> bool {
        self.predictor.is_held()
    }

    /// Number of the last correction that was followed.
    pub fn correction(&self) -> u32 {
        self.predictor.correction()
    }

    /// The player's position as other clients are told it, at a server time.
    pub fn told(&self, now: ServerMs) -> Pos {
        self.own.trajectory.on_tiles(self.rules.tile_cm).position(now)
    }
}

#[cfg(test)]
mod tests;

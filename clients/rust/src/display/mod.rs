//! Smooth display: where to draw the entities in view, picture by picture.
//!
//! Games own one [`Display`] beside their [`View`](crate::View), give it frames and pongs as they
//! arrive, and ask for positions once in every picture. Nothing here reads a clock or a socket. The
//! same algorithm in other languages is held to `clients/conformance/display.json`.
//!
//! ```text
//!   frame, pong ──► DisplayClock: how late are frames, which server time is drawn
//!   frame ────────► Track of each entity: motions, and the error left to spread
//!   advance ──────► display time ──► position of each entity
//! ```
//!
//! The player itself is not part of it: [`Walker`](crate::Walker) predicts its position and spreads
//! corrections in the same way.

mod cells;
mod clock;
mod track;

pub use cells::{Cell, CellChange, Cells, CellsError};
pub use clock::{Advance, DisplayClock};
pub use track::{Motion, SNAP_CM, SPREAD_MS, Sample, Track};

use purview::scene::movement::ServerMs;
use purview::scene::{EntityId, Pos, Tick};
use purview::wire::client::Joined;
use purview::wire::{Frame, Moved};
use rustc_hash::FxHashMap;

use crate::view::View;

/// The entities in view, as they are drawn.
///
/// `now_us` is the client's clock in microseconds; `server_us` the server's time at that moment by
/// [`Clock`](crate::Clock), or by the newest frame's tick.
#[derive(Debug, Clone, Default)]
pub struct Display {
    clock: DisplayClock,
    tracks: FxHashMap<EntityId, Track>,
    tick_ms: u32,
    span_ms: u32,
}

impl Display {
    /// The display of a player that has joined a scene whose ticks are `tick_ms` long
    /// (`tick_ms` of `Welcome`).
    pub fn of(joined: &Joined, tick_ms: u32) -> Display {
        let mut display = Display { tick_ms, ..Display::default() };
        display.joined(joined);
        display
    }

    /// Switches to the rules of the scene that the player has come to.
    pub fn joined(&mut self, joined: &Joined) {
        // Clients that are told by error are told in the tick of the change, others at the rates.
        let slowest = joined.rules.rates.into_iter().max().unwrap_or(1);
        let ticks = if joined.rules.updates.is_some() { 1 } else { slowest };
        self.span_ms = self.tick_ms.saturating_mul(ticks);
    }

    /// A pong has arrived.
    pub fn pong(&mut self, now_us: u64) {
        self.clock.pong(now_us);
    }

    /// A frame has arrived whose tick was at `told_ms` of the server's clock. What it tells follows
    /// by [`Display::enter`], [`Display::told`] and [`Display::leave`]; [`Display::frame`] does all of it.
    pub fn arrived(&mut self, (now_us, server_us): (u64, u64), (told_ms, tick_ms): (u64, u64)) {
        let us = |ms: u64| ms.saturating_mul(1_000);
        self.clock.frame(now_us, server_us, (us(told_ms), us(tick_ms)));
    }

    /// A frame has arrived, and `view` has applied it.
    pub fn frame(&mut self, (now_us, server_us): (u64, u64), frame: &Frame, view: &View) {
        let ms = |tick: Tick| tick.0.saturating_mul(self.tick_ms.into());
        let told_ms = ms(frame.tick);
        self.arrived((now_us, server_us), (told_ms, self.tick_ms.into()));
        if frame.resync {
            self.clear();
        }
        frame.leaves.iter().for_each(|id| self.leave(*id));
        for e in &frame.enters {
            let motion = match view.told(e.id) {
                Some(trajectory) => Motion::Trajectory(trajectory),
                None => {
                    let pos = Pos { x: e.x, y: e.y, z: e.z };
                    Motion::Sample(Sample { at_ms: told_ms, pos, ..Sample::default() })
                }
            };
            self.enter(e.id, motion);
        }
        for m in &frame.moves {
            self.told(m.id, Motion::Sample(self.sample(told_ms, m)));
        }
        for id in frame.trajectories.iter().map(|update| update.id()) {
            if let Some(trajectory) = view.told(id) {
                self.told(id, Motion::Trajectory(trajectory));
            }
        }
    }

    fn sample(&self, at_ms: u64, m: &Moved) -> Sample {
        let pos = Pos { x: m.x, y: m.y, z: m.z };
        Sample { at_ms, span_ms: self.span_ms, pos, vx_cm_s: m.vx, vz_cm_s: m.vz }
    }

    /// An entity comes into view.
    pub fn enter(&mut self, id: EntityId, motion: Motion) {
        self.tracks.insert(id, Track::new(motion));
    }

    /// An entity in view has a new motion. One that is not in view is ignored.
    pub fn told(&mut self, id: EntityId, motion: Motion) {
        let at_ms = self.clock.time_ms();
        if let Some(track) = self.tracks.get_mut(&id) {
            track.told(at_ms, motion);
        }
    }

    /// An entity leaves the view.
    pub fn leave(&mut self, id: EntityId) {
        self.tracks.remove(&id);
    }

    /// The view begins anew.
    pub fn clear(&mut self) {
        self.tracks.clear();
    }

    /// Moves on to the picture that is drawn now. Call it once in every picture.
    pub fn advance(&mut self, now_us: u64, server_us: u64) -> Advance {
        let before_ms = self.clock.time_ms();
        let advance = self.clock.advance(now_us, server_us);
        let at_ms = self.clock.time_ms();
        for track in self.tracks.values_mut() {
            let shown = (advance == Advance::Jumped).then(|| track.shown(before_ms));
            track.advance(at_ms, shown);
            if advance == Advance::Began {
                track.snap(at_ms);
            }
        }
        advance
    }

    /// Where an entity is drawn in this picture.
    pub fn position(&self, id: EntityId) -> Option<Pos> {
        self.tracks.get(&id).map(|track| track.shown(self.clock.time_ms()))
    }

    /// Where an entity was at the time of this picture, without the error that is left to spread.
    pub fn exact(&self, id: EntityId) -> Option<Pos> {
        self.tracks.get(&id).map(|track| track.position(self.clock.time_ms()))
    }

    /// The server time of this picture.
    pub fn time(&self) -> ServerMs {
        ServerMs(self.clock.time_ms())
    }

    /// The clock, for its delay.
    pub fn clock(&self) -> &DisplayClock {
        &self.clock
    }
}

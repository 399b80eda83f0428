//! Which tick is open, and how far it has come.
//!
//! The region never reads a clock: the actor names the tick.

use crate::scene::Tick;

/// How far a tick has come: see the picture in [`super`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Inputs are applied; the ghosts of a neighbour are missing.
    Open,
    /// Views are evaluated; neighbours exchange border rounds.
    BorderRounds,
    /// Frames are made.
    Closed,
}

/// The region's tick.
#[derive(Debug)]
pub struct TickClock {
    tick: Tick,
    /// The newest tick that was due.
    due: Tick,
    phase: Phase,
}

impl TickClock {
    /// Before the first tick.
    pub fn new() -> TickClock {
        TickClock { tick: Tick(0), due: Tick(0), phase: Phase::Closed }
    }

    /// The tick that was opened last.
    #[inline]
    pub fn tick(&self) -> Tick {
        self.tick
    }

    /// How far the tick has come.
    #[inline]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether frames of the last opened tick are made.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    /// Whether the ghosts of a neighbour are missing in the tick.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// The tick of which frames are made next: they tell what changes now.
    pub fn next_frame(&self) -> Tick {
        if self.is_closed() { self.tick.next() } else { self.tick }
    }

    /// The newest tick that was due; 0 before the first one.
    pub fn due(&self) -> Tick {
        self.due
    }

    /// A tick is due. Says whether it is the first one.
    pub fn expect(&mut self, now: Tick) -> bool {
        let first = self.due == Tick(0);
        self.due = self.due.max(now);
        first
    }

    /// Opens a tick.
    pub fn open(&mut self, now: Tick) {
        (self.tick, self.phase) = (now, Phase::Open);
    }

    /// The ghosts of the tick are here.
    pub fn begin_border_rounds(&mut self) {
        self.phase = Phase::BorderRounds;
    }

    /// Frames of the tick are made.
    pub fn close(&mut self) {
        self.phase = Phase::Closed;
    }

    /// The tick of a snapshot is over.
    pub fn restore(&mut self, tick: Tick) {
        self.tick = tick;
    }
}

//! The display clock: for which server time a client draws.
//!
//! [`Display`](super::Display) owns one. Frames arrive late, and not equally late: a client that
//! draws a moment of the past has the frames of that moment already. The clock measures how late
//! frames are, chooses how far behind the server's time the picture is, and never runs faster or
//! slower than by a twentieth. It reads no clock: each call brings the time. All is integers, so
//! that every language computes the same microsecond.

/// Least and greatest delay, microseconds.
const DELAY_US: (i64, i64) = (50_000, 500_000);

/// Time constant of the averages, microseconds of server time.
const AVERAGE_US: i64 = 2_000_000;

/// The most that one frame counts for, microseconds of server time.
const WEIGHT_MAX_US: i64 = 500_000;

/// The clock runs faster or slower by at most one part in this number.
const SPEED_PART: i64 = 20;

/// After this time without a frame or pong the picture stops, microseconds.
const SILENCE_US: u64 = 1_000_000;

/// Pictures farther apart than this are not of one motion: the tab was hidden, or the machine slept.
const PAUSE_US: u64 = 250_000;

/// A display time that is farther from its target jumps, microseconds.
const JUMP_US: u64 = 1_000_000;

/// How the display time has come to its new value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advance {
    /// It ran.
    Ran,
    /// It jumped while pictures were drawn: the difference is spread.
    Jumped,
    /// No picture was drawn for a while, or ever: there is nothing to spread.
    Began,
}

/// Chooses the server time to draw.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DisplayClock {
    mean_us: i64,
    deviation_us: i64,
    /// The server time of the newest frame's tick.
    newest_us: Option<u64>,
    /// When the connection brought something, client's clock.
    heard_us: Option<u64>,
    picture: Option<Picture>,
}

/// The last picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Picture {
    /// When it was drawn, client's clock.
    now_us: u64,
    /// Up to when the connection was alive, client's clock.
    alive_us: u64,
    /// The server time that it showed.
    time_us: u64,
}

impl DisplayClock {
    /// A pong has arrived at `now_us` of the client's clock.
    pub fn pong(&mut self, now_us: u64) {
        self.heard_us = Some(now_us);
    }

    /// A frame has arrived, when the server's time was `server_us` by estimate. It tells what has
    /// begun in the `tick_us` microseconds before the time `told_us` of its tick.
    pub fn frame(&mut self, now_us: u64, server_us: u64, (told_us, tick_us): (u64, u64)) {
        self.heard_us = Some(now_us);
        let late = signed(server_us) - signed(told_us.saturating_sub(tick_us));
        let Some(newest_us) = self.newest_us.replace(told_us) else {
            (self.mean_us, self.deviation_us) = (late, 0);
            return;
        };
        let passed = signed(told_us.saturating_sub(newest_us)).min(WEIGHT_MAX_US);
        let towards = |from: i64, to: i64| from + (to - from) * passed / (AVERAGE_US + passed);
        self.deviation_us = towards(self.deviation_us, (late - self.mean_us).abs());
        self.mean_us = towards(self.mean_us, late);
    }

    /// How far the picture should be behind the server's time: the mean lateness of frames and two
    /// and a half times its deviation, 50 to 500 ms.
    pub fn delay_us(&self) -> u64 {
        let delay = self.mean_us + self.deviation_us * 5 / 2;
        delay.clamp(DELAY_US.0, DELAY_US.1).unsigned_abs()
    }

    /// Moves on to the picture that is drawn at `now_us` of the client's clock, when the server's
    /// time is `server_us` by estimate.
    pub fn advance(&mut self, now_us: u64, server_us: u64) -> Advance {
        let heard_us = self.heard_us.unwrap_or(now_us);
        let alive_us = now_us.min(heard_us.saturating_add(SILENCE_US));
        let silent_us = now_us - alive_us;
        let target = server_us.saturating_sub(silent_us).saturating_sub(self.delay_us());
        let before = self.picture;
        let begins = before.is_none_or(|before| now_us.saturating_sub(before.now_us) > PAUSE_US);
        let (time_us, advance) = match before {
            Some(before) if !begins => run(before, alive_us, target),
            _ => (target, Advance::Began),
        };
        self.picture = Some(Picture { now_us, alive_us, time_us });
        advance
    }

    /// The server time of the last picture, microseconds; 0 before the first.
    pub fn time_us(&self) -> u64 {
        self.picture.map_or(0, |picture| picture.time_us)
    }

    /// The same in whole milliseconds, as trajectories take it.
    pub fn time_ms(&self) -> u64 {
        self.time_us() / 1_000
    }
}

/// The display time of the next picture.
fn run(before: Picture, alive_us: u64, target: u64) -> (u64, Advance) {
    let passed = alive_us.saturating_sub(before.alive_us);
    let time = before.time_us.saturating_add(passed);
    if time.abs_diff(target) > JUMP_US || passed > PAUSE_US {
        return (target, Advance::Jumped);
    }
    let most = signed(passed) / SPEED_PART;
    let nearer = (signed(target) - signed(time)).clamp(-most, most);
    (time.saturating_add_signed(nearer), Advance::Ran)
}

fn signed(us: u64) -> i64 {
    i64::try_from(us).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK_US: u64 = 100_000;

    /// Frames of each tick arrive so late; the clocks of client and server agree.
    fn fed(late_us: impl Iterator<Item = u64>) -> DisplayClock {
        let mut clock = DisplayClock::default();
        for (tick, late_us) in (10..).zip(late_us) {
            let at = tick * TICK_US + late_us;
            clock.frame(at, at, (tick * TICK_US, TICK_US));
        }
        clock
    }

    #[test]
    fn the_delay_is_the_mean_lateness_and_its_deviation_within_bounds() {
        assert_eq!(DisplayClock::default().delay_us(), 50_000);
        assert_eq!(fed([30_000; 50].into_iter()).delay_us(), 130_000);
        let jittered = fed((0..200).map(|n| 30_000 + n % 2 * 40_000));
        assert!((190_000..=210_000).contains(&jittered.delay_us()), "{}", jittered.delay_us());
        assert_eq!(fed([9_000_000; 5].into_iter()).delay_us(), 500_000);
    }

    #[test]
    fn the_display_time_approaches_its_target_by_a_twentieth_of_the_time() {
        let mut clock = fed([0; 5].into_iter());
        assert_eq!(clock.advance(1_400_000, 1_400_000), Advance::Began);
        assert_eq!(clock.time_us(), 1_300_000);
        // The estimate of the server's time was 40 ms behind.
        assert_eq!(clock.advance(1_500_000, 1_540_000), Advance::Ran);
        assert_eq!(clock.time_us(), 1_405_000);
        assert_eq!(clock.advance(1_600_000, 1_560_000), Advance::Ran);
        assert_eq!(clock.time_us(), 1_500_000);
    }

    #[test]
    fn the_picture_stops_a_second_after_the_last_message_and_jumps_when_there_is_one() {
        let mut clock = fed([0; 5].into_iter());
        let times: Vec<u64> = (14..30)
            .map(|n| {
                clock.advance(n * 100_000, n * 100_000);
                clock.time_us()
            })
            .collect();
        assert_eq!(times[..3], [1_300_000, 1_400_000, 1_500_000]);
        assert_eq!(times[10..], [2_300_000; 6]);
        clock.pong(2_950_000);
        assert_eq!(clock.advance(3_000_000, 3_000_000), Advance::Jumped);
        assert_eq!(clock.time_us(), 2_900_000);
    }

    #[test]
    fn the_first_picture_after_a_pause_begins_anew() {
        let mut clock = fed([0; 5].into_iter());
        clock.advance(1_400_000, 1_400_000);
        clock.pong(61_000_000);
        assert_eq!(clock.advance(61_000_000, 61_000_000), Advance::Began);
        assert_eq!(clock.time_us(), 60_900_000);
    }
}

//! A seeded network in virtual time: messages arrive in order and late, as over TCP.

use std::collections::VecDeque;

use crate::support::Rng;

#[derive(Debug, Clone, Copy)]
pub struct Weather {
    /// One way, milliseconds.
    pub delay_ms: i32,
    /// Greatest deviation of the delay, milliseconds.
    pub jitter_ms: i32,
    /// Lost messages per thousand; the sender repeats a lost message after 400 ms, 800 ms ...
    pub lost_per_mille: i32,
}

/// 150 ms one way, 50 ms of jitter, 2 % loss.
pub const USUAL: Weather = Weather { delay_ms: 150, jitter_ms: 50, lost_per_mille: 20 };

/// One direction of a connection.
#[derive(Debug)]
pub struct Link<T> {
    weather: Weather,
    rng: Rng,
    /// Messages in flight, with their times of arrival.
    under_way: VecDeque<(u64, T)>,
    last: u64,
}

impl<T> Link<T> {
    pub fn new(weather: Weather, seed: u64) -> Link<T> {
        Link { weather, rng: Rng::new(seed), under_way: VecDeque::new(), last: 0 }
    }

    pub fn send(&mut self, now: u64, message: T) {
        let Weather { delay_ms, jitter_ms, lost_per_mille } = self.weather;
        let mut takes = delay_ms + self.rng.range(-jitter_ms, jitter_ms + 1);
        let mut again = 400;
        while self.rng.range(0, 1_000) < lost_per_mille {
            takes += again;
            again *= 2;
        }
        // In order: a lost message holds up the ones after it. A session that is silent for longer
        // is closed.
        self.last = self.last.max(now + takes.min(12_000) as u64);
        self.under_way.push_back((self.last, message));
    }

    /// The next message that has arrived by `now`.
    pub fn receive(&mut self, now: u64) -> Option<T> {
        if self.under_way.front()?.0 > now {
            return None;
        }
        self.under_way.pop_front().map(|(_, message)| message)
    }
}

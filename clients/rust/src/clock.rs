//! The client's clock, and its estimate of the server's.
//!
//! Games own one, send its nonce with pings and feed the pongs back; extrapolation of other
//! entities needs the server's time from it.

use std::time::Instant;

use purview::scene::movement::{ClientMs, ClockEstimate, ServerMs};
use purview::wire::client::Pong;

/// A clock that never goes back, and an estimate of the server's clock from pings.
///
/// ```
/// # use purview::scene::Tick;
/// # use purview::wire::client::Pong;
/// # use purview_client::Clock;
/// let mut clock = Clock::new();
/// assert_eq!(clock.server(), None);
/// let nonce = clock.nonce(); // sender.ping(nonce)
/// clock.pong(&Pong { nonce, server_ms: 7_000, tick: Tick(70) });
/// assert!(clock.server().is_some_and(|server| server.0 >= 7_000));
/// ```
#[derive(Debug, Clone)]
pub struct Clock {
    start: Instant,
    estimate: ClockEstimate,
}

impl Default for Clock {
    fn default() -> Self {
        Clock::new()
    }
}

impl Clock {
    /// A clock that starts now.
    pub fn new() -> Clock {
        Clock { start: Instant::now(), estimate: ClockEstimate::default() }
    }

    /// The client's time, milliseconds since the clock's start.
    pub fn now(&self) -> ClientMs {
        ClientMs(self.start.elapsed().as_millis() as u64)
    }

    /// The nonce for a ping that is sent now.
    pub fn nonce(&self) -> u64 {
        self.now().0
    }

    /// Takes the answer to a ping that carried [`Clock::nonce`].
    pub fn pong(&mut self, pong: &Pong) {
        let (sent, now) = (ClientMs(pong.nonce), self.now());
        self.estimate.pong(sent, now, ServerMs(pong.server_ms));
    }

    /// The server's time now; `None` before the first pong.
    pub fn server(&self) -> Option<ServerMs> {
        self.estimate.server(self.now())
    }

    /// The estimate of the server's clock: error bound and delay.
    pub fn estimate(&self) -> &ClockEstimate {
        &self.estimate
    }
}

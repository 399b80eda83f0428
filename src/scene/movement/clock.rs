//! Estimates the server's clock on the client, from ping round trips.
//!
//! The client session feeds every pong in and asks for the server's time when it extrapolates other
//! entities. The estimate never decides anything on the server.

use super::{ClientMs, ServerMs};

/// Number of ping samples kept.
const SAMPLES: usize = 16;

/// Assumed upper bound of the drift between the two clocks, parts per million.
const DRIFT_PPM: u64 = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sample {
    /// The client's time midway between ping and pong.
    at: ClientMs,
    server: ServerMs,
    /// Half the round trip, microseconds: the error bound of the sample when it was taken.
    half_us: u64,
}

impl Sample {
    /// Error bound at `now`, microseconds: half the round trip plus the drift since.
    fn error_us(&self, now: ClientMs) -> u64 {
        self.half_us + now.since(self.at) * DRIFT_PPM / 1_000
    }
}

/// An estimate of the server's clock and of the one-way delay, from pings.
///
/// Of the last sixteen samples the one with the smallest error bound wins. A short round trip
/// bounds the error; drift widens the bound as the sample ages (Cristian's algorithm).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClockEstimate {
    samples: [Option<Sample>; SAMPLES],
    next: usize,
}

impl ClockEstimate {
    /// Takes a pong: the ping left at `sent`, the answer arrived at `received` and said `server`. A
    /// pong received before its ping was sent is ignored.
    pub fn pong(&mut self, sent: ClientMs, received: ClientMs, server: ServerMs) {
        if received < sent {
            return;
        }
        let round_ms = received.since(sent);
        let sample = Sample { at: sent.plus(round_ms / 2), server, half_us: round_ms * 500 };
        self.samples[self.next] = Some(sample);
        self.next = (self.next + 1) % SAMPLES;
    }

    fn best(&self, now: ClientMs) -> Option<&Sample> {
        self.samples.iter().flatten().min_by_key(|sample| sample.error_us(now))
    }

    /// The server's time at `now`; `None` before the first pong.
    pub fn server(&self, now: ClientMs) -> Option<ServerMs> {
        let best = self.best(now)?;
        Some(match now >= best.at {
            true => best.server.plus(now.since(best.at)),
            false => ServerMs(best.server.0.saturating_sub(best.at.since(now))),
        })
    }

    /// Error bound of [`ClockEstimate::server`] at `now`, milliseconds, rounded up.
    pub fn error_ms(&self, now: ClientMs) -> Option<u64> {
        self.best(now).map(|best| best.error_us(now).div_ceil(1_000))
    }

    /// The time that a message takes one way, milliseconds, if both ways are alike.
    pub fn delay_ms(&self, now: ClientMs) -> Option<u64> {
        self.best(now).map(|best| best.half_us / 1_000)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_shortest_round_trip_wins_until_drift_widens_its_error() {
        let mut clock = ClockEstimate::default();
        assert_eq!((clock.server(ClientMs(0)), clock.delay_ms(ClientMs(0))), (None, None));
        clock.pong(ClientMs(1_000), ClientMs(1_400), ServerMs(9_350));
        assert_eq!(clock.server(ClientMs(1_400)), Some(ServerMs(9_550)));
        clock.pong(ClientMs(2_000), ClientMs(2_100), ServerMs(10_200));
        let now = ClientMs(2_100);
        assert_eq!((clock.server(now), clock.delay_ms(now)), (Some(ServerMs(10_250)), Some(50)));
        clock.pong(ClientMs(3_000), ClientMs(3_400), ServerMs(11_500));
        assert_eq!(clock.error_ms(ClientMs(3_400)), Some(51));
        // The sample is 150 ms worse, which drift of 200 ppm makes good in 750 s.
        let late = ClientMs(751_000);
        assert_eq!(clock.delay_ms(late), Some(50));
        clock.pong(ClientMs(760_000), ClientMs(760_400), ServerMs(1));
        assert_eq!(clock.server(ClientMs(760_400)), Some(ServerMs(201)));
    }

    #[test]
    fn a_pong_received_before_its_ping_is_ignored() {
        let mut clock = ClockEstimate::default();
        clock.pong(ClientMs(5), ClientMs(4), ServerMs(9));
        assert_eq!(clock, ClockEstimate::default());
    }

    proptest! {
        #[test]
        fn the_true_time_lies_within_the_error_bound(
            pings in prop::collection::vec((1_u64..5_000, 0_u64..400, 0_u64..400), 1..60),
            (ahead, drift_ppm) in (0_u64..1_000_000, 0_u64..150),
        ) {
            let mut clock = ClockEstimate::default();
            // The client's clock runs slower than the server's.
            let server = |client: u64| ahead + client + client * drift_ppm / 1_000_000;
            let mut now = 1_000;
            for (pause, out, back) in pings {
                let (sent, received) = (now + pause, now + pause + out + back);
                clock.pong(ClientMs(sent), ClientMs(received), ServerMs(server(sent + out)));
                now = received;
                let said = clock.server(ClientMs(now)).unwrap().0;
                let error = clock.error_ms(ClientMs(now)).unwrap();
                prop_assert!(said.abs_diff(server(now)) <= error + 2, "{said} {}", server(now));
            }
        }
    }
}

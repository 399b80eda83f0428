//! What a client knows of the server's clock.

use super::{ClientMs, ServerMs};

/// Samples that are kept.
const SAMPLES: usize = 16;

/// How far two clocks drift apart at most, in parts of a million.
const DRIFT_PPM: u64 = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sample {
    /// The client's time in the middle between ping and pong.
    at: ClientMs,
    server: ServerMs,
    /// Half of the time from ping to pong, microseconds: how far off it can be.
    half_us: u64,
}

impl Sample {
    /// How far off it can be by now, microseconds.
    fn error_us(&self, now: ClientMs) -> u64 {
        self.half_us + now.since(self.at) * DRIFT_PPM / 1_000
    }
}

/// An estimate of the server's clock and of the way there, from pings: the quickest of the last sixteen is
/// believed, since the time that it took bounds its error, until drift has made another one better.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClockEstimate {
    samples: [Option<Sample>; SAMPLES],
    next: usize,
}

impl ClockEstimate {
    /// A ping that was sent at `sent` was answered at `received`; the answer said `server`. One that was
    /// answered before it was sent is no news.
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

    /// How far off [`ClockEstimate::server`] can be at `now`, milliseconds, rounded up.
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
    fn the_quickest_pong_is_believed_until_drift_has_spoilt_it() {
        let mut clock = ClockEstimate::default();
        assert_eq!((clock.server(ClientMs(0)), clock.delay_ms(ClientMs(0))), (None, None));
        clock.pong(ClientMs(1_000), ClientMs(1_400), ServerMs(9_350));
        assert_eq!(clock.server(ClientMs(1_400)), Some(ServerMs(9_550)));
        clock.pong(ClientMs(2_000), ClientMs(2_100), ServerMs(10_200));
        let now = ClientMs(2_100);
        assert_eq!((clock.server(now), clock.delay_ms(now)), (Some(ServerMs(10_250)), Some(50)));
        clock.pong(ClientMs(3_000), ClientMs(3_400), ServerMs(11_500));
        assert_eq!(clock.error_ms(ClientMs(3_400)), Some(51));
        // 150 ms worse, which takes 750 s at 200 parts of a million.
        let late = ClientMs(751_000);
        assert_eq!(clock.delay_ms(late), Some(50));
        clock.pong(ClientMs(760_000), ClientMs(760_400), ServerMs(1));
        assert_eq!(clock.server(ClientMs(760_400)), Some(ServerMs(201)));
    }

    #[test]
    fn an_answer_before_the_question_is_no_news() {
        let mut clock = ClockEstimate::default();
        clock.pong(ClientMs(5), ClientMs(4), ServerMs(9));
        assert_eq!(clock, ClockEstimate::default());
    }

    proptest! {
        #[test]
        fn the_true_time_is_never_further_off_than_it_says(
            pings in prop::collection::vec((1_u64..5_000, 0_u64..400, 0_u64..400), 1..60),
            (ahead, drift_ppm) in (0_u64..1_000_000, 0_u64..150),
        ) {
            let mut clock = ClockEstimate::default();
            // The client's clock is the slower one.
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

//! How a gateway ends: it first admits clients for a while (the lame duck time), so that load balancers can take it out,
//! and closes its sessions one by one meanwhile; then it closes everything.
//!
//! ```text
//! Open ──► LameDuck ──► Closed
//!            each connection that was there is due at its own part of the time, later ones in its second half
//! ```

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// It admits clients.
    Open,
    /// It admits clients, and closes the sessions that it has within this time.
    LameDuck { since: Instant, lasts: Duration },
    /// It admits no client, and every session is to end.
    Closed,
}

pub(super) type Phases = watch::Receiver<Phase>;

/// Waits until a gateway admits no client any more.
pub(super) async fn closed(phases: &mut Phases) {
    // An error means that the gateway was dropped, which is an end, too.
    let _closed = phases.wait_for(|phase| *phase == Phase::Closed).await.is_ok();
}

#[derive(Debug, Clone)]
pub(super) struct Ending {
    phases: Phases,
    /// Its part of the lame duck time, 0 to 1.
    turn: f64,
}

impl Ending {
    /// Of the connection of this number: those of a gateway are spread evenly, however many there are.
    pub(super) fn of(phases: Phases, number: u64) -> Ending {
        const GOLDEN_RATIO: f64 = 0.618_033_988_749_895;
        let part = (number as f64 * GOLDEN_RATIO).fract();
        let turn = match *phases.borrow() {
            Phase::Open => part,
            // A balancer still sends clients here, above all to the gateway with the fewest of them. They are spread over
            // the time in which it should do so no more.
            Phase::LameDuck { since, lasts } => {
                let over = since.elapsed().div_duration_f64(lasts).clamp(0.5, 1.0);
                over + (1.0 - over) * part
            }
            Phase::Closed => 1.0,
        };
        Ending { phases, turn }
    }

    pub(super) async fn is_due(&mut self) {
        loop {
            let phase = *self.phases.borrow_and_update();
            let turn = async {
                match phase {
                    Phase::Closed => {}
                    Phase::Open => std::future::pending().await,
                    Phase::LameDuck { since, lasts } => {
                        tokio::time::sleep_until(since + lasts.mul_f64(self.turn)).await;
                    }
                }
            };
            tokio::select! {
                biased;
                () = turn => return,
                changed = self.phases.changed() => if changed.is_err() {
                    return;
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LASTS: Duration = Duration::from_secs(10);

    /// When connections are due, milliseconds after the lame duck time began.
    async fn due(endings: Vec<Ending>) -> Vec<u64> {
        let begin = Instant::now();
        let due = endings.into_iter().map(|mut ending| async move {
            ending.is_due().await;
            begin.elapsed().as_millis() as u64
        });
        futures::future::join_all(due).await
    }

    /// Checks that a hundred connections are due evenly within these seconds, from now.
    fn assert_even(due: &[u64], seconds: std::ops::Range<u64>) {
        let each = 100 / (seconds.end - seconds.start);
        for second in 0..10 {
            let within = second * 1_000..(second + 1) * 1_000;
            let ended = due.iter().filter(|at| within.contains(*at)).count() as u64;
            let expected = if seconds.contains(&second) { each } else { 0 };
            assert!(ended.abs_diff(expected) <= expected / 5, "{ended} of 100 in second {second}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn sessions_end_evenly_over_the_time_and_those_that_come_meanwhile_over_its_second_half()
    {
        let phases = watch::Sender::new(Phase::Open);
        let hundred = || (0..100).map(|n| Ending::of(phases.subscribe(), n)).collect::<Vec<_>>();
        let there = hundred();
        phases.send_replace(Phase::LameDuck { since: Instant::now(), lasts: LASTS });
        let early = hundred();
        let late = async {
            tokio::time::sleep(Duration::from_secs(8)).await;
            due(hundred()).await
        };
        let (there, early, late) = tokio::join!(due(there), due(early), late);
        assert_even(&there, 0..10);
        assert_even(&early, 5..10);
        assert_even(&late, 0..2);
    }

    #[tokio::test(start_paused = true)]
    async fn every_session_ends_at_once_when_the_gateway_closes_or_is_dropped() {
        let phases = watch::Sender::new(Phase::Open);
        let endings = || (0..10).map(|n| Ending::of(phases.subscribe(), n)).collect::<Vec<_>>();
        phases.send_replace(Phase::LameDuck { since: Instant::now(), lasts: LASTS });
        let both = endings();
        phases.send_replace(Phase::Closed);
        assert_eq!(due(both).await, [0; 10]);
        let phases = watch::Sender::new(Phase::Open);
        let mut ending = Ending::of(phases.subscribe(), 1);
        drop(phases);
        ending.is_due().await;
    }
}

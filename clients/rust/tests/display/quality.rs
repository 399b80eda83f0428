//! What a player sees on a bad network, against what was true.

use std::collections::VecDeque;

use purview::scene::EntityId;
use purview_client::Display;

use super::truth::{Network, Rng, TICK_MS, TOLERANCE_CM, Told, Walker};

const LENGTH_MS: u64 = 60_000;
const WALKERS: u64 = 30;
const PICTURE_US: u64 = 16_667;
/// By so much a drawn step may differ from the true one.
const STEP_CM: f64 = 5.0;
/// Pictures in which a correction is spread, and the one in which it arrives.
const SPREAD_PICTURES: usize = 13;

/// What was measured, centimetres.
#[derive(Debug, Default)]
struct Measured {
    /// How far from the truth entities were drawn.
    errors: Vec<f64>,
    /// The greatest difference between a drawn and a true step while the error falls, as a share of
    /// the error that is spread; differences up to 5 cm do not count.
    share: f64,
    /// Steps that differ by more than 5 cm while the error grows: a frame has not told why yet.
    unknown: usize,
    /// The greatest difference between a drawn and a true step.
    step_cm: f64,
    delay_ms: u64,
}

impl Measured {
    fn p99(&mut self) -> f64 {
        self.errors.sort_by(f64::total_cmp);
        self.errors[self.errors.len() * 99 / 100]
    }
}

#[derive(Default)]
struct Drawn {
    before: Option<([f64; 2], [f64; 2])>,
    /// The errors of the last pictures.
    left: VecDeque<f64>,
}

fn off(a: [f64; 2], b: [f64; 2]) -> f64 {
    (a[0] - b[0]).hypot(a[1] - b[1])
}

impl Drawn {
    /// Measures a picture: what is drawn, and what is true.
    fn measure(&mut self, shown: [f64; 2], truth: [f64; 2], all: &mut Measured) {
        all.errors.push(off(shown, truth));
        let error = off(shown, truth);
        let grows = self.left.back().is_none_or(|before| error >= *before);
        if self.left.len() == SPREAD_PICTURES {
            self.left.pop_front();
        }
        self.left.push_back(error);
        let most = self.left.iter().copied().fold(0.0, f64::max);
        let step = |to: [f64; 2], from: [f64; 2]| [to[0] - from[0], to[1] - from[1]];
        if let Some((shown_before, truth_before)) = self.before.replace((shown, truth)) {
            let differs = off(step(shown, shown_before), step(truth, truth_before));
            all.step_cm = all.step_cm.max(differs);
            match grows {
                _ if differs <= STEP_CM => {}
                // The entity has turned, and no frame has said so yet.
                true => all.unknown += 1,
                // The error is being spread.
                false => all.share = all.share.max(differs / most),
            }
        }
    }
}

/// Draws walkers over a network at 60 pictures per second.
fn watch(told: Told, network: Network, speed_cm_s: i64) -> Measured {
    let mut rng = Rng(7);
    let mut walkers: Vec<Walker> =
        (0..WALKERS).map(|_| Walker::new(&mut rng, told, speed_cm_s, LENGTH_MS)).collect();
    let arrivals = network.arrivals_us(&mut rng, LENGTH_MS / TICK_MS);
    let (mut display, mut tick, mut all) = (Display::default(), 0, Measured::default());
    let mut drawn: Vec<Drawn> = walkers.iter().map(|_| Drawn::default()).collect();
    for now_us in (0..(LENGTH_MS - 1_000) * 1_000).step_by(PICTURE_US as usize) {
        // The estimate of the server's time is off by up to 3 ms, and changes every two seconds.
        let server_us = now_us + now_us / 2_000_000 % 4 * 2_000 - 3_000.min(now_us);
        while arrivals[tick] <= now_us {
            tick += 1;
            display.arrived((now_us, server_us), (tick as u64 * TICK_MS, TICK_MS));
            for (id, walker) in (1..).zip(&mut walkers) {
                for motion in walker.tell(tick as u64) {
                    match display.position(EntityId(id)) {
                        Some(_) => display.told(EntityId(id), motion),
                        None => display.enter(EntityId(id), motion),
                    }
                }
            }
        }
        display.advance(now_us, server_us);
        // Four seconds for the delay to become what the network needs.
        if now_us < 4_000_000 {
            continue;
        }
        let at_us = display.clock().time_us();
        for ((id, walker), drawn) in (1..).zip(&walkers).zip(&mut drawn) {
            let cm = |pos: purview::scene::Pos| [f64::from(pos.x), f64::from(pos.z)];
            let shown = cm(display.position(EntityId(id)).expect("it is in view"));
            drawn.measure(shown, walker.truth(at_us), &mut all);
        }
        all.delay_ms = all.delay_ms.max(display.clock().delay_us() / 1_000);
    }
    all
}

const JITTERS_MS: [u64; 3] = [0, 30, 100];

#[test]
fn entities_are_drawn_where_they_were_whatever_the_jitter() {
    for (told, tolerance) in [(Told::Trajectories, 0.0), (Told::Positions, TOLERANCE_CM)] {
        for (jitter_ms, gaps) in JITTERS_MS.into_iter().flat_map(|j| [(j, false), (j, true)]) {
            let mut seen = watch(told, Network { jitter_ms, gaps }, 500);
            let (p99, unknown) = (seen.p99(), seen.unknown as f64 / seen.errors.len() as f64);
            println!(
                "{told:?}, jitter {jitter_ms} ms, gaps {gaps}: p99 {p99:.1} cm, step {:.1} cm, \
                 share {:.3}, not known yet {unknown:.5}, delay {} ms",
                seen.step_cm, seen.share, seen.delay_ms
            );
            assert!(p99 <= tolerance + 10.0, "{told:?} {jitter_ms} {gaps}: {p99}");
            let case = format!("{told:?} {jitter_ms} {gaps}");
            match told {
                // A step is the true one, but while a correction is spread and in a gap.
                Told::Trajectories => {
                    assert!(seen.share <= 0.25, "{case}: {}", seen.share);
                    assert!(unknown <= if gaps { 0.003 } else { 0.0 }, "{case}: {unknown}");
                }
                // The server does not tell what is within the tolerance.
                Told::Positions => {
                    assert!(seen.step_cm <= TOLERANCE_CM, "{case}: {}", seen.step_cm)
                }
            }
        }
    }
}

//! What a player sees on a bad network, against what was true.

use std::collections::VecDeque;

use purview::scene::EntityId;
use purview_client::Display;

use super::truth::{Network, Rng, TICK_MS, TOLERANCE_CM, Told, Walker};

const LENGTH_MS: u64 = 120_000;
const WALKERS: u64 = 40;
const PICTURE_US: u64 = 16_667;
/// Pictures in which a correction is spread, and the one in which it arrives.
const SPREAD_PICTURES: usize = 13;

/// What was measured, centimetres.
#[derive(Debug, Default)]
struct Measured {
    /// How far from the truth entities were drawn.
    errors: Vec<f64>,
    /// The greatest difference between a drawn and a true step while nothing is spread.
    calm_cm: f64,
    /// The greatest such difference as a share of the correction that is spread.
    share: f64,
    /// Steps that differ by more than 5 cm before the news arrived that explains it.
    unknown: usize,
    delay_ms: u64,
}

impl Measured {
    fn p99(&mut self) -> f64 {
        self.errors.sort_by(f64::total_cmp);
        self.errors[self.errors.len() * 99 / 100]
    }
}

/// One entity on the screen.
#[derive(Default)]
struct Drawn {
    before: Option<([f64; 2], [f64; 2])>,
    /// The errors left to spread of the last pictures.
    left: VecDeque<f64>,
}

fn off(a: [f64; 2], b: [f64; 2]) -> f64 {
    (a[0] - b[0]).hypot(a[1] - b[1])
}

impl Drawn {
    /// Measures a picture: drawn, by what is known, and in truth. What is known may be off by `may`.
    fn measure(&mut self, [shown, known, truth]: [[f64; 2]; 3], may: f64, all: &mut Measured) {
        all.errors.push(off(shown, truth));
        if self.left.len() == SPREAD_PICTURES {
            self.left.pop_front();
        }
        self.left.push_back(off(shown, known));
        let spread = self.left.iter().copied().fold(0.0, f64::max);
        let step = |to: [f64; 2], from: [f64; 2]| [to[0] - from[0], to[1] - from[1]];
        if let Some((shown_before, truth_before)) = self.before.replace((shown, truth)) {
            let differs = off(step(shown, shown_before), step(truth, truth_before));
            match spread {
                _ if differs <= 5.0 => {}
                left if left > 0.0 => all.share = all.share.max(differs / left),
                // The entity has turned, and no frame has said so yet.
                _ if off(known, truth) > may => all.unknown += 1,
                _ => all.calm_cm = all.calm_cm.max(differs),
            }
        }
    }
}

/// Draws walkers over a network at 60 pictures per second.
fn watch(told: Told, network: Network, speed_cm_s: i64) -> Measured {
    let mut rng = Rng(7);
    let may = if told == Told::Positions { TOLERANCE_CM } else { 3.0 };
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
            let known = cm(display.exact(EntityId(id)).expect("it is in view"));
            drawn.measure([shown, known, walker.truth(at_us)], may, &mut all);
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
                seen.calm_cm, seen.share, seen.delay_ms
            );
            assert!(p99 <= tolerance + 10.0, "{told:?} {jitter_ms} {gaps}: {p99}");
            assert!(seen.calm_cm <= 5.0, "{told:?} {jitter_ms} {gaps}: {}", seen.calm_cm);
            assert!(seen.share <= 0.25, "{told:?} {jitter_ms} {gaps}: {}", seen.share);
            assert!(unknown <= if gaps { 0.002 } else { 0.0 }, "{unknown}");
        }
    }
}

//! Which entities come into range of each other, and nothing else: for a server that keeps its own
//! entities. Alarms of a guard post report thieves.
//!
//! cargo run --example range_events

use purview::interest::{RangeEvent, RangeEvents};
use purview::scene::{Pos, RangeSet, Rect, Visibility};

/// Runs the example and returns one line per event.
pub fn run() -> Vec<String> {
    let ground = Rect { x0: 0, z0: 0, x1: 102_400, z1: 102_400 }; // centimetres
    // A thief is reported within 30 m, and no longer reported beyond 35 m.
    let circle = Visibility::Circle { enter_cm: 3_000, leave_cm: 3_500 };
    let mut ranges = RangeEvents::new(ground, 3_200, circle);
    let post = ranges.add(Pos::ground(50_000, 50_000), RangeSet::FULL);
    let thief = ranges.add(Pos::ground(20_000, 50_000), RangeSet::FULL);
    let mut lines = Vec::new();
    for step in 0..=6 {
        let x = 20_000 + step * 10_000;
        ranges.move_to(thief, Pos::ground(x, 50_000));
        ranges.end_tick(|event| {
            lines.push(match event {
                RangeEvent::Entered { a, b } => {
                    assert_eq!((a, b), (post, thief));
                    format!("alarm at x = {x}")
                }
                RangeEvent::Left { .. } => format!("quiet at x = {x}"),
            });
        });
    }
    lines
}

fn main() {
    run().iter().for_each(|line| println!("{line}"));
}

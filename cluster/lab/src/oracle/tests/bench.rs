//! The speed of the oracle. Not a timed test: run it by hand to print a figure.
//!
//! `cargo test --release -p purview-lab oracle::tests::bench -- --ignored --nocapture`

use purview::scene::{Pos, Visibility};

use super::server::{Server, rules};
use crate::oracle::{Options, Oracle};

#[test]
#[ignore = "a benchmark; prints microseconds per tick"]
fn a_thousand_players_with_sixty_in_view() {
    // The density at which a circle of 8 m holds 60 others.
    let side = (1_000.0_f64 * std::f64::consts::PI * 800.0 * 800.0 / 60.0).sqrt() as i32;
    let circle = Visibility::Circle { enter_cm: 800, leave_cm: 850 };
    for (name, mode, cap) in [("no cap", circle, 1_000), ("crowd, cap 60", Visibility::All, 60)] {
        let mut server = Server::new(rules(mode, cap));
        server.rules.patch_cm = [1_600; 2];
        let mut random = 12_345u64;
        let mut next = |below: i32| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((random >> 33) % below as u64) as i32
        };
        for client in 0..1_000 {
            server.join(client, Pos::ground(next(side), next(side)));
        }
        let mut events = Vec::new();
        for _ in 0..30 {
            for client in 0..1_000 {
                let p = server.players[&client].pos;
                server.walk(client, Pos::ground(p.x + next(101) - 50, p.z + next(101) - 50));
            }
            server.step(|_, _, _| true);
            events.append(&mut server.events);
        }
        let mut oracle = Oracle::new(Options::default());
        let start = std::time::Instant::now();
        events.into_iter().for_each(|e| oracle.event(e));
        let findings = oracle.finish();
        let us = start.elapsed().as_micros() / u128::from(findings.ticks);
        println!("{name}: {us} us per tick, {:?}, {:?}", findings.updates, findings.violations);
    }
}

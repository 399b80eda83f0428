//! Players that leave a view and enter it again.

use purview::scene::{EntityId, Visibility};

use super::faults::{A, B, ID_B, at, run, spoilt, usual};
use super::server::{Server, entered, rules};
use crate::oracle::{Calm, Event, Options, Oracle, Violations};

#[test]
fn a_player_that_leaves_and_enters_at_once_has_flickered() {
    let findings = spoilt(|tick, client, frame| {
        let (other, x) = if client == A { (ID_B, 1_029) } else { (EntityId(1_001), 1_010) };
        match tick {
            20 => {
                frame.leaves.push(other);
                frame.moves.clear();
            }
            21 => {
                frame.moves.clear();
                frame.enters.push(entered(other, at(if client == A { x + 1 } else { x })));
            }
            _ => {}
        }
        true
    });
    let want = Violations { flicker_at_handoff: 2, ..Violations::default() };
    assert_eq!(findings.violations, want, "{:?}", findings.examples);
    assert_eq!(findings.calm, Calm { enters: 4, flickers: 2, player_ticks: 2 * 30 });
}

#[test]
fn a_player_without_a_frame_is_not_judged_for_flicker() {
    let findings = |without: u64| {
        spoilt(|tick, client, frame| {
            let other = if client == A { ID_B } else { EntityId(1_001) };
            let x = if client == A { 1_019 + tick as i32 } else { 1_010 };
            match tick {
                24 => frame.leaves.push(other),
                26 => frame.enters.push(entered(other, at(x))),
                _ => {}
            }
            if (24..=26).contains(&tick) {
                frame.moves.clear();
            }
            client != A || tick != without
        })
    };
    for (without, flickers) in [(1_000, 2), (25, 0), (23, 0), (15, 2)] {
        let findings = findings(without);
        assert_eq!(findings.violations.flicker_at_handoff, flickers, "{without}: {findings:?}");
    }
}

#[test]
fn a_walk_out_of_range_and_back_is_flicker_within_2_s_and_no_violation() {
    let circle = Visibility::Circle { enter_cm: 300, leave_cm: 500 };
    for (away, flickers) in [(20, 2), (21, 0)] {
        let walks = |server: &mut Server, step| match step {
            5 => server.walk(B, at(2_000)),
            _ if step == 5 + away => server.walk(B, at(1_020)),
            _ => {}
        };
        let findings = run(usual(circle), &[(A, 1_010), (B, 1_020)], 40, walks, |_, _, _| true);
        assert_eq!(findings.violations, Violations::default(), "{:?}", findings.examples);
        assert_eq!(findings.calm, Calm { enters: 4, flickers, player_ticks: 2 * 40 }, "{away}");
    }
}

/// A's list has two places. C and D come nearer than B, so B leaves; D goes again before it is shown to A, and B returns.
/// Nothing is wrong. Where the list has many places, B should not have left.
#[test]
fn a_list_whose_last_place_is_given_to_a_player_that_is_not_shown_yet_is_full() {
    for (cap, wrong) in [(2, 0), (60, 2)] {
        let mut server = Server::new(rules(Visibility::Patches, 2));
        let mut oracle = Oracle::new(Options::default());
        server.join(A, at(1_010));
        server.join(B, at(1_060));
        for step in 0..40 {
            if step == 10 {
                [3, 4].iter().for_each(|client| server.join(*client, at(1_010 + *client as i32)));
            } else if step == 12 {
                server.leave(4);
            }
            server.step(|_, client, frame| {
                let hidden = EntityId(if client == A { 1_004 } else { 1_001 });
                if [A, 4].contains(&client) {
                    frame.enters.retain(|entered| entered.id != hidden);
                    frame.leaves.retain(|id| *id != hidden);
                }
                true
            });
            for mut event in server.events.drain(..) {
                if let Event::Joined(_, joined) = &mut event {
                    joined.rules.view_cap = cap;
                }
                oracle.event(event);
            }
        }
        let findings = oracle.finish();
        let found = findings.violations.flicker_at_handoff;
        assert_eq!(found, wrong, "{cap}: {:?}", findings.examples);
        assert!(cap > 2 || findings.violations.total() == 0, "{findings:?}");
    }
}

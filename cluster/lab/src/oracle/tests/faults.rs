//! Each kind of violation by itself, beside the clean run.

use purview::scene::{EntityId, Epoch, Pos, Seq, Tick, Visibility};
use purview::wire::client::frame::RefusedInput;
use purview::wire::{ErrorCode, Frame};

use super::server::{Server, acted, empty_frame, entered, rules};
use crate::oracle::{Ending, Event, Findings, Options, Oracle, Sent, Violations};

pub(super) const A: u32 = 1;
pub(super) const B: u32 = 2;
pub(super) const ID_B: EntityId = EntityId(1_002);

pub(super) fn at(x: i32) -> Pos {
    Pos::ground(x, 1_000)
}

/// Two players stand near each other for ten ticks while B walks and acts, with one fault.
pub(super) fn spoilt(spoil: impl FnMut(u64, u32, &mut Frame) -> bool) -> Findings {
    spoilt_in(Visibility::Patches, 60, spoil)
}

fn spoilt_in(
    mode: Visibility,
    cap: u32,
    mut spoil: impl FnMut(u64, u32, &mut Frame) -> bool,
) -> Findings {
    let mut server = Server::new(rules(mode, cap));
    let mut oracle = Oracle::new(Options::default());
    server.join(A, at(1_010));
    server.join(B, at(1_020));
    for step in 0..30 {
        if step > 0 {
            server.walk(B, at(1_020 + step));
        }
        if step == 15 {
            server.act(B, b"wave");
        }
        server.step(&mut spoil);
        server.events.drain(..).for_each(|e| oracle.event(e));
    }
    oracle.finish()
}

#[test]
fn a_clean_run_has_no_violation_and_every_update() {
    let findings = spoilt(|_, _, _| true);
    assert_eq!(findings.violations, Violations::default(), "{:?}", findings.examples);
    // Two enters, 29 moves of B, one action.
    assert_eq!((findings.updates.expected, findings.updates.delivered), (32, 32));
    assert_eq!((findings.players, findings.ticks, findings.frames_missing), (2, 30, 0));
    assert_eq!((findings.latency.count(), findings.latency.quantile(1.0)), (2, 0));
}

#[test]
fn a_missing_enter_is_missing_and_asymmetric() {
    let findings = spoilt(|_, client, frame| {
        if client == A {
            *frame = empty_frame(frame.tick.0, frame.ack);
        }
        true
    });
    let want = Violations { missing: 1, asymmetric: 1, ..Violations::default() };
    assert_eq!(findings.violations, want, "{:?}", findings.examples);
    assert!(findings.updates.delivered < findings.updates.expected);
}

#[test]
fn a_pair_hidden_from_both_is_missing_once() {
    let findings = spoilt(|_, _, frame| {
        *frame = empty_frame(frame.tick.0, frame.ack);
        true
    });
    let want = Violations { missing: 1, ..Violations::default() };
    assert_eq!(findings.violations, want, "{:?}", findings.examples);
}

#[test]
fn an_enter_within_the_slack_is_late_but_no_violation() {
    let mut kept = Vec::new();
    let findings = spoilt(|tick, _, frame| {
        kept.append(&mut frame.enters);
        if tick < 13 {
            frame.moves.clear();
        } else if frame.ack >= Seq(0) {
            let own_id = if frame.ack == Seq(0) { ID_B } else { EntityId(1_001) };
            frame.moves.retain(|m| m.id != own_id || !kept.iter().any(|e| e.id == own_id));
            if let Some(i) = kept.iter().position(|e| e.id == own_id) {
                let mut e = kept.remove(i);
                if own_id == ID_B {
                    e.x = 1_022;
                }
                frame.enters.push(e);
            }
        }
        true
    });
    assert_eq!(findings.violations, Violations::default(), "{:?}", findings.examples);
    assert_eq!(findings.latency.quantile(1.0), 2);
}

#[test]
fn a_missing_move_is_stale() {
    let findings = spoilt(|_, client, frame| {
        if client == A {
            frame.moves.clear();
        }
        true
    });
    let want = Violations { stale: 1, ..Violations::default() };
    assert_eq!(findings.violations, want, "{:?}", findings.examples);
    assert!(findings.updates.delivered < findings.updates.expected);
}

#[test]
fn a_position_where_the_entity_never_was_is_stale() {
    let findings = spoilt(|tick, _, frame| {
        if tick == 20 {
            frame.moves.iter_mut().for_each(|m| m.z += 1);
        }
        true
    });
    let want = Violations { stale: 1, ..Violations::default() };
    assert_eq!(findings.violations, want, "{:?}", findings.examples);
}

#[test]
fn a_missing_or_duplicate_action_is_lost() {
    let want = Violations { lost: 1, ..Violations::default() };
    let dropped = spoilt(|_, _, frame| {
        frame.acts.clear();
        true
    });
    assert_eq!(dropped.violations, want, "{:?}", dropped.examples);
    let twice = spoilt(|tick, client, frame| {
        if tick == 28 && client == A {
            frame.acts.push(acted(ID_B, b"wave"));
        }
        true
    });
    assert_eq!(twice.violations, want, "{:?}", twice.examples);
    let invented = spoilt(|tick, client, frame| {
        if tick == 28 && client == A {
            frame.acts.push(acted(ID_B, b"bow"));
        }
        true
    });
    assert_eq!(invented.violations, want, "{:?}", invented.examples);
}

/// A is without frames while B acts in tick 26, and has frames again from tick 31 on. In which tick it is told the action.
fn acts_in_a_cut(told: Option<u64>) -> Findings {
    let mut server = Server::new(rules(Visibility::Patches, 60));
    let mut oracle = Oracle::new(Options { ack_ticks: 5, ..Options::default() });
    server.join(A, at(1_010));
    server.join(B, at(1_020));
    for step in 0..40 {
        if step == 15 {
            server.act(B, b"wave");
        }
        server.step(|tick, client, frame| {
            if client == A {
                frame.acts.clear();
                frame.acts.extend(told.filter(|at| *at == tick).map(|_| acted(ID_B, b"wave")));
            }
            client != A || !(25..31).contains(&tick)
        });
        server.events.drain(..).for_each(|e| oracle.event(e));
    }
    oracle.finish()
}

#[test]
fn an_action_comes_again_only_where_owners_may_die_and_soon() {
    let again = |late_ticks| {
        let mut server = Server::new(rules(Visibility::Patches, 60));
        let mut oracle = Oracle::new(Options { late_ticks, ..Options::default() });
        server.join(A, at(1_010));
        server.join(B, at(1_020));
        for step in 0..40 {
            if step == 15 {
                server.act(B, b"wave");
            }
            server.step(|tick, client, frame| {
                if tick == 35 && client == A {
                    frame.acts.push(acted(ID_B, b"wave"));
                }
                true
            });
            server.events.drain(..).for_each(|e| oracle.event(e));
        }
        oracle.finish().violations.lost
    };
    assert_eq!([0, 5, 20].map(again), [1, 1, 0]);
}

#[test]
fn an_action_comes_soon_after_a_cut_or_is_lost() {
    for soon in [31, 36] {
        let findings = acts_in_a_cut(Some(soon));
        assert_eq!(findings.violations.total(), 0, "{:?}", findings.examples);
    }
    for late in [Some(37), None] {
        let findings = acts_in_a_cut(late);
        assert_eq!(findings.violations.lost, 1, "{:?}", findings.examples);
    }
}

#[test]
fn frames_that_contradict_earlier_ones_are_lost() {
    let unseen = EntityId(77);
    type Spoil = fn(&mut Frame, EntityId);
    let cases: [Spoil; 4] = [
        |f, _| f.enters.push(entered(ID_B, at(1_029))),
        |f, unseen| f.leaves.push(unseen),
        |f, unseen| {
            f.moves.push(purview::wire::Moved {
                id: unseen,
                x: 0,
                y: 0,
                z: 0,
                vx: 0,
                vz: 0,
                facing: Default::default(),
            })
        },
        |f, unseen| f.acts.push(acted(unseen, b"x")),
    ];
    for (i, case) in cases.into_iter().enumerate() {
        let findings = spoilt(|tick, client, frame| {
            if tick == 20 && client == A {
                case(frame, unseen);
            }
            true
        });
        assert_eq!(findings.violations.lost, 1, "case {i}: {:?}", findings.examples);
    }
}

#[test]
fn a_tick_that_goes_back_is_lost() {
    let findings = spoilt(|tick, client, frame| {
        if tick == 40 && client == A {
            frame.tick = Tick(38);
        }
        true
    });
    assert_eq!(findings.violations.lost, 1, "{:?}", findings.examples);
}

#[test]
fn a_leave_that_is_delayed_is_extra() {
    for (mode, far) in
        [(Visibility::Patches, 2_400), (Visibility::Circle { enter_cm: 300, leave_cm: 500 }, 1_511)]
    {
        let mut server = Server::new(rules(mode, 60));
        let mut oracle = Oracle::new(Options::default());
        server.join(A, at(1_010));
        server.join(B, at(1_020));
        let mut kept: Vec<(u32, EntityId)> = Vec::new();
        for step in 0..20 {
            if step == 5 {
                server.walk(B, at(far));
            }
            server.step(|tick, client, frame| {
                kept.extend(frame.leaves.drain(..).map(|id| (client, id)));
                if tick == 25 {
                    frame.leaves.extend(kept.iter().filter(|k| k.0 == client).map(|k| k.1));
                }
                true
            });
            server.events.drain(..).for_each(|e| oracle.event(e));
        }
        let findings = oracle.finish();
        let want = Violations { extra: 2, ..Violations::default() };
        let stale = findings.violations.stale;
        assert_eq!(findings.violations, Violations { stale, ..want }, "{:?}", findings.examples);
    }
}

#[test]
fn a_player_shown_after_its_leave_is_extra() {
    let mut server = Server::new(rules(Visibility::All, 60));
    let mut oracle = Oracle::new(Options::default());
    server.join(A, at(1_010));
    server.join(B, at(1_020));
    for step in 0..10 {
        if step == 3 {
            server.leave(B);
        }
        server.step(|_, _, frame| {
            frame.leaves.clear();
            true
        });
        server.events.drain(..).for_each(|e| oracle.event(e));
    }
    let findings = oracle.finish();
    let want = Violations { extra: 1, ..Violations::default() };
    assert_eq!(findings.violations, want, "{:?}", findings.examples);
}

#[test]
fn a_list_above_the_cap_is_extra() {
    let mut server = Server::new(rules(Visibility::All, 3));
    let mut oracle = Oracle::new(Options::default());
    (0..4).for_each(|i| server.join(i, at(1_000 + i as i32)));
    // The clients are told a cap that is one less than the server's.
    for event in &mut server.events {
        if let Event::Joined(_, joined) = event {
            joined.rules.view_cap = 2;
        }
    }
    for _ in 0..5 {
        server.step(|_, _, _| true);
        server.events.drain(..).for_each(|e| oracle.event(e));
    }
    assert_eq!(oracle.finish().violations, Violations { extra: 4, ..Violations::default() });
}

#[test]
fn a_full_list_with_a_worse_player_makes_a_pair_missing() {
    // Four players in a row, cap 1. Pairs 1-2 and 3-4 are correct. Pair 2-3 is the nearest one and is not shown.
    let mut server = Server::new(rules(Visibility::All, 1));
    let mut oracle = Oracle::new(Options::default());
    for (client, x) in [(1, 1_000), (2, 1_100), (3, 1_110), (4, 1_210)] {
        server.join(client, at(x));
    }
    for step in 0..6 {
        server.step(|tick, client, frame| {
            let partner = [(1, 1_002), (2, 1_001), (3, 1_004), (4, 1_003)];
            let other = partner.iter().find(|p| p.0 == client).map_or(0, |p| p.1);
            *frame = empty_frame(tick, Seq(0));
            if step == 0 {
                let x = [1_000, 1_100, 1_110, 1_210][other as usize - 1_001];
                frame.enters.push(entered(EntityId(other), at(x)));
            }
            true
        });
        server.events.drain(..).for_each(|e| oracle.event(e));
    }
    let findings = oracle.finish();
    let want = Violations { missing: 1, ..Violations::default() };
    assert_eq!(findings.violations, want, "{:?}", findings.examples);
}

#[test]
fn an_input_without_acknowledgement_is_lost_but_a_refused_one_is_not() {
    for (refused, want) in [(false, 1), (true, 0)] {
        let mut server = Server::new(rules(Visibility::All, 60));
        let mut oracle = Oracle::new(Options::default());
        server.join(A, at(1_000));
        server.events.push(Event::Sent { client: A, seq: Seq(1), what: Sent::Move(at(1)) });
        for step in 0..30 {
            server.step(|_, _, frame| {
                if refused && step == 1 {
                    let code = ErrorCode::OutOfBounds;
                    frame.refused.push(RefusedInput { seq: Seq(1), code });
                }
                true
            });
            server.events.drain(..).for_each(|e| oracle.event(e));
        }
        let findings = oracle.finish();
        assert_eq!(findings.violations, Violations { lost: want, ..Violations::default() });
        assert_eq!(findings.refused, u64::from(refused));
    }
}

#[test]
fn an_input_before_a_leave_without_acknowledgement_is_lost() {
    let mut server = Server::new(rules(Visibility::All, 60));
    let mut oracle = Oracle::new(Options::default());
    server.join(A, at(1_000));
    server.join(B, at(1_000));
    for step in 0..60 {
        if step == 10 {
            server.events.push(Event::Sent { client: A, seq: Seq(1), what: Sent::Move(at(1)) });
        }
        if step == 50 {
            server.leave(A);
        }
        server.step(|_, client, _| client != A || step < 5);
        server.events.drain(..).for_each(|e| oracle.event(e));
    }
    let findings = oracle.finish();
    assert_eq!(findings.violations.lost, 1, "{:?}", findings.examples);
}

#[test]
fn a_client_that_is_cut_off_or_without_frames_is_lost_and_does_not_delay_the_others() {
    let mut server = Server::new(rules(Visibility::All, 60));
    let mut oracle = Oracle::new(Options::default());
    (1..4).for_each(|i| server.join(i, at(1_000)));
    for step in 0..150 {
        if step == 50 {
            server.events.push(Event::Gone(3, Ending::Lost));
        }
        // The server keeps player 3 for its grace period: player 1 still sees it, without updates.
        server.step(|_, client, _| client == 1 || step < 10 || (client == 3 && step < 50));
        server.events.drain(..).for_each(|e| oracle.event(e));
    }
    let findings = oracle.finish();
    assert_eq!(findings.violations, Violations { lost: 2, ..Violations::default() });
    assert!(findings.frames_missing > 0);
}

#[test]
fn handoffs_are_the_growth_of_epochs() {
    let findings = spoilt(|tick, client, frame| {
        if client == A && tick > 20 {
            frame.epoch = Epoch(if tick > 30 { 4 } else { 2 });
        }
        true
    });
    assert_eq!(findings.handoffs, 3);
    assert_eq!(findings.violations, Violations::default(), "{:?}", findings.examples);
}

//! Each kind of violation by itself, beside the clean run.

use purview::scene::{EntityId, Epoch, Pos, Seq, Tick, Visibility};
use purview::wire::client::frame::RefusedInput;
use purview::wire::{ErrorCode, Frame, JoinRules};

use super::server::{Server, acted, empty_frame, entered, moved, rules};
use crate::oracle::{Ending, Event, Findings, Options, Oracle, Sent, Violations};

pub(super) const A: u32 = 1;
pub(super) const B: u32 = 2;
pub(super) const ID_B: EntityId = EntityId(1_002);

pub(super) fn at(x: i32) -> Pos {
    Pos::ground(x, 1_000)
}

/// Players stand at these places for so many ticks from 11 on. `before` may do something before each, and `spoil` as
/// in [`Server::step`].
pub(super) fn run(
    (rules, options): (JoinRules, Options),
    players: &[(u32, i32)],
    steps: i32,
    mut before: impl FnMut(&mut Server, i32),
    mut spoil: impl FnMut(u64, u32, &mut Frame) -> bool,
) -> Findings {
    let (mut server, mut oracle) = (Server::new(rules), Oracle::new(options));
    players.iter().for_each(|(client, x)| server.join(*client, at(*x)));
    for step in 0..steps {
        before(&mut server, step);
        server.step(&mut spoil);
        server.events.drain(..).for_each(|e| oracle.event(e));
    }
    oracle.finish()
}

pub(super) fn usual(mode: Visibility) -> (JoinRules, Options) {
    (rules(mode, 60), Options::default())
}

fn waves(server: &mut Server, step: i32) {
    if step == 15 {
        server.act(B, b"wave");
    }
}

/// Two players stand near each other while B walks and acts, with one fault.
pub(super) fn spoilt(spoil: impl FnMut(u64, u32, &mut Frame) -> bool) -> Findings {
    let before = |server: &mut Server, step| {
        if step > 0 {
            server.walk(B, at(1_020 + step));
        }
        waves(server, step);
    };
    run(usual(Visibility::Patches), &[(A, 1_010), (B, 1_020)], 30, before, spoil)
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
fn a_fault_in_frames_is_found_once_as_its_kind() {
    let none = Violations::default();
    let missing = Violations { missing: 1, ..none };
    let stale = Violations { stale: 1, ..none };
    let lost = Violations { lost: 1, ..none };
    let hide = |frame: &mut Frame| *frame = empty_frame(frame.tick.0, frame.ack);
    let find = |what: &str, want: Violations, spoil: &mut dyn FnMut(u64, u32, &mut Frame)| {
        let findings = spoilt(|tick, client, frame| {
            spoil(tick, client, frame);
            true
        });
        assert_eq!(findings.violations, want, "{what}: {:?}", findings.examples);
        findings.updates.expected - findings.updates.delivered
    };
    let one_sided = Violations { missing: 1, asymmetric: 1, ..none };
    let due = find("an enter that A misses", one_sided, &mut |_, client, frame| {
        if client == A {
            hide(frame);
        }
    });
    assert!(due > 0);
    find("a pair hidden from both", missing, &mut |_, _, frame| hide(frame));
    let due = find("moves that A misses", stale, &mut |_, client, frame| {
        if client == A {
            frame.moves.clear();
        }
    });
    assert!(due > 0);
    find("a place where it never was", stale, &mut |tick, _, frame| {
        if tick == 20 {
            frame.moves.iter_mut().for_each(|m| m.z += 1);
        }
    });
    find("a missing action", lost, &mut |_, _, frame| frame.acts.clear());
    for act in [&b"wave"[..], b"bow"] {
        find("an action twice, and one that nobody did", lost, &mut |tick, client, frame| {
            if tick == 28 && client == A {
                frame.acts.push(acted(ID_B, act));
            }
        });
    }
}

/// For two ticks B is in A's enter range. Then it is only in the leave range, and who has not seen it need not.
#[test]
fn what_should_have_been_shown_before_a_tick_without_a_frame_need_not_be_beyond_the_enter_range() {
    let circle = Visibility::Circle { enter_cm: 300, leave_cm: 500 };
    for (without, x, missing) in [(1_000, 1_400, 1), (13, 1_400, 0), (13, 1_305, 1)] {
        let walks = |server: &mut Server, step| {
            if step == 2 {
                server.walk(B, at(x));
            }
        };
        let spoil = |tick, client, frame: &mut Frame| {
            *frame = empty_frame(tick, frame.ack);
            client != A || tick != without
        };
        let findings = run(usual(circle), &[(A, 1_010), (B, 1_300)], 20, walks, spoil);
        let want = Violations { missing, ..Violations::default() };
        assert_eq!(findings.violations, want, "{without}, {x}: {:?}", findings.examples);
    }
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

/// A is without frames while B acts in tick 26, and has frames again from tick 31 on. In which tick it is told the action.
fn acts_in_a_cut(told: Option<u64>) -> Findings {
    let options = Options { ack_ticks: 5, ..Options::default() };
    let of = (rules(Visibility::Patches, 60), options);
    run(of, &[(A, 1_010), (B, 1_020)], 40, waves, |tick, client, frame| {
        if client == A {
            frame.acts.clear();
            frame.acts.extend(told.filter(|at| *at == tick).map(|_| acted(ID_B, b"wave")));
        }
        client != A || !(25..31).contains(&tick)
    })
}

#[test]
fn an_action_comes_again_only_where_owners_may_die_and_soon() {
    let again = |late_ticks| {
        let options = Options { late_ticks, ..Options::default() };
        let of = (rules(Visibility::Patches, 60), options);
        let findings = run(of, &[(A, 1_010), (B, 1_020)], 40, waves, |tick, client, frame| {
            if tick == 35 && client == A {
                frame.acts.push(acted(ID_B, b"wave"));
            }
            true
        });
        findings.violations.lost
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
    const UNSEEN: EntityId = EntityId(77);
    type Case<'a> = (u64, &'a dyn Fn(&mut Frame));
    let cases: [Case<'_>; 5] = [
        (20, &|f| f.enters.push(entered(ID_B, at(1_029)))),
        (20, &|f| f.leaves.push(UNSEEN)),
        (20, &|f| f.moves.push(moved(UNSEEN, Pos::default(), 0))),
        (20, &|f| f.acts.push(acted(UNSEEN, b"x"))),
        (40, &|f| f.tick = Tick(38)),
    ];
    for (i, (at, case)) in cases.into_iter().enumerate() {
        let findings = spoilt(|tick, client, frame| {
            if tick == at && client == A {
                case(frame);
            }
            true
        });
        assert_eq!(findings.violations.lost, 1, "case {i}: {:?}", findings.examples);
    }
}

#[test]
fn a_leave_that_is_delayed_is_extra() {
    for (mode, far) in
        [(Visibility::Patches, 2_400), (Visibility::Circle { enter_cm: 300, leave_cm: 500 }, 1_511)]
    {
        let mut kept: Vec<(u32, EntityId)> = Vec::new();
        let walks = |server: &mut Server, step| {
            if step == 5 {
                server.walk(B, at(far));
            }
        };
        let spoil = |tick, client, frame: &mut Frame| {
            kept.extend(frame.leaves.drain(..).map(|id| (client, id)));
            if tick == 25 {
                frame.leaves.extend(kept.iter().filter(|k| k.0 == client).map(|k| k.1));
            }
            true
        };
        let findings = run(usual(mode), &[(A, 1_010), (B, 1_020)], 20, walks, spoil);
        let want = Violations { extra: 2, ..Violations::default() };
        let stale = findings.violations.stale;
        assert_eq!(findings.violations, Violations { stale, ..want }, "{:?}", findings.examples);
    }
}

#[test]
fn a_player_shown_after_its_leave_is_extra() {
    let leaves = |server: &mut Server, step| {
        if step == 3 {
            server.leave(B);
        }
    };
    let of = usual(Visibility::All);
    let findings = run(of, &[(A, 1_010), (B, 1_020)], 10, leaves, |_, _, frame| {
        frame.leaves.clear();
        true
    });
    let want = Violations { extra: 1, ..Violations::default() };
    assert_eq!(findings.violations, want, "{:?}", findings.examples);
}

#[test]
fn a_list_above_the_cap_is_extra() {
    // The clients are told a cap that is one less than the server's.
    let told = |server: &mut Server, _| {
        for event in &mut server.events {
            if let Event::Joined(_, joined) = event {
                joined.rules.view_cap = 2;
            }
        }
    };
    let of = (rules(Visibility::All, 3), Options::default());
    let places = [0, 1, 2, 3].map(|i| (i as u32, 1_000 + i));
    let findings = run(of, &places, 5, told, |_, _, _| true);
    assert_eq!(findings.violations, Violations { extra: 4, ..Violations::default() });
}

#[test]
fn a_full_list_with_a_worse_player_makes_a_pair_missing() {
    // Four players in a row, cap 1. Pairs 1-2 and 3-4 are correct. Pair 2-3 is the nearest one and is not shown.
    let places = [(1, 1_000), (2, 1_100), (3, 1_110), (4, 1_210)];
    let of = (rules(Visibility::All, 1), Options::default());
    let findings = run(
        of,
        &places,
        6,
        |_, _| {},
        |tick, client, frame| {
            let other = [2, 1, 4, 3][client as usize - 1];
            *frame = empty_frame(tick, Seq(0));
            if tick == 11 {
                let x = places[other as usize - 1].1;
                frame.enters.push(entered(EntityId(1_000 + other), at(x)));
            }
            true
        },
    );
    let want = Violations { missing: 1, ..Violations::default() };
    assert_eq!(findings.violations, want, "{:?}", findings.examples);
}

#[test]
fn an_input_without_acknowledgement_is_lost_but_a_refused_one_is_not() {
    for (refused, want) in [(false, 1), (true, 0)] {
        let says = |server: &mut Server, step| {
            if step == 0 {
                server.events.push(Event::Sent { client: A, seq: Seq(1), what: Sent::Move(at(1)) });
            }
        };
        let of = usual(Visibility::All);
        let findings = run(of, &[(A, 1_000)], 30, says, |tick, _, frame| {
            if refused && tick == 12 {
                frame.refused.push(RefusedInput { seq: Seq(1), code: ErrorCode::OutOfBounds });
            }
            true
        });
        assert_eq!(findings.violations, Violations { lost: want, ..Violations::default() });
        assert_eq!(findings.refused, u64::from(refused));
    }
}

#[test]
fn an_input_before_a_leave_without_acknowledgement_is_lost() {
    let says_and_leaves = |server: &mut Server, step| match step {
        10 => server.events.push(Event::Sent { client: A, seq: Seq(1), what: Sent::Move(at(1)) }),
        50 => server.leave(A),
        _ => {}
    };
    let (of, spoil) =
        (usual(Visibility::All), |tick, client, _: &mut Frame| client != A || tick < 16);
    let findings = run(of, &[(A, 1_000), (B, 1_000)], 60, says_and_leaves, spoil);
    assert_eq!(findings.violations.lost, 1, "{:?}", findings.examples);
}

#[test]
fn a_client_that_is_cut_off_or_without_frames_is_lost_and_does_not_delay_the_others() {
    let gone = |server: &mut Server, step| {
        if step == 50 {
            server.events.push(Event::Gone(3, Ending::Lost));
        }
    };
    // The server keeps player 3 for its grace period: player 1 still sees it, without updates.
    let spoil =
        |tick, client, _: &mut Frame| client == 1 || tick < 21 || (client == 3 && tick < 61);
    let places = [1, 2, 3].map(|client| (client, 1_000));
    let findings = run(usual(Visibility::All), &places, 150, gone, spoil);
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

/// Two players stand beside each other, and one climbs to 10 m and back. The clients were told one limit, and the
/// server has another.
fn climb(told: Option<i32>, served: Option<i32>) -> Violations {
    let with = |height_cm| JoinRules { height_cm, ..rules(Visibility::Patches, 60) };
    let climbs = |server: &mut Server, step: i32| {
        server.rules = with(served);
        let y = if step < 30 { (100 * step).min(1_000) } else { (100 * (59 - step)).min(1_000) };
        server.walk(2, Pos { x: 1_000, y, z: 1_000 });
    };
    let of = (with(told), Options::default());
    run(of, &[(1, 1_000), (2, 1_000)], 60, climbs, |_, _, _| true).violations
}

#[test]
fn a_player_that_climbs_too_high_must_leave_and_one_that_comes_down_must_enter() {
    for limit in [Some(300), None] {
        assert_eq!(climb(limit, limit), Violations::default(), "{limit:?}");
    }
    let ignores = climb(Some(300), None);
    assert!(ignores.extra > 0 && ignores.missing == 0, "{ignores:?}");
    let hides = climb(None, Some(300));
    assert!(hides.missing > 0 && hides.extra == 0, "{hides:?}");
}

//! A correct server has no violation, and a single fault is found, for any sequence of inputs.

use proptest::prelude::*;
use purview::scene::{EntityId, Plane, Pos, Visibility};
use purview::wire::{Frame, JoinRules};

use super::server::{Server, rules};
use crate::oracle::{Findings, Options, Oracle};

#[derive(Debug, Clone)]
enum Doing {
    Walk(i8, i8),
    Climb(i8),
    Teleport(u16, u16),
    Plane(i8),
    Act,
    Join(u16, u16),
    Leave,
}

fn doing() -> impl Strategy<Value = (u32, Doing)> {
    let place = 0..4_000u16;
    let what = prop_oneof![
        20 => (any::<i8>(), any::<i8>()).prop_map(|(x, z)| Doing::Walk(x, z)),
        8 => any::<i8>().prop_map(Doing::Climb),
        2 => (place.clone(), place.clone()).prop_map(|(x, z)| Doing::Teleport(x, z)),
        1 => (0..2i8).prop_map(Doing::Plane),
        4 => Just(Doing::Act),
        4 => (place.clone(), place).prop_map(|(x, z)| Doing::Join(x, z)),
        2 => Just(Doing::Leave),
    ];
    (0..12u32, what)
}

fn modes() -> impl Strategy<Value = (Visibility, u32)> {
    let circle = Visibility::Circle { enter_cm: 900, leave_cm: 1_100 };
    let modes = vec![Visibility::Patches, circle, Visibility::All];
    (prop::sample::select(modes), prop_oneof![Just(60u32), 1..5u32])
}

fn play(server: &mut Server, joined: &mut u32, (who, what): &(u32, Doing)) {
    let client = server.players.keys().nth(*who as usize % server.players.len().max(1)).copied();
    let here = client.map(|c| server.players[&c].pos).unwrap_or_default();
    match (what, client) {
        (Doing::Join(x, z), _) if server.players.len() < 14 => {
            *joined += 1;
            server.join(*joined, Pos::ground(i32::from(*x), i32::from(*z)));
        }
        (Doing::Walk(x, z), Some(c)) => {
            server.walk(c, Pos { x: here.x + i32::from(*x), z: here.z + i32::from(*z), ..here });
        }
        (Doing::Climb(y), Some(c)) => server.walk(c, Pos { y: here.y + i32::from(*y), ..here }),
        (Doing::Teleport(x, z), Some(c)) => {
            let plane = server.players[&c].plane;
            server.teleport(c, plane, Pos::ground(i32::from(*x), i32::from(*z)));
        }
        (Doing::Plane(plane), Some(c)) => server.teleport(c, Plane(i32::from(*plane)), here),
        (Doing::Act, Some(c)) => {
            let payload = server.players[&c].seq.0.to_be_bytes();
            server.act(c, &[&c.to_be_bytes()[..], &payload].concat());
        }
        (Doing::Leave, Some(c)) => server.leave(c),
        _ => {}
    }
}

fn judge(
    mode: (Visibility, u32),
    plan: &[Vec<(u32, Doing)>],
    spoil: impl FnMut(u64, u32, &mut Frame) -> bool,
) -> Findings {
    let options = Options { mirror_ticks: 0, ..Options::default() };
    judge_server(Server::new(rules(mode.0, mode.1)), options, plan, spoil)
}

fn judge_server(
    mut server: Server,
    options: Options,
    plan: &[Vec<(u32, Doing)>],
    mut spoil: impl FnMut(u64, u32, &mut Frame) -> bool,
) -> Findings {
    let mut oracle = Oracle::new(options);
    let mut joined = 0;
    for doings in plan {
        let mut acted = std::collections::BTreeSet::new();
        for doing in doings {
            // One input per player and tick, so that a leave never hides an earlier input.
            if acted.insert(doing.0) {
                play(&mut server, &mut joined, doing);
            }
        }
        server.step(&mut spoil);
        server.events.drain(..).for_each(|e| oracle.event(e));
    }
    oracle.finish()
}

fn plan() -> impl Strategy<Value = Vec<Vec<(u32, Doing)>>> {
    prop::collection::vec(prop::collection::vec(doing(), 0..10), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn a_correct_server_has_no_violation(
        mode in modes(),
        height_cm in prop::option::of(1..300),
        patch_cm in prop::sample::select(vec![[400; 2], [160, 100], [250, 700]]),
        plan in plan(),
    ) {
        let server = Server::new(JoinRules { height_cm, patch_cm, ..rules(mode.0, mode.1) });
        let options = Options { mirror_ticks: 0, ..Options::default() };
        let findings = judge_server(server, options, &plan, |_, _, _| true);
        prop_assert_eq!(findings.violations.total(), 0, "{:?}", findings.examples);
        prop_assert_eq!(findings.updates.expected, findings.updates.delivered);
        prop_assert_eq!(findings.latency.quantile(1.0), 0);
    }

    #[test]
    fn regions_that_hear_each_other_a_tick_late_are_no_violation(
        (mode, _) in modes(),
        height_cm in prop::option::of(1..300),
        plan in plan(),
    ) {
        let mut server = Server::new(JoinRules { height_cm, ..rules(mode, 60) });
        server.two_regions = true;
        let findings = judge_server(server, Options::default(), &plan, |_, _, _| true);
        prop_assert_eq!(findings.violations.total(), 0, "{:?}", findings.examples);
        prop_assert_eq!(findings.updates.expected, findings.updates.delivered);
    }

    #[test]
    fn merged_frames_are_no_violation(mode in modes(), plan in plan(), who in 1..8u32) {
        // One client receives three frames merged into one.
        let mut kept: Option<Frame> = None;
        let findings = judge(mode, &plan, |tick, client, frame| {
            if client != who {
                return true;
            }
            if let Some(before) = kept.take() {
                merge(before, frame);
            }
            if tick % 3 != 0 {
                kept = Some(frame.clone());
            }
            tick % 3 == 0
        });
        let v = findings.violations;
        prop_assert_eq!((v.extra, v.asymmetric, v.stale), (0, 0, 0), "{:?}", findings.examples);
        prop_assert_eq!(v.lost, 0, "{:?}", findings.examples);
    }

    #[test]
    fn a_missing_enter_is_found(mode in modes(), walk in prop::collection::vec((any::<i8>(), any::<i8>()), 8)) {
        let at = |i: u32| Pos::ground(1_000 + 60 * i as i32, 1_000);
        let mut server = Server::new(rules(mode.0, mode.1.max(8)));
        let mut oracle = Oracle::new(Options::default());
        (1..6).for_each(|i| server.join(i, at(i)));
        let mut dropped = None;
        for (x, z) in walk {
            server.step(|_, client, frame| {
                if client == 3 {
                    let gone = *dropped.get_or_insert_with(|| frame.enters[0].id);
                    frame.enters.retain(|e| e.id != gone);
                    frame.moves.retain(|m| m.id != gone);
                }
                true
            });
            server.walk(2, Pos::ground(1_120 + i32::from(x) / 8, 1_000 + i32::from(z) / 8));
            server.events.drain(..).for_each(|e| oracle.event(e));
        }
        let v = oracle.finish().violations;
        prop_assert_eq!((v.missing, v.asymmetric), (1, 1));
        prop_assert_eq!(dropped.unwrap_or(EntityId(0)).0 > 1_000, true);
    }
}

fn merge(before: Frame, frame: &mut Frame) {
    let then = std::mem::replace(frame, before);
    for id in then.leaves {
        let entered = frame.enters.len();
        frame.enters.retain(|e| e.id != id);
        frame.moves.retain(|m| m.id != id);
        if frame.enters.len() == entered {
            frame.leaves.push(id);
        } else {
            frame.acts.retain(|a| a.id != id);
        }
    }
    frame.enters.extend(then.enters);
    for m in then.moves {
        frame.moves.retain(|before| before.id != m.id);
        frame.moves.push(m);
    }
    frame.acts.extend(then.acts);
    (frame.tick, frame.ack, frame.epoch) = (then.tick, then.ack, then.epoch);
}

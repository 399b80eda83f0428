//! Heights count in a scene that says so.

use purview::scene::{Pos, Visibility};
use purview::wire::JoinRules;

use super::server::{Server, rules};
use crate::oracle::{Options, Oracle, Violations};

/// Two players stand beside each other, and one climbs to 10 m and back. The clients were told one limit, and the
/// server has another.
fn climb(told: Option<i32>, served: Option<i32>) -> Violations {
    let with = |height_cm| JoinRules { height_cm, ..rules(Visibility::Patches, 60) };
    let mut server = Server::new(with(told));
    let mut oracle = Oracle::new(Options::default());
    [1, 2].into_iter().for_each(|client| server.join(client, Pos::ground(1_000, 1_000)));
    server.rules = with(served);
    for step in 0..60 {
        let y = if step < 30 { (100 * step).min(1_000) } else { (100 * (59 - step)).min(1_000) };
        server.walk(2, Pos { x: 1_000, y, z: 1_000 });
        server.step(|_, _, _| true);
        server.events.drain(..).for_each(|e| oracle.event(e));
    }
    oracle.finish().violations
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

//! Heights count in a scene that says so.

use purview::scene::{Pos, Visibility};
use purview::wire::JoinRules;

use super::faults::run;
use super::server::{Server, rules};
use crate::oracle::{Options, Violations};

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

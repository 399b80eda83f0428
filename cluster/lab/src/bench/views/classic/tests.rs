use crate::bench::views::classic::*;
use crate::bench::views::gathering::{Gathering, Walkers};

const MAP_CM: i32 = 102_400;

/// Members at these positions along a line, metres from a common origin in the middle of a patch.
fn members(cap: usize, at_m: &[f64]) -> Classic {
    let place = |m: &f64| Pos::ground(49_600 + (m * 100.0) as i32, 49_600);
    Classic::new(cap, MAP_CM, &at_m.iter().map(place).collect::<Vec<_>>())
}

fn link(c: &mut Classic, a: u32, b: u32) {
    c.members[a as usize].list.push(b);
    c.members[b as usize].list.push(a);
}

fn list(c: &Classic, of: usize) -> &[u32] {
    &c.members[of].list
}

#[test]
fn distance_is_the_long_side_and_half_the_short_one() {
    let at = |x, z| octagonal_cm(Pos::ground(100, 100), Pos::ground(100 + x, 100 + z));
    assert_eq!((at(300, 0), at(0, -300), at(300, -400), at(-400, 300)), (300, 300, 550, 550));
}

#[test]
fn bands_end_at_5_15_and_30_m_and_a_bond_comes_before_them() {
    let mut c = members(9, &[0.0, 4.99, 5.0, 14.99, 15.0, 29.99, 30.0]);
    let ranks: Vec<_> = (1..7).map(|other| c.rank(0, other)).collect();
    assert_eq!(ranks, [1, 2, 2, 3, 3, 4]);
    (c.members[0].group, c.members[6].group) = (Some(7), Some(7));
    assert_eq!((c.rank(0, 6), c.rank(6, 0), c.rank(0, 5)), (0, 0, 3));
}

#[test]
fn the_victim_is_the_last_list_entry_in_a_worse_band() {
    // 1 and 2 are beyond 30 m, 3 is within 15 m, and 4 comes from within 15 m as well.
    let mut c = members(3, &[0.0, 40.0, 41.0, 10.0, 12.0]);
    for other in [1, 2, 3] {
        link(&mut c, 0, other);
    }
    assert_eq!(c.room(0, 2), Room::InPlaceOf(2), "3 is in the newcomer's own band");
    assert_eq!(c.room(0, 1), Room::InPlaceOf(3), "within 5 m even 3 gives way, and comes first");
    assert!(c.ask(0, 4, 2));
    assert_eq!(list(&c, 0), [1, 3, 4]);
    assert_eq!((list(&c, 2), list(&c, 4)), (&[][..], &[0][..]), "both sides add and drop");
    // A request, its answer, and the notification of the dropped entry.
    assert_eq!(c.messages, 3);
}

#[test]
fn a_member_from_beyond_15_m_replaces_an_entry_only_with_a_bond() {
    let mut c = members(1, &[0.0, 40.0, 20.0]);
    link(&mut c, 0, 1);
    assert_eq!(c.rank(0, 2), 3);
    assert_eq!(c.room(0, 3), Room::None);
    (c.members[0].group, c.members[2].group) = (Some(1), Some(1));
    assert_eq!(c.room(0, c.rank(0, 2)), Room::InPlaceOf(1));
    assert!(c.ask(0, 2, 0));
    assert_eq!(list(&c, 0), [2]);
    assert_eq!(c.room(0, 1), Room::None, "one with a bond is not replaced by a near one");
}

#[test]
fn a_refusal_changes_nothing_and_costs_two_messages() {
    let mut c = members(1, &[0.0, 3.0, 4.0]);
    link(&mut c, 1, 2);
    assert!(c.ask(0, 1, 1), "there is room at home for the next");
    assert_eq!((list(&c, 0), list(&c, 1), c.messages), (&[][..], &[2][..], 2));
}

#[test]
fn beyond_5_x_5_patches_members_are_dropped_on_both_sides() {
    let mut c = members(9, &[0.0, 60.0]);
    let mut places: Vec<Pos> = c.members.iter().map(|m| m.pos).collect();
    c.step(&places);
    assert_eq!((list(&c, 0), list(&c, 1)), (&[1][..], &[0][..]));
    // Two patches of 32 m to the east of the middle of its own patch: 80 m is the end of the range.
    places[1].x = 49_600 + 7_999;
    c.step(&places);
    assert_eq!(list(&c, 0), [1]);
    places[1].x = 49_600 + 8_000;
    c.step(&places);
    assert_eq!((list(&c, 0), list(&c, 1)), (&[][..], &[][..]));
}

#[test]
fn collecting_stops_at_300_candidates_in_the_outer_patches() {
    let near = |n: usize| (0..n).map(|i| (i % 10) as f64 / 10.0);
    let far = |n: usize| (0..n).map(|i| 70.0 + (i % 10) as f64 / 10.0);
    for (inner, outer, want) in [(400, 50, 399), (250, 80, 299), (100, 80, 179)] {
        let all: Vec<f64> = near(inner).chain(far(outer)).collect();
        let mut c = members(9, &all);
        c.collect(0);
        assert_eq!(c.candidates.iter().map(Vec::len).sum::<usize>(), want, "{inner}, {outer}");
    }
}

#[test]
fn a_member_that_stands_still_is_evaluated_by_the_heartbeat_alone() {
    let mut c = members(9, &[0.0]);
    let at = [c.members[0].pos];
    (0..1 + 3 * HEARTBEAT_TICKS).for_each(|_| c.step(&at));
    // Once when it came into its cell, and three heartbeats.
    assert_eq!(c.evaluations, 4);
    c.step(&[Pos { x: at[0].x + CELL_CM, ..at[0] }]);
    assert_eq!(c.evaluations, 5);
}

#[test]
fn the_lists_of_a_walking_crowd_are_symmetric_capped_and_in_range() {
    let mut crowd = Walkers::Gathered(Gathering::new(200, 51_200.0, 2_000.0, 60.0, 9));
    let mut places = Vec::new();
    crowd.places(&mut places);
    let mut c = Classic::new(12, MAP_CM, &places);
    let mut full = 0;
    for _ in 0..200 {
        crowd.step();
        crowd.places(&mut places);
        c.step(&places);
        for (i, m) in c.members.iter().enumerate() {
            assert!(m.list.len() <= 12);
            full += usize::from(m.list.len() == 12);
            for other in &m.list {
                let o = &c.members[*other as usize];
                assert_eq!(o.list.iter().filter(|v| **v == i as u32).count(), 1);
                assert!(m.patch.ring(o.patch) <= 2);
            }
        }
    }
    assert!(full > 200 * 200 / 2, "the cap hardly mattered: {full}");
    assert!(c.messages > 1_000);
}

//! Bodies of several tiles, whose tiles may lie on both sides of a border.

use super::*;

/// Players on either side of a giant and its border, and an NPC beside each.
struct Sides {
    p: Play,
    giant: EntityId,
    players: [SessionId; 2],
    npcs: [EntityId; 2],
}

impl Sides {
    fn of(giant: Pos, z: i32) -> Sides {
        let mut p = play();
        let giant = p.spawn(GIANT, giant);
        let players = [p.join(5_550, z), p.join(7_250, z)];
        let npcs = [5_550, 7_250].map(|x| p.spawn(NPC, at(x, z + 30)));
        Sides { p, giant, players, npcs }
    }

    /// All walk towards the giant. Gives where the player and the NPC on the west side end, then those on the east side.
    fn close_in(&mut self) -> [[i32; 2]; 2] {
        let Sides { p, players, npcs, .. } = self;
        for (side, vx) in [5_000, -5_000].into_iter().enumerate() {
            p.walk(players[side], vx, 0);
            p.go(npcs[side], vx, 0, 2_400);
        }
        for _ in 0..6 {
            p.step(4);
            players.iter().for_each(|player| p.say(*player, Go::On));
        }
        p.step(2);
        [0, 1].map(|side| [p.id(players[side]), npcs[side]].map(|id| p.pos(id).x))
    }
}

#[test]
fn a_body_stops_walkers_on_either_side_of_a_border_by_tiles_that_it_alone_covers() {
    // Where the giant stands, and its columns.
    for (x, [first, last]) in
        [(6_150, [59, 64]), (6_250, [60, 65]), (6_399, [61, 66]), (6_420, [61, 66])]
    {
        let mut s = Sides::of(at(x, 1_050), 1_150);
        assert_eq!(s.p.owner(s.giant), RegionId(u32::from(x >= 6_400)));
        let want = [[first * 100 - 1; 2], [last * 100 + 100; 2]];
        assert_eq!(s.close_in(), want, "a giant at {x}");
    }
}

#[test]
fn a_body_that_has_walked_stops_walkers_where_it_is_now_and_not_where_it_was() {
    let mut s = Sides::of(at(6_250, 1_050), 1_550);
    // Two metres out of the walkers' row, then into it.
    s.p.go(s.giant, 0, 5_000, 1_000);
    s.p.step(12);
    assert_eq!(s.p.pos(s.giant), at(6_250, 1_550));
    assert_eq!(s.close_in(), [[5_999; 2], [6_600; 2]]);
    s.p.go(s.giant, 0, -5_000, 1_000);
    s.p.step(12);
    // Each side walks on over where the body was, and over the border.
    let [west, east] = s.close_in();
    assert!(
        west.iter().all(|x| *x > 6_600) && east.iter().all(|x| *x < 5_999),
        "{west:?} {east:?}"
    );
}

#[test]
fn a_body_that_walks_over_a_border_stops_those_behind_it_until_it_is_gone() {
    let mut s = Sides::of(at(6_150, 1_050), 1_050);
    s.p.go(s.giant, 5_000, 0, 940);
    s.p.step(12);
    assert_eq!((s.p.owner(s.giant), s.p.pos(s.giant)), (RegionId(1), at(6_620, 1_050)));
    assert_eq!(s.close_in(), [[6_299; 2], [6_900; 2]]);
    s.p.despawn(s.giant);
    s.p.step(3);
    let [west, east] = s.close_in();
    assert!(
        west.iter().all(|x| *x > 6_900) && east.iter().all(|x| *x < 6_300),
        "{west:?} {east:?}"
    );
}

#[test]
fn who_stands_in_a_body_walks_in_it_and_leaves_it_and_does_not_come_back() {
    let mut p = play();
    let a = p.join(1_050, 1_050);
    let id = p.id(a);
    // Columns 8 to 13, rows 9 to 11.
    p.spawn(GIANT, at(1_050, 1_050));
    let path = Path::new(at(1_050, 1_050), "77".parse().expect("steps"), 500, 100);
    p.say(a, Go::Walk(path.into()));
    p.step(6);
    assert_eq!((p.pos(id), p.refusals(a)), (at(1_250, 1_050), vec![]));
    p.walk(a, 5_000, 0);
    p.step(5);
    assert!(p.pos(id).x > 1_400, "{:?}", p.pos(id));
    p.walk(a, -5_000, 0);
    p.step(6);
    assert_eq!((p.pos(id), p.refusals(a)), (at(1_400, 1_050), vec![]));
    // A path out of a body and back is refused.
    p.w.tell(RegionId(0), order_of(id, Order::Move(at(1_350, 1_050))));
    p.step(1);
    let path = Path::new(at(1_350, 1_050), "75".parse().expect("steps"), 500, 1);
    p.say(a, Go::Walk(path.into()));
    assert_eq!(p.refusals(a), [Refusal::Move(Reason::Blocked { tile: (13, 10) })]);
}

#[test]
fn a_body_that_overlaps_another_stops_who_stands_in_the_other() {
    let mut p = play();
    let a = p.join(1_050, 1_050);
    p.spawn(GIANT, at(1_050, 1_050));
    // Columns 11 to 16.
    p.spawn(GIANT, at(1_350, 1_050));
    p.walk(a, 5_000, 0);
    p.step(4);
    assert_eq!(p.pos(p.id(a)), at(1_099, 1_050));
}

/// The middle of a body is judged; its edges come over what others occupy.
#[test]
fn a_body_stops_with_its_middle_before_another_and_is_never_in_its_own_way() {
    let mut p = play();
    let (a, b) = (p.spawn(GIANT, at(1_050, 1_050)), p.spawn(GIANT, at(2_050, 1_050)));
    p.go(a, 5_000, 0, 3_000);
    p.step(20);
    assert_eq!(p.pos(a), at(1_799, 1_050));
    // The middle of the other one stands in the first.
    p.go(b, -5_000, 0, 200);
    p.step(4);
    assert_eq!(p.pos(b), at(1_950, 1_050));
    p.go(a, -5_000, 0, 1_000);
    p.step(12);
    assert_eq!(p.pos(a), at(1_299, 1_050));
}

#[test]
fn bodies_stand_at_the_edges_of_the_map_and_players_stop_before_them() {
    let mut p = play();
    p.spawn(GIANT, at(0, 0));
    let a = p.join(550, 50);
    p.walk(a, -5_000, 0);
    p.step(8);
    assert_eq!(p.pos(p.id(a)), at(300, 50));
}

//! The real actors on real arbiters: sessions, regions, borders and handoffs as clients see them.

mod resume;

use std::time::Duration;

use crate::stage::{Stage, Who, calm, join, nine_regions};
use purview::scene::player::PlayerConfig;
use purview::scene::{EntityId, Plane, Pos, RangeSet, SceneSpec, Seq, Visibility};
use purview::wire::client::{AskLines, Join, Lines};
use purview::wire::{CloseCode, ErrorCode};

fn meadow() -> SceneSpec {
    nine_regions("meadow")
}

/// A second scene, with one region.
fn cave() -> SceneSpec {
    SceneSpec { width_cm: 1_600, depth_cm: 1_600, ..nine_regions("cave") }
}

#[actix_rt::test]
async fn hello_and_join_bring_a_player_into_the_region_of_its_position() {
    let mut s = Stage::new(vec![cave(), meadow()]);
    let a = s.enter("meadow", None, 2_000, 2_100).await;
    s.wait_idle().await;
    s.read();
    assert!(s.clients[a].session.is_some() && s.clients[a].joined.is_empty());
    s.steady_tick().await;
    let c = &s.clients[a];
    let here = c.here();
    assert_eq!((here.scene.as_str(), here.plane, here.tick), ("meadow", Plane(0), s.tick));
    assert_eq!((here.pos.x, here.pos.z), (2_000, 2_100));
    assert_eq!((here.rules.patch_cm, here.rules.size_cm), ([400; 2], [4_800, 4_800]));
    // The cave is region 0, so the middle region of the meadow is its fifth.
    assert_eq!(s.whereabouts(c.id()).await.0, [5]);
    assert_eq!((s.places(0), s.places(1)), (vec![], vec![(0, 1)]));
}

#[actix_rt::test]
async fn a_player_in_the_middle_sees_into_all_eight_neighbours() {
    // The corners are a little less than 12 m away.
    let visibility = Visibility::Circle { enter_cm: 1_200, leave_cm: 1_280 };
    let mut s = Stage::new(vec![SceneSpec { visibility, ..meadow() }]);
    let middle = s.enter("meadow", Some(0), 2_400, 2_400).await;
    let mut around = Vec::new();
    for (dx, dz) in [(-1, -1), (0, -1), (1, -1), (-1, 0), (1, 0), (-1, 1), (0, 1), (1, 1)] {
        around.push(s.enter("meadow", Some(0), 2_400 + dx * 840, 2_400 + dz * 840).await);
    }
    // On another plane, so not visible.
    let elsewhere = s.enter("meadow", Some(1), 2_400, 2_300).await;
    s.rest().await;
    let shown: Vec<EntityId> = s.clients[middle].shown.keys().copied().collect();
    assert_eq!(shown, s.ids(&around).into_iter().collect::<Vec<_>>());
    assert!(s.clients[elsewhere].shown.is_empty());
    let middle_id = s.clients[middle].id();
    for (i, who) in around.iter().enumerate() {
        let region = if i < 4 { i } else { i + 1 } as u32;
        let id = s.clients[*who].id();
        assert_eq!(s.whereabouts(id).await.0, [region]);
        assert!(s.clients[*who].shown.contains_key(&middle_id), "from region {region}");
    }
    s.act(middle, "hello, everybody").await;
    s.steady_tick().await;
    for who in around {
        assert_eq!(s.clients[who].received_of(middle_id), ["hello, everybody"]);
    }
    assert!(s.clients[elsewhere].acts().is_empty());
}

/// Two players walk side by side through three regions on two arbiters, past players who stand.
#[actix_rt::test]
async fn a_handoff_is_invisible_to_all_clients() {
    let mut s = Stage::new(vec![meadow()]);
    let a = s.enter("meadow", Some(0), 100, 100).await;
    let b = s.enter("meadow", Some(0), 350, 200).await;
    for (x, z) in [(2_400, 2_400), (1_500, 1_700), (3_300, 3_000), (4_700, 100)] {
        s.enter("meadow", Some(0), x, z).await;
    }
    s.rest().await;
    let (a_id, b_id) = (s.clients[a].id(), s.clients[b].id());
    for i in 1..=44 {
        let at = 100 + i * 100;
        s.walk(a, at, at).await;
        s.walk(b, at + 250, at + 100).await;
        let wave = format!("wave {i}");
        s.act(a, &wave).await;
        s.steady_tick().await;
        for c in s.clients.iter().filter(|c| c.id() != a_id) {
            let want = if c.shown.contains_key(&a_id) { vec![wave.clone()] } else { vec![] };
            assert_eq!(c.received_of(a_id), want, "{} at step {i}", c.id());
        }
        for c in [&s.clients[a], &s.clients[b]] {
            assert_eq!(c.ack(), c.seq, "{}: an input waits for another tick", c.id());
        }
    }
    assert!(s.handoffs() >= 4, "{} handoffs", s.handoffs());
    s.rest().await;
    for c in &s.clients {
        assert_eq!(c.resyncs(), 0);
        for walker in [a_id, b_id] {
            let count = |ids: &[EntityId]| ids.iter().filter(|id| **id == walker).count();
            // A player who is passed on a straight path comes into view once.
            let met = (count(&c.entered), count(&c.left));
            assert!(matches!(met, (0, 0) | (1, 0) | (1, 1)), "{} of {walker}: {met:?}", c.id());
        }
    }
    assert_eq!(
        (s.clients[a].left.contains(&b_id), s.clients[b].left.contains(&a_id)),
        (false, false)
    );
    assert_eq!(s.clients[b].acts().len(), 44);
    assert_eq!(s.whereabouts(a_id).await.0, [8]);
}

#[actix_rt::test]
async fn jumps_between_planes_and_scenes_are_visible_and_counted() {
    let mut s = Stage::new(vec![meadow(), cave()]);
    let a = s.enter("meadow", Some(0), 1_500, 1_500).await;
    let zero = s.enter("meadow", Some(0), 1_700, 1_500).await;
    let one = s.enter("meadow", Some(1), 1_500, 1_700).await;
    let deep = s.enter("cave", Some(0), 800, 800).await;
    s.rest().await;
    let id = s.clients[a].id();
    assert_eq!((s.places(0), s.places(1)), (vec![(0, 2), (1, 1)], vec![(0, 1)]));
    s.teleport(a, None, Some(1), (1_500, 1_500)).await;
    s.steady_tick().await;
    s.rest().await;
    assert_eq!((s.clients[a].joined.len(), s.clients[a].here().plane), (2, Plane(1)));
    assert_eq!((&s.clients[zero].left, &s.clients[one].entered), (&vec![id], &vec![id]));
    assert_eq!((s.places(0), s.places(1)), (vec![(0, 1), (1, 2)], vec![(0, 1)]));
    s.teleport(a, Some("cave"), None, (900, 900)).await;
    s.steady_tick().await;
    s.rest().await;
    let here = s.clients[a].here();
    assert_eq!((s.clients[a].joined.len(), here.scene.as_str()), (3, "cave"));
    assert_eq!((&s.clients[one].left, &s.clients[deep].entered), (&vec![id], &vec![id]));
    assert_eq!(s.whereabouts(id).await, (vec![9], vec![]));
    assert_eq!((s.places(0), s.places(1)), (vec![(0, 1), (1, 1)], vec![(0, 2)]));
    // On in the other scene, and back.
    s.walk(a, 950, 900).await;
    s.teleport(a, Some("meadow"), Some(0), (1_600, 1_500)).await;
    s.steady_tick().await;
    s.rest().await;
    assert_eq!(s.clients[zero].entered, [id, id]);
    assert_eq!((s.places(0), s.places(1)), (vec![(0, 2), (1, 1)], vec![(0, 1)]));
}

#[actix_rt::test]
async fn automatic_joins_fill_one_line_after_the_other() {
    let mut s = Stage::new(vec![SceneSpec { lines: 2, line_capacity: 2, ..meadow() }]);
    let mut all = Vec::new();
    for _ in 0..5 {
        all.push(s.enter("meadow", None, 1_500, 1_500).await);
        s.tick().await;
    }
    let planes: Vec<i32> = all[..4].iter().map(|c| s.clients[*c].here().plane.0).collect();
    assert_eq!(planes, [0, 0, 1, 1]);
    let fifth = &s.clients[all[4]];
    assert_eq!((fifth.joined.len(), fifth.refused[0].code), (0, ErrorCode::NoRoom));
    let why = &fifth.refused[0].detail;
    assert!(why.contains("2 lines for 2 players each are full"), "{why}");
    s.rest().await;
    s.leave(all[1]).await;
    s.tick().await;
    assert_eq!(s.places(0), [(0, 1), (1, 2)]);
    // Before the join, and in the scene.
    for who in [all[4], all[0]] {
        s.say(who, AskLines { scene: "meadow".into() }).await;
        s.say(who, AskLines { scene: "nowhere".into() }).await;
        s.tick().await;
        let client = &s.clients[who];
        let Lines { total, capacity, lines, .. } = &client.lines[0];
        let lines: Vec<_> = lines.iter().map(|l| (l.plane.0, l.players, l.open)).collect();
        assert_eq!((*total, *capacity, lines), (2, 2, vec![(0, 1, true), (1, 2, false)]));
        let last = client.refused.last().unwrap();
        assert_eq!((client.lines.len(), last.code), (1, ErrorCode::UnknownScene));
    }
    s.greet(all[4], "meadow", None, 1_500, 1_500).await;
    s.rest().await;
    assert_eq!(s.clients[all[4]].here().plane, Plane(0));
    assert_eq!(s.places(0), [(0, 2), (1, 2)]);
}

#[actix_rt::test]
async fn a_player_of_a_line_of_too_many_enters_another_with_its_next_teleport() {
    for lines_yield in [false, true] {
        let city = SceneSpec { lines: 3, line_capacity: 5, lines_yield, ..meadow() };
        let mut s = Stage::new(vec![city]);
        let mut all = Vec::new();
        for _ in 0..6 {
            all.push(s.enter("meadow", None, 1_500, 1_500).await);
            s.tick().await;
        }
        assert_eq!(s.places(0), [(0, 5), (1, 1)]);
        for player in &all[..4] {
            s.leave(*player).await;
        }
        s.rest().await;
        // Two players are for one line. Nobody is moved, and those that come enter the first one.
        assert_eq!(s.places(0), [(0, 1), (1, 1)]);
        all.push(s.enter("meadow", None, 1_500, 1_500).await);
        s.rest().await;
        assert_eq!(s.places(0), [(0, 2), (1, 1)]);
        s.teleport(all[5], None, None, (1_600, 1_600)).await;
        s.steady_tick().await;
        s.rest().await;
        let left = if lines_yield { vec![(0, 3)] } else { vec![(0, 2), (1, 1)] };
        assert_eq!(s.places(0), left);
        assert_eq!(s.clients[all[5]].here().plane, Plane(i32::from(!lines_yield)));
    }
}

#[actix_rt::test]
async fn clients_neither_choose_their_place_nor_teleport_unless_the_scene_says_so() {
    let client_teleports = SceneSpec::default().client_teleports;
    let mut s = Stage::new(vec![SceneSpec { client_teleports, ..meadow() }]);
    let a = s.enter("meadow", None, 1_500, 1_500).await;
    s.rest().await;
    assert!(s.clients[a].joined.is_empty());
    assert_eq!(s.clients[a].codes(), [ErrorCode::MayNotTeleport]);
    s.say(a, join("meadow")).await;
    s.rest().await;
    assert_eq!(s.clients[a].here().pos, Pos::ground(0, 0));
    s.teleport(a, None, None, (1_500, 1_500)).await;
    s.tick().await;
    assert_eq!(s.clients[a].codes(), [ErrorCode::MayNotTeleport; 2]);
    assert_eq!(s.clients[a].joined.len(), 1);
}

#[actix_rt::test]
async fn a_client_for_a_weak_device_sees_as_few_players_as_it_has_asked_for_on_both_sides_of_a_border()
 {
    let mut s = Stage::new(vec![meadow()]);
    let mut all = Vec::new();
    for n in 0..6 {
        all.push(s.enter("meadow", Some(0), 1_500 + 10 * n, 1_000).await);
    }
    s.rest().await;
    s.view_cap = 2;
    let weak = s.enter("meadow", Some(0), 1_480, 1_000).await;
    s.view_cap = 100;
    all.push(s.enter("meadow", Some(0), 1_560, 1_000).await);
    s.ticks(2).await;
    let view_cap = |who: Who| s.clients[who].here().rules.view_cap;
    assert_eq!((view_cap(weak), view_cap(all[0]), view_cap(all[6])), (2, 60, 60));
    for x in [1_480, 1_590, 1_750, 1_900, 1_480] {
        s.walk(weak, x, 1_000).await;
        s.ticks(2).await;
        let (id, seen) = (s.clients[weak].id(), &s.clients[weak].shown);
        assert_eq!(seen.len(), 2, "at {x}: {seen:?}");
        for other in all.iter().map(|who| &s.clients[*who]) {
            let (sees, is_seen) = (seen.contains_key(&other.id()), other.shown.contains_key(&id));
            assert_eq!(sees, is_seen, "at {x}: {}", other.id());
            assert_eq!(other.shown.len(), 6 + usize::from(sees));
        }
    }
    assert!(s.handoffs() >= 2, "it was in two regions");
}

#[actix_rt::test]
async fn a_client_asks_for_less_sight_only_as_the_scene_allows_and_is_as_visible_as_ever() {
    let mut spec = meadow();
    spec.kinds[0].sights = vec![RangeSet::NEAR];
    let mut s = Stage::new(vec![spec]);
    let seeker = s.enter("meadow", Some(0), 100, 100).await;
    s.rest().await;
    let hides = s.connect(calm());
    s.hello(hides, "hides").await;
    let join = |sight| Join { plane: Some(Plane(0)), sight, ..join("meadow") };
    for bits in [0, 2, 5] {
        s.say(hides, join(RangeSet::from_bits(bits))).await;
    }
    s.rest().await;
    assert_eq!(s.clients[hides].codes(), [ErrorCode::NoSuchSight; 3]);
    s.say(hides, join(Some(RangeSet::NEAR))).await;
    s.rest().await;
    let rules = s.clients[hides].here().rules.clone();
    assert_eq!((rules.range, rules.sight), (RangeSet::FULL, RangeSet::NEAR));
    assert!(s.clients[seeker].shown.contains_key(&s.clients[hides].id()));
}

#[actix_rt::test]
async fn a_player_that_leaves_or_is_cut_off_is_gone_everywhere() {
    let mut s = Stage::new(vec![meadow()]);
    // In four regions around a corner.
    let stays = s.enter("meadow", Some(0), 1_500, 1_500).await;
    let leaves = s.enter("meadow", Some(0), 1_700, 1_500).await;
    let cut = s.enter("meadow", Some(0), 1_500, 1_700).await;
    let dropped = s.connect_alone(calm());
    s.greet(dropped.who, "meadow", Some(0), 1_700, 1_700).await;
    s.rest().await;
    assert_eq!(s.clients[stays].shown.len(), 3);
    let gone = [leaves, cut, dropped.who].map(|who| s.clients[who].id());
    s.leave(leaves).await;
    s.tell(cut, purview::actor::player::FromSocket::Gone).await;
    s.clients[cut].reads = false;
    s.lose(dropped).await;
    s.tick().await;
    assert_eq!(
        (s.clients[leaves].parted, s.clients[leaves].closed),
        (true, Some(CloseCode::Normal))
    );
    s.ticks(3).await;
    assert!(s.clients[stays].shown.is_empty());
    let mut left = s.clients[stays].left.clone();
    left.sort();
    assert_eq!(left, gone);
    for id in gone {
        assert_eq!(s.whereabouts(id).await, (vec![], vec![]), "{id} is still somewhere");
    }
    let players =
        s.regions.iter().map(|r| r.metrics.players.load(std::sync::atomic::Ordering::Relaxed));
    assert_eq!(players.sum::<u64>(), 1);
}

//! What the random crowds of `tests/it/why.rs` do not come to.

use super::*;
use crate::scene::views::{NO_BOND, Ties, ViewRules};
use crate::scene::{Epoch, RegionId, Tick};

const CIRCLE: Visibility = Visibility::Circle { enter_cm: 1_000, leave_cm: 1_200 };

fn scene(visibility: Visibility) -> SceneSpec {
    SceneSpec { visibility, ..SceneSpec::default() }
}

/// A player at (`x`, 0) without links and with room for one.
fn player(id: u64, x: i32) -> PlayerDetails {
    PlayerDetails {
        id: EntityId(id),
        epoch: Epoch(1),
        scene: SceneId(0),
        region: RegionId(id as u32),
        tick: Tick(5),
        plane: Plane(0),
        pos: Pos::ground(x, 0),
        sight: RangeSet::FULL,
        ties: Ties::default(),
        relations: Default::default(),
        rules: ViewRules::new(1, 100),
        view: Vec::new(),
        asked: Vec::new(),
        worst: None,
        seen: Vec::new(),
        facing: Default::default(),
        properties: Default::default(),
    }
}

fn entry(id: u64, class: u8, dist_cm: u32) -> ViewEntry {
    ViewEntry { id: EntityId(id), class, dist_cm: Some(dist_cm), linked: true }
}

impl PlayerDetails {
    /// The same player with this entry on its list, which is then full.
    fn listing(mut self, entry: ViewEntry) -> PlayerDetails {
        self.view = vec![entry];
        self.worst = Some(entry);
        self
    }

    /// The same player after asking this one, which reserves its place.
    fn asking(mut self, entry: ViewEntry) -> PlayerDetails {
        let entry = ViewEntry { linked: false, ..entry };
        self.asked = vec![entry];
        self.worst = Some(entry);
        self
    }
}

fn ask(visibility: Visibility, a: PlayerDetails, b: PlayerDetails) -> Why {
    let [a, b] = [a, b].map(|p| InspectedEntity::Player(Box::new(p)));
    why(&scene(visibility), &a, &b)
}

fn alone(dist_cm: u32) -> PairRank {
    PairRank { class: NO_BOND, dist_cm }
}

#[test]
fn a_question_about_one_entity_twice_says_so() {
    assert_eq!(ask(CIRCLE, player(1, 0), player(1, 0)), Why::SameEntity);
}

#[test]
fn scenes_and_planes_separate_players() {
    let mut elsewhere = player(2, 0);
    elsewhere.scene = SceneId(3);
    let scenes = [SceneId(0), SceneId(3)];
    assert_eq!(ask(CIRCLE, player(1, 0), elsewhere), Why::OtherScene { scenes });
    let mut below = player(2, 0);
    below.plane = Plane(-4);
    let planes = [Plane(0), Plane(-4)];
    assert_eq!(ask(CIRCLE, player(1, 0), below), Why::OtherPlane { planes });
}

#[test]
fn no_player_in_limbo_sees_another() {
    let [mut a, mut b] = [player(1, 0), player(2, 0)];
    (a.plane, b.plane) = (Plane::LIMBO, Plane::LIMBO);
    let planes = [Plane::LIMBO; 2];
    assert_eq!(ask(CIRCLE, a, b), Why::OtherPlane { planes });
}

#[test]
fn a_circle_is_entered_at_one_radius_and_left_beyond_another() {
    let limit = |known| Limit::Circle { enter_cm: 1_000, leave_cm: 1_200, known };
    let far = |dist_cm, known| Why::OutOfRange { dist_cm, limit: limit(known) };
    let negotiating = |dist_cm| Why::Negotiating { pair: alone(dist_cm) };
    assert_eq!(ask(CIRCLE, player(1, 0), player(2, 1_000)), negotiating(1_000));
    assert_eq!(ask(CIRCLE, player(1, 0), player(2, 1_001)), far(1_001, false));
    // A player that only one side lists or has asked is in range up to the leave radius.
    let listing = || player(1, 0).listing(entry(2, NO_BOND, 1_200));
    assert_eq!(ask(CIRCLE, listing(), player(2, 1_200)), negotiating(1_200));
    let asking = || player(1, 0).asking(entry(2, NO_BOND, 1_200));
    assert_eq!(ask(CIRCLE, player(2, 1_200), asking()), negotiating(1_200));
    assert_eq!(ask(CIRCLE, listing(), player(2, 1_201)), far(1_201, true));
}

#[test]
fn players_in_range_on_the_ground_must_be_near_in_height_too() {
    let ask = |a: PlayerDetails, b: PlayerDetails| {
        let [a, b] = [a, b].map(|p| InspectedEntity::Player(Box::new(p)));
        why(&SceneSpec { height_cm: Some(800), ..scene(CIRCLE) }, &a, &b)
    };
    let above = |y: i32| PlayerDetails { pos: Pos { x: 500, y, z: 0 }, ..player(2, 500) };
    let limit = |apart_cm, known| {
        let (enter_cm, leave_cm) = (800, 900);
        Limit::Height { apart_cm, enter_cm, leave_cm, known }
    };
    let far = |apart_cm, known| Why::OutOfRange { dist_cm: 500, limit: limit(apart_cm, known) };
    assert_eq!(ask(player(1, 0), above(-800)), Why::Negotiating { pair: alone(500) });
    assert_eq!(ask(player(1, 0), above(801)), far(801, false));
    let listing = || player(1, 0).listing(entry(2, NO_BOND, 500));
    assert_eq!(ask(listing(), above(900)), Why::Negotiating { pair: alone(500) });
    assert_eq!(ask(listing(), above(901)), far(901, true));
    // The ground is named first.
    let both = PlayerDetails { pos: Pos { x: 1_001, y: 5_000, z: 0 }, ..player(2, 0) };
    let ground = Limit::Circle { enter_cm: 1_000, leave_cm: 1_200, known: false };
    let beyond = Why::OutOfRange { dist_cm: 1_001, limit: ground };
    assert_eq!(ask(player(1, 0), both), beyond);
}

#[test]
fn with_visibility_all_no_pair_is_out_of_range() {
    let pair = alone(90_000);
    let told = ask(Visibility::All, player(1, 0), player(2, 90_000));
    assert_eq!(told, Why::Negotiating { pair });
}

#[test]
fn at_equal_distance_ids_decide() {
    // The pairs (1, 2) and (1, 3) at 400 cm: the first is better.
    let a = || player(1, 0).asking(entry(3, NO_BOND, 400));
    assert_eq!(ask(CIRCLE, a(), player(2, 400)), Why::Negotiating { pair: alone(400) });
    let b = player(1, 0).asking(entry(2, NO_BOND, 400));
    let kept = ViewEntry { linked: false, ..entry(2, NO_BOND, 400) };
    let stands = [Stand::Full(kept), Stand::Willing];
    assert_eq!(ask(CIRCLE, b, player(3, 400)), Why::Full { pair: alone(400), stands });
}

#[test]
fn a_link_stays_within_the_margin() {
    let kept = entry(3, NO_BOND, 600);
    let told = |x: i32| ask(CIRCLE, player(1, 0).listing(kept), player(2, x));
    let stands = [Stand::WithinMargin(kept), Stand::Willing];
    for x in [501, 599] {
        assert_eq!(told(x), Why::WithinMargin { pair: alone(x as u32), stands });
    }
    // At 500 cm the margin of 100 is matched, and the ids (1, 2) come before (1, 3).
    assert_eq!(told(500), Why::Negotiating { pair: alone(500) });
    let stands = [Stand::Full(kept), Stand::Willing];
    assert_eq!(told(601), Why::Full { pair: alone(601), stands });
}

#[test]
fn a_player_that_asked_is_willing_while_its_request_has_a_place() {
    let asked = entry(2, NO_BOND, 700);
    let a = player(1, 0).asking(asked);
    assert_eq!(ask(CIRCLE, a.clone(), player(2, 700)), Why::Negotiating { pair: alone(700) });
    // A better player has come near since it asked.
    let better = entry(3, NO_BOND, 10);
    let stands = [Stand::Full(better), Stand::Willing];
    let told = ask(CIRCLE, a.listing(better), player(2, 700));
    assert_eq!(told, Why::Full { pair: alone(700), stands });
}

#[test]
fn a_link_on_one_side_only_is_not_seen() {
    let a = player(1, 0).listing(entry(2, NO_BOND, 700));
    assert_eq!(ask(CIRCLE, a.clone(), player(2, 700)), Why::Negotiating { pair: alone(700) });
    // The other player has linked with a better one: its NO is in flight.
    let better = entry(3, NO_BOND, 10);
    let stands = [Stand::Willing, Stand::Full(better)];
    let told = ask(CIRCLE, a, player(2, 700).listing(better));
    assert_eq!(told, Why::Full { pair: alone(700), stands });
}

#[test]
fn an_entry_at_an_unknown_position_is_the_worst() {
    let lost = ViewEntry { dist_cm: None, ..entry(3, NO_BOND, 0) };
    let told = ask(CIRCLE, player(1, 0).listing(lost), player(2, 999));
    assert_eq!(told, Why::Negotiating { pair: alone(999) });
}

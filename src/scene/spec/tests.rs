use proptest::prelude::*;
use proptest::strategy::ValueTree;

use super::*;
use crate::scene::movement::Climb;
use crate::scene::terrain::Draft;

fn keys(spec: SceneSpec) -> Vec<&'static str> {
    match Scene::new(SceneId(0), spec, 100, RegionId(0)) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.iter().map(|e| e.key).collect(),
    }
}

fn scene(spec: SceneSpec) -> Scene {
    Scene::new(SceneId(0), spec, 100, RegionId(0)).unwrap()
}

/// The broken rules of a scene.
fn wrong(spec: SceneSpec) -> Vec<String> {
    let errors = Scene::new(SceneId(0), spec, 100, RegionId(0)).unwrap_err();
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn the_default_scene_is_legal() {
    let scene = scene(SceneSpec::default());
    assert_eq!(scene.map.regions.len(), 4);
    assert_eq!(scene.reach_cm, 9_600 + 2 * 200);
    assert_eq!(scene.band_cm, scene.reach_cm + 200 + 200);
}

#[test]
fn each_broken_rule_names_its_key() {
    let d = SceneSpec::default;
    let layer = |patch_cm| vec![LayerSpec::square("common", patch_cm)];
    assert_eq!(keys(SceneSpec { width_cm: 99, ..d() }), ["width"]);
    assert_eq!(keys(SceneSpec { width_cm: 60_000, ..d() }), ["spawn_x"]);
    assert_eq!(keys(SceneSpec { layers: layer(3_000), ..d() }), ["patch"]);
    assert_eq!(keys(SceneSpec { layers: layer(0), ..d() }), ["patch"]);
    assert_eq!(keys(SceneSpec { view_cap: 0, ..d() }), ["view_cap"]);
    for patch_margin_cm in [Some(-1), Some(1_601), Some(i32::MAX)] {
        assert_eq!(keys(SceneSpec { patch_margin_cm, ..d() }), ["patch_margin"]);
    }
    for height_cm in [Some(0), Some(-1), Some(100_000_001)] {
        assert_eq!(keys(SceneSpec { height_cm, ..d() }), ["height"]);
    }
    let circle = |enter_cm, leave_cm| Visibility::Circle { enter_cm, leave_cm };
    assert_eq!(keys(SceneSpec { visibility: circle(8_000, 8_000), ..d() }), ["leave"]);
    assert_eq!(keys(SceneSpec { visibility: circle(8_000, 200_000), ..d() }), ["region side"]);
    assert_eq!(keys(SceneSpec { visibility: Visibility::All, ..d() }), ["regions"]);
    assert_eq!(keys(SceneSpec { band_cm: 5_000, ..d() }), ["band"]);
    assert_eq!(keys(SceneSpec { band_cm: 500_000, ..d() }), ["band"]);
    assert_eq!(keys(SceneSpec { spawn_x_cm: -1, ..d() }), ["spawn_x"]);
    let kind = |name: &str, layer| KindSpec::new(name, layer);
    assert_eq!(keys(SceneSpec { kinds: vec![kind("npc", 0)], ..d() }), ["kinds"]);
    let kinds = vec![kind("player", 0), kind("npc", 4)];
    assert_eq!(keys(SceneSpec { kinds, ..d() }), ["kinds.layer"]);
}

#[test]
fn each_broken_rule_of_moves_names_its_key() {
    let judged = |moves: MoveSpec| SceneSpec {
        moves: MoveSpec { mode: Moves::Judged, ..moves },
        ..SceneSpec::default()
    };
    let d = MoveSpec::default;
    assert_eq!(keys(judged(d())), [""; 0]);
    assert_eq!(keys(judged(MoveSpec { tile_cm: 0, ..d() })), ["movement.tile"]);
    assert_eq!(keys(judged(MoveSpec { command_ms: 49, ..d() })), ["movement.command"]);
    assert_eq!(keys(judged(MoveSpec { grace_ms: 99, ..d() })), ["movement.grace"]);
    assert_eq!(keys(judged(MoveSpec { leash_ms: 499, ..d() })), ["movement.leash"]);
    assert_eq!(keys(judged(MoveSpec { allowance_ms: 1_000, ..d() })), ["movement.allowance"]);
    let climb = Some(Climb { up_cm: 50, down_cm: -1 });
    assert_eq!(keys(judged(MoveSpec { climb, ..d() })), ["movement.climb_down"]);
    // Figures that are not in use may be anything.
    let trusted = MoveSpec { command_ms: 0, ..d() };
    assert_eq!(keys(SceneSpec { moves: trusted, ..SceneSpec::default() }), [""; 0]);
    let kinds = vec![KindSpec { speed_cm_s: Some(2_001), ..KindSpec::new("player", 0) }];
    let spec = SceneSpec { kinds, ..SceneSpec::default() };
    assert_eq!(
        wrong(spec)[0],
        "kinds.speed = 20.01 m/s (kind \"player\"): must lie between 0 m/s and the scene's top speed \
         of 20 m/s"
    );
}

#[test]
fn kinds_block_only_where_moves_are_judged_and_the_next_tile_is_in_sight() {
    let wall = KindSpec { blocks: true, ..KindSpec::new("wall", 0) };
    let kinds = vec![KindSpec::new("player", 0), wall];
    let trusted = SceneSpec { kinds, ..SceneSpec::default() };
    assert_eq!(
        wrong(trusted.clone()),
        [
            "kinds.blocks = true (kind \"wall\"): has no effect where positions are trusted: set moves = \"judged\""
        ]
    );
    let moves = MoveSpec { mode: Moves::Judged, tile_cm: 1_000, ..MoveSpec::default() };
    let visibility = Visibility::Circle { enter_cm: 100, leave_cm: 200 };
    let judged = SceneSpec { moves, visibility, ..trusted };
    let scene = scene(judged);
    let blocks = [0, 1, 2].map(|k| scene.footprint(Kind(k)).is_some());
    assert_eq!((scene.reach_cm, blocks), (2_000, [false, true, false]));
    let terrain = |tile_cm| {
        let side = 204_800 / tile_cm;
        Arc::new(Draft::new(tile_cm, side, side).unwrap().finish())
    };
    assert!(scene.clone().with_terrain(terrain(800)).is_ok());
    let errors = scene.with_terrain(terrain(1_600)).unwrap_err();
    assert_eq!(
        errors[0].to_string(),
        "tile = 16 m: kinds that block must be in range on the next tile: half of the largest body and one and a half \
         tiles are 32 m, the range is 20 m"
    );
}

#[test]
fn bodies_have_a_size_only_where_kinds_block_and_are_in_range_on_the_next_tile() {
    let body = |blocks, size_cm| {
        let ox = KindSpec { blocks, size_cm: Some(size_cm), ..KindSpec::new("ox", 0) };
        let moves = MoveSpec { mode: Moves::Judged, ..MoveSpec::default() };
        let visibility = Visibility::Circle { enter_cm: 100, leave_cm: 200 };
        let kinds = vec![KindSpec::new("player", 0), ox];
        SceneSpec { kinds, moves, visibility, ..SceneSpec::default() }
    };
    let text = |found: &str, rule: &str| [format!("kinds.size = {found} (kind \"ox\"): {rule}")];
    assert_eq!(
        wrong(body(false, [400; 2])),
        text("4 m", "has no effect on a kind that does not block: set blocks = true")
    );
    let most = "must be at most 16 m: 16 tiles of 1 m";
    assert_eq!(wrong(body(true, [1_601, 100])), text("16.01 m x 1 m", most));
    assert_eq!(wrong(body(true, [100, 1_601])), text("1 m x 16.01 m", most));
    assert_eq!(wrong(body(true, [100, 0])), text("1 m x 0 m", "must be at least 1 cm"));
    for (size_cm, reach_cm) in
        [([1_600, 1], 950), ([301, 700], 500), ([301, 1], 301), ([1, 1], 200)]
    {
        assert_eq!(scene(body(true, size_cm)).reach_cm, reach_cm, "{size_cm:?}");
    }
    let ox = scene(body(true, [1_600, 100]));
    let terrain = |tile_cm| {
        let side = 204_800 / tile_cm;
        Arc::new(Draft::new(tile_cm, side, side).unwrap().finish())
    };
    let columns = |scene: &Scene| {
        let rect = scene.footprint(Kind(1)).unwrap().at(Pos::ground(5_000, 5_000));
        rect.last.x - rect.first.x + 1
    };
    let on_small = ox.clone().with_terrain(terrain(80)).unwrap_err();
    assert_eq!(
        on_small[0].to_string(),
        "kinds.size = 16 m x 1 m (kind \"ox\"): must be at most 12.80 m: 16 tiles of 0.80 m"
    );
    assert_eq!((columns(&ox), ox.reach_cm), (16, 950));
    let errors = ox.with_terrain(terrain(200)).unwrap_err();
    assert!(errors[0].to_string().contains("are 11 m, the range is 9.50 m"), "{}", errors[0]);
}

#[test]
fn the_band_of_judged_moves_has_room_for_a_late_command() {
    let moves = MoveSpec { mode: Moves::Judged, ..MoveSpec::default() };
    let spec = SceneSpec { moves, top_speed_cm_s: 600, ..SceneSpec::default() };
    let scene = scene(spec.clone());
    // A tick, a command interval and its grace, the allowance, and 50 ms for inexact starts.
    assert_eq!(scene.band_cm, 10_000 + 200 + 6 * (100 + 800 + 1_100 + 50) / 10);
    assert_eq!((scene.speed_of(Kind::PLAYER), scene.tile_cm()), (600, 100));
    let narrow = SceneSpec { band_cm: 11_000, ..spec };
    assert_eq!(
        wrong(narrow)[0],
        "band = 110 m: must lie between leave range 100 m + handoff margin 2 m + one tick and a late \
         command at top speed 12.30 m = 114.30 m and the smallest region side, 1024 m"
    );
}

#[test]
fn an_error_says_what_would_be_legal() {
    let spec =
        SceneSpec { layers: vec![LayerSpec::square("common", 3_000)], ..SceneSpec::default() };
    assert_eq!(
        wrong(spec)[0],
        "patch = 30 m (layer \"common\"): a land of 512 m must be a power of two times the \
         patch, for example 32 m"
    );
}

#[test]
fn oblong_patches_need_not_divide_a_land() {
    let oblong = |patch_cm| SceneSpec {
        layers: vec![LayerSpec { patch_cm, ..LayerSpec::square("common", 0) }],
        ..SceneSpec::default()
    };
    assert_eq!(scene(oblong([1_600, 1_000])).reach_cm, 3 * 1_600 + 2 * 200);
    for patch_cm in [[0, 1_000], [1_000, -1], [1_000, 51_201]] {
        assert!(keys(oblong(patch_cm)).contains(&"patch"), "{patch_cm:?}");
    }
    assert_eq!(
        wrong(oblong([1_000, 51_201]))[0],
        "patch = 10 m x 512.01 m (layer \"common\"): both sides must be at least 1 cm and at most that of a land, 512 m"
    );
    let margin = |margin| SceneSpec { patch_margin_cm: Some(margin), ..oblong([1_600, 1_000]) };
    assert_eq!((keys(margin(500)), keys(margin(501))), (vec![], vec!["patch_margin"]));
}

#[test]
fn all_broken_rules_are_reported_at_once() {
    let spec = SceneSpec { view_cap: 0, lines: 0, width_cm: 1, ..SceneSpec::default() };
    assert_eq!(keys(spec), ["width", "view_cap", "lines"]);
}

#[test]
fn a_map_of_too_many_lands_or_regions_is_refused_with_the_figure() {
    let d = SceneSpec::default;
    let small_lands = SceneSpec {
        width_cm: 100_000_000,
        depth_cm: 100_000_000,
        land_cm: 1_600,
        region_lands_x: 40_000,
        region_lands_z: 40_000,
        layers: vec![LayerSpec::square("common", 400)],
        ..d()
    };
    assert_eq!(
        wrong(small_lands),
        ["land = 16 m (3906250000 lands): a map may have at most 4000000 lands"]
    );
    let small_regions = SceneSpec {
        width_cm: 51_200 * 256,
        depth_cm: 51_200 * 256,
        region_lands_x: 1,
        region_lands_z: 1,
        ..d()
    };
    assert_eq!(
        wrong(small_regions),
        ["region_lands = 1 x 1 lands: makes 65536 regions; a map may have at most 65535"]
    );
}

#[test]
fn a_step_that_does_not_divide_is_rounded_up() {
    let slow = SceneSpec { top_speed_cm_s: 15, ..SceneSpec::default() };
    let scene = Scene::new(SceneId(0), slow, 10, RegionId(0)).unwrap();
    assert_eq!(scene.band_cm, 10_000 + 200 + 1);
}

#[test]
fn a_top_speed_cannot_wrap_into_a_small_band() {
    let fast = SceneSpec { top_speed_cm_s: i32::MAX, ..SceneSpec::default() };
    assert_eq!(keys(fast), ["top_speed"]);
    let fast = SceneSpec { top_speed_cm_s: 50_000_000, ..SceneSpec::default() };
    let errors = Scene::new(SceneId(0), fast, 10_000, RegionId(0)).unwrap_err();
    assert_eq!(errors[0].key, "region side");
}

/// A length: legal, next to a limit, or arbitrary.
fn length() -> impl Strategy<Value = i32> {
    prop_oneof![
        6 => (0u32..6).prop_map(|shift| 1_600 << shift),
        2 => prop::sample::select(vec![0, 1, -1, 99, 100, 100_000_000, i32::MAX, i32::MIN]),
        1 => any::<i32>(),
    ]
}

/// A scene that is legal unless its regions are too small for its ranges.
fn sound_spec() -> impl Strategy<Value = SceneSpec> {
    let sizes = (100i32..800, 0u32..4, 1i32..300, 1i32..300);
    // What the edges cut off the last lands, percent.
    let cut = (0i32..100, 0i32..100);
    let visibility = prop_oneof![
        4 => Just(Visibility::Patches),
        1 => Just(Visibility::All),
        2 => (1i32..5_000, 1i32..500).prop_map(|(enter_cm, wider)| {
            Visibility::Circle { enter_cm, leave_cm: enter_cm + wider }
        }),
    ];
    (sizes, cut, (1i32..100, 1i32..100), visibility, 1i32..2_000, 0i32..500).prop_map(
        |(
            (patch_cm, doublings, x, z),
            cut,
            regions,
            visibility,
            top_speed_cm_s,
            handoff_margin_cm,
        )| {
            let land_cm = patch_cm << doublings;
            let side = |lands: i32, cut: i32| (land_cm * lands - land_cm * cut / 100).max(100);
            SceneSpec {
                width_cm: side(x, cut.0),
                depth_cm: side(z, cut.1),
                land_cm,
                region_lands_x: regions.0,
                region_lands_z: regions.1,
                layers: vec![LayerSpec::square("common", patch_cm)],
                visibility,
                top_speed_cm_s,
                handoff_margin_cm,
                spawn_x_cm: 0,
                spawn_z_cm: 0,
                ..SceneSpec::default()
            }
        },
    )
}

/// A sound scene with up to three figures replaced by arbitrary ones.
fn any_spec() -> impl Strategy<Value = (SceneSpec, u32, u32)> {
    let breaks = prop::collection::vec((0usize..18, length()), 0..4);
    let tick = prop_oneof![8 => 10u32..=10_000, 1 => any::<u32>()];
    let first = prop_oneof![8 => Just(0), 1 => any::<u32>()];
    (sound_spec(), breaks, tick, first).prop_map(|(mut spec, breaks, tick, first)| {
        for (key, v) in breaks {
            match key {
                0 => spec.width_cm = v,
                1 => spec.depth_cm = v,
                2 => spec.land_cm = v,
                3 => spec.region_lands_x = v,
                4 => spec.region_lands_z = v,
                5 => spec.layers[0].patch_cm = [v; 2],
                16 => spec.layers[0].patch_cm[0] = v,
                6 => spec.view_margin_cm = v,
                7 => spec.handoff_margin_cm = v,
                8 => spec.top_speed_cm_s = v,
                9 => spec.band_cm = v,
                10 => spec.lines = v,
                11 => spec.spawn_x_cm = v,
                12 => spec.spawn_z_cm = v,
                15 => spec.patch_margin_cm = Some(v),
                14 => spec.plane_groups = v.rem_euclid(5) as u16,
                13 => spec.visibility = Visibility::Circle { enter_cm: 1, leave_cm: v },
                _ => (spec.width_cm, spec.depth_cm) = (100_000_000, 100_000_000),
            }
        }
        (spec, tick, first)
    })
}

#[test]
fn random_specs_are_legal_often_enough_to_mean_something() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let spec = any_spec();
    let legal = |_: &u32| {
        let (spec, tick, first) = spec.new_tree(&mut runner).unwrap().current();
        Scene::new(SceneId(0), spec, tick, RegionId(first)).is_ok_and(|s| s.map.regions.len() > 1)
    };
    let legal = (0..2_000).filter(legal).count();
    assert!(legal >= 100, "{legal} of 2000 have several regions");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn any_spec_is_a_scene_or_a_list_of_rules((spec, tick, first) in any_spec()) {
        match Scene::new(SceneId(0), spec, tick, RegionId(first)) {
            Ok(scene) => {
                let map = &scene.map;
                let area = |r: &crate::scene::Rect| {
                    i64::from(r.x1 - r.x0) * i64::from(r.z1 - r.z0)
                };
                let covered: i64 = map.regions.iter().map(|r| area(&r.rect)).sum();
                let groups = i64::from(scene.spec.plane_groups);
                prop_assert_eq!(covered, area(&map.bounds) * groups);
                prop_assert!(map.has_no_borders() || scene.band_cm > scene.reach_cm);
                for r in map.regions.iter().step_by(1 + map.regions.len() / 50) {
                    let corners = [
                        (r.rect.x0, r.rect.z0),
                        (r.rect.x1 - 1, r.rect.z0),
                        (r.rect.x0, r.rect.z1 - 1),
                        (r.rect.x1 - 1, r.rect.z1 - 1),
                    ];
                    let plane = crate::scene::Plane(i32::from(r.group.0));
                    for (x, z) in corners {
                        let owner = map.at(plane, crate::scene::Pos::ground(x, z));
                        prop_assert_eq!(owner.map(|o| o.id), Some(r.id));
                    }
                }
            }
            Err(errors) => {
                prop_assert!(!errors.is_empty());
                prop_assert!(errors.iter().all(|e| !e.to_string().is_empty()));
            }
        }
    }
}

/// Found by this test: a legal map of 1,000 km with patches of a metre has 10^12 of them, and their
/// product overflowed.
#[test]
fn an_index_that_takes_too_much_memory_is_refused_with_a_legal_value() {
    let layer = |patch_cm| vec![LayerSpec::square("common", patch_cm)];
    let huge = |patch_cm| SceneSpec {
        width_cm: 65_536_000,
        depth_cm: 65_536_000,
        land_cm: 51_200,
        region_lands_x: 1_280,
        region_lands_z: 1_280,
        layers: layer(patch_cm),
        ..SceneSpec::default()
    };
    assert_eq!(
        wrong(huge(100)),
        [
            "patch = 1 m (layer \"common\"): makes 429496729600 patches in the index of a region of 1280 x 1280 lands, for \
         each kind and plane; at most 16777216 (4 MiB) are allowed: choose patches of 256 m, or smaller regions (region)"
        ]
    );
    assert_eq!(keys(huge(25_600)), [""; 0]);
    assert_eq!(keys(huge(12_800)), ["patch"]);
    let smaller = SceneSpec { region_lands_x: 4, region_lands_z: 4, ..huge(100) };
    assert_eq!(keys(smaller), ["region_lands"], "too many regions, each of which would do");
}

/// Joined regions have a larger index.
#[test]
fn regions_are_not_joined_beyond_what_an_index_may_take() {
    let spec = SceneSpec {
        width_cm: 1_024_000,
        depth_cm: 1_024_000,
        land_cm: 102_400,
        region_lands_x: 5,
        region_lands_z: 5,
        layers: vec![LayerSpec::square("common", 200)],
        ..SceneSpec::default()
    };
    let scene = scene(spec);
    let one = scene.map.layout().scale(1, 1).unwrap();
    let wrong = scene.with_layout(&one).unwrap_err();
    assert!(
        matches!(&wrong, LayoutError::Rules(wrong) if wrong.len() == 1 && wrong[0].key == "patch"),
        "{wrong}"
    );
}

//! What the API tells of a scene of two planes.

use purview::scene::SceneSpec;
use purview::scene::inspect::{EntityDetails, RegionDetails};
use purview::scene::views::{Ties, ViewRules};
use serde_json::{json, to_value};

use super::*;

fn meadow(visibility: Visibility) -> Scene {
    let spec = SceneSpec { visibility, lines: 2, ..SceneSpec::default() };
    Scene::new(SceneId(0), spec, 100, RegionId(0)).unwrap()
}

fn entity(id: u64, kind: u8, plane: i32, ghost: bool) -> EntityDetails {
    EntityDetails {
        id: EntityId(id),
        kind: Kind(kind),
        plane: Plane(plane),
        pos: Pos { x: 100, y: 7, z: 200 },
        owner: RegionId(u32::from(ghost)),
        ghost,
        views: 3,
        facing: Facing::EAST,
        properties: Default::default(),
    }
}

fn survey(scene: &Scene) -> Survey {
    let region = RegionDetails {
        scene: scene.id,
        region: RegionId(0),
        epoch: Epoch(5),
        rect: scene.map.regions[0].rect,
        tick: Tick(99),
        doors: Vec::new(),
        sighted: vec![(EntityId(2), EntityId(1)), (EntityId(2), EntityId(3))],
        entities: vec![
            entity(1, 0, 0, false),
            entity(2, 2, 0, false),
            entity(3, 0, 0, true),
            entity(4, 0, 7, false),
            entity(5, 0, Plane::LIMBO.0, false),
        ],
    };
    Survey { regions: vec![region], late: vec![RegionId(3)] }
}

#[test]
fn a_scene_has_its_sizes_regions_and_planes() {
    let circle = Visibility::Circle { enter_cm: 8_000, leave_cm: 9_000 };
    let scene_data = meadow(circle);
    let shape = to_value(scene(&scene_data, "n1", &survey(&scene_data))).unwrap();
    assert_eq!(shape["name"], "meadow");
    assert_eq!(shape["patch_cm"], json!([3_200, 3_200]));
    assert_eq!(shape["kinds"][2], json!({"name": "monster", "layer": 0, "watch_cm": null}));
    assert_eq!(
        shape["visibility"],
        json!({"mode": "circle", "enter_cm": 8_000, "leave_cm": 9_000})
    );
    assert_eq!(
        shape["regions"][0],
        json!({
            "id": 0, "name": "R0", "group": 0, "owner": "n1", "epoch": 5,
            "rect": {"x0": 0, "z0": 0, "x1": 102_400, "z1": 102_400},
        })
    );
    assert_eq!(shape["regions"][3]["epoch"], 1);
    assert_eq!(
        shape["planes"],
        json!([
            {"plane": 0, "players": 1, "entities": 2},
            {"plane": 1, "players": 0, "entities": 0},
            {"plane": 7, "players": 1, "entities": 1},
        ])
    );
    assert_eq!(shape["late"], json!([3]));
}

#[test]
fn entities_are_rows_and_ghosts_are_included_on_request() {
    let scene = meadow(Visibility::Patches);
    let with = to_value(entities(&scene, Plane(0), true, &survey(&scene))).unwrap();
    assert_eq!(with["entities"], json!([[1, 0, 100, 7, 200, 0, 3], [2, 2, 100, 7, 200, 0, 3]]));
    assert_eq!(with["ghosts"], json!([[3, 0, 100, 200, 1, 0]]));
    assert_eq!(with["ticks"], json!([[0, 99, 5]]));
    assert_eq!(with["late"], json!([3]));
    assert_eq!(with["sighted"], json!([[2, 1], [2, 3]]));
    assert!(entities(&scene, Plane(0), false, &survey(&scene)).ghosts.is_empty());
    assert_eq!(entities(&scene, Plane(7), false, &survey(&scene)).entities.len(), 1);
}

fn entry(id: u64, class: u8, dist_cm: Option<u32>, linked: bool) -> ViewEntry {
    ViewEntry { id: EntityId(id), class, dist_cm, linked }
}

#[test]
fn the_state_of_a_door_is_that_of_the_region_under_it() {
    use purview::scene::terrain::{DoorState, Draft, Tile};
    // With tiles of 64 m the first door is in region 0, the second in region 3.
    let mut draft = Draft::new(6_400, 32, 32).unwrap();
    draft.add_door("gate", false, &[Tile { x: 1, z: 1 }]).unwrap();
    draft.add_door("bridge", true, &[Tile { x: 20, z: 20 }]).unwrap();
    let scene = meadow(Visibility::Patches).with_terrain(draft.finish().into()).unwrap();
    let state = |plane, door, open| DoorState { plane: Plane(plane), door: DoorId(door), open };
    let mut survey = survey(&scene);
    let mut other = survey.regions[0].clone();
    other.region = RegionId(3);
    survey.regions[0].doors = vec![state(0, 0, true), state(0, 1, true), state(7, 0, true)];
    assert_eq!(entities(&scene, Plane(0), false, &survey).doors, [(0, true), (1, true)]);
    // Region 3 decides about the bridge and has closed it.
    other.doors = vec![state(0, 0, false), state(0, 1, false)];
    survey.regions.push(other);
    assert_eq!(entities(&scene, Plane(0), false, &survey).doors, [(0, true), (1, false)]);
    assert_eq!(entities(&scene, Plane(7), false, &survey).doors, [(0, true)]);
    assert_eq!(entities(&scene, Plane(1), false, &survey).doors, []);
}

#[test]
fn a_player_has_its_range_and_its_view_list() {
    let snapshot = PlayerDetails {
        id: EntityId(9),
        epoch: Epoch(2),
        scene: SceneId(0),
        region: RegionId(1),
        tick: Tick(8),
        plane: Plane(0),
        pos: Pos::ground(1, 2),
        sight: RangeSet::NEAR,
        ties: Ties::default(),
        relations: Default::default(),
        rules: ViewRules::new(2, 100),
        view: vec![entry(3, 1, Some(900), true), entry(5, NO_BOND, Some(40), true)],
        asked: vec![entry(6, NO_BOND, None, false)],
        worst: Some(entry(5, NO_BOND, Some(40), true)),
        seen: vec![EntityId(4)],
        facing: Facing::SOUTH,
        properties: Default::default(),
    };
    let shape = to_value(player(&meadow(Visibility::Patches), snapshot.clone())).unwrap();
    assert_eq!(shape["range"], json!({"mode": "patches", "bits": 7, "patch_cm": [3_200, 3_200]}));
    assert_eq!(shape["pos"], json!({"x": 1, "y": 0, "z": 2}));
    assert_eq!((&shape["view_cap"], &shape["region_name"]), (&json!(2), &json!("R1")));
    assert_eq!(
        shape["view"],
        json!([
            {"place": 1, "id": 3, "bond": {"class": 1, "name": "party"},
             "dist_cm": 900, "linked": true},
            {"place": 2, "id": 5, "bond": null, "dist_cm": 40, "linked": true},
        ])
    );
    let asked = json!([{"id": 6, "bond": null, "dist_cm": null, "linked": false}]);
    assert_eq!((&shape["asked"], &shape["worst"]["id"]), (&asked, &json!(5)));
    let circle = Visibility::Circle { enter_cm: 10, leave_cm: 20 };
    let shape = player(&meadow(circle), snapshot);
    assert_eq!(shape.range, RangeShape::Circle { enter_cm: 10, leave_cm: 20 });
}

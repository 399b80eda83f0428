use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::scene::{Plane, RegionId, Scene, SceneId, SceneSpec, Tick};

const HERE: Plane = Plane(0);
const THERE: Plane = Plane(7);

fn tile(x: i32, z: i32) -> Tile {
    Tile { x, z }
}

/// 70 x 3 tiles of 1 m: a wall along x = 65 with a gate in its middle, and a bridge, initially
/// open, over water at (10, 0) and (11, 0).
fn keep() -> Terrain {
    let mut draft = Draft::new(100, 70, 3).unwrap();
    for blocked in [tile(65, 0), tile(65, 1), tile(65, 2), tile(10, 0), tile(11, 0)] {
        draft.set_blocked(blocked, true).unwrap();
    }
    assert_eq!(draft.add_door("gate", false, &[tile(65, 1)]), Ok(DoorId(0)));
    assert_eq!(draft.add_door("bridge", true, &[tile(10, 0), tile(11, 0)]), Ok(DoorId(1)));
    draft.finish()
}

fn set(plane: Plane, door: u16, open: bool, at: u64, version: u64) -> DoorOrder {
    let change = DoorChange::Set { door: DoorId(door), open };
    DoorOrder { plane, change, at: Tick(at), version }
}

#[test]
fn tiles_are_free_or_blocked_and_tiles_outside_are_not_free() {
    let ground = Ground::new(keep().into());
    let blocked: Vec<_> = (-2..5)
        .flat_map(|z| (-2..73).map(move |x| tile(x, z)))
        .filter(|t| ground.terrain().contains(*t) && !ground.is_free(HERE, *t))
        .collect();
    assert_eq!(blocked, [tile(65, 0), tile(65, 1), tile(65, 2)]);
    for outside in [tile(-1, 0), tile(70, 0), tile(0, 3), tile(i32::MIN, i32::MAX)] {
        assert!(!ground.is_free(HERE, outside), "{outside:?}");
        assert!(ground.terrain().is_blocked(outside));
    }
    assert_eq!(ground.terrain().blocked_tiles(), 2, "tiles of doors and bridges do not count");
    let map = |t| ground.terrain().is_blocked(t);
    assert_eq!([map(tile(65, 0)), map(tile(65, 1)), map(tile(10, 0))], [true, false, false]);
}

#[test]
fn a_position_has_a_tile_even_off_the_map() {
    let terrain = keep();
    let at = |x, z| terrain.tile_of(Pos { x, y: 5, z });
    assert_eq!([at(0, 0), at(99, 100), at(6_999, 299)], [tile(0, 0), tile(0, 1), tile(69, 2)]);
    assert_eq!([at(-1, -100), at(-101, 0)], [tile(-1, -1), tile(-2, 0)]);
    assert_eq!(at(i32::MIN, i32::MAX), tile(-21_474_837, 21_474_836));
}

#[test]
fn heights_are_steps_above_a_base() {
    let mut draft = Draft::new(50, 2, 2).unwrap();
    draft.set_heights(-300, 25, vec![0, 1, 12, u16::MAX]).unwrap();
    let ground = Ground::new(draft.finish().into());
    let heights = [tile(0, 0), tile(1, 0), tile(0, 1), tile(1, 1)].map(|t| ground.height_cm(t));
    assert_eq!(heights, [-300, -275, 0, -300 + 25 * 65_535]);
    assert_eq!(ground.height_cm(tile(2, 0)), 0);
    assert_eq!(Ground::new(keep().into()).height_cm(tile(3, 0)), 0);
}

#[test]
fn a_row_packs_64_tiles_to_a_word() {
    let terrain = keep();
    assert_eq!(terrain.row(1), [0, 0b10]);
    assert_eq!(terrain.row(0), [0b11 << 10, 0b10]);
    assert!(terrain.row(3).is_empty() && terrain.row(-1).is_empty());
}

#[test]
fn a_door_opens_only_in_its_plane_and_at_its_tick() {
    let mut ground = Ground::new(keep().into());
    ground.order(set(HERE, 0, true, 12, 1)).unwrap();
    ground.turn(Tick(11));
    assert!(!ground.is_free(HERE, tile(65, 1)));
    ground.turn(Tick(12));
    assert!(ground.is_free(HERE, tile(65, 1)));
    assert!(!ground.is_free(HERE, tile(65, 0)), "the wall beside the gate stays");
    assert!(!ground.is_free(THERE, tile(65, 1)));
    assert_eq!(ground.is_open(HERE, DoorId(0)), Some(true));
    assert_eq!(ground.is_open(THERE, DoorId(0)), Some(false));
    assert_eq!(ground.is_open(HERE, DoorId(2)), None);
}

#[test]
fn an_initially_open_bridge_blocks_its_water_when_closed() {
    let mut ground = Ground::new(keep().into());
    assert!(ground.is_free(HERE, tile(10, 0)));
    ground.order(set(HERE, 1, false, 0, 1)).unwrap();
    ground.turn(Tick(1));
    assert!(!ground.is_free(HERE, tile(10, 0)) && !ground.is_free(HERE, tile(11, 0)));
    assert!(ground.is_free(THERE, tile(10, 0)));
}

#[test]
fn an_order_for_an_unknown_door_is_refused_and_changes_nothing() {
    let mut ground = Ground::new(keep().into());
    let before = ground.clone();
    let error = ground.order(set(HERE, 2, true, 0, 1)).unwrap_err();
    assert_eq!(error.to_string(), "there is no door 2; this map has 2, numbered from 0");
    assert_eq!(ground.order(set(Plane::LIMBO, 0, true, 0, 1)), Err(DoorError::Limbo));
    assert_eq!(ground, before);
    assert_eq!(ground.terrain().door_named("bridge"), Ok(DoorId(1)));
    assert_eq!(
        ground.terrain().door_named("gat").unwrap_err().to_string(),
        r#"there is no door "gat"; doors here: ["gate", "bridge"]"#
    );
    let bare = Draft::new(100, 1, 1).unwrap().finish();
    let error = bare.door_named("gate").unwrap_err().to_string();
    assert_eq!(error, r#"there is no door "gate"; this map has no doors"#);
}

#[test]
fn a_reset_forgets_a_plane_and_older_orders_that_arrive_later() {
    let mut ground = Ground::new(keep().into());
    ground.order(set(HERE, 0, true, 1, 1)).unwrap();
    ground.order(set(THERE, 0, true, 1, 2)).unwrap();
    let reset = DoorOrder { plane: HERE, change: DoorChange::Reset, at: Tick(5), version: 4 };
    ground.order(reset).unwrap();
    ground.turn(Tick(5));
    assert_eq!(
        ground.doors_set(None),
        [DoorState { plane: THERE, door: DoorId(0), open: true }],
        "the doors of one plane only"
    );
    ground.order(set(HERE, 0, true, 2, 3)).unwrap();
    ground.turn(Tick(6));
    assert!(!ground.is_free(HERE, tile(65, 1)), "the order is older than the reset");
    ground.order(set(HERE, 0, true, 2, 5)).unwrap();
    ground.turn(Tick(7));
    assert!(ground.is_free(HERE, tile(65, 1)));
    assert_eq!(ground.doors_set(Some(HERE)).len(), 1);
}

#[test]
fn waiting_orders_and_remembered_planes_are_bounded() {
    let mut ground = Ground::new(keep().into());
    let orders = (0..).map(|n| ground.order(set(Plane(n), 0, true, 9, 1)));
    let taken = orders.take_while(Result::is_ok).count();
    assert_eq!(taken, 65_536);
    assert_eq!(ground.order(set(HERE, 0, true, 9, 2)), Err(DoorError::Pending));
    ground.turn(Tick(9));
    assert_eq!(ground.order(set(Plane(70_000), 0, true, 9, 2)), Err(DoorError::Planes));
    ground.order(set(HERE, 0, false, 9, 2)).unwrap();
    for n in 0..1_000 {
        let reset = DoorChange::Reset;
        ground
            .order(DoorOrder { plane: Plane(n), change: reset, at: Tick(10), version: 3 })
            .unwrap();
    }
    ground.turn(Tick(10));
    // Resets are remembered for a while; then their planes free their slots.
    assert_eq!(ground.order(set(Plane(70_000), 0, true, 9, 4)), Err(DoorError::Planes));
    ground.turn(Tick(2_000));
    assert_eq!(ground.order(set(Plane(70_000), 0, true, 9, 4)), Ok(()));
}

#[test]
fn doors_are_saved_by_name_and_restored() {
    let mut ground = Ground::new(keep().into());
    ground.order(set(THERE, 1, false, 3, 2)).unwrap();
    ground.order(set(HERE, 0, true, 3, 1)).unwrap();
    ground.turn(Tick(3));
    let reset = DoorOrder { plane: Plane(9), change: DoorChange::Reset, at: Tick(3), version: 3 };
    ground.order(reset).unwrap();
    ground.turn(Tick(4));
    ground.order(set(HERE, 0, false, 90, 4)).unwrap();
    ground.order(DoorOrder { plane: THERE, at: Tick(95), version: 5, ..reset }).unwrap();
    let bytes = rmp_serde::to_vec(&ground.save()).unwrap();
    let saved: SavedDoors = rmp_serde::from_slice(&bytes).unwrap();
    let restored = Ground::restore(ground.terrain().clone(), &saved).unwrap();
    assert_eq!(restored, ground);
    assert_eq!(restored.save(), saved);

    let other = Arc::new(Draft::new(100, 1, 1).unwrap().finish());
    let error = Ground::restore(other, &saved).unwrap_err();
    assert!(matches!(&error, DoorError::Unknown(u) if u.name == "gate"), "{error}");
}

#[test]
fn a_refused_drawing_says_why() {
    let told = |e: TerrainError| e.to_string();
    assert_eq!(
        told(Draft::new(0, 4, 4).unwrap_err()),
        "a tile of 0 cm: its side must lie between 1 cm and 1 km"
    );
    assert_eq!(
        told(Draft::new(100, i32::MAX, i32::MAX).unwrap_err()),
        "2147483647 x 2147483647 tiles: a map has at least one tile and at most 67108864"
    );
    assert!(Draft::new(100, 0, 4).is_err());
    let mut draft = Draft::new(100, 4, 4).unwrap();
    assert_eq!(
        told(draft.set_blocked(tile(4, 0), true).unwrap_err()),
        "tile (4, 0) is outside the map, whose tiles are (0, 0) to (3, 3)"
    );
    assert_eq!(
        told(draft.set_heights(0, 1, vec![0; 15]).unwrap_err()),
        "15 heights for 16 tiles: give one height per tile"
    );
    let steep = draft.set_heights(0, 1_526, vec![0; 16]).unwrap_err();
    assert_eq!(steep, TerrainError::HeightRange { lowest_cm: 0, highest_cm: 100_006_410 });
    assert!(draft.set_heights(0, 0, vec![0; 16]).is_err());
    assert_eq!(draft.add_door("", true, &[tile(0, 0)]), Err(TerrainError::DoorName("".into())));
    assert_eq!(draft.add_door("a", true, &[]), Err(TerrainError::DoorEmpty("a".into())));
    draft.add_door("a", true, &[tile(0, 0)]).unwrap();
    draft.add_door("a", true, &[tile(0, 0), tile(1, 0)]).unwrap();
    assert_eq!(
        draft.add_door("a", false, &[tile(2, 0)]),
        Err(TerrainError::DoorStates("a".into()))
    );
    assert_eq!(
        told(draft.add_door("b", true, &[tile(3, 3), tile(1, 0)]).unwrap_err()),
        "tile (1, 0) belongs to door \"a\" and to door \"b\"; a tile may belong to one"
    );
    assert!(draft.add_door("c", true, &[tile(0, 4)]).is_err());
    let terrain = draft.finish();
    assert_eq!(terrain.doors().len(), 1, "a refused door leaves nothing behind");
    assert_eq!(terrain.doors()[0].tiles, [tile(0, 0), tile(1, 0)]);
    assert_eq!(terrain.door_at(tile(3, 3)), None);
}

/// A scene of 512 m x 512 m with its spawn point in the middle.
fn field() -> Scene {
    let spec = SceneSpec {
        width_cm: 51_200,
        depth_cm: 51_200,
        region_lands_x: 1,
        region_lands_z: 1,
        spawn_x_cm: 25_600,
        spawn_z_cm: 25_600,
        ..SceneSpec::default()
    };
    Scene::new(SceneId(0), spec, 100, RegionId(0)).unwrap()
}

/// The error of a scene for a terrain of 32 x 32 tiles of 16 m, drawn by `draw`.
fn misfit(draw: impl Fn(&mut Draft)) -> String {
    let mut draft = Draft::new(1_600, 32, 32).unwrap();
    draw(&mut draft);
    let errors = field().with_terrain(draft.finish().into()).unwrap_err();
    assert_eq!(errors.len(), 1);
    errors[0].to_string()
}

#[test]
fn a_terrain_covers_its_scene_exactly() {
    let scene = field().with_terrain(Draft::new(1_600, 32, 32).unwrap().finish().into()).unwrap();
    assert_eq!(scene.terrain.unwrap().tile_cm(), 1_600);
    let told = |tile_cm, width, depth| {
        let draft = Draft::new(tile_cm, width, depth).unwrap();
        field().with_terrain(draft.finish().into()).unwrap_err()[0].to_string()
    };
    assert_eq!(
        told(1_600, 32, 31),
        "map = 32 x 31 tiles of 16 m (512.00 m x 496.00 m): must cover the scene of 512 m x 512 m \
         exactly: that is 32 x 32 tiles"
    );
    assert_eq!(
        told(700, 73, 73),
        "map = 73 x 73 tiles of 7 m (511.00 m x 511.00 m): must cover the scene of 512 m x 512 m \
         exactly: tiles of 7 m do not divide it"
    );
    assert!(told(100_000, 8_000, 8_000).contains("(8000000.00 m x 8000000.00 m)"));
}

#[test]
fn a_blocked_spawn_point_is_refused_with_the_nearest_free_place() {
    let wall = |draft: &mut Draft, xs: std::ops::Range<i32>| {
        for t in xs.flat_map(|x| (0..32).map(move |z| tile(x, z))) {
            draft.set_blocked(t, true).unwrap();
        }
    };
    assert_eq!(
        misfit(|draft| wall(draft, 14..18)),
        "spawn = [256 m, 256 m]: lies on tile (16, 16), which is blocked; the nearest free tile has \
         its middle at [296 m, 264 m]"
    );
    let closed = misfit(|draft| drop(draft.add_door("gate", false, &[tile(16, 16)])));
    assert!(closed.starts_with("spawn = [256 m, 256 m]: lies on tile (16, 16)"), "{closed}");
    assert_eq!(
        misfit(|draft| wall(draft, 0..32)),
        "spawn = [256 m, 256 m]: lies on a blocked tile, and the map has no free tile"
    );
}

/// A terrain and the same as plain lists: blocked tiles, doors and their tiles.
type Plain = (Vec<Tile>, BTreeMap<Tile, DoorId>);

fn drawn(width: i32, depth: i32, marks: &[(i32, i32, u8)]) -> (Terrain, Plain) {
    let mut draft = Draft::new(100, width, depth).unwrap();
    let (mut blocked, mut doors) = (Vec::new(), BTreeMap::new());
    for (x, z, what) in marks {
        let t = tile(x % width, z % depth);
        match what % 4 {
            0 => {
                draft.set_blocked(t, true).unwrap();
                blocked.push(t);
            }
            1 => {
                draft.set_blocked(t, false).unwrap();
                blocked.retain(|b| *b != t);
            }
            n => {
                let name = ["gate", "bridge"][usize::from(n - 2)];
                if let Ok(id) = draft.add_door(name, n == 3, &[t]) {
                    doors.insert(t, id);
                }
            }
        }
    }
    (draft.finish(), (blocked, doors))
}

proptest! {
    #[test]
    fn any_terrain_equals_its_plain_lists(
        (width, depth) in (1i32..140, 1i32..20),
        marks in prop::collection::vec((0i32..140, 0i32..20, any::<u8>()), 0..120),
    ) {
        let (terrain, (blocked, doors)) = drawn(width, depth, &marks);
        let ground = Ground::new(terrain.into());
        for t in (-1..=depth).flat_map(|z| (-1..=width).map(move |x| tile(x, z))) {
            let inside = t.x >= 0 && t.z >= 0 && t.x < width && t.z < depth;
            let free = match doors.get(&t) {
                Some(id) => ground.terrain().door(*id).unwrap().open,
                None => inside && !blocked.contains(&t),
            };
            prop_assert_eq!(ground.is_free(HERE, t), free);
            prop_assert_eq!(ground.terrain().door_at(t), doors.get(&t).copied());
        }
    }

    /// Regions receive the same orders late and in different orders, and end alike.
    #[test]
    fn copies_with_the_same_orders_end_with_the_same_doors(
        orders in prop::collection::vec((0i32..3, 0u16..2, any::<bool>(), 0u64..30, any::<bool>()), 1..24),
        (received, other) in (prop::collection::vec(0u64..60, 24), prop::collection::vec(0u64..60, 24)),
    ) {
        let terrain = Arc::new(keep());
        let orders: Vec<_> = orders.iter().zip(1..).map(|((plane, door, open, at, reset), version)| {
            let change = match reset {
                true => DoorChange::Reset,
                false => DoorChange::Set { door: DoorId(*door), open: *open },
            };
            DoorOrder { plane: Plane(*plane), change, at: Tick(*at), version }
        }).collect();
        let region = |received: &[u64]| {
            let mut ground = Ground::new(terrain.clone());
            for now in 0..=60 {
                for (order, _) in orders.iter().zip(received).filter(|(_, tick)| **tick == now) {
                    ground.order(*order).unwrap();
                }
                ground.turn(Tick(now));
            }
            ground.doors_set(None)
        };
        let (one, two) = (region(&received), region(&other));
        prop_assert_eq!(&one, &two);
        // For each plane and door the newest order wins, unless a newer reset undid it.
        let mut newest = BTreeMap::new();
        for order in &orders {
            match order.change {
                DoorChange::Set { door, open } => {
                    newest.insert((order.plane, door), open);
                }
                DoorChange::Reset => newest.retain(|(plane, _), _| *plane != order.plane),
            }
        }
        let newest: Vec<_> =
            newest.into_iter().map(|((plane, door), open)| DoorState { plane, door, open }).collect();
        prop_assert_eq!(one, newest);
    }
}

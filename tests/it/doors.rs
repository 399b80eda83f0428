//! Doors of a scene with several regions: each region receives an order independently, sooner or
//! later, and all switch in the same tick.

use std::sync::Arc;

use purview::actor::directory::Directory;
use purview::actor::directory::doors::DoorOrderError;
use purview::actor::messages::{Inspect, RunTick};
use purview::actor::region::{Clock, RegionRef, start_regions};
use purview::scene::messages::{Input, SceneOrder};
use purview::scene::terrain::{DoorChange, DoorId, DoorOrder, DoorState, Draft, Tile};
use purview::scene::{Plane, Region, RegionId, Scene, SceneId, Tick};

use crate::support::alone::message_of;
use crate::support::small_scene;

const PLANE: Plane = Plane(0);
const GATE: DoorId = DoorId(0);

/// A door across the border of the two regions, which lie side by side, 64 m x 64 m each.
const TILES: [Tile; 2] = [Tile { x: 63, z: 5 }, Tile { x: 64, z: 5 }];

fn scene(with_map: bool) -> Arc<Scene> {
    let spec = small_scene((2, 1), 6_400, 1_600);
    let scene = Scene::new(SceneId(0), spec, 100, RegionId(0)).unwrap();
    if !with_map {
        return Arc::new(scene);
    }
    let mut draft = Draft::new(100, 128, 64).unwrap();
    draft.add_door("gate", false, &TILES).unwrap();
    Arc::new(scene.with_terrain(Arc::new(draft.finish())).unwrap())
}

fn regions(scene: &Arc<Scene>) -> [Region; 2] {
    [0, 1].map(|id| Region::new(scene.clone(), RegionId(id)).unwrap())
}

fn order(open: bool, at: u64, version: u64) -> DoorOrder {
    DoorOrder { plane: PLANE, change: DoorChange::Set { door: GATE, open }, at: Tick(at), version }
}

fn tell(region: &mut Region, order: DoorOrder) {
    let mut fx = Vec::new();
    region.handle(Input::Scene(SceneOrder::Doors(order)), &mut fx);
    assert!(fx.is_empty());
}

/// Ticks both regions; effects of one arrive at the other before the next tick.
fn step(regions: &mut [Region; 2], now: u64) {
    use purview::scene::messages::Effect;
    let mut fx = [Vec::new(), Vec::new()];
    for (region, fx) in regions.iter_mut().zip(&mut fx) {
        region.tick(Tick(now), fx);
    }
    while fx.iter().any(|f| !f.is_empty()) {
        let sent: Vec<Effect> = fx.iter_mut().flat_map(std::mem::take).collect();
        for effect in sent {
            let (to, input) = message_of(effect).expect("no entity is here");
            let to = to.0 as usize;
            regions[to].handle(input, &mut fx[to]);
        }
    }
    assert!(regions.iter().all(Region::is_closed));
}

fn open(regions: &[Region; 2]) -> [bool; 2] {
    [0, 1].map(|i| {
        let ground = regions[i].ground().unwrap();
        let [a, b] = TILES.map(|t| ground.is_free(PLANE, t));
        assert_eq!(a, b, "all tiles of a door switch together");
        a
    })
}

#[test]
fn all_regions_switch_in_the_tick_of_the_order() {
    let mut regions = regions(&scene(true));
    tell(&mut regions[0], order(true, 12, 1));
    step(&mut regions, 10);
    assert_eq!(open(&regions), [false, false]);
    tell(&mut regions[1], order(true, 12, 1));
    step(&mut regions, 11);
    assert_eq!(open(&regions), [false, false]);
    step(&mut regions, 12);
    assert_eq!(open(&regions), [true, true]);
    let told = regions.each_ref().map(|r| r.inspect(Some(PLANE)).doors);
    assert_eq!(told, [(); 2].map(|()| vec![DoorState { plane: PLANE, door: GATE, open: true }]));
    assert_eq!(regions[0].inspect(Some(Plane(3))).doors, []);
}

#[test]
fn late_orders_in_another_sequence_end_in_the_same_state() {
    let mut regions = regions(&scene(true));
    tell(&mut regions[0], order(true, 11, 1));
    tell(&mut regions[0], order(false, 12, 2));
    step(&mut regions, 11);
    step(&mut regions, 12);
    tell(&mut regions[1], order(false, 12, 2));
    step(&mut regions, 13);
    tell(&mut regions[1], order(true, 11, 1));
    step(&mut regions, 14);
    assert_eq!(open(&regions), [false, false]);
}

#[test]
fn skipped_ticks_skip_no_door_order() {
    let mut regions = regions(&scene(true));
    regions.iter_mut().for_each(|r| tell(r, order(true, 12, 1)));
    step(&mut regions, 10);
    step(&mut regions, 15);
    assert_eq!(open(&regions), [true, true]);
}

#[test]
fn orders_for_unknown_doors_change_nothing() {
    let mut with = regions(&scene(true));
    let change = DoorChange::Set { door: DoorId(1), open: true };
    tell(&mut with[0], DoorOrder { change, ..order(true, 10, 1) });
    step(&mut with, 10);
    assert_eq!(open(&with), [false, false]);
    assert_eq!(with[0].inspect(None).doors, []);

    let mut without = regions(&scene(false));
    tell(&mut without[0], order(true, 10, 1));
    step(&mut without, 10);
    assert!(without[0].ground().is_none());
}

/// The scene's regions as actors, with a clock that the test moves.
fn actors() -> (Arc<Directory>, Vec<RegionRef>) {
    let directory = Arc::new(Directory::new(vec![scene(true)]));
    let regions = start_regions(&directory, &[], Clock::Manual);
    (directory, regions)
}

/// The doors that differ from the map, region by region, once all have closed tick `now`.
async fn doors_in(regions: &[RegionRef], now: u64) -> Vec<Vec<(i32, bool)>> {
    for region in regions {
        region.addr.send(RunTick(Tick(now))).await.unwrap();
    }
    let mut all = Vec::new();
    for region in regions {
        let snapshot = region.addr.send(Inspect { plane: None }).await.unwrap();
        assert_eq!(snapshot.tick, Tick(now));
        all.push(snapshot.doors.iter().map(|d| (d.plane.0, d.open)).collect());
    }
    all
}

#[actix_rt::test]
async fn a_door_is_opened_by_name_in_every_region() {
    let (directory, regions) = actors();
    let at = directory.set_door(SceneId(0), PLANE, "gate", true, Some(Tick(12))).await;
    assert_eq!(at, Ok(Tick(12)));
    assert_eq!(doors_in(&regions, 11).await, [vec![], vec![]]);
    assert_eq!(doors_in(&regions, 12).await, [vec![(0, true)], vec![(0, true)]]);
    // Given later and due earlier: it takes effect, and the other order does not undo it.
    directory.set_door(SceneId(0), PLANE, "gate", true, Some(Tick(15))).await.unwrap();
    directory.set_door(SceneId(0), PLANE, "gate", false, Some(Tick(14))).await.unwrap();
    directory.set_door(SceneId(0), Plane(4), "gate", true, Some(Tick(14))).await.unwrap();
    let both = vec![(0, false), (4, true)];
    assert_eq!(doors_in(&regions, 14).await, [both.clone(), both.clone()]);
    assert_eq!(doors_in(&regions, 15).await, [both.clone(), both]);
    directory.reset_plane(SceneId(0), PLANE, Some(Tick(16))).await.unwrap();
    assert_eq!(doors_in(&regions, 16).await, [vec![(4, true)], vec![(4, true)]]);
}

#[actix_rt::test]
async fn an_order_without_a_tick_takes_effect_soon() {
    let (directory, _regions) = actors();
    let before = directory.tick_now(100);
    let at = directory.set_door(SceneId(0), PLANE, "gate", true, None).await.unwrap();
    let after = directory.tick_now(100);
    assert!(before.0 + 2 <= at.0 && at.0 <= after.0 + 2, "{before} <= {at} <= {after}");
}

#[actix_rt::test]
async fn a_refused_door_order_says_why_and_reaches_no_region() {
    let (directory, regions) = actors();
    let told = async |scene, plane, door| {
        let switched: Result<_, DoorOrderError> =
            directory.set_door(SceneId(scene), plane, door, true, Some(Tick(1))).await;
        switched.unwrap_err().to_string()
    };
    assert_eq!(told(1, PLANE, "gate").await, "there is no scene 1");
    let unknown = r#"there is no door "gat"; doors here: ["gate"]"#;
    assert_eq!(told(0, PLANE, "gat").await, unknown);
    let limbo = "the limbo plane has no doors; name a plane of the scene";
    assert_eq!(told(0, Plane::LIMBO, "gate").await, limbo);
    assert_eq!(doors_in(&regions, 5).await, [vec![], vec![]]);

    let bare = Directory::new(vec![scene(false)]);
    let error = bare.set_door(SceneId(0), PLANE, "gate", true, None).await.unwrap_err();
    assert_eq!(error.to_string(), "the scene has no map, so it has no doors");
    let early = Directory::new(vec![scene(true)]);
    let error = early.set_door(SceneId(0), PLANE, "gate", true, None).await.unwrap_err();
    assert_eq!(error, DoorOrderError::NoAddress(RegionId(0)));
}

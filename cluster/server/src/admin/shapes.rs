//! The JSON answers, and how they are built from the answers of regions. Lengths in centimetres.

use std::collections::BTreeMap;

use purview::scene::inspect::{PlayerDetails, ViewEntry};
use purview::scene::terrain::DoorId;
use purview::scene::views::NO_BOND;
use purview::scene::{
    EntityId, Epoch, Facing, Kind, Plane, Pos, RangeSet, Rect, RegionId, Scene, SceneId, Tick,
    Visibility,
};
use serde::Serialize;

use super::properties::{self, PropertyShape};
use crate::node::inspect::Survey;

/// A region's name for people.
pub fn region_name(id: RegionId) -> String {
    format!("R{id}")
}

/// The name of a kind in the scene.
pub fn kind_name(scene: &Scene, kind: Kind) -> String {
    let named = scene.spec.kinds.get(usize::from(kind.0)).map(|k| k.name.clone());
    named.unwrap_or_else(|| format!("kind {kind}"))
}

/// The name of a class of bonds.
fn bond_name(scene: &Scene, class: u8) -> String {
    let named = scene.spec.bonds.kinds.get(usize::from(class)).cloned();
    named.unwrap_or_else(|| format!("bond class {class}"))
}

/// `GET /api/scenes`.
#[derive(Debug, Serialize)]
pub struct Scenes {
    pub node: String,
    pub version: &'static str,
    pub scenes: Vec<SceneShape>,
}

/// A scene, with its regions and the planes in use.
#[derive(Debug, Serialize)]
pub struct SceneShape {
    pub id: SceneId,
    pub name: String,
    pub width_cm: i32,
    pub depth_cm: i32,
    pub land_cm: i32,
    /// Side of a patch in the players' layer.
    pub patch_cm: i32,
    pub layers: Vec<LayerShape>,
    pub kinds: Vec<KindShape>,
    pub visibility: VisibilityShape,
    /// Bits of the default range: 1 NEAR, 2 MIDDLE, 4 FAR.
    pub default_range: u8,
    pub view_cap: usize,
    pub tick_ms: u32,
    pub band_cm: i32,
    pub top_speed_cm_s: i32,
    pub map_version: u64,
    pub plane_groups: u16,
    /// A version that changes with the terrain; `None` without a map. See `/api/terrain`.
    pub terrain: Option<String>,
    pub planes: Vec<PlaneShape>,
    pub regions: Vec<RegionShape>,
    /// Regions that did not answer in time.
    pub late: Vec<RegionId>,
}

#[derive(Debug, Serialize)]
pub struct LayerShape {
    pub name: String,
    pub patch_cm: i32,
}

#[derive(Debug, Serialize)]
pub struct KindShape {
    pub name: String,
    pub layer: usize,
    /// The radii in which entities of the kind sight and lose others; `None`: they do not watch.
    pub watch_cm: Option<(i32, i32)>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "mode", rename_all = "snake_case")]
pub enum VisibilityShape {
    Patches,
    Circle { enter_cm: i32, leave_cm: i32 },
    All,
}

impl From<Visibility> for VisibilityShape {
    fn from(v: Visibility) -> Self {
        match v {
            Visibility::Patches => VisibilityShape::Patches,
            Visibility::Circle { enter_cm, leave_cm } => {
                VisibilityShape::Circle { enter_cm, leave_cm }
            }
            Visibility::All => VisibilityShape::All,
        }
    }
}

/// A plane in use. Lines with room are in use even when empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PlaneShape {
    pub plane: Plane,
    pub players: usize,
    pub entities: usize,
}

#[derive(Debug, Serialize)]
pub struct RegionShape {
    pub id: RegionId,
    pub name: String,
    pub rect: Rect,
    /// Its group of planes.
    pub group: u16,
    /// The owner node.
    pub owner: String,
    pub epoch: Epoch,
}

/// The shape of a scene, from a survey of all planes.
pub fn scene(scene: &Scene, node: &str, survey: &Survey) -> SceneShape {
    let spec = &scene.spec;
    SceneShape {
        id: scene.id,
        name: spec.name.clone(),
        width_cm: spec.width_cm,
        depth_cm: spec.depth_cm,
        land_cm: spec.land_cm,
        patch_cm: spec.layers.first().map_or(spec.land_cm, |l| l.patch_cm),
        layers: spec
            .layers
            .iter()
            .map(|l| LayerShape { name: l.name.clone(), patch_cm: l.patch_cm })
            .collect(),
        kinds: spec
            .kinds
            .iter()
            .map(|k| KindShape {
                name: k.name.clone(),
                layer: k.layer,
                watch_cm: k.watch.as_ref().map(|watch| (watch.enter_cm, watch.leave_cm)),
            })
            .collect(),
        visibility: spec.visibility.into(),
        default_range: spec.default_range.bits(),
        view_cap: spec.view_cap,
        tick_ms: scene.tick_ms,
        band_cm: scene.band_cm,
        top_speed_cm_s: spec.top_speed_cm_s,
        map_version: scene.map.version,
        plane_groups: spec.plane_groups,
        terrain: scene.terrain.as_deref().map(super::terrain::version),
        planes: planes(spec.lines, survey),
        regions: regions(scene, node, survey),
        late: survey.late.clone(),
    }
}

fn regions(scene: &Scene, node: &str, survey: &Survey) -> Vec<RegionShape> {
    let epoch = |id| survey.regions.iter().find(|s| s.region == id).map(|s| s.epoch);
    scene
        .map
        .regions
        .iter()
        .map(|r| RegionShape {
            id: r.id,
            name: region_name(r.id),
            rect: r.rect,
            group: r.group.0,
            owner: node.to_owned(),
            epoch: epoch(r.id).unwrap_or(r.epoch),
        })
        .collect()
}

/// The lines, and all other planes with entities, except limbo.
fn planes(lines: i32, survey: &Survey) -> Vec<PlaneShape> {
    let empty = |plane| PlaneShape { plane, players: 0, entities: 0 };
    let mut planes: BTreeMap<Plane, PlaneShape> =
        (0..lines.clamp(1, 1000)).map(|p| (Plane(p), empty(Plane(p)))).collect();
    let reals = survey.regions.iter().flat_map(|r| &r.entities).filter(|e| !e.ghost);
    for e in reals.filter(|e| e.plane != Plane::LIMBO) {
        let plane = planes.entry(e.plane).or_insert(empty(e.plane));
        plane.entities += 1;
        plane.players += usize::from(e.kind == purview::scene::Kind::PLAYER);
    }
    planes.into_values().collect()
}

/// Id, kind, x, y, z, owner, players in its view list.
pub type EntityRow = (u64, u8, i32, i32, i32, u32, u32);
/// Id, kind, x, z, owner, the region that mirrors it.
pub type GhostRow = (u64, u8, i32, i32, u32, u32);

/// `GET /api/entities`.
#[derive(Debug, Serialize)]
pub struct Entities {
    pub scene: String,
    pub plane: Plane,
    /// The names of the columns of `entities`.
    pub entity_fields: [&'static str; 7],
    pub entities: Vec<EntityRow>,
    /// The names of the columns of `ghosts`.
    pub ghost_fields: [&'static str; 6],
    /// Empty unless requested.
    pub ghosts: Vec<GhostRow>,
    /// Doors whose state differs from the map: number, and whether open.
    pub doors: Vec<(u16, bool)>,
    /// Which entities have which others in their watch radius.
    pub sighted: Vec<(EntityId, EntityId)>,
    /// For each region that answered: id, tick and epoch.
    pub ticks: Vec<(RegionId, u64, u64)>,
    /// Regions that did not answer in time.
    pub late: Vec<RegionId>,
}

/// The entities of one plane.
pub fn entities(scene: &Scene, plane: Plane, with_ghosts: bool, survey: &Survey) -> Entities {
    let mut out = Entities {
        scene: scene.spec.name.clone(),
        plane,
        entity_fields: ["id", "kind", "x", "y", "z", "region", "views"],
        entities: Vec::new(),
        ghost_fields: ["id", "kind", "x", "z", "owner", "mirror"],
        ghosts: Vec::new(),
        doors: doors(scene, plane, survey),
        sighted: survey.regions.iter().flat_map(|r| r.sighted.iter().copied()).collect(),
        ticks: Vec::with_capacity(survey.regions.len()),
        late: survey.late.clone(),
    };
    for r in &survey.regions {
        out.ticks.push((r.region, r.tick.0, r.epoch.0));
        for e in r.entities.iter().filter(|e| e.plane == plane) {
            let Pos { x, y, z } = e.pos;
            if !e.ghost {
                out.entities.push((e.id.0, e.kind.0, x, y, z, r.region.0, e.views));
            } else if with_ghosts {
                out.ghosts.push((e.id.0, e.kind.0, x, z, e.owner.0, r.region.0));
            }
        }
    }
    out
}

/// The doors of a plane whose state differs from the map. The region under a door's first tile
/// decides; if it is late, any other region with the door.
fn doors(scene: &Scene, plane: Plane, survey: &Survey) -> Vec<(u16, bool)> {
    let Some(terrain) = &scene.terrain else { return Vec::new() };
    let owner = |door: DoorId| {
        let first = terrain.door(door)?.tiles.first()?;
        let middle = |n: i32| n * terrain.tile_cm() + terrain.tile_cm() / 2;
        scene.map.at(plane, Pos::ground(middle(first.x), middle(first.z))).map(|r| r.id)
    };
    let mut all = BTreeMap::new();
    for r in &survey.regions {
        for state in r.doors.iter().filter(|d| d.plane == plane) {
            if owner(state.door) == Some(r.region) || !all.contains_key(&state.door.0) {
                all.insert(state.door.0, state.open);
            }
        }
    }
    all.into_iter().collect()
}

/// A class of bonds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BondShape {
    /// 0 is the strongest.
    pub class: u8,
    pub name: String,
}

impl BondShape {
    /// The bond of a pair, if there is one.
    pub fn of(scene: &Scene, class: u8) -> Option<BondShape> {
        (class != NO_BOND).then(|| BondShape { class, name: bond_name(scene, class) })
    }
}

/// Another player, on a view list or asked to be on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EntryShape {
    pub id: EntityId,
    pub bond: Option<BondShape>,
    /// `None`: the region does not know the distance.
    pub dist_cm: Option<u32>,
    /// Both have agreed; otherwise the answer is pending.
    pub linked: bool,
}

impl EntryShape {
    /// An entry of a player's list in `scene`.
    pub fn of(scene: &Scene, e: ViewEntry) -> EntryShape {
        let ViewEntry { id, class, dist_cm, linked } = e;
        EntryShape { id, bond: BondShape::of(scene, class), dist_cm, linked }
    }
}

/// An entry of a view list with its rank, from 1, the best.
#[derive(Debug, Serialize)]
pub struct RankedShape {
    pub place: usize,
    #[serde(flatten)]
    pub entry: EntryShape,
}

/// `GET /api/player/{id}`.
#[derive(Debug, Serialize)]
pub struct Player {
    pub id: EntityId,
    pub epoch: Epoch,
    pub scene: String,
    pub region: RegionId,
    pub region_name: String,
    pub tick: Tick,
    pub plane: Plane,
    pub pos: Pos,
    pub range: RangeShape,
    /// The view list, the best first.
    pub view: Vec<RankedShape>,
    /// Players that were asked and have not answered yet.
    pub asked: Vec<EntryShape>,
    /// The entry that a better candidate replaces first; `None` while the list is not full.
    pub worst: Option<EntryShape>,
    pub view_cap: usize,
    pub view_margin_cm: u32,
    /// Other entities in view.
    pub seen: Vec<EntityId>,
    pub facing: Facing,
    pub properties: Vec<PropertyShape>,
}

/// The range of a player.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "mode", rename_all = "snake_case")]
pub enum RangeShape {
    Patches {
        /// 1 NEAR, 2 MIDDLE, 4 FAR.
        bits: u8,
        patch_cm: i32,
    },
    Circle {
        enter_cm: i32,
        leave_cm: i32,
    },
    All,
}

/// A player of `scene`.
pub fn player(scene: &Scene, p: PlayerDetails) -> Player {
    let range = match scene.spec.visibility {
        Visibility::Patches => RangeShape::Patches {
            bits: p.range.bits(),
            patch_cm: scene.spec.layers.first().map_or(scene.spec.land_cm, |l| l.patch_cm),
        },
        Visibility::Circle { enter_cm, leave_cm } => RangeShape::Circle { enter_cm, leave_cm },
        Visibility::All => RangeShape::All,
    };
    let entry = |e| EntryShape::of(scene, e);
    Player {
        id: p.id,
        epoch: p.epoch,
        scene: scene.spec.name.clone(),
        region: p.region,
        region_name: region_name(p.region),
        tick: p.tick,
        plane: p.plane,
        pos: p.pos,
        range,
        view: (1..).zip(p.view).map(|(place, e)| RankedShape { place, entry: entry(e) }).collect(),
        asked: p.asked.into_iter().map(entry).collect(),
        worst: p.worst.map(entry),
        view_cap: p.rules.cap,
        view_margin_cm: p.rules.margin_cm,
        seen: p.seen,
        facing: p.facing,
        properties: properties::shapes(Some(scene), Kind::PLAYER, &p.properties),
    }
}

/// The names of the rings of a range.
pub fn ring_names(range: RangeSet) -> Vec<&'static str> {
    let names = ["near", "middle", "far"];
    (0..).zip(names).filter(|(ring, _)| range.has_ring(*ring)).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
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
        assert_eq!(shape["patch_cm"], 3_200);
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
            range: RangeSet::NEAR.or(RangeSet::FAR),
            ties: Ties::default(),
            rules: ViewRules::new(2, 100),
            view: vec![entry(3, 1, Some(900), true), entry(5, NO_BOND, Some(40), true)],
            asked: vec![entry(6, NO_BOND, None, false)],
            worst: Some(entry(5, NO_BOND, Some(40), true)),
            seen: vec![EntityId(4)],
            facing: Facing::SOUTH,
            properties: Default::default(),
        };
        let shape = to_value(player(&meadow(Visibility::Patches), snapshot.clone())).unwrap();
        assert_eq!(shape["range"], json!({"mode": "patches", "bits": 5, "patch_cm": 3_200}));
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
}

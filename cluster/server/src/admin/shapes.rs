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

pub fn region_name(id: RegionId) -> String {
    format!("R{id}")
}

pub fn kind_name(scene: &Scene, kind: Kind) -> String {
    let named = scene.spec.kinds.get(usize::from(kind.0)).map(|k| k.name.clone());
    named.unwrap_or_else(|| format!("kind {kind}"))
}

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

#[derive(Debug, Serialize)]
pub struct SceneShape {
    pub id: SceneId,
    pub name: String,
    pub width_cm: i32,
    pub depth_cm: i32,
    pub land_cm: i32,
    /// Sides of a patch in the players' layer along x and z.
    pub patch_cm: [i32; 2],
    pub layers: Vec<LayerShape>,
    pub kinds: Vec<KindShape>,
    #[serde(with = "VisibilityShape")]
    pub visibility: Visibility,
    /// Bits of the range of players: 1 NEAR, 2 MIDDLE, 4 FAR.
    pub range: u8,
    /// How far apart in height entities may be to come into view of each other; `None`: heights do not count.
    pub height_cm: Option<i32>,
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
    pub patch_cm: [i32; 2],
}

#[derive(Debug, Serialize)]
pub struct KindShape {
    pub name: String,
    pub layer: usize,
    /// The longest radii in which entities of the kind sight and lose others; `None`: they do not watch.
    pub watch_cm: Option<(i32, i32)>,
}

#[derive(Debug, Serialize)]
#[serde(remote = "Visibility", tag = "mode", rename_all = "snake_case")]
pub enum VisibilityShape {
    Patches,
    Circle { enter_cm: i32, leave_cm: i32 },
    All,
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
    pub group: u16,
    pub owner: String,
    pub epoch: Epoch,
}

pub fn scene(scene: &Scene, node: &str, survey: &Survey) -> SceneShape {
    let spec = &scene.spec;
    SceneShape {
        id: scene.id,
        name: spec.name.clone(),
        width_cm: spec.width_cm,
        depth_cm: spec.depth_cm,
        land_cm: spec.land_cm,
        patch_cm: spec.player_patch_cm(),
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
                watch_cm: k.watch.iter().map(|watch| (watch.enter_cm, watch.leave_cm)).max(),
            })
            .collect(),
        visibility: spec.visibility,
        range: spec.range.bits(),
        height_cm: spec.height_cm,
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
    pub entity_fields: [&'static str; 7],
    pub entities: Vec<EntityRow>,
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BondShape {
    /// 0 is the strongest.
    pub class: u8,
    pub name: String,
}

impl BondShape {
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
    pub view: Vec<RankedShape>,
    /// Players that were asked and have not answered yet.
    pub asked: Vec<EntryShape>,
    /// The entry that a better candidate replaces first; `None` while the list is not full.
    pub worst: Option<EntryShape>,
    pub view_cap: usize,
    pub view_margin_cm: u32,
    pub seen: Vec<EntityId>,
    pub facing: Facing,
    pub properties: Vec<PropertyShape>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "mode", rename_all = "snake_case")]
pub enum RangeShape {
    Patches {
        /// 1 NEAR, 2 MIDDLE, 4 FAR.
        bits: u8,
        patch_cm: [i32; 2],
    },
    Circle {
        enter_cm: i32,
        leave_cm: i32,
    },
    All,
}

pub fn player(scene: &Scene, p: PlayerDetails) -> Player {
    let range = match scene.spec.visibility {
        Visibility::Patches => RangeShape::Patches {
            bits: scene.spec.range.bits(),
            patch_cm: scene.spec.player_patch_cm(),
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

pub fn ring_names(range: RangeSet) -> Vec<&'static str> {
    let names = ["near", "middle", "far"];
    (0..).zip(names).filter(|(ring, _)| range.has_ring(*ring)).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests;

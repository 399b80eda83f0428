//! What a scene is, as data, and the rules of a legal scene.
//!
//! The server's configuration and embedding programs fill a [`SceneSpec`]; [`Scene::new`] checks
//! every rule and names, for each broken one, the key, its value and a legal value. No other code
//! may build a [`Scene`], so the rest of the crate relies on the rules.

mod bodies;
mod bonds;
mod check;
mod contents;
mod crowd;
mod index;
mod map;
mod moves;
mod pace;
mod pool;
mod portals;
mod properties;
mod updates;
mod watch;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::bodies::check_bodies;
pub use self::bonds::{ALLY, BondSpec, ENEMY, FIGHT};
use self::check::{
    MAX_REGIONS, check_band, check_bonded_band, check_kinds, check_sizes, check_views,
    least_border_band, reach_cm,
};
use self::contents::check_contents;
pub use self::crowd::CrowdSpec;
use self::crowd::check_load;
use self::index::check_index;
use self::moves::check_moves;
pub use self::moves::{MoveSpec, Moves};
use self::pace::check_pace;
pub use self::pace::{MAX_ACTION_BYTES, PaceSpec};
pub use self::pool::PoolSpec;
use self::pool::check_pool;
use self::portals::check_portals;
use self::properties::check_properties;
pub use self::updates::UpdateError;
use self::updates::check_update_error;
pub use self::watch::WatchSpec;
use self::watch::check_watches;
pub(in crate::scene) use self::watch::{watch_reach_cm, watched_twice};
use super::contents::{ContentSpec, Contents};
use super::layout::{Cut, FIRST_NEW_REGION, Layout, LayoutError, RegionMap};
use super::movement::Rules;
use super::mutants::{self, Mutant};
use super::portals::{PortalSpec, Portals};
use super::properties::{PropertySpec, Schema};
pub use super::spec_error::SpecError;
use super::spec_error::err;
use super::terrain::Terrain;
use super::{Footprint, Heights, Kind, PatchRule, Pos, RangeSet, RegionId, SceneId, Visibility};

/// The default of [`SceneSpec::patch_margin_cm`], centimetres. Two margins are a little more than a
/// walker goes in the two seconds within which an entry that returns counts as flicker.
pub const PATCH_MARGIN_CM: i32 = 200;

/// A patch grid of its own granularity for a set of entity kinds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerSpec {
    /// The layer's name, unique in its scene.
    pub name: String,
    /// Sides of a patch along x and z, centimetres. The land's side is a power of two times that of a
    /// square patch. Oblong patches begin at the map's north-west corner, and the borders of lands may cut
    /// them; their sides are at most the land's.
    pub patch_cm: [i32; 2],
}

impl LayerSpec {
    /// A layer of square patches with this side, centimetres.
    pub fn square(name: impl Into<String>, patch_cm: i32) -> LayerSpec {
        LayerSpec { name: name.into(), patch_cm: [patch_cm; 2] }
    }
}

/// A kind of entity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindSpec {
    /// The kind's name, unique in its scene. The first kind is `player`.
    pub name: String,
    /// Index of its layer in [`SceneSpec::layers`].
    pub layer: usize,
    /// Top speed of such an entity, centimetres per second, at most the scene's top speed; `None`:
    /// the scene's. 0 for kinds that do not move.
    pub speed_cm_s: Option<i32>,
    /// Its properties. Every kind has property 0, the appearance, declared or not.
    pub properties: Vec<PropertySpec>,
    /// What it watches, for the game's logic: for each kind at most one rule.
    pub watch: Vec<WatchSpec>,
    /// Beside the scene's range, the rings in which a client may ask to be shown what is not a player
    /// (Patches only). Only players have any.
    pub sights: Vec<RangeSet>,
    /// The radii at which players come to see such an entity, and see it no more, centimetres, whatever the
    /// scene's visibility; `None`: the scene's. Not of players.
    pub circle_cm: Option<(i32, i32)>,
    /// Whether such an entity occupies the tiles of its body, so that no other enters them. Only where moves are judged.
    pub blocks: bool,
    /// The sides of its body along x and z, centimetres; `None`: it occupies the tile on which it stands. Only of kinds
    /// that block; at most [`MAX_FOOTPRINT_TILES`](crate::scene::MAX_FOOTPRINT_TILES) tiles.
    pub size_cm: Option<[i32; 2]>,
}

impl KindSpec {
    /// A kind in a layer, with the scene's top speed.
    pub fn new(name: impl Into<String>, layer: usize) -> KindSpec {
        let (name, properties) = (name.into(), Vec::new());
        let (speed_cm_s, watch, sights, circle_cm, blocks) = Default::default();
        let size_cm = None;
        KindSpec { name, layer, speed_cm_s, properties, watch, sights, circle_cm, blocks, size_cm }
    }
}

/// Ticks between updates that viewers receive, by the ring in which they see the entity (1 = every
/// tick).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rates {
    /// NEAR, in ticks.
    pub near: u32,
    /// MIDDLE, in ticks.
    pub middle: u32,
    /// FAR and beyond, in ticks.
    pub far: u32,
}

impl Rates {
    /// Ticks between two updates of an entity in ring `ring` (0 NEAR, 1 MIDDLE, more: FAR).
    #[inline]
    pub fn of_ring(&self, ring: u32) -> u32 {
        match ring {
            0 => self.near,
            1 => self.middle,
            _ => self.far,
        }
    }
}

/// A scene as configured. Lengths are in centimetres; times are in milliseconds or ticks, as named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SceneSpec {
    /// The scene's name, unique in a server.
    pub name: String,
    /// Extent along x; a multiple of `land_cm`.
    pub width_cm: i32,
    /// Extent along z; a multiple of `land_cm`.
    pub depth_cm: i32,
    /// Positions lie at most so far above and below height 0, centimetres; 100 to 100,000,000.
    pub height_limit_cm: i32,
    /// Side of a land, centimetres.
    pub land_cm: i32,
    /// Side of a region along x, in lands. Regions at the east edge may be smaller.
    pub region_lands_x: i32,
    /// Side of a region along z, in lands. Regions at the south edge may be smaller.
    pub region_lands_z: i32,
    /// The patch grids; the first is the players' layer.
    pub layers: Vec<LayerSpec>,
    /// The entity kinds; the first is `player`, in layer 0.
    pub kinds: Vec<KindSpec>,
    /// What each plane contains from the start, at most [`MAX_CONTENTS`](crate::scene::MAX_CONTENTS) in all
    /// scenes of a server.
    pub contents: Vec<ContentSpec>,
    /// Areas that take players elsewhere.
    pub portals: Vec<PortalSpec>,
    /// The rule that decides which entities are in range of each other.
    pub visibility: Visibility,
    /// The rings in which players see each other, and all else unless their clients ask for one of
    /// [`KindSpec::sights`] (Patches only).
    pub range: RangeSet,
    /// How much nearer each of two entities in view of each other counts, centimetres, at most half of
    /// the smallest patch: such a pair stays in range until both margins are used up (Patches only).
    /// `None`: [`PATCH_MARGIN_CM`], but no more than half of each layer's patch. 0: no margin.
    pub patch_margin_cm: Option<i32>,
    /// How far apart in height entities may be that come into view of each other, centimetres, 1 to
    /// 100,000,000: see [`Heights::within`]. `None`: heights do not count. Companions in their own range
    /// ([`BondSpec::enter_cm`]) are exempt.
    pub height_cm: Option<i32>,
    /// Most players in one player's view list, 1 to 1000.
    pub view_cap: usize,
    /// How much nearer a candidate without a link must be than a linked player to replace it,
    /// centimetres. The default reduces flicker in a walking crowd to a third (`purview-lab bench
    /// views`).
    pub view_margin_cm: i32,
    /// The kinds of bonds and their effect.
    pub bonds: BondSpec,
    /// Update rates by ring.
    pub rates: Rates,
    /// When a viewer is told of a changed entity before the rate of its ring says so; `None`: never.
    /// Viewers extrapolate then: where positions are trusted, too, they are told velocities.
    pub update_error: Option<UpdateError>,
    /// Most bytes of moves in one client's frame; the rest waits for the next tick. At least 64.
    pub frame_budget_bytes: usize,
    /// Most bits per second that one client is sent, in messages of the protocol: rates stretch, those of
    /// far entities first. 0 = no limit.
    pub egress_bits_s: u32,
    /// What one client may make others be told in a second.
    pub pace: PaceSpec,
    /// What clients that ask for it are told of the crowd beyond their view lists; `None`: nothing.
    pub crowd: Option<CrowdSpec>,
    /// How far past a border an entity goes before its handoff, centimetres.
    pub handoff_margin_cm: i32,
    /// Top speed of entities, centimetres per second, whatever is granted to them. It determines
    /// the width of the mirrored band.
    pub top_speed_cm_s: i32,
    /// How clients move.
    pub moves: MoveSpec,
    /// Whether clients may choose where they appear and may teleport, which no rule of movement
    /// judges; otherwise only the game's logic may.
    pub client_teleports: bool,
    /// For how long a player stays whose client leaves, breaks off or logs in anew, milliseconds, at most
    /// [`MAX_HOLD_MS`](super::messages::MAX_HOLD_MS).
    pub linger_ms: u32,
    /// Width of the band around a region in which neighbours mirror their entities to it,
    /// centimetres; 0 = the least width that suffices.
    pub band_cm: i32,
    /// Most planes over which automatic joins are spread, from 0: the lines (channels) of a busy city, see
    /// [`Lines`](super::lines::Lines). At least 1.
    pub lines: i32,
    /// How many of them are always open, from 1 to `lines`.
    pub lines_open: i32,
    /// Whether players leave a line of too many with their next teleport or login.
    pub lines_yield: bool,
    /// Players per line.
    pub line_capacity: u32,
    /// Number of groups into which planes are divided, 1 to 256. Each group has regions of its own,
    /// so that the planes of a busy scene can live on different machines.
    pub plane_groups: u16,
    /// The nodes that run the scene, and how many regions it may have.
    pub pool: PoolSpec,
    /// Where a player without a position appears: x in centimetres.
    pub spawn_x_cm: i32,
    /// Where a player without a position appears: z in centimetres.
    pub spawn_z_cm: i32,
}

impl Default for SceneSpec {
    fn default() -> Self {
        SceneSpec {
            name: "meadow".into(),
            width_cm: 204_800,
            depth_cm: 204_800,
            height_limit_cm: 1_000_000,
            land_cm: 51_200,
            region_lands_x: 2,
            region_lands_z: 2,
            layers: vec![LayerSpec::square("common", 3_200)],
            kinds: ["player", "npc", "monster", "mechanism", "drop"]
                .map(|name| KindSpec::new(name, 0))
                .into(),
            contents: Vec::new(),
            portals: Vec::new(),
            visibility: Visibility::Patches,
            range: RangeSet::FULL,
            patch_margin_cm: None,
            height_cm: None,
            view_cap: 60,
            view_margin_cm: 200,
            bonds: BondSpec::default(),
            rates: Rates { near: 1, middle: 10, far: 40 },
            update_error: None,
            frame_budget_bytes: 16_384,
            egress_bits_s: 0,
            pace: PaceSpec::default(),
            crowd: None,
            handoff_margin_cm: 200,
            top_speed_cm_s: 2_000,
            moves: MoveSpec::default(),
            client_teleports: false,
            linger_ms: 0,
            band_cm: 0,
            lines: 4,
            lines_open: 1,
            lines_yield: false,
            line_capacity: 2_000,
            plane_groups: 1,
            pool: PoolSpec::default(),
            spawn_x_cm: 102_400,
            spawn_z_cm: 102_400,
        }
    }
}

impl SceneSpec {
    /// How a layer is cut into patches. Where patches do not decide which entities are in range, they
    /// have no margin.
    pub fn patch_rule(&self, layer: &LayerSpec) -> PatchRule {
        let side_cm = layer.patch_cm;
        let half = side_cm[0].min(side_cm[1]) / 2;
        let margin_cm = match self.visibility {
            Visibility::Patches => self.patch_margin_cm.unwrap_or(PATCH_MARGIN_CM.min(half)),
            Visibility::Circle { .. } | Visibility::All => 0,
        };
        PatchRule { side_cm, margin_cm }
    }

    /// How players come to see entities of a kind; for kinds that the scene does not have, as its players.
    #[inline]
    pub fn visibility_of(&self, kind: Kind) -> Visibility {
        let circle = self.kinds.get(usize::from(kind.0)).and_then(|kind| kind.circle_cm);
        let circle = circle.filter(|_| !mutants::has(Mutant::CircleIgnored));
        let of = |(enter_cm, leave_cm)| Visibility::Circle { enter_cm, leave_cm };
        circle.map_or(self.visibility, of)
    }

    /// Sides of a patch of the players' layer along x and z, centimetres.
    pub fn player_patch_cm(&self) -> [i32; 2] {
        self.layers.first().map_or([self.land_cm; 2], |layer| layer.patch_cm)
    }

    /// How far apart in height entities may be that see each other.
    pub fn heights(&self) -> Heights {
        Heights::within(self.height_cm)
    }

    /// How the map is cut into lands and regions.
    pub(super) fn cut(&self) -> Cut {
        Cut {
            width_cm: self.width_cm,
            depth_cm: self.depth_cm,
            land_cm: self.land_cm,
            region_lands_x: self.region_lands_x,
            region_lands_z: self.region_lands_z,
            groups: self.plane_groups.max(1),
        }
    }
}

/// A scene that obeys every rule, with the values derived from its figures.
#[derive(Debug, Clone)]
pub struct Scene {
    /// The scene's id in the server.
    pub id: SceneId,
    /// The configuration.
    pub spec: SceneSpec,
    /// Milliseconds per tick.
    pub tick_ms: u32,
    /// Width of the mirrored band in use, centimetres.
    pub band_cm: i32,
    /// Width of the band for players with bonds, centimetres; at least `band_cm`.
    pub bonded_band_cm: i32,
    /// The farthest distance along an axis at which entities can be in range of each other,
    /// centimetres.
    pub reach_cm: i32,
    /// The regions.
    pub map: RegionMap,
    /// The terrain; `None`: all free, and flat.
    pub terrain: Option<Arc<Terrain>>,
    /// The rules that judge moves; `None`: positions from clients are trusted.
    pub judged: Option<Rules>,
    /// The properties of each kind.
    schemas: Arc<[Schema]>,
    /// What each plane contains from the start.
    contents: Contents,
    /// Areas that take players elsewhere.
    portals: Portals,
}

impl Scene {
    /// Checks `spec` and lays out its regions with ids from `first_region` on.
    ///
    /// # Errors
    /// All rules that the spec breaks, not only the first.
    pub fn new(
        id: SceneId,
        spec: SceneSpec,
        tick_ms: u32,
        first_region: RegionId,
    ) -> Result<Scene, Vec<SpecError>> {
        let mut errors = Vec::new();
        check_sizes(&spec, tick_ms, &mut errors);
        check_kinds(&spec, &mut errors);
        check_properties(&spec, &mut errors);
        check_watches(&spec, &mut errors);
        check_views(&spec, &mut errors);
        check_update_error(&spec, &mut errors);
        check_load(&spec, &mut errors);
        check_pace(&spec, &mut errors);
        check_pool(&spec, &mut errors);
        check_moves(&spec, tick_ms, &mut errors);
        check_bodies(&spec, &mut errors);
        let schemas: Arc<[Schema]> =
            spec.kinds.iter().map(|kind| Schema::of(&kind.properties)).collect();
        check_contents(&spec, &schemas, &mut errors);
        check_portals(&spec, tick_ms, &mut errors);
        if !errors.is_empty() {
            return Err(errors);
        }
        if first_region.0 > FIRST_NEW_REGION - MAX_REGIONS as u32 {
            let rule = "leaves too few ids for the regions of a scene".into();
            err(&mut errors, "regions", format!("first id {first_region}"), rule);
            return Err(errors);
        }
        let map = RegionMap::grid(id, &spec.cut(), first_region);
        let reach_cm = reach_cm(&spec);
        let band_cm = check_band(&spec, tick_ms, reach_cm, &map, &mut errors);
        let bonded_band_cm = check_bonded_band(&spec, tick_ms, band_cm, &map, &mut errors);
        check_index(&spec, bonded_band_cm, &map, &mut errors);
        if !errors.is_empty() {
            return Err(errors);
        }
        let judged = spec.moves.mode == Moves::Judged;
        let judged = judged.then(|| spec.moves.rules(map.bounds, spec.height_limit_cm));
        let contents = Contents::new(0, &spec.contents);
        let portals = Portals::new(&spec.portals, spec.land_cm);
        let terrain = None;
        Ok(Scene {
            id,
            spec,
            tick_ms,
            band_cm,
            bonded_band_cm,
            reach_cm,
            map,
            terrain,
            judged,
            schemas,
            contents,
            portals,
        })
    }

    /// The widest band in which entities are mirrored across its borders, or would be if it had borders, centimetres.
    pub fn border_band_cm(&self) -> i32 {
        self.bonded_band_cm.max(least_border_band(&self.spec, self.tick_ms, self.reach_cm))
    }

    /// Whether a plane is one of the scene's lines.
    pub fn is_line(&self, plane: super::Plane) -> bool {
        (0..self.spec.lines).contains(&plane.0)
    }

    /// How many regions its configuration asks for, over all groups of planes.
    pub fn configured_regions(&self) -> usize {
        let (cut, along) = (self.spec.cut(), |lands: i32, block: i32| lands.div_euclid(block));
        let (x, z) = cut.lands();
        let (block_x, block_z) = (cut.region_lands_x, cut.region_lands_z);
        let per_group = along(x + block_x - 1, block_x) * along(z + block_z - 1, block_z);
        per_group as usize * usize::from(cut.groups)
    }

    /// The same scene with other regions.
    ///
    /// # Errors
    /// The regions do not cover the map exactly once, or break a rule of the scene.
    pub fn with_layout(&self, layout: &Layout) -> Result<Scene, LayoutError> {
        let map = RegionMap::of(&self.spec.cut(), layout)?;
        let mut errors = Vec::new();
        let band_cm = check_band(&self.spec, self.tick_ms, self.reach_cm, &map, &mut errors);
        let bonded_band_cm =
            check_bonded_band(&self.spec, self.tick_ms, band_cm, &map, &mut errors);
        check_index(&self.spec, bonded_band_cm, &map, &mut errors);
        if !errors.is_empty() {
            return Err(LayoutError::Rules(errors));
        }
        map.check_neighbours(bonded_band_cm)?;
        Ok(Scene { map, band_cm, bonded_band_cm, ..self.clone() })
    }

    /// Whether a position lies on the map, within the limit of heights.
    #[inline]
    pub fn contains(&self, pos: Pos) -> bool {
        let limit = self.spec.height_limit_cm.unsigned_abs();
        self.map.bounds.contains(pos) && pos.y.unsigned_abs() <= limit
    }

    /// The properties of a kind; `None` if the scene has no such kind.
    pub fn schema(&self, kind: Kind) -> Option<&Schema> {
        self.schemas.get(usize::from(kind.0))
    }

    /// What the body of an entity of a kind occupies; `None` if the kind does not block, or the scene has no such kind.
    pub fn footprint(&self, kind: Kind) -> Option<Footprint> {
        let kind = self.spec.kinds.get(usize::from(kind.0)).filter(|kind| kind.blocks)?;
        Some(Footprint::new(kind.size_cm.unwrap_or_default(), self.tile_cm()))
    }

    /// Top speed of a kind, centimetres per second; 0 if the scene has no such kind.
    pub fn speed_of(&self, kind: Kind) -> u32 {
        let top = self.spec.top_speed_cm_s;
        let speed = |k: &KindSpec| k.speed_cm_s.unwrap_or(top).unsigned_abs();
        self.spec.kinds.get(usize::from(kind.0)).map_or(0, speed)
    }
}

#[cfg(test)]
mod tests;

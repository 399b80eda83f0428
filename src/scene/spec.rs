//! What a scene is, as data, and the rules that a legal one obeys.
//!
//! A [`SceneSpec`] is what a configuration says; [`Scene::new`] checks every rule and refuses an
//! illegal one with the key, the figure and what would be right.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::terrain::{Terrain, misfits};
use super::{Kind, RangeSet, RegionId, SceneId, Visibility, map::RegionMap};

/// A patch grid of its own granularity for a set of entity kinds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerSpec {
    /// The layer's name, unique in its scene.
    pub name: String,
    /// Side of a patch in centimetres; the land's side is a power of two times it.
    pub patch_cm: i32,
}

/// A kind of entity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindSpec {
    /// The kind's name, unique in its scene. The first kind is `player`.
    pub name: String,
    /// Index of its layer in [`SceneSpec::layers`].
    pub layer: usize,
}

/// How often viewers hear of a change, by the ring in which they see it, in ticks (1 = every tick).
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
    /// Ticks between two updates of something seen in ring `ring` (0 NEAR, 1 MIDDLE, more: FAR).
    #[inline]
    pub fn of_ring(&self, ring: u32) -> u32 {
        match ring {
            0 => self.near,
            1 => self.middle,
            _ => self.far,
        }
    }
}

/// A scene as configured; lengths in centimetres, times in milliseconds or ticks as named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SceneSpec {
    /// The scene's name, unique in a server.
    pub name: String,
    /// Extent along x; a multiple of `land_cm`.
    pub width_cm: i32,
    /// Extent along z; a multiple of `land_cm`.
    pub depth_cm: i32,
    /// Side of a land.
    pub land_cm: i32,
    /// Side of a region along x, in lands. Regions at the east edge may be smaller.
    pub region_lands_x: i32,
    /// Side of a region along z, in lands. Regions at the south edge may be smaller.
    pub region_lands_z: i32,
    /// The patch grids; the first is that of players.
    pub layers: Vec<LayerSpec>,
    /// The entity kinds; the first is `player`, in layer 0.
    pub kinds: Vec<KindSpec>,
    /// Who is in range of whom.
    pub visibility: Visibility,
    /// The range of an entity that asks for none of its own (Patches only).
    pub default_range: RangeSet,
    /// Most players in one player's view list, 1 to 1000.
    pub view_cap: usize,
    /// How much nearer an unlinked player must be than a linked one to replace it, centimetres.
    pub view_margin_cm: i32,
    /// Update rates by ring.
    pub rates: Rates,
    /// Most bytes of moves in one client's frame; what does not fit waits a tick. At least 64.
    pub frame_budget_bytes: usize,
    /// How far past a border an entity goes before it is handed off.
    pub handoff_margin_cm: i32,
    /// Top speed of entities, centimetres per second; sizes the mirrored band.
    pub top_speed_cm_s: i32,
    /// Width of the band around a region in which its neighbours mirror their entities to it; 0 =
    /// the least that is enough.
    pub band_cm: i32,
    /// Planes that automatic joins fill, from 0: the lines of a busy city. At least 1.
    pub lines: i32,
    /// Players for which a line has room.
    pub line_capacity: u32,
    /// Where a player that names no place appears, x in centimetres.
    pub spawn_x_cm: i32,
    /// Where a player that names no place appears, z in centimetres.
    pub spawn_z_cm: i32,
}

impl Default for SceneSpec {
    fn default() -> Self {
        SceneSpec {
            name: "meadow".into(),
            width_cm: 204_800,
            depth_cm: 204_800,
            land_cm: 51_200,
            region_lands_x: 2,
            region_lands_z: 2,
            layers: vec![LayerSpec { name: "common".into(), patch_cm: 3_200 }],
            kinds: ["player", "npc", "monster", "mechanism", "drop"]
                .map(|name| KindSpec { name: name.into(), layer: 0 })
                .into(),
            visibility: Visibility::Patches,
            default_range: RangeSet::FULL,
            view_cap: 60,
            view_margin_cm: 0,
            rates: Rates { near: 1, middle: 10, far: 40 },
            frame_budget_bytes: 16_384,
            handoff_margin_cm: 200,
            top_speed_cm_s: 2_000,
            band_cm: 0,
            lines: 4,
            line_capacity: 2_000,
            spawn_x_cm: 102_400,
            spawn_z_cm: 102_400,
        }
    }
}

/// A rule that a scene breaks: which key, what it says, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key} = {found}: {rule}")]
pub struct SpecError {
    /// The key at fault, as [`SceneSpec`] names it.
    pub key: &'static str,
    /// What the key says, with its unit.
    pub found: String,
    /// The rule, with the figures that would satisfy it.
    pub rule: String,
}

/// Longest length of any kind: 1,000 km. Three of them and their squares' sum fit their types.
const MAX_SIDE_CM: i32 = 100_000_000;

/// Most lands of a map; each takes two bytes per node.
const MAX_LANDS: u64 = 4_000_000;

/// Most regions of a map.
const MAX_REGIONS: u64 = 65_535;

/// A scene that obeys every rule, with what follows from its figures.
#[derive(Debug, Clone)]
pub struct Scene {
    /// Which scene of the server this is.
    pub id: SceneId,
    /// What was configured.
    pub spec: SceneSpec,
    /// Milliseconds per tick.
    pub tick_ms: u32,
    /// The mirrored band in force, centimetres.
    pub band_cm: i32,
    /// The farthest ground distance along an axis at which anything can be in range, centimetres.
    pub reach_cm: i32,
    /// The regions.
    pub map: RegionMap,
    /// Where one can walk, and how high it is; `None`: everywhere, and flat.
    pub terrain: Option<Arc<Terrain>>,
}

impl Scene {
    /// Checks `spec` and lays out its regions, whose ids start at `first_region`.
    ///
    /// # Errors
    /// Every rule that the spec breaks, not only the first.
    pub fn new(
        id: SceneId,
        spec: SceneSpec,
        tick_ms: u32,
        first_region: RegionId,
    ) -> Result<Scene, Vec<SpecError>> {
        let mut errors = Vec::new();
        check_sizes(&spec, tick_ms, &mut errors);
        check_kinds(&spec, &mut errors);
        check_views(&spec, &mut errors);
        if !errors.is_empty() {
            return Err(errors);
        }
        if first_region.0 > u32::MAX - MAX_REGIONS as u32 {
            let rule = "leaves too few ids for the regions of a scene".into();
            err(&mut errors, "regions", format!("first id {first_region}"), rule);
            return Err(errors);
        }
        let map = RegionMap::grid(&spec, first_region);
        let reach_cm = reach_cm(&spec);
        let band_cm = check_band(&spec, tick_ms, reach_cm, &map, &mut errors);
        if !errors.is_empty() {
            return Err(errors);
        }
        Ok(Scene { id, spec, tick_ms, band_cm, reach_cm, map, terrain: None })
    }

    /// The scene with a terrain, which covers it exactly and leaves its spawn point free.
    ///
    /// # Errors
    /// Every rule that the terrain breaks.
    pub fn with_terrain(self, terrain: Arc<Terrain>) -> Result<Scene, Vec<SpecError>> {
        let errors = misfits(&self.spec, &terrain);
        if !errors.is_empty() {
            return Err(errors);
        }
        Ok(Scene { terrain: Some(terrain), ..self })
    }

    /// The layer of a kind; `None` for a kind that the scene does not have.
    pub fn layer_of(&self, kind: Kind) -> Option<usize> {
        self.spec.kinds.get(usize::from(kind.0)).map(|k| k.layer)
    }
}

/// Metres, for messages.
pub(super) fn m(cm: i32) -> String {
    if cm % 100 == 0 {
        format!("{} m", cm / 100)
    } else {
        format!("{:.2} m", f64::from(cm) / 100.0)
    }
}

fn err(errors: &mut Vec<SpecError>, key: &'static str, found: impl ToString, rule: String) {
    errors.push(SpecError { key, found: found.to_string(), rule });
}

fn check_sizes(s: &SceneSpec, tick_ms: u32, errors: &mut Vec<SpecError>) {
    if !(10..=10_000).contains(&tick_ms) {
        err(errors, "tick", format!("{tick_ms} ms"), "must lie between 10 ms and 10 s".into());
    }
    if s.name.is_empty() || s.name.len() > 64 {
        err(errors, "name", format!("{:?}", s.name), "must have 1 to 64 bytes".into());
    }
    if s.land_cm < 100 || s.land_cm > MAX_SIDE_CM {
        err(errors, "land", m(s.land_cm), "must be at least 1 m and at most 1000 km".into());
        return;
    }
    if check_extent(s, errors) {
        check_counts(s, errors);
        let spawn = [("spawn_x", s.spawn_x_cm, s.width_cm), ("spawn_z", s.spawn_z_cm, s.depth_cm)];
        for (key, v, max) in spawn {
            if v < 0 || v >= max {
                err(
                    errors,
                    key,
                    m(v),
                    format!("must lie on the map: from 0 m to below {}", m(max)),
                );
            }
        }
    }
    for layer in &s.layers {
        if !is_power_of_two_times(s.land_cm, layer.patch_cm) {
            let found = format!("{} (layer {:?})", m(layer.patch_cm), layer.name);
            let (land, near) = (m(s.land_cm), m(nearest_patch(s.land_cm, layer.patch_cm)));
            let rule = format!(
                "a land of {land} must be a power of two times the patch, for example {near}"
            );
            err(errors, "patch", found, rule);
        }
    }
}

/// Whether the map is made of whole lands and regions of at least one.
fn check_extent(s: &SceneSpec, errors: &mut Vec<SpecError>) -> bool {
    let before = errors.len();
    for (key, side) in [("width", s.width_cm), ("depth", s.depth_cm)] {
        if side < s.land_cm || side % s.land_cm != 0 || side > MAX_SIDE_CM {
            let near = (side.clamp(s.land_cm, MAX_SIDE_CM) / s.land_cm) * s.land_cm;
            let (land, near) = (m(s.land_cm), m(near));
            let rule = format!(
                "must be a whole number of lands of {land} and at most 1000 km, for example {near}"
            );
            err(errors, key, m(side), rule);
        }
    }
    for (key, n) in [("region_lands_x", s.region_lands_x), ("region_lands_z", s.region_lands_z)] {
        if n < 1 {
            err(errors, key, n, "must be at least 1 land".into());
        }
    }
    errors.len() == before
}

/// That a map of legal extent has no more lands and regions than memory is meant for.
fn check_counts(s: &SceneSpec, errors: &mut Vec<SpecError>) {
    let along = |side: i32| (side / s.land_cm).unsigned_abs();
    let (lands_x, lands_z) = (along(s.width_cm), along(s.depth_cm));
    let lands = u64::from(lands_x) * u64::from(lands_z);
    if lands > MAX_LANDS {
        let found = format!("{} ({lands} lands)", m(s.land_cm));
        err(errors, "land", found, format!("a map may have at most {MAX_LANDS} lands"));
    }
    let blocks = |lands: u32, each: i32| u64::from(lands.div_ceil(each.unsigned_abs()));
    let regions = blocks(lands_x, s.region_lands_x) * blocks(lands_z, s.region_lands_z);
    if regions > MAX_REGIONS {
        let found = format!("{} x {} lands", s.region_lands_x, s.region_lands_z);
        let rule = format!("makes {regions} regions; a map may have at most {MAX_REGIONS}");
        err(errors, "region_lands", found, rule);
    }
}

fn check_kinds(s: &SceneSpec, errors: &mut Vec<SpecError>) {
    if s.layers.is_empty() || s.layers.len() > 16 {
        err(errors, "layers", s.layers.len(), "must have 1 to 16 layers".into());
    }
    if s.kinds.is_empty() || s.kinds.len() > 256 {
        err(errors, "kinds", s.kinds.len(), "must have 1 to 256 kinds".into());
    }
    for (i, k) in s.kinds.iter().enumerate() {
        if k.layer >= s.layers.len() {
            err(
                errors,
                "kinds.layer",
                format!("{} (kind {:?})", k.layer, k.name),
                format!("must name one of the {} layers", s.layers.len()),
            );
        }
        if s.kinds[..i].iter().any(|o| o.name == k.name) {
            err(errors, "kinds", format!("{:?}", k.name), "stands twice; names are unique".into());
        }
    }
    for (i, l) in s.layers.iter().enumerate() {
        if s.layers[..i].iter().any(|o| o.name == l.name) {
            err(errors, "layers", format!("{:?}", l.name), "stands twice; names are unique".into());
        }
    }
    if let Some(first) = s.kinds.first()
        && (first.name != "player" || first.layer != 0)
    {
        let found = format!("{:?} in layer {}", first.name, first.layer);
        err(errors, "kinds", found, "the first kind must be \"player\", in layer 0".into());
    }
}

fn check_views(s: &SceneSpec, errors: &mut Vec<SpecError>) {
    if let Visibility::Circle { enter_cm, leave_cm } = s.visibility {
        if enter_cm < 1 {
            err(errors, "enter", m(enter_cm), "must be at least 1 cm".into());
        }
        if leave_cm <= enter_cm || leave_cm > MAX_SIDE_CM {
            let enter = m(enter_cm);
            let rule = format!("must be greater than the enter radius of {enter}, at most 1000 km");
            err(errors, "leave", m(leave_cm), rule);
        }
    }
    if s.view_cap < 1 || s.view_cap > 1000 {
        err(errors, "view_cap", s.view_cap, "must lie between 1 and 1000".into());
    }
    if s.view_margin_cm < 0 || s.view_margin_cm > 100_000 {
        err(errors, "view_margin", m(s.view_margin_cm), "must lie between 0 m and 1 km".into());
    }
    for (key, v) in
        [("rates.near", s.rates.near), ("rates.middle", s.rates.middle), ("rates.far", s.rates.far)]
    {
        if !(1..=100_000).contains(&v) {
            err(errors, key, format!("{v} ticks"), "must lie between 1 and 100000 ticks".into());
        }
    }
    if s.frame_budget_bytes < 64 {
        err(errors, "frame_budget", s.frame_budget_bytes, "must be at least 64 bytes".into());
    }
    if s.lines < 1 {
        err(errors, "lines", s.lines, "must be at least 1".into());
    }
    if s.line_capacity < 1 {
        err(errors, "line_capacity", s.line_capacity, "must be at least 1".into());
    }
    for (key, v) in [("handoff_margin", s.handoff_margin_cm), ("band", s.band_cm)] {
        if !(0..=MAX_SIDE_CM).contains(&v) {
            err(errors, key, m(v), "must lie between 0 m and 1000 km".into());
        }
    }
    if !(1..=MAX_SIDE_CM).contains(&s.top_speed_cm_s) {
        let found = format!("{}/s", m(s.top_speed_cm_s));
        err(errors, "top_speed", found, "must lie between 1 cm/s and 1000 km/s".into());
    }
}

/// The contract of the borders (DESIGN, "Borders"): leave range + handoff margin + one tick at top
/// speed <= mirrored band <= smallest region side.
fn check_band(
    s: &SceneSpec,
    tick_ms: u32,
    reach: i32,
    map: &RegionMap,
    errors: &mut Vec<SpecError>,
) -> i32 {
    if map.regions.len() == 1 {
        return 0;
    }
    let smallest = map.regions.iter().map(|r| r.rect.short_side()).min().unwrap_or(0);
    if s.visibility == Visibility::All {
        err(
            errors,
            "regions",
            map.regions.len(),
            "a scene in which everybody sees everybody (all) must be a single region".into(),
        );
        return 0;
    }
    // At most 1,000 km/s for 10 s: fits.
    let step =
        (u64::from(s.top_speed_cm_s.unsigned_abs()) * u64::from(tick_ms)).div_ceil(1000) as i32;
    let least = reach.saturating_add(s.handoff_margin_cm).saturating_add(step);
    let sum = format!(
        "leave range {} + handoff margin {} + one tick at top speed {} = {}",
        m(reach),
        m(s.handoff_margin_cm),
        m(step),
        m(least)
    );
    if least > smallest {
        err(
            errors,
            "region side",
            m(smallest),
            format!("the smallest region must be at least as wide as {sum}"),
        );
        return 0;
    }
    if s.band_cm == 0 {
        return least;
    }
    if s.band_cm < least || s.band_cm > smallest {
        err(
            errors,
            "band",
            m(s.band_cm),
            format!("must lie between {sum} and the smallest region side, {}", m(smallest)),
        );
    }
    s.band_cm
}

/// The farthest distance along an axis at which anything of the scene can be in range.
fn reach_cm(s: &SceneSpec) -> i32 {
    match s.visibility {
        // In range are at most two whole patches beyond one's own: a point at the near edge of its
        // patch sees to the far edge of the second patch after it.
        Visibility::Patches => s.layers.iter().map(|l| l.patch_cm * 3).max().unwrap_or(0),
        Visibility::Circle { leave_cm, .. } => leave_cm,
        Visibility::All => 0,
    }
}

fn is_power_of_two_times(land: i32, patch: i32) -> bool {
    patch > 0 && land % patch == 0 && (land / patch).count_ones() == 1
}

/// The legal patch side next to `wanted`.
fn nearest_patch(land: i32, wanted: i32) -> i32 {
    let mut best = land;
    let mut side = land;
    while side >= 1 {
        if side.abs_diff(wanted) < best.abs_diff(wanted) {
            best = side;
        }
        if side % 2 != 0 {
            break;
        }
        side /= 2;
    }
    best
}

#[cfg(test)]
mod tests;

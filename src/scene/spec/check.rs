//! The rules of a legal scene, except bonds, movement and the index.
//!
//! [`Scene::new`](super::Scene::new) calls every check. Each error must name a value that would be
//! legal.

use super::bodies::bodies_reach_cm;
use super::bonds::check_bonds;
use super::watch::watch_reach_cm;
use super::{LayerSpec, Moves, SceneSpec, SpecError};
use crate::scene::layout::{RegionMap, lands_along};
use crate::scene::names::is_name;
use crate::scene::spec_error::{MAX_SIDE_CM, NAME_RULE, err, m, sides};
use crate::scene::{Rect, Visibility};

/// Most lands of a map; each takes two bytes per node.
const MAX_LANDS: u64 = 4_000_000;

/// Most regions of a map.
pub(super) const MAX_REGIONS: u64 = 65_535;

pub(super) fn check_sizes(s: &SceneSpec, tick_ms: u32, errors: &mut Vec<SpecError>) {
    if !(10..=10_000).contains(&tick_ms) {
        err(errors, "tick", format!("{tick_ms} ms"), "must lie between 10 ms and 10 s".into());
    }
    let names = [("name", &s.name)].into_iter();
    let names = names.chain(s.layers.iter().map(|layer| ("layer", &layer.name)));
    for (key, name) in names.chain(s.kinds.iter().map(|kind| ("kind", &kind.name))) {
        if !is_name(name, 64) {
            err(errors, key, format!("{name:?}"), NAME_RULE.into());
        }
    }
    if s.land_cm < 100 || s.land_cm > MAX_SIDE_CM {
        err(errors, "land", m(s.land_cm), "must be at least 1 m and at most 1000 km".into());
        return;
    }
    if !(100..=MAX_SIDE_CM).contains(&s.height_limit_cm) {
        let rule = "must be at least 1 m and at most 1000 km".into();
        err(errors, "height_limit", m(s.height_limit_cm), rule);
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
        check_patch(s.land_cm, layer, errors);
    }
    check_patch_margin(s, errors);
}

/// Square patches divide a land evenly. Oblong ones cannot all do so: they are only not larger.
fn check_patch(land_cm: i32, layer: &LayerSpec, errors: &mut Vec<SpecError>) {
    let ([x, z], land) = (layer.patch_cm, m(land_cm));
    let legal = |side: i32| (1..=land_cm).contains(&side);
    let rule = match x == z {
        true if is_power_of_two_times(land_cm, x) => return,
        true => {
            let near = m(nearest_patch(land_cm, x));
            format!("a land of {land} must be a power of two times the patch, for example {near}")
        }
        false if legal(x) && legal(z) => return,
        false => format!("both sides must be at least 1 cm and at most that of a land, {land}"),
    };
    err(errors, "patch", format!("{} (layer {:?})", sides(layer.patch_cm), layer.name), rule);
}

/// A margin reaches no farther than into the patches around an entity's own.
fn check_patch_margin(s: &SceneSpec, errors: &mut Vec<SpecError>) {
    let (Some(margin), Some(most)) =
        (s.patch_margin_cm, s.layers.iter().flat_map(|l| l.patch_cm).map(|side| side / 2).min())
    else {
        return;
    };
    if margin < 0 || margin > most.max(0) {
        let rule = format!("must lie between 0 m and half of the smallest patch, {}", m(most));
        err(errors, "patch_margin", m(margin), rule);
    }
}

/// Checks the sides of the map, and that regions have at least one land.
fn check_extent(s: &SceneSpec, errors: &mut Vec<SpecError>) -> bool {
    let before = errors.len();
    for (key, side) in [("width", s.width_cm), ("depth", s.depth_cm)] {
        if !(100..=MAX_SIDE_CM).contains(&side) {
            err(errors, key, m(side), "must be at least 1 m and at most 1000 km".into());
        }
    }
    for (key, n) in [("region_lands_x", s.region_lands_x), ("region_lands_z", s.region_lands_z)] {
        if n < 1 {
            err(errors, key, n, "must be at least 1 land".into());
        }
    }
    errors.len() == before
}

/// Checks that a map of legal extent does not have too many lands and regions.
fn check_counts(s: &SceneSpec, errors: &mut Vec<SpecError>) {
    let along = |side: i32| lands_along(side, s.land_cm).unsigned_abs();
    let (lands_x, lands_z) = (along(s.width_cm), along(s.depth_cm));
    let groups = u64::from(s.plane_groups);
    if !(1..=256).contains(&groups) {
        err(errors, "plane_groups", groups, "must lie between 1 and 256".into());
        return;
    }
    let lands = u64::from(lands_x) * u64::from(lands_z) * groups;
    if lands > MAX_LANDS {
        let found = format!("{} ({lands} lands)", m(s.land_cm));
        err(errors, "land", found, format!("a map may have at most {MAX_LANDS} lands"));
    }
    let blocks = |lands: u32, each: i32| u64::from(lands.div_ceil(each.unsigned_abs()));
    let per_group = blocks(lands_x, s.region_lands_x) * blocks(lands_z, s.region_lands_z);
    let regions = per_group * groups;
    if regions > MAX_REGIONS {
        let found = format!("{} x {} lands", s.region_lands_x, s.region_lands_z);
        let rule = format!("makes {regions} regions; a map may have at most {MAX_REGIONS}");
        err(errors, "region_lands", found, rule);
    }
}

pub(super) fn check_kinds(s: &SceneSpec, errors: &mut Vec<SpecError>) {
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
        if i > 0 && !k.sights.is_empty() {
            let rule = "only players are shown anything: give sights to the first kind".into();
            err(
                errors,
                "kinds.sights",
                format!("{} sights (kind {:?})", k.sights.len(), k.name),
                rule,
            );
        }
        if let Some((enter, leave)) = k.circle_cm {
            let rule = match s.visibility {
                _ if i == 0 => "players see each other as the scene says: give it to other kinds",
                Visibility::All => "has no effect with visibility \"all\"",
                _ if enter < 1 || leave <= enter || leave > MAX_SIDE_CM => {
                    "the enter radius must be above 0 m, and the leave radius above that, at most 1000 km"
                }
                _ => "",
            };
            if !rule.is_empty() {
                let found = format!("{} and {} (kind {:?})", m(enter), m(leave), k.name);
                err(errors, "kinds.circle", found, rule.into());
            }
        }
        if s.kinds[..i].iter().any(|o| o.name == k.name) {
            err(
                errors,
                "kinds",
                format!("{:?}", k.name),
                "appears twice; names must be unique".into(),
            );
        }
    }
    for (i, l) in s.layers.iter().enumerate() {
        if s.layers[..i].iter().any(|o| o.name == l.name) {
            err(
                errors,
                "layers",
                format!("{:?}", l.name),
                "appears twice; names must be unique".into(),
            );
        }
    }
    if let Some(first) = s.kinds.first()
        && (first.name != "player" || first.layer != 0)
    {
        let found = format!("{:?} in layer {}", first.name, first.layer);
        err(errors, "kinds", found, "the first kind must be \"player\", in layer 0".into());
    }
}

pub(super) fn check_views(s: &SceneSpec, errors: &mut Vec<SpecError>) {
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
    if let Some(cm) = s.height_cm.filter(|cm| !(1..=MAX_SIDE_CM).contains(cm)) {
        err(errors, "height", m(cm), "must be at least 1 cm and at most 1000 km".into());
    }
    if s.view_cap < 1 || s.view_cap > 1000 {
        err(errors, "view_cap", s.view_cap, "must lie between 1 and 1000".into());
    }
    if s.view_margin_cm < 0 || s.view_margin_cm > 100_000 {
        err(errors, "view_margin", m(s.view_margin_cm), "must lie between 0 m and 1 km".into());
    }
    check_bonds(&s.bonds, errors);
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
    if s.lines_open < 1 || s.lines_open > s.lines.max(1) {
        let rule = format!("must lie between 1 and the {} lines", s.lines.max(1));
        err(errors, "lines_open", s.lines_open, rule);
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
/// speed <= mirrored band <= smallest region side. If moves are judged, a client's late command may
/// move an entity by more than a tick.
pub(super) fn check_band(
    s: &SceneSpec,
    tick_ms: u32,
    reach: i32,
    map: &RegionMap,
    errors: &mut Vec<SpecError>,
) -> i32 {
    if map.has_no_borders() {
        return 0;
    }
    let smallest = map.smallest_side_cm();
    if s.visibility == Visibility::All {
        err(
            errors,
            "regions",
            map.regions.len(),
            "a scene with visibility \"all\" must be a single region".into(),
        );
        return 0;
    }
    let step = step_cm(s, tick_ms);
    let least = least_band(s, tick_ms, reach);
    let what = step_text(s);
    let sum = format!(
        "leave range {} + handoff margin {} + {what} {} = {}",
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

/// What the border contract counts beside range and margin, for messages.
fn step_text(s: &SceneSpec) -> &'static str {
    match s.moves.mode {
        Moves::Trusted => "one tick at top speed",
        Moves::Judged => "one tick and a late command at top speed",
    }
}

/// How far an entity may move in a tick.
fn step_cm(s: &SceneSpec, tick_ms: u32) -> i32 {
    let late_ms = match s.moves.mode {
        Moves::Trusted => 0,
        Moves::Judged => s.moves.rules(Rect { x0: 0, z0: 0, x1: 0, z1: 0 }, 0).unchecked_ms(),
    };
    let ms = u64::from(tick_ms) + u64::from(late_ms);
    let cm = (u64::from(s.top_speed_cm_s.unsigned_abs()) * ms).div_ceil(1000);
    i32::try_from(cm).unwrap_or(i32::MAX)
}

/// The narrowest band that suffices for a range of `reach`.
fn least_band(s: &SceneSpec, tick_ms: u32, reach: i32) -> i32 {
    reach.saturating_add(s.handoff_margin_cm).saturating_add(step_cm(s, tick_ms))
}

/// The narrowest band that suffices for a scene with borders, companions included.
pub(super) fn least_border_band(s: &SceneSpec, tick_ms: u32, reach: i32) -> i32 {
    least_band(s, tick_ms, reach.max(s.bonds.leave_cm))
}

/// The same contract for companions, which may be in range from farther away.
pub(super) fn check_bonded_band(
    s: &SceneSpec,
    tick_ms: u32,
    band_cm: i32,
    map: &RegionMap,
    errors: &mut Vec<SpecError>,
) -> i32 {
    if map.has_no_borders() || s.bonds.leave_cm == 0 {
        return band_cm;
    }
    let least = least_band(s, tick_ms, s.bonds.leave_cm);
    let smallest = map.smallest_side_cm();
    if least > smallest {
        let rule = format!(
            "with handoff margin and {} that makes {}, and the smallest region is {} wide",
            step_text(s),
            m(least),
            m(smallest)
        );
        err(errors, "bonds.leave", m(s.bonds.leave_cm), rule);
    }
    band_cm.max(least)
}

/// The farthest distance along an axis at which entities of the scene can be in range.
pub(super) fn reach_cm(s: &SceneSpec) -> i32 {
    let seen = match s.visibility {
        // At most two whole patches beyond an entity's own are in range: from the near edge of its
        // patch to the far edge of the second patch after it. Entities that see each other may be
        // farther apart by both margins.
        Visibility::Patches => {
            let reach = |layer| {
                let rule = s.patch_rule(layer);
                3 * rule.side_cm[0].max(rule.side_cm[1]) + 2 * rule.margin_cm
            };
            s.layers.iter().map(reach).max().unwrap_or(0)
        }
        Visibility::Circle { leave_cm, .. } => leave_cm,
        Visibility::All => 0,
    };
    let circles = s.kinds.iter().filter_map(|kind| kind.circle_cm);
    let circles = circles.map(|(_, leave_cm)| leave_cm).max().unwrap_or(0);
    seen.max(circles).max(watch_reach_cm(s)).max(bodies_reach_cm(s, s.moves.tile_cm))
}

fn is_power_of_two_times(land: i32, patch: i32) -> bool {
    patch > 0 && land % patch == 0 && (land / patch).count_ones() == 1
}

/// The legal patch side closest to `wanted`.
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

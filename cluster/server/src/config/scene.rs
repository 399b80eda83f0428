//! The `[[scene]]` sections: from keys with units to a [`SceneSpec`]. Errors of [`Scene::new`] are
//! reported in the terms of the file.

use purview::scene::movement::Climb;
use purview::scene::spec::{BondSpec, KindSpec, LayerSpec, MoveSpec, Moves, Rates, SpecError};
use purview::scene::{RangeSet, RegionId, Scene, SceneId, SceneSpec, Visibility};

use super::error::ConfigError;
use super::keys::{self, Key};
use super::read::{Section, cm, quantity_of, rate, text_of};
use super::tree::{Item, Node};
use super::units::Quantity::Length;
use super::updates;
use super::{kind_properties, kind_watch};

/// Most lands and most regions of a scene: a server builds that many at once.
const MOST_LANDS: i64 = 262_144;
const MOST_REGIONS: i64 = 4_096;

/// Default enter and leave radius of a circle.
const CIRCLE: (i32, i32) = (8_000, 8_500);

/// Reads one scene. Missing keys have their defaults.
pub(super) fn read(s: &mut Section<'_>, tick_ms: u32) -> SceneSpec {
    let d = super::default_scene();
    let land_cm = cm(s, &keys::LAND, d.land_cm);
    let (width_cm, depth_cm) = (cm(s, &keys::WIDTH, d.width_cm), cm(s, &keys::DEPTH, d.depth_cm));
    let (region_lands_x, region_lands_z) = region(s, (d.region_lands_x, d.region_lands_z));
    let layers = layers(s, land_cm);
    let kinds = kinds(s, &layers, d.kinds);
    let visibility = visibility(s);
    let (spawn_x_cm, spawn_z_cm) = spawn(s, (width_cm, depth_cm));
    let update_error = updates::update_error(s, d.update_error);
    let spec = SceneSpec {
        name: s.text(&keys::NAME, &d.name),
        width_cm,
        depth_cm,
        height_limit_cm: cm(s, &keys::HEIGHT_LIMIT, d.height_limit_cm),
        land_cm,
        region_lands_x,
        region_lands_z,
        layers,
        kinds,
        visibility,
        range: range(s, visibility, d.range),
        patch_margin_cm: patch_margin(s, visibility),
        view_cap: s.count(&keys::VIEW_CAP, d.view_cap as i64) as usize,
        view_margin_cm: cm(s, &keys::VIEW_MARGIN, d.view_margin_cm),
        bonds: bonds(s, d.bonds),
        rates: rates(s, tick_ms, update_error.is_some()),
        update_error,
        frame_budget_bytes: s.quantity(&keys::FRAME_BUDGET, d.frame_budget_bytes as i64) as usize,
        egress_bits_s: updates::egress(s, d.egress_bits_s),
        pace: updates::pace(s, d.pace),
        crowd: updates::crowd(s, d.crowd, tick_ms),
        handoff_margin_cm: cm(s, &keys::HANDOFF_MARGIN, d.handoff_margin_cm),
        top_speed_cm_s: s.quantity(&keys::TOP_SPEED, d.top_speed_cm_s.into()) as i32,
        moves: moves(s, d.moves, tick_ms),
        client_teleports: s.choice(&keys::TELEPORTS, usize::from(d.client_teleports)) == 1,
        band_cm: band(s),
        lines: s.count(&keys::LINES, d.lines.into()) as i32,
        line_capacity: s.count(&keys::LINE_CAPACITY, d.line_capacity.into()) as u32,
        plane_groups: s.count(&keys::PLANE_GROUPS, d.plane_groups.into()) as u16,
        spawn_x_cm,
        spawn_z_cm,
    };
    check(s, &spec, tick_ms);
    spec
}

fn band(s: &mut Section<'_>) -> i32 {
    match s.get(&keys::BAND).and_then(text_of) {
        Some("auto") => 0,
        _ => cm(s, &keys::BAND, 0),
    }
}

fn region(s: &mut Section<'_>, default: (i32, i32)) -> (i32, i32) {
    let Some(node) = s.get(&keys::REGION) else { return default };
    if let Item::Array(list) = &node.item
        && let [x, z] = &list[..]
        && let (Item::Integer(x), Item::Integer(z)) = (&x.item, &z.item)
        && (1..=1_000_000).contains(x)
        && (1..=1_000_000).contains(z)
    {
        return (*x as i32, *z as i32);
    }
    s.wrong("region", node, format!("must be {}: lands along x and z", keys::REGION.form.rule()));
    default
}

fn pair(s: &mut Section<'_>, key: &Key, default: (i32, i32)) -> (i32, i32) {
    let Some(node) = s.get(key) else { return default };
    let mut rule = format!("must be {}", key.form.rule());
    if let Item::Array(list) = &node.item
        && let [x, z] = &list[..]
    {
        let fits = |v: i64| i32::try_from(v).map_err(|_| "must be at most \"1000km\"".to_string());
        let read = |n| quantity_of(n, Length).and_then(fits);
        match (read(x), read(z)) {
            (Ok(x), Ok(z)) => return (x, z),
            (Err(e), _) | (_, Err(e)) => rule = e,
        }
    }
    s.wrong(key.name, node, rule);
    default
}

/// Where new players appear; a default on a map of another size is its middle.
fn spawn(s: &mut Section<'_>, (width_cm, depth_cm): (i32, i32)) -> (i32, i32) {
    let middle = (width_cm / 2, depth_cm / 2);
    let spawn = pair(s, &keys::SPAWN, middle);
    let is_resized = [&keys::WIDTH, &keys::DEPTH].into_iter().any(|key| s.is_set(key));
    if is_resized && !s.is_set(&keys::SPAWN) { middle } else { spawn }
}

/// A sixteenth of the land, or the nearest side that divides the land evenly.
fn default_patch(land_cm: i32) -> i32 {
    [16, 8, 4, 2].into_iter().find(|n| land_cm % n == 0).map_or(land_cm, |n| land_cm / n)
}

fn layers(s: &mut Section<'_>, land_cm: i32) -> Vec<LayerSpec> {
    let is_resized = s.is_set(&keys::LAND) && !s.is_set(&keys::PATCH);
    let patch_cm = match cm(s, &keys::PATCH, default_patch(land_cm)) {
        _ if is_resized => default_patch(land_cm),
        patch_cm => patch_cm,
    };
    let common = || vec![LayerSpec { name: "common".into(), patch_cm }];
    let patch = s.get(&keys::PATCH);
    let only_patch = s.is_set(&keys::PATCH) && !s.is_set(&keys::LAYER);
    let Some(list) = s.list("layer").filter(|_| !only_patch) else { return common() };
    if let Some(patch) = patch {
        s.conflict("patch", patch, "cannot be combined with `layer`; write one of the two");
    }
    let mut layers = Vec::new();
    for mut entry in list {
        let name = entry.text(&keys::NAME, "common");
        let patch_cm = cm(&mut entry, &keys::PATCH, default_patch(land_cm));
        layers.push(LayerSpec { name, patch_cm });
        s.close(entry);
    }
    if layers.is_empty() { common() } else { layers }
}

fn kinds(s: &mut Section<'_>, layers: &[LayerSpec], default: Vec<KindSpec>) -> Vec<KindSpec> {
    let Some(list) = s.list("kind") else { return default };
    let names: Vec<&str> = layers.iter().map(|l| l.name.as_str()).collect();
    let (mut kinds, mut watched) = (Vec::new(), Vec::new());
    for mut entry in list {
        let name = entry.text(&keys::NAME, "");
        let layer = match entry.get(&keys::LAYER) {
            None => 0,
            Some(wanted) => {
                names.iter().position(|n| Some(*n) == text_of(wanted)).unwrap_or_else(|| {
                    entry.conflict(
                        "layer",
                        wanted,
                        format!("must name one of the layers {names:?}"),
                    );
                    0
                })
            }
        };
        let speed_cm_s = entry.says(&keys::SPEED).then(|| entry.quantity(&keys::SPEED, 0) as i32);
        let properties = kind_properties::read(&mut entry);
        watched.push(kind_watch::read(&mut entry));
        let sights = sights(&mut entry);
        kinds.push(KindSpec { name, layer, speed_cm_s, properties, watch: None, sights });
        s.close(entry);
    }
    kind_watch::resolve(s, &mut kinds, watched);
    kinds
}

fn visibility(s: &mut Section<'_>) -> Visibility {
    let (enter_cm, leave_cm) = circle(s);
    let choice = s.choice(&keys::VISIBILITY, 0);
    if choice != 1 && !s.is_wrong("visibility") {
        for key in [&keys::ENTER, &keys::LEAVE] {
            only_with(s, key, "circle");
        }
    }
    match choice {
        0 => Visibility::Patches,
        1 => Visibility::Circle { enter_cm, leave_cm },
        _ => Visibility::All,
    }
}

/// The enter and leave radius of a circle. The default of one follows the other, if that is set.
fn circle(s: &mut Section<'_>) -> (i32, i32) {
    let (enter_cm, leave_cm) = (cm(s, &keys::ENTER, CIRCLE.0), cm(s, &keys::LEAVE, CIRCLE.1));
    let gap = CIRCLE.1 - CIRCLE.0;
    match (s.is_set(&keys::ENTER), s.is_set(&keys::LEAVE)) {
        (true, false) => (enter_cm, leave_cm.max(enter_cm.saturating_add(gap))),
        (false, true) => (enter_cm.min(leave_cm - gap).max(1), leave_cm),
        _ => (enter_cm, leave_cm),
    }
}

fn only_with(s: &mut Section<'_>, key: &Key, visibility: &str) {
    if let Some(node) = s.get(key) {
        s.conflict(key.name, node, format!("has an effect only with visibility = {visibility:?}"));
    }
}

/// `None`: the scene's own default.
fn patch_margin(s: &mut Section<'_>, visibility: Visibility) -> Option<i32> {
    if visibility != Visibility::Patches && !s.is_wrong("visibility") {
        only_with(s, &keys::PATCH_MARGIN, "patches");
    }
    match s.get(&keys::PATCH_MARGIN).map(text_of) {
        None | Some(Some("auto")) => None,
        Some(_) => Some(cm(s, &keys::PATCH_MARGIN, 0)),
    }
}

fn range(s: &mut Section<'_>, visibility: Visibility, default: RangeSet) -> RangeSet {
    if visibility != Visibility::Patches && !s.is_wrong("visibility") {
        only_with(s, &keys::RANGE, "patches");
    }
    let Some(node) = s.get(&keys::RANGE) else { return default };
    rings(node).unwrap_or_else(|| {
        s.wrong("range", node, format!("must be {}", keys::RANGE.form.rule()));
        default
    })
}

/// What clients may ask to see, beside the scene's range.
fn sights(kind: &mut Section<'_>) -> Vec<RangeSet> {
    let Some(node) = kind.get(&keys::SIGHTS) else { return Vec::new() };
    let sights = match &node.item {
        Item::Array(list) => list.iter().map(rings).collect(),
        _ => None,
    };
    sights.unwrap_or_else(|| {
        kind.wrong("sights", node, format!("must be {}", keys::SIGHTS.form.rule()));
        Vec::new()
    })
}

/// `"full"`, or a list of rings.
fn rings(node: &Node) -> Option<RangeSet> {
    match &node.item {
        Item::Array(list) => {
            list.iter().map(ring).try_fold(RangeSet::NONE, |all, ring| Some(all.or(ring?)))
        }
        _ => (text_of(node)? == "full").then_some(RangeSet::FULL),
    }
}

fn ring(node: &Node) -> Option<RangeSet> {
    match text_of(node)? {
        "near" => Some(RangeSet::NEAR),
        "middle" => Some(RangeSet::MIDDLE),
        "far" => Some(RangeSet::FAR),
        "full" => Some(RangeSet::FULL),
        _ => None,
    }
}

fn bonds(s: &mut Section<'_>, d: BondSpec) -> BondSpec {
    let mut section = s.section("bonds");
    let bonds = BondSpec {
        kinds: bond_kinds(&mut section, d.kinds),
        cap: section.count(&keys::BOND_CAP, d.cap as i64) as usize,
        enter_cm: cm(&mut section, &keys::BOND_ENTER, d.enter_cm),
        leave_cm: cm(&mut section, &keys::BOND_LEAVE, d.leave_cm),
        fight_ms: section.quantity(&keys::FIGHT, d.fight_ms.into()) as u32,
    };
    s.close(section);
    bonds
}

fn bond_kinds(s: &mut Section<'_>, default: Vec<String>) -> Vec<String> {
    let Some(node) = s.get(&keys::BOND_KINDS) else { return default };
    let names = match &node.item {
        Item::Array(list) => list.iter().map(|n| text_of(n).map(String::from)).collect(),
        _ => None,
    };
    names.unwrap_or_else(|| {
        s.wrong("kinds", node, format!("must be {}", keys::BOND_KINDS.form.rule()));
        default
    })
}

/// How moves are validated. A scene with a map uses the tiles of the map.
fn moves(s: &mut Section<'_>, d: MoveSpec, tick_ms: u32) -> MoveSpec {
    let default = usize::from(d.mode == Moves::Trusted);
    let mode = [Moves::Judged, Moves::Trusted][s.choice(&keys::MOVES, default)];
    let mapped = s.says(&keys::MAP);
    let mut section = s.section("movement");
    if mapped && let Some(tile) = section.get(&keys::MOVE_TILE) {
        section.conflict("tile", tile, "the scene has a map: set map.tile instead");
    }
    let mut ms = |key, default: u32| section.quantity(key, default.into()) as u32;
    let (command_ms, grace_ms) =
        (ms(&keys::COMMAND, d.command_ms), ms(&keys::GRACE, d.grace_ms.max(tick_ms)));
    let (leash_ms, allowance_ms) =
        (ms(&keys::LEASH, d.leash_ms), ms(&keys::ALLOWANCE, d.allowance_ms));
    let tile_cm = cm(&mut section, &keys::MOVE_TILE, d.tile_cm);
    let climb = climb(&mut section);
    s.close(section);
    MoveSpec { mode, tile_cm, command_ms, grace_ms, leash_ms, allowance_ms, climb }
}

fn climb(s: &mut Section<'_>) -> Option<Climb> {
    let says = s.says(&keys::CLIMB_UP);
    let up_cm = cm(s, &keys::CLIMB_UP, 0);
    let down = s.get(&keys::CLIMB_DOWN);
    let down_cm = cm(s, &keys::CLIMB_DOWN, up_cm);
    if let Some(down) = down.filter(|_| !says) {
        s.conflict("climb_down", down, "has an effect only with climb_up");
    }
    says.then_some(Climb { up_cm, down_cm })
}

/// Near entities are told every half second, or, by the rates alone, in every tick.
const NEAR_MS: u32 = 500;

fn rates(s: &mut Section<'_>, tick_ms: u32, by_error: bool) -> Rates {
    let mut section = s.section("rates");
    let ticks = |ms: u32| (ms / tick_ms).max(1);
    let rates = Rates {
        near: rate(&mut section, &keys::NEAR, tick_ms, if by_error { ticks(NEAR_MS) } else { 1 }),
        middle: rate(&mut section, &keys::MIDDLE, tick_ms, ticks(1_000)),
        far: rate(&mut section, &keys::FAR, tick_ms, ticks(4_000)),
    };
    s.close(section);
    rates
}

/// Reports the scene rules that the spec breaks, except those that follow from a problem reported
/// already.
fn check(s: &mut Section<'_>, spec: &SceneSpec, tick_ms: u32) {
    let sizes_wrong = ["width", "depth", "land", "region"].iter().any(|k| s.is_wrong(k));
    if sizes_wrong || !check_counts(s, spec) {
        return;
    }
    let all_read = s.problems.is_empty();
    let Err(errors) = Scene::new(SceneId(0), spec.clone(), tick_ms, RegionId(0)) else { return };
    for error in errors {
        let key = key_of(s, &error);
        let follows = matches!(error.key, "band" | "region side" | "regions") && !all_read;
        if !follows && !s.is_wrong(key) {
            let problem = ConfigError {
                key: s.path_of(key),
                found: Some(error.found),
                rule: error.rule,
                origin: s.origin_of(key),
            };
            s.problems.push(problem);
        }
    }
}

/// Keeps the numbers of lands and regions small enough to build.
fn check_counts(s: &mut Section<'_>, spec: &SceneSpec) -> bool {
    let land = i64::from(spec.land_cm);
    let lands = |side: i32| i64::from(side) / land;
    let regions = |side: i32, per: i32| (lands(side) + i64::from(per) - 1) / i64::from(per);
    let n_lands = lands(spec.width_cm) * lands(spec.depth_cm);
    let n_regions =
        regions(spec.width_cm, spec.region_lands_x) * regions(spec.depth_cm, spec.region_lands_z);
    let widest = keys::KM_1000 / land;
    let region = i64::from(spec.region_lands_x.max(spec.region_lands_z));
    for (key, found, what, most) in [
        ("land", n_lands, "lands on the map: choose larger lands; at most", MOST_LANDS),
        ("region", n_regions, "regions on the map: choose larger regions; at most", MOST_REGIONS),
        ("region", region, "lands along a side: more than any map holds; at most", widest),
    ] {
        if found > most {
            let problem = ConfigError {
                key: s.path_of(key),
                found: None,
                rule: format!("makes {found} {what} {most}"),
                origin: s.origin_of(key),
            };
            s.problems.push(problem);
            return false;
        }
    }
    true
}

/// The key of the file that belongs to a scene rule.
fn key_of(s: &Section<'_>, error: &SpecError) -> &'static str {
    match error.key {
        "region_lands_x" | "region_lands_z" | "region side" | "regions" => "region",
        "spawn_x" | "spawn_z" => "spawn",
        "kinds" | "kinds.layer" | "kinds.speed" | "kinds.properties" | "kinds.sights" => "kind",
        "layers" => "layer",
        "patch" if s.says(&keys::LAYER) => "layer",
        key => key,
    }
}

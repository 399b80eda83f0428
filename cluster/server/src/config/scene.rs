//! The keys of `[[scene]]`: with units in the file, a [`SceneSpec`] here. Errors of [`Scene::new`] are
//! reported in the terms of the file.

use purview::scene::layout::lands_along;
use purview::scene::messages::MAX_HOLD_MS;
use purview::scene::movement::Climb;
use purview::scene::spec::{BondSpec, LayerSpec, MoveSpec, Moves, PaceSpec, Rates, SpecError};
use purview::scene::{RegionId, Scene, SceneId, SceneSpec};

use super::error::ConfigError;
use super::form::{A_LENGTH, Form, KM_1000, LENGTH, LENGTH_OR_0, TEXT};
use super::keys::{HOUR, Io, Keys, NAME, keys};
use super::page::quoted;
use super::read::{
    ANY_LENGTH, SIDES, Section, quantity_of, quantity_within, sides, sides_text, text_of,
};
use super::tree::{Item, Node};
use super::units::Quantity::{self, Length, Size, Speed};
use super::{contents, kinds, pool, portals, updates, visibility};

/// Most lands and most regions of a scene: a server builds that many at once.
const MOST_LANDS: i64 = 262_144;
const MOST_REGIONS: i64 = 4_096;
/// Most lands along a side of a region.
const MOST_LANDS_ALONG: i64 = 1_000_000;

pub(super) fn keys(k: &mut Keys<'_, '_, SceneSpec>, tick_ms: u32) {
    keys! { k;
        "name" text(NAME) name: "The scene's name, unique in a server.";
        "width" length(100, KM_1000) width_cm: "Extent along x; it may cut the last lands.";
        "depth" length(100, KM_1000) depth_cm: "Extent along z; it may cut the last lands.";
        "height_limit" length(100, KM_1000) height_limit_cm:
            "Positions lie at most so far above and below height 0.";
        "land" length(100, KM_1000) land_cm: "Side of a land, a power of two times the patch.";
    }
    let rule = "two whole numbers from 1, for example [2, 2]";
    let form = Form::Few(2, 2, &Form::Whole(1, MOST_LANDS_ALONG));
    let read =
        |node: &Node| lands(node).ok_or_else(|| format!("must be {rule}: lands along x and z"));
    let says = "Size of a region in lands, along x and z.";
    k.pair(("region", says), ((rule, form), read, |x, z| format!("[{x}, {z}]")), |s| {
        (&mut s.region_lands_x, &mut s.region_lands_z)
    });
    layers(k);
    kinds::keys(k);
    visibility::keys(k);
    let off = |node: &Node| match text_of(node) {
        Some("off") => Ok(None),
        _ => quantity_within(node, Length, LENGTH).map(|cm| Some(cm as i32)),
    };
    let height_text =
        |cm: &Option<i32>| quoted(&cm.map_or("off".into(), |cm| Length.text(cm.into())));
    keys! { k;
        "height" other(("a length, or \"off\"", Form::Or("off", &A_LENGTH)), off, height_text) height_cm:
            "How far apart in height entities may be to come into view of each other; in view they may be an eighth more. \
             \"off\" = heights do not count.";
        "view_cap" count(1, 1_000) view_cap: "Most players in one player's view list.";
        "view_margin" length(0, 100_000) view_margin_cm:
            "How much nearer a new player must be to replace a player in a view list.";
        "bonds" section(bonds) bonds: "Bonds between players.";
    }
    updates::update_error(k);
    if k.reads() {
        k.value.rates = default_rates(tick_ms, k.value.update_error.is_some());
    }
    k.default.rates = default_rates(tick_ms, true);
    keys! { k;
        "rates" section(|k| rates(k, tick_ms)) rates: "How often clients are told of entities.";
        "frame_budget" quantity(Size, 64, 1 << 20) frame_budget_bytes:
            "Most bytes of moves in one frame; the rest waits for the next tick.";
        "egress" other(updates::EGRESS, updates::read_egress, updates::egress_text) egress_bits_s:
            "Most that one client is sent, or \"off\": rates stretch, those of far entities first.";
        "pace" section(pace) pace: "What one client may make others be told in a second.";
    }
    updates::crowd(k, tick_ms);
    keys! { k;
        "handoff_margin" length(0, KM_1000) handoff_margin_cm:
            "How far past a border an entity goes before its handoff.";
        "top_speed" quantity(Speed, 1, 10_000_000) top_speed_cm_s:
            "Top speed of all entities; no grant exceeds it.";
    }
    moves(k, tick_ms);
    places(k);
    pool::keys(k);
    contents::keys(k);
    portals::keys(k);
    k.check(|s, spec| check(s, spec, tick_ms));
}

fn lands(node: &Node) -> Option<(i32, i32)> {
    let Item::Array(list) = &node.item else { return None };
    let [Node { item: Item::Integer(x), .. }, Node { item: Item::Integer(z), .. }] = &list[..]
    else {
        return None;
    };
    let fits =
        |n: i64| i32::try_from(n).ok().filter(|n| (1..=MOST_LANDS_ALONG).contains(&i64::from(*n)));
    Some((fits(*x)?, fits(*z)?))
}

/// A sixteenth of the land, or the nearest side that divides the land evenly.
fn default_patch(land_cm: i32) -> i32 {
    [16, 8, 4, 2].into_iter().find(|n| land_cm % n == 0).map_or(land_cm, |n| land_cm / n)
}

/// `patch`, or a list of layers: the default of one gives way to a setting of the other.
fn layers(k: &mut Keys<'_, '_, SceneSpec>) {
    let land_cm = k.value.land_cm;
    let new = LayerSpec::square("common", default_patch(land_cm));
    let is_one = matches!(&k.value.layers[..], [only] if only.name == "common");
    if k.reads() {
        k.value.layers = vec![new.clone()];
    }
    let says = "Side of a patch, or its sides along x and z, where one layer is enough. Default: a sixteenth of the land.";
    let resized = k.is_set("land") && !k.is_set("patch");
    if k.reads() || is_one {
        k.other(("patch", says), (SIDES, sides, sides_text), |s| &mut s.layers[0].patch_cm);
    }
    if resized {
        k.value.layers = vec![new.clone()];
    }
    let only_patch = k.is_set("patch") && !k.is_set("layer");
    let mut lists = false;
    k.check(|s, _| {
        let (patch, list) = (s.get("patch"), s.get("layer").filter(|_| !only_patch));
        lists = list.is_some_and(|node| node.item != Item::Array(Vec::new()));
        if let (Some(patch), true) = (patch, lists) {
            s.conflict("patch", patch, "cannot be combined with `layer`; write one of the two");
        }
    });
    if lists || k.describes() || k.prints() && !is_one {
        keys! { k;
            "layer" sections(new, layer) layers:
                "Patch grids; players use the first. They replace `patch`.";
        }
    }
}

fn layer(k: &mut Keys<'_, '_, LayerSpec>) {
    keys! { k;
        "name" text(NAME) name: "The layer's name.";
        "patch" other(SIDES, sides, sides_text) patch_cm:
            "Side of a patch, or its sides along x and z.";
    }
}

fn bonds(k: &mut Keys<'_, '_, BondSpec>) {
    let rule = "a list of names, for example [\"couple\", \"party\", \"fight\"]";
    keys! { k;
        "kinds" list((rule, Form::List(&TEXT)), |name| Some(name.to_owned()), String::clone) kinds:
            "Kinds of bonds, strongest first; bonded players come first in each other's view lists. An action aimed at \
             another player makes a bond of the kind \"fight\".";
        "cap" count(0, 1_000) cap:
            "Most bonded players with priority in a view list: the strongest and nearest ones.";
        "enter" length(0, KM_1000) enter_cm:
            "Bonded players nearer than this come into range, whatever the scene's own range; 0 = the scene's range.";
        "leave" length(0, KM_1000) leave_cm:
            "Bonded players farther than this go out of range; greater than `enter`, or 0 with it.";
        "fight" time(0, 24 * HOUR) fight_ms:
            "How long a fight lasts after the last action aimed at the other player; 0 = actions make no bonds.";
        "fights" choice(&[(true, "clients"), (false, "logic")]) client_fights:
            "Whose aims make fights: also those of clients, or only those of game logic.";
    }
}

/// Near entities are told every half second, or, by the rates alone, in every tick.
fn default_rates(tick_ms: u32, by_error: bool) -> Rates {
    let ticks = |ms: u32| (ms / tick_ms).max(1);
    let near = if by_error { ticks(500) } else { 1 };
    Rates { near, middle: ticks(1_000), far: ticks(4_000) }
}

fn rates(k: &mut Keys<'_, '_, Rates>, tick_ms: u32) {
    keys! { k;
        "near" ticks(tick_ms) near:
            "Time between two updates of an entity in the viewer's own patch; whole ticks. Default: \"500ms\", or every \
             tick without update_error.";
        "middle" ticks(tick_ms) middle: "The same in the first ring around it.";
        "far" ticks(tick_ms) far: "The same in the second ring around it.";
    }
}

fn pace(k: &mut Keys<'_, '_, PaceSpec>) {
    keys! { k;
        "acts" count(1, 1_000) acts_per_s: "Actions of a client in a second.";
        "bytes" quantity(Size, 1_024, 1 << 20) bytes_per_s:
            "Bytes of a client's actions and of the properties that it sets, in a second.";
    }
}

/// How moves are validated. A scene with a map uses the tiles of the map.
fn moves(k: &mut Keys<'_, '_, SceneSpec>, tick_ms: u32) {
    k.value.moves.grace_ms = k.value.moves.grace_ms.max(tick_ms);
    let mut mapped = false;
    k.check(|s, _| mapped = s.says("map"));
    keys! { k;
        "moves" choice(&[(Moves::Judged, "judged"), (Moves::Trusted, "trusted")]) moves.mode:
            "How clients move: \"judged\": by paths and vectors that the server validates; \"trusted\": by positions that \
             the server accepts, as in recordings.";
        "movement" section(|k| movement(k, mapped)) moves: "Limits for the validation of moves.";
    }
}

fn movement(k: &mut Keys<'_, '_, MoveSpec>, mapped: bool) {
    k.check(|s, _| {
        if mapped && let Some(tile) = s.get("tile") {
            s.conflict("tile", tile, "the scene has a map: set map.tile instead");
        }
        if let Some(down) = s.get("climb_down").filter(|_| !s.says("climb_up")) {
            s.conflict("climb_down", down, "has an effect only with climb_up");
        }
    });
    if !k.prints() || k.value.tile_cm != k.default.tile_cm {
        let says = "Side of a tile in a scene without a map.";
        k.length(("tile", says), (1, 100_000), |m| &mut m.tile_cm);
    }
    keys! { k;
        "command" time(50, 10_000) command_ms:
            "A walking client sends a move command at least this often.";
        "grace" time(10, 10_000) grace_ms:
            "How much longer an entity walks on without a move command; at least one tick.";
        "leash" time(50, 30_000) leash_ms:
            "A client stops when no move command of this age was acknowledged; at least `command`.";
        "allowance" time(51, 60_000) allowance_ms:
            "How much more walking a client may claim than time has passed; greater than `leash`.";
    }
    climb(k);
}

fn climb(k: &mut Keys<'_, '_, MoveSpec>) {
    let up = (
        "climb_up",
        "How much higher the next tile may be; without it heights do not limit walking.",
    );
    let down = ("climb_down", "How much lower the next tile may be; default: `climb_up`.");
    let most = 100_000;
    let cm = |node: &Node| quantity_within(node, Length, (0, most)).map(|cm| cm as i32);
    match k.io {
        Io::Read(s, _) => {
            let (up_cm, down_cm) = (s.value(up.0, cm), s.value(down.0, cm));
            k.value.climb = s.says(up.0).then(|| {
                let up_cm = up_cm.unwrap_or(0);
                Climb { up_cm, down_cm: down_cm.unwrap_or(up_cm) }
            });
        }
        Io::Print(page) => {
            let text = |cm: i32| quoted(&Length.text(cm.into()));
            let climb = k.value.climb;
            for ((name, says), cm) in
                [(up, climb.map(|c| c.up_cm)), (down, climb.map(|c| c.down_cm))]
            {
                page.optional(name, ("a length", says), cm.map(text), ("\"50cm\"", "none"));
            }
        }
        Io::Describe(description) => {
            for (name, says) in [up, down] {
                description.key(name, (("a length", Form::Of(Length, 0, most)), says), "");
            }
        }
    }
}

/// Where players appear, and how planes and borders are laid out.
fn places(k: &mut Keys<'_, '_, SceneSpec>) {
    let band = |node: &Node| match text_of(node) {
        Some("auto") => Ok(0),
        _ => quantity_within(node, Length, (0, KM_1000)).map(|cm| cm as i32),
    };
    let band_text =
        |cm: &i32| if *cm == 0 { quoted("auto") } else { quoted(&Length.text((*cm).into())) };
    keys! { k;
        "teleports" choice(&[(false, "logic"), (true, "clients")]) client_teleports:
            "What decides where players appear and teleport: only the server's logic, or clients as well, whose teleports \
             no rule of movement judges.";
        "linger" time(0, MAX_HOLD_MS.into()) linger_ms:
            "How long a player stays in the scene whose client leaves, breaks off or logs in anew; a new login takes it over. \
             \"0ms\": it leaves at once, or when gateway.grace_period is over.";
        "band" other(("a length, or \"auto\"", Form::Or("auto", &LENGTH_OR_0)), band, band_text) band_cm:
            "Width of the band that a region mirrors to its neighbours; \"auto\" = the narrowest legal width.";
        "lines" count(1, 1_000_000) lines:
            "Most planes (lines) over which players without a chosen plane are spread: another one opens when the open ones \
             are 80 % full.";
        "lines_open" count(1, 1_000_000) lines_open: "Lines that are always open.";
        "lines_yield" flag() lines_yield:
            "Whether players leave a line of too many with their next teleport or login.";
        "line_capacity" count(1, 1_000_000) line_capacity: "Most players in a line.";
        "plane_groups" count(1, 256) plane_groups:
            "Groups of planes with regions of their own; the groups may run on different nodes.";
    }
    let resized = k.is_set("width") || k.is_set("depth");
    let middle = (k.value.width_cm / 2, k.value.depth_cm / 2);
    if k.reads() {
        (k.value.spawn_x_cm, k.value.spawn_z_cm) = middle;
    }
    let rule = "two lengths, for example [\"10m\", \"20m\"]";
    let text = |x: i32, z: i32| {
        format!("[{}, {}]", quoted(&Length.text(x.into())), quoted(&Length.text(z.into())))
    };
    let says = "Where a player without a position of its own appears, x and z. Default: the middle of the map.";
    let form = Form::Few(2, 2, &ANY_LENGTH);
    k.pair(("spawn", says), ((rule, form), |node| spawn(node, rule), text), |s| {
        (&mut s.spawn_x_cm, &mut s.spawn_z_cm)
    });
    if resized && !k.is_set("spawn") {
        (k.value.spawn_x_cm, k.value.spawn_z_cm) = middle;
    }
}

fn spawn(node: &Node, rule: &str) -> Result<(i32, i32), String> {
    let Item::Array(list) = &node.item else { return Err(format!("must be {rule}")) };
    let [x, z] = &list[..] else { return Err(format!("must be {rule}")) };
    let fits = |v: i64| i32::try_from(v).map_err(|_| "must be at most \"1000km\"".to_string());
    let read = |n| quantity_of(n, Quantity::Length).and_then(fits);
    Ok((read(x)?, read(z)?))
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
    let lands = |side: i32| i64::from(lands_along(side, spec.land_cm));
    let regions = |side: i32, per: i32| (lands(side) + i64::from(per) - 1) / i64::from(per);
    let n_lands = lands(spec.width_cm) * lands(spec.depth_cm);
    let n_regions =
        regions(spec.width_cm, spec.region_lands_x) * regions(spec.depth_cm, spec.region_lands_z);
    let widest = KM_1000 / i64::from(spec.land_cm);
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
        "kinds" | "kinds.layer" | "kinds.speed" | "kinds.properties" | "kinds.sights"
        | "kinds.circle" | "kinds.blocks" | "kinds.size" => "kind",
        "layers" => "layer",
        "contents" => "entity",
        "portals" => "portal",
        "pool.nodes" => "nodes",
        "pool.regions" => "regions",
        "patch" if s.says("layer") => "layer",
        key => key,
    }
}

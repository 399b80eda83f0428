//! The rules of portals.

use rustc_hash::FxHashSet;

use super::{SceneSpec, SpecError};
use crate::scene::names::is_name;
use crate::scene::portals::{MAX_PORTALS, ToPlane};
use crate::scene::spec_error::{NAME_RULE, err, m};
use crate::scene::{Plane, Pos, Rect};

/// Most lands that the areas of all portals touch: each is an entry of the index of portals.
const MAX_PORTAL_LANDS: u64 = 1_000_000;

pub(super) fn check_portals(spec: &SceneSpec, tick_ms: u32, errors: &mut Vec<SpecError>) {
    if spec.portals.len() > MAX_PORTALS {
        let rule = format!("a scene has at most {MAX_PORTALS} portals");
        return err(errors, "portals", format!("{} portals", spec.portals.len()), rule);
    }
    let map = Rect { x0: 0, z0: 0, x1: spec.width_cm, z1: spec.depth_cm };
    let step = i64::from(spec.top_speed_cm_s) * i64::from(tick_ms) / 1_000;
    let mut known = FxHashSet::default();
    let mut lands = 0_u64;
    for portal in &spec.portals {
        let name = format!("{:?}", portal.name);
        if !is_name(&portal.name, 64) {
            err(errors, "portals", format!("name {name}"), NAME_RULE.into());
        }
        if !known.insert(&portal.name) {
            let rule = "another portal has this name: choose names that differ".into();
            err(errors, "portals", format!("name {name}"), rule);
        }
        let Rect { x0, z0, x1, z1 } = portal.area;
        let inside = x0 >= 0 && z0 >= 0 && x1 <= map.x1 && z1 <= map.z1;
        lands = lands_of(portal.area, spec.land_cm).saturating_add(lands);
        let side = i64::from(x1.saturating_sub(x0).min(z1.saturating_sub(z0)));
        if !inside || side <= step {
            let (width, depth, step) = (m(map.x1), m(map.z1), m(step as i32));
            let rule = format!(
                "must lie on the map of {width} x {depth}, with sides above the {step} of a tick at top speed"
            );
            let found = format!("{}, {} to {}, {} of {name}", m(x0), m(z0), m(x1), m(z1));
            err(errors, "portals", found, rule);
        }
        let pos = portal.to.at.flat();
        let Pos { x, y, z } = pos;
        let limit = spec.height_limit_cm.unsigned_abs();
        let is_here = portal.to.scene.as_ref().is_none_or(|scene| *scene == spec.name);
        let leads_out = !map.contains(pos) || y.unsigned_abs() > limit;
        if (is_here && leads_out) || portal.to.plane == ToPlane::Of(Plane::LIMBO) {
            let found = format!("to {}, {}, {} of {name}", m(x), m(z), m(y));
            err(errors, "portals", found, "must lead to a place of the scene".into());
        }
    }
    if lands > MAX_PORTAL_LANDS {
        let rule = format!("may touch {MAX_PORTAL_LANDS} lands in all: make areas smaller");
        err(errors, "portals", format!("areas on {lands} lands"), rule);
    }
}

/// How many lands an area touches at most.
fn lands_of(area: Rect, land_cm: i32) -> u64 {
    let along = |from: i32, to: i32| {
        (i64::from(to) - i64::from(from)).max(0) as u64 / land_cm.max(1) as u64 + 2
    };
    along(area.x0, area.x1).saturating_mul(along(area.z0, area.z1))
}

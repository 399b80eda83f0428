//! How a scene's clients move: the configured figures, and their check.
//!
//! [`Scene::new`](super::Scene::new) calls the check and derives the movement [`Rules`] from the
//! figures.

use serde::{Deserialize, Serialize};

use super::{SceneSpec, SpecError};
use crate::scene::Rect;
use crate::scene::movement::{Climb, MAX_TILE_CM, Rules};
use crate::scene::spec_error::{err, m};

/// How clients state their movement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Moves {
    /// By positions: the server takes any position within the scene. For recordings, and for
    /// clients under the team's own control.
    #[default]
    Trusted,
    /// By move commands (paths and vectors): the server judges them and decides where every entity
    /// is.
    Judged,
}

/// How clients move. Lengths are in centimetres, times in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveSpec {
    /// How clients state their movement. The other fields apply only if moves are judged.
    pub mode: Moves,
    /// Side of a tile if the scene has no map; 1 cm to 1 km.
    pub tile_cm: i32,
    /// A walking client sends a command at least this often; 50 ms to 10 s.
    pub command_ms: u32,
    /// How long beyond that an entity walks on without a command; one tick to 10 s.
    pub grace_ms: u32,
    /// A client stops after this time without an acknowledgement; at least `command_ms`, at most 30
    /// s.
    pub leash_ms: u32,
    /// How much more walking a client may claim than time has passed; more than `leash_ms`, at most
    /// a minute.
    pub allowance_ms: u32,
    /// How much higher or lower the next tile may lie; `None`: heights block no move.
    pub climb: Option<Climb>,
}

impl Default for MoveSpec {
    fn default() -> Self {
        let usual = Rules::within(Rect { x0: 0, z0: 0, x1: 1, z1: 1 });
        MoveSpec {
            mode: Moves::Trusted,
            tile_cm: 100,
            command_ms: usual.command_ms,
            grace_ms: usual.grace_ms,
            leash_ms: usual.leash_ms,
            allowance_ms: usual.allowance_ms,
            climb: usual.climb,
        }
    }
}

impl MoveSpec {
    /// The movement rules within `bounds`.
    pub(super) fn rules(&self, bounds: Rect, height_limit_cm: i32) -> Rules {
        let MoveSpec { command_ms, grace_ms, leash_ms, allowance_ms, climb, .. } = *self;
        let height_limit_cm = height_limit_cm.unsigned_abs();
        Rules { bounds, height_limit_cm, command_ms, grace_ms, leash_ms, allowance_ms, climb }
    }
}

pub(super) fn check_moves(s: &SceneSpec, tick_ms: u32, errors: &mut Vec<SpecError>) {
    let top = s.top_speed_cm_s;
    for kind in &s.kinds {
        if let Some(speed) = kind.speed_cm_s.filter(|v| !(0..=top).contains(v)) {
            let found = format!("{}/s (kind {:?})", m(speed), kind.name);
            let rule = format!("must lie between 0 m/s and the scene's top speed of {}/s", m(top));
            err(errors, "kinds.speed", found, rule);
        }
    }
    let v = &s.moves;
    if v.mode == Moves::Trusted {
        return;
    }
    if !(1..=MAX_TILE_CM).contains(&v.tile_cm) {
        err(errors, "movement.tile", m(v.tile_cm), "must lie between 1 cm and 1 km".into());
    }
    let mut time = |key, ms: u32, least: u32, most: u32, why: &str| {
        if !(least..=most).contains(&ms) {
            let rule = format!("must lie between {least} ms{why} and {most} ms");
            err(errors, key, format!("{ms} ms"), rule);
        }
    };
    time("movement.command", v.command_ms, 50, 10_000, "");
    time("movement.grace", v.grace_ms, tick_ms, 10_000, ", a tick,");
    let least = v.command_ms.clamp(50, 10_000);
    time("movement.leash", v.leash_ms, least, 30_000, ", the interval of commands,");
    let least = v.leash_ms.min(30_000) + 1;
    time("movement.allowance", v.allowance_ms, least, 60_000, ", more than the leash,");
    if let Some(Climb { up_cm, down_cm }) = v.climb {
        for (key, cm) in [("movement.climb_up", up_cm), ("movement.climb_down", down_cm)] {
            if !(0..=100_000).contains(&cm) {
                err(errors, key, m(cm), "must lie between 0 m and 1 km".into());
            }
        }
    }
}

//! What a kind of entity watches: which kinds wake its logic, and how near they must come.

use serde::{Deserialize, Serialize};

use super::{SceneSpec, SpecError};
use crate::scene::spec_error::err;

/// Which entities are sighted, and how near they must be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchSpec {
    /// The kinds that are watched, as indices of [`SceneSpec::kinds`].
    pub kinds: Vec<u8>,
    /// An entity is sighted at this distance on the ground and less, centimetres; above 0.
    pub enter_cm: i32,
    /// It is lost beyond this distance, centimetres; at least `enter_cm`.
    pub leave_cm: i32,
}

impl WatchSpec {
    /// Whether the radii are in order.
    pub fn is_ordered(&self) -> bool {
        0 < self.enter_cm && self.enter_cm <= self.leave_cm
    }
}

/// The longest leave radius of a scene's kinds, centimetres; 0: none watches.
pub(in crate::scene) fn watch_reach_cm(spec: &SceneSpec) -> i32 {
    spec.kinds.iter().filter_map(|kind| Some(kind.watch.as_ref()?.leave_cm)).max().unwrap_or(0)
}

/// Checks what kinds watch.
pub(super) fn check_watches(spec: &SceneSpec, errors: &mut Vec<SpecError>) {
    for kind in &spec.kinds {
        let Some(watch) = &kind.watch else { continue };
        if !watch.is_ordered() {
            let found = format!(
                "enter {} cm, leave {} cm (kind {:?})",
                watch.enter_cm, watch.leave_cm, kind.name
            );
            let rule = "enter must be above 0 and at most leave".into();
            err(errors, "kinds.watch", found, rule);
        }
        let most = spec.kinds.len();
        if let Some(unknown) = watch.kinds.iter().find(|k| usize::from(**k) >= most) {
            let rule = format!("must be one of the scene's {most} kinds");
            err(errors, "kinds.watch", format!("kind {unknown} (kind {:?})", kind.name), rule);
        }
        if watch.kinds.is_empty() {
            let rule = "must name at least one kind".into();
            err(errors, "kinds.watch", format!("no kinds (kind {:?})", kind.name), rule);
        }
    }
}

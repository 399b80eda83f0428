//! What a kind of entity watches: which kinds wake its logic, and how near those of each must come.

use serde::{Deserialize, Serialize};

use super::{SceneSpec, SpecError};
use crate::scene::spec_error::err;

/// A rule of a watch: which kinds an entity sights, and how near their entities must be.
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
    spec.kinds.iter().flat_map(|kind| &kind.watch).map(|watch| watch.leave_cm).max().unwrap_or(0)
}

/// A kind that several rules name.
pub(in crate::scene) fn watched_twice(rules: &[WatchSpec]) -> Option<u8> {
    let mut known = [false; 256];
    let mut kinds = rules.iter().flat_map(|rule| &rule.kinds).copied();
    kinds.find(|kind| std::mem::replace(&mut known[usize::from(*kind)], true))
}

/// Checks what kinds watch.
pub(super) fn check_watches(spec: &SceneSpec, errors: &mut Vec<SpecError>) {
    for kind in &spec.kinds {
        let mut wrong = |found: String, rule: &str| {
            err(errors, "kinds.watch", format!("{found} (kind {:?})", kind.name), rule.into());
        };
        for watch in &kind.watch {
            if !watch.is_ordered() {
                let found = format!("enter {} cm, leave {} cm", watch.enter_cm, watch.leave_cm);
                wrong(found, "enter must be above 0 and at most leave");
            }
            let most = spec.kinds.len();
            if let Some(unknown) = watch.kinds.iter().find(|k| usize::from(**k) >= most) {
                wrong(
                    format!("kind {unknown}"),
                    &format!("must be one of the scene's {most} kinds"),
                );
            }
            if watch.kinds.is_empty() {
                wrong("no kinds".into(), "must name at least one kind");
            }
        }
        if let Some(twice) = watched_twice(&kind.watch) {
            wrong(format!("kind {twice} twice"), "must name each kind once");
        }
    }
}

//! How much clients may make a scene tell others.

use serde::{Deserialize, Serialize};

use super::SceneSpec;
use crate::scene::spec_error::{SpecError, err};

/// Most bytes of an action's payload.
pub const MAX_ACTION_BYTES: usize = 1_024;

/// What one client may make others be told in a second, on the average of three seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaceSpec {
    /// Actions.
    pub acts_per_s: u32,
    /// Bytes of actions and of properties that the client sets; at least those of one action.
    pub bytes_per_s: u32,
}

impl Default for PaceSpec {
    /// 20 actions, 4 KiB.
    fn default() -> Self {
        PaceSpec { acts_per_s: 20, bytes_per_s: 4_096 }
    }
}

pub(super) fn check_pace(s: &SceneSpec, errors: &mut Vec<SpecError>) {
    let PaceSpec { acts_per_s, bytes_per_s } = s.pace;
    if !(1..=1_000).contains(&acts_per_s) {
        err(errors, "pace.acts", acts_per_s, "must lie between 1 and 1000 per second".into());
    }
    let least = MAX_ACTION_BYTES as u32;
    if bytes_per_s < least {
        let rule = format!("must be at least {least} B, which is one action");
        err(errors, "pace.bytes", format!("{bytes_per_s} B"), rule);
    }
}

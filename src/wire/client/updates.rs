//! How wrong a client may show entities, in a scene whose clients extrapolate.

use serde::{Deserialize, Serialize};

use crate::scene::Scene;

/// When a client is told of a changed entity before the rate of its ring says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateRules {
    /// Milliseconds per tick.
    pub tick_ms: u32,
    /// The tolerance for near entities, centimetres.
    pub error_min_cm: i32,
    /// The tolerance as a share of the distance to the player, thousandths. The greater of the two
    /// applies.
    pub error_share: u32,
}

impl UpdateRules {
    /// The rules of a scene; `None` if its clients do not extrapolate.
    pub fn of(scene: &Scene) -> Option<UpdateRules> {
        scene.spec.update_error_in_force().map(|rule| UpdateRules {
            tick_ms: scene.tick_ms,
            error_min_cm: rule.min_cm,
            error_share: rule.share_permille,
        })
    }
}

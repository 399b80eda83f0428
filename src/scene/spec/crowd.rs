//! The crowd tier of a scene: the players beyond a viewer's list, as dots.

use serde::{Deserialize, Serialize};

use super::SceneSpec;
use crate::scene::spec_error::{SpecError, err};

/// What clients are told of the crowd around them, if they ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrowdSpec {
    /// Most players in the crowd, the nearest ones, 1 to 1000.
    pub max: u32,
    /// Ticks between two tellings, 1 to 10,000.
    pub interval: u32,
}

impl Default for CrowdSpec {
    /// 500 players, every ten ticks.
    fn default() -> Self {
        CrowdSpec { max: 500, interval: 10 }
    }
}

/// Least budget of a client, bits per second: its frames have room for something beside their heads.
const EGRESS_MIN: u32 = 4_000;

pub(super) fn check_load(s: &SceneSpec, errors: &mut Vec<SpecError>) {
    if let Some(CrowdSpec { max, interval }) = s.crowd {
        if !(1..=1_000).contains(&max) {
            err(errors, "crowd.max", max, "must lie between 1 and 1000".into());
        }
        if !(1..=10_000).contains(&interval) {
            let rule = "must lie between 1 and 10,000 ticks".into();
            err(errors, "crowd.every", format!("{interval} ticks"), rule);
        }
    }
    if s.egress_bits_s > 0 && s.egress_bits_s < EGRESS_MIN {
        let found = format!("{} bit/s", s.egress_bits_s);
        err(
            errors,
            "egress",
            found,
            format!("must be at least {EGRESS_MIN} bit/s, or 0: no limit"),
        );
    }
}

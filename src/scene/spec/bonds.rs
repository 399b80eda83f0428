//! The bonds of a scene: kinds, limits and radii, and their check.
//!
//! [`Scene::new`](super::Scene::new) calls the check; the view rules read the figures.

use serde::{Deserialize, Serialize};

use super::SpecError;
use crate::scene::names::is_name;
use crate::scene::spec_error::{MAX_SIDE_CM, NAME_RULE, err, m};

/// What bonds players, and how far the effect goes (DESIGN, "VIEWS").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BondSpec {
    /// The kinds of bonds, strongest first: a bond's class is its kind's index here. At most 32,
    /// with unique names.
    pub kinds: Vec<String>,
    /// How many companions count as bonded to one player: the strongest and nearest ones. Further
    /// companions count as players without a bond, so that a large group does not fill the list. 0
    /// to 1000; companions at exactly the distance of the last one count too.
    pub cap: usize,
    /// Companions come into range at this distance, centimetres, even if the scene's visibility
    /// does not reach as far; 0 = the scene's visibility applies.
    pub enter_cm: i32,
    /// Companions in range leave it only beyond this distance, centimetres; greater than
    /// `enter_cm`, or 0 if that is 0.
    pub leave_cm: i32,
    /// How long a [`FIGHT`] bond lasts after the last action of one of the two against the other,
    /// milliseconds; 0 = actions make no bonds.
    pub fight_ms: u32,
    /// Whether the aims of clients make fights; otherwise only those of logic do. A gang of clients that aims at
    /// a player can fill as many places of its list as it may have ties, less its bonds, and no more than `cap`.
    pub client_fights: bool,
}

/// The kind of bond that an action against another player makes.
pub const FIGHT: &str = "fight";

/// The kind of bond between players of allied groups.
pub const ALLY: &str = "ally";

/// The kind of bond between players of hostile groups.
pub const ENEMY: &str = "enemy";

impl Default for BondSpec {
    fn default() -> Self {
        BondSpec {
            kinds: ["couple", "party", FIGHT].map(String::from).into(),
            cap: 20,
            enter_cm: 0,
            leave_cm: 0,
            fight_ms: 10_000,
            client_fights: true,
        }
    }
}

impl BondSpec {
    /// The class of a kind of bond: its index, 0 the strongest.
    pub fn class_of(&self, kind: &str) -> Option<u8> {
        self.kinds.iter().position(|k| k == kind).map(|at| at as u8)
    }
}

pub(super) fn check_bonds(b: &BondSpec, errors: &mut Vec<SpecError>) {
    if b.kinds.len() > 32 {
        err(errors, "bonds.kinds", b.kinds.len(), "at most 32 kinds".into());
    }
    for (i, kind) in b.kinds.iter().enumerate() {
        if !is_name(kind, 64) {
            err(errors, "bonds.kinds", format!("{kind:?}"), NAME_RULE.into());
        }
        if b.kinds[..i].contains(kind) {
            let rule = "appears twice; names must be unique".into();
            err(errors, "bonds.kinds", format!("{kind:?}"), rule);
        }
    }
    if b.cap > 1000 {
        err(errors, "bonds.cap", b.cap, "must lie between 0 and 1000".into());
    }
    if !(0..=MAX_SIDE_CM).contains(&b.enter_cm) {
        err(errors, "bonds.enter", m(b.enter_cm), "must lie between 0 m and 1000 km".into());
    }
    let leave_fits = match b.enter_cm {
        0 => b.leave_cm == 0,
        enter => b.leave_cm > enter && b.leave_cm <= MAX_SIDE_CM,
    };
    if !leave_fits {
        let rule = match b.enter_cm {
            0 => "has an effect only with an enter radius above 0 m".into(),
            enter => {
                format!("must be greater than the enter radius of {}, at most 1000 km", m(enter))
            }
        };
        err(errors, "bonds.leave", m(b.leave_cm), rule);
    }
    if b.fight_ms > 86_400_000 {
        err(errors, "bonds.fight", format!("{} ms", b.fight_ms), "must be at most a day".into());
    }
}

//! The rules of a world: its ground, its mode, and how far each kind sees each other kind.

use crate::scene::{RangeSet, Rect};

/// How positions decide what an entity sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// By rings of patches around the observer's own patch.
    Patches {
        /// Side of a patch, centimetres, at least 1. Patches start at the corner of the ground.
        patch_cm: i32,
    },
    /// By distance, with hysteresis.
    Circle,
    /// Every entity of a plane, wherever it is.
    All,
}

/// How far an observer sees subjects of a kind. Its form must fit the [`Mode`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reach {
    /// Rings of patches: [`RangeSet::FULL`] is 5 x 5 patches, NEAR and MIDDLE together are 3 x 3.
    Rings(RangeSet),
    /// A circle on the ground.
    Circle(Radii),
    /// The whole plane.
    All,
}

/// A circle with hysteresis: a subject appears at `enter_cm` or nearer, and disappears beyond
/// `leave_cm`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Radii {
    /// Enter radius, centimetres, at least 1.
    pub enter_cm: i32,
    /// Leave radius, centimetres, greater than the enter radius and at most [`MOST_LEAVE_CM`].
    pub leave_cm: i32,
    /// Largest difference of heights (`y`) at which a subject appears, centimetres, 0 to
    /// [`MOST_LEAVE_CM`]; `None`: heights do not matter. It disappears where the difference is
    /// larger by more than the radii differ.
    pub height_cm: Option<i32>,
}

/// Largest leave radius and height limit: 100 km, in centimetres.
pub const MOST_LEAVE_CM: i32 = 10_000_000;

/// Most patches along a side of the ground.
pub const MOST_PATCHES: i64 = 65_535;

impl Radii {
    /// A circle without a height limit; radii in centimetres.
    pub const fn new(enter_cm: i32, leave_cm: i32) -> Radii {
        Radii { enter_cm, leave_cm, height_cm: None }
    }

    /// Whether a subject at this squared ground distance and height difference is seen; `known`: it
    /// was seen before.
    #[inline]
    pub(super) fn holds(&self, d2: u64, height: u32, known: bool) -> bool {
        let radius = if known { self.leave_cm } else { self.enter_cm }.unsigned_abs();
        let slack = if known { self.leave_cm.abs_diff(self.enter_cm) } else { 0 };
        let level = |most: i32| height <= most.unsigned_abs().saturating_add(slack);
        d2 <= u64::from(radius).pow(2) && self.height_cm.is_none_or(level)
    }
}

/// A set of kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct KindSet([u64; 4]);

impl KindSet {
    /// No kind.
    pub const NONE: KindSet = KindSet([0; 4]);
    /// Every kind.
    pub const ALL: KindSet = KindSet([u64::MAX; 4]);

    /// The set with one more kind.
    pub const fn with(mut self, kind: u8) -> KindSet {
        self.0[kind as usize / 64] |= 1 << (kind % 64);
        self
    }

    /// Whether the set has a kind.
    pub const fn has(&self, kind: u8) -> bool {
        self.0[kind as usize / 64] >> (kind % 64) & 1 == 1
    }
}

/// How far entities of one kind see entities of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairRule {
    /// Kind of the observer.
    pub observer: u8,
    /// Kind of the subject.
    pub subject: u8,
    /// How far; `None`: not at all.
    pub reach: Option<Reach>,
}

/// A bound of what entities see of those that see them, too: the rule of view lists.
///
/// It holds for pairs of entities that can see each other. Such a pair is in range if each is in the
/// reach of the other. All pairs in range are ranked: by the strongest bond that the two share, then
/// by distance in whole centimetres, then by ids. In this order a pair is listed if both have room.
/// Lists are symmetric: the two appear to each other, or neither does. What only one of the two can
/// see is not bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cap {
    /// Most entities in a list, 1 to [`MOST_CAP`].
    pub most: u16,
    /// How much nearer a listed pair counts, centimetres, 0 to [`MOST_MARGIN_CM`]: so that lists do
    /// not flicker.
    pub margin_cm: u32,
}

/// Largest number of entities in a list.
pub const MOST_CAP: u16 = 1_000;

/// Largest margin of listed pairs: 1 km, in centimetres.
pub const MOST_MARGIN_CM: u32 = 100_000;

/// The rules of a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Where entities may be. Sides are 1 to 10^9 cm.
    pub ground: Rect,
    /// How positions decide.
    pub mode: Mode,
    /// How far kinds see each other that `pairs` does not name; `None`: not at all.
    pub reach: Option<Reach>,
    /// Pairs of kinds with a reach of their own. The last rule of a pair counts.
    pub pairs: Vec<PairRule>,
    /// How many entities an entity sees at most; `None`: all in its reach.
    pub cap: Option<Cap>,
    /// Whether a tick tells the positions of subjects, too.
    pub positions: bool,
}

/// Why rules are not legal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RulesError {
    /// A side of the ground is empty or too long.
    #[error("a side of the ground is {0} cm; it must be 1 to 1000000000 cm")]
    Ground(i64),
    /// Patches without extent.
    #[error("patches of {0} cm; a patch must be at least 1 cm")]
    Patch(i32),
    /// Patches that are too small for the ground.
    #[error("{0} patches along a side of the ground; there may be 65535")]
    TooManyPatches(i64),
    /// A reach is not legal.
    #[error(transparent)]
    Reach(#[from] ReachError),
    /// Lists that are empty or too long.
    #[error("lists of {0} entities; 1 to 1000 is legal")]
    Cap(u16),
    /// A margin that is too large.
    #[error("a margin of {0} cm; 0 to 100000 is legal")]
    Margin(u32),
}

/// Why a reach is not legal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReachError {
    /// Rings without patches, radii without circles, or the like.
    #[error("the reach does not fit the mode of the world")]
    OtherMode,
    /// Radii out of order or too large.
    #[error("enter {enter_cm} cm, leave {leave_cm} cm; 1 <= enter < leave <= 10000000 is legal")]
    Radii {
        /// Enter radius, centimetres.
        enter_cm: i32,
        /// Leave radius, centimetres.
        leave_cm: i32,
    },
    /// A height limit out of range.
    #[error("a height limit of {0} cm; 0 to 10000000 is legal")]
    Height(i32),
}

impl Rules {
    /// A world in which every entity sees every other within one reach.
    pub fn new(ground: Rect, mode: Mode, reach: Reach) -> Rules {
        let (pairs, cap, positions) = (Vec::new(), None, false);
        Rules { ground, mode, reach: Some(reach), pairs, cap, positions }
    }

    /// How far one kind sees another.
    pub fn reach_of(&self, observer: u8, subject: u8) -> Option<Reach> {
        let is_it = |rule: &&PairRule| (rule.observer, rule.subject) == (observer, subject);
        self.pairs.iter().rev().find(is_it).map_or(self.reach, |rule| rule.reach)
    }

    /// Whether the rules are legal.
    ///
    /// # Errors
    /// The first fault found.
    pub fn check(&self) -> Result<(), RulesError> {
        for side in self.sides() {
            if !(1..=1_000_000_000).contains(&side) {
                return Err(RulesError::Ground(side));
            }
            if let Mode::Patches { patch_cm } = self.mode {
                check_patches(side, patch_cm)?;
            }
        }
        let named = self.pairs.iter().filter_map(|rule| rule.reach);
        for reach in self.reach.into_iter().chain(named) {
            self.check_reach(reach)?;
        }
        self.cap.map_or(Ok(()), check_cap)
    }

    fn sides(&self) -> [i64; 2] {
        let g = self.ground;
        [i64::from(g.x1) - i64::from(g.x0), i64::from(g.z1) - i64::from(g.z0)]
    }

    /// Whether a reach fits the mode and is legal.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check_reach(&self, reach: Reach) -> Result<(), ReachError> {
        match (self.mode, reach) {
            (Mode::Patches { .. }, Reach::Rings(_)) | (Mode::All, Reach::All) => Ok(()),
            (Mode::Circle, Reach::Circle(radii)) => check_radii(radii),
            _ => Err(ReachError::OtherMode),
        }
    }
}

fn check_patches(side: i64, patch_cm: i32) -> Result<(), RulesError> {
    if patch_cm < 1 {
        return Err(RulesError::Patch(patch_cm));
    }
    let patches = (side - 1) / i64::from(patch_cm) + 1;
    if patches > MOST_PATCHES {
        return Err(RulesError::TooManyPatches(patches));
    }
    Ok(())
}

fn check_cap(Cap { most, margin_cm }: Cap) -> Result<(), RulesError> {
    if most == 0 || most > MOST_CAP {
        return Err(RulesError::Cap(most));
    }
    if margin_cm > MOST_MARGIN_CM { Err(RulesError::Margin(margin_cm)) } else { Ok(()) }
}

fn check_radii(radii: Radii) -> Result<(), ReachError> {
    let Radii { enter_cm, leave_cm, height_cm } = radii;
    if enter_cm < 1 || enter_cm >= leave_cm || leave_cm > MOST_LEAVE_CM {
        return Err(ReachError::Radii { enter_cm, leave_cm });
    }
    match height_cm {
        Some(height) if !(0..=MOST_LEAVE_CM).contains(&height) => Err(ReachError::Height(height)),
        _ => Ok(()),
    }
}

//! Which pairs of entities with lists are in range, and their ranks.

use crate::interest::world::bonds::Bonds;
use crate::interest::world::classes::{Classes, NOBODY};
use crate::interest::world::rules::{Mode, Reach};
use crate::interest::world::{State, View};
use crate::scene::Rect;
use crate::scene::geo::dist_cm;
use crate::scene::views::ViewRules;
use crate::scene::views::matcher::Pairs;

/// Classes whose relations are kept in a table.
const TABLE: usize = 32;

/// Who is in range of whom.
pub struct Ranges<'a> {
    pub states: &'a [State],
    classes: &'a Classes,
    /// How classes see each other, by both, if they are few.
    mutual: Vec<Option<[Reach; 2]>>,
    ground: Rect,
    /// `None`: not by patches.
    patch_cm: Option<u32>,
}

impl<'a> Ranges<'a> {
    pub fn new(view: View<'a>) -> Ranges<'a> {
        let rules = view.classes.rules();
        let patch_cm = match rules.mode {
            Mode::Patches { patch_cm } => Some(patch_cm.unsigned_abs()),
            Mode::Circle | Mode::All => None,
        };
        let classes = view.classes;
        let count = Some(classes.count()).filter(|count| *count <= TABLE).unwrap_or(0) as u16;
        let of = |a: u16| (0..count).map(move |b| classes.mutual(a, b));
        let mutual = (0..count).flat_map(of).collect();
        Ranges { states: view.states, classes, mutual, ground: rules.ground, patch_cm }
    }

    /// The number of patches between two positions.
    fn ring(&self, a: &State, b: &State) -> u32 {
        let patch_cm = self.patch_cm.unwrap_or(u32::MAX);
        let apart = |a: i32, b: i32, from: i32| {
            (a.abs_diff(from) / patch_cm).abs_diff(b.abs_diff(from) / patch_cm)
        };
        let (x, z) = (self.ground.x0, self.ground.z0);
        apart(a.pos.x, b.pos.x, x).max(apart(a.pos.z, b.pos.z, z))
    }

    #[inline]
    fn mutual(&self, a: u16, b: u16) -> Option<[Reach; 2]> {
        if self.mutual.is_empty() {
            return self.classes.mutual(a, b);
        }
        self.mutual[usize::from(a) * self.classes.count() + usize::from(b)]
    }

    /// Whether two entities are in range, at a squared distance. `listed`: they were listed.
    #[inline]
    pub fn holds(&self, a: u32, b: u32, d2: u64, listed: bool) -> bool {
        let (a, b) = (&self.states[a as usize], &self.states[b as usize]);
        let Some(both) = self.mutual(a.class, b.class) else { return false };
        both.iter().all(|reach| match reach {
            Reach::Circle(radii) => radii.holds(d2, a.pos.y.abs_diff(b.pos.y), listed),
            Reach::Rings(rings) => rings.has_ring(self.ring(a, b)),
            Reach::All => true,
        })
    }

    pub fn d2(&self, a: u32, b: u32) -> u64 {
        self.states[a as usize].pos.dist2(self.states[b as usize].pos)
    }

    /// Whether a listed pair stays in range.
    pub fn keeps(&self, a: u32, b: u32) -> bool {
        let (one, other) = (&self.states[a as usize], &self.states[b as usize]);
        let is_here = one.class != NOBODY && other.class != NOBODY && one.plane == other.plane;
        is_here && self.holds(a, b, self.d2(a, b), true)
    }

    /// The largest distance along an axis at which any pair is in range, centimetres.
    pub fn span_cm(&self) -> i64 {
        match self.classes.rules().mode {
            Mode::Patches { patch_cm } => 3 * i64::from(patch_cm),
            Mode::Circle => i64::from(self.classes.most_cm()),
            Mode::All => i64::MAX,
        }
    }

    /// The largest distance at which a pair that is not listed is in range; `None`: any.
    pub fn farthest(&self) -> Option<u32> {
        let side = |cm: u32| (u64::from(cm) * 3 * 1_415 / 1_000 + 1).min(u64::from(u32::MAX - 1));
        match self.classes.rules().mode {
            Mode::Patches { patch_cm } => Some(side(patch_cm.unsigned_abs()) as u32),
            Mode::Circle => Some(self.classes.most_enter_cm().unsigned_abs()),
            Mode::All => None,
        }
    }
}

/// The pairs of the plane in hand.
pub struct ListingPairs<'a> {
    pub ranges: &'a Ranges<'a>,
    pub rules: &'a ViewRules,
    pub bonds: &'a Bonds,
    pub slots: &'a [u32],
    /// How many have lists: pairs of others are none of the matcher's.
    pub listing: usize,
}

impl Pairs for ListingPairs<'_> {
    #[inline]
    fn rank(&self, a: u32, b: u32, d2: u64) -> Option<u64> {
        if a.min(b) as usize >= self.listing {
            return None;
        }
        let (a, b) = (self.slots[a as usize], self.slots[b as usize]);
        let class = || self.bonds.strongest(a, b);
        let in_range = self.ranges.holds(a, b, d2, false);
        in_range.then(|| self.rules.rank(class(), dist_cm(d2), false))
    }
}

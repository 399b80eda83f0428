//! Portals: areas of the ground that take players elsewhere, and the journeys on which they and the game's logic send
//! entities. A journey names its scene; which region has the place there is found when it begins.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::{Plane, Pos, Rect};

/// Most portals of a scene.
pub const MAX_PORTALS: usize = 65_534;

/// Where an entity is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journey {
    /// The scene, by its name; `None`: the one where the entity is.
    pub scene: Option<String>,
    /// The plane.
    pub plane: ToPlane,
    /// The place.
    pub at: Target,
}

/// The plane in which a journey ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum ToPlane {
    /// A player that comes from a line of another scene enters the line that its token names, otherwise the line for
    /// the next player; all others as [`ToPlane::Same`].
    #[default]
    Line,
    /// The one of the number that the entity leaves.
    Same,
    /// This one.
    Of(Plane),
}

/// Where in its scene a journey ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// At this place and height.
    Exact(Pos),
    /// On the ground at this place, whose height does not count.
    Ground(Pos),
}

impl Target {
    /// The place, at whatever height.
    pub fn flat(self) -> Pos {
        let (Target::Exact(pos) | Target::Ground(pos)) = self;
        pos
    }
}

/// An area of the ground that takes players elsewhere, in every plane of its scene.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortalSpec {
    /// Its name, unique in its scene, 1 to 64 bytes of printable text.
    pub name: String,
    /// The area.
    pub area: Rect,
    /// Where it leads.
    pub to: Journey,
}

impl Journey {
    /// To a place of the scene where the entity is, at the height of `pos`.
    pub fn within(plane: Plane, pos: Pos) -> Journey {
        Journey { scene: None, plane: ToPlane::Of(plane), at: Target::Exact(pos) }
    }
}

/// The portals of a scene, by place.
#[derive(Debug, Clone, Default)]
pub struct Portals {
    list: Arc<[PortalSpec]>,
    /// The portals that touch each square of the side `side_cm`, by their places in the list.
    squares: Arc<FxHashMap<(i32, i32), Vec<u16>>>,
    side_cm: i32,
}

impl Portals {
    pub(super) fn new(list: &[PortalSpec], side_cm: i32) -> Portals {
        let mut squares: FxHashMap<_, Vec<u16>> = FxHashMap::default();
        for (portal, number) in list.iter().zip(0..) {
            let Rect { x0, z0, x1, z1 } = portal.area;
            for x in x0.div_euclid(side_cm)..=(x1 - 1).div_euclid(side_cm) {
                for z in z0.div_euclid(side_cm)..=(z1 - 1).div_euclid(side_cm) {
                    squares.entry((x, z)).or_default().push(number);
                }
            }
        }
        Portals { list: list.into(), squares: Arc::new(squares), side_cm }
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The portal of this number, from 1 on.
    pub fn get(&self, number: u16) -> Option<&PortalSpec> {
        self.list.get(usize::from(number.checked_sub(1)?))
    }

    /// The number of the first portal in whose area a place lies, from 1 on; 0: in none.
    pub fn at(&self, pos: Pos) -> u16 {
        if self.list.is_empty() {
            return 0;
        }
        let square = (pos.x.div_euclid(self.side_cm), pos.z.div_euclid(self.side_cm));
        let near = self.squares.get(&square).into_iter().flatten();
        let inside = |number: &&u16| {
            self.list.get(usize::from(**number)).is_some_and(|portal| portal.area.contains(pos))
        };
        near.into_iter().find(inside).map_or(0, |number| number + 1)
    }
}

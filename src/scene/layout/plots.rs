//! A scene's layout as data that is stored and sent, and the changes of it: split, merge, scale.
//!
//! The cluster's leader computes changes; every region then receives the new version. Each change
//! yields a new layout with the next version. Regions that do not change keep their ids, and a
//! region that is cut keeps its id on the part with the most of its ground, so that fewer entities
//! change owner.

use serde::{Deserialize, Serialize};

use crate::scene::RegionId;
use crate::scene::spec_error::SpecError;

/// Some of the planes of a scene: those whose number leaves this remainder when divided by the number of
/// groups. Planes of different groups belong to different regions, which may live on different machines.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct PlaneGroup(pub u16);

/// An axis of the ground.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Axis {
    /// From west to east.
    X,
    /// From north to south.
    Z,
}

/// Most neighbours of a region: each has a bit of a word.
pub const MAX_NEIGHBOURS: usize = 32;

/// A region's rectangle in lands from the map's north-west corner: `x0..x1`, `z0..z1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plot {
    /// The region.
    pub id: RegionId,
    /// The group of planes that it owns.
    pub group: PlaneGroup,
    /// West edge, inclusive.
    pub x0: i32,
    /// North edge, inclusive.
    pub z0: i32,
    /// East edge, exclusive.
    pub x1: i32,
    /// South edge, exclusive.
    pub z1: i32,
}

impl Plot {
    /// The first and the last border of its lands along an axis.
    pub fn along(&self, axis: Axis) -> (i32, i32) {
        match axis {
            Axis::X => (self.x0, self.x1),
            Axis::Z => (self.z0, self.z1),
        }
    }

    /// The same plot with other borders along an axis.
    #[must_use]
    pub fn with(&self, axis: Axis, (from, to): (i32, i32)) -> Plot {
        match axis {
            Axis::X => Plot { x0: from, x1: to, ..*self },
            Axis::Z => Plot { z0: from, z1: to, ..*self },
        }
    }

    /// The axis along which the two follow each other, if together they are a rectangle of the same planes.
    pub fn joins(&self, o: &Plot) -> Option<Axis> {
        let follows = |axis| {
            let ((a0, a1), (b0, b1)) = (self.along(axis), o.along(axis));
            a1 == b0 || b1 == a0
        };
        if self.group != o.group {
            None
        } else if (self.z0, self.z1) == (o.z0, o.z1) && follows(Axis::X) {
            Some(Axis::X)
        } else if (self.x0, self.x1) == (o.x0, o.x1) && follows(Axis::Z) {
            Some(Axis::Z)
        } else {
            None
        }
    }

    /// Its two parts west and east, or north and south, of a border of lands. `None`: the border does not run
    /// through it.
    pub fn cut(&self, axis: Axis, land: i32) -> Option<(Plot, Plot)> {
        let (from, to) = self.along(axis);
        let through = from < land && land < to;
        through.then(|| (self.with(axis, (from, land)), self.with(axis, (land, to))))
    }

    /// Both plots after this one has given the other `lands` rows of lands along their common side. `None`: they
    /// have no common side that is whole, or nothing would be left of this one.
    pub fn given(&self, o: &Plot, lands: i32) -> Option<(Plot, Plot)> {
        let axis = self.joins(o)?;
        let ((a0, a1), (b0, b1)) = (self.along(axis), o.along(axis));
        let (left, more) = match a1 == b0 {
            true => ((a0, a1.checked_sub(lands)?), (b0.checked_sub(lands)?, b1)),
            false => ((a0.checked_add(lands)?, a1), (b0, b1.checked_add(lands)?)),
        };
        let is_legal = lands > 0 && left.0 < left.1;
        is_legal.then(|| (self.with(axis, left), o.with(axis, more)))
    }

    /// Number of lands that two plots share.
    fn overlap(&self, o: &Plot) -> i64 {
        if self.group != o.group {
            return 0;
        }
        let along =
            |a0: i32, a1: i32, b0: i32, b1: i32| i64::from((a1.min(b1) - a0.max(b0)).max(0));
        along(self.x0, self.x1, o.x0, o.x1) * along(self.z0, self.z1, o.z0, o.z1)
    }
}

/// The regions of a scene. Together they cover the map exactly once per group of planes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// Grows with every change.
    pub version: u64,
    /// Id of the next new region. Ids are never used twice.
    pub next: RegionId,
    /// The regions.
    pub plots: Vec<Plot>,
}

/// Why a layout is not legal. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// The scene has no region with this id.
    #[error("the scene has no region {0}")]
    NoSuchRegion(RegionId),
    /// A region of a single land cannot be split.
    #[error(
        "region {0} is a single land, which cannot be split; configure smaller lands for the scene"
    )]
    OneLand(RegionId),
    /// A border of lands does not run through the region.
    #[error("no border of lands runs through region {id} at {axis:?} {land}")]
    NoBorder {
        /// The region.
        id: RegionId,
        /// The axis that the border cuts.
        axis: Axis,
        /// Lands from the map's western or northern edge to the border.
        land: i32,
    },
    /// The union of the two regions is not a rectangle.
    #[error("regions {0} and {1} do not share a whole side, so together they are not a rectangle")]
    NoRectangle(RegionId, RegionId),
    /// The two regions own different groups of planes.
    #[error("regions {0} and {1} own different groups of planes")]
    OtherPlanes(RegionId, RegionId),
    /// The map has too few lands for so many regions.
    #[error(
        "{columns} x {rows} regions cannot be made of {lands_x} x {lands_z} lands; each region needs a land"
    )]
    TooFine {
        /// Regions from west to east.
        columns: i32,
        /// Regions from north to south.
        rows: i32,
        /// Lands from west to east.
        lands_x: i32,
        /// Lands from north to south.
        lands_z: i32,
    },
    /// The layout breaks rules of the scene: a region would be narrower than the mirrored band.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Rules(Vec<SpecError>),
    /// A region would have too many neighbours.
    #[error("region {id} would have {found} neighbours; at most {MAX_NEIGHBOURS} are allowed")]
    Neighbours {
        /// The region.
        id: RegionId,
        /// Number of neighbours.
        found: usize,
    },
    /// The plots do not cover the map exactly once, or are of another map.
    #[error(
        "the regions do not cover each land of {lands_x} x {lands_z} and {groups} groups of planes once: {what}"
    )]
    NotWhole {
        /// Lands from west to east.
        lands_x: i32,
        /// Lands from north to south.
        lands_z: i32,
        /// Groups of planes.
        groups: u16,
        /// What is wrong, and where.
        what: String,
    },
    /// All region ids of the scene are used up.
    #[error("the scene has used up all region ids")]
    NoMoreNames,
}

impl Layout {
    fn at(&self, id: RegionId) -> Result<usize, LayoutError> {
        self.plots.iter().position(|p| p.id == id).ok_or(LayoutError::NoSuchRegion(id))
    }

    fn name(&mut self) -> Result<RegionId, LayoutError> {
        let id = self.next;
        self.next = RegionId(id.0.checked_add(1).ok_or(LayoutError::NoMoreNames)?);
        Ok(id)
    }

    fn changed(&self) -> Layout {
        Layout { version: self.version + 1, ..self.clone() }
    }

    /// Splits a region in the middle of its longer side; the eastern or southern part is a new
    /// region.
    ///
    /// # Errors
    /// There is no such region, or it is a single land.
    pub fn split(&self, id: RegionId) -> Result<Layout, LayoutError> {
        let mut new = self.changed();
        let at = new.at(id)?;
        let old = new.plots[at];
        let (wide, deep) = (old.x1 - old.x0, old.z1 - old.z0);
        if wide < 2 && deep < 2 {
            return Err(LayoutError::OneLand(id));
        }
        let mut part = Plot { id: new.name()?, ..old };
        if wide >= deep {
            part.x0 = old.x0 + wide / 2;
            new.plots[at].x1 = part.x0;
        } else {
            part.z0 = old.z0 + deep / 2;
            new.plots[at].z1 = part.z0;
        }
        new.plots.push(part);
        Ok(new)
    }

    /// Splits a region at a border of lands. The western or northern part is the new region if `first`, otherwise the
    /// eastern or southern one.
    ///
    /// # Errors
    /// There is no such region, or the border does not run through it.
    pub fn split_at(
        &self,
        id: RegionId,
        axis: Axis,
        land: i32,
        first: bool,
    ) -> Result<Layout, LayoutError> {
        let mut new = self.changed();
        let at = new.at(id)?;
        let (a, b) =
            new.plots[at].cut(axis, land).ok_or(LayoutError::NoBorder { id, axis, land })?;
        let (stays, part) = if first { (b, a) } else { (a, b) };
        let part = Plot { id: new.name()?, ..part };
        new.plots[at] = stays;
        new.plots.push(part);
        Ok(new)
    }

    /// Moves the border between two regions that share a whole side: `from` gives `lands` rows of lands to `to`.
    ///
    /// # Errors
    /// There are no such regions, they do not share a whole side, or nothing would be left of `from`.
    pub fn shift(&self, from: RegionId, to: RegionId, lands: i32) -> Result<Layout, LayoutError> {
        let mut new = self.changed();
        let (a, b) = (new.at(from)?, new.at(to)?);
        let shifted = new.plots[a].given(&new.plots[b], lands);
        (new.plots[a], new.plots[b]) = shifted.ok_or(LayoutError::NoRectangle(from, to))?;
        Ok(new)
    }

    /// Merges two regions that share a whole side. The merged region keeps the first one's id.
    ///
    /// # Errors
    /// There are no such regions, or together they are not a rectangle of the same planes.
    pub fn merge(&self, id: RegionId, gone: RegionId) -> Result<Layout, LayoutError> {
        let mut new = self.changed();
        let (a, b) = (new.plots[new.at(id)?], new.plots[new.at(gone)?]);
        if a.group != b.group {
            return Err(LayoutError::OtherPlanes(id, gone));
        }
        if id == gone || a.joins(&b).is_none() {
            return Err(LayoutError::NoRectangle(id, gone));
        }
        new.plots.retain(|p| p.id != gone);
        let at = new.at(id)?;
        let (x0, z0) = (a.x0.min(b.x0), a.z0.min(b.z0));
        new.plots[at] = Plot { x0, z0, x1: a.x1.max(b.x1), z1: a.z1.max(b.z1), ..a };
        Ok(new)
    }

    /// Cuts the whole map, in every group of planes, into `columns` x `rows` regions as equal as
    /// lands allow. Each takes the id of the region with which it shares the most ground, if that
    /// id is still free.
    ///
    /// # Errors
    /// The map has fewer lands than that.
    pub fn scale(&self, columns: i32, rows: i32) -> Result<Layout, LayoutError> {
        let (lands_x, lands_z) = self.lands();
        if columns < 1 || rows < 1 || columns > lands_x || rows > lands_z {
            return Err(LayoutError::TooFine { columns, rows, lands_x, lands_z });
        }
        let mut new = self.changed();
        let cut =
            |i: i32, of: i32, lands: i32| (i64::from(lands) * i64::from(i) / i64::from(of)) as i32;
        let mut plots = Vec::new();
        for group in 0..self.groups() {
            for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |c| (row, c))) {
                plots.push(Plot {
                    id: RegionId(u32::MAX),
                    group: PlaneGroup(group),
                    x0: cut(column, columns, lands_x),
                    z0: cut(row, rows, lands_z),
                    x1: cut(column + 1, columns, lands_x),
                    z1: cut(row + 1, rows, lands_z),
                });
            }
        }
        // The greatest overlaps first; among equals in order of index.
        let mut pairs = Vec::new();
        for (to, plot) in plots.iter().enumerate() {
            let from = self.plots.iter().enumerate();
            let overlaps = from.map(|(from, old)| (-plot.overlap(old), from, to));
            pairs.extend(overlaps.filter(|(overlap, ..)| *overlap < 0));
        }
        pairs.sort_unstable();
        let (mut taken, mut named) = (vec![false; self.plots.len()], vec![false; plots.len()]);
        for (_, from, to) in pairs {
            if !taken[from] && !named[to] {
                (taken[from], named[to]) = (true, true);
                plots[to].id = self.plots[from].id;
            }
        }
        for (plot, _) in plots.iter_mut().zip(named).filter(|(_, named)| !named) {
            plot.id = new.name()?;
        }
        new.plots = plots;
        Ok(new)
    }

    /// The plot of a region; `None` if the layout has no such region.
    pub fn plot(&self, id: RegionId) -> Option<&Plot> {
        self.plots.iter().find(|p| p.id == id)
    }

    /// The region of this layout that has the most of the plot's ground.
    pub fn most_of(&self, plot: &Plot) -> Option<RegionId> {
        let most = self.plots.iter().max_by_key(|p| (p.overlap(plot), std::cmp::Reverse(p.id)));
        most.filter(|p| p.overlap(plot) > 0).map(|p| p.id)
    }

    fn lands(&self) -> (i32, i32) {
        let x = self.plots.iter().map(|p| p.x1).max().unwrap_or(0);
        (x, self.plots.iter().map(|p| p.z1).max().unwrap_or(0))
    }

    fn groups(&self) -> u16 {
        self.plots.iter().map(|p| p.group.0 + 1).max().unwrap_or(1)
    }
}

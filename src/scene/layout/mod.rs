//! A scene's layout: which region owns which ground, as versioned data and never as arithmetic on
//! coordinates.
//!
//! [`Layout`] is the data that travels, is kept, split and merged. [`RegionMap`] answers questions
//! by it: which region owns a place, which regions are neighbours. `spec` makes both; a region
//! never changes them.

mod map;
mod plots;
#[cfg(test)]
mod tests;

pub(in crate::scene) use self::map::Cut;
pub use self::map::{FIRST_NEW_REGION, RegionEntry, RegionMap, lands_along};
pub use self::plots::{Axis, Layout, LayoutError, MAX_NEIGHBOURS, PlaneGroup, Plot};

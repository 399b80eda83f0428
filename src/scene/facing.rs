//! Which way an entity faces.

use serde::{Deserialize, Serialize};

/// A direction on the ground: 65,536 steps make a turn. 0 is east, and it grows clockwise as seen
/// from above (16,384 is south).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Facing(pub u16);

impl Facing {
    /// East: where new entities face.
    pub const EAST: Facing = Facing(0);
    /// South.
    pub const SOUTH: Facing = Facing(16_384);
    /// West.
    pub const WEST: Facing = Facing(32_768);
    /// North.
    pub const NORTH: Facing = Facing(49_152);

    /// The nearest direction to so many degrees clockwise from east.
    pub const fn of_degrees(degrees: u32) -> Facing {
        Facing(((degrees as u64 % 360 * 65_536 + 180) / 360) as u16)
    }

    /// Clockwise from east, degrees from 0 to below 360.
    pub fn degrees(self) -> f64 {
        f64::from(self.0) * 360.0 / 65_536.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_has_four_quarters_clockwise() {
        let quarters = [Facing::EAST, Facing::SOUTH, Facing::WEST, Facing::NORTH];
        assert_eq!(quarters.map(Facing::degrees), [0.0, 90.0, 180.0, 270.0]);
        assert_eq!([0, 90, 180, 630].map(Facing::of_degrees), quarters);
        for degrees in 0..360 {
            assert!((Facing::of_degrees(degrees).degrees() - f64::from(degrees)).abs() < 0.01);
        }
    }
}

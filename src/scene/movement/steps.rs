//! Steps in eight directions, and lists of them, packed for the wire and for [`Path`](super::Path).

use serde::{Deserialize, Serialize};

use super::Tile;

/// A step to one of the eight adjacent tiles. Right is east (x grows), down is south (z grows).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Step {
    RightDown = 0,
    LeftDown = 1,
    LeftUp = 2,
    RightUp = 3,
    Down = 4,
    Left = 5,
    Up = 6,
    Right = 7,
}

impl Step {
    /// All steps in the order of their numbers.
    pub const ALL: [Step; 8] = [
        Step::RightDown,
        Step::LeftDown,
        Step::LeftUp,
        Step::RightUp,
        Step::Down,
        Step::Left,
        Step::Up,
        Step::Right,
    ];

    /// The step with this number, 0 to 7.
    pub fn from_number(n: u8) -> Option<Step> {
        Step::ALL.get(usize::from(n)).copied()
    }

    /// The step's number.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The step's offset in tiles along x and z.
    #[inline]
    pub fn delta(self) -> (i32, i32) {
        const DELTA: [(i32, i32); 8] =
            [(1, 1), (-1, 1), (-1, -1), (1, -1), (0, 1), (-1, 0), (0, -1), (1, 0)];
        DELTA[self as usize]
    }

    /// Whether the step changes both coordinates.
    #[inline]
    pub fn is_diagonal(self) -> bool {
        (self as u8) < 4
    }

    /// The step from a tile to an adjacent one; `None` if the tiles are not adjacent.
    pub fn between(from: Tile, to: Tile) -> Option<Step> {
        let delta = (to.x.wrapping_sub(from.x), to.z.wrapping_sub(from.z));
        Step::ALL.into_iter().find(|step| step.delta() == delta)
    }
}

/// Why a text is not a list of steps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSteps {
    /// The text is longer than [`Steps::MAX`] steps.
    #[error("more than {} steps; send the rest in another move", Steps::MAX)]
    TooMany,
    /// Something that is not a step.
    #[error("{0:?} is not a step; steps are the digits 0 to 7")]
    NoStep(char),
}

/// A string of at most [`Steps::MAX`] steps. Written as text of the digits 0 to 7.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Steps {
    len: u8,
    /// Two steps to a byte, the first in the low half.
    packed: [u8; Steps::MAX / 2],
}

impl Steps {
    /// Most steps of one path.
    pub const MAX: usize = 64;

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The step at `i`, from 0.
    #[inline]
    pub fn get(&self, i: usize) -> Option<Step> {
        let byte = self.packed.get(i / 2).filter(|_| i < self.len())?;
        Step::from_number(byte >> (i % 2 * 4) & 7)
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = Step> + '_ {
        (0..self.len()).filter_map(|i| self.get(i))
    }

    /// Adds a step at the end.
    ///
    /// # Errors
    /// [`BadSteps::TooMany`]; nothing was changed.
    pub fn push(&mut self, step: Step) -> Result<(), BadSteps> {
        let i = self.len();
        let byte = self.packed.get_mut(i / 2).ok_or(BadSteps::TooMany)?;
        *byte |= step.number() << (i % 2 * 4);
        self.len += 1;
        Ok(())
    }
}

impl FromIterator<Step> for Steps {
    /// The first [`Steps::MAX`] of them.
    fn from_iter<I: IntoIterator<Item = Step>>(steps: I) -> Steps {
        let mut all = Steps::default();
        let _ = steps.into_iter().try_for_each(|step| all.push(step));
        all
    }
}

impl std::str::FromStr for Steps {
    type Err = BadSteps;

    fn from_str(text: &str) -> Result<Steps, BadSteps> {
        let mut steps = Steps::default();
        for c in text.chars() {
            let number = c.to_digit(8).ok_or(BadSteps::NoStep(c))?;
            steps.push(Step::from_number(number as u8).ok_or(BadSteps::NoStep(c))?)?;
        }
        Ok(steps)
    }
}

impl TryFrom<String> for Steps {
    type Error = BadSteps;

    fn try_from(text: String) -> Result<Steps, BadSteps> {
        text.parse()
    }
}

impl From<Steps> for String {
    fn from(steps: Steps) -> String {
        steps.to_string()
    }
}

impl std::fmt::Display for Steps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.iter().try_for_each(|step| write!(f, "{}", step.number()))
    }
}

impl std::fmt::Debug for Steps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Steps({self})")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn step_numbers_are_those_of_the_protocol() {
        let named = [
            (0, (1, 1)),
            (1, (-1, 1)),
            (2, (-1, -1)),
            (3, (1, -1)),
            (4, (0, 1)),
            (5, (-1, 0)),
            (6, (0, -1)),
            (7, (1, 0)),
        ];
        for (n, delta) in named {
            let step = Step::from_number(n).unwrap();
            assert_eq!((step.number(), step.delta(), step.is_diagonal()), (n, delta, n < 4));
            let (x, z) = delta;
            assert_eq!(Step::between(Tile { x: 5, z: 5 }, Tile { x: 5 + x, z: 5 + z }), Some(step));
        }
        assert_eq!(Step::from_number(8), None);
        assert_eq!(Step::between(Tile { x: 5, z: 5 }, Tile { x: 5, z: 5 }), None);
        assert_eq!(Step::between(Tile { x: 5, z: 5 }, Tile { x: 7, z: 5 }), None);
    }

    #[test]
    fn a_text_that_is_not_a_list_of_steps_is_named() {
        assert_eq!("0178".parse::<Steps>(), Err(BadSteps::NoStep('8')));
        assert_eq!("7 7".parse::<Steps>(), Err(BadSteps::NoStep(' ')));
        assert_eq!("7".repeat(64).parse::<Steps>().unwrap().len(), 64);
        let many: Steps = [Step::Left; 70].into_iter().collect();
        assert_eq!(many.to_string(), "5".repeat(64));
        assert_eq!("7".repeat(65).parse::<Steps>(), Err(BadSteps::TooMany));
    }

    proptest! {
        #[test]
        fn steps_round_trip_through_text(text in "[0-7]{0,64}", from in 0_usize..70) {
            let steps: Steps = text.parse().unwrap();
            prop_assert_eq!(steps.to_string(), text.clone());
            let rest: Steps = steps.iter().skip(from).collect();
            prop_assert_eq!(rest.to_string(), text.get(from..).unwrap_or_default());
        }
    }
}

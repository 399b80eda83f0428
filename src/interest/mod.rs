//! Interest management by itself: which entities observe which, without regions, sessions or network.
//!
//! For teams that embed it in a server of their own, and for the interest service. A pair must be
//! reported exactly when its state at the end of a tick differs from the tick before: once, whatever
//! the order of requests.
//!
//! ```
//! use purview::interest::{Entity, Mode, Radii, Reach, Request, Rules, Sight, World};
//! use purview::scene::{Pos, Rect};
//!
//! let ground = Rect { x0: 0, z0: 0, x1: 102_400, z1: 102_400 };
//! let eyes = Reach::Circle(Radii::new(8_000, 8_500));
//! let mut world = World::new(Rules::new(ground, Mode::Circle, eyes)).unwrap();
//! for (id, x) in [(1, 1_000), (2, 5_000)] {
//!     let entity = Entity { id, kind: 0, plane: 0, pos: Pos::ground(x, 0), sight: Sight::default() };
//!     world.request(&Request::Create(entity)).unwrap();
//! }
//! assert_eq!(world.tick().len(), 2, "each sees the other");
//! ```
//!
//! [`World`] is one scene; [`Worlds`] holds the worlds of many.

mod world;

pub use self::world::*;

#[cfg(test)]
mod tests {
    #[derive(Debug)]
    pub struct Rng(pub u64);

    impl Rng {
        pub fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        }

        pub fn below(&mut self, n: i32) -> i32 {
            (self.next() % n as u64) as i32
        }
    }
}

//! The crowd around a player: dots without ids, told now and then to clients that want them.
//!
//! [`View`](crate::View) keeps the newest crowd. A crowd also holds the players of the view list and the player
//! itself; what to draw twice is for [`CrowdView::beyond`] to leave out.

use purview::scene::{Pos, Tick};
use purview::wire::client::frame::Crowd;

/// The newest crowd that the server has told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrowdView {
    tick: Tick,
    patch_cm: [i32; 2],
    crowd: Crowd,
}

impl CrowdView {
    pub(crate) fn new(tick: Tick, patch_cm: [i32; 2], crowd: Crowd) -> CrowdView {
        CrowdView { tick, patch_cm, crowd }
    }

    /// The tick whose positions these are.
    pub fn tick(&self) -> Tick {
        self.tick
    }

    /// Number of dots.
    pub fn len(&self) -> usize {
        self.crowd.dots.len() / 2
    }

    /// Whether there is no dot.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The dots, on the ground. Each is the middle of a cell of an eighth of a patch's sides, in which the player is.
    pub fn dots(&self) -> impl Iterator<Item = Pos> + '_ {
        self.crowd.places(self.patch_cm).map(|(x, z)| Pos::ground(x, z))
    }

    /// The dots but for those of players whose positions are `known`: of each, one dot within a cell and a half along
    /// both axes.
    pub fn beyond(&self, known: impl Iterator<Item = Pos>) -> Vec<Pos> {
        let [x, z] = self.patch_cm.map(|side| (side / 8 * 3 / 2).max(1).unsigned_abs());
        let mut dots: Vec<Pos> = self.dots().collect();
        for pos in known {
            let near = |dot: &Pos| dot.x.abs_diff(pos.x) <= x && dot.z.abs_diff(pos.z) <= z;
            let nearest = dots.iter().enumerate().filter(|(_, dot)| near(dot));
            let nearest = nearest.min_by_key(|(_, dot)| dot.dist2(pos)).map(|(i, _)| i);
            if let Some(i) = nearest {
                dots.remove(i);
            }
        }
        dots
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crowd(dots: &[u8]) -> CrowdView {
        let crowd = Crowd { x: 1_600, z: 4_800, dots: dots.to_vec().into() };
        CrowdView::new(Tick(7), [3_200; 2], crowd)
    }

    #[test]
    fn dots_are_the_middles_of_cells_of_four_metres() {
        let crowd = crowd(&[128, 128, 96, 159, 127, 130]);
        let dots: Vec<_> = crowd.dots().map(|dot| (dot.x, dot.z)).collect();
        assert_eq!(dots, [(1_800, 5_000), (-11_000, 17_400), (1_400, 5_800)]);
        assert_eq!((crowd.len(), crowd.tick()), (3, Tick(7)));
    }

    #[test]
    fn cells_of_oblong_patches_are_oblong() {
        let crowd = Crowd { x: 800, z: 500, dots: vec![128, 128, 129, 127].into() };
        let crowd = CrowdView::new(Tick(7), [1_600, 1_000], crowd);
        let dots: Vec<_> = crowd.dots().map(|dot| (dot.x, dot.z)).collect();
        assert_eq!(dots, [(900, 562), (1_100, 438)]);
        // A cell and a half is 300 and 187.
        let beyond = |x, z| crowd.beyond([Pos::ground(x, z)].into_iter()).len();
        assert_eq!((beyond(600, 562), beyond(599, 562)), (1, 2));
        assert_eq!((beyond(900, 749), beyond(900, 750)), (1, 2));
    }

    #[test]
    fn one_dot_is_left_out_for_each_known_player() {
        let crowd = crowd(&[128, 128, 128, 128, 140, 128]);
        let known = [Pos::ground(1_900, 4_801), Pos::ground(9_000, 4_800)];
        let beyond: Vec<_> = crowd.beyond(known.into_iter()).iter().map(|dot| dot.x).collect();
        assert_eq!(beyond, [1_800, 6_600]);
    }
}

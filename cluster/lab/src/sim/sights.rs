//! The logic of runs with `--logic sights`: it limits how far players are shown what is no player, and frees them again.
//! The judge compares what clients are shown: see `judge/things.rs`.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use purview::actor::logic::LogicFactory;
use purview::scene::messages::LogicEvent;
use purview::scene::region::{Commands, GameLogic, Known};
use purview::scene::{Kind, Plane, Region, SceneSpec};

use super::judge::Eye;
use super::will::Will;
use crate::game::each_region;
use crate::rng::Rng;

/// Kinds of the demo NPCs, and the radii at which players see them and see them no more, centimetres. One of them walks.
const CIRCLES_CM: [(usize, (i32, i32)); 3] =
    [(2, (2_000, 2_400)), (3, (4_600, 5_000)), (4, (900, 1_000))];

/// A region gives an order in one of so many ticks.
const ORDER_EVERY: u64 = 6;

/// The farthest limit, beyond all radii, centimetres.
const FAR_CM: f64 = 6_000.0;

/// Gives some kinds of a scene circles of their own.
pub fn add_to(spec: &mut SceneSpec) {
    for (kind, circle_cm) in CIRCLES_CM {
        if let Some(kind) = spec.kinds.get_mut(kind) {
            kind.circle_cm = Some(circle_cm);
        }
    }
}

/// Makes the logic of the regions of a simulated process.
pub fn sights(eye: Arc<Eye>, will: Arc<Will>, seed: u64) -> Arc<dyn LogicFactory> {
    each_region(move |_, region| {
        let rng = Rng::new(seed ^ u64::from(region.0) << 32);
        Some(Box::new(Limits { rng, eye: eye.clone(), will: will.clone() }))
    })
}

struct Limits {
    rng: Rng,
    eye: Arc<Eye>,
    will: Arc<Will>,
}

impl GameLogic for Limits {
    fn tick(&mut self, region: &Region, _: &[LogicEvent], commands: &mut Commands) {
        let is_over = self.eye.closed.load(Relaxed) || self.will.is_to_stand();
        if is_over || !self.rng.one_in(ORDER_EVERY) {
            return;
        }
        let players = region.lives_here(Kind::PLAYER);
        // A command for a player between two scenes waits.
        let players: Vec<Known<'_>> = players.filter(|p| p.plane != Plane::LIMBO).collect();
        let Some(player) = players.get(self.rng.below(players.len())) else { return };
        let limit_cm = (!self.rng.one_in(3)).then(|| (FAR_CM * self.rng.unit()) as u32);
        self.eye.judge.limits(region, player, limit_cm);
        commands.limit_sight(player.id, limit_cm);
    }
}

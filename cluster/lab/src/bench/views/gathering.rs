//! The crowds of the view benchmark: gatherings around one point, and people spread evenly.

use purview::scene::Pos;

use crate::bench::crowd::Crowd;
use crate::rng::Rng;

/// How much the speeds of people differ, up and down, as a share.
const PACE_SPREAD: f64 = 0.15;

#[derive(Debug, Clone, Copy)]
struct Walker {
    at: [f64; 2],
    to: [f64; 2],
    step_cm: f64,
}

/// People that are normally distributed around one point. Each walks all the time from one place of the same
/// distribution to the next.
#[derive(Debug, Clone)]
pub struct Gathering {
    walkers: Vec<Walker>,
    middle_cm: f64,
    sigma_cm: f64,
    rng: Rng,
}

impl Gathering {
    /// The greatest distance from the centre along either axis, in deviations: the random numbers go no further.
    pub const REACH_SIGMAS: f64 = 9.0;

    /// `n` people around the point whose coordinates are both `middle_cm`, with deviation `sigma_cm` along each axis.
    /// They walk `step_cm` in a tick, each at its own speed that differs by up to 15 %.
    pub fn new(n: usize, middle_cm: f64, sigma_cm: f64, step_cm: f64, seed: u64) -> Gathering {
        let mut all = Gathering { walkers: Vec::new(), middle_cm, sigma_cm, rng: Rng::new(seed) };
        for _ in 0..n {
            let (at, to) = (all.somewhere(), all.somewhere());
            let pace = 1.0 + PACE_SPREAD * (2.0 * all.rng.unit() - 1.0);
            all.walkers.push(Walker { at, to, step_cm: step_cm * pace });
        }
        all
    }

    fn somewhere(&mut self) -> [f64; 2] {
        [0, 1].map(|_| self.middle_cm + self.sigma_cm * self.rng.normal())
    }

    /// Moves all people by a tick.
    pub fn step(&mut self) {
        for i in 0..self.walkers.len() {
            let Walker { at, to, step_cm } = self.walkers[i];
            let way = [to[0] - at[0], to[1] - at[1]];
            let left = way[0].hypot(way[1]);
            if left <= step_cm {
                let next = self.somewhere();
                self.walkers[i] = Walker { at: to, to: next, step_cm };
            } else {
                self.walkers[i].at = [0, 1].map(|axis| at[axis] + way[axis] / left * step_cm);
            }
        }
    }
}

/// A crowd that walks.
#[derive(Debug, Clone)]
pub enum Walkers {
    /// Around one point.
    Gathered(Gathering),
    /// Spread evenly over a square.
    Even {
        /// Walkers on a square from the origin.
        crowd: Crowd,
        /// The number of people.
        players: usize,
        /// The corner of the square, centimetres along both axes.
        corner_cm: i32,
    },
}

impl Walkers {
    /// Moves all people by a tick.
    pub fn step(&mut self) {
        match self {
            Walkers::Gathered(gathering) => gathering.step(),
            Walkers::Even { crowd, .. } => crowd.step(),
        }
    }

    /// Copies all positions.
    pub fn places(&self, into: &mut Vec<Pos>) {
        into.clear();
        match self {
            Walkers::Gathered(gathering) => into.extend(
                gathering.walkers.iter().map(|w| Pos::ground(w.at[0] as i32, w.at[1] as i32)),
            ),
            Walkers::Even { crowd, players, corner_cm } => into.extend((0..*players).map(|i| {
                let at = crowd.pos(i);
                Pos::ground(at.x + corner_cm, at.z + corner_cm)
            })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIDDLE: f64 = 51_200.0;

    /// Mean and deviation along each axis, centimetres.
    fn spread(of: &Gathering) -> [(f64, f64); 2] {
        let n = of.walkers.len() as f64;
        [0, 1].map(|axis| {
            let along = of.walkers.iter().map(|w| w.at[axis]);
            let mean = along.clone().sum::<f64>() / n;
            (mean, (along.map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt())
        })
    }

    #[test]
    fn a_gathering_is_normally_distributed_and_becomes_a_little_denser_as_it_walks() {
        let mut people = Gathering::new(4_000, MIDDLE, 2_000.0, 14.0, 3);
        for (mean, sigma) in spread(&people) {
            // Three standard errors.
            assert!((mean - MIDDLE).abs() < 3.0 * 2_000.0 / 4_000_f64.sqrt(), "{mean}");
            assert!((sigma / 2_000.0 - 1.0).abs() < 3.0 / 8_000_f64.sqrt(), "{sigma}");
        }
        (0..1_000).for_each(|_| people.step());
        for (mean, sigma) in spread(&people) {
            assert!((mean - MIDDLE).abs() < 100.0, "{mean}");
            // Between two places people are nearer to the centre than at either place: in the long run the deviation
            // is sqrt(3) / 2 of that of the places.
            assert!((sigma / 2_000.0 - 0.866).abs() < 0.04, "{sigma}");
        }
    }

    #[test]
    fn all_people_walk_all_the_time_at_their_own_speed() {
        let mut people = Gathering::new(300, MIDDLE, 2_000.0, 14.0, 1);
        let mut paces: Vec<f64> = people.walkers.iter().map(|w| w.step_cm).collect();
        paces.sort_by(f64::total_cmp);
        assert!(paces[0] >= 14.0 * 0.85 && paces[299] <= 14.0 * 1.15, "{paces:?}");
        assert!(paces[0] < 12.5 && paces[299] > 15.5, "all alike: {paces:?}");
        for _ in 0..200 {
            let before = people.walkers.clone();
            people.step();
            for (a, b) in before.iter().zip(&people.walkers) {
                let step = (b.at[0] - a.at[0]).hypot(b.at[1] - a.at[1]);
                assert!(step > 0.0 && step < a.step_cm + 1e-9, "{step}");
                assert!(b.at == a.to || step > a.step_cm - 1e-9, "{step}");
            }
        }
    }

    #[test]
    fn people_on_a_square_start_from_its_corner() {
        let crowd = Crowd::new(30, 1_000.0, 14.0, 1);
        let mut walkers = Walkers::Even { crowd, players: 30, corner_cm: 5_000 };
        let mut places = Vec::new();
        for _ in 0..200 {
            walkers.step();
            walkers.places(&mut places);
            assert_eq!(places.len(), 30);
            let inside = |v: i32| (5_000..=6_000).contains(&v);
            assert!(places.iter().all(|p| inside(p.x) && inside(p.z)), "{places:?}");
        }
    }

    #[test]
    fn the_same_seed_repeats_the_movement_and_another_seed_does_not() {
        let walk = |seed| {
            let people = Gathering::new(50, MIDDLE, 2_000.0, 14.0, seed);
            let mut walkers = Walkers::Gathered(people);
            (0..300).for_each(|_| walkers.step());
            let mut places = Vec::new();
            walkers.places(&mut places);
            places
        };
        assert_eq!(walk(5), walk(5));
        assert_ne!(walk(5), walk(6));
        assert_eq!(walk(5).len(), 50);
    }
}

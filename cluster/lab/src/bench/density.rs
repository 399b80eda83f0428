//! How large a benchmark's square is for a density of players.

use purview::scene::Visibility;

/// The side of the square, centimetres, on which a player has a mean of `density` others in range. Players near an
/// edge have fewer, so a small square is a little denser than a large one.
pub fn side_of(players: f64, density: f64, visibility: Visibility) -> f64 {
    // The mean part of the square that is in range of a position on it, by the side of the square.
    let in_range = |side: f64| match visibility {
        Visibility::Circle { enter_cm, .. } => {
            let r = f64::from(enter_cm).min(side);
            (std::f64::consts::PI * r.powi(2) - 8.0 / 3.0 * r.powi(3) / side
                + r.powi(4) / 2.0 / side.powi(2))
            .min(side.powi(2))
        }
        _ => {
            let width = (5.0 * 3_200.0_f64).min(side);
            (width - width.powi(2) / 4.0 / side).powi(2)
        }
    };
    // The larger the square, the fewer players are in range.
    let (mut least, mut most) = (1.0, 1e9);
    for _ in 0..100 {
        let side = (least + most) / 2.0;
        if players * in_range(side) / (side * side) > density {
            least = side;
        } else {
            most = side;
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use purview::scene::Pos;

    use super::super::straight_walkers::StraightWalkers;
    use super::*;

    #[test]
    fn a_square_of_any_size_has_the_requested_density() {
        let circle = Visibility::Circle { enter_cm: 8_000, leave_cm: 8_500 };
        for (visibility, players) in [Visibility::Patches, circle].into_iter().zip([1_000, 2_000]) {
            let side = side_of(players as f64, 60.0, visibility);
            let walkers = StraightWalkers::new(players, side, 50.0, 3);
            let in_range = |a: Pos, b: Pos| match visibility {
                Visibility::Circle { enter_cm, .. } => a.dist2(b) <= (enter_cm as u64).pow(2),
                _ => {
                    let ring = |a: i32, b: i32| (a / 3_200 - b / 3_200).abs();
                    ring(a.x, b.x) <= 2 && ring(a.z, b.z) <= 2
                }
            };
            let places: Vec<Pos> = (0..players).map(|i| walkers.pos(i)).collect();
            let others = |a: &Pos| places.iter().filter(|b| in_range(*a, **b)).count() - 1;
            let mean = places.iter().map(others).sum::<usize>() as f64 / players as f64;
            assert!((mean - 60.0).abs() < 3.0, "{visibility:?}: {mean}");
        }
    }
}

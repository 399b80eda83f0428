//! The index against brute force.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const GROUND: Rect = Rect { x0: 150, z0: 0, x1: 900, z1: 640 };

fn place() -> impl Strategy<Value = Pos> {
    let along = || prop_oneof![9 => -300i32..1_300, 1 => Just(i32::MIN), 1 => Just(i32::MAX)];
    (along(), along()).prop_map(|(x, z)| Pos::ground(x, z))
}

/// The patch of a position, straight from the rule; `None` outside the ground.
fn patch(p: Pos, cm: [i32; 2]) -> Option<(i32, i32)> {
    let (low, high) = (|at: i32, cm: i32| at / cm * cm, |at: i32, cm: i32| (at + cm - 1) / cm * cm);
    let (x0, z0) = (low(GROUND.x0, cm[0]), low(GROUND.z0, cm[1]));
    let (x1, z1) = (high(GROUND.x1, cm[0]), high(GROUND.z1, cm[1]));
    let inside = p.x >= x0 && p.x < x1 && p.z >= z0 && p.z < z1;
    inside.then(|| ((p.x - x0) / cm[0], (p.z - z0) / cm[1]))
}

type Known = BTreeMap<u32, (Spot, u32, Pos)>;

/// Each entity in range is found once, with its ring and distance.
fn near_finds_the_entities_in_range(
    grid: &Grid,
    center: Pos,
    reach: i32,
    known: &Known,
) -> Result<(), TestCaseError> {
    let limit2 = 200_000;
    let at = grid.patch_of(center);
    let mut found = Vec::new();
    grid.near(center, Some(reach), limit2, |ring, e, d2| found.push((e.slot, ring, d2)));
    found.sort_unstable();
    let want: Vec<_> = known
        .iter()
        .filter(|(_, (.., p))| patch(*p, grid.patch_cm()).is_some())
        .map(|(slot, (.., p))| (*slot, at.ring(grid.patch_of(*p)), p.dist2(center)))
        .filter(|(_, ring, d2)| *ring <= reach as u32 && *d2 <= limit2)
        .collect();
    prop_assert_eq!(found, want);
    Ok(())
}

/// As wide as a scene may be, with 1 m patches: a dense grid would take 400 GB.
#[test]
fn a_grid_allocates_where_entities_stand_and_frees_afterwards() {
    let ground = Rect { x0: 0, z0: 0, x1: 409_600, z1: 409_600 };
    let mut grid = Grid::new(ground, [100; 2]);
    assert_eq!(patches_of(ground, [100; 2]), (4_096, 4_096));
    assert_eq!(bytes_empty(MAX_PATCHES), 4 << 20);
    assert_eq!(grid.cells.allocated(), 0);
    let places: Vec<Pos> = (0..200).map(|i| Pos::ground(i * 2_000, i * 1_900)).collect();
    let mut spots: Vec<_> =
        (0u32..).zip(&places).map(|(slot, p)| grid.insert(slot, 0, *p)).collect();
    assert!(grid.cells.allocated() <= 200 * 64, "{}", grid.cells.allocated());
    let far = Pos::ground(409_599, 409_599);
    assert_eq!(grid.patch_of(far), Patch { x: 4_095, z: 4_095 });
    (spots[0], _) = grid.relocate(spots[0], 0, 0, far);
    assert_eq!(grid.patch(Patch { x: 4_095, z: 4_095 }).len(), 1);
    for spot in spots {
        grid.remove(spot);
    }
    assert!(grid.is_empty());
    assert!(grid.cells.allocated() <= 64, "{}", grid.cells.allocated());
}

proptest! {
    #[test]
    fn any_history_agrees_with_a_plain_map(
        cm in prop::sample::select(vec![[50; 2], [100; 2], [160; 2], [160, 100], [30, 50]]),
        history in prop::collection::vec((0u32..24, 0u32..9, place()), 0..200),
        (center, reach) in (place(), 0i32..9),
    ) {
        let mut grid = Grid::new(GROUND, cm);
        let mut spots = Known::new();
        for (slot, tag, p) in history {
            let (displaced, old) = match spots.get(&slot).copied() {
                None => {
                    spots.insert(slot, (grid.insert(slot, tag, p), tag, p));
                    (None, Spot::NONE)
                }
                Some((spot, ..)) if tag == 0 => {
                    spots.remove(&slot);
                    (grid.remove(spot), spot)
                }
                Some((spot, ..)) => {
                    let (new, displaced) = grid.relocate(spot, slot, tag, p);
                    spots.insert(slot, (new, tag, p));
                    (displaced, spot)
                }
            };
            if let Some(other) = displaced {
                spots.get_mut(&other).unwrap().0 = old;
            }
            let inside = spots.values().filter(|(.., p)| patch(*p, cm).is_some()).count();
            prop_assert_eq!(grid.len(), inside);
        }
        let mut all = Vec::new();
        grid.all(|_, entries| all.extend(entries.iter().map(|e| (e.slot, e.tag, e.x, e.z))));
        all.sort_unstable();
        let here = spots.iter().filter(|(_, (.., p))| patch(*p, cm).is_some());
        let want: Vec<_> = here.clone().map(|(s, (_, tag, p))| (*s, *tag, p.x, p.z)).collect();
        prop_assert_eq!(all, want);
        near_finds_the_entities_in_range(&grid, center, reach, &spots)?;
        let at = grid.patch_of(center);
        let mut found = Vec::new();
        grid.rings(at, reach, |ring, entries| {
            found.extend(entries.iter().map(|e| (e.slot, ring)));
        });
        found.sort_unstable();
        let want: Vec<_> = here
            .map(|(s, (.., p))| (*s, at.ring(grid.patch_of(*p))))
            .filter(|(_, ring)| *ring <= reach as u32)
            .collect();
        prop_assert_eq!(found, want);
        // After all entities are removed nothing is left.
        for spot in spots.into_values().map(|(spot, ..)| spot).collect::<Vec<_>>() {
            grid.remove(Spot { ix: 0, ..spot });
        }
        prop_assert!(grid.is_empty() && grid.cells.allocated() <= 64);
    }
}

#[test]
fn the_span_of_rings_has_exactly_the_positions_of_their_patches() {
    for cm in [[32, 32], [32, 20], [50, 32]] {
        the_span_has_exactly_the_positions(&Grid::new(GROUND, cm));
    }
}

fn the_span_has_exactly_the_positions(grid: &Grid) {
    let along = [i32::MIN, i32::MIN + 40, -1, 0, 127, 128, 159, 160, 500, i32::MAX - 40, i32::MAX];
    let places = along.iter().flat_map(|x| along.iter().map(|z| Pos::ground(*x, *z)));
    let places: Vec<_> = places.collect();
    for (a, b, reach) in places
        .iter()
        .flat_map(|a| places.iter().map(move |b| (a, b)))
        .flat_map(|(a, b)| (0..3).map(move |reach| (a, b, reach)))
    {
        let (x, z) = grid.span(grid.patch_of(*a), reach);
        let inside = (x.0..=x.1).contains(&b.x) && (z.0..=z.1).contains(&b.z);
        let near = grid.patch_of(*a).ring(grid.patch_of(*b)) <= reach as u32;
        let at_the_ends = [a.x, a.z, b.x, b.z].iter().any(|at| at.unsigned_abs() > 1 << 30);
        assert!(inside || !near, "{a:?} {b:?} {reach}");
        assert!(at_the_ends || inside == near, "{a:?} {b:?} {reach}");
    }
}

//! Questions about a world, against brute force.

use super::*;

/// Compares what a world answers after a tick with what is true.
pub fn compare(world: &World, model: &Model) {
    let truth: BTreeSet<(u64, u64)> =
        model.pairs.union(&model.listed).map(|(a, b)| (a.0, b.0)).collect();
    let (mut pairs, mut at) = (Vec::new(), Some(0));
    while let Some(from) = at {
        at = world.pairs_from(from, &mut pairs);
    }
    assert!(pairs.iter().eq(truth.iter()), "{pairs:?} {truth:?}");
    for id in model.entities.keys() {
        let of = |pick: fn(&(u64, u64)) -> (u64, u64)| -> Vec<u64> {
            truth.iter().map(pick).filter(|(own, _)| own == id).map(|(_, other)| other).collect()
        };
        assert_eq!(world.sees(*id), Some(of(|pair| *pair)), "{id}");
        assert_eq!(world.seen_by(*id), Some(of(|(a, b)| (*b, *a))), "{id}");
    }
    assert_eq!((world.sees(7), world.seen_by(7)), (None, None));
}

fn world() -> World {
    let mut world = World::new(Rules::new(GROUND, Mode::All, Reach::All)).unwrap();
    for id in 0..20_u64 {
        let (kind, plane) = ((id % 3) as u8, i32::from(id >= 15));
        world.create(Entity { kind, plane, ..entity(id, 100 * id as i32) }).unwrap();
    }
    world.delete(5).unwrap();
    world
}

#[test]
fn entities_of_a_place_are_found_by_kind_and_plane() {
    let world = world();
    let all = Place {
        area: Area::Rect(Rect { x0: 300, z0: 600, x1: 900, z1: 601 }),
        kinds: KindSet::ALL,
        plane: None,
        nearest: None,
    };
    let found = |place: Place| world.find(&place).iter().map(|one| one.id).collect::<Vec<_>>();
    assert_eq!(found(all), [3, 4, 6, 7, 8]);
    assert_eq!(found(Place { kinds: KindSet::NONE.with(0), ..all }), [3, 6]);
    assert_eq!(found(Place { plane: Some(1), ..all }), [0; 0]);
    let area = Area::Circle { centre: Pos::ground(1_450, 600), radius_cm: 250 };
    assert_eq!(found(Place { area, ..all }), [12, 13, 14, 15, 16, 17]);
    assert_eq!(found(Place { area, plane: Some(1), ..all }), [15, 16, 17]);
}

#[test]
fn the_nearest_entities_of_a_place_come_nearest_first() {
    let world = world();
    let area = Area::Circle { centre: Pos::ground(510, 600), radius_cm: 10_000 };
    let place = Place { area, kinds: KindSet::ALL, plane: Some(0), nearest: Some(3) };
    let ids = |nearest| {
        let found = world.find(&Place { nearest: Some(nearest), ..place });
        found.iter().map(|one| one.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(3), [6, 4, 7]);
    assert_eq!((ids(0).len(), ids(100).len()), (0, 14));
    assert_eq!(world.find(&place)[0].pos, Pos::ground(600, 600));
}

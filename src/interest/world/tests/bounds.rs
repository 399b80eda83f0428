//! Ticks that would change too much.

use super::*;

/// Lets the end of a tick be refused, if it has events, as a number says: it must change nothing.
pub fn refuse(world: &mut World, number: u64, expected: &[Event]) {
    if expected.is_empty() || number.is_multiple_of(3) {
        return;
    }
    let (before, gain) = (world.pairs(), expected.iter().filter(|e| e.appears).count());
    let lost = expected.len() - gain;
    if number.is_multiple_of(2) {
        let events = expected.len() - 1;
        let refused = world.end_tick(TickBounds { events, ..TickBounds::NONE });
        assert_eq!(refused, Err(TickError::Events(events)));
    } else if gain > lost {
        let found = before + gain - lost;
        let refused = world.end_tick(TickBounds { pairs: found - 1, ..TickBounds::NONE });
        assert_eq!(refused, Err(TickError::Pairs { found, most: found - 1 }));
    }
    assert_eq!(world.pairs(), before);
}

fn crowd(mode: Mode, reach: Reach, n: u64) -> World {
    let mut world = World::new(Rules::new(GROUND, mode, reach)).unwrap();
    (0..n).for_each(|id| world.create(entity(id, 0)).unwrap());
    world
}

#[test]
fn a_tick_within_its_bounds_ends_and_one_beyond_them_does_not() {
    for (mode, reach) in [
        (Mode::All, Reach::All),
        (Mode::Circle, Reach::Circle(Radii::new(700, 800))),
        (Mode::Patches { patch_cm: 400 }, Reach::Rings(RangeSet::NEAR)),
    ] {
        let mut world = crowd(mode, reach, 50);
        let bounds = |events, pairs| TickBounds { events, pairs };
        let all = 50 * 49;
        assert_eq!(world.end_tick(bounds(all - 1, all)), Err(TickError::Events(all - 1)));
        let refused = Err(TickError::Pairs { found: all, most: all - 1 });
        assert_eq!(world.end_tick(bounds(all, all - 1)), refused);
        // What is refused can be made to fit.
        world.set_plane(7, 1).unwrap();
        assert_eq!(world.end_tick(bounds(all, 49 * 48)), Ok(49 * 48));
        let mut events = Vec::new();
        while world.take_events(100, &mut events) > 0 {}
        assert_eq!((events.len(), world.pairs()), (49 * 48, 49 * 48));
        assert!(events.is_sorted());
        // Fewer pairs are legal, even if there are more than there may be.
        world.delete(8).unwrap();
        assert_eq!(world.end_tick(bounds(all, 10)), Ok(2 * 48));
    }
}

#[test]
fn the_bytes_of_a_world_grow_with_its_entities_and_combinations() {
    let bytes = |n| crowd(Mode::All, Reach::All, n).bytes();
    assert_eq!(bytes(30) - bytes(10), 20 * ENTITY_BYTES);
    let mut world = crowd(Mode::All, Reach::All, 10);
    world.set_kind(3, 9).unwrap();
    assert!(world.bytes() > bytes(10));
}

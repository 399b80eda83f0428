//! What is refused, and that nothing else is affected.

use super::*;

fn world() -> World {
    World::new(Rules::new(GROUND, Mode::Circle, Reach::Circle(Radii::new(700, 800)))).unwrap()
}

fn event(observer: u64, subject: u64, appears: bool) -> Event {
    Event { observer, subject, appears }
}

#[test]
fn each_refused_request_has_an_error_and_the_others_succeed() {
    let mut world = world();
    let far = Pos::ground(GROUND.x1, 1_000);
    let batch = [
        Request::Create(entity(1, 0)),
        Request::Create(entity(1, 0)),
        Request::Create(Entity { pos: far, ..entity(2, 0) }),
        Request::Move { id: 3, pos: far },
        Request::SetReach { id: 1, reach: Some(Reach::All) },
        Request::SetReach { id: 1, reach: Some(Reach::Circle(Radii::new(5, 5))) },
        Request::Create(entity(4, 100)),
    ];
    let radii = ReachError::Radii { enter_cm: 5, leave_cm: 5 };
    let expected = [
        (1, RequestError::Duplicate(1)),
        (2, RequestError::OutOfBounds { id: 2, pos: far }),
        (3, RequestError::Unknown(3)),
        (4, RequestError::Reach { id: 1, why: ReachError::OtherMode }),
        (5, RequestError::Reach { id: 1, why: radii }),
    ];
    assert_eq!(world.request_all(&batch), expected);
    assert_eq!(world.tick(), [event(1, 4, true), event(4, 1, true)]);
}

#[test]
fn an_id_that_is_used_again_is_another_entity() {
    let mut world = world();
    for entity in [entity(1, 0), entity(2, 100)] {
        world.create(entity).unwrap();
    }
    world.tick();
    world.delete(2).unwrap();
    world.create(entity(2, 50)).unwrap();
    let events = [event(1, 2, false), event(1, 2, true), event(2, 1, false), event(2, 1, true)];
    assert_eq!(world.tick(), events);
    world.delete(2).unwrap();
    world.create(entity(2, 2_000)).unwrap();
    world.delete(2).unwrap();
    assert_eq!(world.tick(), [event(1, 2, false), event(2, 1, false)]);
    assert_eq!(world.tick(), []);
}

#[test]
fn combinations_that_are_no_longer_in_use_make_room() {
    let mut world = world();
    let reach = |cm: usize| Some(Reach::Circle(Radii::new(cm as i32, cm as i32 + 1)));
    let sight = |cm| Sight { reach: reach(cm), kinds: None };
    for i in 1..=MOST_CLASSES {
        world.create(Entity { sight: sight(i), plane: i as i32, ..entity(i as u64, 0) }).unwrap();
    }
    let more = MOST_CLASSES + 1;
    let other = Entity { sight: sight(more), ..entity(more as u64, 0) };
    assert_eq!(world.create(other), Err(RequestError::TooManyClasses(more as u64)));
    world.delete(2).unwrap();
    assert_eq!(world.create(other), Ok(()));
    // The last entity of a combination makes room for its own new one.
    let own = Request::SetReach { id: 1, reach: reach(more + 1) };
    assert_eq!(world.request(&own), Ok(()));
    world.tick();
    // As many are held until the tick ends, and as many are in use.
    for i in 1..=MOST_CLASSES {
        let id = if i == 2 { 1 } else { i as u64 };
        let request = Request::SetReach { id, reach: reach(2 * more + i) };
        assert_eq!(world.request(&request), Ok(()), "{i}");
    }
    assert_eq!(world.tick().len(), 0);
}

#[test]
fn a_class_that_comes_back_within_a_tick_is_what_it_was() {
    let mut world = world();
    world.create(entity(1, 0)).unwrap();
    world.create(entity(2, 600)).unwrap();
    assert_eq!(world.tick().len(), 2);
    let near = Some(Reach::Circle(Radii::new(5, 6)));
    for _ in 0..3 {
        world.set_reach(1, near).unwrap();
        world.set_reach(1, None).unwrap();
    }
    assert_eq!(world.tick(), []);
    world.set_reach(1, near).unwrap();
    assert_eq!(world.tick(), [event(1, 2, false)]);
}

#[test]
fn illegal_rules_are_refused() {
    let rules = Rules::new(GROUND, Mode::Patches { patch_cm: 400 }, Reach::Rings(RangeSet::FULL));
    let check = |change: &dyn Fn(&mut Rules)| {
        let mut rules = rules.clone();
        change(&mut rules);
        World::new(rules).err()
    };
    assert_eq!(check(&|_| ()), None);
    assert_eq!(check(&|r| r.ground.x1 = r.ground.x0), Some(RulesError::Ground(0)));
    assert_eq!(check(&|r| r.mode = Mode::Patches { patch_cm: 0 }), Some(RulesError::Patch(0)));
    let huge = |r: &mut Rules| {
        r.mode = Mode::Patches { patch_cm: 1 };
        r.ground.x1 = r.ground.x0 + 65_536;
    };
    assert_eq!(check(&huge), Some(RulesError::TooManyPatches(65_536)));
    let other = |r: &mut Rules| r.mode = Mode::All;
    assert_eq!(check(&other), Some(RulesError::Reach(ReachError::OtherMode)));
    let high = Radii { height_cm: Some(-1), ..Radii::new(1, 2) };
    let heights = |r: &mut Rules| {
        (r.mode, r.reach) = (Mode::Circle, Some(Reach::Circle(high)));
    };
    assert_eq!(check(&heights), Some(RulesError::Reach(ReachError::Height(-1))));
}

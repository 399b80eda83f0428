//! What is kept of actions, and what is told again.

use super::*;

const HERE: RegionId = RegionId(0);
const THERE: RegionId = RegionId(1);

fn act(tick: u64, id: u64, length: usize) -> PastAction {
    let content = EntityAction::new(vec![0; length]);
    PastAction { tick: Tick(tick), id: EntityId(id), content, to: vec![THERE] }
}

fn numbers(of: impl IntoIterator<Item = PastAction>) -> Vec<(u64, u64)> {
    of.into_iter().map(|action| (action.tick.0, action.id.0)).collect()
}

#[test]
fn a_neighbour_is_told_again_what_it_was_to_be_told_until_it_is_old() {
    let mut acts = RecentActions::default();
    [act(10, 1, 8), act(10, 2, 8), act(11, 1, 8)]
        .into_iter()
        .for_each(|action| acts.note(action.tick, action));
    assert_eq!(numbers(acts.missed_by(THERE, Tick(11))), [(10, 1), (10, 2)]);
    assert_eq!(numbers(acts.missed_by(HERE, Tick(11))), []);
    acts.forget_old(Tick(10 + KEPT_TICKS));
    assert_eq!(numbers(acts.missed_by(THERE, Tick(400))), [(11, 1)]);
    assert_eq!(acts.whole_since(), Tick(10));
}

#[test]
fn the_oldest_give_way_where_there_are_too_many() {
    let mut acts = RecentActions::default();
    let fit = KEPT_BYTES / (HEAD_BYTES + 1_000);
    (1..=fit as u64 + 2).for_each(|tick| acts.note(Tick(tick), act(tick, 1, 1_000)));
    assert_eq!((acts.told.len(), acts.whole_since()), (fit, Tick(2)));
    let taken = acts.to_take_along(EntityId(1));
    assert_eq!(taken.len(), TAKEN_BYTES / (HEAD_BYTES + 1_000));
    assert_eq!(taken.last().map(|action| action.tick), Some(Tick(fit as u64 + 2)));
}

#[test]
fn what_is_repeated_counts_if_it_is_after_the_last_one_known() {
    let mut acts = RecentActions::default();
    acts.note(Tick(10), act(10, 1, 8));
    let repeated = vec![act(9, 1, 8), act(10, 1, 8), act(11, 1, 8), act(5, 2, 8)];
    acts.take_repeated(Tick(12), repeated);
    assert_eq!(numbers(acts.untold.clone()), [(11, 1), (5, 2)]);
    acts.take_repeated(Tick(12), vec![act(11, 1, 8)]);
    assert_eq!(acts.untold.len(), 2, "not while it waits, either");
}

#[test]
fn what_an_entity_brings_is_told_where_it_was_missed() {
    let mut acts = RecentActions::default();
    acts.note(Tick(5), PastAction { to: Vec::new(), ..act(5, 1, 8) });
    let for_both = |tick| PastAction { to: vec![HERE, THERE], ..act(tick, 1, 8) };
    acts.take_along(HERE, (EntityId(1), Tick(8)), &[for_both(5), for_both(6), act(7, 1, 8)]);
    assert_eq!(numbers(acts.untold.clone()), [(6, 1)], "this region was to be told");
    assert_eq!(numbers(acts.brought_for(THERE)), [(5, 1), (6, 1), (7, 1)]);
    assert_eq!(numbers(acts.missed_by(THERE, Tick(8))), [(5, 1), (7, 1), (6, 1)]);
}

#[test]
fn what_may_have_been_forgotten_is_not_told_again() {
    let for_here = |tick| PastAction { to: vec![HERE], ..act(tick, 1, 8) };
    let mut acts = RecentActions::default();
    acts.note(Tick(10), act(10, 1, 8));
    let now = Tick(12 + KEPT_TICKS);
    acts.forget_old(now);
    let brought = [for_here(10), for_here(12), for_here(13)];
    acts.take_along(HERE, (EntityId(1), now), &brought);
    assert_eq!(numbers(acts.untold.clone()), [(13, 1)], "by an entity, however it came here");
    acts.take_repeated(now, vec![act(12, 2, 8), act(13, 2, 8)]);
    assert_eq!(numbers(acts.untold.clone()), [(13, 1), (13, 2)], "by a neighbour");
    acts.whole_since = Tick(20);
    acts.take_repeated(now, vec![act(20, 3, 8), act(21, 3, 8)]);
    assert_eq!(numbers(acts.untold.clone()).last(), Some(&(21, 3)), "nor for want of room");
    assert_eq!(acts.untold.len(), 3);
}

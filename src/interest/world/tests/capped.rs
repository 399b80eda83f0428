//! Worlds with a cap, against the greedy assignment over all pairs.

use super::*;
use crate::scene::geo::dist_cm;

impl Model {
    /// The rank of a pair of lists that is in range. Smaller is better.
    fn rank(
        &self,
        (a, b): (&Entity, &Entity),
        cap: Cap,
        [listed, known]: [bool; 2],
    ) -> Option<(usize, i64)> {
        if !self.sees(a, b, known) || !self.sees(b, a, known) {
            return None;
        }
        let bonds = [a.id, b.id].map(|id| self.bonds.get(&id).copied().unwrap_or_default());
        let shared = (0..BONDS).find(|at| bonds[0][*at] != 0 && bonds[0][*at] == bonds[1][*at]);
        let margin = if listed { i64::from(cap.margin_cm) } else { 0 };
        let distance = i64::from(dist_cm(a.pos.dist2(b.pos))) - margin;
        Some((shared.unwrap_or(BONDS), distance))
    }

    /// Takes the pairs in the order of their ranks, each if both entities have room.
    pub fn lists(&self) -> Pairs {
        let (mut listed, Some(cap)) = (Pairs::new(), self.rules.cap) else { return Pairs::new() };
        let mut ranked = Vec::new();
        let all: Vec<_> = self.entities.iter().collect();
        for (i, (a, (born_a, one))) in all.iter().enumerate() {
            for (b, (born_b, other)) in
                all[i + 1..].iter().filter(|(_, o)| self.is_mutual(one, &o.1))
            {
                let pair = ((**a, *born_a), (**b, *born_b));
                let listed = self.listed.contains(&pair);
                let seen = [pair, (pair.1, pair.0)].iter().any(|pair| self.pairs.contains(pair));
                if let Some(rank) = self.rank((one, other), cap, [listed, listed || seen]) {
                    ranked.push((rank, pair));
                }
            }
        }
        ranked.sort_unstable();
        let mut counts: BTreeMap<u64, u16> = BTreeMap::new();
        for (_, (a, b)) in ranked {
            if [a, b].iter().all(|one| counts.get(&one.0).is_none_or(|count| *count < cap.most)) {
                listed.extend([(a, b), (b, a)]);
                [a, b].iter().for_each(|one| *counts.entry(one.0).or_default() += 1);
            }
        }
        listed
    }
}

fn capped(plan: Plan) {
    for (most, margin_cm) in [(1, 0), (3, 150), (1_000, 30)] {
        let cap = Some(Cap { most, margin_cm });
        histories(&Plan { rules: Rules { cap, ..plan.rules.clone() }, ..plan.clone() }, 100);
    }
}

#[test]
fn lists_in_circles() {
    let circle = Reach::Circle(Radii::new(700, 800));
    capped(plan(Mode::Circle, &[circle], Vec::new()));
}

#[test]
fn lists_in_circles_per_pair_of_kinds_with_a_height_limit() {
    let circle =
        |enter, leave, height_cm| Reach::Circle(Radii { height_cm, ..Radii::new(enter, leave) });
    let circles = [circle(700, 800, Some(100)), circle(1, 2, None), circle(2_000, 3_000, Some(0))];
    capped(plan(Mode::Circle, &circles, pairs(circle(300, 301, None))));
}

#[test]
fn lists_in_patches() {
    let all: Vec<_> = (0..8).rev().filter_map(RangeSet::from_bits).map(Reach::Rings).collect();
    let pairs = pairs(Reach::Rings(RangeSet::MIDDLE));
    capped(plan(Mode::Patches { patch_cm: 400 }, &all, pairs));
}

#[test]
fn lists_of_whole_planes() {
    capped(plan(Mode::All, &[Reach::All], pairs(Reach::All)));
}

#[test]
fn a_pair_in_sight_stays_between_the_radii_when_it_becomes_mutual_or_one_sided() {
    let circle = Reach::Circle(Radii::new(700, 800));
    let blind = PairRule { observer: 1, subject: 0, reach: None };
    let cap = Some(Cap { most: 5, margin_cm: 0 });
    let rules = Rules { cap, pairs: vec![blind], ..Rules::new(GROUND, Mode::Circle, circle) };
    let mut world = World::new(rules).unwrap();
    world.create(entity(1, 0)).unwrap();
    world.create(Entity { kind: 1, ..entity(2, 700) }).unwrap();
    let event = |observer, subject, appears| Event { observer, subject, appears };
    assert_eq!(world.tick(), [event(1, 2, true)]);
    world.move_to(2, Pos::ground(750, 600)).unwrap();
    assert_eq!(world.tick(), []);
    world.set_kind(2, 0).unwrap();
    assert_eq!(world.tick(), [event(2, 1, true)]);
    world.set_kind(2, 1).unwrap();
    assert_eq!(world.tick(), [event(2, 1, false)]);
    world.move_to(2, Pos::ground(801, 600)).unwrap();
    assert_eq!(world.tick(), [event(1, 2, false)]);
}

#[test]
fn a_group_of_bonded_entities_is_bounded() {
    let cap = Some(Cap { most: 2, margin_cm: 0 });
    let rules = Rules { cap, ..Rules::new(GROUND, Mode::All, Reach::All) };
    let mut world = World::new(rules).unwrap();
    for id in 0..=MOST_BONDED as u64 {
        world.create(entity(id, 0)).unwrap();
        let joined = world.set_bond(id, 3, 9);
        let full = RequestError::GroupFull { id, group: 9 };
        assert_eq!(joined, if id < MOST_BONDED as u64 { Ok(()) } else { Err(full) });
    }
    world.delete(5).unwrap();
    assert_eq!(world.set_bond(MOST_BONDED as u64, 3, 9), Ok(()));
    assert_eq!(world.set_bond(1, 4, 9), Err(RequestError::Strength { id: 1, strength: 4 }));
}

#[test]
fn only_entities_whose_situation_has_changed_get_lists_anew() {
    let cap = Some(Cap { most: 3, margin_cm: 10 });
    let circle = Reach::Circle(Radii::new(250, 300));
    let mut world = World::new(Rules { cap, ..Rules::new(GROUND, Mode::Circle, circle) }).unwrap();
    let x = |id: u64| 100 * id as i32 - 900;
    (0..30).for_each(|id| world.create(entity(id, x(id))).unwrap());
    let listed_anew = |world: &World| world.lists.as_ref().unwrap().listed_anew();
    assert!(!world.tick().is_empty());
    assert_eq!(listed_anew(&world), 30);
    for (step, most) in [(0, 0), (1, 4), (140, 10)] {
        world.move_to(15, Pos::ground(x(15) + step, 600)).unwrap();
        world.tick();
        let listed = listed_anew(&world);
        assert!(listed <= most && (listed > 0) == (step > 0), "{listed} after {step} cm");
    }
}

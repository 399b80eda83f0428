//! Random histories against brute force: every pair is compared at the end of every tick.

use std::collections::BTreeSet;

use super::*;

#[derive(Debug)]
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: i32) -> i32 {
        (self.next() % n as u64) as i32
    }
}

/// The true state, and the reported state.
struct Model {
    engine: RangeEvents,
    ground: Rect,
    patch_cm: i32,
    visibility: Visibility,
    people: Vec<Option<(Pos, RangeSet)>>,
    pairs: BTreeSet<(u32, u32)>,
}

impl Model {
    fn new(ground: Rect, patch_cm: i32, visibility: Visibility) -> Model {
        let engine = RangeEvents::new(ground, patch_cm, visibility);
        let (people, pairs) = (Vec::new(), BTreeSet::new());
        Model { engine, ground, patch_cm, visibility, people, pairs }
    }

    fn add(&mut self, pos: Pos, range: RangeSet) {
        let slot = self.engine.add(pos, range) as usize;
        self.people.resize(self.people.len().max(slot + 1), None);
        assert!(self.people[slot].is_none(), "slot {slot} was assigned twice");
        self.people[slot] = Some((pos, range));
    }

    fn remove(&mut self, slot: u32) {
        self.engine.remove(slot);
        self.people[slot as usize] = None;
    }

    fn move_to(&mut self, slot: u32, pos: Pos) {
        self.engine.move_to(slot, pos);
        if let Some(one) = &mut self.people[slot as usize] {
            one.0 = pos;
        }
    }

    fn set_range(&mut self, slot: u32, range: RangeSet) {
        self.engine.set_range(slot, range);
        if let Some(one) = &mut self.people[slot as usize] {
            one.1 = range;
        }
    }

    fn in_range(&self, a: (Pos, RangeSet), b: (Pos, RangeSet), known: bool) -> bool {
        if !self.ground.contains(a.0) || !self.ground.contains(b.0) {
            return false;
        }
        match self.visibility {
            Visibility::All => true,
            Visibility::Circle { enter_cm, leave_cm } => {
                let radius = if known { leave_cm } else { enter_cm } as u64;
                a.0.dist2(b.0) <= radius * radius
            }
            Visibility::Patches => {
                let patch = |v: i32| v.div_euclid(self.patch_cm);
                let apart = |a: i32, b: i32| patch(a).abs_diff(patch(b));
                a.1.and(b.1).has_ring(apart(a.0.x, b.0.x).max(apart(a.0.z, b.0.z)))
            }
        }
    }

    fn truth(&self) -> BTreeSet<(u32, u32)> {
        let mut pairs = BTreeSet::new();
        for (a, one) in self.people.iter().enumerate() {
            for (b, other) in self.people.iter().enumerate().skip(a + 1) {
                let pair = (a as u32, b as u32);
                if let (Some(one), Some(other)) = (one, other)
                    && self.in_range(*one, *other, self.pairs.contains(&pair))
                {
                    pairs.insert(pair);
                }
            }
        }
        pairs
    }

    /// Ends the tick and compares the reported with the true state. Returns the number of events.
    fn end_tick(&mut self, what: &str) -> usize {
        let truth = self.truth();
        let mut told = Vec::new();
        self.engine.end_tick(|event| told.push(event));
        told.sort();
        let entered = truth.difference(&self.pairs);
        let left = self.pairs.difference(&truth);
        let mut expected: Vec<_> = entered.map(|&(a, b)| RangeEvent::Entered { a, b }).collect();
        expected.extend(left.map(|&(a, b)| RangeEvent::Left { a, b }));
        assert_eq!(told, expected, "{what}");
        assert_eq!(self.engine.len(), self.people.iter().flatten().count(), "{what}");
        self.pairs = truth;
        told.len()
    }
}

/// Parameters of a kind of history.
#[derive(Debug, Clone, Copy)]
struct Plan {
    visibility: Visibility,
    ground: Rect,
    patch_cm: i32,
    /// Most entities at a time.
    people: i32,
    /// Longest step along an axis.
    step: i32,
    /// Random ranges, or one range for all.
    ranges: Option<RangeSet>,
    /// Percentage of jumps among the moves.
    jumps: i32,
}

fn anywhere(rng: &mut Rng, ground: Rect) -> Pos {
    // Now and then outside, and often on the edges.
    let mut along = |a: i32, b: i32| match rng.below(12) {
        0 => a,
        1 => b - 1,
        2 => a - 1,
        3 => b,
        _ => a + rng.below(b - a),
    };
    Pos::ground(along(ground.x0, ground.x1), along(ground.z0, ground.z1))
}

fn history(plan: Plan, seed: u64) -> usize {
    let mut rng = Rng(seed);
    let mut model = Model::new(plan.ground, plan.patch_cm, plan.visibility);
    let range = |rng: &mut Rng| {
        plan.ranges.unwrap_or_else(|| RangeSet::from_bits(rng.below(8) as u8).unwrap())
    };
    let mut events = 0;
    for tick in 0..20 {
        for _ in 0..rng.below(plan.people + 1) {
            let slots = model.people.len() as i32;
            if slots == 0 || rng.below(100) < 15 {
                if (model.engine.len() as i32) < plan.people {
                    let pos = anywhere(&mut rng, plan.ground);
                    let range = range(&mut rng);
                    model.add(pos, range);
                }
                continue;
            }
            let slot = rng.below(slots) as u32;
            let Some((pos, _)) = model.people[slot as usize] else {
                // A removed entity can do nothing more.
                model.engine.move_to(slot, pos_of(&mut rng, plan.ground));
                model.engine.remove(slot);
                continue;
            };
            let dice = rng.below(100);
            if dice < 8 {
                model.remove(slot);
            } else if dice < 8 + plan.jumps {
                model.move_to(slot, anywhere(&mut rng, plan.ground));
            } else if dice < 12 + plan.jumps {
                model.set_range(slot, range(&mut rng));
            } else {
                let mut step = |v: i32| v + rng.below(2 * plan.step + 1) - plan.step;
                model.move_to(slot, Pos::ground(step(pos.x), step(pos.z)));
            }
        }
        events += model.end_tick(&format!("{plan:?} seed {seed} tick {tick}"));
    }
    events
}

fn pos_of(rng: &mut Rng, ground: Rect) -> Pos {
    anywhere(rng, ground)
}

const YARD: Rect = Rect { x0: -37, z0: 5, x1: 61, z1: 90 };

const PATCHES: Plan = Plan {
    visibility: Visibility::Patches,
    ground: YARD,
    patch_cm: 13,
    people: 24,
    step: 15,
    ranges: None,
    jumps: 10,
};

fn many(plan: Plan, seeds: u64) {
    let events: usize = (0..seeds).map(|seed| history(plan, seed)).sum();
    assert!(events as u64 > 3 * seeds, "too few events to mean anything: {events}, {plan:?}");
}

#[test]
fn patches_of_every_union_of_rings_agree_with_brute_force() {
    many(PATCHES, 2_000);
}

#[test]
fn patches_with_one_range_for_all_agree_with_brute_force() {
    for bits in 1..8 {
        let ranges = RangeSet::from_bits(bits);
        many(Plan { ranges, ..PATCHES }, 600);
    }
}

#[test]
fn patches_of_a_centimetre_and_patches_wider_than_the_ground_agree_with_brute_force() {
    let ground = Rect { x0: -3, z0: -2, x1: 9, z1: 8 };
    many(Plan { ground, patch_cm: 1, step: 3, ..PATCHES }, 500);
    many(Plan { patch_cm: 1_000, ..PATCHES }, 500);
}

#[test]
fn circles_with_integer_ties_agree_with_brute_force() {
    for (enter_cm, leave_cm) in [(5, 6), (5, 10), (25, 30), (13, 200)] {
        let visibility = Visibility::Circle { enter_cm, leave_cm };
        for step in [1, 5, 40] {
            many(Plan { visibility, step, ..PATCHES }, 500);
        }
    }
}

#[test]
fn wide_circles_agree_with_brute_force_to_the_centimetre() {
    // Steps of a centimetre around the radii: single precision cannot tell these apart.
    let visibility = Visibility::Circle { enter_cm: 80_000_000, leave_cm: 80_000_001 };
    let ground = Rect { x0: -99_000_000, z0: 0, x1: 99_000_000, z1: 2 };
    let mut model = Model::new(ground, 1, visibility);
    for at in -5..5 {
        model.add(Pos::ground(at - 40_000_000, 0), RangeSet::FULL);
        model.add(Pos::ground(at + 40_000_000, 0), RangeSet::FULL);
    }
    model.end_tick("the beginning");
    let mut rng = Rng(1);
    let mut events = 0;
    for tick in 0..200 {
        for slot in 0..20 {
            let pos = model.people[slot].unwrap().0;
            model.move_to(slot as u32, Pos::ground(pos.x + rng.below(3) - 1, rng.below(2)));
        }
        events += model.end_tick(&format!("tick {tick}"));
    }
    assert!(events > 100);
}

#[test]
fn a_crowd_of_many_lanes_agrees_with_brute_force() {
    let visibility = Visibility::Circle { enter_cm: 40, leave_cm: 44 };
    let ground = Rect { x0: 0, z0: 0, x1: 400, z1: 400 };
    let crowd = Plan { visibility, ground, people: 200, step: 3, jumps: 2, ..PATCHES };
    many(crowd, 40);
    many(Plan { visibility: Visibility::Patches, patch_cm: 16, ..crowd }, 40);
}

#[test]
fn visibility_all_agrees_with_brute_force() {
    many(Plan { visibility: Visibility::All, ..PATCHES }, 1_000);
}

#[test]
fn a_pair_that_meets_and_parts_within_a_tick_is_not_reported() {
    for visibility in [Visibility::Patches, Visibility::Circle { enter_cm: 100, leave_cm: 120 }] {
        let ground = Rect { x0: 0, z0: 0, x1: 10_000, z1: 10_000 };
        let mut model = Model::new(ground, 100, visibility);
        model.add(Pos::ground(50, 50), RangeSet::FULL);
        model.add(Pos::ground(9_000, 50), RangeSet::FULL);
        assert_eq!(model.end_tick("apart"), 0);
        model.move_to(1, Pos::ground(60, 50));
        model.add(Pos::ground(50, 50), RangeSet::FULL);
        model.move_to(1, Pos::ground(9_000, 50));
        model.remove(2);
        assert_eq!(model.end_tick("met and parted"), 0);
        // Both swap positions: the net change is nothing, though each moved far.
        model.move_to(0, Pos::ground(9_000, 50));
        model.move_to(1, Pos::ground(50, 50));
        assert_eq!(model.end_tick("changed places"), 0);
    }
}

#[test]
fn a_pair_in_the_shell_keeps_its_state() {
    let visibility = Visibility::Circle { enter_cm: 100, leave_cm: 120 };
    let ground = Rect { x0: 0, z0: 0, x1: 10_000, z1: 10_000 };
    let mut model = Model::new(ground, 100, visibility);
    model.add(Pos::ground(0, 0), RangeSet::NONE);
    model.add(Pos::ground(110, 0), RangeSet::NONE);
    for (x, events) in [(110, 0), (101, 0), (100, 1), (120, 0), (101, 0), (121, 1), (120, 0)] {
        model.move_to(1, Pos::ground(x, 0));
        assert_eq!(model.end_tick(&format!("at {x}")), events);
    }
}

//! What is true in a scene, by brute force over all pairs, and what a service has told of it.
//!
//! The caller makes the same changes here and in the service, and passes on the events of every tick.

use std::collections::BTreeMap;
use std::fmt;

use purview::interest::{Event, Mode, Position, Reach, Rules};
use purview::scene::Pos;
use purview::scene::geo::dist_cm;
use rustc_hash::{FxHashMap, FxHashSet};

type Pair = (u64, u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Placed {
    kind: u8,
    plane: i32,
    pos: Pos,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Violation {
    /// A pair that is there was not told, or was told to be gone.
    Missing(u64, u64),
    /// A pair that is not there was told, or was not told to be gone.
    Extra(u64, u64),
    /// An event says what was said before, or what cannot be.
    Repeated(u64, u64),
    /// An event does not come in the order of observers and subjects.
    Order(u64, u64),
    /// The position of a subject is not the one that was told last.
    Position(u64),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Missing(a, b) => write!(f, "{a} sees {b}, and the service says otherwise"),
            Violation::Extra(a, b) => write!(f, "{a} does not see {b}, and the service says so"),
            Violation::Repeated(a, b) => write!(f, "the event of {a} and {b} changes nothing"),
            Violation::Order(a, b) => write!(f, "the event of {a} and {b} is out of order"),
            Violation::Position(id) => write!(f, "{id} is not where the service says"),
        }
    }
}

#[derive(Debug)]
pub struct Judge {
    rules: Rules,
    reach: Vec<Option<Reach>>,
    entities: BTreeMap<u64, Placed>,
    pairs: FxHashSet<Pair>,
    /// Pairs of lists, in both directions.
    listed: FxHashSet<Pair>,
    told: FxHashSet<Pair>,
    places: FxHashMap<u64, Pos>,
}

impl Judge {
    /// Of a scene without entities.
    pub fn new(rules: Rules) -> Judge {
        let kinds = (0..=u8::MAX).flat_map(|a| (0..=u8::MAX).map(move |b| (a, b)));
        let reach = kinds.map(|(a, b)| rules.reach_of(a, b)).collect();
        Judge {
            rules,
            reach,
            entities: BTreeMap::new(),
            pairs: FxHashSet::default(),
            listed: FxHashSet::default(),
            told: FxHashSet::default(),
            places: FxHashMap::default(),
        }
    }

    /// Creates an entity. An id must not be used again in the tick in which its entity was deleted.
    pub fn create(&mut self, id: u64, kind: u8, plane: i32, pos: Pos) {
        self.entities.insert(id, Placed { kind, plane, pos });
    }

    /// Moves an entity, if it is there.
    pub fn move_to(&mut self, id: u64, pos: Pos) {
        if let Some(entity) = self.entities.get_mut(&id) {
            entity.pos = pos;
        }
    }

    pub fn delete(&mut self, id: u64) {
        self.entities.remove(&id);
    }

    fn reach(&self, observer: &Placed, subject: &Placed) -> Option<Reach> {
        self.reach[usize::from(observer.kind) << 8 | usize::from(subject.kind)]
    }

    fn is_mutual(&self, a: &Placed, b: &Placed) -> bool {
        self.rules.cap.is_some() && self.reach(a, b).is_some() && self.reach(b, a).is_some()
    }

    /// Whether an observer sees a subject. `known`: it did before.
    fn sees(&self, observer: &Placed, subject: &Placed, known: impl Fn() -> bool) -> bool {
        if observer.plane != subject.plane {
            return false;
        }
        let (a, b) = (observer.pos, subject.pos);
        match (self.reach(observer, subject), self.rules.mode) {
            (Some(Reach::All), _) => true,
            (Some(Reach::Rings(rings)), Mode::Patches { patch_cm }) => {
                let ground = self.rules.ground;
                let patch = |v: i32, from: i32| v.abs_diff(from) / patch_cm.unsigned_abs();
                let apart = |a: i32, b: i32, from: i32| patch(a, from).abs_diff(patch(b, from));
                rings.has_ring(apart(a.x, b.x, ground.x0).max(apart(a.z, b.z, ground.z0)))
            }
            (Some(Reach::Circle(radii)), _) => {
                let square = |cm: i32| u64::from(cm.unsigned_abs()).pow(2);
                let (d2, height) = (a.dist2(b), a.y.abs_diff(b.y));
                let slack = radii.leave_cm.abs_diff(radii.enter_cm);
                let level = |more: u32| {
                    radii.height_cm.is_none_or(|most| height <= most.unsigned_abs() + more)
                };
                let enters = d2 <= square(radii.enter_cm) && level(0);
                enters || (d2 <= square(radii.leave_cm) && level(slack) && known())
            }
            _ => false,
        }
    }

    fn pairs_now(&self) -> FxHashSet<Pair> {
        let mut pairs = FxHashSet::default();
        for (a, observer) in &self.entities {
            for (b, subject) in self.entities.iter().filter(|(b, _)| *b != a) {
                let known = || self.pairs.contains(&(*a, *b));
                if !self.is_mutual(observer, subject) && self.sees(observer, subject, known) {
                    pairs.insert((*a, *b));
                }
            }
        }
        pairs
    }

    /// Takes the pairs of lists in the order of their distances, each if both have room.
    fn lists_now(&self) -> FxHashSet<Pair> {
        let Some(cap) = self.rules.cap else { return FxHashSet::default() };
        let mut ranked = Vec::new();
        for (a, one) in &self.entities {
            for (b, other) in self.entities.range(a + 1..) {
                let is_listed = self.listed.contains(&(*a, *b));
                let known = || is_listed;
                let both = self.sees(one, other, known) && self.sees(other, one, known);
                if both && self.is_mutual(one, other) {
                    let margin = if is_listed { i64::from(cap.margin_cm) } else { 0 };
                    let distance = i64::from(dist_cm(one.pos.dist2(other.pos)));
                    ranked.push((distance - margin, *a, *b));
                }
            }
        }
        ranked.sort_unstable();
        let (mut counts, mut listed) = (FxHashMap::<u64, u16>::default(), FxHashSet::default());
        for (_, a, b) in ranked {
            let has_room = |id: &u64| counts.get(id).is_none_or(|count| *count < cap.most);
            if has_room(&a) && has_room(&b) {
                listed.extend([(a, b), (b, a)]);
                [a, b].into_iter().for_each(|id| *counts.entry(id).or_default() += 1);
            }
        }
        listed
    }

    /// Ends a tick, and judges its events and positions.
    pub fn tick(&mut self, events: &[Event], positions: &[Position]) -> Vec<Violation> {
        let mut found = self.hear(events);
        let (pairs, listed) = (self.pairs_now(), self.lists_now());
        let truth: FxHashSet<Pair> = pairs.union(&listed).copied().collect();
        let missing = truth.difference(&self.told).map(|(a, b)| Violation::Missing(*a, *b));
        let extra = self.told.difference(&truth).map(|(a, b)| Violation::Extra(*a, *b));
        found.extend(missing.chain(extra));
        (self.pairs, self.listed, self.told) = (pairs, listed, truth);
        if self.rules.positions {
            self.hear_positions(positions, &mut found);
        }
        found.sort_unstable();
        found
    }

    fn hear(&mut self, events: &[Event]) -> Vec<Violation> {
        let mut found = Vec::new();
        let key = |event: &Event| (event.observer, event.subject);
        for pair in events.windows(2).filter(|pair| key(&pair[0]) >= key(&pair[1])) {
            found.push(Violation::Order(pair[1].observer, pair[1].subject));
        }
        for event in events {
            let is_new = match event.appears {
                true => self.told.insert(key(event)),
                false => self.told.remove(&key(event)),
            };
            if !is_new {
                found.push(Violation::Repeated(event.observer, event.subject));
            }
        }
        found
    }

    fn hear_positions(&mut self, positions: &[Position], found: &mut Vec<Violation>) {
        self.places.extend(positions.iter().map(|one| (one.id, one.pos)));
        let subjects: FxHashSet<u64> = self.told.iter().map(|(_, subject)| *subject).collect();
        for id in subjects {
            if self.places.get(&id) != self.entities.get(&id).map(|entity| &entity.pos) {
                found.push(Violation::Position(id));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use purview::interest::{Cap, Radii};
    use purview::scene::Rect;

    fn judge(change: impl Fn(&mut Rules)) -> Judge {
        let ground = Rect { x0: 0, z0: 0, x1: 1_000, z1: 1_000 };
        let circle = Reach::Circle(Radii::new(100, 200));
        let mut rules = Rules::new(ground, Mode::Circle, circle);
        change(&mut rules);
        Judge::new(rules)
    }

    fn event(observer: u64, subject: u64, appears: bool) -> Event {
        Event { observer, subject, appears }
    }

    #[test]
    fn every_kind_of_fault_is_found() {
        let mut judge = judge(|rules| rules.positions = true);
        judge.create(1, 0, 0, Pos::ground(0, 0));
        judge.create(2, 0, 0, Pos::ground(100, 0));
        let place = |id: u64, x| Position { id, pos: Pos::ground(x, 0) };
        let both = [event(1, 2, true), event(2, 1, true)];
        assert_eq!(judge.tick(&both, &[place(1, 0), place(2, 100)]), []);
        judge.move_to(2, Pos::ground(200, 0));
        assert_eq!(judge.tick(&[], &[]), [Violation::Position(2)]);
        assert_eq!(judge.tick(&both[..1], &[place(2, 200)]), [Violation::Repeated(1, 2)]);
        judge.move_to(2, Pos::ground(201, 0));
        let reverse = [event(2, 1, false), event(1, 2, false)];
        assert_eq!(judge.tick(&reverse, &[]), [Violation::Order(1, 2)]);
        judge.move_to(2, Pos::ground(101, 0));
        assert_eq!(judge.tick(&both[..1], &[]), [Violation::Extra(1, 2)]);
        judge.move_to(2, Pos::ground(99, 0));
        let told = judge.tick(&both[1..], &[place(1, 0), place(2, 99)]);
        assert_eq!(told, [Violation::Missing(1, 2)]);
    }

    #[test]
    fn lists_hold_the_nearest_pairs() {
        let mut judge = judge(|rules| rules.cap = Some(Cap { most: 1, margin_cm: 10 }));
        for (id, x) in [(1, 0), (2, 60), (3, 110)] {
            judge.create(id, 0, 0, Pos::ground(x, 0));
        }
        assert_eq!(judge.tick(&[event(2, 3, true), event(3, 2, true)], &[]), []);
        // 2 is 5 cm nearer to 1, which is less than the margin.
        judge.move_to(1, Pos::ground(15, 0));
        assert_eq!(judge.tick(&[], &[]), []);
        judge.move_to(1, Pos::ground(30, 0));
        let change = [event(1, 2, true), event(2, 1, true), event(2, 3, false), event(3, 2, false)];
        assert_eq!(judge.tick(&change, &[]), []);
    }
}

//! Classes: entities of one kind and one [`Sight`]. Engines know neither kinds nor rules.
//!
//! Engines name the classes that entities had when the last tick ended. These are *held*: a held
//! class without entities keeps its number until the tick ends. It makes room at once.

use rustc_hash::FxHashMap;

use super::request::{MOST_CLASSES, Sight};
use super::rules::{Radii, Reach, Rules};
use crate::scene::RangeSet;

/// The class of entities that do not exist.
pub const NOBODY: u16 = u16::MAX;

/// One of so many observers may see farther than usual: such observers cost more than others.
const FEW: usize = if cfg!(test) { 2 } else { 16 };

#[derive(Debug, Clone)]
struct Class {
    kind: u8,
    sight: Sight,
    uses: u32,
    is_held: bool,
}

impl Class {
    fn is_known(&self) -> bool {
        self.uses > 0 || self.is_held
    }
}

/// What rules say of an observing kind.
#[derive(Debug, Clone)]
struct Row {
    /// By kind of the subject.
    reach: [Option<Reach>; 256],
    /// Each reach once.
    distinct: Vec<Reach>,
}

/// The classes in use.
#[derive(Debug, Clone)]
pub struct Classes {
    rules: Rules,
    /// By observing kind, where a pair of kinds has a rule of its own.
    rows: Vec<Option<Box<Row>>>,
    rule_bytes: usize,
    list: Vec<Class>,
    free: Vec<u16>,
    by_key: FxHashMap<(u8, Sight), u16>,
    /// Classes with entities.
    live: usize,
    /// Whether any of them has a reach: see [`Classes::have_reach`].
    have_reach: bool,
    /// A class was forgotten since that was found out.
    is_reach_stale: bool,
}

impl Classes {
    pub fn new(rules: Rules) -> Classes {
        let mut rows: Vec<Option<Box<Row>>> = Vec::new();
        for rule in &rules.pairs {
            rows.resize(rows.len().max(usize::from(rule.observer) + 1), None);
            let own = || Box::new(Row { reach: [rules.reach; 256], distinct: Vec::new() });
            let row = rows[usize::from(rule.observer)].get_or_insert_with(own);
            row.reach[usize::from(rule.subject)] = rule.reach;
        }
        for row in rows.iter_mut().flatten() {
            for reach in row.reach.iter().flatten() {
                if !row.distinct.contains(reach) {
                    row.distinct.push(*reach);
                }
            }
        }
        let rule_bytes = rows.iter().flatten().count() * size_of::<Row>()
            + rules.pairs.len() * size_of::<super::PairRule>();
        let (list, free, by_key) = (Vec::new(), Vec::new(), FxHashMap::default());
        let (live, have_reach, is_reach_stale) = Default::default();
        Classes { rules, rows, rule_bytes, list, free, by_key, live, have_reach, is_reach_stale }
    }

    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The class of a kind and sight, used once more; `None` if there are too many.
    pub fn take(&mut self, kind: u8, sight: Sight) -> Option<u16> {
        let known = self.by_key.get(&(kind, sight)).copied();
        let is_new = known.is_none_or(|class| self.list[usize::from(class)].uses == 0);
        if is_new && self.live >= MOST_CLASSES {
            return None;
        }
        self.live += usize::from(is_new);
        let class = known.unwrap_or_else(|| self.make(kind, sight));
        self.list[usize::from(class)].uses += 1;
        Some(class)
    }

    fn make(&mut self, kind: u8, sight: Sight) -> u16 {
        let made = Class { kind, sight, uses: 0, is_held: false };
        let class = self.free.pop().unwrap_or(self.list.len() as u16);
        if usize::from(class) == self.list.len() {
            self.list.push(made);
        } else {
            self.list[usize::from(class)] = made;
        }
        self.by_key.insert((kind, sight), class);
        self.have_reach = self.have_reach || self.has_reach(class);
        class
    }

    /// Whether any class may see another one, or itself, outside of lists. If not, engines have nothing to find.
    pub fn have_reach(&self) -> bool {
        self.have_reach
    }

    fn has_reach(&self, class: u16) -> bool {
        let all = 0..self.list.len() as u16;
        let known = |other: &u16| self.list[usize::from(*other)].is_known();
        let mut others = all.filter(|other| *other == class || known(other));
        others.any(|other| self.reach(class, other).is_some() || self.reach(other, class).is_some())
    }

    /// One use less.
    pub fn release(&mut self, class: u16) {
        let of = &mut self.list[usize::from(class)];
        of.uses -= 1;
        if of.uses == 0 {
            self.live -= 1;
            if !of.is_held {
                self.forget(class);
            }
        }
    }

    /// Gives an entity another class; `None` if there are too many: it has a class as before.
    pub fn change(&mut self, old: u16, kind: u8, sight: Sight) -> (u16, bool) {
        let before = self.of(old);
        self.release(old);
        match self.take(kind, sight) {
            Some(class) => (class, true),
            // There is room: the class was just released.
            None => (self.take(before.0, before.1).unwrap_or(old), false),
        }
    }

    fn forget(&mut self, class: u16) {
        let of = &mut self.list[usize::from(class)];
        of.is_held = false;
        self.is_reach_stale |= self.have_reach;
        self.by_key.remove(&(of.kind, of.sight));
        self.free.push(class);
    }

    /// A tick has ended: the classes with entities are held, and no others.
    pub fn settle(&mut self) {
        for class in 0..self.list.len() {
            let of = &mut self.list[class];
            if of.uses > 0 {
                of.is_held = true;
            } else if of.is_held {
                self.forget(class as u16);
            }
        }
        if std::mem::take(&mut self.is_reach_stale) {
            let all = 0..self.list.len() as u16;
            let mut known = all.filter(|class| self.list[usize::from(*class)].is_known());
            self.have_reach = known.any(|class| self.has_reach(class));
        }
    }

    /// All classes are less than this.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// Kind and sight of a class.
    pub fn of(&self, class: u16) -> (u8, Sight) {
        let class = &self.list[usize::from(class)];
        (class.kind, class.sight)
    }

    /// Bytes of the classes and their rules.
    pub fn bytes(&self) -> usize {
        self.rule_bytes + self.list.len() * (size_of::<Class>() + 2 * size_of::<(u8, Sight, u16)>())
    }

    /// How far a class sees another. With a cap, pairs that can see each other are those of lists,
    /// and have no reach here.
    #[inline]
    pub fn reach(&self, observer: u16, subject: u16) -> Option<Reach> {
        let there = self.own_reach(observer, subject);
        if self.rules.cap.is_some() && self.own_reach(subject, observer).is_some() {
            return None;
        }
        there
    }

    #[inline]
    fn own_reach(&self, observer: u16, subject: u16) -> Option<Reach> {
        let (of, kind) = (&self.list[usize::from(observer)], self.list[usize::from(subject)].kind);
        let reach = match of.sight.kinds {
            Some(kinds) if !kinds.has(kind) => None,
            Some(_) => of.sight.reach.or_else(|| self.ruled(of.kind, kind)),
            None => self.ruled(of.kind, kind).map(|ruled| of.sight.reach.unwrap_or(ruled)),
        };
        reach.filter(|reach| *reach != Reach::Rings(RangeSet::NONE))
    }

    #[inline]
    fn ruled(&self, observer: u8, subject: u8) -> Option<Reach> {
        match self.rows.get(usize::from(observer)) {
            Some(Some(row)) => row.reach[usize::from(subject)],
            _ => self.rules.reach,
        }
    }

    /// How far two classes see each other, if both do.
    #[inline]
    pub fn mutual(&self, a: u16, b: u16) -> Option<[Reach; 2]> {
        Some([self.own_reach(a, b)?, self.own_reach(b, a)?])
    }

    /// The longest leave radius of an observing class, centimetres; 0 without circles.
    pub fn farthest_cm(&self, class: u16) -> i32 {
        longest(self.used_by(&self.list[usize::from(class)]), |radii| radii.leave_cm)
    }

    /// The longest leave radius in use, centimetres; 0 without circles.
    pub fn most_cm(&self) -> i32 {
        longest(self.used(), |radii| radii.leave_cm)
    }

    /// The longest enter radius in use, centimetres; 0 without circles.
    pub fn most_enter_cm(&self) -> i32 {
        longest(self.used(), |radii| radii.enter_cm)
    }

    /// The longest leave radius of most observers, centimetres: few see farther.
    pub fn usual_cm(&self) -> i32 {
        let observers = (0..self.list.len() as u16)
            .map(|class| (self.farthest_cm(class), self.list[usize::from(class)].uses as usize));
        let mut observers: Vec<_> = observers.filter(|(cm, _)| *cm > 0).collect();
        observers.sort_unstable();
        let mut few = observers.iter().map(|(_, uses)| uses).sum::<usize>() / FEW;
        while let [.., _, (_, uses)] = &observers[..]
            && *uses <= few
        {
            few -= uses;
            observers.pop();
        }
        observers.last().map_or(0, |(cm, _)| *cm)
    }

    /// Every reach that a class in use may have, or one that is remembered.
    pub fn used(&self) -> impl Iterator<Item = Reach> {
        self.list.iter().flat_map(|class| self.used_by(class))
    }

    fn used_by<'a>(&'a self, class: &Class) -> impl Iterator<Item = Reach> + use<'a> {
        let row = self.rows.get(usize::from(class.kind)).and_then(Option::as_ref);
        let ruled = match class.sight.reach {
            Some(_) => &[][..],
            None => row.map_or(self.rules.reach.as_slice(), |row| &row.distinct),
        };
        class.sight.reach.into_iter().chain(ruled.iter().copied())
    }
}

fn longest(reaches: impl Iterator<Item = Reach>, of: impl Fn(Radii) -> i32) -> i32 {
    let radius = |reach| if let Reach::Circle(radii) = reach { of(radii) } else { 0 };
    reaches.map(radius).max().unwrap_or(0)
}

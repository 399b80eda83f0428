//! Classes: entities of one kind and one [`Sight`]. What one class sees of another is looked up in a
//! table, so that the engines know neither kinds nor rules.

use rustc_hash::FxHashMap;

use super::request::{MOST_CLASSES, Sight};
use super::rules::{Reach, Rules};
use crate::scene::RangeSet;

/// The class of entities that do not exist.
pub const NOBODY: u16 = u16::MAX;

#[derive(Debug, Clone)]
struct Class {
    kind: u8,
    sight: Sight,
    uses: u32,
    /// By kind of the subject.
    reach: Box<[Option<Reach>; 256]>,
}

/// The classes in use.
#[derive(Debug, Clone)]
pub struct Classes {
    rules: Rules,
    list: Vec<Class>,
    free: Vec<u16>,
    by_key: FxHashMap<(u8, Sight), u16>,
}

impl Classes {
    pub fn new(rules: Rules) -> Classes {
        Classes { rules, list: Vec::new(), free: Vec::new(), by_key: FxHashMap::default() }
    }

    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The class of a kind and sight, used once more; `None` if there are too many.
    pub fn take(&mut self, kind: u8, sight: Sight) -> Option<u16> {
        if let Some(class) = self.by_key.get(&(kind, sight)) {
            self.list[*class as usize].uses += 1;
            return Some(*class);
        }
        let made = Class { kind, sight, uses: 1, reach: self.row(kind, sight) };
        let class = match self.free.pop() {
            Some(class) => {
                self.list[class as usize] = made;
                class
            }
            None if self.list.len() < MOST_CLASSES => {
                self.list.push(made);
                (self.list.len() - 1) as u16
            }
            None => return None,
        };
        self.by_key.insert((kind, sight), class);
        Some(class)
    }

    fn row(&self, kind: u8, sight: Sight) -> Box<[Option<Reach>; 256]> {
        let mut row = Box::new([None; 256]);
        for (subject, reach) in row.iter_mut().enumerate() {
            let ruled = self.rules.reach_of(kind, subject as u8);
            *reach = match sight.kinds {
                Some(kinds) if !kinds.has(subject as u8) => None,
                Some(_) => sight.reach.or(ruled),
                None => ruled.map(|ruled| sight.reach.unwrap_or(ruled)),
            };
            *reach = reach.filter(|reach| *reach != Reach::Rings(RangeSet::NONE));
        }
        row
    }

    /// One use less. A class without uses is forgotten.
    pub fn release(&mut self, class: u16) {
        let of = &mut self.list[class as usize];
        of.uses -= 1;
        if of.uses == 0 {
            self.by_key.remove(&(of.kind, of.sight));
            self.free.push(class);
        }
    }

    /// Kind and sight of a class.
    pub fn of(&self, class: u16) -> (u8, Sight) {
        let class = &self.list[class as usize];
        (class.kind, class.sight)
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
        let kind = self.list[subject as usize].kind;
        self.list[observer as usize].reach[kind as usize]
    }

    /// How far two classes see each other, if both do.
    #[inline]
    pub fn mutual(&self, a: u16, b: u16) -> Option<[Reach; 2]> {
        Some([self.own_reach(a, b)?, self.own_reach(b, a)?])
    }

    /// The longest leave radius in use, centimetres; 0 without circles.
    pub fn most_cm(&self) -> i32 {
        self.used()
            .map(|reach| if let Reach::Circle(r) = reach { r.leave_cm } else { 0 })
            .max()
            .unwrap_or(0)
    }

    /// The longest enter radius in use, centimetres; 0 without circles.
    pub fn most_enter_cm(&self) -> i32 {
        self.used()
            .map(|reach| if let Reach::Circle(r) = reach { r.enter_cm } else { 0 })
            .max()
            .unwrap_or(0)
    }

    /// Every reach of a class in use, or no longer in use but remembered.
    pub fn used(&self) -> impl Iterator<Item = Reach> {
        self.list.iter().flat_map(|class| class.reach.iter().flatten().copied())
    }
}

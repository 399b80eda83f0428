//! A whole world of observers and subjects: the core of a service that any game server can use.
//!
//! The caller chooses ids, kinds and planes. [`Rules`] say how far each kind sees each other kind;
//! an entity may differ from them by its [`Sight`]. Requests come in during a tick.
//! [`World::tick`] then answers with the net difference from the tick before, one [`Event`] for each
//! pair of observer and subject that changed. Whoever applies all events to a set of pairs has the
//! pairs of observers and subjects at the end of every tick.
//!
//! ```
//! use purview::interest::{Entity, Event, Mode, Radii, Reach, Request, Rules, Sight, World};
//! use purview::scene::{Pos, Rect};
//!
//! let ground = Rect { x0: 0, z0: 0, x1: 102_400, z1: 102_400 }; // centimetres
//! let eyes = Reach::Circle(Radii::new(8_000, 8_500));
//! let mut world = World::new(Rules::new(ground, Mode::Circle, eyes))?;
//! let at = |id, x| Entity {
//!     id,
//!     kind: 0,
//!     plane: 0,
//!     pos: Pos::ground(x, 50_000),
//!     sight: Sight::default(),
//! };
//! world.request(&Request::Create(at(7, 10_000)))?;
//! world.request(&Request::Create(at(9, 30_000)))?;
//! assert!(world.tick().is_empty());
//!
//! world.request(&Request::Move { id: 9, pos: Pos::ground(18_000, 50_000) })?;
//! let event = |observer, subject| Event { observer, subject, appears: true };
//! assert_eq!(world.tick(), [event(7, 9), event(9, 7)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - **Net.** A pair that changes and changes back within a tick has no event.
//! - **Order.** Events sort by observer, then subject. The outcome depends on the requests alone,
//!   not on the number of threads.
//! - **Deleted entities.** All their pairs disappear, as observer and as subject. An entity that
//!   takes the id of a deleted one is another entity: pairs disappear, and appear anew.
//! - **Kinds that do not observe** cost their place in the index.
//! - **Lists.** With a [`Cap`], an entity sees at most so many of those that see it, too: the
//!   nearest ones, and before them those with a bond.
//! - **Positions.** Where [`Rules::positions`] says so, [`World::positions`] are those of subjects
//!   that have moved or were not seen before.
//!
//! | mode | work per tick |
//! |---|---|
//! | [`Mode::Patches`] | entities that change patch, plane, kind or sight |
//! | [`Mode::Circle`] | pairs of groups of eight entities near each other's radius |
//! | [`Mode::All`] | entities that come, go or change plane, kind or sight |

use std::sync::Arc;

mod bonds;
mod changes;
mod classes;
mod clusters;
mod lists;
mod positions;
mod query;
mod radix;
mod ranks;
mod report;
mod request;
mod rings;
mod rules;
mod share;
mod slots;
mod tick;
mod worlds;

use self::changes::Changes;
use self::classes::{Classes, NOBODY};
use self::clusters::Clusters;
use self::lists::Lists;
use self::positions::Positions;
pub use self::query::{Area, Place};
use self::ranks::Ranks;
use self::report::Report;
pub use self::request::{
    BONDS, Entity, Event, MOST_BONDED, MOST_CLASSES, MOST_ENTITIES, Position, Request,
    RequestError, Sight,
};
use self::rings::Rings;
pub use self::rules::{
    Cap, KindSet, MOST_CAP, MOST_LEAVE_CM, MOST_MARGIN_CM, MOST_PATCHES, Mode, PairRule, Radii,
    Reach, ReachError, Rules, RulesError,
};
use self::slots::Slots;
pub use self::tick::{TickBounds, TickError};
pub use self::worlds::{SceneError, SceneEvents, SceneRequest, Worlds};
use crate::scene::Pos;
use crate::scene::workers::{OneThread, Workers};

/// What decides the pairs of an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    pos: Pos,
    plane: i32,
    /// [`NOBODY`]: the entity does not exist.
    class: u16,
}

const NOWHERE: State = State { pos: Pos { x: 0, y: 0, z: 0 }, plane: 0, class: NOBODY };

#[derive(Debug, Clone)]
enum Engine {
    Rings(Box<Rings>),
    Clusters(Box<Clusters>),
}

/// What an engine sees of a world when a tick ends.
#[derive(Debug, Clone, Copy)]
struct View<'a> {
    states: &'a [State],
    ids: &'a [u64],
    classes: &'a Classes,
    workers: &'a dyn Workers,
    /// Number of entities.
    population: usize,
    /// The lists of a world with a cap, by slot, as they were when the last tick ended.
    lists: &'a [Vec<u32>],
}

impl View<'_> {
    /// Whether a subject was in the list of an observer.
    fn is_listed(&self, observer: u32, subject: u32) -> bool {
        self.lists.get(observer as usize).is_some_and(|list| list.contains(&subject))
    }
}

/// Bytes of an entity, without its pairs: an upper bound in all modes.
const ENTITY_BYTES: usize = 640;

/// Bytes of a world without entities.
const WORLD_BYTES: usize = 16 << 10;

/// Empties a buffer, and keeps memory for a few times what it held: a tick in which all entities
/// appear must not cost memory for ever.
fn clear<T>(buffer: &mut Vec<T>) {
    let keep = 4 * buffer.len() + 1_024;
    buffer.clear();
    buffer.shrink_to(keep);
}

/// The entities of a scene, and what they see of each other.
#[derive(Debug, Clone)]
pub struct World {
    classes: Classes,
    engine: Engine,
    workers: Arc<dyn Workers>,
    slots: Slots,
    ids: Vec<u64>,
    ranks: Ranks,
    states: Vec<State>,
    free: Vec<u32>,
    /// Slots of deleted entities: free when the tick has ended.
    deleted: Vec<u32>,
    /// Only with a cap.
    lists: Option<Box<Lists>>,
    /// Only if the rules ask for them.
    positions: Option<Box<Positions>>,
    changes: Changes,
    report: Report,
    events: Vec<Event>,
    /// Pairs of observer and subject when the last tick ended.
    pairs: usize,
}

impl World {
    /// A world without entities.
    ///
    /// # Errors
    /// The rules are not legal.
    pub fn new(rules: Rules) -> Result<World, RulesError> {
        rules.check()?;
        let engine = match rules.mode {
            Mode::Circle => Engine::Clusters(Box::new(Clusters::new(rules.ground))),
            Mode::Patches { patch_cm } => Engine::Rings(Box::new(Rings::new(&rules, patch_cm))),
            Mode::All => Engine::Rings(Box::new(Rings::new(&rules, i32::MAX))),
        };
        Ok(World {
            lists: rules.cap.map(|cap| Box::new(Lists::new(cap))),
            positions: rules.positions.then(Box::default),
            classes: Classes::new(rules),
            engine,
            workers: Arc::new(OneThread),
            slots: Slots::default(),
            ids: Vec::new(),
            ranks: Ranks::default(),
            states: Vec::new(),
            free: Vec::new(),
            deleted: Vec::new(),
            changes: Changes::default(),
            report: Report::default(),
            events: Vec::new(),
            pairs: 0,
        })
    }

    /// Lets the end of a tick use several threads. Small worlds use fewer than there are. Events do
    /// not depend on it.
    pub fn set_workers(&mut self, workers: Arc<dyn Workers>) {
        self.workers = workers;
    }

    /// The rules.
    pub fn rules(&self) -> &Rules {
        self.classes.rules()
    }

    /// Number of entities.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// An entity as it is now.
    pub fn get(&self, id: u64) -> Option<Entity> {
        let State { pos, plane, class } = self.states[self.slots.get(id)? as usize];
        let (kind, sight) = self.classes.of(class);
        Some(Entity { id, kind, plane, pos, sight })
    }

    /// Applies all requests in order. Returns the refused ones: their place in the batch, and why.
    /// The others are not affected.
    pub fn request_all<'a>(
        &mut self,
        requests: impl IntoIterator<Item = &'a Request>,
    ) -> Vec<(usize, RequestError)> {
        let items = requests.into_iter().enumerate();
        items.filter_map(|(item, request)| Some((item, self.request(request).err()?))).collect()
    }

    /// Applies a request.
    ///
    /// # Errors
    /// Why it is refused. The world is unchanged then.
    pub fn request(&mut self, request: &Request) -> Result<(), RequestError> {
        match *request {
            Request::Create(entity) => self.create(entity),
            Request::Move { id, pos } => self.move_to(id, pos),
            Request::Delete(id) => self.delete(id),
            Request::SetPlane { id, plane } => self.set_plane(id, plane),
            Request::SetKind { id, kind } => self.set_kind(id, kind),
            Request::SetReach { id, reach } => self.set_reach(id, reach),
            Request::SetKinds { id, kinds } => self.set_kinds(id, kinds),
            Request::SetBond { id, strength, group } => self.set_bond(id, strength, group),
        }
    }

    /// Creates an entity.
    ///
    /// # Errors
    /// The id is in use, the position is not on the ground, the reach is not legal, or the world is
    /// full.
    pub fn create(&mut self, entity: Entity) -> Result<(), RequestError> {
        let Entity { id, kind, plane, pos, sight } = entity;
        if self.slots.contains(id) {
            return Err(RequestError::Duplicate(id));
        }
        self.check_pos(id, pos)?;
        self.check_reach(id, sight.reach)?;
        if self.free.is_empty() && self.ids.len() >= MOST_ENTITIES {
            return Err(RequestError::Full(id));
        }
        let class = self.classes.take(kind, sight).ok_or(RequestError::TooManyClasses(id))?;
        let slot = self.free.pop().unwrap_or(self.ids.len() as u32);
        if slot as usize == self.ids.len() {
            self.ids.push(id);
            self.states.push(NOWHERE);
        }
        self.ids[slot as usize] = id;
        self.states[slot as usize] = State { pos, plane, class };
        self.slots.insert(id, slot);
        self.ranks.add(id, slot);
        self.touch(slot);
        Ok(())
    }

    /// Moves an entity, by any distance.
    ///
    /// # Errors
    /// The id is unknown, or the position is not on the ground.
    #[inline]
    pub fn move_to(&mut self, id: u64, pos: Pos) -> Result<(), RequestError> {
        let World { slots, states, ids, .. } = self;
        let is_there = |slot: u32| {
            let (state, own) = (states.get(slot as usize), ids.get(slot as usize));
            own == Some(&id) && state.is_some_and(|state| state.class != NOBODY)
        };
        let slot = slots.follow(id, is_there).ok_or(RequestError::Unknown(id))?;
        self.check_pos(id, pos)?;
        let before = std::mem::replace(&mut self.states[slot as usize].pos, pos);
        if let Some(lists) = &mut self.lists
            && before != pos
        {
            lists.touch(slot);
        }
        if let Some(positions) = &mut self.positions {
            positions.moved(slot);
        }
        match &mut self.engine {
            Engine::Rings(e) => e.moved(slot, pos),
            Engine::Clusters(e) => e.moved(slot, pos),
        }
        Ok(())
    }

    /// Deletes an entity.
    ///
    /// # Errors
    /// The id is unknown.
    pub fn delete(&mut self, id: u64) -> Result<(), RequestError> {
        let slot = self.slot(id)?;
        self.slots.remove(id);
        self.classes.release(self.states[slot as usize].class);
        self.states[slot as usize].class = NOBODY;
        if let Some(lists) = &mut self.lists {
            lists.bonds.forget(slot);
        }
        self.deleted.push(slot);
        self.touch(slot);
        Ok(())
    }

    /// Moves an entity to another plane.
    ///
    /// # Errors
    /// The id is unknown.
    pub fn set_plane(&mut self, id: u64, plane: i32) -> Result<(), RequestError> {
        let slot = self.slot(id)?;
        self.states[slot as usize].plane = plane;
        self.touch(slot);
        Ok(())
    }

    /// Changes the kind of an entity.
    ///
    /// # Errors
    /// The id is unknown, or too many combinations of kind and sight are in use.
    pub fn set_kind(&mut self, id: u64, kind: u8) -> Result<(), RequestError> {
        self.set_class(id, |(_, sight)| (kind, sight))
    }

    /// Changes how far an entity sees; `None`: as far as the rules say.
    ///
    /// # Errors
    /// As [`World::set_kind`], or the reach is not legal.
    pub fn set_reach(&mut self, id: u64, reach: Option<Reach>) -> Result<(), RequestError> {
        self.slot(id)?;
        self.check_reach(id, reach)?;
        self.set_class(id, |(kind, sight)| (kind, Sight { reach, ..sight }))
    }

    /// Changes the kinds that an entity observes; `None`: those that the rules say.
    ///
    /// # Errors
    /// As [`World::set_kind`].
    pub fn set_kinds(&mut self, id: u64, kinds: Option<KindSet>) -> Result<(), RequestError> {
        self.set_class(id, |(kind, sight)| (kind, Sight { kinds, ..sight }))
    }

    /// Makes an entity a member of a group of bonded entities; group 0: of none.
    ///
    /// # Errors
    /// The id is unknown, the world has no cap, no bond has this strength, or the group is full.
    pub fn set_bond(&mut self, id: u64, strength: u8, group: u64) -> Result<(), RequestError> {
        let slot = self.slot(id)?;
        let lists = self.lists.as_mut().ok_or(RequestError::NoCap(id))?;
        if usize::from(strength) >= BONDS {
            return Err(RequestError::Strength { id, strength });
        }
        let is_member = lists.set_bond(slot, strength, group);
        if is_member { Ok(()) } else { Err(RequestError::GroupFull { id, group }) }
    }

    /// The groups of an entity, by strength; 0: none.
    pub fn bonds(&self, id: u64) -> [u64; BONDS] {
        let lists = self.lists.as_ref().zip(self.slots.get(id));
        lists.map_or([0; BONDS], |(lists, slot)| lists.bonds.of(slot))
    }

    fn set_class(
        &mut self,
        id: u64,
        change: impl Fn((u8, Sight)) -> (u8, Sight),
    ) -> Result<(), RequestError> {
        let slot = self.slot(id)?;
        let old = self.states[slot as usize].class;
        let (kind, sight) = change(self.classes.of(old));
        let (class, is_changed) = self.classes.change(old, kind, sight);
        self.states[slot as usize].class = class;
        if !is_changed {
            return Err(RequestError::TooManyClasses(id));
        }
        self.touch(slot);
        Ok(())
    }

    #[inline]
    fn slot(&self, id: u64) -> Result<u32, RequestError> {
        self.slots.get(id).ok_or(RequestError::Unknown(id))
    }

    #[inline]
    fn check_pos(&self, id: u64, pos: Pos) -> Result<(), RequestError> {
        let is_inside = self.rules().ground.contains(pos);
        if is_inside { Ok(()) } else { Err(RequestError::OutOfBounds { id, pos }) }
    }

    fn check_reach(&self, id: u64, reach: Option<Reach>) -> Result<(), RequestError> {
        let check = |reach| self.rules().check_reach(reach);
        reach.map_or(Ok(()), check).map_err(|why| RequestError::Reach { id, why })
    }

    /// Anything but a position may have changed.
    fn touch(&mut self, slot: u32) {
        let state = self.states[slot as usize];
        if let Some(lists) = &mut self.lists {
            lists.touch(slot);
        }
        match &mut self.engine {
            Engine::Rings(e) => e.touched(slot, state.pos),
            Engine::Clusters(e) => e.touched(slot),
        }
    }

    /// Pairs of observer and subject when the last tick ended.
    pub fn pairs(&self) -> usize {
        self.pairs
    }

    /// Bytes of the world, without its pairs: an upper bound for any positions.
    pub fn bytes(&self) -> usize {
        let lists = self.lists.as_ref().map_or(0, |lists| lists.bytes());
        WORLD_BYTES + self.ids.len() * ENTITY_BYTES + self.classes.bytes() + lists
    }
}

/// A view of a world's parts.
fn view_of<'a>(
    states: &'a [State],
    ids: &'a [u64],
    classes: &'a Classes,
    workers: &'a dyn Workers,
    population: usize,
) -> View<'a> {
    View { states, ids, classes, workers, population, lists: &[] }
}

#[cfg(test)]
mod tests;

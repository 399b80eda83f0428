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
//!
//! | mode | work per tick |
//! |---|---|
//! | [`Mode::Patches`] | entities that change patch, plane, kind or sight |
//! | [`Mode::Circle`] | pairs of groups of eight entities near each other's radius |
//! | [`Mode::All`] | entities that come, go or change plane, kind or sight |

mod classes;
mod clusters;
mod ranks;
mod request;
mod rings;
mod rules;
mod share;
mod worlds;

use rustc_hash::FxHashMap;

use self::classes::{Classes, NOBODY};
use self::clusters::Clusters;
use self::ranks::Ranks;
pub use self::request::{Entity, Event, MOST_CLASSES, MOST_ENTITIES, Request, RequestError, Sight};
use self::rings::Rings;
pub use self::rules::{
    KindSet, MOST_LEAVE_CM, MOST_PATCHES, Mode, PairRule, Radii, Reach, ReachError, Rules,
    RulesError,
};
pub use self::worlds::{SceneError, SceneEvents, SceneRequest, Worlds};
use crate::scene::Pos;

/// What decides the pairs of an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    pos: Pos,
    plane: i32,
    /// [`NOBODY`]: the entity does not exist.
    class: u16,
}

const NOWHERE: State = State { pos: Pos { x: 0, y: 0, z: 0 }, plane: 0, class: NOBODY };

/// A changed pair, by slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Change {
    observer: u32,
    subject: u32,
    appears: bool,
}

#[derive(Debug, Clone)]
enum Engine {
    Rings(Box<Rings>),
    Clusters(Box<Clusters>),
}

/// What an engine sees of a world when a tick ends.
#[derive(Debug, Clone, Copy)]
struct View<'a> {
    states: &'a [State],
    classes: &'a Classes,
    threads: usize,
    /// Number of entities.
    population: usize,
}

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
    threads: usize,
    slots: FxHashMap<u64, u32>,
    ids: Vec<u64>,
    ranks: Ranks,
    states: Vec<State>,
    free: Vec<u32>,
    /// Slots of deleted entities: free when the tick has ended.
    deleted: Vec<u32>,
    /// Classes that entities had: released when the tick has ended.
    retired: Vec<u16>,
    changes: Vec<Change>,
    events: Vec<Event>,
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
            classes: Classes::new(rules),
            engine,
            threads: 1,
            slots: FxHashMap::default(),
            ids: Vec::new(),
            ranks: Ranks::default(),
            states: Vec::new(),
            free: Vec::new(),
            deleted: Vec::new(),
            retired: Vec::new(),
            changes: Vec::new(),
            events: Vec::new(),
        })
    }

    /// Lets the end of a tick use up to so many threads, at least 1 (the default). Small worlds use
    /// fewer. Events do not depend on it.
    pub fn set_threads(&mut self, threads: usize) {
        self.threads = threads.max(1);
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
        let State { pos, plane, class } = self.states[*self.slots.get(&id)? as usize];
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
            Request::SetKind { id, kind } => self.set_class(id, |(_, sight)| (kind, sight)),
            Request::SetReach { id, reach } => {
                self.check_reach(id, reach)?;
                self.set_class(id, |(kind, sight)| (kind, Sight { reach, ..sight }))
            }
            Request::SetKinds { id, kinds } => {
                self.set_class(id, |(kind, sight)| (kind, Sight { kinds, ..sight }))
            }
        }
    }

    /// Creates an entity.
    ///
    /// # Errors
    /// The id is in use, the position is not on the ground, the reach is not legal, or the world is
    /// full.
    pub fn create(&mut self, entity: Entity) -> Result<(), RequestError> {
        let Entity { id, kind, plane, pos, sight } = entity;
        if self.slots.contains_key(&id) {
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
        let slot = self.slot(id)?;
        self.check_pos(id, pos)?;
        self.states[slot as usize].pos = pos;
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
        self.slots.remove(&id);
        self.retired.push(self.states[slot as usize].class);
        self.states[slot as usize].class = NOBODY;
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

    fn set_class(
        &mut self,
        id: u64,
        change: impl Fn((u8, Sight)) -> (u8, Sight),
    ) -> Result<(), RequestError> {
        let slot = self.slot(id)?;
        let old = self.states[slot as usize].class;
        let (kind, sight) = change(self.classes.of(old));
        let class = self.classes.take(kind, sight).ok_or(RequestError::TooManyClasses(id))?;
        self.retired.push(old);
        self.states[slot as usize].class = class;
        self.touch(slot);
        Ok(())
    }

    #[inline]
    fn slot(&self, id: u64) -> Result<u32, RequestError> {
        self.slots.get(&id).copied().ok_or(RequestError::Unknown(id))
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
        match &mut self.engine {
            Engine::Rings(e) => e.touched(slot, state.pos),
            Engine::Clusters(e) => e.touched(slot),
        }
    }

    /// Ends the tick: returns the net changes since the end of the tick before, in order.
    pub fn tick(&mut self) -> &[Event] {
        clear(&mut self.changes);
        clear(&mut self.events);
        let view = View {
            states: &self.states,
            classes: &self.classes,
            threads: self.threads,
            population: self.slots.len(),
        };
        match &mut self.engine {
            Engine::Rings(e) => e.tick(view, &mut self.changes),
            Engine::Clusters(e) => e.tick(view, &mut self.changes),
        }
        let ids = &self.ids;
        self.ranks.update(ids.len(), |id, slot| ids[slot as usize] == id);
        self.ranks.sort(&self.changes, &mut self.events);
        self.free.append(&mut self.deleted);
        self.retired.drain(..).for_each(|class| self.classes.release(class));
        &self.events
    }
}

#[cfg(test)]
mod tests;

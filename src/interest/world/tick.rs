//! The end of a tick: engines find what has changed, then it is checked against bounds, and then all
//! of it is committed or taken back.

use super::changes::Room;
use super::{Engine, Event, Position, View, World, view_of};

/// Room for an event.
const NO_EVENT: Event = Event { observer: 0, subject: 0, appears: false };

/// What a tick may lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TickBounds {
    /// Most pairs that change.
    pub events: usize,
    /// Most pairs of observer and subject when it has ended.
    pub pairs: usize,
}

impl TickBounds {
    /// Without bounds.
    pub const NONE: TickBounds = TickBounds { events: usize::MAX, pairs: usize::MAX };
}

/// Why a tick did not end. Requests can be made, and the tick can be ended again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TickError {
    /// More pairs change than may.
    #[error("the tick would change more than {0} pairs")]
    Events(usize),
    /// There would be more pairs than there may be.
    #[error("there would be {found} pairs; at most {most} may be")]
    Pairs {
        /// Pairs after the tick.
        found: usize,
        /// Most pairs.
        most: usize,
    },
}

impl World {
    /// Ends the tick: returns the net changes since the end of the tick before, in order. A service
    /// that wants bounds, or large outcomes in parts, has [`World::end_tick`].
    pub fn tick(&mut self) -> &[Event] {
        // Without bounds nothing is refused.
        let count = self.end_tick(TickBounds::NONE).unwrap_or_default();
        let keep = 4 * self.events.len().max(count) + 1_024;
        // What is told overwrites what is there.
        self.events.resize(count, NO_EVENT);
        self.events.shrink_to(keep);
        let mut events = std::mem::take(&mut self.events);
        self.tell(&mut events);
        self.events = events;
        &self.events
    }

    /// Ends the tick within bounds: returns the number of events, which [`World::take_events`] gives.
    ///
    /// # Errors
    /// More changes than may. The tick has not ended: no event has happened, and requests still
    /// count from the end of the tick before.
    pub fn end_tick(&mut self, bounds: TickBounds) -> Result<usize, TickError> {
        self.changes.clear();
        let mark = self.find_changes(bounds.events);
        if let Err(error) = self.check_tick(bounds) {
            self.undo_tick(mark);
            return Err(error);
        }
        if self.lists.is_some() {
            self.changes.cancel();
        }
        self.commit_tick();
        Ok(self.report.left())
    }

    /// Finds what has changed; returns how many changes are not of lists.
    fn find_changes(&mut self, most: usize) -> usize {
        let World { states, ids, classes, workers, slots, engine, lists, changes, .. } = self;
        let (population, workers, room) = (slots.len(), &**workers, Room::new(most));
        let listed = lists.as_ref().map_or(&[][..], |lists| lists.all());
        let view = View { lists: listed, ..view_of(states, ids, classes, workers, population) };
        match engine {
            Engine::Rings(e) => e.tick(view, &room, changes),
            Engine::Clusters(e) => e.tick(view, &room, changes),
        }
        let mark = changes.len();
        if let Some(lists) = lists
            && mark <= most
        {
            lists.tick(view_of(states, ids, classes, workers, population), changes);
        }
        mark
    }

    fn check_tick(&self, TickBounds { events, pairs }: TickBounds) -> Result<(), TickError> {
        if self.changes.len() > events {
            return Err(TickError::Events(events));
        }
        let found = self.pairs.saturating_add_signed(self.changes.gain());
        if found > pairs && found > self.pairs {
            return Err(TickError::Pairs { found, most: pairs });
        }
        Ok(())
    }

    fn undo_tick(&mut self, mark: usize) {
        let of_lists = self.changes.split_off(mark);
        if let Some(lists) = &mut self.lists {
            lists.undo(&of_lists);
        }
        match &mut self.engine {
            Engine::Rings(e) => e.undo(),
            Engine::Clusters(e) => e.undo(&self.changes),
        }
        self.changes.clear();
    }

    fn commit_tick(&mut self) {
        self.pairs = self.pairs.saturating_add_signed(self.changes.gain());
        let World { states, ids, classes, workers, slots, .. } = self;
        let view = view_of(states, ids, classes, &**workers, slots.len());
        match &mut self.engine {
            Engine::Rings(e) => e.commit(view.workers),
            Engine::Clusters(e) => e.commit(view),
        }
        if let Some(positions) = &mut self.positions {
            positions.tick(view, &self.changes);
        }
        if let Some(lists) = &mut self.lists {
            lists.commit(states);
        }
        let ids = &self.ids;
        self.ranks.update(ids.len(), |id, slot| ids[slot as usize] == id);
        self.report.begin(&self.changes);
        self.free.append(&mut self.deleted);
        self.classes.settle();
    }

    /// Adds the next events of the tick that ended last, at most so many, in order. A large outcome
    /// is never in memory as a whole. Returns how many are left.
    pub fn take_events(&mut self, most: usize, events: &mut Vec<Event>) -> usize {
        let from = events.len();
        events.resize(from + most.min(self.report.left()), NO_EVENT);
        self.tell(&mut events[from..]);
        self.report.left()
    }

    fn tell(&mut self, room: &mut [Event]) {
        let World { report, ranks, changes, workers, .. } = self;
        report.tell((ranks.keys(), changes), &**workers, room);
        if report.left() == 0 {
            changes.clear();
        }
    }

    /// What the last [`World::tick`] returned.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Where [`Rules::positions`](super::Rules::positions) says so: subjects that were moved in the tick that ended last, or
    /// that no entity had seen before, by ascending ids. So the caller knows where every subject is
    /// that any entity sees.
    pub fn positions(&self) -> &[Position] {
        self.positions.as_ref().map_or(&[], |positions| positions.told())
    }
}

//! Sighted and lost: what logic was told adds up to what entities have in sight, and that is what brute force finds.
//!
//! | when | what must hold |
//! |---|---|
//! | a region calls its logic | what its logic was told of an entity since that entity came is what the entity has in sight |
//! | an entity goes to another region | it comes with what it had in sight when it left |
//! | a tick is over | what an entity has in sight is what is within its radii |
//!
//! The first two hold whatever happens to regions: the logic of a region that has begun is told everything anew, and so
//! is that of a region to which an entity comes back from an older state.

use std::collections::{BTreeMap, BTreeSet};

use purview::scene::messages::{EnterCause, LeaveCause, LogicEvent};
use purview::scene::{EntityId, Epoch, Plane, Pos, Region, RegionId};

use super::super::{Invariant, Judge, Wrong};
use crate::game::rules::{MONSTER, PLAYER};

type Sights = BTreeSet<EntityId>;

/// What an entity has in sight, by what the logic of its region was told.
#[derive(Debug, Clone)]
struct Stay {
    epoch: Epoch,
    told: Sights,
}

#[derive(Debug, Default)]
pub(super) struct Watching {
    stays: BTreeMap<(RegionId, EntityId), Stay>,
    /// What each had in sight when it went to another region last, and the epoch that it had before.
    gone: BTreeMap<EntityId, Stay>,
    /// What each had in sight when it came from another region last, and the epoch that it has since.
    come: BTreeMap<EntityId, Stay>,
}

/// What is told of an entity in one call since it has come.
#[derive(Debug, Default)]
struct News {
    changes: Vec<(EntityId, bool)>,
    by_handoff: bool,
}

fn wrong(watcher: EntityId, id: EntityId, text: String) -> Wrong {
    (Invariant::Sighted, vec![watcher, id], text)
}

fn before(watcher: EntityId, now: &Sights, changes: &[(EntityId, bool)]) -> Result<Sights, Wrong> {
    let mut sights = now.clone();
    for (id, came) in changes.iter().rev() {
        let fits = if *came { sights.remove(id) } else { sights.insert(*id) };
        if !fits {
            let what = if *came { "sighted" } else { "lost" };
            let text = format!("{watcher} has {now:?} in sight, and has {what} {id}");
            return Err(wrong(watcher, *id, text));
        }
    }
    Ok(sights)
}

fn sights(region: &Region, watcher: EntityId) -> Sights {
    region.sighted_by(watcher).iter().copied().collect()
}

impl Watching {
    pub fn told(&mut self, region: &Region, events: &[LogicEvent]) -> Result<(), Wrong> {
        let here = region.id();
        let mut new: BTreeMap<EntityId, News> = BTreeMap::new();
        for event in events {
            match event {
                LogicEvent::Started { .. } => self.stays.retain(|(of, _), _| *of != here),
                LogicEvent::Entered { id, cause } => {
                    self.stays.remove(&(here, *id));
                    let by_handoff = matches!(cause, EnterCause::HandedOff(..));
                    new.insert(*id, News { by_handoff, changes: Vec::new() });
                }
                LogicEvent::Left { id, cause, .. } => {
                    let (stay, _) = (self.stays.remove(&(here, *id)), new.remove(id));
                    if let (Some(stay), LeaveCause::HandedOff(_)) = (stay, cause) {
                        self.gone.insert(*id, stay);
                        self.goes_along(*id)?;
                    }
                }
                LogicEvent::Sighted { watcher, id } => {
                    self.changes(here, *watcher, (*id, true), &mut new)?;
                }
                LogicEvent::Lost { watcher, id } => {
                    self.changes(here, *watcher, (*id, false), &mut new)?;
                }
                _ => {}
            }
        }
        self.adds_up(region, &new)
    }

    fn changes(
        &mut self,
        here: RegionId,
        watcher: EntityId,
        (id, came): (EntityId, bool),
        new: &mut BTreeMap<EntityId, News>,
    ) -> Result<(), Wrong> {
        let Some(stay) = self.stays.get_mut(&(here, watcher)) else {
            new.entry(watcher).or_default().changes.push((id, came));
            return Ok(());
        };
        let fits = if came { stay.told.insert(id) } else { stay.told.remove(&id) };
        let text = if came { "sighted it twice" } else { "lost it without having sighted it" };
        fits.then_some(()).ok_or_else(|| wrong(watcher, id, format!("{watcher} and {id}: {text}")))
    }

    fn adds_up(&mut self, region: &Region, new: &BTreeMap<EntityId, News>) -> Result<(), Wrong> {
        for watcher in region.lives_here(MONSTER) {
            let (id, now, epoch) = (watcher.id, sights(region, watcher.id), watcher.epoch);
            let key = (region.id(), id);
            if let Some(stay) = self.stays.get_mut(&key) {
                if stay.told != now {
                    let text = format!("{id} has {now:?} in sight, and was told {:?}", stay.told);
                    return Err((Invariant::Sighted, vec![id], text));
                }
                stay.epoch = epoch;
                continue;
            }
            let news = new.get(&id);
            let told = before(id, &now, news.map_or(&[], |news| &news.changes))?;
            if news.is_some_and(|news| news.by_handoff) {
                self.come.insert(id, Stay { epoch, told });
                self.goes_along(id)?;
            }
            self.stays.insert(key, Stay { epoch, told: now });
        }
        Ok(())
    }

    /// What an entity has in sight goes with it to the next region.
    fn goes_along(&self, id: EntityId) -> Result<(), Wrong> {
        let both = self.gone.get(&id).zip(self.come.get(&id));
        let same = both.filter(|(gone, come)| gone.epoch.next() == come.epoch);
        let Some((gone, come)) = same.filter(|(gone, come)| gone.told != come.told) else {
            return Ok(());
        };
        let (gone, come) = (&gone.told, &come.told);
        let text = format!("{id} has left a region with {gone:?} in sight, and come with {come:?}");
        Err((Invariant::Sighted, vec![id], text))
    }
}

/// Entities that have come or gone since the logic was called: they are not where they were when the region looked.
fn has_moved(events: &[LogicEvent]) -> BTreeSet<EntityId> {
    let moved = events.iter().filter_map(|event| match event {
        LogicEvent::Entered { id, .. }
        | LogicEvent::Left { id, .. }
        | LogicEvent::Arrived { id } => Some(*id),
        _ => None,
    });
    moved.collect()
}

impl Judge {
    /// A tick of a region that runs the game is over: all is where it was when the region looked.
    pub(in super::super) fn game_tick_over(&self, region: &Region) {
        if self.is_outdated(region) {
            return;
        }
        let events = region.untold();
        let moved = has_moved(events);
        let watchers = region.lives_here(MONSTER).filter(|watcher| !moved.contains(&watcher.id));
        for watcher in watchers {
            let (id, at) = (watcher.id, (watcher.plane, watcher.pos));
            let now = sights(region, id);
            let changes = events.iter().filter_map(|event| match event {
                LogicEvent::Sighted { watcher, id: other } if *watcher == id => {
                    Some((*other, true))
                }
                LogicEvent::Lost { watcher, id: other } if *watcher == id => Some((*other, false)),
                _ => None,
            });
            let changes: Vec<_> = changes.collect();
            // What does not fit is found when the logic is called.
            let Ok(had) = before(id, &now, &changes) else { continue };
            let due = self.in_radius(region, at, &had);
            let other = due.symmetric_difference(&now).find(|other| !moved.contains(other));
            if let Some(other) = other {
                let has = if now.contains(other) { "has" } else { "has not" };
                let at = region.known(*other).map(|known| known.pos);
                let text = format!(
                    "region {} in tick {}: {id} at {:?} {has} {other} at {at:?} in sight; before it had {had:?}",
                    region.id(),
                    region.current_tick(),
                    watcher.pos,
                );
                self.violated(Invariant::Sighted, vec![id, *other], text);
            }
        }
    }

    /// The players that an entity has in sight by its radii, and by what it had in sight before.
    fn in_radius(&self, region: &Region, (plane, pos): (Plane, Pos), had: &Sights) -> Sights {
        let (enter_cm, leave_cm) = self.watch_cm.unwrap_or_default();
        let near =
            |radius_cm| region.within(plane, PLAYER, pos, radius_cm).into_iter().map(|e| e.id);
        near(enter_cm).chain(near(leave_cm).filter(|id| had.contains(id))).collect()
    }
}

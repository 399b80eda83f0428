//! What lists the ghosts near a border have, as far as this region sees it.
//!
//! A region that sees all players with which a ghost may be linked brings the ghost's list up to the positions of a tick
//! together with the lists of its own players, as the ghost's owner does. Both come to the same end without a word, so
//! that in most ticks each of the two players says YES or NO of its own accord and no player is asked in vain. A wrong
//! prediction costs messages: the border rounds repair what came of it. *Must never happen here:* a list of a ghost that
//! counts for anything but which ghosts this region's players ask.

use super::ViewEngine;
use super::queue::Assumed;
use crate::scene::messages::Effect;
use crate::scene::region::Region;
use crate::scene::region::entities::{Body, EntityStore, NO_SLOT, Renumbering};
use crate::scene::views::{Key, NO_BOND, ViewRules};
use crate::scene::{Pos, Rect, Scene};

/// A ghost that is farther out than so many times the distance of the worst entry of its list is near no player of
/// this region, nor near a ghost that is.
const SHELLS: i64 = 3;

/// Which ghosts are predicted.
#[derive(Debug, Clone, Copy)]
pub struct PredictionRange {
    rect: Rect,
    band_cm: i64,
    /// The rank of a pair without a bond and any distance.
    least: u64,
}

impl PredictionRange {
    /// What the region of a store sees.
    pub fn new(entities: &EntityStore, scene: &Scene, rules: &ViewRules) -> PredictionRange {
        let band_cm = scene.band_cm.into();
        PredictionRange { rect: entities.rect(), band_cm, least: rules.rank(NO_BOND, 0, false) }
    }

    /// Whether all players are seen here with which a ghost may be linked, and the ghost is near players of this
    /// region. Of a ghost that has room that is never known.
    pub fn has(&self, ghost: &Body) -> bool {
        let outside = i64::from(self.rect.outside_by(ghost.pos));
        match i64::try_from(ghost.threshold.saturating_sub(self.least)) {
            Ok(cm) if cm <= self.band_cm => {
                outside <= SHELLS * cm && outside.saturating_add(cm) <= self.band_cm
            }
            _ => false,
        }
    }
}

/// How a player takes part in a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// It lives here.
    Real,
    /// A ghost whose list is predicted.
    Predicted,
    /// A ghost that accepts what its threshold says.
    Ghost,
}

/// What predictions remember of ghosts.
#[derive(Debug, Default)]
pub struct Predictions {
    /// The position of each ghost in the last tick, by slot.
    before: Vec<Pos>,
}

/// The players of the plane in hand.
#[derive(Debug, Clone, Copy)]
pub struct Players<'a> {
    pub slots: &'a [u32],
    pub indices: &'a [u32],
    pub parts: &'a [Part],
}

impl Players<'_> {
    /// The index of the ghost at `slot`, if it is one of these.
    pub(super) fn ghost(&self, slot: u32) -> Option<u32> {
        let ix = *self.indices.get(slot as usize)?;
        let is_here = self.slots.get(ix as usize) == Some(&slot);
        (is_here && self.parts[ix as usize] != Part::Real).then_some(ix)
    }

    pub(super) fn part(&self, ix: u32) -> Part {
        self.parts[ix as usize]
    }
}

impl Predictions {
    /// Slots are numbered anew.
    pub fn renumber(&mut self, new: &Renumbering) {
        let before = std::mem::take(&mut self.before);
        for (mut slot, at) in (0..).zip(before) {
            new.apply(&mut slot);
            self.set_before(slot, at);
        }
    }

    /// Whether a ghost has moved since the last tick. What a ghost that stands has accepted says its threshold, and
    /// that is certain: where nobody moves no player is asked in vain, however wrong a prediction was.
    pub fn has_moved(&mut self, slot: u32, at: Pos) -> bool {
        self.set_before(slot, at) != at
    }

    /// Gives the position before.
    fn set_before(&mut self, slot: u32, at: Pos) -> Pos {
        let ix = slot as usize;
        if slot != NO_SLOT && ix >= self.before.len() {
            self.before.resize(ix + 1, Pos::ground(i32::MIN, i32::MIN));
        }
        self.before.get_mut(ix).map_or(at, |before| std::mem::replace(before, at))
    }
}

impl Region {
    /// All neighbours have told what their players said and how their thresholds have changed by the positions of this
    /// tick. What was predicted and has not come is given up.
    pub(super) fn end_predictions(&mut self, fx: &mut Vec<Effect>) {
        for (slot, published) in self.views.assumed() {
            // Its owner has not told of another threshold.
            let id = self.entities.body(slot).id;
            self.views.handle_threshold((id, published), &mut self.entities, self.identity.scene());
        }
        self.views.queue.assumed.clear();
        self.views.end_expectations(&mut self.entities);
        self.handle_view_queue(fx);
    }
}

impl ViewEngine {
    /// A ghost's threshold is as predicted, until its owner has told of this tick. `tied`: see [`Assumed`].
    pub(super) fn assume(
        &mut self,
        slot: u32,
        (threshold, tied): (u64, bool),
        entities: &mut EntityStore,
    ) {
        let published = entities.body(slot).threshold;
        if published != threshold || tied {
            self.queue.assumed.insert(slot, Assumed { published, tied });
            entities.set_threshold(slot, threshold);
        }
    }

    /// Whether a region has taken for granted in this tick what it was not told.
    pub(super) fn has_predicted(&self) -> bool {
        !self.queue.assumed.is_empty() || !self.queue.expecting.is_empty()
    }

    /// Ghosts whose thresholds are as predicted, and their thresholds as these were told last.
    fn assumed(&self) -> Vec<(u32, u64)> {
        let assumed = self.queue.assumed.iter();
        let mut all: Vec<_> = assumed.map(|(slot, assumed)| (*slot, assumed.published)).collect();
        all.sort_unstable();
        all
    }

    /// Players that have kept a place for a ghost that has not said YES look for another one.
    fn end_expectations(&mut self, entities: &mut EntityStore) {
        let ViewEngine { queue, viewers, rules, .. } = self;
        for slot in std::mem::take(&mut queue.expecting) {
            let Some(viewer) = viewers.get_mut(entities.body(slot).viewer as usize) else {
                continue;
            };
            let Some(expecting) = viewer.expecting.take() else { continue };
            queue.changed.push((slot, expecting));
            viewer.renew_threshold(rules);
            entities.set_threshold(slot, viewer.threshold.rank);
            // It has room, or has accepted a worse one meanwhile.
            if viewer.threshold > expecting {
                Self::mark_dirty(queue, viewer);
            }
        }
    }

    /// The tick ends: nothing is as predicted any more.
    pub fn forget_predictions(&mut self, entities: &mut EntityStore) {
        for (slot, published) in self.assumed() {
            if entities.ghost(slot).is_some() {
                entities.set_threshold(slot, published);
                self.queue.changed.push((slot, Key::WORST));
            }
        }
        self.queue.assumed.clear();
        self.end_expectations(entities);
    }
}

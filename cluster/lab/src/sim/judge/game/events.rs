//! What logic is told must add up to what is there: who lives in the region, and what the judge's other files follow.

use std::collections::BTreeSet;
use std::time::Duration;

use purview::scene::messages::{LogicEvent, Speaker};
use purview::scene::{EntityId, Region};

use super::super::{Inner, Invariant, Judge, Wrong};
use super::When;
use super::commands::probe_of;
use crate::game::rules::{DROP, LAIR, MONSTER, PLAYER};
use crate::sim::Logic;

fn residents(region: &Region) -> BTreeSet<EntityId> {
    let kinds = [PLAYER, MONSTER, DROP, LAIR].into_iter();
    kinds.flat_map(|kind| region.lives_here(kind).map(|e| e.id)).collect()
}

impl Judge {
    /// The logic of a region is told these events, and the region is as it is.
    pub(super) fn logic_is_told(&self, region: &Region, events: &[LogicEvent]) {
        self.note_unsaved(region);
        self.note_presented(region, events);
        if self.logic == Some(Logic::Workers) {
            self.actions_told(region, events);
        }
        let wrong = {
            let (now, mut inner) = (self.journal.now(), self.inner());
            inner.game.acts(region, now);
            inner.follow(region, events, now)
        };
        self.wrong_in(region, wrong);
    }
}

impl Inner {
    fn follow(
        &mut self,
        region: &Region,
        events: &[LogicEvent],
        now: Duration,
    ) -> Result<(), Wrong> {
        for event in events {
            self.follow_one(region, event, now)?;
        }
        let is_new = matches!(events.first(), Some(LogicEvent::Started { .. }));
        let there = residents(region);
        let believed = self.game.residents.entry((region.id(), region.epoch())).or_default();
        if is_new {
            believed.clone_from(&there);
        }
        if let Some(id) = believed.symmetric_difference(&there).next() {
            let text = format!("{id} lives there: {}", there.contains(id));
            return Err((Invariant::LogicTold, vec![*id], text));
        }
        self.game.watching.told(region, events)
    }

    fn follow_one(
        &mut self,
        region: &Region,
        event: &LogicEvent,
        now: Duration,
    ) -> Result<(), Wrong> {
        let key = (region.id(), region.epoch());
        match event {
            LogicEvent::Entered { id, .. } => {
                self.game.residents.entry(key).or_default().insert(*id);
            }
            LogicEvent::Left { id, .. } => {
                self.game.residents.entry(key).or_default().remove(id);
            }
            LogicEvent::Acted { by: Speaker::Logic, payload, id, .. } => {
                if let Some(name) = probe_of(payload) {
                    let Inner { game, workers, .. } = self;
                    let unsaved = workers.unsaved();
                    return game.probe_applied(When::now_in(region), (*id, name), unsaved);
                }
            }
            LogicEvent::Done { command } => {
                return self.probe_ended(key, (*command, now), None);
            }
            LogicEvent::Refused { command, why, .. } => {
                return self.probe_ended(key, (*command, now), Some(*why));
            }
            LogicEvent::Started { .. }
            | LogicEvent::Arrived { .. }
            | LogicEvent::Acted { .. }
            | LogicEvent::Sighted { .. }
            | LogicEvent::Lost { .. }
            | LogicEvent::Disconnected { .. }
            | LogicEvent::Resumed { .. } => {}
        }
        Ok(())
    }
}

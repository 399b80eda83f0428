//! Ghosts for the neighbours: one batch for each neighbour and tick, even an empty one.
//!
//! A real that stands near a border is mirrored to each neighbour in whose band it stands.

use super::BorderLinks;
use super::outbound::Mirror;
use crate::scene::messages::{
    BorderBatch, Effect, GhostChange, GhostLeave, GhostLevels, GhostState,
};
use crate::scene::properties::{Audience, Properties};
use crate::scene::region::actions::{PendingAction, TickActions};
use crate::scene::region::entities::{Body, EntityStore, Real};
use crate::scene::region::identity::Identity;
use crate::scene::region::recent_actions::RecentActions;
use crate::scene::region::views::ViewEngine;
use crate::scene::{Plane, RegionId, Scene, Tick, TickStamp};

impl BorderLinks {
    /// Neighbours that mirror the entity at `slot` will be told that it leaves, and for where.
    pub fn sign_off(&mut self, slot: u32, next: Option<RegionId>, entities: &mut EntityStore) {
        let (id, epoch) = (entities.body(slot).id, entities.record(slot).epoch);
        let mirrors = entities.real_mut(slot).map_or(0, |r| std::mem::take(&mut r.mirrors));
        for (i, n) in self.outbound.neighbours.iter_mut().enumerate() {
            if mirrors >> i & 1 == 1 {
                n.leaves.push(GhostLeave { id, epoch, next });
            }
        }
    }

    /// Sends each neighbour its ghosts of this tick.
    pub fn send_ghosts(
        &mut self,
        tick: Tick,
        identity: &Identity,
        (entities, views): (&mut EntityStore, &ViewEngine),
        (actions, recent): (&TickActions, &RecentActions),
        fx: &mut Vec<Effect>,
    ) {
        let learned = entities.relations_mut().take_learned();
        if self.is_alone() {
            return;
        }
        let neighbours = &mut self.outbound.neighbours;
        let mut batches: Vec<BorderBatch> =
            neighbours.iter_mut().map(|n| n.next_batch(identity, tick)).collect();
        self.mirror_all(TickStamp::of(tick), identity, entities, &mut batches);
        for (slot, action) in live_actions(actions, entities) {
            let mirrors = entities.real(slot).map_or(0, |real| real.mirrors);
            for (i, batch) in batches.iter_mut().enumerate() {
                if mirrors >> i & 1 == 1 {
                    batch.acts.push((action.id, action.content.clone()));
                }
            }
        }
        let to: Vec<_> = self.outbound.neighbours.iter().map(|n| n.id).zip(0..).collect();
        views.tell_links(&to, entities, &mut batches);
        for (n, mut batch) in self.outbound.neighbours.iter_mut().zip(batches) {
            n.note_sent(&mut batch);
            batch.earlier = match batch.full {
                true => recent.missed_by(n.id, tick),
                false => recent.brought_for(n.id),
            };
            batch.relations = match batch.full {
                true => entities.relations().all(),
                false => learned.clone(),
            };
            fx.push(Effect::Border(n.id, Box::new(batch)));
        }
    }

    /// Puts into the batches what each neighbour is to be told of every real near its border.
    fn mirror_all(
        &self,
        now: TickStamp,
        identity: &Identity,
        entities: &mut EntityStore,
        batches: &mut [BorderBatch],
    ) {
        let scene = identity.scene();
        let inner = identity.rect().grown(-scene.bonded_band_cm);
        for slot in 0..entities.slot_count() {
            // Most are ghosts, where regions are small: of these no more than this is looked at.
            let body = entities.body(slot);
            if !body.is_real() {
                debug_assert!(entities.real(slot).is_none());
                continue;
            }
            let Some(real) = entities.real(slot) else { continue };
            if inner.contains(body.pos) && real.mirrors == 0 {
                continue;
            }
            entities.with_real(slot, |entities, real| {
                mirror(now, (slot, real), entities, scene, (&self.outbound.neighbours, batches));
            });
        }
    }

    /// Sends a neighbour that has none of them all ghosts of the tick that is open.
    pub fn send_ghosts_again(
        &mut self,
        to: RegionId,
        tick: Tick,
        identity: &Identity,
        (entities, views): (&mut EntityStore, &ViewEngine),
        (actions, recent): (&TickActions, &RecentActions),
        fx: &mut Vec<Effect>,
    ) {
        let neighbours = &mut self.outbound.neighbours;
        let Some(i) = neighbours.iter().position(|n| n.id == to) else { return };
        let n = &mut neighbours[i];
        let mut batch = n.whole_batch(identity, tick);
        batch.earlier = recent.missed_by(to, tick);
        batch.relations = entities.relations().all();
        for slot in 0..entities.slot_count() {
            let band = entities.band_cm(slot, identity.scene());
            let near = entities.record(slot).plane != Plane::LIMBO
                && n.rect.outside_by(entities.body(slot).pos) <= band;
            let Some(real) = entities.real_mut(slot) else { continue };
            if near {
                real.mirrors |= 1 << i;
                batch.enters.push(state_of(entities, identity.scene(), slot));
            } else {
                real.mirrors &= !(1 << i);
            }
        }
        for (slot, action) in live_actions(actions, entities) {
            if entities.real(slot).is_some_and(|real| real.mirrors >> i & 1 == 1) {
                batch.acts.push((action.id, action.content.clone()));
            }
        }
        views.tell_links(&[(to, i as u32)], entities, std::slice::from_mut(&mut batch));
        (n.needs_all, n.last) = (false, tick);
        fx.push(Effect::Border(to, Box::new(batch)));
    }
}

/// Actions of entities that lived here when they acted, and still have their slots.
fn live_actions<'a>(
    actions: &'a TickActions,
    entities: &'a EntityStore,
) -> impl Iterator<Item = (u32, &'a PendingAction)> {
    let here = actions.iter().filter(move |a| a.here && entities.slot(a.id) == Some(a.slot));
    here.map(|action| (action.slot, action))
}

/// Puts into each neighbour's batch what it is to be told of the real at `slot`.
fn mirror(
    now: TickStamp,
    (slot, real): (u32, &mut Real),
    entities: &EntityStore,
    scene: &Scene,
    (neighbours, batches): (&[Mirror], &mut [BorderBatch]),
) {
    let (body, record) = (entities.body(slot), entities.record(slot));
    let band = entities.band_cm(slot, scene);
    let changed = body.changed == now || body.threshold != real.threshold_told;
    let levels =
        if body.properties == now { changed_levels(now, slot, entities, scene) } else { None };
    for (i, (n, batch)) in neighbours.iter().zip(batches).enumerate() {
        let bit = 1 << i;
        let near = record.plane != Plane::LIMBO && n.rect.outside_by(body.pos) <= band;
        let mirrored = real.mirrors & bit != 0;
        if near && (!mirrored || batch.full || real.restate) {
            real.mirrors |= bit;
            batch.enters.push(state_of(entities, scene, slot));
        } else if near {
            batch.changes.extend(changed.then(|| change_of(entities, slot)));
            batch.levels.extend(levels.clone());
        } else if !near && mirrored {
            real.mirrors &= !bit;
            batch.leaves.push(GhostLeave { id: body.id, epoch: record.epoch, next: None });
        }
    }
    real.restate = false;
    real.threshold_told = body.threshold;
}

/// Where neighbours are told that the entity at `slot` is.
fn change_of(entities: &EntityStore, slot: u32) -> GhostChange {
    let (body, epoch) = (entities.body(slot), entities.record(slot).epoch);
    let Body { id, pos, facing, threshold, .. } = *body;
    GhostChange { id, epoch, pos, facing, trajectory: entities.trajectory(slot), threshold }
}

/// The properties of the entity at `slot` that have changed in this tick and that any viewer may see.
fn changed_levels(
    now: TickStamp,
    slot: u32,
    entities: &EntityStore,
    scene: &Scene,
) -> Option<GhostLevels> {
    let (id, epoch) = (entities.body(slot).id, entities.record(slot).epoch);
    let properties = visible(entities, scene, slot).select(|level| level.changed == now);
    (!properties.is_empty()).then_some(GhostLevels { id, epoch, properties })
}

/// The properties of the entity at `slot` that any viewer may see.
fn visible(entities: &EntityStore, scene: &Scene, slot: u32) -> Properties {
    let properties = &entities.record(slot).properties;
    match scene.schema(entities.body(slot).kind) {
        Some(schema) if !properties.is_empty() => properties.select(|level| {
            !matches!(schema.audience(level.id), Audience::Owner | Audience::Server)
        }),
        _ => Properties::default(),
    }
}

/// Everything that neighbours are told of the entity at `slot`.
pub fn state_of(entities: &EntityStore, scene: &Scene, slot: u32) -> GhostState {
    let (body, record) = (entities.body(slot), entities.record(slot));
    GhostState {
        id: body.id,
        epoch: record.epoch,
        kind: body.kind,
        plane: record.plane,
        pos: body.pos,
        trajectory: entities.trajectory(slot),
        facing: body.facing,
        properties: visible(entities, scene, slot),
        ties: record.ties.clone(),
        threshold: body.threshold,
        cap: entities.place(slot).cap(),
    }
}

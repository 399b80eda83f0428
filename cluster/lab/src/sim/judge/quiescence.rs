//! What must hold at rest, after every fault has ended and all clients stand still.

use std::collections::BTreeMap;
use std::time::Duration;

use purview::scene::{EntityId, RegionId};

use super::rules::{shown_are_near, views_are_stable};
use super::{Client, Inner, Invariant, Judge, PlacedAt};

/// The longest time between two ticks of a region or entity that acts.
pub(super) const FRESH: Duration = Duration::from_millis(1_500);

impl Judge {
    /// What is wrong at rest, in a cluster whose layouts have these regions: the entities concerned, and a text.
    pub fn not_at_rest(&self, regions: &[RegionId]) -> Option<(Vec<EntityId>, String)> {
        let (inner, now) = (self.inner(), self.journal.now());
        let fresh = |at: Duration| now.saturating_sub(at) <= FRESH;
        let acts = |id| inner.regions.get(id).is_some_and(|authority| fresh(authority.at));
        if let Some(id) = regions.iter().find(|id| !acts(*id)) {
            let last = inner.regions.get(id);
            return Some((Vec::new(), format!("region {id} does not act: {last:?}")));
        }
        // No session presents an NPC after a crash: without a checkpoint the NPC is lost.
        let lives = |id: &&EntityId| inner.acting.get(id).is_some_and(|acting| fresh(acting.at));
        // Contents are only where anybody is.
        let mut npcs = inner.npcs.iter().filter(|id| id.content().is_none());
        let gone = npcs.find(|id| !lives(id));
        let stay = inner.checkpoints_lost.is_none() && !self.has_game();
        if let Some(id) = gone.filter(|_| stay) {
            let last = inner.acting.get(id);
            return Some((vec![*id], format!("NPC {id} acts nowhere: {last:?}")));
        }
        let mut all = BTreeMap::new();
        let players = inner.acting.iter().filter(|(id, _)| !inner.npcs.contains(id));
        for (id, acting) in players.filter(|(_, acting)| fresh(acting.at)) {
            if !inner.clients.contains_key(id) {
                let text = format!("{id} has no client but still acts: {acting:?}");
                return Some((vec![*id], text));
            }
            all.insert(*id, acting.place());
        }
        let not_at_rest = inner.clients.iter().find_map(|(id, client)| {
            self.client_not_at_rest(*id, client, &inner, &all).err().map(|(other, text)| {
                let other = other.filter(|other| other != id);
                (std::iter::once(*id).chain(other).collect(), text)
            })
        });
        if not_at_rest.is_some() {
            return not_at_rest;
        }
        let clients = inner.clients.iter();
        let shown = clients.map(|(id, client)| (*id, client.shown.clone())).collect();
        let cap_of = |id| inner.clients.get(&id).map_or(0, |client| client.cap);
        let is_bonded = |a: &EntityId, b: &EntityId| inner.messages.share_a_bond(a, b);
        let stable = views_are_stable(&shown, cap_of, is_bonded, &all, &self.scope);
        let unstable = stable.err().map(|(one, other, text)| (vec![one, other], text));
        unstable.or_else(|| inner.things_not_at_rest(&self.circles, now))
    }

    fn client_not_at_rest(
        &self,
        id: EntityId,
        client: &Client,
        inner: &Inner,
        all: &BTreeMap<EntityId, PlacedAt>,
    ) -> Result<(), (Option<EntityId>, String)> {
        if client.is_disconnected {
            return Err((None, format!("{id} has no connection")));
        }
        if !all.contains_key(&id) {
            return Err((None, format!("{id} acts nowhere")));
        }
        let acting = &inner.acting[&id];
        let applied = acting.player.last_applied;
        if applied != client.said || client.acked != client.said {
            let Client { said, acked, .. } = client;
            let text = format!("{id} has sent {said}, {applied} is applied, {acked} acknowledged");
            return Err((None, text));
        }
        let place = acting.place();
        if place != client.place {
            return Err((None, format!("{id} is at {place:?}, not at {:?}", client.place)));
        }
        shown_are_near((id, place), &client.shown, all, &self.scope)
            .map_err(|(other, text)| (Some(other), text))
    }

    /// Checks at rest that acknowledged inputs are still applied, by whichever owner the entity has now.
    pub fn acks_hold(&self) {
        let inner = self.inner();
        let lost = inner.clients.iter().find_map(|(id, client)| {
            let applied = inner.acting.get(id)?.player.last_applied;
            (applied < client.acked).then_some((*id, applied, client.acked))
        });
        drop(inner);
        if let Some((id, applied, acked)) = lost {
            let text =
                format!("{id}: input {acked} was acknowledged, but only {applied} is applied");
            self.violated(Invariant::AckHolds, vec![id], text);
        }
    }
}

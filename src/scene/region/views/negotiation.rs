//! The view messages between players: each is handled by the registers of its addressee, at once
//! where both players live here.

use rustc_hash::FxHashSet;

use super::range_query;
use super::{LocalMessage, ViewEngine, ViewQueue, Viewer};
use crate::scene::prefetch;
use crate::scene::region::entities::{EntityStore, NO_SLOT};
use crate::scene::views::{Addressee, Key, NoEffect, PeerState, ViewMsg, ViewMsgBody};
use crate::scene::{EntityId, Epoch, RegionId, Scene};

impl ViewEngine {
    /// Keeps a message of another region until it is read.
    pub fn enqueue(&mut self, msg: ViewMsg) {
        self.figures.lost += self.queue.enqueue(msg);
    }

    /// Keeps thresholds of players of another region until they are read.
    pub fn enqueue_thresholds(&mut self, thresholds: Vec<(EntityId, u64)>) {
        self.figures.lost += self.queue.enqueue_thresholds(thresholds);
    }

    /// Whether anything is to be said to players of other regions.
    pub fn has_outgoing(&self) -> bool {
        self.queue.has_outgoing()
    }

    /// A player goes on from a checkpoint, or from where it was not known that it lives: it knows nothing of what was
    /// said to it.
    pub fn note_new_incarnation(&mut self, id: EntityId) {
        self.queue.new_incarnations.insert(id);
    }

    /// Puts into force how far bonds reach over the positions of this tick: with the next tick, on
    /// both sides of a border alike.
    pub fn apply_reaches(&mut self, entities: &mut EntityStore) {
        let reaches = std::mem::take(&mut self.queue.reaches);
        if !reaches.is_empty() {
            // Pairs rank otherwise than in the pass.
            self.positions_change();
        }
        for (slot, reach) in reaches {
            if let Some(real) = entities.real_mut(slot) {
                real.restate = true;
                entities.set_reach(slot, reach);
            }
        }
    }

    /// Forgets how far bonds of the last tick would have reached.
    pub fn forget_reaches(&mut self) {
        self.queue.reaches.clear();
    }

    /// Delivers messages between players of this region until none is left; what is for a ghost waits to be sent.
    pub fn deliver_local(&mut self, entities: &mut EntityStore, scene: &Scene) {
        while let Some(msg) = self.queue.local.pop_front() {
            if let Some(next) = self.queue.local.front() {
                let viewer = entities.get(next.to).map_or(u32::MAX, |body| body.viewer);
                if let Some(viewer) = self.viewers.get(viewer as usize) {
                    prefetch::fetch(viewer.registers.peers());
                }
            }
            let Some(to) = entities.get(msg.to).filter(|body| body.id == msg.to_id) else {
                let from = entities.body(msg.from).id;
                self.queue.undeliverable.push((from, msg.to_id, msg.say));
                continue;
            };
            let ix = to.viewer as usize;
            if ix < self.viewers.len() {
                self.figures.local += 1;
                self.handle(ix, (msg.from, msg.say), entities, scene);
            } else {
                self.queue.outgoing.push(msg);
            }
        }
    }

    /// Messages for players that live here by now are delivered here.
    pub fn reclaim_outgoing(&mut self, entities: &mut EntityStore, scene: &Scene) {
        let lives_here = |msg: &LocalMessage| {
            let to = entities.body(msg.to);
            to.id == msg.to_id && to.viewer != u32::MAX
        };
        if self.queue.outgoing.iter().any(lives_here) {
            let outgoing = std::mem::take(&mut self.queue.outgoing);
            let (local, remote): (Vec<_>, Vec<_>) = outgoing.into_iter().partition(lives_here);
            self.queue.local.extend(local);
            self.queue.outgoing = remote;
            self.deliver_local(entities, scene);
        }
    }

    /// A ghost's threshold has changed. When it has risen, the next repair looks at the players that prefer it to what
    /// they have.
    pub fn handle_threshold(
        &mut self,
        (id, threshold): (EntityId, u64),
        entities: &mut EntityStore,
        scene: &Scene,
    ) {
        let Some(slot) = entities.slot(id).filter(|s| !entities.is_real(*s)) else { return };
        let ViewEngine { viewers, queue, rules, refreshed, .. } = self;
        let scratch = &mut refreshed.scratch;
        let before = entities.body(slot).threshold;
        let tied = queue.assumed.remove(&slot).is_some_and(|assumed| assumed.tied);
        entities.set_threshold(slot, threshold);
        if !self.still {
            return;
        }
        queue.changed.push((slot, Key::WORST));
        if threshold < before || (threshold == before && !tied) {
            return;
        }
        let interested = &mut queue.proposed;
        let vis = &scene.spec.visibility;
        range_query::interested(entities, vis, rules, viewers, slot, (scratch, interested));
    }

    /// The region from which a player has come, which knows of peers that were never mirrored here.
    pub fn came_from(&self, entities: &EntityStore, id: EntityId) -> Option<RegionId> {
        self.of(entities, entities.slot(id)?)?.came_from
    }

    /// Says NO to every peer of another region and looks for others: these regions have crashed,
    /// and what was said by way of them is lost. A peer that is still wanted is asked anew. The
    /// same holds for players that have come from there: what they and others said to each other
    /// before may have been on its way.
    pub fn begin_anew_afar(
        &mut self,
        crashed: &[RegionId],
        entities: &mut EntityStore,
        scene: &Scene,
    ) {
        let ViewEngine { viewers, queue, .. } = self;
        let crashed: FxHashSet<RegionId> = crashed.iter().copied().collect();
        let came = |v: &Viewer| v.came_from.is_some_and(|from| crashed.contains(&from));
        let newcomers: FxHashSet<u32> =
            viewers.iter().filter(|v| came(v)).map(|v| v.slot).collect();
        for viewer in viewers {
            let slot = viewer.slot;
            let is_newcomer = newcomers.contains(&slot);
            for i in 0..viewer.registers.peers().len() {
                let (peer, id) = (&viewer.registers.peers()[i], viewer.registers.yes_ids()[i].id);
                let there = entities.is_at(peer.slot, id);
                let at = if there { Some(peer.slot) } else { entities.slot(id) };
                let afar = at.is_some_and(|at| entities.body(at).viewer == u32::MAX);
                let newcomer = is_newcomer || at.is_some_and(|at| newcomers.contains(&at));
                if (peer.stands() || peer.their_turn()) && (afar || newcomer) {
                    viewer.registers.refuse(i, |to, say| {
                        queue.local.push_back(LocalMessage::new(slot, to, say));
                    });
                }
            }
        }
        self.deliver_local(entities, scene);
    }

    /// Every player says NO to players that have forgotten what was said, and looks for them anew.
    pub fn begin_anew_with_new_incarnations(&mut self, entities: &mut EntityStore, scene: &Scene) {
        let forgetful = std::mem::take(&mut self.queue.new_incarnations);
        if forgetful.is_empty() {
            return;
        }
        for ix in 0..self.viewers.len() {
            self.begin_anew_where(ix, |id| forgetful.contains(&id));
        }
        self.deliver_local(entities, scene);
    }

    /// The same of a player that has come and has dealt with players before these went on from a checkpoint.
    pub fn begin_anew_with_older(
        &mut self,
        slot: u32,
        peers: &[PeerState],
        entities: &EntityStore,
    ) {
        let older = |p: &&PeerState| {
            let known = entities.slot(p.id).map(|slot| entities.record(slot).epoch);
            p.epoch > Epoch(0) && known.is_some_and(|known| p.epoch.is_of_a_life_before(known))
        };
        let older: FxHashSet<EntityId> = peers.iter().filter(older).map(|p| p.id).collect();
        if !older.is_empty() {
            self.begin_anew_where(entities.body(slot).viewer as usize, |id| older.contains(&id));
        }
    }

    /// The viewer at `ix` says NO to some of its peers.
    pub(super) fn begin_anew_where(&mut self, ix: usize, which: impl Fn(EntityId) -> bool) {
        let ViewEngine { viewers, queue, .. } = self;
        let Some(viewer) = viewers.get_mut(ix) else { return };
        for i in 0..viewer.registers.peers().len() {
            let (peer, id) = (&viewer.registers.peers()[i], viewer.registers.yes_ids()[i].id);
            if (peer.stands() || peer.their_turn()) && which(id) {
                let slot = viewer.slot;
                viewer.registers.refuse(i, |to, say| {
                    queue.local.push_back(LocalMessage::new(slot, to, say));
                });
            }
        }
    }

    /// A message of a player that is not mirrored here (any more). Returns the answer that it gets,
    /// if any.
    pub fn handle_unknown(&mut self, viewer: u32, msg: &ViewMsg) -> Option<ViewMsgBody> {
        let ViewEngine { viewers, queue, .. } = self;
        let viewer = &mut viewers[viewer as usize];
        let at = viewer.registers.find(msg.from);
        match msg.say {
            // Withdrawn since.
            ViewMsgBody::Yes(_) | ViewMsgBody::Again(_)
                if at.is_some_and(|i| !viewer.registers.wants_answer(i, msg.say)) =>
            {
                None
            }
            ViewMsgBody::Yes(number) | ViewMsgBody::Again(number) => {
                if let Some(at) = at {
                    viewer.registers.refuse_yes(at, number, |_, _| {});
                    viewer.drop_peer(at);
                    Self::mark_dirty(queue, viewer);
                }
                Some(ViewMsgBody::No { echo: number, at: viewer.registers.counter })
            }
            ViewMsgBody::No { echo, at: said } => {
                let effect = at.map(|at| viewer.registers.handle_no(at, echo, said));
                if effect.is_some_and(|h| h != NoEffect::NothingLost) {
                    Self::mark_dirty(queue, viewer);
                }
                None
            }
        }
    }

    /// A player has lost a link or request: the matcher looks for another one.
    pub(super) fn mark_dirty(queue: &mut ViewQueue, viewer: &mut Viewer) {
        if !viewer.dirty {
            viewer.dirty = true;
            queue.dirty.push(viewer.slot);
        }
    }

    /// The player at `ix` handles a message of the entity at slot `from`.
    pub fn handle(
        &mut self,
        ix: usize,
        (from, say): (u32, ViewMsgBody),
        entities: &mut EntityStore,
        scene: &Scene,
    ) {
        let ViewEngine { viewers, queue, rules, view_tick, .. } = self;
        let viewer = &mut viewers[ix];
        viewer.registers.begin_tick(*view_tick);
        let slot = viewer.slot;
        let speaker = entities.body(from).id;
        let known = viewer.registers.find_at(from, speaker, entities.have_moved(), NO_SLOT);
        let enqueue = |to: Addressee, say| {
            queue.local.push_back(LocalMessage::new(slot, to, say));
        };
        let mut lost = false;
        match say {
            ViewMsgBody::No { echo, at: said } => {
                let Some(at) = known else { return };
                match viewer.registers.handle_no(at, echo, said) {
                    NoEffect::NothingLost => {}
                    NoEffect::Lost => lost = true,
                    NoEffect::Overtaken => {
                        lost = true;
                        let standing = viewer.registers.yes_ids()[at].seen;
                        viewer.registers.answer(rules, at, standing, enqueue);
                    }
                }
                if viewer.registers.peers()[at].is_blank() {
                    viewer.drop_peer(at);
                }
            }
            ViewMsgBody::Yes(number) | ViewMsgBody::Again(number) => {
                let registers = &mut viewer.registers;
                let at = known.unwrap_or_else(|| registers.push(speaker, from));
                let me = entities.place(slot);
                registers.peers_mut()[at].slot = from;
                if !registers.wants_answer(at, say) {
                    return;
                }
                let vis = &scene.spec.visibility;
                if range_query::refresh(entities, vis, rules, slot, me, registers, at) {
                    registers.handle_yes(rules, at, say, enqueue);
                } else {
                    registers.refuse_yes(at, number, enqueue);
                }
                // Others that are blank now go with the next evaluation.
                if registers.peers()[at].is_blank() {
                    viewer.drop_peer(at);
                }
            }
        }
        viewer.renew_threshold(rules);
        queue.changed.push((slot, viewer.threshold));
        entities.set_threshold(slot, viewer.threshold.rank);
        if lost {
            Self::mark_dirty(queue, viewer);
        }
    }
}

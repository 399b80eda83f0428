//! Regions whose actors end without notice, with all that they own.

use std::sync::Arc;

use purview::scene::messages::Input;
use purview::scene::{EntityId, Epoch, Region, RegionId, Tick};

use super::brute::pair;
use super::world::World;

/// What happens to a region's place after a crash, and to the messages it had sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crash {
    /// Ticks until an empty region with a higher epoch takes its place; `None`: never.
    pub back_in: Option<u64>,
    /// Whether messages from it that have not arrived are lost, too.
    pub loses_sent: bool,
}

impl World {
    /// Ends a region's actor. Its state and the messages to it are lost.
    pub fn crash(&mut self, id: RegionId, crash: Crash) {
        let at = id.0 as usize;
        let cut: Vec<_> = self.queues.keys().copied().collect();
        let cut =
            cut.into_iter().filter(|(from, to)| *to == id || (*from == id && crash.loses_sent));
        let lost: Vec<Input> =
            cut.flat_map(|link| self.queues.remove(&link).unwrap_or_default()).collect();
        let scene_of = |s: &Arc<purview::scene::Scene>| s.map.get(id).is_some();
        let known = self.scenes.iter_mut().find(|s| scene_of(s)).expect("a region of a scene");
        let mut scene = (**known).clone();
        for entry in scene.map.regions.iter_mut().filter(|r| r.id == id) {
            entry.epoch = Epoch(entry.epoch.0 + 1);
        }
        *known = Arc::new(scene);
        let empty = Region::new(known.clone(), id).expect("a region of the scene");
        self.due.remove(&id);
        let dead = std::mem::replace(&mut self.regions[at], empty);
        if let Some(safety) = &mut self.safety {
            // View messages that waited there to be forwarded are lost, too.
            let view_queue = dead.inspect_view_queue();
            safety.crashed(id, self.tick, view_queue.iter().map(|m| pair(m.from, m.to)));
        }
        let mut gone: Vec<EntityId> =
            dead.inspect_registers().into_iter().map(|(id, _)| id).collect();
        // A player that was told to live there, without confirmation yet, was in the region's
        // inbox.
        let waiting = self.clients.values().filter(|c| c.region == id && c.epoch == Epoch(0));
        gone.extend(waiting.map(|c| c.entity));
        gone.into_iter().for_each(|id| self.forget(id));
        self.down.insert(id, crash.back_in.map_or(Tick(u64::MAX), |n| Tick(self.tick.0 + n)));
        lost.into_iter().for_each(|input| self.lose(input));
    }

    /// Drops a message to a region that no longer exists; a player on its way there is gone.
    pub fn lose(&mut self, input: Input) {
        let msgs = match input {
            Input::Handoff(handoff) if !self.sessions => return self.forget(handoff.state.id),
            Input::BorderRound(batch) => batch.view_messages,
            Input::View(msg) => vec![msg],
            _ => return,
        };
        if let Some(safety) = &mut self.safety {
            safety.lost(self.tick, msgs.iter().map(|m| pair(m.from, m.to)));
        }
    }

    fn forget(&mut self, id: EntityId) {
        if let Some(safety) = &mut self.safety {
            safety.forget(id);
        }
        self.truth.remove(&id);
        self.clients.retain(|_, c| c.entity != id);
    }
}

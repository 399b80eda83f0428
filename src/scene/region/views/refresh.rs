//! Brings registers up to date with the positions of a tick: peers that are out of range get a NO, the
//! others their distance.
//!
//! Once in a tick this is done for all players, on several threads where there are some. A player's
//! refresh writes its own registers alone. What it says to others waits until all are refreshed.

use super::eye::Eye;
use super::range_query::{self, Scratch};
use super::{LocalMessage, ViewEngine, ViewQueue, Viewer};
use crate::scene::prefetch;
use crate::scene::region::entities::{EntityStore, TAG_BONDED};
use crate::scene::views::{Key, ViewRules};
use crate::scene::workers::{self, Workers, share};
use crate::scene::{Scene, TickStamp};

/// Ticks after which a request that was not answered is said again, and a link:
/// whatever has become of a message between two players, with a region or on its way, they come to agree.
const ASKS_AGAIN: u32 = 20;
const LINKS_AGAIN: u32 = 200;

/// What the refresh of some players has found, and buffers that are used again for every player.
#[derive(Debug, Default)]
pub struct Refreshed {
    pub(super) scratch: Scratch,
    said: Vec<LocalMessage>,
    reaches: Vec<(u32, Option<u64>)>,
}

/// What a refresh reads.
#[derive(Clone, Copy)]
struct Refresh<'a> {
    entities: &'a EntityStore,
    scene: &'a Scene,
    rules: &'a ViewRules,
    tick: TickStamp,
}

impl ViewEngine {
    /// Brings the registers of all players up to date.
    pub(super) fn refresh_all(
        &mut self,
        entities: &mut EntityStore,
        scene: &Scene,
        workers: &dyn Workers,
    ) {
        let ViewEngine { viewers, refreshed, parts, queue, rules, view_tick, .. } = self;
        let parts = match workers::parts(workers, viewers.len(), workers::LEAST_PLAYERS) {
            1 => std::slice::from_mut(refreshed),
            count => {
                parts.resize_with(count, Refreshed::default);
                &mut parts[..]
            }
        };
        let all = Refresh { entities, scene, rules, tick: *view_tick };
        share(workers, viewers, parts, |out, _, viewers| all.part(viewers, out));
        parts.iter_mut().for_each(|part| part.hand_over(queue));
        for viewer in viewers {
            entities.set_threshold(viewer.slot, viewer.threshold.rank);
        }
    }

    /// Brings one player's registers up to date, and what it sees beside players.
    pub(super) fn refresh(&mut self, ix: usize, entities: &mut EntityStore, scene: &Scene) {
        let ViewEngine { viewers, refreshed, queue, rules, view_tick, .. } = self;
        let one = Refresh { entities, scene, rules, tick: *view_tick };
        let viewer = &mut viewers[ix];
        one.viewer(viewer, refreshed);
        refreshed.hand_over(queue);
        entities.set_threshold(viewer.slot, viewer.threshold.rank);
    }
}

impl Refreshed {
    /// What was said waits to be delivered from here on.
    fn hand_over(&mut self, queue: &mut ViewQueue) {
        queue.local.extend(self.said.drain(..));
        queue.reaches.append(&mut self.reaches);
    }
}

impl Refresh<'_> {
    fn part(&self, viewers: &mut [Viewer], out: &mut Refreshed) {
        for ix in 0..viewers.len() {
            if let Some(v) = viewers.get(ix + prefetch::PLAYERS) {
                prefetch::fetch(v.registers.peers());
            }
            self.viewer(&mut viewers[ix], out);
        }
    }

    /// Brings one player's registers up to date: says NO to peers that are out of range.
    fn viewer(&self, viewer: &mut Viewer, out: &mut Refreshed) {
        let Refresh { entities, scene, rules, tick } = *self;
        let vis = &scene.spec.visibility;
        viewer.dirty = false;
        let slot = viewer.slot;
        let me = entities.place(slot);
        // A player without a client is told of nothing.
        if viewer.session.is_some() || !viewer.seen.is_empty() {
            range_query::see_others(entities, &scene.spec, viewer, &mut out.scratch);
        }
        viewer.registers.begin_tick(tick);
        let eye = Eye::new(entities, vis, rules, slot);
        let (asks_again, links_again) = self.turn(slot);
        let mut i = 0;
        while i < viewer.registers.peers().len() {
            let in_range = eye.refresh(&mut viewer.registers, i);
            if in_range && asks_again {
                repeat(viewer, i, links_again, &mut out.said);
            }
            let peer = &viewer.registers.peers()[i];
            if in_range && peer.their_turn() && lives_here(entities, peer.slot) {
                // The pass asks on behalf of both. Remembered debts would pile up in a crowd.
                viewer.registers.forget_debt(i);
            }
            let peer = &viewer.registers.peers()[i];
            if in_range && !peer.is_blank() {
                i += 1;
                continue;
            }
            if peer.stands() {
                viewer.registers.refuse(i, |to, say| {
                    out.said.push(LocalMessage::new(slot, to, say));
                });
            }
            viewer.drop_peer(i);
        }
        if me.tag & TAG_BONDED != 0 || viewer.reach_ends {
            let reach = range_query::bond_reach(entities, vis, rules, slot, &mut out.scratch);
            viewer.reach_ends = reach.is_some();
            if reach != entities.record(slot).ties.reach {
                out.reaches.push((slot, reach));
            }
        }
        viewer.threshold = match viewer.registers.standing() < viewer.registers.cap(rules) {
            true => Key::WORST,
            // The matcher gives another one; until then it counts only that there is no room.
            false if viewer.threshold != Key::WORST => viewer.threshold,
            false => viewer.registers.threshold(rules),
        };
    }

    /// Whether a player says its requests again in this tick, and its links. Players take turns. Where
    /// there are no borders, nothing is ever lost.
    fn turn(&self, slot: u32) -> (bool, bool) {
        let turn = self.tick.bits().wrapping_add(slot);
        let asks_again = turn.is_multiple_of(ASKS_AGAIN) && self.scene.map.regions.len() > 1;
        (asks_again, asks_again && turn.is_multiple_of(LINKS_AGAIN))
    }
}

/// Whether the player at `slot` lives in this region.
fn lives_here(entities: &EntityStore, slot: u32) -> bool {
    entities.body(slot).viewer != u32::MAX
}

/// Says again what a player has said to the peer at `ix`.
fn repeat(viewer: &mut Viewer, ix: usize, links_again: bool, said: &mut Vec<LocalMessage>) {
    let slot = viewer.slot;
    if links_again || viewer.registers.peers()[ix].asked() {
        viewer.registers.repeat(ix, |to, say| said.push(LocalMessage::new(slot, to, say)));
    }
    if links_again {
        // Perhaps the other one does not know that it owes the next YES.
        viewer.registers.forget_debt(ix);
    }
}

#[cfg(test)]
mod tests {
    use crate::scene::region::{Region, fixtures};
    use crate::scene::{EntityHandle, Pos, SceneSpec, Seq, Tick};

    const PLAYERS: u64 = 40;
    const CAP: usize = 4;

    /// Players of one crowd: all are in range of each other.
    fn crowd() -> Region {
        let spec = SceneSpec { view_cap: CAP, ..SceneSpec::default() };
        let mut region = fixtures::region(spec, 0);
        (1..=PLAYERS).for_each(|id| fixtures::enter(&mut region, id, place(id, 0)));
        region
    }

    /// Every player is near other players in each tick.
    fn place(player: u64, tick: u64) -> Pos {
        let mixed = (player * 31 + tick * 17) * (2 * player + 1);
        Pos::ground(40_000 + (mixed % 3_000) as i32, 20_000 + (mixed % 2_300) as i32)
    }

    #[test]
    fn a_player_remembers_no_more_peers_than_it_sees_and_has_just_lost() {
        let mut region = crowd();
        let mut lost = 0;
        for tick in 1..200 {
            for id in 1..=PLAYERS {
                let (seq, handle) = (Seq(tick as u32), EntityHandle(0));
                fixtures::go(&mut region, id, seq, place(id, tick), handle);
            }
            region.tick(Tick(tick), &mut Vec::new());
            for viewer in region.views.viewers() {
                let (links, peers) = (viewer.registers.links(), viewer.registers.peers().len());
                assert!(links <= CAP);
                assert!(peers <= 2 * CAP, "tick {tick}: {peers} peers");
                lost += peers - links;
            }
        }
        assert!(lost > 5_000, "{lost} links were lost");
    }
}

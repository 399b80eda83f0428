//! Which moves a viewer is told in a tick: those that are due, as many as there is room for.

use super::history::{UNKNOWN, standing};
use super::pieces::trajectory_update;
use super::{
    Common, Due, FrameEntry, FramePart, FrameReader, MOVE_BYTES, PART_BYTES, TRAJECTORY_BYTES,
};
use crate::scene::messages::SessionFrame;
use crate::scene::pieces;
use crate::scene::region::egress::{fixed_len, weighted};
use crate::scene::region::entities::EntityStore;
use crate::scene::region::views::Viewer;

/// How urgent a move is whose viewer was told nothing of it that is still known.
const URGENT: u32 = 1 << 16;

/// Bytes by which the heads of two lists may grow when they are filled.
const LIST_BYTES: usize = 4;

impl FramePart {
    /// How urgent a changed entry is, 256 or more; `None`: it can wait. An entity that only `turns` is where
    /// its viewers show it.
    #[inline]
    pub(super) fn urgency(
        &self,
        reader: FrameReader<'_>,
        entities: &EntityStore,
        e: &FrameEntry,
        turns: bool,
    ) -> Option<u32> {
        let interval = reader.scene.spec.rates.of_ring(e.ring.into());
        let age = reader.tick.ticks_since(e.sent);
        let late = (age >= interval)
            .then(|| (u64::from(age) * 256 / u64::from(interval)).min(URGENT.into()) as u32);
        let Some(rule) = reader.all.histories.rule().filter(|_| !turns) else { return late };
        let wrong = match reader.all.histories.error2(e.slot, e.sent) {
            UNKNOWN => Some(URGENT),
            // Most are shown where they are: their positions are not asked for.
            error2 if u64::from(error2) <= rule.tolerance2(0) => None,
            error2 => {
                let pos = entities.body(e.slot).pos;
                rule.excess(error2.into(), self.eye.dist2(pos))
            }
        };
        late.max(wrong)
    }

    /// Tells how an entity goes on whose enter tells only where it is.
    pub(super) fn tell_velocity(
        &mut self,
        reader: FrameReader<'_>,
        entities: &EntityStore,
        slot: u32,
    ) {
        let (body, all) = (entities.body(slot), reader.all);
        if all.histories.moving(slot, body, all.now) != standing(body) {
            self.moving(reader, entities, slot, false);
        }
    }

    /// Takes as many due moves as the frame and the client have room for, the most urgent ones first; the others
    /// stay due. The rest of the frame is made.
    pub(super) fn pick_moves(
        &mut self,
        reader: FrameReader<'_>,
        entities: &EntityStore,
        viewer: &mut Viewer,
        frame: &SessionFrame,
    ) {
        let (tick, frame_budget) = (reader.tick, reader.scene.spec.frame_budget_bytes);
        let due = self.due.len();
        let each = if reader.all.judged { MOVE_BYTES + TRAJECTORY_BYTES } else { MOVE_BYTES };
        let room = (frame_budget.min(PART_BYTES) / each).max(1);
        if reader.all.budget.is_some() {
            self.weigh(entities);
        }
        if due > room {
            self.due.select_nth_unstable_by_key(room - 1, |d| std::cmp::Reverse(d.urgency));
            self.due.truncate(room);
        }
        if reader.all.budget.is_some() {
            let fixed = fixed_len(&self.batch, frame) + self.told_len() + LIST_BYTES;
            viewer.allowance.charge(fixed + self.act_bytes + self.property_bytes);
            self.take_affordable(reader.all, entities, viewer);
        }
        self.moves_waited += (due - self.due.len()) as u64;
        for i in 0..self.due.len() {
            let d = self.due[i];
            match d.is_peer {
                true => viewer.registers.peers_mut()[d.peer as usize].sent = tick,
                false => viewer.seen[d.peer as usize].sent = tick,
            }
            match d.turns {
                true => self.turning(tick, entities, d.slot),
                false => self.moving(reader, entities, d.slot, d.follows),
            }
        }
    }

    /// Far entities are less urgent under a budget.
    fn weigh(&mut self, entities: &EntityStore) {
        for d in &mut self.due {
            let distance2 = self.eye.dist2(entities.body(d.slot).pos);
            d.urgency = weighted(d.urgency, distance2);
        }
    }

    /// Bytes of the moves that go with enters, and of the client's own turn.
    fn told_len(&self) -> usize {
        let (moves, turns) = (&self.batch.moving, &self.batch.turning);
        pieces::len(|out| {
            self.moves.iter().for_each(|i| pieces::moving(out, &moves[*i as usize]));
            self.turns.iter().for_each(|i| pieces::turning(out, &turns[*i as usize]));
        })
    }

    /// Keeps the most urgent moves that the client's allowance pays for.
    fn take_affordable(&mut self, all: &Common, entities: &EntityStore, viewer: &mut Viewer) {
        let mut due = std::mem::take(&mut self.due);
        due.sort_unstable_by_key(|d| (std::cmp::Reverse(d.urgency), d.slot));
        let pays = |d: &Due| viewer.allowance.take(move_len(all, entities, d));
        let paid = due.iter().copied().take_while(pays).count();
        due.truncate(paid);
        self.due = due;
    }
}

fn move_len(all: &Common, entities: &EntityStore, d: &Due) -> usize {
    let body = entities.body(d.slot);
    pieces::len(|out| match entities.moving(d.slot) {
        _ if d.turns => pieces::turning(out, &(body.id, body.facing)),
        Some(track) => {
            let following = d.follows.then(|| all.following(d.slot, &track.trajectory)).flatten();
            let update = trajectory_update(body, track.trajectory, following);
            pieces::trajectory_update(out, &update);
        }
        None => pieces::moving(out, &all.histories.moving(d.slot, body, all.now)),
    })
}

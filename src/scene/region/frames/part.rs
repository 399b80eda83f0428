//! The frames of a part of the viewers: what each viewer's entries say that its client must be told.

use super::{
    Due, ENTER_BYTES, FrameEntry, FramePart, FrameReader, MAX_LEAVES, MAX_TOLD, Outcome,
    PART_BYTES, TRAJECTORY_BYTES, properties,
};
use crate::scene::messages::SessionFrame;
use crate::scene::mutants::{self, Mutant};
use crate::scene::pieces;
use crate::scene::region::entities::{EntityStore, own_of};
use crate::scene::region::views::Viewer;

/// Finds the peer at `ix` where it is now: it may have come to live here, or be gone, since its viewer
/// looked around. False when it is gone; the client is told when its viewer looks around again.
fn find_again(entities: &EntityStore, viewer: &mut Viewer, ix: usize) -> bool {
    let known = viewer.registers.peers()[ix].slot;
    if entities.is_free(known) {
        let Some(slot) = entities.slot(viewer.registers.yes_ids()[ix].id) else { return false };
        viewer.registers.peers_mut()[ix].slot = slot;
    }
    true
}

impl FramePart {
    /// Adds a player's own movement to the frame that is about to be added, if its client must be told.
    pub(super) fn add_own(
        &mut self,
        reader: FrameReader<'_>,
        entities: &EntityStore,
        viewer: &mut Viewer,
    ) {
        if reader.all.judged && (std::mem::take(&mut viewer.own_due) || viewer.resync) {
            self.batch.owns.extend(own_of(entities, viewer.slot, reader.all.now));
        }
    }

    pub(super) fn add_frame(
        &mut self,
        reader: FrameReader<'_>,
        entities: &EntityStore,
        viewer: &mut Viewer,
    ) {
        let mut frame = SessionFrame {
            session: viewer.session.unwrap_or_default(),
            ack: viewer.last_applied,
            epoch: entities.record(viewer.slot).epoch,
            resync: viewer.resync,
            refs_at: self.batch.refs.len() as u32,
            leaves_at: self.batch.leaves.len() as u32,
            refused_at: self.batch.refused.len() as u32,
            told_at: self.batch.told.len() as u32,
            own_at: self.owns_told,
            own: self.batch.owns.len() as u32 - self.owns_told,
            handle: viewer.handle,
            after: viewer.resync_after(),
            ..SessionFrame::default()
        };
        self.begin_frame(reader, viewer);
        self.eye = entities.body(viewer.slot).pos;
        self.tell_own_properties(reader, entities, viewer);
        self.tell_peers(reader, entities, viewer);
        self.tell_seen(reader, entities, viewer);
        (viewer.properties_told, viewer.bonds_changed) = (reader.tick, false);
        frame.enters = self.batch.refs.len() as u32 - frame.refs_at;
        frame.leaves = self.batch.leaves.len() as u32 - frame.leaves_at;
        frame.refused = self.batch.refused.len() as u32 - frame.refused_at;
        frame.told = self.batch.told.len() as u32 - frame.told_at;
        self.pick_moves(reader, entities, viewer, &frame);
        self.add_crowd(reader, entities, viewer, &mut frame);
        let lists = [
            (&mut frame.moves, &mut self.moves),
            (&mut frame.trajectories, &mut self.trajectories),
            (&mut frame.turns, &mut self.turns),
            (&mut frame.acts, &mut self.act_refs),
            (&mut frame.properties, &mut self.property_refs),
            (&mut frame.kept, &mut self.kept),
        ];
        for (count, list) in lists {
            *count = list.len() as u32;
            self.batch.refs.append(list);
        }
        self.owns_told = self.batch.owns.len() as u32;
        self.batch.sessions.push(frame);
    }

    /// Adds the crowd around the viewer's patch, if it is due and the client's allowance is not spent.
    fn add_crowd(
        &mut self,
        reader: FrameReader<'_>,
        entities: &EntityStore,
        viewer: &mut Viewer,
        frame: &mut SessionFrame,
    ) {
        if reader.all.budget.is_some() && !viewer.allowance.is_open() {
            return;
        }
        let crowds = &mut self.batch.crowds;
        if let Some(ix) = self.crowds.of_viewer(reader.tick, entities, viewer.slot, crowds) {
            viewer.allowance.charge(pieces::len(|out| pieces::crowd(out, &crowds[ix as usize])));
            (frame.crowd_at, frame.crowd) = (ix, 1);
        }
    }

    /// Begins a viewer's frame with what its client must be told whatever else there is.
    #[inline]
    fn begin_frame(&mut self, reader: FrameReader<'_>, viewer: &mut Viewer) {
        if std::mem::take(&mut viewer.told_elsewhere) && reader.all.histories.is_estimated() {
            let never = reader.tick.long_before();
            viewer.registers.peers_mut().iter_mut().for_each(|p| p.sent = never);
            viewer.seen.iter_mut().for_each(|s| s.sent = never);
        }
        if viewer.resync {
            viewer.resynced();
            viewer.gone.clear();
            viewer.registers.peers_mut().iter_mut().for_each(|p| p.set_shown(false));
            viewer.seen.iter_mut().for_each(|s| s.shown = false);
        }
        self.batch.refused.append(&mut viewer.refused);
        let told = viewer.mailbox.waiting.len().min(MAX_TOLD);
        if mutants::has(Mutant::ToldBackwards) {
            viewer.mailbox.waiting.reverse();
        }
        self.batch.told.extend(viewer.mailbox.waiting.drain(..told));
        let leaving = viewer.gone.len().min(MAX_LEAVES);
        self.batch.leaves.extend(viewer.gone.drain(..leaving));
        (self.act_bytes, self.property_bytes) = (0, 0);
        self.room = usize::MAX;
        if let Some(budget) = reader.all.budget {
            budget.fill(&mut viewer.allowance, reader.tick);
            self.room = budget.room(&viewer.allowance);
        }
        self.enter_bytes = if viewer.gone.is_empty() { 0 } else { PART_BYTES };
        self.due.clear();
        self.moves.clear();
        self.trajectories.clear();
        self.turns.clear();
        self.act_refs.clear();
        self.property_refs.clear();
        self.kept.clear();
    }

    /// Tells of the players that a viewer has in its view list, or had.
    #[inline]
    fn tell_peers(&mut self, reader: FrameReader<'_>, entities: &EntityStore, viewer: &mut Viewer) {
        let moved = entities.have_moved();
        for i in 0..viewer.registers.peers().len() {
            if moved && !find_again(entities, viewer, i) {
                // One whose place another player has taken leaves now: later the list would be too long meanwhile.
                let p = &mut viewer.registers.peers_mut()[i];
                if p.shown() && !p.linked() {
                    p.set_shown(false);
                    self.batch.leaves.push(viewer.registers.yes_ids()[i].id);
                }
                continue;
            }
            let p = &viewer.registers.peers()[i];
            let (wanted, shown) = (p.linked(), p.shown());
            let (slot, ring, sent, withheld) = (p.slot, p.ring, p.sent, p.withheld);
            let entry = FrameEntry { slot, ring, wanted, shown, sent, withheld };
            if reader.can_skip(&entry) {
                #[cfg(test)]
                self.assert_nothing_to_tell(reader, entities, entry);
                continue;
            }
            let (outcome, withheld) = self.tell(reader, entities, entry, (i as u32, true));
            if withheld != entry.withheld {
                viewer.registers.peers_mut()[i].withheld = withheld;
            }
            if outcome == Outcome::Leaves {
                self.batch.leaves.push(viewer.registers.yes_ids()[i].id);
            }
            if outcome != Outcome::Stays {
                let p = &mut viewer.registers.peers_mut()[i];
                p.set_shown(outcome == Outcome::Enters);
                p.sent = reader.tick;
            }
        }
    }

    /// Tells of the other entities that a viewer sees.
    #[inline]
    fn tell_seen(&mut self, reader: FrameReader<'_>, entities: &EntityStore, viewer: &mut Viewer) {
        let moved = entities.have_moved();
        for (i, s) in viewer.seen.iter_mut().enumerate() {
            if moved && entities.is_free(s.slot) {
                let Some(slot) = entities.slot(s.id) else { continue };
                s.slot = slot;
            }
            let entry = FrameEntry {
                slot: s.slot,
                ring: s.ring,
                wanted: true,
                shown: s.shown,
                sent: s.sent,
                withheld: s.withheld,
            };
            if reader.can_skip(&entry) {
                #[cfg(test)]
                self.assert_nothing_to_tell(reader, entities, entry);
                continue;
            }
            let (outcome, withheld) = self.tell(reader, entities, entry, (i as u32, false));
            s.withheld = withheld;
            if outcome == Outcome::Enters {
                (s.shown, s.sent) = (true, reader.tick);
            }
        }
    }

    #[cfg(test)]
    fn assert_nothing_to_tell(
        &mut self,
        reader: FrameReader<'_>,
        entities: &EntityStore,
        e: FrameEntry,
    ) {
        let told = |part: &FramePart| {
            let refs = (part.batch.refs.len(), part.act_refs.len(), part.property_refs.len());
            (refs, part.due.len(), part.kept.len(), part.moves.len(), part.turns.len())
        };
        let before = told(self);
        let outcome = self.tell(reader, entities, e, (0, true));
        assert_eq!((outcome, told(self)), ((Outcome::Stays, e.withheld), before));
    }

    /// Tells one entry's enter, leave, acts or properties, and notes whether its move is due. Gives also what is
    /// withheld of its properties from now on.
    #[inline]
    fn tell(
        &mut self,
        reader: FrameReader<'_>,
        entities: &EntityStore,
        e: FrameEntry,
        at: (u32, bool),
    ) -> (Outcome, u8) {
        if !e.wanted {
            return (if e.shown { Outcome::Leaves } else { Outcome::Stays }, e.withheld);
        }
        let news = reader.all.news[e.slot as usize];
        let (mut outcome, mut withheld) = (Outcome::Stays, e.withheld);
        if !e.shown {
            self.enter_bytes +=
                ENTER_BYTES + TRAJECTORY_BYTES + properties::entering_bytes(entities, e.slot);
            if self.enter_bytes > PART_BYTES {
                return (outcome, withheld);
            }
            outcome = Outcome::Enters;
            let piece = self.entering(reader, entities, e.slot);
            self.batch.refs.push(piece);
            withheld = self.tell_entering_properties(reader, entities, e.slot);
            if reader.all.histories.is_estimated() {
                self.tell_velocity(reader, entities, e.slot);
            }
        } else {
            if news.shown.is_after(e.sent) {
                let turns = !news.moved.is_after(e.sent);
                if let Some(urgency) = self.urgency(reader, entities, &e, turns) {
                    let (urgency, (peer, is_peer)) = (urgency.into(), at);
                    let follows = !turns && reader.has_trajectory_before(&e);
                    self.due.push(Due { urgency, slot: e.slot, peer, is_peer, turns, follows });
                }
            }
            let changed = news.properties.is_after(reader.properties_told);
            if changed || e.withheld > e.ring || reader.bonds_changed {
                withheld = self.tell_properties(reader, entities, e);
            }
        }
        if news.acted == reader.tick {
            self.acts_of(reader, e.slot);
        }
        (outcome, withheld)
    }
}

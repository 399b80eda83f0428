//! Players' bonds where they live: those of the scene's kinds are their ties, those of other kinds wait for a scene
//! that has them.
//!
//! A player's session is told of every change, so that bonds outlive a region whose checkpoint does not have them.

use super::Region;
use crate::scene::messages::{Effect, Handoff, Notice};
use crate::scene::mutants::{self, Mutant};
use crate::scene::views::{Bond, KeptBonds, Ties};
use crate::scene::{Epoch, SessionId, TickStamp};

/// What a session is told; `None`: what it takes for granted.
fn notice(to: SessionId, epoch: Epoch, bonds: KeptBonds) -> Option<Effect> {
    let is_news = bonds != KeptBonds::default();
    is_news.then(|| Effect::Notice(to, Notice::Bonds { epoch, bonds }))
}

impl Region {
    /// Sets the bonds of the scene's kinds of the player at `slot`.
    pub(super) fn set_bonds(&mut self, slot: u32, bonds: Vec<Bond>, fx: &mut Vec<Effect>) {
        self.change_bonds(slot, bonds);
        let now = self.clock.tick();
        if let Some(viewer) = self.views.of_mut(&self.entities, slot) {
            viewer.other_bonds.at = now;
        }
        self.tell_bonds(slot, fx);
    }

    fn change_bonds(&mut self, slot: u32, bonds: Vec<Bond>) {
        self.entities.change_ties(slot, |ties| ties.set_bonds(bonds));
        self.bonds_changed(slot, TickStamp::of(self.clock.tick()));
        // Neighbours must be told the new bonds: mirror it anew.
        if let Some(real) = self.entities.real_mut(slot) {
            real.restate = true;
        }
    }

    /// All bonds of a player, of which `others` are those of kinds that the scene does not have.
    pub(super) fn kept_bonds(&self, ties: &Ties, others: &KeptBonds) -> KeptBonds {
        let spec = &self.identity.scene().spec.bonds;
        KeptBonds { at: others.at, named: spec.named(&ties.bonds, &others.named) }
    }

    /// All bonds of the player at `slot`.
    pub(super) fn bonds_of(&self, slot: u32) -> KeptBonds {
        let record = self.entities.record(slot);
        let viewer = self.views.of(&self.entities, slot);
        viewer.map(|viewer| self.kept_bonds(&record.ties, &viewer.other_bonds)).unwrap_or_default()
    }

    /// Tells the session of the player at `slot` its bonds.
    pub(super) fn tell_bonds(&self, slot: u32, fx: &mut Vec<Effect>) {
        let session = self.views.of(&self.entities, slot).and_then(|viewer| viewer.session);
        let (bonds, epoch) = (self.bonds_of(slot), self.entities.record(slot).epoch);
        fx.extend(session.and_then(|to| notice(to, epoch, bonds)));
    }

    /// Tells the session of a player that comes its bonds.
    pub(super) fn tell_bonds_of(&self, handoff: &Handoff, to: SessionId, fx: &mut Vec<Effect>) {
        let bonds = self.kept_bonds(&handoff.ties, &handoff.state.bonds);
        fx.extend(notice(to, handoff.epoch, bonds));
    }

    /// Of the bonds of a player that are known here and those that its session presents those count that were set
    /// last. Whether these are the session's.
    pub(super) fn newer_bonds(
        &self,
        ties: &mut Ties,
        others: &mut KeptBonds,
        presented: &KeptBonds,
    ) -> bool {
        let knows_none = *others == KeptBonds::default() && ties.bonds.is_empty();
        let newer = presented.at > others.at || knows_none;
        if newer {
            others.clone_from(presented);
            ties.set_bonds(Vec::new());
            self.take_bonds(ties, others);
        }
        newer
    }

    /// The same for the player at `slot`.
    pub(super) fn take_newer_bonds(&mut self, slot: u32, presented: &KeptBonds) {
        let Some(viewer) = self.views.of(&self.entities, slot) else { return };
        let mut others = viewer.other_bonds.clone();
        let mut ties = self.entities.record(slot).ties.clone();
        if self.newer_bonds(&mut ties, &mut others, presented) {
            self.change_bonds(slot, ties.bonds);
            if let Some(viewer) = self.views.of_mut(&self.entities, slot) {
                viewer.other_bonds = others;
            }
        }
    }

    /// An entity leaves the scene with all bonds by their names.
    pub(super) fn name_bonds(&self, handoff: &mut Handoff) {
        handoff.state.bonds = match mutants::has(Mutant::BondsLost) {
            true => KeptBonds::default(),
            false => self.kept_bonds(&handoff.ties, &handoff.state.bonds),
        };
        handoff.ties.set_bonds(Vec::new());
    }

    /// An entity comes: its bonds of kinds that this scene has count from now on.
    pub(super) fn take_bonds(&self, ties: &mut Ties, others: &mut KeptBonds) {
        let mut own = self.identity.scene().spec.bonds.take_own(&mut others.named);
        if !own.is_empty() {
            own.splice(0..0, ties.bonds.iter().copied());
            ties.set_bonds(own);
        }
    }
}

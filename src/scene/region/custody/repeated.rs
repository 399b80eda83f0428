//! The owner of a region that died may have handed entities over in vain: the next owner asks about those that its
//! checkpoint has in escrow, and hands over again what nobody has.

use std::collections::BTreeMap;

use super::recovery::AGAIN_TICKS;
use crate::scene::messages::{Claim, Claims, Handoff};
use crate::scene::messages::{Effect, Input};
use crate::scene::mutants::{self, Mutant};
use crate::scene::region::Region;
use crate::scene::{EntityId, RegionId};

impl Region {
    /// Asks about entities that the owner before has handed over recently: it may have died before
    /// the messages arrived.
    pub(in crate::scene::region) fn ask_about_handed_off(&mut self, fx: &mut Vec<Effect>) {
        let recent = self
            .custody
            .escrow
            .lent()
            .filter(|(at, ..)| at.0.saturating_add(AGAIN_TICKS) > self.clock.tick().0);
        let unknown = recent.filter(|(.., handoff)| self.knows_newer(handoff).is_none());
        let again: Vec<_> = unknown.map(|(_, to, handoff)| (*to, handoff.clone())).collect();
        let claim =
            |(to, h): &(RegionId, Handoff)| Claim { id: h.state.id, epoch: h.epoch, region: *to };
        self.ask_about(again.iter().map(claim).collect(), fx);
        if let Some(recovering) = self.custody.recovering.as_mut() {
            recovering.again = again.into_iter().collect();
        }
    }

    /// Whether it is not known yet that an entity which was handed over has arrived.
    pub(in crate::scene::region) fn may_have_lost(&self, id: EntityId) -> bool {
        self.custody.recovering.as_ref().is_some_and(|r| r.again.has(id))
    }

    /// Whether questions about entities that the owner before may have handed over in vain are
    /// still open.
    pub(in crate::scene::region) fn has_handoffs_to_repeat(&self) -> bool {
        self.custody.recovering.as_ref().is_some_and(|r| !r.again.is_empty())
    }

    /// Repeats the last handoffs of the owner before, except of entities that another region has under a later epoch.
    pub(in crate::scene::region) fn repeat_handoffs(&mut self, fx: &mut Vec<Effect>) {
        if self.is_recovering() || !self.have_all_answered() {
            return;
        }
        let again = self.custody.recovering.as_mut().map(|r| r.again.take());
        let mut by_region: BTreeMap<RegionId, Vec<Handoff>> = BTreeMap::new();
        for (to, handoff) in again.into_iter().flatten() {
            if self.knows_newer(&handoff).is_none() && !mutants::has(Mutant::HandedOnce) {
                by_region.entry(to).or_default().push(handoff);
            }
        }
        let (from, tick) = (self.identity.id(), self.clock.tick());
        for (to, handed) in by_region {
            let claims = Claims { from, answer: None, tick, lives: Vec::new(), handed };
            fx.push(Effect::Forward(to, Box::new(Input::Claims(Box::new(claims)))));
        }
    }
}

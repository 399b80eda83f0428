//! Regions of a scene compare the relations of groups that they know.
//!
//! Orders are told to all regions once, and neighbours learn from each other. Neither reaches a region whose link was
//! cut while its neighbours had the order, nor regions of other groups of planes, which are nobody's neighbours. So each
//! region that knows any relation tells one other region of the scene every two seconds, one after the other, a digest of
//! what it knows (anti-entropy; Demers et al., *Epidemic algorithms for replicated database maintenance*, 1987). Where
//! that differs the other one answers with its orders. Orders may come twice and out of order.

use super::Region;
use crate::scene::RegionId;
use crate::scene::messages::{Effect, Input, SceneOrder};
use crate::scene::mutants::{self, Mutant};

/// Between two digests of a region.
const EVERY_TICKS: u64 = 20;

/// Most orders of an answer; others come with the next ones.
const ORDERS_MAX: usize = 256;

/// The region of a scene that another one tells in its turn; `None` if that has no ground, or is alone.
fn partner(me: RegionId, turn: u64, all: &[RegionId]) -> Option<RegionId> {
    let at = all.iter().position(|id| *id == me)?;
    let others = (all.len() as u64).checked_sub(1).filter(|others| *others > 0)?;
    let ahead = 1 + (turn + u64::from(me.0)) % others;
    all.get((at + ahead as usize) % all.len()).copied()
}

impl Region {
    /// Tells another region what this one knows.
    pub(super) fn compare_relations(&self, fx: &mut Vec<Effect>) {
        let (me, tick) = (self.identity.id(), self.clock.tick());
        if !tick.0.is_multiple_of(EVERY_TICKS) || mutants::has(Mutant::RelationsUnlearned) {
            return;
        }
        let all: Vec<_> = self.identity.scene().map.regions.iter().map(|entry| entry.id).collect();
        let Some(to) = partner(me, tick.0 / EVERY_TICKS, &all) else { return };
        let digest = self.entities.relations().digest();
        if digest != 0 {
            let known = SceneOrder::RelationsKnown { by: me, digest };
            fx.push(Effect::Forward(to, Box::new(Input::Scene(known))));
        }
    }

    /// Another region has told what it knows: it is given the orders that are known here.
    pub(super) fn answer_relations(&self, by: RegionId, digest: u64, fx: &mut Vec<Effect>) {
        let known = self.entities.relations();
        if known.digest() == digest {
            return;
        }
        let mut orders = known.all();
        if let Some(last) = orders.len().checked_sub(1).filter(|last| *last >= ORDERS_MAX) {
            let turn = self.clock.tick().0 / EVERY_TICKS;
            orders.rotate_left(turn as usize * ORDERS_MAX % (last + 1));
            orders.truncate(ORDERS_MAX);
        }
        let told = orders.into_iter().map(SceneOrder::Relation);
        fx.extend(told.map(|order| Effect::Forward(by, Box::new(Input::Scene(order)))));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_region_tells_every_other_one_in_turn_and_never_itself() {
        let all: Vec<RegionId> = [3, 4, 9, 20].map(RegionId).into();
        for me in &all {
            let told: Vec<_> = (0..3).filter_map(|turn| partner(*me, turn, &all)).collect();
            let others: BTreeSet<_> = all.iter().filter(|id| *id != me).copied().collect();
            assert_eq!((told.len(), told.into_iter().collect::<BTreeSet<_>>()), (3, others));
        }
        assert_eq!(partner(RegionId(3), 0, &[RegionId(3)]), None);
        assert_eq!(partner(RegionId(5), 0, &all), None, "a region that has no ground any more");
    }
}

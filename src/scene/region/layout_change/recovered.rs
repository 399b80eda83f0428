//! Recovery during a layout change.
//!
//! A region that dies then recovers by the new layout at once; the other regions still have the old one. Each answers
//! the recovered region once it has changed over. Until all have answered, the recovered region makes no contents: some
//! of its new ground may still be another region's.

use crate::scene::messages::{Change, Effect, MapNews, Recovered};
use crate::scene::region::Region;

impl Region {
    /// Whether a region that has recovered is answered when the change to its map is done here: only then is it known
    /// what has come to its ground from here. It takes no part in the change itself.
    pub(in crate::scene::region) fn answers_later(
        &mut self,
        news: &Recovered,
        fx: &mut Vec<Effect>,
    ) -> bool {
        let pending = self.layout.pending.as_mut();
        let Some(pending) = pending.filter(|p| p.scene.map.version == news.map) else {
            return false;
        };
        pending.recovered.push(news.clone());
        pending.ended.push(news.region);
        pending.ceded.push(news.region);
        self.border.has_ended(news.region);
        self.evaluate_when_complete(fx);
        self.change_over(fx);
        true
    }

    /// This region has recovered by a map to which another one has changed over only now.
    pub(super) fn take_ceded_late(&mut self, news: MapNews) {
        let Change::Ceded { doors, relations, contents } = news.change else { return };
        if news.version == self.map_version() && !self.have_all_answered() {
            self.entities.relations_mut().merge(relations);
            self.inherit(&Vec::from_iter(doors), contents.map(|contents| *contents));
        }
    }
}

//! The subjects of players: a session has a player only if both are of one subject.
//!
//! Each statement of a session that would give it a player, or take a player away from another session,
//! names the session's subject ([`SubjectHash`]). The region compares it with what it knows of the player,
//! wherever that is: in the world, on its way here, or in the checkpoint from which the region goes on.
//! A mismatch changes nothing: the owner's session goes on, and the other session is refused.

use crate::scene::region::Region;
use crate::scene::{EntityId, SubjectHash};

impl Region {
    /// The subject of a player that is known here; `None` for other entities.
    pub(in crate::scene::region) fn subject_of(&self, id: EntityId) -> Option<SubjectHash> {
        if let Some(slot) = self.entities.real_slot(id) {
            return self.views.of(&self.entities, slot).map(|viewer| viewer.subject);
        }
        let known = self.custody.incoming_of(id).or_else(|| self.unclaimed_of(id));
        known.map(|known| known.state.subject)
    }

    /// Whether a session of this subject speaks of another subject's player, which is counted.
    pub(in crate::scene::region) fn is_of_other_subject(
        &mut self,
        id: EntityId,
        subject: SubjectHash,
    ) -> bool {
        let is_other = self.subject_of(id).is_some_and(|known| known != subject);
        if is_other {
            self.counts.other_subjects += 1;
            crate::log_limited!(at self.log_ms(); warn, region = %self.identity.id(), entity = %id, "a session asked for another subject's player and was refused");
        }
        is_other
    }
}

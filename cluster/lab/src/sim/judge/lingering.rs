//! Players that linger after their clients have left: a new login takes them over.
//!
//! At rest a player that lingers longer than it may is noticed, too: it has no client and still acts.

use std::collections::BTreeMap;
use std::time::Duration;

use purview::scene::EntityId;

use super::{Invariant, Judge, LATE};

pub const LINGER_MS: u32 = 8_000;

/// The players of clients that have left, by their subjects, and when the clients were told so.
#[derive(Debug, Default)]
pub(super) struct Lingering(BTreeMap<u32, (EntityId, Duration)>);

impl Judge {
    /// A client was told that it has left.
    pub fn lingers(&self, subject: u32, id: EntityId) {
        let now = self.journal.now();
        self.inner().lingering.0.insert(subject, (id, now));
    }

    /// A client of the subject has joined, with this player.
    pub fn returns(&self, subject: u32, id: EntityId) {
        let now = self.journal.now();
        let Some((before, at)) = self.inner().lingering.0.remove(&subject) else { return };
        let since = now.saturating_sub(at);
        // The news of the leave may have been late.
        let surely = Duration::from_millis(LINGER_MS.into()).saturating_sub(LATE);
        let is_lost = self.is_recovered(before, since) || self.may_be_forgotten(since);
        let is_double_granted = !self.inner().double_granted.is_empty();
        if id != before && since < surely && !is_lost && !is_double_granted {
            let text = format!(
                "{before} of subject {subject} has left {since:?} ago and lingers, and {id} has joined in its place"
            );
            self.violated(Invariant::Lingers, vec![before, id], text);
        }
    }
}

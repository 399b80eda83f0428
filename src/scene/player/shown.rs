//! Which entities the client is shown, by the frames that were passed on to it.
//!
//! An operator's console asks for the list; the session decides nothing by it.

use crate::scene::EntityId;
use crate::scene::messages::{FrameBatch, SessionFrame};

/// The entities that the client is shown, in the order of their ids.
#[derive(Debug, Default)]
pub(super) struct Shown(Vec<EntityId>);

impl Shown {
    pub(super) fn ids(&self) -> &[EntityId] {
        &self.0
    }

    /// A frame is passed on to the client.
    pub(super) fn apply(&mut self, batch: &FrameBatch, part: &SessionFrame) {
        if part.resync {
            self.0.clear();
        }
        for id in batch.leaves_of(part) {
            if let Ok(at) = self.0.binary_search(id) {
                self.0.remove(at);
            }
        }
        for &entering in batch.refs_of(part)[0] {
            let id = batch.entering[entering as usize].id;
            if let Err(at) = self.0.binary_search(&id) {
                self.0.insert(at, id);
            }
        }
    }

    /// The client is gone: it is shown nothing, and the memory is given back.
    pub(super) fn clear(&mut self) {
        self.0 = Vec::new();
    }
}

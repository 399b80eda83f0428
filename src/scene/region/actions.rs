//! The actions of the open tick: what entities did that every viewer and neighbour is told.

use crate::scene::messages::EntityAction;
use crate::scene::{EntityId, Tick};

/// An action of this tick. Its entity may have left since, and its slot may be another entity's.
#[derive(Debug, Clone)]
pub struct PendingAction {
    /// The slot in which the entity was.
    pub slot: u32,
    /// The entity.
    pub id: EntityId,
    /// What it did.
    pub content: EntityAction,
    /// It lived here when it acted: neighbours receive it from this region and from no other.
    pub here: bool,
    /// The tick in which it acted: before this one, if a neighbour was late to tell.
    pub of: Tick,
    /// The slot of the only viewer that is to be told: the others were.
    pub only: Option<u32>,
}

/// All actions of the open tick.
#[derive(Debug, Default)]
pub struct TickActions(Vec<PendingAction>);

impl TickActions {
    /// A tick begins.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// An entity has acted.
    pub fn note(&mut self, action: PendingAction) {
        self.0.push(action);
    }

    /// The actions, in the order in which they were noted.
    pub fn iter(&self) -> impl Iterator<Item = &PendingAction> {
        self.0.iter()
    }

    /// Takes the actions, to tell them.
    pub fn drain(&mut self) -> impl Iterator<Item = PendingAction> + '_ {
        self.0.drain(..)
    }
}

//! What a region's actor is asked beside its inputs: looks for operators, steps of a layout change, and
//! the end of a region's life here. [`ToRegion`] is what regions' mailboxes hold in play, [`Delivery`] what
//! waits for sessions.
//!
//! Every mailbox is bounded; each message names what happens when one is full.

use std::sync::Arc;

use actix::Message;

pub use super::address::{Delivery, ToRegion};
use crate::scene::region::{NotProposed, RegionSnapshot};
use crate::scene::{Scene, Tick};
use crate::wire::peer::ActorState;

/// Asks a region for a copy of its state.
#[derive(Message, Debug, Clone, Copy)]
#[rtype(result = "crate::scene::inspect::RegionDetails")]
pub struct Inspect {
    /// Only entities of this plane; `None` for all.
    pub plane: Option<crate::scene::Plane>,
}

/// Asks a region for one of its own entities, a player with all that it sees; `None` if it does not
/// live there.
#[derive(Message, Debug, Clone, Copy)]
#[rtype(result = "Option<crate::scene::inspect::InspectedEntity>")]
pub struct InspectEntity(pub crate::scene::EntityId);

/// Asks a region what it has to do.
#[derive(Message, Debug, Clone, Copy)]
#[rtype(result = "crate::scene::load::RegionReport")]
pub struct Weigh;

/// Asks a region to promise that it does not go beyond a tick before a layout change is decided
/// ([`crate::scene::Region::propose`]).
#[derive(Message, Debug, Clone)]
#[rtype(result = "Result<(), NotProposed>")]
pub struct ProposeMap {
    /// The scene with its next map.
    pub scene: Arc<Scene>,
    /// The last tick by the present one.
    pub after: Tick,
}

/// Tells a region whether a layout change comes to pass. A region that has promised nothing follows a
/// decided change, too, as soon as it can.
#[derive(Message, Debug, Clone)]
#[rtype(result = "()")]
pub struct DecideMap {
    /// The scene with its next map.
    pub scene: Arc<Scene>,
    /// The last tick by the present one.
    pub after: Tick,
    /// Whether it comes to pass.
    pub comes: bool,
}

/// Ends a region's actor. Its region has another owner by now, or none.
#[derive(Message, Debug, Clone, Copy)]
#[rtype(result = "()")]
pub struct Halt;

/// A region that has ended its life in one process.
#[derive(Debug)]
pub struct Departure {
    /// The region.
    pub snapshot: RegionSnapshot,
    /// The checkpoint that is to be kept if the new owner does not continue with the region.
    pub checkpoint: Option<RegionSnapshot>,
    /// What its actor had.
    pub actor_state: ActorState,
}

/// Opens a tick of a region whose clock is manual (tests, benchmarks); one that is not newer than the
/// last changes nothing.
#[derive(Message, Debug, Clone, Copy)]
#[rtype(result = "()")]
pub struct RunTick(pub crate::scene::Tick);

//! What the actors say to each other. Every mailbox is bounded; each message names what happens
//! when one is full.

use std::sync::Arc;

use actix::Message;

use super::address::SessionAddress;
use crate::scene::messages::{Input, Notice};
use crate::scene::region::{NotProposed, RegionSnapshot};
use crate::scene::{Epoch, RegionId, Scene, Tick};
use crate::wire::EncodedBatch;
use crate::wire::peer::{Baggage, Mark};

/// Something for a region. When the region's mailbox is full: a client's input stays in the
/// player's buffer of unacknowledged inputs and is sent again; ghosts are replaced by a full batch
/// later; negotiation and handoffs wait in the sender's outbox and are never dropped; whoever orders
/// a door waits for room.
#[derive(Message, Debug)]
#[rtype(result = "()")]
pub struct ToRegion {
    /// The input.
    pub input: Input,
    /// With [`Input::Enter`], [`Input::Handoff`], [`Input::Present`] and [`Input::Resume`] of a player: where its session's
    /// deliveries go.
    pub client: Option<SessionAddress>,
}

/// Something for a player's session. When the player's mailbox is full the frame is lost and the
/// region is told to resync; a notice waits in the region's outbox.
#[derive(Message, Debug, Clone)]
#[rtype(result = "()")]
pub enum Delivery {
    /// The frame at this index of the batch is for this session.
    Frame(Arc<EncodedBatch>, u32),
    /// News of the entity.
    Notice(Notice),
    /// A region goes on from a checkpoint under a new owner, of this epoch.
    Owner(RegionId, Epoch),
}

/// Asks a region for a copy of its state.
#[derive(Message, Debug, Clone, Copy)]
#[rtype(result = "crate::scene::inspect::RegionSnapshot")]
pub struct Inspect {
    /// Only entities of this plane; `None` for all.
    pub plane: Option<crate::scene::Plane>,
}

/// Asks a region for one of its own entities, a player with all that it sees; `None` if it does not
/// live there.
#[derive(Message, Debug, Clone, Copy)]
#[rtype(result = "Option<crate::scene::inspect::Resident>")]
pub struct InspectEntity(pub crate::scene::EntityId);

/// Asks a region to promise that it does not go beyond a tick before a change of the region map is decided
/// ([`crate::scene::Region::propose`]).
#[derive(Message, Debug, Clone)]
#[rtype(result = "Result<(), NotProposed>")]
pub struct ProposeMap {
    /// The scene with its next map.
    pub scene: Arc<Scene>,
    /// The last tick by the present one.
    pub after: Tick,
}

/// Tells a region whether a change of the region map comes to pass. One that comes is followed by a region
/// that has promised nothing, too, as soon as it can.
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

/// Ends a region's actor. What it holds is another's by now, or nobody's.
#[derive(Message, Debug, Clone, Copy)]
#[rtype(result = "()")]
pub struct Halt;

/// A region that has ended its life in one process.
#[derive(Debug)]
pub struct Departure {
    /// The region.
    pub snapshot: RegionSnapshot,
    /// What is to be kept of it if nobody goes on with it.
    pub checkpoint: Option<RegionSnapshot>,
    /// What its actor had.
    pub baggage: Baggage,
}

impl Message for Mark {
    type Result = ();
}

/// Opens a tick of a region whose clock is manual (tests, benchmarks); one that is not newer than the
/// last changes nothing.
#[derive(Message, Debug, Clone, Copy)]
#[rtype(result = "()")]
pub struct RunTick(pub crate::scene::Tick);

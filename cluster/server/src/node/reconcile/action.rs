//! The possible actions. The whole list of a decision is data, so that a test can compare it.

use purview::scene::{Epoch, RegionId};

use super::local::Route;
use crate::storage::{Incarnation, RegionKey};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::node) enum Action {
    /// A process has joined: call it from now on.
    Greet(Incarnation),
    TellSuspicion(u64),
    /// Ends the lease of a process that is dead.
    Evict(Incarnation, u64),
    /// Ends regions here whose next owners are known.
    EndSuperseded,
    /// A process has gone: what it did not acknowledge, and must arrive, waits for the next owners.
    ForgetProcess(Incarnation, u64),
    FollowLayouts,
    /// A region that a change of its layout gave up has nothing to do any more.
    Retire(RegionId),
    /// What is this process's by the store, does not run here, and is to run elsewhere or nowhere, is given up.
    GiveUp {
        region: RegionId,
        key: RegionKey,
        epoch: Epoch,
        /// Only if the store says that the region is to have no owner.
        unless_due: bool,
    },
    Forget(RegionId),
    /// The store has caught up with a move that the owner of this epoch had announced.
    ForgetMove(RegionId, Epoch),
    /// Only the owner of this epoch or a later one may send for a region.
    LearnEpoch(RegionId, Epoch),
    /// The store shows all processes that the region runs here.
    Confirm(RegionId),
    /// A region that runs here is found here.
    RouteHere {
        region: RegionId,
        epoch: Epoch,
        lineage: Epoch,
    },
    /// A region is found elsewhere, or nowhere.
    RouteRemote {
        region: RegionId,
        to: Route,
        lineage: Epoch,
        /// The epoch under which it runs here, where it ends by this.
        here: Option<Epoch>,
        /// Its owner had announced the move.
        was_told: bool,
        /// Sessions must learn of a new owner.
        is_new: bool,
    },
    TellRegions,
    /// This process is no longer responsible for a region that was down here.
    LeaveDown(RegionId),
    /// Claims these, one after the other, and starts what is granted.
    Claim(Vec<RegionId>),
    /// Takes regions off the list of those that are down.
    ClearDown,
    TellOverdue(Vec<RegionId>),
    /// Hands a region over to another process.
    SendOff {
        region: RegionId,
        key: RegionKey,
        epoch: Epoch,
        to: (Incarnation, u64),
    },
    Lead,
    /// Ends every region here; each keeps its last checkpoint if the lease still holds.
    EndAll(Vec<(RegionId, Epoch)>),
}

//! What a process of a cluster gives its directory: a fence, a place for checkpoints, an observer, and a
//! finder of sessions of other processes. The server implements these traits, and so does the simulator.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use crate::actor::address::SessionAddress;
use crate::scene::messages::CommandResult;
use crate::scene::region::RegionSnapshot;
use crate::scene::{Epoch, Region, RegionId, SessionId, Tick};

/// Whether a process is still believed to own what it owns (DESIGN, ENGINE: self-fencing).
pub trait Fence: Debug + Send + Sync {
    /// Whether its regions may act now. Asked before every tick and before anything is delivered.
    fn may_act(&self) -> bool;
}

/// Where regions of a process bring what is to be kept in case that the process dies.
pub trait CheckpointWriter: Debug + Send + Sync {
    /// After how many ticks a region brings a checkpoint; at least 1.
    fn every_ticks(&self) -> u64;

    /// A region runs here from now on. `durable`: the tick of the checkpoint from which it would go on, if it is known.
    fn begin(&self, region: RegionId, epoch: Epoch, durable: Option<Tick>);

    /// Takes one, at once: a region's tick waits for it.
    fn keep(&self, snapshot: RegionSnapshot);

    /// The oldest tick of all checkpoints from which regions of this process would continue; `None`: not
    /// known. While the store is unreachable the tick stands for the checkpoints of other processes, too.
    fn oldest(&self) -> Option<Tick>;

    /// A region no longer runs here under this epoch.
    fn forget(&self, region: RegionId, epoch: Epoch);
}

/// An observer of the regions of a process, for example a simulator that judges them.
pub trait Observer: Debug + Send + Sync {
    /// A region that may act has ended a tick, or begun a tick that waits for a neighbour.
    fn acted(&self, region: &Region);

    /// A region has ended a tick, and nothing has happened since. A tick that ends only when the next one begins, since
    /// a neighbour was silent, is left out.
    fn tick_over(&self, _region: &Region) {}

    /// The cost of a region's last tick, microseconds, in place of the measured one: a simulated clock stands still in a
    /// tick.
    fn cost_us(&self, _region: &Region) -> Option<u64> {
        None
    }
}

/// A process that is one of many.
#[derive(Debug, Clone)]
pub struct Process {
    /// Its number, unique among the processes that live at the same time; above 0 and below 2^21, so that ids
    /// stay below 2^53 and every client can represent them.
    pub number: u64,
    /// The cluster's time when the directory is made.
    pub clock: Duration,
    /// Whether its regions may act; `None`: always.
    pub fence: Option<Arc<dyn Fence>>,
    /// Where checkpoints go; `None`: there are none.
    pub checkpoint_writer: Option<Arc<dyn CheckpointWriter>>,
}

/// Carries results of commands to other processes, whose calls have given them.
pub trait TellCaller: Debug + Send + Sync {
    /// Tells a process what has become of a command. It is lost if the process is out of reach: the call then ends
    /// unanswered.
    fn tell(&self, process: u64, ended: CommandResult);
}

/// Finds sessions of all processes.
pub trait FindSession: Debug + Send + Sync {
    /// Where a session is; `None`: the session has ended.
    fn find(&self, session: SessionId) -> Option<SessionAddress>;
}

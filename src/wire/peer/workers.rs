//! Messages between processes about logic workers: a worker is connected to one process and has regions of others.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::scene::messages::Command;
use crate::scene::{Account, EntityId, Epoch, Plane, Pos, RegionId, SceneId};

/// A message about workers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkerMsg {
    /// What the sender has. It is repeated.
    Here {
        /// All workers that are connected to the sender.
        workers: Vec<WorkerNotice>,
        /// A number that differs where the receiver knows other private planes than the sender.
        planes: u64,
    },
    /// Private planes that were opened or closed, or all that the sender knows, in parts.
    Planes(Vec<PlaneNews>),
    /// A region of the sender tells a worker of the receiver.
    Told(Box<WorkerTold>),
    /// A worker of the sender answers a region of the receiver.
    Answer(Box<WorkerAnswer>),
    /// A lease of a worker of the receiver has ended. Nothing depends on it.
    Ended {
        /// The worker's session.
        worker: u64,
        /// The lease.
        lease: LeaseName,
    },
    /// A region of the sender has refused commands of a worker of the receiver. It is repeated.
    Refused {
        /// The worker's session.
        worker: u64,
        /// The region.
        region: RegionId,
        /// The response, as the protocol of workers has it.
        response: Bytes,
    },
    /// A worker of the sender knows what a region of the receiver has refused.
    Got(WorkerGot),
    /// The sender asks a worker of the receiver whether a player may come.
    Ask(Box<WorkerQuestion>),
    /// A worker of the sender answers a question of the receiver.
    Verdict {
        /// The question.
        question: u64,
        /// The worker.
        worker: u64,
        /// Whether the player may come.
        allow: bool,
        /// Why it may not.
        reason: String,
        /// Into which plane it comes; `None`: the one of the question.
        #[serde(default)]
        plane: Option<Plane>,
    },
}

/// Names a lease. Of two leases of a region the newer one has the higher name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LeaseName {
    /// The region.
    pub region: RegionId,
    /// The epoch under which it acts.
    pub epoch: Epoch,
    /// The number of the lease in the epoch.
    pub number: u64,
}

/// What a region tells a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerTold {
    /// The worker's session.
    pub worker: u64,
    /// The lease.
    pub lease: LeaseName,
    /// The number of the message in the lease.
    pub seq: u64,
    /// The response, as the protocol of workers has it.
    pub response: Bytes,
}

/// A worker answers what a region has told it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerAnswer {
    /// The worker's session.
    pub worker: u64,
    /// The lease.
    pub lease: LeaseName,
    /// The number of the message that it answers.
    pub seq: u64,
    /// The commands, in their order.
    pub commands: Vec<WorkerCommand>,
}

/// A command of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerCommand {
    /// The entity; none: it is for the scene.
    pub entity: EntityId,
    /// For an entity of another region it leaves only when its batch is saved.
    pub held: bool,
    /// What is to be done.
    pub wish: WorkerWish,
    /// Only if the entity lives in the region under this epoch.
    #[serde(default)]
    pub epoch: Option<Epoch>,
    /// Together with the command before it, or not at all.
    #[serde(default)]
    pub together: bool,
}

/// What a worker wants done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkerWish {
    /// Something that regions do.
    Command(Command),
    /// A private plane is opened, or closed.
    Plane {
        /// The plane.
        plane: Plane,
        /// Who may come; `None`: it is closed.
        subjects: Option<Vec<String>>,
    },
    /// Something that is not legal whatever the region says: a reason of the protocol of workers, and a text for people.
    Illegal(i32, String),
}

/// A worker knows what a region has refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerGot {
    /// The worker's session.
    pub worker: u64,
    /// The region.
    pub region: RegionId,
    /// The epoch under which the region has said so.
    pub epoch: Epoch,
    /// The number of the last refusal.
    pub last: u64,
}

/// Whether a player may come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerQuestion {
    /// The worker that is asked.
    pub worker: u64,
    /// The number of the question.
    pub question: u64,
    /// Whose the player is.
    pub account: Account,
    /// The player's entity.
    pub entity: EntityId,
    /// Where it wants to go.
    pub plane: Plane,
    /// Where it wants to go.
    pub pos: Pos,
    /// Whether it jumps from elsewhere, and does not join.
    pub jumps: bool,
}

/// A worker, as the process tells to which it is connected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerNotice {
    /// The number of its session.
    pub worker: u64,
    /// Its scene.
    pub scene: SceneId,
    /// What operators see.
    pub name: String,
    /// Whether it answers questions.
    pub answers: bool,
    /// Of which entities it is told positions: 0: watched ones, 1: all, 2: none.
    pub followed: u8,
}

/// When a private plane was opened or closed: the higher one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PlaneVersion {
    /// Higher than all that the process knew that has opened or closed it.
    pub count: u64,
    /// That process.
    pub process: u64,
}

/// A private plane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaneNews {
    /// The scene.
    pub scene: SceneId,
    /// The plane.
    pub plane: Plane,
    /// When it was opened or closed.
    pub version: PlaneVersion,
    /// Who may come; `None`: it is closed.
    pub subjects: Option<Vec<String>>,
}

//! Messages between processes about logic workers: a worker is connected to one process and has regions of others.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::scene::messages::{Command, NumberedCommand};
use crate::scene::{EntityId, Epoch, Plane, Pos, RegionId, SceneId, Tick};

/// A message about workers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkerMsg {
    /// What the sender has. It is repeated.
    Here {
        /// All workers that are connected to the sender, or may resume their sessions there.
        workers: Vec<WorkerNotice>,
        /// A number that differs where the receiver knows other private planes than the sender.
        planes: u64,
    },
    /// Private planes that were opened or closed, or all that the sender knows, in parts.
    Planes(Vec<PlaneNews>),
    /// From the sender for a worker of the receiver.
    Response {
        /// The worker.
        worker: u64,
        /// The region that says it; `None`: the process does.
        of: Option<RegionNews>,
        /// The response without its number, as the protocol of workers has it.
        response: Bytes,
    },
    /// From a worker of the sender for a region of the receiver.
    Batch(Box<WorkerBatch>),
    /// A worker of the receiver does not answer a region of the sender in time.
    Late(u64),
    /// Has this region, of any process, told a worker of the receiver what happened at the end of this tick? It is asked
    /// again in each tick until the receiver says so.
    AskTold {
        /// The worker.
        worker: u64,
        /// The region.
        region: RegionId,
        /// The tick.
        tick: Tick,
    },
    /// It has, or need not.
    Told {
        /// The worker, of the sender.
        worker: u64,
        /// The region.
        region: RegionId,
        /// The tick.
        tick: Tick,
    },
    /// The sender asks a worker of the receiver whether a player may come.
    Ask(Box<WorkerQuestion>),
    /// A worker of the sender answers a question of the receiver.
    Answer {
        /// The question.
        question: u64,
        /// The worker.
        worker: u64,
        /// Whether the player may come.
        allow: bool,
        /// Why it may not.
        reason: String,
    },
}

/// Whether a player may come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerQuestion {
    /// The worker that is asked.
    pub worker: u64,
    /// The number of the question.
    pub question: u64,
    /// The subject of the player's token.
    pub subject: String,
    /// The player's entity.
    pub entity: EntityId,
    /// Where it wants to go.
    pub plane: Plane,
    /// Where it wants to go.
    pub pos: Pos,
    /// Whether it jumps from elsewhere, and does not join.
    pub jumps: bool,
}

/// A region that says something to a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionNews {
    /// The region.
    pub region: RegionId,
    /// The epoch under which it acts.
    pub epoch: Epoch,
    /// What becomes of the worker's lease.
    pub lease: LeaseNews,
}

/// What becomes of a worker's lease of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LeaseNews {
    /// Nothing.
    Same,
    /// The one of this number begins, or a further part of its beginning is told: the region as it is in this tick.
    Begins(u64, Tick),
    /// The worker is told all that happened before this tick and in it.
    Told(Tick),
    /// It has ended.
    Ended,
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
    /// Whether it has a connection, or had one a moment ago.
    pub here: bool,
    /// Whether it does not answer in time.
    pub late: bool,
    /// Grows when all its leases must begin again.
    pub generation: u64,
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

/// Commands for one region and tick.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerBatch {
    /// The worker.
    pub worker: u64,
    /// The region.
    pub region: RegionId,
    /// The epoch of the lease.
    pub epoch: Epoch,
    /// The number of the lease.
    pub lease: u64,
    /// How far the worker has come.
    pub handled: Tick,
    /// The commands, in their order.
    pub commands: Vec<WorkerCommand>,
}

/// A command of a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkerCommand {
    /// For an entity.
    Entity(NumberedCommand),
    /// For the scene.
    Scene {
        /// The number among those of the worker for entity 0.
        number: u64,
        /// What is to be done.
        command: Command,
    },
    /// For a private plane of the scene.
    Plane {
        /// As in `Scene`.
        number: u64,
        /// The plane.
        plane: Plane,
        /// Who may come; `None`: it is closed.
        subjects: Option<Vec<String>>,
    },
}

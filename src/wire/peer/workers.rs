//! Messages between processes about logic workers: a worker is connected to one process and has regions of others.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::scene::messages::{Command, NumberedCommand};
use crate::scene::{Epoch, Plane, RegionId, SceneId, Tick};

/// A message about workers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkerMsg {
    /// All workers that are connected to the sender, or may resume their sessions there. It is repeated.
    Here(Vec<WorkerNotice>),
    /// From a region of the sender for a worker of the receiver.
    Response {
        /// The worker.
        worker: u64,
        /// A lease begins or ends with it.
        lease: Option<LeaseNews>,
        /// The response without its number, as the protocol of workers has it.
        response: Bytes,
    },
    /// From a worker of the sender for a region of the receiver.
    Batch(Box<WorkerBatch>),
    /// A worker of the receiver does not answer a region of the sender in time.
    Late(u64),
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

/// A lease of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LeaseNews {
    /// It begins.
    Begins(RegionId),
    /// It has ended.
    Ended(RegionId),
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
    /// Planes that it has opened, and the subjects that may enter each.
    pub planes: Vec<(Plane, Vec<String>)>,
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
}

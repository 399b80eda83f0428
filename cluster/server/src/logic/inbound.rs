//! A batch of a worker on its way to the tick of a region.

use std::sync::Arc;

use purview::scene::{EntityId, Epoch, RegionId, Tick};
use purview::wire::peer::{WorkerBatch, WorkerCommand};

use super::proto::{self, Reason, Refused};
use super::worker::Worker;

/// Commands for one region and tick.
#[derive(Debug)]
pub struct Inbound {
    /// Who sends it.
    pub worker: Arc<Worker>,
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

impl Inbound {
    /// A batch that another process has passed on.
    pub fn of(worker: Arc<Worker>, batch: WorkerBatch) -> Inbound {
        let WorkerBatch { region, epoch, lease, handled, commands, .. } = batch;
        Inbound { worker, region, epoch, lease, handled, commands }
    }

    /// The same for another process.
    pub fn to_pass_on(&self) -> WorkerBatch {
        let Inbound { ref worker, region, epoch, lease, handled, ref commands } = *self;
        WorkerBatch { worker: worker.id, region, epoch, lease, handled, commands: commands.clone() }
    }

    /// Tells the worker that the batch was refused as a whole.
    pub fn refuse(&self, reason: proto::Refusal) {
        let refused = Refused {
            region: self.region.0,
            epoch: self.epoch.0,
            lease: self.lease,
            handled: self.handled.0,
            reason: reason.into(),
        };
        // The worker is told of more than this when it takes no response.
        let _taken =
            self.worker.push(&super::outbox::encode(proto::response::Message::Refused(refused)));
    }
}

/// A result for a command that was refused.
pub fn refused(id: EntityId, number: u64, reason: Reason, text: impl ToString) -> proto::Result {
    let text = text.to_string();
    proto::Result { entity: id.0, number, reason: reason.into(), text, expected: 0 }
}

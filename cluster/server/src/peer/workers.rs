//! Messages about logic workers: from and to the processes to which they are connected.

use std::fmt::Debug;
use std::sync::Arc;

use purview::wire::peer::{PeerMsg, WorkerMsg};

use super::hello::Kind;
use super::{Links, Unsaid};

pub trait TakeWorkerMsg: Debug + Send + Sync {
    /// A process says something of its workers, or to one of this process. Never waits.
    fn take(&self, from: u64, message: WorkerMsg);
}

impl Links {
    /// Sets the receiver; before that messages about workers are dropped, and repeated.
    pub fn set_workers(&self, workers: Arc<dyn TakeWorkerMsg>) {
        if self.0.enquiries.workers.set(workers).is_err() {
            tracing::error!("the receiver of messages about workers is set already");
        }
    }

    /// Says something about workers to a process. Never waits.
    ///
    /// # Errors
    /// It was not said and will not be.
    pub fn tell_workers(&self, process: u64, message: WorkerMsg) -> Result<(), Unsaid> {
        self.push(process, Kind::Regions, &PeerMsg::Worker(Box::new(message)))
    }

    pub(super) fn worker_said(&self, from: u64, message: WorkerMsg) {
        if let Some(workers) = self.0.enquiries.workers.get() {
            workers.take(from, message);
        }
    }
}

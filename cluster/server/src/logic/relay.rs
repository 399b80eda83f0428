//! Workers of other processes: every process tells the others of its workers, and passes on what is for them or from them.
//!
//! What a process says of its workers is a level, repeated a few times a second. A process that is silent for longer has
//! no workers any more. So nothing must be agreed on, and nothing is written to the store of the cluster: which region
//! has which worker is decided by the region alone.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use purview::wire::peer::{WorkerBatch, WorkerMsg, WorkerNotice};

use super::hub::Hub;
use super::inbound::Inbound;
use super::proto::Refusal;
use super::stream::is_name_of_worker;
use super::worker::Worker;
use crate::peer::{Links, TakeWorkerMsg};

/// Time between two messages about workers.
const EVERY: Duration = Duration::from_millis(250);

/// After this long without a message a process has no workers.
const SILENCE: Duration = Duration::from_millis(1_500);

impl Hub {
    /// Workers of this process serve regions of others, and the other way round.
    pub fn connect(self: &Arc<Hub>, links: &Links) {
        if self.links.set(links.clone()).is_ok() {
            links.set_workers(self.clone());
        }
    }

    /// Tells the other processes of this one's workers, until dropped.
    pub(super) async fn keep_telling(self: Arc<Hub>) {
        loop {
            tokio::time::sleep(EVERY).await;
            self.tell_others();
            self.forget_silent();
        }
    }

    fn here(&self) -> Vec<WorkerNotice> {
        let all = self.all();
        all.iter()
            .filter(|worker| worker.process().is_none())
            .map(|worker| worker.notice())
            .collect()
    }

    /// Tells the other processes of this one's workers.
    pub(super) fn tell_others(&self) {
        let Some(links) = self.links.get() else { return };
        let (workers, planes) = (self.here(), self.planes().digest());
        for process in links.processes() {
            let here = WorkerMsg::Here { workers: workers.clone(), planes };
            // It is repeated.
            let _lost = links.tell_workers(process, here).is_err();
        }
    }

    /// Workers of silent processes end, and so do leases of regions whose processes are no members any more.
    fn forget_silent(&self) {
        if let Some(links) = self.links.get() {
            let members = links.processes();
            let is_gone = |process| process > 0 && !members.contains(&process);
            let here = self.all().into_iter().filter(|worker| worker.process().is_none());
            here.for_each(|worker| worker.end_leases(is_gone));
        }
        for worker in self.all() {
            if worker.heard().is_some_and(|heard| heard.elapsed() > SILENCE) {
                tracing::info!(
                    worker = worker.id,
                    "nothing is heard of the process of a logic worker"
                );
                self.end(&worker);
            }
        }
    }

    /// Sends a batch to the process that has its region; false: it cannot be reached.
    pub(super) fn pass_on(&self, batch: &Inbound) -> bool {
        let process = batch.worker.route(batch.region).filter(|process| *process > 0);
        let Some((links, process)) = self.links.get().zip(process) else { return false };
        let message = WorkerMsg::Batch(Box::new(batch.to_pass_on()));
        links.tell_workers(process, message).is_ok()
    }

    /// A process tells of all its workers.
    fn hear(&self, from: u64, notices: Vec<WorkerNotice>) {
        let Some(links) = self.links.get() else { return };
        let mut news = false;
        let gone = |worker: &Arc<Worker>| {
            worker.process() == Some(from) && notices.iter().all(|n| n.worker != worker.id)
        };
        for worker in self.all().into_iter().filter(gone) {
            self.end(&worker);
        }
        for notice in notices {
            match self.worker(notice.worker) {
                Some(worker) if worker.process() == Some(from) => news |= worker.renew(notice),
                // No process speaks for the workers of another one.
                Some(_) => {}
                None if !is_name_of_worker(&notice.name) => {
                    purview::log_limited!(warn, from, name = ?notice.name, "a worker was skipped: its name is no printable text");
                }
                None => {
                    let metrics = self.metrics.clone();
                    self.add(Worker::of_process((from, links.clone()), notice, metrics));
                    news = true;
                }
            }
        }
        if news {
            self.divide_here_anew();
        }
    }

    /// A worker of another process commands a region of this one.
    fn take_batch(&self, from: u64, batch: WorkerBatch) {
        let worker = self.worker(batch.worker).filter(|worker| worker.process() == Some(from));
        let Some(worker) = worker else { return };
        let batch = Inbound::of(worker, batch);
        let refused = match self.lane(batch.region) {
            Some(lane) => lane.try_send(batch).err().map(|refused| refused.into_inner()),
            None => Some(batch),
        };
        if let Some(batch) = refused {
            batch.worker.conduct.batch_refused(&self.metrics);
            batch.refuse(Refusal::UnknownRegion);
        }
    }
}

impl TakeWorkerMsg for Hub {
    fn take(&self, from: u64, message: WorkerMsg) {
        match message {
            WorkerMsg::Here { workers, planes } => {
                self.hear(from, workers);
                self.compare_planes(from, planes);
            }
            WorkerMsg::Planes(news) => self.hear_planes(news),
            WorkerMsg::Response { worker, of, response } => {
                let worker = self.worker(worker).filter(|worker| worker.process().is_none());
                let Some(worker) = worker else { return };
                // A worker that takes nothing begins anew anyway.
                let _taken = match of {
                    Some(news) => worker.push_from(from, news, &response),
                    None => worker.push(&response),
                };
            }
            WorkerMsg::AskTold { worker, region, tick } => {
                // A worker that is not here any more is told nothing by anyone.
                if self.worker(worker).is_none_or(|known| !known.owes(region, tick))
                    && let Some(links) = self.links.get()
                {
                    let told = WorkerMsg::Told { worker, region, tick };
                    // It is asked again.
                    let _lost = links.tell_workers(from, told).is_err();
                }
            }
            WorkerMsg::Told { worker, region, tick } => {
                let worker = self.worker(worker).filter(|worker| worker.process() == Some(from));
                worker.into_iter().for_each(|worker| worker.is_told(region, tick));
            }
            WorkerMsg::Batch(batch) => self.take_batch(from, *batch),
            WorkerMsg::Ask(asked) => {
                let worker = self.worker(asked.worker).filter(|worker| worker.process().is_none());
                // The asker's time limit ends a question that is lost.
                let _asked = worker.is_some_and(|worker| worker.ask(*asked));
            }
            WorkerMsg::Answer { question, worker, allow, reason } => {
                let is_its = |worker: Arc<Worker>| worker.process() == Some(from);
                if self.worker(worker).is_some_and(is_its) {
                    self.take_answer(question, worker, allow, reason);
                }
            }
            WorkerMsg::Late(worker) => {
                let worker = self.worker(worker).filter(|worker| worker.process().is_none());
                if worker.is_some_and(|worker| worker.is_late_now()) {
                    self.metrics.late.fetch_add(1, Relaxed);
                    self.divide_anew();
                }
            }
        }
    }
}

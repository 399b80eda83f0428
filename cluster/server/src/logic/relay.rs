//! Workers of other processes: every process tells the others of its workers, and passes on what is for them or from them.
//!
//! What a process says of its workers is a level, repeated a few times a second. A process that is silent for longer has
//! no workers any more. So nothing must be agreed on, and nothing is written to the store of the cluster: which region
//! has which worker is decided by the region alone.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use purview::wire::peer::{WorkerAnswer, WorkerGot, WorkerMsg, WorkerNotice};

use super::admission::answer;
use super::hub::{Hub, Inbound};
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

    pub(super) fn tell_others(&self) {
        let Some(links) = self.links.get() else { return };
        let (workers, planes) = (self.here(), self.planes().digest());
        for process in links.processes() {
            let here = WorkerMsg::Here { workers: workers.clone(), planes };
            // It is repeated.
            let _lost = links.tell_workers(process, here).is_err();
        }
    }

    fn forget_silent(&self) {
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

    /// A worker of this process answers a region of any one.
    pub(super) fn answer(&self, worker: &Worker, answer: WorkerAnswer) {
        match worker.process_of(answer.lease) {
            Some(0) => self.deliver(Inbound::Answer(answer)),
            Some(process) => self.pass_on(process, WorkerMsg::Answer(Box::new(answer))),
            // A newer lease has begun meanwhile.
            None => {
                worker.conduct.late_answers.fetch_add(1, Relaxed);
                self.metrics.late_answers.fetch_add(1, Relaxed);
            }
        }
    }

    /// A worker of this process knows what a region of any one has refused.
    pub(super) fn got(&self, worker: &Worker, got: WorkerGot) {
        match worker.process_of_refused(got.region) {
            Some(0) => self.deliver(Inbound::Got(got)),
            Some(process) => self.pass_on(process, WorkerMsg::Got(got)),
            None => {}
        }
    }

    fn pass_on(&self, process: u64, message: WorkerMsg) {
        let Some(links) = self.links.get() else { return };
        // The lease ends, or the region says again what it has refused.
        let _lost = links.tell_workers(process, message).is_err();
    }

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
                Some(worker) if worker.process() == Some(from) => worker.renew(),
                // No process speaks for the workers of another one.
                Some(_) => {}
                None if !is_name_of_worker(&notice.name) => {
                    purview::log_limited!(warn, from, name = ?notice.name, "a worker was skipped: its name is no printable text");
                }
                None => {
                    self.add(Worker::of_process((from, links.clone()), notice));
                    news = true;
                }
            }
        }
        if news {
            self.divide_here_anew();
        }
    }

    fn own_worker(&self, worker: u64) -> Option<Arc<Worker>> {
        self.worker(worker).filter(|worker| worker.process().is_none())
    }

    fn is_of(&self, worker: u64, process: u64) -> bool {
        self.worker(worker).is_some_and(|worker| worker.process() == Some(process))
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
            WorkerMsg::Told(told) => {
                let worker = self.own_worker(told.worker);
                if let Some(worker) = worker {
                    worker.tell_by(from, *told);
                }
            }
            WorkerMsg::Ended { worker, lease } => {
                let worker = self.own_worker(worker);
                worker.into_iter().for_each(|worker| worker.lease_ends_by(from, lease));
            }
            WorkerMsg::Refused { worker, region, response } => {
                if let Some(worker) = self.own_worker(worker) {
                    worker.refuse_by(from, region, response);
                }
            }
            WorkerMsg::Answer(answer) if self.is_of(answer.worker, from) => {
                self.deliver(Inbound::Answer(*answer));
            }
            WorkerMsg::Got(got) if self.is_of(got.worker, from) => {
                self.deliver(Inbound::Got(got));
            }
            WorkerMsg::Ask(asked) => {
                // The asker's time limit ends a question that is lost.
                let worker = self.own_worker(asked.worker);
                let _asked = worker.is_some_and(|worker| worker.ask(*asked));
            }
            WorkerMsg::Verdict { question, worker, allow, plane, reason }
                if self.is_of(worker, from) =>
            {
                self.take_answer(question, worker, answer(allow, plane, reason));
            }
            // Of a worker that is not known here, or not any more.
            WorkerMsg::Answer(_) | WorkerMsg::Got(_) | WorkerMsg::Verdict { .. } => {}
        }
    }
}

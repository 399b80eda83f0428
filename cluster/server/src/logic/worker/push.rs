//! What a worker is told, by which region, and how far.

use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use purview::scene::{RegionId, Tick};
use purview::wire::peer::{RegionNews, WorkerMsg, WorkerQuestion};

use super::super::events::position;
use super::super::outbox::encode;
use super::super::proto::{EndCause, Ended, Question, response};
use super::super::routes::{Lost, Routes, Taken};
use super::{Far, Worker, lock};

/// Tells a worker that a lease has ended whose region says nothing more.
fn ended(lost: Lost) -> Bytes {
    let Lost { region, epoch, lease } = lost;
    let cause = EndCause::Moved.into();
    encode(response::Message::Ended(Ended { region: region.0, epoch: epoch.0, lease, cause }))
}

impl Worker {
    /// The process in which a region of the worker is; `None`: the worker does not have it. 0: this one.
    pub fn route(&self, region: RegionId) -> Option<u64> {
        lock(&self.routes).process(region)
    }

    /// How many regions it has, as far as this process knows.
    pub fn regions(&self) -> u64 {
        lock(&self.routes).len() as u64
    }

    /// Whether a region of any process still has to tell the worker what happened at the end of a tick.
    pub fn owes(&self, region: RegionId, tick: Tick) -> bool {
        lock(&self.routes).owes(region, tick)
    }

    /// Ends the leases in processes that are gone.
    pub fn end_leases(&self, is_gone: impl Fn(u64) -> bool) {
        let mut routes = lock(&self.routes);
        for lost in routes.end_where(is_gone) {
            self.put(&mut routes, &ended(lost));
        }
    }

    /// Whether an entity that has come from another region, where it lived until a tick, must wait, since the worker is
    /// not told yet that it left. A worker of another process is asked for, if the region is not of this one.
    pub fn is_to_wait(&self, from: RegionId, left: Tick, is_here: bool) -> bool {
        let Some(far) = self.far.as_ref().filter(|_| !is_here) else {
            return self.owes(from, left);
        };
        if lock(&far.told).get(&from).is_some_and(|told| *told >= left) {
            return false;
        }
        let ask = WorkerMsg::AskTold { worker: self.id, region: from, tick: left };
        // It is asked again in the next tick.
        let _lost = far.links.tell_workers(far.process, ask).is_err();
        true
    }

    /// The process of the worker says that a region has told the worker what happened at the end of a tick.
    pub fn is_told(&self, region: RegionId, tick: Tick) {
        let Some(far) = &self.far else { return };
        let mut told = lock(&far.told);
        let known = told.entry(region).or_insert(tick);
        *known = tick.max(*known);
    }

    /// Sends a response that [`encode`](super::outbox::encode) made; false: it was dropped. Never waits.
    pub fn push(&self, response: &Bytes) -> bool {
        match &self.far {
            Some(far) => self.push_far(far, None, response.clone()),
            None => self.put(&mut lock(&self.routes), response),
        }
    }

    /// The same for a region of this process.
    pub fn push_of(&self, news: RegionNews, response: &Bytes) -> bool {
        match &self.far {
            Some(far) => {
                // Its own process decides whether it counts.
                let _taken = lock(&self.routes).take(0, news);
                self.push_far(far, Some(news), response.clone())
            }
            None => self.push_from(0, news, response),
        }
    }

    /// The same for a region of any process to a worker of this one; false: the region is outdated, or the response was
    /// dropped.
    pub fn push_from(&self, by: u64, news: RegionNews, response: &[u8]) -> bool {
        // Held until the response is in the outbox: who asks whether the worker was told may send more at once.
        let mut routes = lock(&self.routes);
        match routes.take(by, news) {
            Taken::Outdated => false,
            Taken::Counts(lost) => {
                if let Some(lost) = lost {
                    self.put(&mut routes, &ended(lost));
                }
                self.put(&mut routes, response)
            }
        }
    }

    /// Asks the worker whether a player may come; false: the question is lost.
    pub fn ask(&self, asked: WorkerQuestion) -> bool {
        if let Some(far) = &self.far {
            let ask = WorkerMsg::Ask(Box::new(asked));
            return far.links.tell_workers(far.process, ask).is_ok();
        }
        let WorkerQuestion { question, subject, entity, plane, pos, jumps, .. } = asked;
        let (entity, plane, position) = (entity.0, plane.0, position(pos));
        let question = Question { question, subject, entity, plane, position, jumps };
        self.push(&encode(response::Message::Question(question)))
    }

    fn push_far(&self, far: &Far, of: Option<RegionNews>, response: Bytes) -> bool {
        let message = WorkerMsg::Response { worker: self.id, of, response };
        let said = far.links.tell_workers(far.process, message).is_ok();
        if !said {
            // Its leases here begin again.
            self.generation.fetch_add(1, Relaxed);
        }
        said
    }

    fn put(&self, routes: &mut Routes, response: &[u8]) -> bool {
        let mut outbox = lock(&self.outbox);
        let was_dropped = outbox.is_dropped();
        let taken = outbox.push(response);
        let is_dropped = outbox.is_dropped();
        drop(outbox);
        if is_dropped && !was_dropped {
            routes.end_all();
            self.conduct.dropped(&self.metrics);
        }
        self.more.notify_one();
        taken
    }
}

//! The logic workers of a simulated cluster: where they connect, and what faults do to them. `worker_loop` runs them.
//!
//! The hub and the streams of the processes are those of production; only the connection below is replaced.

pub mod rules;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use purview_server::simulation::workers::proto::Request;
use purview_server::simulation::workers::{Hub, Responses};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Notify, oneshot};

use super::network::Host;
use crate::rng::Rng;

pub const WORKERS: u32 = 3;

/// A worker that comes to a process: its requests, and where the responses go.
pub struct Visit(pub UnboundedReceiver<Request>, pub oneshot::Sender<Responses>);

/// Serves the workers that come to a process.
pub async fn serve(hub: Arc<Hub>, mut visits: UnboundedReceiver<Visit>) {
    while let Some(Visit(requests, tell)) = visits.recv().await {
        // The worker may be gone.
        drop(tell.send(hub.attach(requests)));
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Trouble {
    pub dead: bool,
    /// It reads and sends nothing.
    pub silent: bool,
    pub cut: bool,
}

#[derive(Default)]
pub(super) struct One {
    trouble: Mutex<Trouble>,
    pub(super) changed: Notify,
}

/// The workers, and where they may connect.
#[derive(Default)]
pub struct Workers {
    doors: Mutex<BTreeMap<Host, UnboundedSender<Visit>>>,
    all: [One; WORKERS as usize],
}

impl Workers {
    /// A process lets workers in.
    pub fn open(&self, host: Host) -> UnboundedReceiver<Visit> {
        let (visit, visits) = unbounded_channel();
        self.doors.lock().insert(host, visit);
        visits
    }

    /// Changes what is wrong with a worker.
    pub fn trouble(&self, number: u32, trouble: Trouble) {
        let Some(one) = self.all.get(number as usize) else { return };
        *one.trouble.lock() = trouble;
        one.changed.notify_one();
    }

    pub fn heal(&self) {
        (0..WORKERS).for_each(|number| self.trouble(number, Trouble::default()));
    }

    pub(super) fn one(&self, number: u32) -> (&One, Trouble) {
        let one = &self.all[number as usize];
        (one, *one.trouble.lock())
    }

    /// Waits while the worker is in any such trouble.
    pub(super) async fn wait_while(&self, number: u32, is_so: impl Fn(Trouble) -> bool) {
        loop {
            let (one, trouble) = self.one(number);
            if !is_so(trouble) {
                return;
            }
            one.changed.notified().await;
        }
    }

    pub(super) fn door(
        &self,
        rng: &mut Rng,
        last: Option<Host>,
    ) -> Option<(Host, UnboundedSender<Visit>)> {
        let doors = self.doors.lock();
        let open = doors.iter().filter(|(_, door)| !door.is_closed());
        let open: Vec<_> = open.map(|(host, door)| (*host, door.clone())).collect();
        let again = open.iter().find(|(host, _)| Some(*host) == last).cloned();
        again.or_else(|| open.get(rng.below(open.len())).cloned())
    }
}

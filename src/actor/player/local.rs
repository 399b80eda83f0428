//! The sessions of this thread. Regions give each thread what is for its sessions in one piece, and the
//! thread's task hands it out here, without a message per session.
//!
//! A thread that serves several processes' sessions (in tests and simulations) has a table for each directory.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::sync::{Arc, Weak as WeakArc};

use super::Session;
use crate::actor::address::{Delivery, LocalSession, QueuedDelivery, SessionKey, SessionThread};
use crate::actor::directory::Directory;

/// Sessions that are served in a row before other tasks of the thread have their turn. Tokio lets a task write
/// 128 times before it must yield.
const IN_A_ROW: usize = 64;

/// The sessions of one directory on this thread.
#[derive(Debug, Default)]
struct Local {
    thread: Arc<SessionThread>,
    table: RefCell<Table>,
}

#[derive(Debug, Default)]
struct Table {
    places: Vec<SessionSlot>,
    free: Vec<u32>,
}

#[derive(Debug, Default)]
struct SessionSlot {
    generation: u32,
    session: Weak<RefCell<Session>>,
}

impl Local {
    fn find(&self, key: SessionKey) -> Option<Rc<RefCell<Session>>> {
        let table = self.table.borrow();
        let place = table.places.get(key.place as usize)?;
        (place.generation == key.generation).then(|| place.session.upgrade())?
    }

    fn add(&self, session: &Rc<RefCell<Session>>) -> SessionKey {
        let mut table = self.table.borrow_mut();
        let place = table.free.pop().unwrap_or_else(|| {
            table.places.push(SessionSlot::default());
            (table.places.len() - 1) as u32
        });
        let entry = &mut table.places[place as usize];
        entry.session = Rc::downgrade(session);
        let key = SessionKey { place, generation: entry.generation };
        self.thread.set_sessions(table.places.len() - table.free.len());
        key
    }

    fn remove(&self, key: SessionKey) {
        let mut table = self.table.borrow_mut();
        let entry = &mut table.places[key.place as usize];
        entry.session = Weak::new();
        entry.generation = entry.generation.wrapping_add(1);
        table.free.push(key.place);
        self.thread.set_sessions(table.places.len() - table.free.len());
    }

    /// Hands out what comes, until the last session has ended.
    async fn hand_out(self: Rc<Self>) {
        let _closes = Closes(self.thread.clone());
        let mut waiting = Vec::new();
        let mut served = 0;
        loop {
            poll_fn(|cx| self.thread.poll_take(&mut waiting, cx)).await;
            if waiting.is_empty() {
                return;
            }
            for what in waiting.drain(..) {
                match what {
                    QueuedDelivery::One(key, delivery) => self.give(key, delivery),
                    QueuedDelivery::Frames(batch, to) => {
                        for (key, index) in to {
                            self.give(key, Delivery::Frame(Arc::clone(&batch), index));
                            served += 1;
                            if served % IN_A_ROW == 0 {
                                let_others_run().await;
                            }
                        }
                    }
                }
            }
        }
    }

    fn give(&self, key: SessionKey, delivery: Delivery) {
        // One that has ended meanwhile needs nothing.
        if let Some(session) = self.find(key) {
            session.borrow_mut().take_delivery(delivery);
        }
    }
}

/// Other tasks of the thread run once.
async fn let_others_run() {
    let mut waited = false;
    let yielded = poll_fn(|cx| match std::mem::replace(&mut waited, true) {
        true => std::task::Poll::Ready(()),
        false => {
            cx.waker().wake_by_ref();
            std::task::Poll::Pending
        }
    });
    yielded.await;
}

/// Closes the queue on drop: nobody empties it any more.
struct Closes(Arc<SessionThread>);

impl Drop for Closes {
    fn drop(&mut self) {
        self.0.close();
    }
}

thread_local! {
    static LOCALS: RefCell<Vec<(WeakArc<Directory>, Weak<Local>)>> = const { RefCell::new(Vec::new()) };
}

/// The table of a directory on this thread; made, with its task, if there is none.
fn of(directory: &Arc<Directory>) -> Rc<Local> {
    LOCALS.with_borrow_mut(|locals| {
        locals.retain(|(of, local)| {
            of.strong_count() > 0 && local.upgrade().is_some_and(|l| !l.thread.is_closed())
        });
        let ours = locals.iter().find(|(of, _)| std::ptr::eq(of.as_ptr(), Arc::as_ptr(directory)));
        if let Some(local) = ours.and_then(|(_, local)| local.upgrade()) {
            return local;
        }
        let local = Rc::new(Local::default());
        locals.push((Arc::downgrade(directory), Rc::downgrade(&local)));
        local
    })
}

/// A session's place among those of its thread, until this is dropped.
#[derive(Debug)]
pub(super) struct Registration {
    local: Rc<Local>,
    address: LocalSession,
}

impl Registration {
    /// Gives a session a place among those of this thread.
    pub(super) fn new(directory: &Arc<Directory>, session: &Rc<RefCell<Session>>) -> Registration {
        let local = of(directory);
        let starts = local.table.borrow().places.is_empty();
        let key = local.add(session);
        if starts {
            actix_rt::spawn(local.clone().hand_out());
        }
        let address = LocalSession::new(local.thread.clone(), key);
        Registration { local, address }
    }

    /// Where regions reach the session.
    pub(super) fn address(&self) -> &LocalSession {
        &self.address
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.address.end();
        self.local.remove(self.address.key());
    }
}

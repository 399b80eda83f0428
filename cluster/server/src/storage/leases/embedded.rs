//! The lease store of a single process, with the same promises as etcd.
//!
//! A lease does not run out while its membership lives and its path to the store is not cut: in one
//! process nothing can die alone, and a machine that was suspended continues where it was.

mod clock;
mod state;
mod watching;

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use purview::scene::Epoch;
use tokio::sync::{Notify, watch};

pub use clock::{Clock, ManualClock};

use super::store::{Follower, HeldLease, Lease, Listing, Loss, Store, Swap, Swapped};
use super::{Result, keys};
use crate::storage::{LeaseError, RegionKey};
use state::State;

const NAME: &str = "the store of this process";

/// The store of a single process, and one path to it. [`Embedded::another`] makes more paths; tests
/// cut them like network links.
pub struct Embedded {
    shared: Arc<Shared>,
    way: Arc<Way>,
}

struct Shared {
    state: Mutex<State>,
    /// Notifies the followers of each change, in the order in which they began to wait.
    changed: Arc<Notify>,
    clock: Clock,
    epochs_above: u64,
    ways: AtomicI64,
}

struct Way {
    number: i64,
    open: watch::Sender<bool>,
}

impl Embedded {
    /// An empty store whose epochs are higher than `epoch`, the highest epoch of all checkpoints.
    /// Call it on a tokio runtime that lives as long as the store.
    pub fn new(epoch: Epoch) -> Embedded {
        Embedded::with_clock(epoch, Clock::Monotonic)
    }

    /// The same with another clock, which tests advance.
    pub fn with_clock(epoch: Epoch, clock: Clock) -> Embedded {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changed: Arc::default(),
            clock,
            epochs_above: epoch.0,
            ways: AtomicI64::new(0),
        });
        let changed = shared.changed.clone();
        tokio::spawn(sweep(Arc::downgrade(&shared), changed, shared.clock.clone()));
        Embedded::way(shared)
    }

    /// Another path to the same store.
    pub fn another(&self) -> Embedded {
        Embedded::way(self.shared.clone())
    }

    fn way(shared: Arc<Shared>) -> Embedded {
        let number = shared.ways.fetch_add(1, Ordering::Relaxed);
        Embedded { shared, way: Arc::new(Way { number, open: watch::Sender::new(true) }) }
    }

    /// For tests: cuts this path. Requests are not answered, and leases taken through it run out,
    /// until [`Embedded::mend`].
    pub fn cut(&self) {
        self.way.open.send_replace(false);
        let now = self.shared.clock.now();
        self.shared.change(|state| state.cut(self.way.number, now));
    }

    /// For tests: breaks the store's promise. Leases taken through this path end at once for all
    /// other nodes, while their holders still believe in them until the path is mended.
    pub fn revoke_silently(&self) {
        self.way.open.send_replace(false);
        self.shared.change(|state| state.revoke_silently(self.way.number));
    }

    /// For tests: breaks the store's promise. The owner of this region with this epoch loses it
    /// silently.
    pub fn take_away(&self, key: &RegionKey, epoch: Epoch) {
        let granted = epoch.0.saturating_sub(self.shared.epochs_above);
        self.shared.change(|state| state.remove(&keys::region(key), granted));
    }

    pub fn mend(&self) {
        self.shared.change(|state| state.mend(self.way.number));
        self.way.open.send_replace(true);
    }

    /// Forgets the steps to the current revision, as a store does now and then: a follower of an
    /// older revision gets the whole state again.
    pub fn compact(&self) {
        self.shared.change(State::compact);
    }

    /// Runs a request on the current state, if the path is open.
    fn ask<T>(&self, asked: &'static str, f: impl FnOnce(&mut State) -> T) -> Result<T> {
        if *self.way.open.borrow() { Ok(self.shared.change(f)) } else { Err(cut_off(asked)) }
    }
}

fn cut_off(asked: &'static str) -> LeaseError {
    let cause = "the path to the store is cut".into();
    LeaseError::Unreachable { store: NAME.into(), asked, cause }
}

impl Shared {
    fn change<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock();
        let before = (state.revision(), state.next_end());
        state.expire(self.clock.now());
        let done = f(&mut state);
        let changed = (state.revision(), state.next_end()) != before;
        drop(state);
        if changed {
            self.changed.notify_waiters();
        }
        done
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Followers learn that the store is gone.
        self.changed.notify_waiters();
    }
}

impl Store for Embedded {
    fn epochs_above(&self) -> u64 {
        self.shared.epochs_above
    }

    async fn lease(&self, ttl: Duration) -> Result<HeldLease> {
        let now = self.shared.clock.now();
        let way = self.way.number;
        let (id, authority, lost) =
            self.ask("grant a lease", |state| state.grant(ttl, way, now))?;
        let lease = Arc::new(OwnLease { id, shared: self.shared.clone(), way: self.way.clone() });
        Ok(HeldLease { lease, ttl, authority, lost })
    }

    async fn revoke(&self, lease: i64) -> Result<bool> {
        self.ask("end a lease", |state| state.end(lease, Loss::Gone))
    }

    async fn swap(&self, swap: Swap) -> Result<Swapped> {
        self.ask(swap.asked, |state| state.swap(&swap))
    }

    async fn list(&self, prefix: &str) -> Result<Listing> {
        self.ask("list keys", |state| state.list(prefix))
    }

    fn follow(&self, prefix: &str) -> Follower {
        watching::start(&self.shared, &self.way, prefix)
    }
}

/// A lease of this process; it runs out after it is dropped.
struct OwnLease {
    id: i64,
    shared: Arc<Shared>,
    way: Arc<Way>,
}

#[async_trait]
impl Lease for OwnLease {
    fn id(&self) -> i64 {
        self.id
    }

    async fn leave(&self) -> Result<()> {
        if !*self.way.open.borrow() {
            return Err(cut_off("end a lease"));
        }
        self.shared.change(|state| state.end(self.id, Loss::Left));
        Ok(())
    }
}

impl Drop for OwnLease {
    fn drop(&mut self) {
        let now = self.shared.clock.now();
        self.shared.change(|state| state.run_out(self.id, now));
    }
}

/// Ends leases when their time is over, even without requests.
async fn sweep(shared: Weak<Shared>, changed: Arc<Notify>, clock: Clock) {
    loop {
        let mut more = std::pin::pin!(changed.notified());
        // From here on no change is missed.
        more.as_mut().enable();
        let Some(next_end) = shared.upgrade().map(|shared| shared.state.lock().next_end()) else {
            return;
        };
        let time = async {
            match next_end {
                Some(time) => clock.sleep_until(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = time => match shared.upgrade() {
                Some(shared) => shared.change(|_| ()),
                None => return,
            },
            () = more => {}
        }
    }
}

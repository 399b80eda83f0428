//! The sessions of one thread, as regions reach them: one queue for all of them, which a task of that thread
//! empties. A region wakes each thread once per tick, and not each session.
//!
//! What must never happen here: an unbounded queue, or a sender that waits while it holds the lock.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use actix::dev::SendError;
use rustc_hash::FxHashMap;

use super::delivery::{Delivery, GapPosition, LostFrames};
use crate::scene::{Epoch, RegionId, Tick};
use crate::wire::EncodedBatch;

/// Deliveries that may wait for each session of a thread, on average. When there is no room a frame is lost
/// (and a resync asked for), and a notice waits with the region. Beyond that there is the news of regions'
/// owners, at most one for each session and region.
pub const DELIVERIES: usize = 32;

/// Which session of a thread: a place in its table, and which of those that had it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionKey {
    pub(in crate::actor) place: u32,
    pub(in crate::actor) generation: u32,
}

/// What waits for the sessions of a thread.
#[derive(Debug)]
pub(in crate::actor) enum QueuedDelivery {
    /// Frames: for each session its index in the batch.
    Frames(Arc<EncodedBatch>, Vec<(SessionKey, u32)>),
    /// Something for one session.
    One(SessionKey, Delivery),
}

/// The queue of a thread's sessions.
#[derive(Debug, Default)]
pub struct SessionThread(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<QueuedDelivery>,
    /// Where news of a region's owner waits: one for each session and region.
    owners: FxHashMap<(SessionKey, RegionId), usize>,
    /// How many deliveries these are.
    deliveries: usize,
    sessions: usize,
    /// No task empties it any more.
    closed: bool,
    reader: Option<Waker>,
    /// Senders that wait for room.
    senders: Vec<Waker>,
}

impl Queue {
    fn has_room(&self, more: usize) -> bool {
        self.deliveries == 0 || self.deliveries + more <= self.sessions * DELIVERIES
    }

    fn push(&mut self, what: QueuedDelivery, deliveries: usize) -> Option<Waker> {
        self.waiting.push(what);
        self.deliveries += deliveries;
        self.reader.take()
    }
}

impl SessionThread {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues the frames of several sessions.
    ///
    /// # Errors
    /// There is no room: none of the frames will be shown. They are given back.
    fn frames(
        &self,
        batch: &Arc<EncodedBatch>,
        to: Vec<(SessionKey, u32)>,
    ) -> Result<(), Vec<(SessionKey, u32)>> {
        let mut queue = self.lock();
        if queue.closed || !queue.has_room(to.len()) {
            return Err(to);
        }
        let deliveries = to.len();
        let reader = queue.push(QueuedDelivery::Frames(Arc::clone(batch), to), deliveries);
        drop(queue);
        reader.into_iter().for_each(Waker::wake);
        Ok(())
    }

    fn one(&self, key: SessionKey, what: Delivery) -> Result<(), SendError<Delivery>> {
        let mut queue = self.lock();
        if queue.closed {
            return Err(SendError::Closed(what));
        }
        if !queue.has_room(1) {
            return Err(SendError::Full(what));
        }
        let reader = queue.push(QueuedDelivery::One(key, what), 1);
        drop(queue);
        reader.into_iter().for_each(Waker::wake);
        Ok(())
    }

    /// Queues news of a region's owner, whether there is room or not. Older news of the same region
    /// that still waits is replaced.
    fn owner(&self, key: SessionKey, region: RegionId, epoch: Epoch) {
        let mut guard = self.lock();
        let queue = &mut *guard;
        if queue.closed {
            return;
        }
        let known = queue.owners.get(&(key, region)).and_then(|at| queue.waiting.get_mut(*at));
        if let Some(QueuedDelivery::One(_, Delivery::Owner(_, known))) = known {
            *known = epoch.max(*known);
            return;
        }
        queue.owners.insert((key, region), queue.waiting.len());
        let news = QueuedDelivery::One(key, Delivery::Owner(region, epoch));
        let reader = queue.push(news, 1);
        drop(guard);
        reader.into_iter().for_each(Waker::wake);
    }

    /// Ready when there may be room.
    fn poll_room(&self, cx: &Context<'_>) -> Poll<()> {
        let mut queue = self.lock();
        if queue.closed || queue.has_room(1) {
            return Poll::Ready(());
        }
        if !queue.senders.iter().any(|waker| waker.will_wake(cx.waker())) {
            queue.senders.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Takes everything that waits, in order, into `out`, which is empty; waits until there is something, or
    /// the thread has no session any more.
    pub(in crate::actor) fn poll_take(
        &self,
        out: &mut Vec<QueuedDelivery>,
        cx: &Context<'_>,
    ) -> Poll<()> {
        let mut queue = self.lock();
        if queue.waiting.is_empty() && queue.sessions > 0 {
            queue.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        std::mem::swap(&mut queue.waiting, out);
        queue.owners.clear();
        queue.deliveries = 0;
        let senders = std::mem::take(&mut queue.senders);
        drop(queue);
        senders.into_iter().for_each(Waker::wake);
        Poll::Ready(())
    }

    /// A session begins or ends.
    pub(in crate::actor) fn set_sessions(&self, sessions: usize) {
        let mut queue = self.lock();
        queue.sessions = sessions;
        let reader = if sessions == 0 { queue.reader.take() } else { None };
        drop(queue);
        reader.into_iter().for_each(Waker::wake);
    }

    /// No task empties the queue any more.
    pub(in crate::actor) fn close(&self) {
        let mut queue = self.lock();
        queue.closed = true;
        queue.waiting.clear();
        queue.owners.clear();
        let senders = std::mem::take(&mut queue.senders);
        drop(queue);
        senders.into_iter().for_each(Waker::wake);
    }

    pub(in crate::actor) fn is_closed(&self) -> bool {
        self.lock().closed
    }
}

/// Sessions of a thread, each with the index of its frame in a batch.
type FramesOf = Vec<(SessionKey, u32)>;

/// The frames of a batch, by the threads of their sessions.
#[derive(Debug, Default)]
pub(in crate::actor) struct FanOut(Vec<(Arc<SessionThread>, FramesOf)>);

impl FanOut {
    /// The frame at this index of the batch is for this session.
    pub(in crate::actor) fn add(&mut self, to: &LocalSession, index: u32) {
        let ours = self.0.iter_mut().find(|(thread, _)| Arc::ptr_eq(thread, &to.thread));
        match ours {
            Some((_, which)) => which.push((to.key, index)),
            None => self.0.push((to.thread.clone(), vec![(to.key, index)])),
        }
    }

    /// Gives each thread its frames, in one piece. The indices of frames for which there was no room.
    pub(in crate::actor) fn send(self, batch: &Arc<EncodedBatch>) -> Vec<u32> {
        let lost =
            self.0.into_iter().filter_map(|(thread, which)| thread.frames(batch, which).err());
        lost.flatten().map(|(_, index)| index).collect()
    }
}

/// What is known of a session from any thread.
#[derive(Debug, Default)]
struct SessionLife {
    ended: AtomicBool,
    /// Frames from other processes that found no room: later frames make no sense without them.
    lost: LostFrames,
}

/// A session of this process.
#[derive(Debug, Clone)]
pub struct LocalSession {
    thread: Arc<SessionThread>,
    key: SessionKey,
    life: Arc<SessionLife>,
}

impl LocalSession {
    pub(in crate::actor) fn new(thread: Arc<SessionThread>, key: SessionKey) -> LocalSession {
        LocalSession { thread, key, life: Arc::default() }
    }

    pub(in crate::actor) fn key(&self) -> SessionKey {
        self.key
    }

    /// The session is over.
    pub(in crate::actor) fn end(&self) {
        self.life.ended.store(true, Relaxed);
    }

    /// How a frame of this tick stands to those that found no room.
    pub(in crate::actor) fn gap_position(&self, tick: Tick) -> GapPosition {
        self.life.lost.gap_position(tick)
    }

    /// Gives the session something, if there is room for it now.
    ///
    /// # Errors
    /// `Full` when there is no room, `Closed` when the session is no more.
    pub fn try_send(&self, what: Delivery) -> Result<(), SendError<Delivery>> {
        match self.connected() {
            true => self.thread.one(self.key, what),
            false => Err(SendError::Closed(what)),
        }
    }

    /// Tells the session of a region's new owner. That must not wait, whether there is room or not. A session that
    /// is no more needs no news.
    pub(in crate::actor) fn tell_owner(&self, region: RegionId, epoch: Epoch) {
        self.thread.owner(self.key, region, epoch);
    }

    /// Gives the session something as soon as there is room. What a session that is no more is given is lost.
    pub async fn send(&self, what: Delivery) {
        let mut next = what;
        while let Err(SendError::Full(what)) = self.try_send(next) {
            next = what;
            poll_fn(|cx| self.thread.poll_room(cx)).await;
        }
    }

    /// Whether the session is still there.
    pub fn connected(&self) -> bool {
        !self.life.ended.load(Relaxed)
    }

    /// Notes that frames of a tick, from another process, found no room.
    pub fn note_lost(&self, tick: Tick) {
        self.life.lost.note(tick);
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use futures::{FutureExt, poll};

    use super::*;

    fn session(place: u32, thread: &Arc<SessionThread>) -> LocalSession {
        let key = SessionKey { place, generation: 0 };
        LocalSession::new(thread.clone(), key)
    }

    fn owner() -> Delivery {
        Delivery::Owner(RegionId(1), Epoch(1))
    }

    fn take(thread: &SessionThread) -> Option<usize> {
        let mut out = Vec::new();
        poll_fn(|cx| thread.poll_take(&mut out, cx)).now_or_never()?;
        Some(out.len())
    }

    #[test]
    fn a_queue_has_room_for_so_many_deliveries_per_session() {
        let thread = Arc::new(SessionThread::default());
        thread.set_sessions(2);
        let to = session(1, &thread);
        let taken = (0..100).take_while(|_| to.try_send(owner()).is_ok()).count();
        assert_eq!(taken, 2 * DELIVERIES);
        assert!(matches!(to.try_send(owner()), Err(SendError::Full(_))));
        let batch = Arc::new(EncodedBatch::default());
        assert_eq!(thread.frames(&batch, vec![(to.key, 0)]), Err(vec![(to.key, 0)]));
        assert_eq!(take(&thread), Some(taken));
        assert_eq!(thread.frames(&batch, vec![(to.key, 0); 64]), Ok(()));
        assert_eq!(thread.frames(&batch, vec![(to.key, 0)]).map_err(|to| to.len()), Err(1));
        assert_eq!(take(&thread), Some(1));
        // However many sessions a batch has: one always goes.
        assert_eq!(thread.frames(&batch, vec![(to.key, 0); 1_000]), Ok(()));
    }

    #[test]
    fn however_often_a_region_changes_its_owner_one_piece_of_news_waits() {
        let thread = Arc::new(SessionThread::default());
        thread.set_sessions(2);
        let (a, b) = (session(1, &thread), session(2, &thread));
        for epoch in 1..10_000 {
            a.tell_owner(RegionId(1), Epoch(epoch));
            b.tell_owner(RegionId(1), Epoch(epoch));
            b.tell_owner(RegionId(2), Epoch(10_000 - epoch));
        }
        let mut out = Vec::new();
        poll_fn(|cx| thread.poll_take(&mut out, cx)).now_or_never().unwrap();
        let told = out.iter().map(|waiting| match waiting {
            QueuedDelivery::One(key, Delivery::Owner(region, epoch)) => {
                (key.place, region.0, epoch.0)
            }
            other => panic!("{other:?}"),
        });
        assert_eq!(told.collect::<Vec<_>>(), [(1, 1, 9_999), (2, 1, 9_999), (2, 2, 9_999)]);
        a.tell_owner(RegionId(1), Epoch(10_000));
        assert_eq!(take(&thread), Some(1), "what was taken is not replaced");
    }

    #[test]
    fn a_sender_that_waits_goes_on_when_there_is_room() {
        let thread = Arc::new(SessionThread::default());
        thread.set_sessions(1);
        let to = session(0, &thread);
        (0..DELIVERIES).for_each(|_| to.try_send(owner()).unwrap());
        block_on(async {
            let mut sent = Box::pin(to.send(owner()));
            assert!(poll!(&mut sent).is_pending());
            assert_eq!(take(&thread), Some(DELIVERIES));
            assert!(poll!(&mut sent).is_ready());
        });
        assert_eq!(take(&thread), Some(1));
    }

    #[test]
    fn a_session_that_has_ended_and_a_closed_thread_take_nothing() {
        let thread = Arc::new(SessionThread::default());
        thread.set_sessions(1);
        let (to, other) = (session(0, &thread), session(1, &thread));
        to.end();
        assert!(matches!(to.try_send(owner()), Err(SendError::Closed(_))));
        assert!(other.connected() && other.try_send(owner()).is_ok());
        thread.close();
        assert!(matches!(other.try_send(owner()), Err(SendError::Closed(_))));
        // Does not wait for ever.
        assert!(other.send(owner()).now_or_never().is_some());
    }

    #[test]
    fn the_task_of_a_thread_ends_with_its_last_session() {
        let thread = SessionThread::default();
        thread.set_sessions(1);
        assert_eq!(take(&thread), None, "it waits");
        thread.set_sessions(0);
        assert_eq!(take(&thread), Some(0));
    }
}

//! A worker, as regions and streams of the process see it. It is connected to this process, or to another one, which
//! tells of it.
//!
//! A region's tick pushes responses and never waits: a lock is held for a moment only. The task of the worker's stream
//! takes them out, and says what the worker has acknowledged.

mod push;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use purview::scene::region::Followed;
use purview::scene::{EntityId, RegionId, SceneId, Tick};
use purview::wire::peer::{WorkerMsg, WorkerNotice};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::conduct::Conduct;
use super::metrics::Metrics;
use super::outbox::{Acknowledged, NeverSent, Outbox};
use super::routes::Routes;
use super::taken::Taken;
use crate::peer::Links;

/// What a worker says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Its scene.
    pub scene: SceneId,
    /// What operators see.
    pub name: String,
    /// Whether it answers questions.
    pub answers: bool,
    /// Of which entities it is told positions.
    pub followed: Followed,
}

/// How long a worker is passed over that left a question without an answer.
const PASSED_OVER: Duration = Duration::from_secs(30);

/// Where a worker is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It has a stream, or had one a moment ago.
    Here,
    /// Its stream has ended for so long that its regions go to others; it may come back.
    Away,
    /// Its session has ended.
    Gone,
}

/// The stream of a worker.
#[derive(Debug, Default)]
struct Link {
    /// Ends the stream that the worker has.
    end: Option<CancellationToken>,
    presence: Option<Presence>,
}

/// A worker that is connected to another process.
#[derive(Debug)]
struct Far {
    process: u64,
    links: Links,
    /// What that process has said last, and when.
    notice: Mutex<(WorkerNotice, Instant)>,
    /// Regions of other processes, and what they have told the worker as far as its process has said.
    told: Mutex<BTreeMap<RegionId, Tick>>,
}

/// A worker.
#[derive(Debug)]
pub struct Worker {
    /// The number of its session, which is never used again.
    pub id: u64,
    /// The name by which its session can be resumed.
    pub session: Bytes,
    /// What it says of itself.
    pub profile: Profile,
    outbox: Mutex<Outbox>,
    more: Notify,
    link: Mutex<Link>,
    /// The number of the response that it must acknowledge to be in time again; 0: it is in time.
    late: AtomicU64,
    /// When it left a question without an answer, if it has answered none since.
    unanswered: Mutex<Option<Instant>>,
    /// Grows when all its leases must begin again.
    generation: AtomicU64,
    /// Its commands for entity 0.
    scene_commands: Mutex<Taken>,
    /// Blocks of ids: the first one and how many.
    ids: Mutex<Vec<(u64, u64)>>,
    /// It has ended its session.
    closed: AtomicBool,
    far: Option<Far>,
    /// How it behaves, for operators.
    pub conduct: Conduct,
    /// Its regions.
    routes: Mutex<Routes>,
    metrics: Arc<Metrics>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Worker {
    /// A worker of a new session. `most`: bytes that may wait for it.
    pub fn new(
        (id, session): (u64, Bytes),
        profile: Profile,
        most: usize,
        metrics: Arc<Metrics>,
    ) -> Worker {
        Worker {
            id,
            session,
            profile,
            outbox: Mutex::new(Outbox::new(most)),
            more: Notify::new(),
            link: Mutex::default(),
            late: AtomicU64::new(0),
            unanswered: Mutex::default(),
            generation: AtomicU64::new(1),
            scene_commands: Mutex::default(),
            ids: Mutex::default(),
            closed: AtomicBool::new(false),
            far: None,
            conduct: Conduct::default(),
            routes: Mutex::default(),
            metrics,
        }
    }

    /// A worker that is connected to another process.
    pub fn of_process(
        (process, links): (u64, Links),
        notice: WorkerNotice,
        metrics: Arc<Metrics>,
    ) -> Worker {
        let profile = Profile {
            scene: notice.scene,
            name: notice.name.clone(),
            answers: notice.answers,
            followed: match notice.followed {
                1 => Followed::All,
                2 => Followed::Nothing,
                _ => Followed::Watched,
            },
        };
        let worker = Worker::new((notice.worker, Bytes::new()), profile, 0, metrics);
        let notice = Mutex::new((notice, Instant::now()));
        Worker { far: Some(Far { process, links, notice, told: Mutex::default() }), ..worker }
    }

    /// The process to which the worker is connected; `None`: this one.
    pub fn process(&self) -> Option<u64> {
        self.far.as_ref().map(|far| far.process)
    }

    /// What its process says of it. Whether regions may have to be divided anew.
    pub fn renew(&self, notice: WorkerNotice) -> bool {
        let Some(far) = &self.far else { return false };
        let mut known = lock(&far.notice);
        let news = known.0 != notice;
        *known = (notice, Instant::now());
        news
    }

    /// Since when nothing was heard of it; `None`: it is connected to this process.
    pub fn heard(&self) -> Option<Instant> {
        self.far.as_ref().map(|far| lock(&far.notice).1)
    }

    /// What other processes are told of it.
    pub fn notice(&self) -> WorkerNotice {
        WorkerNotice {
            worker: self.id,
            scene: self.profile.scene,
            name: self.profile.name.clone(),
            answers: self.profile.answers,
            followed: match self.profile.followed {
                Followed::Watched => 0,
                Followed::All => 1,
                Followed::Nothing => 2,
            },
            here: self.presence() == Presence::Here,
            late: self.is_late(),
            generation: self.generation(),
        }
    }

    /// Whether responses are dropped now.
    pub fn is_dropped(&self) -> bool {
        lock(&self.outbox).is_dropped()
    }

    /// Which run of leases holds; a lease of an earlier one has ended.
    pub fn generation(&self) -> u64 {
        let there = self.far.as_ref().map_or(0, |far| lock(&far.notice).0.generation << 32);
        there + self.generation.load(Relaxed)
    }

    /// Whether a response is not sent.
    pub fn has_unsent(&self) -> bool {
        lock(&self.outbox).has_unsent()
    }

    /// The first response that is not sent: it counts as sent from now on. A drop of what waits comes before or after.
    pub fn take_unsent(&self) -> Option<Bytes> {
        lock(&self.outbox).take_unsent()
    }

    /// Waits until there may be something to send.
    pub async fn more(&self) {
        self.more.notified().await;
    }

    /// Bytes that wait or are not acknowledged.
    pub fn waiting_bytes(&self) -> usize {
        lock(&self.outbox).bytes()
    }

    /// The worker has handled the responses up to this one. Whether it was late and is in time again.
    ///
    /// # Errors
    /// [`NeverSent`].
    pub fn acknowledge(&self, received: u64) -> Result<bool, NeverSent> {
        let acknowledged = lock(&self.outbox).acknowledge(received)?;
        Ok(self.is_acknowledged(acknowledged, received))
    }

    /// The same at the begin of a new stream, which gets all later ones again.
    ///
    /// # Errors
    /// [`NeverSent`].
    pub fn rewind(&self, received: u64) -> Result<bool, NeverSent> {
        let acknowledged = lock(&self.outbox).rewind(received)?;
        Ok(self.is_acknowledged(acknowledged, received))
    }

    fn is_acknowledged(&self, acknowledged: Acknowledged, received: u64) -> bool {
        if acknowledged == Acknowledged::Reopened {
            self.generation.fetch_add(1, Relaxed);
        }
        let late = self.late.load(Relaxed);
        let catches_up = late > 0 && late <= received;
        if catches_up {
            self.late.store(0, Relaxed);
        }
        catches_up || acknowledged == Acknowledged::Reopened
    }

    /// The worker has not answered in time; true if it was in time before.
    pub fn is_late_now(&self) -> bool {
        if let Some(far) = &self.far {
            let was_late = std::mem::replace(&mut lock(&far.notice).0.late, true);
            // It is repeated while the worker is late and its process does not say so.
            return !was_late
                && far.links.tell_workers(far.process, WorkerMsg::Late(self.id)).is_ok();
        }
        let last = lock(&self.outbox).last().max(1);
        self.late.compare_exchange(0, last, Relaxed, Relaxed).is_ok()
    }

    /// Whether the worker must catch up before it counts as in time.
    pub fn is_late(&self) -> bool {
        match &self.far {
            Some(far) => lock(&far.notice).0.late,
            None => self.late.load(Relaxed) > 0,
        }
    }

    /// The worker has answered a question, or not in time.
    pub fn set_answered(&self, in_time: bool) {
        *lock(&self.unanswered) = if in_time { None } else { Some(Instant::now()) };
    }

    /// Whether questions go to other workers, if there are any: it did not answer the last one.
    pub fn is_passed_over(&self) -> bool {
        lock(&self.unanswered).is_some_and(|at| at.elapsed() < PASSED_OVER)
    }

    /// Where the worker is in its life.
    pub fn presence(&self) -> Presence {
        match &self.far {
            _ if self.closed.load(Relaxed) => Presence::Gone,
            Some(far) if lock(&far.notice).0.here => Presence::Here,
            Some(_) => Presence::Away,
            None => lock(&self.link).presence.unwrap_or(Presence::Here),
        }
    }

    /// Whether the worker has a stream.
    pub fn has_stream(&self) -> bool {
        match &self.far {
            Some(far) => lock(&far.notice).0.here,
            None => lock(&self.link).end.is_some(),
        }
    }

    /// The worker has a new stream, which ends when the token is cancelled; an earlier one ends now.
    pub fn attach(&self) -> CancellationToken {
        let end = CancellationToken::new();
        self.set_answered(true);
        let mut link = lock(&self.link);
        link.presence = Some(Presence::Here);
        if let Some(before) = link.end.replace(end.clone()) {
            before.cancel();
        }
        end
    }

    /// A stream has ended; false if the worker has another one by now.
    pub fn detach(&self, end: &CancellationToken) -> bool {
        let mut link = lock(&self.link);
        let is_last = !end.is_cancelled();
        if is_last {
            link.end = None;
        }
        is_last
    }

    /// The worker has no stream: its regions go to others. False if it has one by now.
    pub fn is_away_now(&self) -> bool {
        let mut link = lock(&self.link);
        let away = link.end.is_none();
        if away {
            link.presence = Some(Presence::Away);
        }
        away
    }

    /// The session has ended.
    pub fn close(&self) {
        self.closed.store(true, Relaxed);
    }

    /// Whether a command for entity 0 is new; it counts as applied from now on.
    pub fn take_scene_command(&self, number: u64) -> bool {
        lock(&self.scene_commands).take(number)
    }

    /// Gives the worker a block of ids.
    pub fn allot(&self, first: EntityId, ids: u64) {
        let mut blocks = lock(&self.ids);
        match blocks.last_mut() {
            Some(last) if last.0 + last.1 == first.0 => last.1 += ids,
            _ => blocks.push((first.0, ids)),
        }
    }

    /// The first id of the worker's blocks.
    pub fn first_id(&self) -> Option<EntityId> {
        lock(&self.ids).first().map(|(first, _)| EntityId(*first))
    }

    /// Whether an id is of the worker's blocks.
    pub fn owns_id(&self, id: EntityId) -> bool {
        let blocks = lock(&self.ids);
        blocks.iter().any(|(first, ids)| (*first..first + ids).contains(&id.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker() -> Worker {
        let profile = Profile {
            scene: SceneId(0),
            name: "w".into(),
            answers: false,
            followed: Followed::Watched,
        };
        Worker::new((7, Bytes::new()), profile, 200, Arc::default())
    }

    #[test]
    fn a_late_worker_is_in_time_when_it_has_caught_up() {
        let worker = worker();
        (0..3).for_each(|_| assert!(worker.push(&Bytes::from_static(&[0; 20]))));
        (0..3).for_each(|_| assert!(worker.take_unsent().is_some()));
        assert!(!worker.is_late() && worker.is_late_now() && !worker.is_late_now());
        assert_eq!(worker.acknowledge(2), Ok(false));
        assert!(worker.is_late());
        assert_eq!(worker.acknowledge(3), Ok(true));
        assert!(!worker.is_late());
        assert!(worker.acknowledge(4).is_err());
    }

    #[test]
    fn only_the_last_stream_leaves_a_worker_without_one() {
        let worker = worker();
        let first = worker.attach();
        let second = worker.attach();
        assert!(first.is_cancelled() && !worker.detach(&first) && worker.has_stream());
        assert!(!worker.is_away_now() && worker.presence() == Presence::Here);
        assert!(worker.detach(&second) && worker.is_away_now());
        assert_eq!(worker.presence(), Presence::Away);
        worker.attach();
        assert_eq!(worker.presence(), Presence::Here);
        worker.close();
        assert_eq!(worker.presence(), Presence::Gone);
    }

    #[test]
    fn ids_are_those_of_the_blocks() {
        let worker = worker();
        worker.allot(EntityId(10), 5);
        worker.allot(EntityId(15), 5);
        worker.allot(EntityId(100), 2);
        let owned: Vec<u64> = (0..200).filter(|id| worker.owns_id(EntityId(*id))).collect();
        assert_eq!(owned, (10..20).chain(100..102).collect::<Vec<_>>());
    }
}

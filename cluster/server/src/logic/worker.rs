//! A worker, as regions and streams of the process see it. It is connected to this process, or to another one, which
//! tells of it. Each stream is a worker of its own.
//!
//! A region's tick puts messages down and never waits: a lock is held for a moment only. The task of the worker's stream
//! takes them out.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use purview::scene::region::Followed;
use purview::scene::{EntityId, RegionId, SceneId};
use purview::wire::peer::{LeaseName, WorkerMsg, WorkerNotice, WorkerQuestion, WorkerTold};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::conduct::{Conduct, Pace};
use super::ledger;
use super::mailbox::Mailbox;
use super::proto::{Ended, Question, response};
use super::told::{encode, position};
use crate::peer::Links;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    pub scene: SceneId,
    /// What operators see.
    pub name: String,
    pub answers: bool,
    /// Of which entities it is told positions.
    pub followed: Followed,
}

/// How long a worker is passed over that left a question without an answer.
const PASSED_OVER: Duration = Duration::from_secs(30);

/// How long a worker comes last that has not answered a region in time; twice as long each further time.
const GIVEN_UP: Duration = Duration::from_secs(10);

const GIVEN_UP_MOST: Duration = Duration::from_secs(320);

/// A region has waited in vain for the answer of a worker.
#[derive(Debug, Clone, Copy)]
struct GivenUp {
    at: Instant,
    /// For how long it comes last.
    wait: Duration,
}

impl GivenUp {
    fn comes_last(&self) -> bool {
        self.at.elapsed() < self.wait
    }
}

#[derive(Debug)]
enum Home {
    /// To this process: what waits for it.
    Here(Mutex<Mailbox>),
    /// To another one, of which was heard at this time last.
    Far { process: u64, links: Links, heard: Mutex<Instant> },
}

#[derive(Debug)]
pub struct Worker {
    /// The number of its session, which is never used again.
    pub id: u64,
    pub profile: Profile,
    home: Home,
    more: Notify,
    /// When it left a question without an answer, if it has answered none since.
    unanswered: Mutex<Option<Instant>>,
    /// When a region of this process has waited in vain for its answer, unless it has answered in time since.
    given_up: Mutex<Option<GivenUp>>,
    /// How quickly it answers the regions of this process.
    pace: Mutex<Pace>,
    /// Blocks of ids: the first one and how many.
    ids: Mutex<Vec<(u64, u64)>>,
    gone: AtomicBool,
    regions: AtomicI64,
    /// How it behaves, for operators.
    pub conduct: Conduct,
}

impl Worker {
    fn of(id: u64, profile: Profile, home: Home) -> Worker {
        Worker {
            id,
            profile,
            home,
            more: Notify::new(),
            unanswered: Mutex::default(),
            given_up: Mutex::default(),
            pace: Mutex::new(Pace::new(Instant::now())),
            ids: Mutex::default(),
            gone: AtomicBool::new(false),
            regions: AtomicI64::new(0),
            conduct: Conduct::default(),
        }
    }

    pub fn new(id: u64, profile: Profile) -> Worker {
        Worker::of(id, profile, Home::Here(Mutex::default()))
    }

    pub fn of_process((process, links): (u64, Links), notice: WorkerNotice) -> Worker {
        let profile = Profile {
            scene: notice.scene,
            name: notice.name,
            answers: notice.answers,
            followed: match notice.followed {
                1 => Followed::All,
                2 => Followed::Nothing,
                _ => Followed::Watched,
            },
        };
        let home = Home::Far { process, links, heard: Mutex::new(Instant::now()) };
        Worker::of(notice.worker, profile, home)
    }

    /// The process to which the worker is connected; `None`: this one.
    pub fn process(&self) -> Option<u64> {
        match &self.home {
            Home::Here(_) => None,
            Home::Far { process, .. } => Some(*process),
        }
    }

    pub fn renew(&self) {
        if let Home::Far { heard, .. } = &self.home {
            *heard.lock() = Instant::now();
        }
    }

    /// Since when nothing was heard of it; `None`: it is connected to this process.
    pub fn heard(&self) -> Option<Instant> {
        match &self.home {
            Home::Here(_) => None,
            Home::Far { heard, .. } => Some(*heard.lock()),
        }
    }

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
        }
    }

    pub fn is_gone(&self) -> bool {
        self.gone.load(Relaxed)
    }

    pub fn ends(&self) {
        self.gone.store(true, Relaxed);
        self.more.notify_one();
    }

    /// A region has waited in vain for its answer; true if it was in time before.
    pub fn give_up(&self) -> bool {
        let mut given_up = self.given_up.lock();
        let before = *given_up;
        if before.is_some_and(|before| before.comes_last()) {
            return false;
        }
        let wait = before.map_or(GIVEN_UP, |before| (2 * before.wait).min(GIVEN_UP_MOST));
        *given_up = Some(GivenUp { at: Instant::now(), wait });
        true
    }

    /// It has answered a region of this process, after so many ticks; true if its share of regions has changed.
    pub fn answered(&self, ticks: u64) -> bool {
        self.is_in_time();
        self.pace.lock().answered(ticks, Instant::now())
    }

    /// How quickly it answers the regions of this process.
    pub fn pace(&self) -> Pace {
        *self.pace.lock()
    }

    fn is_in_time(&self) {
        let mut given_up = self.given_up.lock();
        if given_up.is_some_and(|before| !before.comes_last()) {
            *given_up = None;
        }
    }

    pub fn comes_last(&self) -> bool {
        self.given_up.lock().is_some_and(|given_up| given_up.comes_last())
    }

    pub fn set_answered(&self, in_time: bool) {
        *self.unanswered.lock() = if in_time { None } else { Some(Instant::now()) };
    }

    /// Whether questions go to other workers, if there are any: it did not answer the last one.
    pub fn is_passed_over(&self) -> bool {
        self.unanswered.lock().is_some_and(|at| at.elapsed() < PASSED_OVER) || self.comes_last()
    }

    /// Regions of this process begin leases (1) or end them (-1).
    pub fn has_one_more(&self, regions: i64) {
        self.regions.fetch_add(regions, Relaxed);
    }

    /// How many regions it has; of a worker of another process only those of this one.
    pub fn regions(&self) -> u64 {
        match &self.home {
            Home::Here(mailbox) => mailbox.lock().regions() as u64,
            Home::Far { .. } => u64::try_from(self.regions.load(Relaxed)).unwrap_or(0),
        }
    }

    pub fn allot(&self, first: EntityId, ids: u64) {
        let mut blocks = self.ids.lock();
        match blocks.last_mut() {
            Some(last) if last.0 + last.1 == first.0 => last.1 += ids,
            _ => blocks.push((first.0, ids)),
        }
    }

    pub fn first_id(&self) -> Option<EntityId> {
        self.ids.lock().first().map(|(first, _)| EntityId(*first))
    }

    pub fn owns_id(&self, id: EntityId) -> bool {
        let blocks = self.ids.lock();
        blocks.iter().any(|(first, ids)| (*first..first + ids).contains(&id.0))
    }
}

/// What the worker is told. Nothing waits, and what is lost nobody repeats, but refusals: a lease ends then.
impl Worker {
    fn put(&self, put: impl FnOnce(&mut Mailbox)) {
        if let Home::Here(mailbox) = &self.home {
            put(&mut mailbox.lock());
            self.more.notify_one();
        }
    }

    fn tell_home(&self, message: impl FnOnce() -> WorkerMsg) -> bool {
        match &self.home {
            Home::Here(_) => false,
            Home::Far { process, links, .. } => links.tell_workers(*process, message()).is_ok(),
        }
    }

    /// The process says something: to a worker of its own.
    pub fn say(&self, message: Bytes) {
        self.put(|mailbox| mailbox.say(message));
    }

    /// A region of this process tells of its lease.
    pub fn tell(&self, told: WorkerTold) {
        if self.process().is_none() {
            return self.tell_by(0, told);
        }
        let _said = self.tell_home(|| WorkerMsg::Told(Box::new(told)));
    }

    /// The same of a region of any process, to a worker of this one.
    pub fn tell_by(&self, by: u64, told: WorkerTold) {
        self.put(|mailbox| mailbox.tell(by, (told.lease, told.seq), told.response));
    }

    /// A lease of a region of this process has ended.
    pub fn lease_ends(&self, lease: LeaseName) {
        if self.process().is_none() {
            return self.lease_ends_by(0, lease);
        }
        let _said = self.tell_home(|| WorkerMsg::Ended { worker: self.id, lease });
    }

    /// The same of a region of any process, to a worker of this one.
    pub fn lease_ends_by(&self, by: u64, lease: LeaseName) {
        let ended = Ended { lease: Some(ledger::lease(lease)) };
        self.put(|mailbox| mailbox.end(by, lease, encode(response::Message::Ended(ended))));
    }

    /// A region of this process has refused commands.
    pub fn refuse(&self, region: RegionId, response: Bytes) {
        if self.process().is_none() {
            return self.refuse_by(0, region, response);
        }
        let _said = self.tell_home(|| WorkerMsg::Refused { worker: self.id, region, response });
    }

    /// The same of a region of any process, to a worker of this one.
    pub fn refuse_by(&self, by: u64, region: RegionId, response: Bytes) {
        self.put(|mailbox| mailbox.refuse(by, region, response));
    }

    /// Asks the worker whether a player may come; false: the question is lost.
    pub fn ask(&self, asked: WorkerQuestion) -> bool {
        if self.process().is_some() {
            return self.tell_home(|| WorkerMsg::Ask(Box::new(asked)));
        }
        let WorkerQuestion { question, account, entity, plane, pos, jumps, .. } = asked;
        let (subject, claims) = (account.subject().to_owned(), account.claims());
        let (entity, plane, position) = (entity.0, plane.0, position(pos));
        let question = Question { question, subject, entity, plane, position, jumps, claims };
        self.say(encode(response::Message::Question(question)));
        true
    }

    /// Waits until there may be something to send.
    pub async fn more(&self) {
        self.more.notified().await;
    }

    pub fn has_unsent(&self) -> bool {
        matches!(&self.home, Home::Here(mailbox) if !mailbox.lock().is_empty())
    }

    pub fn take_unsent(&self) -> Option<Bytes> {
        match &self.home {
            Home::Here(mailbox) => mailbox.lock().take(),
            Home::Far { .. } => None,
        }
    }

    /// Bytes of what this process has said and the worker has not read.
    pub fn unread_bytes(&self) -> usize {
        match &self.home {
            Home::Here(mailbox) => mailbox.lock().own_bytes(),
            Home::Far { .. } => 0,
        }
    }

    pub fn waiting_bytes(&self) -> usize {
        match &self.home {
            Home::Here(mailbox) => mailbox.lock().bytes(),
            Home::Far { .. } => 0,
        }
    }

    /// The process of the region of a lease, if it is the newest of the region; 0: this one.
    pub fn process_of(&self, lease: LeaseName) -> Option<u64> {
        match &self.home {
            Home::Here(mailbox) => mailbox.lock().process_of(lease),
            Home::Far { .. } => None,
        }
    }

    /// The process of a region that has refused commands; 0: this one.
    pub fn process_of_refused(&self, region: RegionId) -> Option<u64> {
        match &self.home {
            Home::Here(mailbox) => mailbox.lock().process_of_refused(region),
            Home::Far { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker() -> Worker {
        let (scene, followed) = (SceneId(0), Followed::Watched);
        Worker::new(7, Profile { scene, name: "w".into(), answers: false, followed })
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_that_was_given_up_comes_last_for_a_while() {
        let worker = worker();
        assert!(!worker.comes_last() && worker.give_up() && !worker.give_up());
        assert!(worker.comes_last() && worker.is_passed_over());
        tokio::time::advance(GIVEN_UP).await;
        assert!(!worker.comes_last() && worker.give_up());
        tokio::time::advance(GIVEN_UP).await;
        assert!(worker.comes_last(), "longer the second time");
        tokio::time::advance(GIVEN_UP).await;
        worker.is_in_time();
        assert!(worker.give_up());
        tokio::time::advance(GIVEN_UP).await;
        assert!(!worker.comes_last());
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

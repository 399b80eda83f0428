//! All workers of a process, and the lanes to its regions. Regions ask which worker they have; streams find regions.
//!
//! The region alone decides: it ends a lease and begins another one inside its tick, so that it never has two. The hub
//! only says who is there. A version number tells a region when to ask again.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use purview::actor::admission::Reason;
use purview::actor::directory::Directory;
use purview::scene::{Plane, RegionId, SceneId};
use purview::wire::peer::{WorkerAnswer, WorkerGot};
use rustc_hash::FxHashMap;
use tokio::sync::mpsc;

use super::conduct::Pace;
use super::id_quota::IdQuota;
use super::metrics::Metrics;
use super::planes::Planes;
use super::worker::{Profile, Worker};
use crate::admin::WorkerStatus;
use crate::config::{AskAbout, LogicSettings, NoAnswer};
use crate::executor::Executor;
use crate::peer::Links;
use crate::questions::Questions;

/// What workers say to a region and that waits for its next tick.
const LANE: usize = 256;

/// Bytes that wait for a worker at most.
const KEEP: usize = 64 << 20;

/// What a worker answers: the player may come, perhaps into another plane, or why it may not.
pub(super) type Decided = Result<Option<Plane>, Reason>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long an answer of a worker may take before its regions go to others.
    pub takeover: Duration,
    pub keep: usize,
    pub workers: usize,
    pub ask: AskAbout,
    pub answer_within: Duration,
    pub admits_unanswered: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::from(&LogicSettings::default())
    }
}

impl From<&LogicSettings> for Limits {
    fn from(settings: &LogicSettings) -> Limits {
        let LogicSettings { takeover, workers, .. } = *settings;
        let LogicSettings { ask, answer_within, no_answer, .. } = *settings;
        let admits_unanswered = no_answer == NoAnswer::Admit;
        Limits { takeover, keep: KEEP, workers, ask, answer_within, admits_unanswered }
    }
}

#[derive(Debug)]
pub enum Inbound {
    Answer(WorkerAnswer),
    Got(WorkerGot),
}

impl Inbound {
    fn region(&self) -> RegionId {
        match self {
            Inbound::Answer(answer) => answer.lease.region,
            Inbound::Got(got) => got.region,
        }
    }
}

/// The way to a region of this process.
type Lane = mpsc::Sender<Inbound>;

#[derive(Debug)]
pub struct Hub {
    pub limits: Limits,
    pub metrics: Arc<Metrics>,
    directory: OnceLock<Weak<Directory>>,
    workers: RwLock<Vec<Arc<Worker>>>,
    version: AtomicU64,
    /// How many blocks of ids its workers may take.
    pub ids: IdQuota,
    lanes: RwLock<FxHashMap<RegionId, Lane>>,
    pub(super) questions: Arc<Questions<Decided>>,
    pub(super) planes: RwLock<Planes>,
    /// Of each process that knew other planes: what it said last, and what was known here then.
    pub(super) differs: Mutex<FxHashMap<u64, (u64, u64)>>,
    /// Where tasks run; none: where the caller's run.
    pub(super) executor: OnceLock<Executor>,
    /// The way to other processes; none where this one is alone.
    pub(super) links: OnceLock<Links>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there are {0} workers, as many as there may be")]
pub struct Crowded(pub usize);

impl Hub {
    pub fn new(limits: Limits) -> Hub {
        Hub {
            limits,
            metrics: Arc::default(),
            directory: OnceLock::new(),
            workers: RwLock::default(),
            version: AtomicU64::new(1),
            ids: IdQuota::default(),
            lanes: RwLock::default(),
            questions: Arc::default(),
            planes: RwLock::default(),
            differs: Mutex::default(),
            executor: OnceLock::new(),
            links: OnceLock::new(),
        }
    }

    /// Where scenes and names are found. Called once, before the first worker comes.
    pub fn set_directory(&self, directory: &Arc<Directory>) {
        // A second call changes nothing.
        drop(self.directory.set(Arc::downgrade(directory)));
    }

    /// Where scenes and names are found; `None`: the server ends, or has not begun.
    pub fn directory(&self) -> Option<Arc<Directory>> {
        self.directory.get()?.upgrade()
    }

    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        match self.executor.get() {
            Some(executor) => drop(executor.spawn(work)),
            None => drop(tokio::spawn(work)),
        }
    }

    /// Grows whenever a region may have another worker.
    pub fn version(&self) -> u64 {
        self.version.load(Relaxed)
    }

    /// Regions ask again which worker they have.
    pub fn divide_anew(&self) {
        self.version.fetch_add(1, Relaxed);
        self.tell_others();
    }

    /// The same where other processes know it already.
    pub(super) fn divide_here_anew(&self) {
        self.version.fetch_add(1, Relaxed);
    }

    pub fn begin(&self, id: u64, profile: Profile) -> Result<Arc<Worker>, Crowded> {
        let mut workers = self.workers.write();
        let here = workers.iter().filter(|worker| worker.process().is_none()).count();
        if here >= self.limits.workers {
            return Err(Crowded(here));
        }
        let worker = Arc::new(Worker::new(id, profile));
        workers.push(worker.clone());
        self.metrics.sessions.fetch_add(1, Relaxed);
        Ok(worker)
    }

    pub fn end(&self, worker: &Worker) {
        worker.ends();
        let mut workers = self.workers.write();
        workers.retain(|other| other.id != worker.id);
        drop(workers);
        match worker.process() {
            Some(_) => self.divide_here_anew(),
            None => self.divide_anew(),
        }
    }

    /// A region of this process has waited in vain for the answer of a worker.
    pub fn give_up(&self, worker: &Worker, region: RegionId) {
        if worker.give_up() {
            self.metrics.late.fetch_add(1, Relaxed);
            let (worker, name) = (worker.id, &worker.profile.name);
            tracing::warn!(worker, %name, %region, "a logic worker does not answer in time");
            self.divide_here_anew();
        }
    }

    /// The share of a worker has changed, by how quickly it answers regions of this process.
    pub fn repace(&self, worker: &Worker) {
        let Pace { ticks, share, .. } = worker.pace();
        let (worker, name) = (worker.id, &worker.profile.name);
        tracing::info!(worker, %name, ticks, share, "a logic worker's share of regions follows its pace");
        self.divide_here_anew();
    }

    pub(super) fn add(&self, worker: Worker) {
        let mut workers = self.workers.write();
        workers.push(Arc::new(worker));
    }

    pub fn worker(&self, id: u64) -> Option<Arc<Worker>> {
        let workers = self.workers.read();
        workers.iter().find(|worker| worker.id == id).cloned()
    }

    pub fn all(&self) -> Vec<Arc<Worker>> {
        self.workers.read().clone()
    }

    pub fn status(&self) -> Vec<WorkerStatus> {
        let status = |worker: &Arc<Worker>| WorkerStatus {
            worker: worker.id,
            name: worker.profile.name.clone(),
            scene: worker.profile.scene.0,
            late: worker.comes_last(),
            answer_ticks: worker.pace().ticks,
            share: worker.pace().share,
            regions: worker.regions(),
            process: worker.process().unwrap_or(0),
            waiting_bytes: worker.waiting_bytes() as u64,
            late_answers: worker.conduct.late_answers.load(Relaxed),
            refused_commands: worker.conduct.refused_commands.load(Relaxed),
        };
        self.all().iter().map(status).collect()
    }

    /// The worker that a region is to have: the one with the highest rank for the region, by its share (weighted
    /// rendezvous hashing). One that was given up comes after all others.
    pub fn choose(
        &self,
        scene: SceneId,
        region: RegionId,
        now: Option<u64>,
    ) -> Option<Arc<Worker>> {
        let workers = self.workers.read();
        let of_scene = workers.iter().filter(|worker| worker.profile.scene == scene);
        let ranked = of_scene.filter(|worker| !worker.is_gone()).map(|worker| {
            let fits = !worker.comes_last();
            // Nothing is gained by taking a region from one that was given up for another one.
            let stays = !fits && now == Some(worker.id);
            (fits, stays, rank(region, worker.id, worker.pace().share), worker)
        });
        let ranked = ranked.max_by(|(a_fits, a_stays, a, _), (b_fits, b_stays, b, _)| {
            (a_fits, a_stays).cmp(&(b_fits, b_stays)).then(a.total_cmp(b))
        });
        ranked.map(|(.., worker)| worker.clone())
    }

    /// Opens the lane of a region that begins here; gives its end.
    pub fn open_lane(&self, region: RegionId) -> mpsc::Receiver<Inbound> {
        let (batches, inbox) = mpsc::channel(LANE);
        self.lanes.write().insert(region, batches);
        inbox
    }

    /// A region no longer runs here, unless another one of its name has begun since.
    pub fn close_lane(&self, region: RegionId, inbox: &mut mpsc::Receiver<Inbound>) {
        inbox.close();
        let mut lanes = self.lanes.write();
        if lanes.get(&region).is_some_and(Lane::is_closed) {
            lanes.remove(&region);
        }
    }

    /// Gives a region of this process what a worker says; it is lost if the region does not run here, or takes no more.
    pub fn deliver(&self, said: Inbound) {
        let lanes = self.lanes.read();
        let taken = lanes.get(&said.region()).map(|lane| lane.try_send(said));
        if !matches!(taken, Some(Ok(()))) {
            self.metrics.late_answers.fetch_add(1, Relaxed);
        }
    }
}

pub(super) fn first_for(region: RegionId, workers: Vec<Arc<Worker>>) -> Option<Arc<Worker>> {
    let rank = |worker: &Arc<Worker>| rank(region, worker.id, worker.pace().share);
    workers.into_iter().max_by(|a, b| rank(a).total_cmp(&rank(b)))
}

/// The rank of a worker for a region: as if drawn, such that of many regions each worker has the highest rank in
/// its share, and that a share that shrinks moves only regions of this worker.
fn rank(region: RegionId, worker: u64, share: f64) -> f64 {
    let mut mixed = worker ^ u64::from(region.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    // Within (0, 1), in 53 bits.
    let drawn = ((mixed >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    drawn.ln() / share
}

#[cfg(test)]
mod tests {
    use purview::scene::region::Followed;

    use super::*;

    fn worker(hub: &Hub, id: u64) -> Arc<Worker> {
        let (scene, followed) = (SceneId(0), Followed::Watched);
        let profile = Profile { scene, name: String::new(), answers: false, followed };
        hub.begin(id, profile).unwrap()
    }

    fn divided(hub: &Hub, before: &[Option<u64>]) -> Vec<Option<u64>> {
        let choose = |region: u32| {
            let now = before.get(region as usize).copied().flatten();
            hub.choose(SceneId(0), RegionId(region), now).map(|worker| worker.id)
        };
        (0..64).map(choose).collect()
    }

    #[test]
    fn regions_are_divided_among_workers_and_only_those_of_a_lost_worker_move() {
        let hub = Hub::new(Limits::default());
        assert!(divided(&hub, &[]).iter().all(Option::is_none));
        let workers: Vec<_> = (1..5).map(|id| worker(&hub, id << 32)).collect();
        let all = divided(&hub, &[]);
        for worker in &workers {
            let has = all.iter().filter(|id| **id == Some(worker.id)).count();
            assert!((6..30).contains(&has), "{has} of 64");
        }
        workers[1].give_up();
        let fewer = divided(&hub, &all);
        for (before, after) in all.iter().zip(&fewer) {
            assert_eq!(before != after, *before == Some(workers[1].id));
        }
        hub.end(&workers[1]);
        assert_eq!(divided(&hub, &fewer), fewer);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_worker_gives_some_of_its_regions_away_and_gets_them_back() {
        let hub = Hub::new(Limits::default());
        let workers: Vec<_> = (1..5).map(|id| worker(&hub, id << 32)).collect();
        let all = divided(&hub, &[]);
        let slow = Some(workers[1].id);
        let has = |all: &[Option<u64>]| all.iter().filter(|id| **id == slow).count();
        let version = hub.version();
        for _ in 0..100 {
            tokio::time::advance(Duration::from_millis(400)).await;
            if workers[1].answered(4) {
                hub.repace(&workers[1]);
            }
        }
        assert!(hub.version() > version, "regions ask again");
        let fewer = divided(&hub, &all);
        assert!(has(&fewer) * 2 < has(&all), "{} of {}", has(&fewer), has(&all));
        for (before, after) in all.iter().zip(&fewer) {
            assert!(before == after || *before == slow, "only its own regions move");
        }
        let status = hub.status().into_iter().find(|of| Some(of.worker) == slow).unwrap();
        assert!(status.answer_ticks > 3.0 && status.share < 0.25, "{status:?}");
        for _ in 0..4_000 {
            tokio::time::advance(Duration::from_millis(100)).await;
            workers[1].answered(1);
        }
        assert_eq!(divided(&hub, &fewer), all);
    }

    #[test]
    fn workers_that_were_all_given_up_keep_their_regions() {
        let hub = Hub::new(Limits { workers: 2, ..Limits::default() });
        let workers = [worker(&hub, 1), worker(&hub, 2)];
        let all = divided(&hub, &[]);
        workers[0].give_up();
        workers[1].give_up();
        assert_eq!(divided(&hub, &all), all);
        let profile = workers[0].profile.clone();
        let refused = hub.begin(3, profile).unwrap_err();
        assert_eq!(refused.to_string(), "there are 2 workers, as many as there may be");
        hub.end(&workers[1]);
        assert!(divided(&hub, &all).iter().all(|id| *id == Some(1)));
    }
}

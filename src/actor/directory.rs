//! What every actor of a process may look up: scenes, regions' addresses, lines with room, names
//! not yet used, and the time.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
};
use std::time::Duration;

use actix::Recipient;
use actix::dev::SendError;
use actix_rt::time::Instant;
use rustc_hash::FxHashMap;

use super::address::{RegionAddress, SessionAddress, SessionEntry};
use super::cluster_clock::ClusterClock;
use super::logins::Logins;
use super::messages::{Delivery, ToRegion};
use super::places::Places;
use super::routes::{Leaver, Routes};
pub use super::routes::{Lookup, NotSent};
use super::seldom::next_together;
use crate::clock;
use crate::scene::lines::Lines;
use crate::scene::region::RegionSnapshot;
use crate::scene::{EntityId, Epoch, Plane, Region, RegionId, Scene, SceneId, SessionId, Tick};
use crate::wire::peer::Mark;

/// Names that one process gives out: its number, then a count.
const COUNT_BITS: u32 = 32;

/// Whether a process is still believed to own what it owns (DESIGN, ENGINE: self-fencing).
pub trait Fence: Debug + Send + Sync {
    /// Whether its regions may act now. Asked before every tick and before anything is delivered.
    fn may_act(&self) -> bool;
}

/// Where regions of a process bring what is to be kept in case that the process dies.
pub trait Archive: Debug + Send + Sync {
    /// After how many ticks a region brings a checkpoint; at least 1.
    fn every_ticks(&self) -> u64;

    /// Takes one, at once: a region's tick waits for it.
    fn keep(&self, snapshot: RegionSnapshot);

    /// The oldest tick of all checkpoints from which regions of this process would go on; `None`: that is
    /// not known. While the store is away it stands for those of other processes, too.
    fn oldest(&self) -> Option<Tick>;

    /// A region does not run here any more under this epoch.
    fn forget(&self, region: RegionId, epoch: Epoch);
}

/// Who is told what regions of a process do, for example a simulator that judges it.
pub trait Witness: Debug + Send + Sync {
    /// A region that may act has ended a tick, or begun one that waits for a neighbour.
    fn acted(&self, region: &Region);
}

/// A process that is one of many.
#[derive(Debug, Clone)]
pub struct Process {
    /// Its number, of which no two that live at the same time have the same; above 0 and below 2^21,
    /// so that names stay below 2^53 and every client can count them.
    pub number: u64,
    /// The cluster's time when the directory is made.
    pub clock: Duration,
    /// Whether its regions may act; `None`: always.
    pub fence: Option<Arc<dyn Fence>>,
    /// Where checkpoints go; `None`: there are none.
    pub archive: Option<Arc<dyn Archive>>,
}

/// Finds sessions of all processes.
pub trait FindSession: Debug + Send + Sync {
    /// Where a session is; `None`: it is none any more.
    fn find(&self, session: SessionId) -> Option<SessionAddress>;
}

/// The directory of one process. Shared; lookups never wait for an actor.
#[derive(Debug)]
pub struct Directory {
    scenes: Vec<(RwLock<Arc<Scene>>, Mutex<Lines>)>,
    routes: RwLock<Routes>,
    started: Instant,
    clock: Arc<ClusterClock>,
    process: u64,
    fence: Option<Arc<dyn Fence>>,
    archive: Option<Arc<dyn Archive>>,
    witness: Option<Arc<dyn Witness>>,
    /// For how long players stay whose sessions end without a word.
    linger: Duration,
    /// Where players' last places are kept.
    places: Option<Arc<dyn Places>>,
    /// Knows sessions by their subjects.
    logins: Option<Arc<dyn Logins>>,
    /// Sessions of this process, where regions of others may look for them.
    sessions: Option<Mutex<FxHashMap<SessionId, SessionEntry>>>,
    finder: OnceLock<Arc<dyn FindSession>>,
    entities: AtomicU64,
    session_names: AtomicU64,
    door_versions: AtomicU64,
    /// All regions that there are by the maps that count now, also such as wait for an owner; `None`: it is not known yet.
    all_regions: RwLock<Option<Vec<RegionId>>>,
}

impl Directory {
    /// A directory of these scenes, whose ids are their places in the list.
    pub fn new(scenes: Vec<Arc<Scene>>) -> Directory {
        let scenes = scenes
            .into_iter()
            .map(|s| {
                let lines = Mutex::new(Lines::new(s.spec.lines, s.spec.line_capacity));
                (RwLock::new(s), lines)
            })
            .collect();
        Directory {
            scenes,
            routes: RwLock::default(),
            started: clock::now(),
            clock: Arc::new(ClusterClock::new(Duration::ZERO)),
            process: 0,
            fence: None,
            archive: None,
            witness: None,
            linger: Duration::ZERO,
            places: None,
            logins: None,
            sessions: None,
            finder: OnceLock::new(),
            entities: AtomicU64::new(1),
            session_names: AtomicU64::new(1),
            door_versions: AtomicU64::new(1),
            all_regions: RwLock::new(Some(Vec::new())),
        }
    }

    /// The directory of one process of many: names are unique among all of them, and the clock is the
    /// cluster's.
    pub fn of_process(scenes: Vec<Arc<Scene>>, process: Process) -> Directory {
        let first = (process.number << COUNT_BITS) + 1;
        Directory {
            clock: Arc::new(ClusterClock::new(process.clock)),
            process: process.number,
            fence: process.fence,
            archive: process.archive,
            sessions: Some(Mutex::default()),
            entities: AtomicU64::new(first),
            session_names: AtomicU64::new(first),
            // Later orders are those that are given later, whoever gives them.
            door_versions: AtomicU64::new(process.clock.as_micros() as u64),
            ..Directory::new(scenes)
        }
    }

    /// The same, in which players stay for so long whose sessions end without a word; zero: they leave at once.
    pub fn with_linger(self, linger: Duration) -> Directory {
        Directory { linger, ..self }
    }

    /// The same, whose region maps may have changed since they were configured: nobody is told that its player is nowhere
    /// before [`Directory::maps_are_known`].
    pub fn with_maps_to_come(self) -> Directory {
        Directory { all_regions: RwLock::default(), ..self }
    }

    /// The region maps are those that count now, as [`Directory::set_scene`] and the routes have them, and there are these
    /// regions, some of which a change of a map may have given up.
    pub fn maps_are_known(&self, regions: Vec<RegionId>) {
        let known = self.all_regions.read().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref() != Some(&regions) {
            drop(known);
            let mut known = self.all_regions.write().unwrap_or_else(PoisonError::into_inner);
            *known = Some(regions);
        }
    }

    /// Whether they are.
    pub(super) fn knows_maps(&self) -> bool {
        self.all_regions.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// The same, in which players' last places are kept.
    pub fn with_places(self, places: Arc<dyn Places>) -> Directory {
        Directory { places: Some(places), ..self }
    }

    /// The same, in which somebody knows sessions by their subjects.
    pub fn with_logins(self, logins: Arc<dyn Logins>) -> Directory {
        Directory { logins: Some(logins), ..self }
    }

    /// Who knows sessions by their subjects, if anybody does.
    pub fn logins(&self) -> Option<&Arc<dyn Logins>> {
        self.logins.as_ref()
    }

    /// The same, in which somebody is told what regions do.
    pub fn with_witness(self, witness: Arc<dyn Witness>) -> Directory {
        Directory { witness: Some(witness), ..self }
    }

    /// Who is told what regions do, if anybody is.
    pub(super) fn witness(&self) -> Option<&Arc<dyn Witness>> {
        self.witness.as_ref()
    }

    /// Where players' last places are kept, if they are.
    pub(super) fn places(&self) -> Option<&Arc<dyn Places>> {
        self.places.as_ref()
    }

    /// For how long players stay whose sessions end without a word, milliseconds.
    pub fn linger_ms(&self) -> u32 {
        u32::try_from(self.linger.as_millis()).unwrap_or(u32::MAX)
    }

    /// The process's number; 0 where it is alone.
    pub fn process(&self) -> u64 {
        self.process
    }

    /// The number of the process that gave a session its name.
    pub fn process_of(session: SessionId) -> u64 {
        session.0 >> COUNT_BITS
    }

    /// Whether regions of this process may act now.
    pub fn may_act(&self) -> bool {
        self.fence.as_ref().is_none_or(|fence| fence.may_act())
    }

    fn routes(&self) -> RwLockReadGuard<'_, Routes> {
        self.routes.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn routes_mut(&self) -> RwLockWriteGuard<'_, Routes> {
        self.routes.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the addresses of all regions that there are, once; later calls change nothing.
    pub fn set_regions(&self, regions: FxHashMap<RegionId, Recipient<ToRegion>>) {
        let regions = regions.into_iter().map(|(id, address)| (id, address.into())).collect();
        if !self.routes_mut().set_all(regions) {
            crate::log_limited!(error, "the regions' addresses were told twice");
        }
    }

    /// Tells where a region is from now on; `None`: it is not known. What was kept for it is sent.
    pub fn set_region(&self, id: RegionId, address: Option<RegionAddress>) {
        self.routes_mut().set(id, address);
    }

    /// Another process (`None`: whichever) has a region no more: its address is not known any more, unless it is here by now,
    /// about to arrive, or has been found in yet another process since.
    pub fn lose_region(&self, id: RegionId, process: Option<u64>) {
        self.routes_mut().lose(id, process);
    }

    /// Sends what was kept for regions that had no room for it. To be called now and then.
    pub fn send_kept(&self) {
        self.routes_mut().send_all_kept();
    }

    /// Keeps a message that has come to the wrong place until the region's address is told anew. Those
    /// that are kept arrive in the order in which they came. Beyond 65,536 for one region the oldest that is no entity on
    /// its way is lost, and counted.
    pub fn keep(&self, id: RegionId, msg: ToRegion) {
        self.routes_mut().keep(id, msg);
    }

    /// Messages that were kept for regions without an address and found no room.
    pub fn kept_lost(&self) -> u64 {
        self.routes().kept_lost()
    }

    /// What is known of where a region is.
    pub fn look_up(&self, id: RegionId) -> Lookup {
        self.routes().look_up(id)
    }

    /// Sends to a region, without waiting. Whatever is sent before a region's address changes is on
    /// its way before it has.
    ///
    /// # Errors
    /// [`NotSent`] says why not, and gives the message back.
    #[expect(clippy::result_large_err, reason = "what is not taken is given back, as actix does")]
    pub fn send(&self, id: RegionId, msg: ToRegion) -> Result<(), NotSent> {
        self.routes().send(id, msg)
    }

    /// Sends what another process says to a region, without waiting: to the region if it lives here, to
    /// where it passes things on if it has left, to where it is waited for if it is about to arrive.
    ///
    /// # Errors
    /// It is given back: `Nowhere` when the region is none of these.
    #[expect(clippy::result_large_err, reason = "what is not taken is given back, as actix does")]
    pub fn send_from_peer(&self, id: RegionId, msg: ToRegion) -> Result<(), NotSent> {
        let routes = self.routes();
        match routes.for_peers(id) {
            None => Err(NotSent::Nowhere(msg)),
            Some(_) if routes.is_backed_up(id) => Err(NotSent::Full(msg)),
            Some(address) => address.try_send(msg).map_err(|e| match e {
                SendError::Full(msg) => NotSent::Full(msg),
                SendError::Closed(msg) => NotSent::Closed(msg),
            }),
        }
    }

    /// A region of another process is about to move here: what comes for it waits.
    pub fn expect(&self, id: RegionId) {
        self.routes_mut().expect(id);
    }

    /// From now on what is said here to a region that is about to arrive waits for it. False when none
    /// is.
    pub fn wait_here(&self, id: RegionId) -> bool {
        self.routes_mut().wait_here(id)
    }

    /// Takes what the old owner of a region that is about to arrive passes on.
    ///
    /// # Errors
    /// `Full` when too much waits, `Closed` when none is about to arrive.
    #[expect(clippy::result_large_err, reason = "what is not taken is given back, as actix does")]
    pub fn passed_on(&self, id: RegionId, msg: ToRegion) -> Result<(), SendError<ToRegion>> {
        self.routes().passed_on(id, msg)
    }

    /// A region has arrived: it hears what was passed on, then what was sent here, then what comes.
    pub fn arrive(&self, id: RegionId, address: Recipient<ToRegion>) {
        self.routes_mut().arrive(id, address);
    }

    /// A region that was expected does not come; what waited for it is given back.
    pub fn give_up(&self, id: RegionId) -> Vec<ToRegion> {
        self.routes_mut().give_up(id)
    }

    /// A region's actor leaves for another process.
    pub(super) fn leave(&self, id: RegionId, to: RegionAddress, leaver: Leaver) {
        self.routes_mut().leave(id, to, leaver);
    }

    /// Nobody says anything by the old way any more to a region that has left.
    pub fn left(&self, id: RegionId) {
        self.routes_mut().left(id);
    }

    /// Tells a region that has left that a sender says nothing more by the old way. False when there is
    /// none.
    pub fn mark(&self, id: RegionId, mark: Mark) -> bool {
        self.routes().mark(id, mark)
    }

    /// The address of a region, where it is known.
    pub fn region(&self, id: RegionId) -> Option<RegionAddress> {
        match self.look_up(id) {
            Lookup::At(address) => Some(address),
            Lookup::Nowhere | Lookup::Gone => None,
        }
    }

    /// Makes a session known to regions of other processes.
    pub(super) fn register(&self, session: SessionId, entry: SessionEntry) {
        if let Some(sessions) = &self.sessions {
            sessions.lock().unwrap_or_else(PoisonError::into_inner).insert(session, entry);
        }
    }

    /// A session of this process is no more.
    pub(super) fn unregister(&self, session: SessionId) {
        if let Some(sessions) = &self.sessions {
            sessions.lock().unwrap_or_else(PoisonError::into_inner).remove(&session);
        }
    }

    /// Where checkpoints go, if there are any.
    pub(super) fn archive(&self) -> Option<&Arc<dyn Archive>> {
        self.archive.as_ref()
    }

    /// Tells every session of this process that a region goes on from a checkpoint under a new owner,
    /// of this epoch: whose player lives there presents it.
    pub fn tell_owner(&self, region: RegionId, epoch: Epoch) {
        let Some(sessions) = &self.sessions else { return };
        let sessions = sessions.lock().unwrap_or_else(PoisonError::into_inner);
        for entry in sessions.values() {
            entry.to.do_send(Delivery::Owner(region, epoch));
        }
    }

    /// Who finds sessions, from now on; the first one counts.
    pub fn find_sessions_by(&self, finder: Arc<dyn FindSession>) {
        self.finder.get_or_init(|| finder);
    }

    /// Where a session is, of whichever process; `None`: nobody can tell.
    pub(super) fn find_session(&self, session: SessionId) -> Option<Option<SessionAddress>> {
        self.finder.get().map(|finder| finder.find(session))
    }

    /// A session of this process, where it is one of many.
    pub fn session(&self, session: SessionId) -> Option<SessionEntry> {
        self.with_session(session, SessionEntry::clone)
    }

    /// Does something with a session of this process, where it is one of many. Nobody else gets at sessions meanwhile.
    pub fn with_session<R>(
        &self,
        session: SessionId,
        act: impl FnOnce(&SessionEntry) -> R,
    ) -> Option<R> {
        let sessions = self.sessions.as_ref()?;
        sessions.lock().unwrap_or_else(PoisonError::into_inner).get(&session).map(act)
    }

    /// All scenes, each with its present map.
    pub fn scenes(&self) -> impl Iterator<Item = Arc<Scene>> {
        self.scenes.iter().map(|(scene, _)| scene_in(scene))
    }

    /// The scene with this id, with its present map.
    pub fn scene(&self, id: SceneId) -> Option<Arc<Scene>> {
        self.scenes.get(usize::from(id.0)).map(|(scene, _)| scene_in(scene))
    }

    /// The scene with this name.
    pub fn scene_named(&self, name: &str) -> Option<Arc<Scene>> {
        self.scenes().find(|s| s.spec.name == name)
    }

    /// A scene has another map from now on; one with an older version changes nothing.
    pub fn set_scene(&self, scene: Arc<Scene>) {
        let Some((known, _)) = self.scenes.get(usize::from(scene.id.0)) else { return };
        let mut known = known.write().unwrap_or_else(PoisonError::into_inner);
        if known.map.version < scene.map.version {
            *known = scene;
        }
    }

    /// All regions that can be reached now, or wait for an owner.
    pub(super) fn known_regions(&self) -> Vec<RegionId> {
        let all = self.all_regions.read().unwrap_or_else(PoisonError::into_inner);
        let mut known: Vec<RegionId> = all.iter().flatten().copied().collect();
        drop(all);
        known.extend(self.routes().known());
        known.sort_unstable();
        known.dedup();
        known
    }

    /// A region is no more, and nothing will ever be for it.
    pub fn retire(&self, id: RegionId) {
        self.routes_mut().retire(id);
    }

    /// Takes a place for a player in a scene; see [`Lines::take`]. Give it back with
    /// [`Directory::give_back_line`].
    pub fn take_line(&self, scene: SceneId, plane: Option<Plane>) -> Option<Plane> {
        self.lines(scene)?.take(plane)
    }

    /// Gives back a place that [`Directory::take_line`] gave.
    pub fn give_back_line(&self, scene: SceneId, plane: Plane) {
        if let Some(mut lines) = self.lines(scene) {
            lines.give_back(plane);
        }
    }

    /// The places that were given in this process: by scene and plane, how many have one.
    pub fn lines_here(&self) -> Vec<(SceneId, Plane, u32)> {
        let of = |scene: Arc<Scene>| {
            let here = self.lines(scene.id).map(|lines| lines.here().collect::<Vec<_>>());
            here.unwrap_or_default().into_iter().map(move |(plane, n)| (scene.id, plane, n))
        };
        let mut all: Vec<_> = self.scenes().flat_map(of).collect();
        all.sort_unstable();
        all
    }

    /// From now on so many have places in these planes that other processes gave, in no others.
    pub fn set_lines_elsewhere(&self, taken: impl Iterator<Item = (SceneId, Plane, u32)> + Clone) {
        for scene in self.scenes() {
            if let Some(mut lines) = self.lines(scene.id) {
                let of_scene = taken.clone().filter(|(id, ..)| *id == scene.id);
                lines.set_elsewhere(of_scene.map(|(_, plane, players)| (plane, players)));
            }
        }
    }

    /// Players in a plane of a scene, as far as is known: those who joined by other processes are known a second later.
    pub fn players(&self, scene: SceneId, plane: Plane) -> u32 {
        self.lines(scene).map_or(0, |lines| lines.players(plane))
    }

    /// A name for a new entity.
    pub fn new_entity(&self) -> EntityId {
        EntityId(self.entities.fetch_add(1, Ordering::Relaxed))
    }

    /// A name for a new session.
    pub fn new_session(&self) -> SessionId {
        SessionId(self.session_names.fetch_add(1, Ordering::Relaxed))
    }

    /// The version of a new order about a door: greater than that of every earlier one of this
    /// process, and than those that others gave before it.
    pub(super) fn new_door_version(&self) -> u64 {
        if self.process > 0 {
            let now = self.uptime().as_micros() as u64;
            self.door_versions.fetch_max(now, Ordering::Relaxed);
        }
        self.door_versions.fetch_add(1, Ordering::Relaxed)
    }

    /// The server's clock: time since this process's start, or since the cluster's.
    pub fn uptime(&self) -> Duration {
        self.clock.now()
    }

    /// The same, for whoever corrects it.
    pub fn clock(&self) -> &Arc<ClusterClock> {
        &self.clock
    }

    /// The tick that is due now, where ticks are `tick_ms` long.
    pub fn tick_now(&self, tick_ms: u32) -> Tick {
        Tick((self.uptime().as_millis() / u128::from(tick_ms.max(1))) as u64)
    }

    /// When `tick` begins.
    pub fn begin_of(&self, tick: Tick, tick_ms: u32) -> Instant {
        let at = Duration::from_millis(tick.0.saturating_mul(tick_ms.into()));
        self.clock.when(at)
    }

    /// When a session that looks at its deadlines every so often, and does now, is to look again: no later than that, and
    /// together with others of this process.
    pub fn next_look(&self, every: Duration) -> Instant {
        self.started + next_together(clock::since(self.started), every)
    }

    fn lines(&self, scene: SceneId) -> Option<MutexGuard<'_, Lines>> {
        let (_, lines) = self.scenes.get(usize::from(scene.0))?;
        Some(lines.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn scene_in(of: &RwLock<Arc<Scene>>) -> Arc<Scene> {
    of.read().unwrap_or_else(PoisonError::into_inner).clone()
}

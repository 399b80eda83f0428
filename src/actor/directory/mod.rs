//! What every actor of a process may look up: scenes, addresses of regions, sessions, lines with room,
//! names that are not used yet, and the time.
//!
//! | file | part |
//! |---|---|
//! | `scenes` | scenes with their present layouts, places in lines |
//! | `routes`, `migration` | where each region is, and what waits for one that is on its way |
//! | `sessions` | sessions of this process, and the way to others |
//! | `names` | ids of entities and sessions, versions of door orders |
//! | `doors` | orders that open and close doors |
//! | `calls` | commands of the game's logic by calls, and their results |
//! | `tell` | messages for groups, planes and scenes |
//! | `process` | what a cluster gives a process: fence, checkpoints, the way to sessions |
//!
//! Shared by all threads of a process. A lookup never waits for an actor, and no lock is held while
//! another one is taken.

mod calls;
pub mod doors;
mod migration;
mod names;
mod process;
mod routes;
mod scenes;
mod sessions;
mod tell;

use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use actix_rt::time::Instant;

pub use self::calls::CallError;
use self::calls::Calls;
pub(super) use self::migration::Leaver;
#[cfg(any(test, doc))]
pub(super) use self::migration::PASSING;
use self::names::Names;
pub use self::process::{CheckpointWriter, Fence, FindSession, Observer, Process, TellCaller};
use self::routes::Routes;
pub use self::routes::{Lookup, NotSent};
use self::scenes::Scenes;
pub use self::sessions::NotDelivered;
use self::sessions::Sessions;
pub use self::tell::TellError;
use super::admission::Admission;
use super::cluster_clock::ClusterClock;
use super::idle_gate::next_together;
use super::logic::LogicFactory;
use super::logins::Logins;
use super::player_store::PlayerStore;
use crate::clock;
use crate::scene::workers::{OneThread, Workers};
use crate::scene::{Scene, SessionId, Tick};

/// The directory of one process. Shared; lookups never wait for an actor.
#[derive(Debug)]
pub struct Directory {
    scenes: Scenes,
    routes: RwLock<Routes>,
    sessions: Sessions,
    names: Names,
    started: Instant,
    clock: Arc<ClusterClock>,
    process: u64,
    /// Whether the cluster can have no other process.
    is_alone: bool,
    fence: Option<Arc<dyn Fence>>,
    checkpoint_writer: Option<Arc<dyn CheckpointWriter>>,
    observer: Option<Arc<dyn Observer>>,
    /// How long players stay after their sessions end without a leave.
    grace_period: Duration,
    /// Keeps players' records.
    player_store: Option<Arc<dyn PlayerStore>>,
    /// Knows sessions by their subjects.
    logins: Option<Arc<dyn Logins>>,
    /// Who works on the ticks of regions.
    workers: Arc<dyn Workers>,
    /// Names this process, in this life, in messages for groups.
    sender: u64,
    /// Messages for groups so far. Regions take only later ones than they know, so a message is numbered and sent
    /// before the next one.
    messages: Mutex<u64>,
    /// Makes the game's logic.
    logic: Option<Arc<dyn LogicFactory>>,
    calls: Calls,
}

impl Directory {
    /// A directory of these scenes, whose ids are their places in the list.
    pub fn new(scenes: Vec<Arc<Scene>>) -> Directory {
        Directory {
            scenes: Scenes::new(scenes),
            routes: RwLock::default(),
            sessions: Sessions::default(),
            names: Names::alone(),
            started: clock::now(),
            clock: Arc::new(ClusterClock::new(Duration::ZERO)),
            process: 0,
            is_alone: true,
            fence: None,
            checkpoint_writer: None,
            observer: None,
            grace_period: Duration::ZERO,
            player_store: None,
            logins: None,
            workers: Arc::new(OneThread),
            sender: 0,
            messages: Mutex::new(0),
            logic: None,
            calls: Calls::default(),
        }
    }

    /// The directory of one process of many: names are unique among all of them, and the clock is the
    /// cluster's.
    pub fn of_process(scenes: Vec<Arc<Scene>>, process: Process) -> Directory {
        Directory {
            clock: Arc::new(ClusterClock::new(process.clock)),
            process: process.number,
            is_alone: false,
            // Two processes of one number, one after the other, begin at different times.
            sender: process.number << 42 | process.clock.as_millis() as u64 & ((1 << 42) - 1),
            fence: process.fence,
            checkpoint_writer: process.checkpoint_writer,
            sessions: Sessions::of_cluster(),
            names: Names::of_process(process.number, process.clock),
            calls: Calls::since(process.clock),
            ..Directory::new(scenes)
        }
    }

    /// The same with a grace period for players whose sessions end without a leave; zero: they
    /// leave at once.
    pub fn with_grace_period(self, grace_period: Duration) -> Directory {
        Directory { grace_period, ..self }
    }

    /// The same, of the only process that its cluster can have.
    pub fn alone(self) -> Directory {
        Directory { is_alone: true, ..self }
    }

    /// The same, whose layouts may have changed since they were configured: no session is told that its
    /// player is not found before [`Directory::maps_are_known`].
    pub fn with_maps_to_come(self) -> Directory {
        Directory { scenes: self.scenes.with_layouts_to_come(), ..self }
    }

    /// The same, in which players' records are kept.
    pub fn with_player_store(self, player_store: Arc<dyn PlayerStore>) -> Directory {
        Directory { player_store: Some(player_store), ..self }
    }

    /// The same with a registry of sessions by subject.
    pub fn with_logins(self, logins: Arc<dyn Logins>) -> Directory {
        Directory { logins: Some(logins), ..self }
    }

    /// The same, whose regions' ticks use the threads of `workers`.
    pub fn with_workers(self, workers: Arc<dyn Workers>) -> Directory {
        Directory { workers, ..self }
    }

    /// Who works on the ticks of regions.
    pub(in crate::actor) fn workers(&self) -> &Arc<dyn Workers> {
        &self.workers
    }

    /// The same, whose regions have the logic that the factory makes.
    pub fn with_logic(self, logic: Arc<dyn LogicFactory>) -> Directory {
        Directory { logic: Some(logic), ..self }
    }

    /// What makes the game's logic, if there is any.
    pub(in crate::actor) fn logic(&self) -> Option<&Arc<dyn LogicFactory>> {
        self.logic.as_ref()
    }

    /// What decides whether players may come, if anything does.
    pub(in crate::actor) fn admission(&self) -> Option<&dyn Admission> {
        self.logic.as_ref()?.admission()
    }

    /// The registry of sessions by subject, if there is one.
    pub fn logins(&self) -> Option<&Arc<dyn Logins>> {
        self.logins.as_ref()
    }

    /// The same with an observer of regions.
    pub fn with_observer(self, observer: Arc<dyn Observer>) -> Directory {
        Directory { observer: Some(observer), ..self }
    }

    /// The observer of regions, if there is one.
    pub(in crate::actor) fn observer(&self) -> Option<&Arc<dyn Observer>> {
        self.observer.as_ref()
    }

    /// Keeps players' records, if they are kept.
    pub(in crate::actor) fn player_store(&self) -> Option<&Arc<dyn PlayerStore>> {
        self.player_store.as_ref()
    }

    /// How long players stay after their sessions end without a leave, milliseconds.
    pub fn grace_period_ms(&self) -> u32 {
        u32::try_from(self.grace_period.as_millis()).unwrap_or(u32::MAX)
    }

    /// Whether the cluster can have no other process.
    pub fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// The process's number; 0 where there is no cluster.
    pub fn process(&self) -> u64 {
        self.process
    }

    /// The number of the process that gave a session its name.
    pub fn process_of(session: SessionId) -> u64 {
        session.process()
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

    /// Whether checkpoints of this process's regions are kept.
    pub fn keeps_checkpoints(&self) -> bool {
        self.checkpoint_writer.is_some()
    }

    /// Where checkpoints go, if there are any.
    pub(in crate::actor) fn checkpoint_writer(&self) -> Option<&Arc<dyn CheckpointWriter>> {
        self.checkpoint_writer.as_ref()
    }

    /// The server's clock: time since this process's start, or since the cluster's.
    pub fn uptime(&self) -> Duration {
        self.clock.now()
    }

    /// The clock itself, for the task that corrects it.
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

    /// When a session that looks at its deadlines every so often, and does now, is to look again: no
    /// later than that, and together with others of this process.
    pub fn next_refresh(&self, every: Duration) -> Instant {
        self.started + next_together(clock::since(self.started), every)
    }
}

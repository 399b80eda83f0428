//! What every actor of a process may look up: scenes, regions' addresses, lines with room, names
//! not yet used, and the time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use actix::Recipient;
use rustc_hash::FxHashMap;

use super::messages::ToRegion;
use crate::scene::lines::Lines;
use crate::scene::{EntityId, Plane, RegionId, Scene, SceneId, SessionId, Tick};

/// The directory of one process. Shared; lookups never wait for an actor.
#[derive(Debug)]
pub struct Directory {
    scenes: Vec<(Arc<Scene>, Mutex<Lines>)>,
    regions: OnceLock<FxHashMap<RegionId, Recipient<ToRegion>>>,
    started: Instant,
    entities: AtomicU64,
    sessions: AtomicU64,
    door_versions: AtomicU64,
}

impl Directory {
    /// A directory of these scenes, whose ids are their places in the list.
    pub fn new(scenes: Vec<Arc<Scene>>) -> Directory {
        let scenes = scenes
            .into_iter()
            .map(|s| {
                let lines = Mutex::new(Lines::new(s.spec.lines, s.spec.line_capacity));
                (s, lines)
            })
            .collect();
        Directory {
            scenes,
            regions: OnceLock::new(),
            started: Instant::now(),
            entities: AtomicU64::new(1),
            sessions: AtomicU64::new(1),
            door_versions: AtomicU64::new(1),
        }
    }

    /// Tells the regions' addresses, once; later calls change nothing.
    pub fn set_regions(&self, regions: FxHashMap<RegionId, Recipient<ToRegion>>) {
        if self.regions.set(regions).is_err() {
            tracing::error!("the regions' addresses were told twice");
        }
    }

    /// All scenes.
    pub fn scenes(&self) -> impl Iterator<Item = &Arc<Scene>> {
        self.scenes.iter().map(|(s, _)| s)
    }

    /// The scene with this id.
    pub fn scene(&self, id: SceneId) -> Option<&Arc<Scene>> {
        self.scenes.get(usize::from(id.0)).map(|(s, _)| s)
    }

    /// The scene with this name.
    pub fn scene_named(&self, name: &str) -> Option<&Arc<Scene>> {
        self.scenes().find(|s| s.spec.name == name)
    }

    /// The address of a region; `None` for a region that is not of this process, and until
    /// [`Directory::set_regions`].
    pub fn region(&self, id: RegionId) -> Option<&Recipient<ToRegion>> {
        self.regions.get()?.get(&id)
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

    /// Players in a plane of a scene.
    pub fn players(&self, scene: SceneId, plane: Plane) -> u32 {
        self.lines(scene).map_or(0, |lines| lines.players(plane))
    }

    /// A name for a new entity.
    pub fn new_entity(&self) -> EntityId {
        EntityId(self.entities.fetch_add(1, Ordering::Relaxed))
    }

    /// A name for a new session.
    pub fn new_session(&self) -> SessionId {
        SessionId(self.sessions.fetch_add(1, Ordering::Relaxed))
    }

    /// The version of a new order about a door: greater than that of every earlier one.
    pub(super) fn new_door_version(&self) -> u64 {
        self.door_versions.fetch_add(1, Ordering::Relaxed)
    }

    /// Time since this process's start: the server's clock.
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// The tick that is due now, where ticks are `tick_ms` long.
    pub fn tick_now(&self, tick_ms: u32) -> Tick {
        Tick((self.uptime().as_millis() / u128::from(tick_ms.max(1))) as u64)
    }

    /// When `tick` begins.
    pub fn begin_of(&self, tick: Tick, tick_ms: u32) -> Instant {
        self.started + Duration::from_millis(tick.0 * u64::from(tick_ms))
    }

    fn lines(&self, scene: SceneId) -> Option<MutexGuard<'_, Lines>> {
        let (_, lines) = self.scenes.get(usize::from(scene.0))?;
        Some(lines.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

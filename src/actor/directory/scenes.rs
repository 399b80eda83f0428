//! The scenes of a process with their present layouts, the places that players have in lines, and which
//! regions there are.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use super::Directory;
use crate::scene::lines::Lines;
use crate::scene::mutants::{self, Mutant};
use crate::scene::region::Atlas;
use crate::scene::{Plane, RegionId, Scene, SceneId};

/// A scene, and its lines.
type SceneEntry = (RwLock<Present>, Mutex<Lines>);

/// A scene with its present layout.
#[derive(Debug)]
struct Present {
    scene: Arc<Scene>,
    /// Regions of former layouts, which may still have players, as far as they are not given up.
    former: Vec<RegionId>,
}

/// All scenes of a process.
#[derive(Debug)]
pub(super) struct Scenes {
    /// By their ids.
    scenes: Vec<SceneEntry>,
    /// All regions by the layouts that count now, also regions that wait for an owner; `None`: not known yet.
    regions: RwLock<Option<Vec<RegionId>>>,
}

impl Scenes {
    pub(super) fn new(scenes: Vec<Arc<Scene>>) -> Scenes {
        let entry = |scene: Arc<Scene>| {
            let lines = Mutex::new(Lines::new(&scene.spec));
            (RwLock::new(Present { scene, former: Vec::new() }), lines)
        };
        let regions = RwLock::new(Some(Vec::new()));
        Scenes { scenes: scenes.into_iter().map(entry).collect(), regions }
    }

    /// The same, of which it is not known yet which regions there are.
    pub(super) fn with_layouts_to_come(self) -> Scenes {
        Scenes { regions: RwLock::default(), ..self }
    }

    fn all(&self) -> impl Iterator<Item = Arc<Scene>> {
        self.scenes.iter().map(|(scene, _)| present(scene))
    }

    fn lines(&self, scene: SceneId) -> Option<MutexGuard<'_, Lines>> {
        let (_, lines) = self.scenes.get(usize::from(scene.0))?;
        Some(lines.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The scene with its present layout.
fn present(scene: &RwLock<Present>) -> Arc<Scene> {
    scene.read().unwrap_or_else(PoisonError::into_inner).scene.clone()
}

impl Atlas for Directory {
    fn scene_named(&self, name: &str) -> Option<Arc<Scene>> {
        Directory::scene_named(self, name)
    }

    fn next_line(&self, scene: SceneId) -> Option<Plane> {
        self.scenes.lines(scene).map(|lines| lines.for_next())
    }
}

impl Directory {
    /// The layouts are the present ones, as [`Directory::set_scene`] and the routes have them, and these are
    /// all regions, some of which a layout change may have given up.
    pub fn maps_are_known(&self, regions: Vec<RegionId>) {
        let known = self.scenes.regions.read().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref() != Some(&regions) {
            drop(known);
            let mut known = self.scenes.regions.write().unwrap_or_else(PoisonError::into_inner);
            *known = Some(regions);
        }
    }

    /// Whether the present layouts are known.
    pub(in crate::actor) fn knows_maps(&self) -> bool {
        self.scenes.regions.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// All scenes, each with its present map.
    pub fn scenes(&self) -> impl Iterator<Item = Arc<Scene>> {
        self.scenes.all()
    }

    /// The scene with this id, with its present map.
    pub fn scene(&self, id: SceneId) -> Option<Arc<Scene>> {
        self.scenes.scenes.get(usize::from(id.0)).map(|(scene, _)| present(scene))
    }

    /// The scene with this name.
    pub fn scene_named(&self, name: &str) -> Option<Arc<Scene>> {
        self.scenes().find(|s| s.spec.name == name)
    }

    /// A scene has another layout from now on; an older version changes nothing.
    pub fn set_scene(&self, scene: Arc<Scene>) {
        let Some((known, _)) = self.scenes.scenes.get(usize::from(scene.id.0)) else { return };
        let routes = self.routes();
        let mut known = known.write().unwrap_or_else(PoisonError::into_inner);
        if known.scene.map.version < scene.map.version {
            let old = std::mem::replace(&mut known.scene, scene);
            known.former.extend(old.map.regions.iter().map(|region| region.id));
            let Present { scene, former } = &mut *known;
            former.retain(|id| scene.map.get(*id).is_none() && !routes.is_retired(*id));
            former.sort_unstable();
            former.dedup();
        }
    }

    /// The regions that may have players of a scene: those of its present layout, and those of former ones that are not
    /// given up yet.
    pub(super) fn regions_with_players(&self, id: SceneId) -> Option<Vec<RegionId>> {
        let (known, _) = self.scenes.scenes.get(usize::from(id.0))?;
        let routes = self.routes();
        let known = known.read().unwrap_or_else(PoisonError::into_inner);
        let is_told =
            |id: &RegionId| !routes.is_retired(*id) && !mutants::has(Mutant::FormerUntold);
        let former = known.former.iter().copied().filter(is_told);
        let present = known.scene.map.regions.iter().map(|region| region.id);
        Some(former.chain(present).collect())
    }

    /// All regions that can be reached now, or wait for an owner.
    pub(in crate::actor) fn known_regions(&self) -> Vec<RegionId> {
        let all = self.scenes.regions.read().unwrap_or_else(PoisonError::into_inner);
        let mut known: Vec<RegionId> = all.iter().flatten().copied().collect();
        drop(all);
        known.extend(self.routes().known());
        known.sort_unstable();
        known.dedup();
        known
    }

    /// Takes a place for a player in a scene; see [`Lines::take`]. Give it back with
    /// [`Directory::give_back_line`].
    pub fn take_line(&self, scene: SceneId, plane: Option<Plane>) -> Option<Plane> {
        self.scenes.lines(scene)?.take(plane)
    }

    /// Gives back a place that [`Directory::take_line`] gave.
    pub fn give_back_line(&self, scene: SceneId, plane: Plane) {
        if let Some(mut lines) = self.scenes.lines(scene) {
            lines.give_back(plane);
        }
    }

    /// Whether a plane is a line of too many: see [`Lines::is_closing`].
    pub(in crate::actor) fn is_closing(&self, scene: SceneId, plane: Plane) -> bool {
        self.scenes.lines(scene).is_some_and(|lines| lines.is_closing(plane))
    }

    /// The open lines of a scene and those with players, of `most` at most: each with its players in
    /// the whole cluster, as far as it is known here.
    pub fn open_lines(&self, scene: SceneId, most: usize) -> Vec<(Plane, u32)> {
        self.scenes.lines(scene).map(|lines| lines.open(most)).unwrap_or_default()
    }

    /// The places that were given in this process: by scene and plane, how many have one.
    pub fn lines_here(&self) -> Vec<(SceneId, Plane, u32)> {
        let of = |scene: Arc<Scene>| {
            let here = self.scenes.lines(scene.id).map(|lines| lines.here().collect::<Vec<_>>());
            here.unwrap_or_default().into_iter().map(move |(plane, n)| (scene.id, plane, n))
        };
        let mut all: Vec<_> = self.scenes().flat_map(of).collect();
        all.sort_unstable();
        all
    }

    /// Sets how many players have places in each plane that other processes gave; other planes have none.
    pub fn set_lines_elsewhere(&self, taken: impl Iterator<Item = (SceneId, Plane, u32)> + Clone) {
        for scene in self.scenes() {
            if let Some(mut lines) = self.scenes.lines(scene.id) {
                let of_scene = taken.clone().filter(|(id, ..)| *id == scene.id);
                lines.set_elsewhere(of_scene.map(|(_, plane, players)| (plane, players)));
            }
        }
    }

    /// Players in a plane of a scene, as far as is known: players that joined through other
    /// processes are known a second later.
    pub fn players(&self, scene: SceneId, plane: Plane) -> u32 {
        self.scenes.lines(scene).map_or(0, |lines| lines.players(plane))
    }
}

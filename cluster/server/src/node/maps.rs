//! The scenes as this process knows them, each with its present map, and whatever regions there are: also
//! those that are about to be made, and those that were given up and have not ended yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use purview::scene::layout::{Layout, PlaneGroup};
use purview::scene::{RegionId, Scene};

use crate::storage::RegionKey;

#[derive(Debug)]
struct Known {
    scenes: Vec<Arc<Scene>>,
    /// Of each region its scene's place in the list, and its planes.
    regions: BTreeMap<RegionId, (usize, PlaneGroup)>,
}

/// Regions by their ids. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Maps(Arc<RwLock<Known>>);

impl Maps {
    /// The scenes of a configuration, in order.
    pub(super) fn new(scenes: &[Arc<Scene>]) -> Maps {
        let mut known = Known { scenes: Vec::new(), regions: BTreeMap::new() };
        for (at, scene) in scenes.iter().enumerate() {
            known.scenes.push(scene.clone());
            known.add(at, &scene.map.layout());
        }
        Maps(Arc::new(RwLock::new(known)))
    }

    pub fn scenes(&self) -> Vec<Arc<Scene>> {
        self.0.read().scenes.clone()
    }

    pub fn named(&self, name: &str) -> Option<Arc<Scene>> {
        self.0.read().scenes.iter().find(|scene| scene.spec.name == name).cloned()
    }

    pub fn scene_of(&self, id: RegionId) -> Option<Arc<Scene>> {
        let known = self.0.read();
        let (at, _) = known.regions.get(&id)?;
        known.scenes.get(*at).cloned()
    }

    /// What a region is called in the store.
    pub fn key(&self, id: RegionId) -> Option<RegionKey> {
        let known = self.0.read();
        let (at, group) = known.regions.get(&id)?;
        let scene = known.scenes.get(*at)?.spec.name.clone();
        Some(RegionKey { scene, region: id.0, planes: group.0 })
    }

    /// Whether a region of the store is one of these.
    pub fn knows(&self, key: &RegionKey) -> bool {
        self.key(RegionId(key.region)).is_some_and(|known| known == *key)
    }

    pub fn ids(&self) -> Vec<RegionId> {
        self.0.read().regions.keys().copied().collect()
    }

    /// Every region: what it is called in the store, and whether it has ground by the present map.
    pub(super) fn all(&self) -> Vec<(RegionId, RegionKey, bool)> {
        let known = self.0.read();
        let region = |(id, (at, group)): (&RegionId, &(usize, PlaneGroup))| {
            let scene = known.scenes.get(*at)?;
            let name = scene.spec.name.clone();
            let key = RegionKey { scene: name, region: id.0, planes: group.0 };
            Some((*id, key, scene.map.get(*id).is_some()))
        };
        known.regions.iter().filter_map(region).collect()
    }

    /// Whether a region has ground by the present map.
    pub fn is_present(&self, id: RegionId) -> bool {
        self.scene_of(id).is_some_and(|scene| scene.map.get(id).is_some())
    }

    /// Regions that have ground, of all scenes.
    pub fn present(&self) -> usize {
        self.0.read().scenes.iter().map(|scene| scene.map.regions.len()).sum()
    }

    pub(super) fn set(&self, scene: Arc<Scene>) {
        let mut known = self.0.write();
        let at = known.scenes.iter().position(|old| old.id == scene.id);
        if let Some(at) = at {
            known.add(at, &scene.map.layout());
            known.scenes[at] = scene;
        }
    }

    /// Regions of a map that may come to be are about to be made.
    pub(super) fn expect(&self, scene: &Scene, layout: &Layout) {
        let mut known = self.0.write();
        if let Some(at) = known.scenes.iter().position(|old| old.id == scene.id) {
            known.add(at, layout);
        }
    }

    /// Regions that were given up and have not ended are there still.
    pub(super) fn expect_retiring(&self, scene: &Scene, retiring: &BTreeMap<u32, PlaneGroup>) {
        let mut known = self.0.write();
        if let Some(at) = known.scenes.iter().position(|old| old.id == scene.id) {
            for (id, group) in retiring {
                known.regions.entry(RegionId(*id)).or_insert((at, *group));
            }
        }
    }

    pub(super) fn forget(&self, id: RegionId) {
        self.0.write().regions.remove(&id);
    }
}

impl Known {
    fn add(&mut self, at: usize, layout: &Layout) {
        self.regions.extend(layout.plots.iter().map(|plot| (plot.id, (at, plot.group))));
    }
}

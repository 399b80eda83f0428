//! Which region this is, under which epoch, and which ground of which scene it owns.
//!
//! Every rule of the region reads it. Only a restore and a layout change write it.

use std::sync::Arc;

use crate::scene::layout::RegionEntry;
use crate::scene::messages::Handoff;
use crate::scene::{Epoch, Plane, Pos, Rect, RegionId, Scene};

/// The region's name, epochs and ground.
#[derive(Debug)]
pub struct Identity {
    id: RegionId,
    epoch: Epoch,
    /// Since this region epoch nothing of the region was lost.
    lineage: Epoch,
    rect: Rect,
    scene: Arc<Scene>,
}

impl Identity {
    /// The region of a layout's entry.
    pub fn new(scene: Arc<Scene>, entry: &RegionEntry) -> Identity {
        let RegionEntry { id, rect, epoch, .. } = *entry;
        Identity { id, epoch, lineage: epoch, rect, scene }
    }

    /// The region.
    #[inline]
    pub fn id(&self) -> RegionId {
        self.id
    }

    /// The region's epoch.
    #[inline]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Since this region epoch nothing of the region was lost.
    #[inline]
    pub fn lineage(&self) -> Epoch {
        self.lineage
    }

    /// The ground that the region owns.
    #[inline]
    pub fn rect(&self) -> Rect {
        self.rect
    }

    /// The scene, with the layout that counts here.
    #[inline]
    pub fn scene(&self) -> &Scene {
        &self.scene
    }

    /// The region acts under other epochs from now on.
    pub fn set_epochs(&mut self, epoch: Epoch, lineage: Epoch) {
        (self.epoch, self.lineage) = (epoch, lineage);
    }

    /// The region's ground by the scene's next layout. Gives the scene back with the layout before.
    pub fn take_layout(&mut self, scene: Arc<Scene>) -> Arc<Scene> {
        let nowhere = Rect { x0: 0, z0: 0, x1: 0, z1: 0 };
        self.rect = scene.map.get(self.id).map_or(nowhere, |entry| entry.rect);
        std::mem::replace(&mut self.scene, scene)
    }

    /// The region that a place of this scene belongs to. In limbo every place belongs to this region.
    pub fn owner_of(&self, plane: Plane, pos: Pos) -> RegionId {
        let owner = self.scene.map.at(plane, pos).filter(|_| plane != Plane::LIMBO);
        owner.map_or(self.id, |entry| entry.id)
    }

    /// Whether entities on this plane live in regions of this one's plane group.
    pub fn hosts(&self, plane: Plane) -> bool {
        let entry = self.scene.map.get(self.id).filter(|_| plane != Plane::LIMBO);
        entry.is_none_or(|entry| entry.group == self.scene.map.group_of(plane))
    }

    /// Whether a handoff comes from a region of this scene.
    pub fn is_of_this_scene(&self, handoff: &Handoff) -> bool {
        let known = || self.scene.map.get(handoff.from).is_some();
        handoff.scene.map_or_else(known, |scene| scene == self.scene.id)
    }
}

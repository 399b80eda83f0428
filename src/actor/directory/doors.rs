//! Opening and closing doors of a running scene: every region of it is told, and all of them switch
//! with the same tick.

use std::sync::Arc;

use futures::future::join_all;

use super::Directory;
use crate::actor::address::ToRegion;
use crate::scene::messages::{Input, SceneChange, SceneOrder};
use crate::scene::terrain::{DoorChange, DoorError, Terrain};
use crate::scene::{Plane, RegionId, Scene, SceneId, Tick};

/// Ticks between an order that names no tick and the tick with which it takes effect: time for
/// every region to receive it.
pub const LEAD_TICKS: u64 = 2;

/// Why doors were not switched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DoorOrderError {
    /// No scene has the number. No region was told.
    #[error("there is no scene {0}")]
    NoScene(SceneId),
    /// The scene's map has no such door. No region was told.
    #[error(transparent)]
    Door(#[from] DoorError),
    /// Where a region of the scene is, is not known now. No region was told.
    #[error("region {0} cannot be told: its address is not known here")]
    NoAddress(RegionId),
    /// Regions have ended. The others were told.
    #[error("regions {0:?} have ended; the others were told")]
    Ended(Vec<RegionId>),
}

impl Directory {
    /// Opens (free) or closes (blocked) a door of a scene in one plane, with the beginning of tick
    /// `at`, or as soon as every region can have received it. Resolves when every region has, which
    /// takes longer where a mailbox is full; a region that receives it after its tick switches with
    /// its next one. Of two orders for a door the one that was given later counts, whichever
    /// arrives first.
    ///
    /// An entity on a tile that is closed stays there; game logic decides what becomes of it.
    ///
    /// # Errors
    /// [`DoorOrderError`], which says whether any region was told.
    pub async fn set_door(
        &self,
        scene: SceneId,
        plane: Plane,
        door: &str,
        open: bool,
        at: Option<Tick>,
    ) -> Result<Tick, DoorOrderError> {
        let (scene, terrain) = self.scene_with_map(scene)?;
        let door = terrain.door_named(door).map_err(DoorError::from)?;
        self.order_door(&scene, plane, DoorChange::Set { door, open }, at).await
    }

    /// Puts a plane back to how the map and the configuration have it, its doors and what it contains, and frees
    /// what it took: for an instance that has ended. As [`Directory::set_door`] otherwise.
    ///
    /// # Errors
    /// As [`Directory::set_door`], except that the scene needs no map.
    pub async fn reset_plane(
        &self,
        scene: SceneId,
        plane: Plane,
        at: Option<Tick>,
    ) -> Result<Tick, DoorOrderError> {
        let scene = self.scene(scene).ok_or(DoorOrderError::NoScene(scene))?;
        self.order_door(&scene, plane, DoorChange::Reset, at).await
    }

    fn scene_with_map(&self, scene: SceneId) -> Result<(Arc<Scene>, Arc<Terrain>), DoorOrderError> {
        let scene = self.scene(scene).ok_or(DoorOrderError::NoScene(scene))?;
        let terrain = scene.terrain.clone().ok_or(DoorError::NoTerrain)?;
        Ok((scene, terrain))
    }

    /// An order for a scene, and the regions that are to be told.
    pub(in crate::actor) fn scene_order(
        &self,
        scene: SceneId,
        change: SceneChange,
    ) -> Result<(SceneOrder, Vec<RegionId>), DoorOrderError> {
        let scene = match change {
            SceneChange::Doors(_, DoorChange::Set { .. }) => self.scene_with_map(scene)?.0,
            SceneChange::Doors(_, DoorChange::Reset) | SceneChange::Relation(..) => {
                self.scene(scene).ok_or(DoorOrderError::NoScene(scene))?
            }
        };
        let at = Tick(self.tick_now(scene.tick_ms).0 + LEAD_TICKS);
        let order = SceneOrder::new(change, at, self.new_door_version());
        Ok((order, scene.map.regions.iter().map(|region| region.id).collect()))
    }

    async fn order_door(
        &self,
        scene: &Scene,
        plane: Plane,
        change: DoorChange,
        at: Option<Tick>,
    ) -> Result<Tick, DoorOrderError> {
        if plane == Plane::LIMBO {
            return Err(DoorError::Limbo.into());
        }
        let mut regions = Vec::with_capacity(scene.map.regions.len());
        for entry in &scene.map.regions {
            let address = self.region(entry.id).ok_or(DoorOrderError::NoAddress(entry.id))?;
            regions.push((entry.id, address));
        }
        let at = at.unwrap_or_else(|| Tick(self.tick_now(scene.tick_ms).0 + LEAD_TICKS));
        let change = SceneChange::Doors(plane, change);
        let order = SceneOrder::new(change, at, self.new_door_version());
        let told = regions.into_iter().map(|(id, address)| async move {
            let message = ToRegion { input: Input::Scene(order), client: None };
            (id, address.send(message).await)
        });
        let told = join_all(told).await;
        let ended: Vec<_> = told.iter().filter(|(_, sent)| !sent).map(|(id, _)| *id).collect();
        if ended.is_empty() { Ok(at) } else { Err(DoorOrderError::Ended(ended)) }
    }
}

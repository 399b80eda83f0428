//! The worlds of many scenes, by ids that the caller chooses.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Event, Position, Request, RequestError, Rules, RulesError, World};
use crate::scene::workers::Workers;

/// A change of the worlds of many scenes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SceneRequest {
    /// Creates a scene without entities.
    Create {
        /// Chosen by the caller.
        scene: u64,
        /// Its rules.
        rules: Rules,
    },
    /// Deletes a scene with all its entities. Its id may be used again at once.
    Delete(u64),
    /// Changes the world of a scene.
    In {
        /// The scene.
        scene: u64,
        /// The change.
        request: Request,
    },
}

/// Why a request changed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SceneError {
    /// No scene has this id.
    #[error("no scene has the id {0}")]
    Unknown(u64),
    /// A scene with this id exists.
    #[error("a scene with the id {0} exists")]
    Duplicate(u64),
    /// The rules are not legal.
    #[error("scene {scene}: {why}")]
    Rules {
        /// The scene.
        scene: u64,
        /// What is wrong with them.
        why: RulesError,
    },
    /// The world refuses the request.
    #[error("scene {scene}: {why}")]
    Request {
        /// The scene.
        scene: u64,
        /// Why.
        why: RequestError,
    },
}

/// What happened to a scene in a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SceneEvents<'a> {
    /// The scene.
    pub scene: u64,
    /// A scene of this id was deleted: all its pairs are gone. Events are those of its successor.
    pub deleted: bool,
    /// The events of its world, in order.
    pub events: &'a [Event],
    /// Where subjects are, if its rules ask for it: see [`World::positions`].
    pub positions: &'a [Position],
}

#[derive(Debug, Clone, Default)]
struct Scene {
    /// `None` if the scene is deleted and has no successor.
    world: Option<World>,
    deleted: bool,
}

/// The worlds of many scenes.
#[derive(Debug, Clone)]
pub struct Worlds {
    scenes: BTreeMap<u64, Scene>,
    workers: Arc<dyn Workers>,
}

impl Worlds {
    /// No scenes. The end of a tick uses these threads.
    pub fn new(workers: Arc<dyn Workers>) -> Worlds {
        Worlds { scenes: BTreeMap::new(), workers }
    }

    /// The world of a scene.
    pub fn get(&self, scene: u64) -> Option<&World> {
        self.scenes.get(&scene)?.world.as_ref()
    }

    /// The world of a scene, to change.
    pub fn get_mut(&mut self, scene: u64) -> Option<&mut World> {
        self.scenes.get_mut(&scene)?.world.as_mut()
    }

    /// Applies all requests in order. Returns the refused ones: their place in the batch, and why.
    /// The others are not affected.
    pub fn request_all<'a>(
        &mut self,
        requests: impl IntoIterator<Item = &'a SceneRequest>,
    ) -> Vec<(usize, SceneError)> {
        let items = requests.into_iter().enumerate();
        items.filter_map(|(item, request)| Some((item, self.request(request).err()?))).collect()
    }

    /// Applies a request.
    ///
    /// # Errors
    /// Why it is refused. Nothing is changed then.
    pub fn request(&mut self, request: &SceneRequest) -> Result<(), SceneError> {
        match request {
            SceneRequest::Create { scene, rules } => self.create(*scene, rules.clone()),
            SceneRequest::Delete(scene) => self.delete(*scene),
            SceneRequest::In { scene, request } => {
                let world = self.get_mut(*scene).ok_or(SceneError::Unknown(*scene))?;
                let refused = |why| SceneError::Request { scene: *scene, why };
                world.request(request).map_err(refused)
            }
        }
    }

    /// Creates a scene without entities.
    ///
    /// # Errors
    /// The id is in use, or the rules are not legal.
    pub fn create(&mut self, scene: u64, rules: Rules) -> Result<(), SceneError> {
        if self.get(scene).is_some() {
            return Err(SceneError::Duplicate(scene));
        }
        let mut world = World::new(rules).map_err(|why| SceneError::Rules { scene, why })?;
        world.set_workers(Arc::clone(&self.workers));
        self.scenes.entry(scene).or_default().world = Some(world);
        Ok(())
    }

    /// Deletes a scene with all its entities.
    ///
    /// # Errors
    /// The id is unknown.
    pub fn delete(&mut self, scene: u64) -> Result<(), SceneError> {
        let it = self.scenes.get_mut(&scene).filter(|it| it.world.is_some());
        let it = it.ok_or(SceneError::Unknown(scene))?;
        *it = Scene { world: None, deleted: true };
        Ok(())
    }

    /// Ends the tick of all scenes. Calls `tell` once for each scene that was deleted, has events or
    /// positions, in ascending order of ids. A scene that was created and deleted since the last tick is told
    /// as deleted.
    pub fn tick(&mut self, mut tell: impl FnMut(SceneEvents)) {
        for (scene, it) in &mut self.scenes {
            let deleted = std::mem::take(&mut it.deleted);
            if let Some(world) = &mut it.world {
                world.tick();
            }
            let world = it.world.as_ref();
            let events = world.map_or(&[][..], World::events);
            let positions = world.map_or(&[][..], World::positions);
            if deleted || !events.is_empty() || !positions.is_empty() {
                tell(SceneEvents { scene: *scene, deleted, events, positions });
            }
        }
        self.scenes.retain(|_, it| it.world.is_some());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interest::{Entity, Mode, Reach, Sight};
    use crate::scene::workers::OneThread;
    use crate::scene::{Pos, Rect};

    const GROUND: Rect = Rect { x0: 0, z0: 0, x1: 1_000, z1: 1_000 };

    fn create(scene: u64) -> SceneRequest {
        SceneRequest::Create { scene, rules: Rules::new(GROUND, Mode::All, Reach::All) }
    }

    fn enter(scene: u64, id: u64) -> SceneRequest {
        let (pos, sight) = (Pos::ground(5, 5), Sight::default());
        let request = Request::Create(Entity { id, kind: 0, plane: 0, pos, sight });
        SceneRequest::In { scene, request }
    }

    fn tick(worlds: &mut Worlds) -> Vec<(u64, bool, usize)> {
        let mut told = Vec::new();
        worlds.tick(|it| told.push((it.scene, it.deleted, it.events.len())));
        told
    }

    #[test]
    fn scenes_come_and_go_within_a_batch() {
        let mut worlds = Worlds::new(Arc::new(OneThread));
        let batch = [
            create(3),
            enter(3, 1),
            enter(3, 2),
            create(2),
            enter(2, 1),
            SceneRequest::Delete(2),
            enter(2, 1),
            create(3),
            SceneRequest::Delete(2),
        ];
        let refused = [
            (6, SceneError::Unknown(2)),
            (7, SceneError::Duplicate(3)),
            (8, SceneError::Unknown(2)),
        ];
        assert_eq!(worlds.request_all(&batch), refused);
        assert_eq!(tick(&mut worlds), [(2, true, 0), (3, false, 2)]);
        let again = [SceneRequest::Delete(3), create(3), enter(3, 1), enter(3, 2), enter(3, 1)];
        let why = RequestError::Duplicate(1);
        assert_eq!(worlds.request_all(&again), [(4, SceneError::Request { scene: 3, why })]);
        assert_eq!(tick(&mut worlds), [(3, true, 2)]);
        assert_eq!(tick(&mut worlds), []);
        assert!(worlds.get(2).is_none());
    }
}

//! Beasts and things for `purview dev`: entities that no client steers, moved by server logic as a
//! game would move its own.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use purview::actor::directory::Directory;
use purview::actor::messages::ToRegion;
use purview::scene::effects::{Input, Motion, Order, Spawn};
use purview::scene::movement::Vector;
use purview::scene::{EntityId, Kind, Plane, Pos, Scene};

use crate::bench::crowd::Crowd;
use crate::rng::Rng;

/// How many of each kind, per scene.
const OF_EACH_KIND: usize = 12;

/// Centimetres that one walks in a step of 100 ms.
const STEP_CM: f64 = 15.0;

/// The entities of one scene.
#[derive(Debug)]
pub struct Fauna {
    scene: Arc<Scene>,
    beasts: Vec<EntityId>,
    crowd: Crowd,
    /// How each walks, as it was told last: east and south, millimetres per second.
    ways: Vec<(i32, i32)>,
}

impl Fauna {
    /// Puts some of each kind into every scene and walks them until the task is dropped.
    pub async fn roam(directory: Arc<Directory>) {
        let scenes: Vec<_> = directory.scenes().collect();
        let mut all: Vec<Fauna> =
            scenes.into_iter().map(|scene| Fauna::appear(&directory, scene)).collect();
        let mut clock = tokio::time::interval(Duration::from_millis(100));
        loop {
            clock.tick().await;
            for fauna in &mut all {
                fauna.step(&directory);
            }
        }
    }

    fn appear(directory: &Directory, scene: Arc<Scene>) -> Fauna {
        let side_cm = f64::from(scene.spec.width_cm.min(scene.spec.depth_cm));
        let kinds = scene.spec.kinds.len().saturating_sub(1);
        let crowd = Crowd::new(kinds * OF_EACH_KIND, side_cm, STEP_CM, 7);
        let mut rng = Rng::new(7);
        let mut beasts = Vec::new();
        for i in 0..kinds * OF_EACH_KIND {
            let id = directory.new_entity();
            // Things that do not walk lie about the whole map.
            let pos = if walks(i) { crowd.pos(i) } else { somewhere(&scene, &mut rng) };
            let spawn = Spawn {
                id,
                kind: Kind(1 + (i / OF_EACH_KIND) as u8),
                plane: Plane(0),
                pos,
                range: scene.spec.default_range,
                look: Bytes::new(),
                session: None,
                bonds: Vec::new(),
            };
            tell(directory, &scene, pos, Input::Enter(Box::new(spawn)));
            beasts.push(id);
        }
        let ways = vec![(0, 0); beasts.len()];
        Fauna { scene, beasts, crowd, ways }
    }

    fn step(&mut self, directory: &Directory) {
        self.crowd.step();
        if let Some(scene) = directory.scene(self.scene.id) {
            self.scene = scene;
        }
        for (i, id) in self.beasts.iter().enumerate().filter(|(i, _)| walks(*i)) {
            let pos = self.crowd.pos(i);
            let (id, way) = (*id, self.crowd.way_mm_s(i));
            let turns = std::mem::replace(&mut self.ways[i], way) != way;
            if self.scene.judged.is_none() || turns {
                // Rounded on its walk it would stray from its crowd's account in the long run.
                let order = Order::Move(pos);
                tell(directory, &self.scene, pos, Input::Logic { id, order });
            }
            if self.scene.judged.is_some() && turns {
                let (vx_mm_s, vz_mm_s) = way;
                let walk = Vector { start: pos, vx_mm_s, vz_mm_s, lasts_ms: None };
                let motion = Motion::Walk(walk.into());
                tell(directory, &self.scene, pos, Input::Motion { id, motion });
            }
        }
    }
}

/// Of the kinds of the default scene npc and monster walk, mechanism and drop do not.
fn walks(i: usize) -> bool {
    i / OF_EACH_KIND < 2
}

fn somewhere(scene: &Scene, rng: &mut Rng) -> Pos {
    let along = |side: i32, share: f64| (f64::from(side) * share) as i32;
    Pos::ground(along(scene.spec.width_cm, rng.unit()), along(scene.spec.depth_cm, rng.unit()))
}

/// Tells the region at `pos`, where the entity lives or of which it is a ghost: the region follows
/// it. A step that a busy region does not take is made good by the next one.
fn tell(directory: &Directory, scene: &Scene, pos: Pos, input: Input) {
    let region = scene.map.at(Plane(0), pos).and_then(|entry| directory.region(entry.id));
    if region.is_some_and(|r| r.try_send(ToRegion { input, client: None }).is_err()) {
        tracing::debug!("a region is too busy for its fauna");
    }
}

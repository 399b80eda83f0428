//! Beasts and things for `purview dev`: entities that no client steers, moved by server logic as a
//! game would move its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use purview::actor::directory::Directory;
use purview::actor::messages::{Inspect, ToRegion};
use purview::actor::region::RegionRef;
use purview::scene::effects::{Input, Motion, Order, Spawn};
use purview::scene::movement::Vector;
use purview::scene::{EntityId, Kind, Plane, Pos, Scene, SceneId};

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
    /// Sees to it that there are some of each kind in every scene, those first that are there already, and walks
    /// them until the task is dropped.
    pub async fn roam(directory: Arc<Directory>, regions: Vec<RegionRef>) {
        let scenes: Vec<_> = directory.scenes().collect();
        let mut there = residents(&directory, &regions).await;
        let mut all: Vec<Fauna> =
            scenes.into_iter().map(|scene| Fauna::appear(&directory, scene, &mut there)).collect();
        let mut clock = tokio::time::interval(Duration::from_millis(100));
        loop {
            clock.tick().await;
            for fauna in &mut all {
                fauna.step(&directory);
            }
        }
    }

    fn appear(directory: &Directory, scene: Arc<Scene>, there: &mut Residents) -> Fauna {
        let side_cm = f64::from(scene.spec.width_cm.min(scene.spec.depth_cm));
        let kinds = scene.spec.kinds.len().saturating_sub(1);
        let mut crowd = Crowd::new(kinds * OF_EACH_KIND, side_cm, STEP_CM, 7);
        let mut rng = Rng::new(7);
        let mut beasts = Vec::new();
        for i in 0..kinds * OF_EACH_KIND {
            let kind = Kind(1 + (i / OF_EACH_KIND) as u8);
            // Things that do not walk lie about the whole map.
            let place = (!walks(i)).then(|| somewhere(&scene, &mut rng));
            if let Some((id, pos)) = there.get_mut(&(scene.id, kind)).and_then(BTreeMap::pop_first)
            {
                crowd.put(i, pos);
                beasts.push(id);
                continue;
            }
            let id = directory.new_entity();
            let pos = place.unwrap_or_else(|| crowd.pos(i));
            let spawn = Spawn {
                id,
                kind,
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

/// Entities that no client steers and where they are, by scene and kind, in the order of their ids.
type Residents = BTreeMap<(SceneId, Kind), BTreeMap<EntityId, Pos>>;

/// Those that live in regions, once all of these have begun: one that goes on from a checkpoint has to hear first
/// what others know better.
async fn residents(directory: &Directory, regions: &[RegionRef]) -> Residents {
    let mut all = Residents::new();
    for region in regions {
        let tick_ms = directory.scene(region.scene).map_or(100, |scene| scene.tick_ms);
        let now = directory.tick_now(tick_ms);
        let snapshot = loop {
            match region.addr.send(Inspect { plane: None }).await {
                Ok(snapshot) if snapshot.tick >= now => break snapshot,
                Ok(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                // The server ends.
                Err(_) => return all,
            }
        };
        for entity in snapshot.entities.iter().filter(|e| !e.ghost && e.kind != Kind::PLAYER) {
            all.entry((region.scene, entity.kind)).or_default().insert(entity.id, entity.pos);
        }
    }
    all
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

//! Demo NPCs, to try a server out: entities without a client, moved by server logic as a game moves its own.
//!
//! The position of an NPC is a function of its id and the server's clock. So each process moves the NPCs in its own
//! regions, whichever process spawned them. During a handoff two processes may move the same NPC; they send the same
//! commands. After a restart the NPCs go on as if there had been none.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use purview::actor::directory::{CallError, Directory};
use purview::actor::messages::ToRegion;
use purview::scene::messages::{Command, Input, Motion, Order, Spawn};
use purview::scene::movement::Vector;
use purview::scene::{EntityId, Kind, Plane, Pos, RegionId, Scene, SceneId};
use purview_server::node::hosted::Hosted;
use purview_server::node::inspect;
use purview_server::node::population::Population;

use crate::hunt::is_hunt;
use crate::rng::Rng;

/// The number of NPCs of each kind, per scene.
const OF_EACH_KIND: usize = 12;

/// The kinds that walk. Of the kinds of the default scene npc and monster walk, mechanism and drop do not.
const WALKERS: std::ops::RangeInclusive<u8> = 1..=2;

/// The speed of a walking NPC, millimetres per second.
const PACE_MM_S: f64 = 1_500.0;

/// Time between two steps.
const STEP: Duration = Duration::from_millis(100);

/// The number of steps between two surveys of the local regions.
const STEPS_PER_LOOK: u32 = 5;

/// How far from the edge of the map an NPC turns back, millimetres.
const EDGE_MM: i64 = 10;

/// The NPCs by scene and kind.
type NpcsByKind = BTreeMap<(SceneId, Kind), Vec<EntityId>>;

/// The movement of an NPC: straight on, and back at the edge of the map, for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Walk {
    from_mm: [i64; 2],
    way_mm_s: [i64; 2],
    side_mm: [i64; 2],
}

impl Walk {
    fn of(scene: &Scene, id: EntityId) -> Walk {
        let mut rng = Rng::new(id.0);
        let mut along = |side_cm: i32| {
            let side = (i64::from(side_cm) * 10 - EDGE_MM).max(1);
            ((side as f64 * rng.unit()) as i64, side)
        };
        let ((x, width), (z, depth)) = (along(scene.spec.width_cm), along(scene.spec.depth_cm));
        let angle = rng.unit() * std::f64::consts::TAU;
        let way = [angle.cos(), angle.sin()].map(|part| (part * PACE_MM_S) as i64);
        Walk { from_mm: [x, z], way_mm_s: way, side_mm: [width, depth] }
    }

    /// The position at a time, and the velocity there: east and south, millimetres per second.
    fn at(&self, ms: u64) -> (Pos, [i32; 2]) {
        let mut place = [(0, 0); 2];
        for (i, place) in place.iter_mut().enumerate() {
            let (side, way) = (self.side_mm[i], self.way_mm_s[i]);
            let straight = i128::from(self.from_mm[i]) + i128::from(way) * i128::from(ms) / 1_000;
            let round = straight.rem_euclid(i128::from(side) * 2) as i64;
            *place = if round < side { (round, way) } else { (2 * side - round, -way) };
        }
        let pos = Pos::ground((place[0].0 / 10) as i32, (place[1].0 / 10) as i32);
        (pos, place.map(|(_, way)| way as i32))
    }
}

/// Spawns the NPCs of each kind and scene.
async fn appear(directory: &Directory) {
    // A game has entities of its own.
    for scene in directory.scenes().filter(|scene| !is_hunt(&scene.spec)) {
        for kind in (1..scene.spec.kinds.len() as u8).map(Kind) {
            for _ in 0..OF_EACH_KIND {
                let Some(id) = directory.new_entity() else { return };
                // Entities that do not walk lie anywhere on the map.
                let (pos, _) = Walk::of(&scene, id).at(now_ms(directory));
                let sight = scene.spec.range.into();
                let spawn = Spawn { sight, ..Spawn::new(id, kind, pos) };
                while !add(directory, &scene, pos, spawn.clone()) {
                    tokio::time::sleep(STEP).await;
                }
            }
        }
    }
}

/// The demo NPCs of a process.
#[derive(Debug, Clone, Copy)]
pub struct DemoNpcs;

impl Population for DemoNpcs {
    fn create(&self, directory: Arc<Directory>) -> BoxFuture<'static, ()> {
        Box::pin(async move { appear(&directory).await })
    }

    fn drive(&self, directory: Arc<Directory>, regions: Hosted) -> BoxFuture<'static, ()> {
        Box::pin(herd(directory, regions))
    }
}

/// Moves the NPCs in the regions of this process, until the task is dropped.
async fn herd(directory: Arc<Directory>, hosted: Hosted) {
    let mut walkers = Walkers::new();
    let mut answers = FuturesUnordered::new();
    let mut clock = tokio::time::interval(STEP);
    clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut steps = 0_u32;
    loop {
        tokio::select! {
            _ = clock.tick() => {
                if steps.is_multiple_of(STEPS_PER_LOOK) {
                    look(&directory, &hosted, &mut walkers).await;
                }
                steps = steps.wrapping_add(1);
                let now = now_ms(&directory);
                let due = walkers.iter_mut().filter_map(|(id, walker)| walker.step(*id, now));
                answers.extend(due.map(|step| step.take(&directory)));
            }
            Some((id, answer)) = answers.next() => {
                if let (Err(why), Some(walker)) = (answer, walkers.get_mut(&id)) {
                    tracing::debug!(entity = %id, %why, "a demo NPC could not walk, and is told again");
                    walker.told = [0, 0];
                }
            }
        }
    }
}

type Walkers = BTreeMap<EntityId, Walker>;

/// Finds the NPCs that live in this process now.
async fn look(directory: &Directory, hosted: &Hosted, walkers: &mut Walkers) {
    let survey = inspect::ask(hosted.now().iter(), None).await;
    let all = npcs(&survey);
    let walking = all.into_iter().filter(|((_, kind), _)| WALKERS.contains(&kind.0));
    let mut before = std::mem::take(walkers);
    for (scene, id) in walking.flat_map(|((s, _), ids)| ids.into_iter().map(move |id| (s, id))) {
        let scene = directory.scene(scene).filter(|scene| !is_hunt(&scene.spec));
        let Some(scene) = scene else { continue };
        let known = before.remove(&id).map_or([0, 0], |known| known.told);
        walkers.insert(id, Walker { walk: Walk::of(&scene, id), scene, told: known });
    }
}

/// An NPC that walks.
#[derive(Debug)]
struct Walker {
    scene: Arc<Scene>,
    walk: Walk,
    /// The last move command.
    told: [i32; 2],
}

impl Walker {
    /// What the NPC is told now, if it is on the map.
    fn step(&mut self, id: EntityId, now_ms: u64) -> Option<Step> {
        let (pos, way) = self.walk.at(now_ms);
        let judged = self.scene.judged.is_some();
        if judged && way == self.told {
            // The region already extrapolates this movement.
            return None;
        }
        let region = self.scene.map.at(Plane(0), pos)?.id;
        let [vx_mm_s, vz_mm_s] = way;
        let walk = Vector { start: pos, vx_mm_s, vz_mm_s, lasts_ms: None };
        self.told = way;
        Some(Step { id, region, pos, walk: judged.then_some(walk) })
    }
}

/// What an NPC is told in a step.
struct Step {
    id: EntityId,
    /// The region at `pos`, which has the entity or its ghost, and passes commands on.
    region: RegionId,
    pos: Pos,
    walk: Option<Vector>,
}

impl Step {
    /// Gives the commands. What becomes of them is told a tick later.
    async fn take(self, directory: &Directory) -> (EntityId, Result<(), CallError>) {
        let Step { id, region, pos, walk } = self;
        let place = Command::Order(id, Order::Move(pos));
        let placed = directory.command(region, place).await;
        let Some(walk) = walk.filter(|_| placed.is_ok()) else { return (id, placed) };
        let motion = Motion::Walk(walk.into());
        (id, directory.command(region, Command::Motion(id, motion)).await)
    }
}

fn now_ms(directory: &Directory) -> u64 {
    directory.tick_now(1).0
}

/// The NPCs in the regions that answered.
fn npcs(survey: &inspect::Survey) -> NpcsByKind {
    let mut all = NpcsByKind::new();
    for region in &survey.regions {
        for entity in region.entities.iter().filter(|e| !e.ghost && e.kind != Kind::PLAYER) {
            all.entry((region.scene, entity.kind)).or_default().push(entity.id);
        }
    }
    all
}

/// Adds an entity at `pos`. Returns false if the region there is too busy.
fn add(directory: &Directory, scene: &Scene, pos: Pos, spawn: Spawn) -> bool {
    let region = scene.map.at(Plane(0), pos).and_then(|entry| directory.region(entry.id));
    let input = Input::Enter(Box::new(spawn));
    region.is_some_and(|r| r.try_send(ToRegion { input, client: None }).is_ok())
}

#[cfg(test)]
mod tests {
    use purview::scene::{RegionId, SceneSpec};

    use super::*;

    #[test]
    fn an_npc_walks_at_its_speed_and_never_leaves_the_map() {
        let scene = Scene::new(SceneId(0), SceneSpec::default(), 100, RegionId(0)).unwrap();
        for id in (0..50).map(EntityId) {
            let walk = Walk::of(&scene, id);
            let (mut last, mut turns) = (walk.at(0), 0);
            for ms in (1_000..3_600_000).step_by(1_000) {
                let now = walk.at(ms);
                assert!(scene.map.at(Plane(0), now.0).is_some(), "{id} is at {:?}", now.0);
                let gone = f64::from(now.0.x - last.0.x).hypot(f64::from(now.0.z - last.0.z));
                assert!(gone <= 152.0, "{id} goes {gone} cm in a second");
                turns += u32::from(now.1 != last.1);
                last = now;
            }
            assert!((1..200).contains(&turns), "{id} turns {turns} times in an hour");
            let years = walk.at(u64::MAX / 4);
            assert!(scene.map.at(Plane(0), years.0).is_some());
        }
        assert_ne!(Walk::of(&scene, EntityId(1)), Walk::of(&scene, EntityId(2)));
    }
}

//! Several scenes: two of the game, whose monsters see differently far, and one without rules. Players are sent from one
//! to the next, with what they have.

use std::sync::atomic::AtomicU64;

use purview::scene::portals::{Journey, Target, ToPlane};
use purview::scene::{Plane, Pos, RegionId};

use super::*;

/// Scenes "wood" and "grove" with the game, and "town" without.
fn three_scenes() -> Config {
    let wood = small();
    let scene = wood.split_once("# ANCHOR: scene").unwrap().1;
    let radii = ["enter = \"20m\", leave = \"25m\"", "enter = \"12m\", leave = \"14m\""];
    assert!(scene.contains(radii[0]));
    let grove = scene.replace("\"wood\"", "\"grove\"").replace(radii[0], radii[1]);
    let town = "[[scene]]\nteleports = \"clients\"\n\
                name = \"town\"\nwidth = \"64m\"\ndepth = \"64m\"\nland = \"64m\"\n\
                region = [1, 1]\npatch = \"16m\"\nmoves = \"trusted\"\n";
    Config::parse(&format!("{wood}\n{grove}\n{town}")).unwrap()
}

/// Sends players from wood to grove and back, and those who have gold through town.
#[derive(Debug)]
struct Travels {
    rules: Arc<dyn LogicFactory>,
    scenes: Vec<Arc<Scene>>,
    /// How many players with gold have come back from town.
    back: Arc<AtomicU64>,
}

struct TravelsHere {
    rules: Option<Box<dyn GameLogic>>,
    wood: Journey,
    next: Journey,
    is_in_wood: bool,
    /// For how many ticks a player stays, at most.
    stays: u64,
    back: Arc<AtomicU64>,
}

impl Travels {
    fn spawn_of(&self, scene: usize) -> Journey {
        let scene = &self.scenes[scene % self.scenes.len()];
        let at = Target::Ground(Pos::ground(scene.spec.spawn_x_cm, scene.spec.spawn_z_cm));
        Journey { scene: Some(scene.spec.name.clone()), plane: ToPlane::Of(Plane(0)), at }
    }
}

impl LogicFactory for Travels {
    fn make(&self, scene: &Arc<Scene>, region: RegionId) -> Option<Box<dyn GameLogic>> {
        let rules = self.rules.make(scene, region);
        let (wood, next) = (self.spawn_of(0), self.spawn_of(usize::from(scene.id.0) + 1));
        // In town for longer than anything may be on its way.
        let stays = if rules.is_some() { 20 } else { 160 };
        let (is_in_wood, back) = (scene.id.0 == 0, self.back.clone());
        Some(Box::new(TravelsHere { rules, wood, next, is_in_wood, stays, back }))
    }
}

impl GameLogic for TravelsHere {
    fn tick(&mut self, region: &Region, events: &[LogicEvent], commands: &mut Commands) {
        if let Some(rules) = &mut self.rules {
            rules.tick(region, events, commands);
        }
        let tick = region.current_tick().0;
        let goes = |player: &Known<'_>| (player.id.0 * 7 + tick).is_multiple_of(self.stays);
        for player in region.lives_here(PLAYER).filter(goes) {
            let is_rich = player.properties.read::<i64>(GOLD) > 0;
            let to = if is_rich || self.is_in_wood { &self.next } else { &self.wood };
            commands.teleport(player.id, to.clone());
            self.back.fetch_add(u64::from(is_rich && self.rules.is_none()), Relaxed);
        }
    }
}

/// What is found while players are sent round, until something holds of that and of how many have come from town.
fn travelling(bug: Bug, holds: impl Fn(&GameFigures, u64) -> bool) -> (GameFigures, Vec<Example>) {
    let (config, back) = (three_scenes(), Arc::new(AtomicU64::new(0)));
    let scenes = config.build_scenes().unwrap();
    let count = back.clone();
    let holds = move |figures: &GameFigures| holds(figures, count.load(Relaxed));
    judged_in(&config, holds, |judge| {
        // The rules have the bug in the second scene only.
        let (sound, buggy) = (hunt(), buggy(hunt(), bug));
        let rules = each_region(move |scene, region| {
            let rules = if scene.id.0 == 1 { &buggy } else { &sound };
            rules.make(scene, region)
        });
        Arc::new(Travels { rules: judge.watch(rules), scenes, back })
    })
}

#[test]
fn players_that_travel_between_scenes_with_their_gold_are_no_fault() {
    let enough = |f: &GameFigures, back| f.faults() > 0 || back >= 3;
    let (figures, examples) = travelling(Bug::None, enough);
    assert_eq!(figures.faults(), 0, "{figures:?} {examples:?}");
}

#[test]
fn a_bug_in_another_scene_than_the_first_is_found() {
    for (bug, kind) in [(Bug::GoldLost, FaultKind::Gold), (Bug::BeyondRange, FaultKind::HitPoints)]
    {
        let (_, examples) = travelling(bug, |f, _| f.faults() > 0);
        assert!(examples.iter().all(|e| e.kind == kind.key()), "{bug:?}: {examples:?}");
    }
}

//! Judges the example game `hunt` in every tick of a server that runs in this process: `purview dev` and
//! `purview-lab load replay --logic hunt`.
//!
//! ```text
//!  regions of the server ── Observer: every tick ──► LiveJudge ──► sim::judge: hit points, the dead, drops, sights
//!       │  ▲                                             │
//!     GameLogic ◄── rules, watched ◄─────────────────────┴───────► Ledger: all gold
//! ```
//!
//! The judge of the simulator sees what rules are told and command, and all entities after each tick. Here no machine
//! dies, so that nothing is undone, and gold adds up at any time; a ledger counts it. Players may teleport from one
//! scene to another with what they have: all scenes of `hunt` are judged together. A player in a scene of something
//! else has taken its gold along, as if it had left. *Absent on purpose:* commands of the judge's own, which the
//! simulator gives: clients would see them.

mod ledger;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::Mutex;
use purview::actor::directory::Observer;
use purview::actor::logic::LogicFactory;
use purview::scene::messages::LogicEvent;
use purview::scene::region::Commands;
use purview::scene::{Kind, Region, Scene, SceneId, SceneSpec};
use purview_server::process::Inside;

use self::ledger::Ledger;
use crate::game::accounts::{Fault, Holding};
use crate::game::figures::{FaultKind, GameFigures};
use crate::game::rules::{DROP, LAIR, MONSTER, PLAYER};
use crate::game::watched::{Watched, Watcher};
use crate::game::{each_region, is_hunt};
use crate::oracle::Example;
use crate::sim::judge::{Eye, GameEye, Invariant, Judge};

const EXAMPLES_MAX: usize = 10;

/// Faults that are remembered so that each counts once; any beyond count in every tick in which they last.
const REMEMBERED: usize = 10_000;

/// After so many checks the judge forgets what it has not seen for [`FORGOTTEN`].
const FORGETS: u64 = 10_000;

/// For how long an entity that is gone is remembered: longer than any handoff takes.
const FORGOTTEN: Duration = Duration::from_secs(120);

const KINDS: [Kind; 4] = [PLAYER, MONSTER, DROP, LAIR];

/// The judge of all scenes of `hunt` in this process. Clones share it.
#[derive(Debug, Clone)]
pub struct LiveJudge(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    scenes: BTreeSet<SceneId>,
    eye: Arc<Eye>,
    found: Mutex<Found>,
}

#[derive(Debug)]
struct Found {
    ledger: Ledger,
    figures: GameFigures,
    known: BTreeSet<(FaultKind, Vec<u64>)>,
    examples: Vec<Example>,
}

impl LiveJudge {
    /// A judge of those of a server's scenes that are of `hunt`, if any are. With `is_restored` the server goes on from
    /// what an earlier process has stored, so that there may be gold of players who are not there.
    pub fn of(scenes: &[Arc<Scene>], is_restored: bool) -> Option<LiveJudge> {
        let watch_cm = |spec: &SceneSpec| {
            let watch = spec.kinds.iter().find_map(|kind| kind.watch.first())?;
            is_hunt(spec).then_some((watch.enter_cm, watch.leave_cm))
        };
        let radii = scenes.iter().filter_map(|scene| Some((scene.id, watch_cm(&scene.spec)?)));
        let radii: BTreeMap<SceneId, (i32, i32)> = radii.collect();
        if radii.is_empty() {
            return None;
        }
        let scenes = radii.keys().copied().collect();
        let judge = Arc::new(Judge::of_live_game(radii));
        let eye = Arc::new(Eye {
            judge,
            process: (0, 0),
            closed: AtomicBool::new(false),
            player_us: None,
        });
        let found = Mutex::new(Found {
            ledger: Ledger::new(is_restored),
            figures: GameFigures::of_ticks(),
            known: BTreeSet::new(),
            examples: Vec::new(),
        });
        Some(LiveJudge(Arc::new(Shared { scenes, eye, found })))
    }

    /// What a server has inside that runs these rules, judged.
    pub fn inside(&self, rules: Arc<dyn LogicFactory>) -> Inside {
        Inside {
            logic: Some(self.watch(rules)),
            observer: Some(Arc::new(self.clone())),
            population: None,
        }
    }

    /// The same rules, watched by this judge where it judges the scene.
    fn watch(&self, rules: Arc<dyn LogicFactory>) -> Arc<dyn LogicFactory> {
        let judge = self.clone();
        each_region(move |scene, region| {
            let rules = rules.make(scene, region)?;
            if !judge.has(scene.id) {
                return Some(rules);
            }
            let watcher = LiveEye { eye: GameEye::of(&judge.0.eye), judge: judge.clone() };
            Some(Box::new(Watched { rules, watcher }))
        })
    }

    /// Ends: what regions do from now on does not count. The figures, and the first faults in words.
    pub fn end(&self) -> (GameFigures, Vec<Example>) {
        self.0.eye.closed.store(true, Relaxed);
        let found = self.0.found.lock();
        (found.figures, found.examples.clone())
    }

    pub fn figures(&self) -> GameFigures {
        self.0.found.lock().figures
    }

    fn has(&self, scene: SceneId) -> bool {
        self.0.scenes.contains(&scene)
    }

    fn is_over(&self) -> bool {
        self.0.eye.closed.load(Relaxed)
    }
}

impl Observer for LiveJudge {
    fn acted(&self, region: &Region) {
        if !self.has(region.scene_id()) {
            return self.0.found.lock().ledger.is_elsewhere(region.id());
        }
        if self.is_over() {
            return;
        }
        let judge = &self.0.eye.judge;
        judge.game_acted(region);
        let mut found = self.0.found.lock();
        found.take_violations(judge, region);
        found.sees(region);
        if found.figures.checks.is_multiple_of(FORGETS) {
            judge.forget_game_before(FORGOTTEN);
        }
    }

    fn tick_over(&self, region: &Region) {
        if self.has(region.scene_id()) && !self.is_over() {
            let judge = &self.0.eye.judge;
            judge.game_tick_over(region);
            self.0.found.lock().take_violations(judge, region);
        }
    }
}

fn kind(invariant: Invariant) -> FaultKind {
    match invariant {
        Invariant::HitPoints => FaultKind::HitPoints,
        Invariant::DeadActs => FaultKind::DeadActs,
        Invariant::TakenOnce => FaultKind::TakenTwice,
        Invariant::Sighted => FaultKind::Sighted,
        // It has no clients and no other processes to judge.
        _ => FaultKind::Told,
    }
}

impl Found {
    fn take_violations(&mut self, judge: &Judge, region: &Region) {
        for violation in judge.take_violations() {
            let who = violation.who.iter().map(|id| id.0).collect();
            self.note(kind(violation.invariant), who, region, violation.text);
        }
    }

    fn sees(&mut self, region: &Region) {
        self.figures.checks += 1;
        let kinds = KINDS.into_iter();
        let here = kinds.flat_map(|kind| region.lives_here(kind)).chain(region.arriving());
        let here: Vec<_> = here.map(|e| (e.id.0, Holding::of(e.kind, e.properties))).collect();
        for (id, holding) in here.iter().filter(|(_, holding)| !holding.is_living()) {
            let fault = Fault::HitPoints { id: *id, hp: holding.hp };
            self.note(fault.kind(), vec![*id], region, fault.to_string());
        }
        self.ledger.gone(region.untold());
        let tick = region.current_tick().0;
        let fault = self.ledger.sees((region.id(), tick), here);
        if let Some(fault) = fault {
            // Gold that is lost twice is two faults.
            self.note(fault.kind(), vec![tick], region, fault.to_string());
        }
        (self.figures.minted, self.figures.won) = self.ledger.totals();
    }

    fn note(&mut self, kind: FaultKind, mut who: Vec<u64>, region: &Region, text: String) {
        who.sort_unstable();
        if self.known.len() < REMEMBERED && !self.known.insert((kind, who)) {
            return;
        }
        self.figures.count(kind);
        if self.examples.len() < EXAMPLES_MAX {
            let (tick, what) = (region.current_tick().0, format!("region {}: {text}", region.id()));
            self.examples.push(Example { kind: kind.key().into(), tick, what });
        }
    }
}

/// Sees the rules of one region. The ledger learns who is gone.
struct LiveEye {
    eye: GameEye,
    judge: LiveJudge,
}

impl Watcher for LiveEye {
    fn told(&mut self, region: &Region, events: &[LogicEvent]) {
        self.judge.0.found.lock().ledger.gone(events);
        self.eye.told(region, events);
    }

    fn commanded(&mut self, region: &Region, commands: &mut Commands) {
        self.eye.commanded(region, commands);
    }
}

#[cfg(test)]
mod tests;

//! Judges the example game `hunt` in every tick of a server that runs in this process: `purview dev` and
//! `purview replay --logic hunt`.
//!
//! ```text
//!  regions of the server ── Observer: every tick ──► LiveJudge ──► sim::judge: hit points, the dead, drops, sights
//!       │  ▲                                             │
//!     GameLogic ◄── rules, watched ◄─────────────────────┴───────► Ledger: all gold
//! ```
//!
//! The judge of the simulator sees what rules are told and command, and all entities after each tick. Here no machine
//! dies, so that nothing is undone, and gold adds up at any time; a ledger counts it. *Absent on purpose:* commands
//! of the judge's own, which the simulator gives: clients would see them.

mod ledger;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use purview::actor::directory::Observer;
use purview::actor::logic::LogicFactory;
use purview::scene::messages::LogicEvent;
use purview::scene::region::{Commands, GameLogic};
use purview::scene::{Kind, Region, RegionId, Scene, SceneId, SceneSpec};
use purview_server::process::Inside;

use self::ledger::Ledger;
use crate::game::accounts::{Fault, Holding};
use crate::game::figures::{FaultKind, GameFigures};
use crate::game::is_hunt;
use crate::game::rules::{DROP, LAIR, MONSTER, PLAYER};
use crate::oracle::Example;
use crate::sim::judge::{Eye, Invariant, Judge, WatchedGame};

/// Faults that are told in words.
const EXAMPLES_MAX: usize = 10;

/// Faults that are remembered so that each counts once; any beyond count in every tick in which they last.
const REMEMBERED: usize = 10_000;

/// After so many checks the judge forgets what it has not seen for [`FORGOTTEN`].
const FORGETS: u64 = 10_000;

/// For how long an entity that is gone is remembered: longer than any handoff takes.
const FORGOTTEN: Duration = Duration::from_secs(120);

/// The kinds that the game has.
const KINDS: [Kind; 4] = [PLAYER, MONSTER, DROP, LAIR];

/// The judge of one scene. Clones share it.
#[derive(Debug, Clone)]
pub struct LiveJudge(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    scene: SceneId,
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
    /// A judge of a scene, if that is one of `hunt`. With `is_restored` the server goes on from what an earlier process
    /// has stored, so that there may be gold of players who are not there.
    pub fn of(scene: SceneId, spec: &SceneSpec, is_restored: bool) -> Option<LiveJudge> {
        let watch = spec.kinds.iter().find_map(|kind| kind.watch.as_ref());
        let watch = watch.filter(|_| is_hunt(spec))?;
        let judge = Arc::new(Judge::of_live_game((watch.enter_cm, watch.leave_cm)));
        let eye = Arc::new(Eye { judge, process: (0, 0), closed: AtomicBool::new(false) });
        let found = Mutex::new(Found {
            ledger: Ledger::new(is_restored),
            figures: GameFigures::of_ticks(),
            known: BTreeSet::new(),
            examples: Vec::new(),
        });
        Some(LiveJudge(Arc::new(Shared { scene, eye, found })))
    }

    /// What a server has inside that runs these rules, judged.
    pub fn inside(&self, rules: Arc<dyn LogicFactory>) -> Inside {
        Inside { logic: Some(self.watch(rules)), observer: Some(Arc::new(self.clone())) }
    }

    /// The same rules, watched by this judge.
    fn watch(&self, rules: Arc<dyn LogicFactory>) -> Arc<dyn LogicFactory> {
        let eye = self.0.eye.clone();
        let watched = WatchedGame { rules: rules.clone(), eye, seed: 0, probes: false };
        Arc::new(Watching { rules, watched, judge: self.clone() })
    }

    /// Ends: what regions do from now on does not count. The figures, and the first faults in words.
    pub fn end(&self) -> (GameFigures, Vec<Example>) {
        self.0.eye.closed.store(true, Relaxed);
        let found = self.found();
        (found.figures, found.examples.clone())
    }

    /// The figures so far.
    pub fn figures(&self) -> GameFigures {
        self.found().figures
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        self.0.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn judges(&self, region: &Region) -> bool {
        region.scene_id() == self.0.scene && !self.0.eye.closed.load(Relaxed)
    }
}

impl Observer for LiveJudge {
    fn acted(&self, region: &Region) {
        if !self.judges(region) {
            return;
        }
        let judge = &self.0.eye.judge;
        judge.game_acted(region);
        let mut found = self.found();
        found.take_violations(judge, region);
        found.sees(region);
        if found.figures.checks.is_multiple_of(FORGETS) {
            judge.forget_game_before(FORGOTTEN);
        }
    }

    fn tick_over(&self, region: &Region) {
        if self.judges(region) {
            let judge = &self.0.eye.judge;
            judge.game_tick_over(region);
            self.found().take_violations(judge, region);
        }
    }
}

/// How the figures name what the simulator's judge finds.
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

    /// A region has ended a tick.
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
            self.examples.push(Example { kind: kind.key(), tick, what });
        }
    }
}

/// Makes the rules of each region of the judged scene, watched; those of other scenes as they are.
#[derive(Debug)]
struct Watching {
    rules: Arc<dyn LogicFactory>,
    watched: WatchedGame,
    judge: LiveJudge,
}

impl LogicFactory for Watching {
    fn make(&self, scene: &Arc<Scene>, region: RegionId) -> Option<Box<dyn GameLogic>> {
        if scene.id != self.judge.0.scene {
            return self.rules.make(scene, region);
        }
        let rules = self.watched.make(scene, region)?;
        Some(Box::new(Watched { rules, judge: self.judge.clone() }))
    }
}

/// The rules of one region, watched. The ledger learns who is gone.
struct Watched {
    rules: Box<dyn GameLogic>,
    judge: LiveJudge,
}

impl GameLogic for Watched {
    fn save(&self, region: &Region, untold: &[LogicEvent]) -> Vec<u8> {
        self.rules.save(region, untold)
    }

    fn restore(&mut self, saved: &[u8]) {
        self.rules.restore(saved);
    }

    fn tick(&mut self, region: &Region, events: &[LogicEvent], commands: &mut Commands) {
        self.judge.found().ledger.gone(events);
        self.rules.tick(region, events, commands);
    }
}

#[cfg(test)]
mod tests;

//! The judge over a real server: sound rules have no faults, and rules with a deliberate bug have those of the bug.

use purview::scene::EntityId;
use purview::scene::messages::{Command, Order, Spawn};
use purview::scene::properties::{PropertyId, Value};
use purview::scene::region::{GameLogic, Known};
use purview_server::config::Config;
use purview_server::gateway::Tokens;
use purview_server::logins::Duplicate;
use purview_server::process::Background;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::*;
use crate::bench::regions::spawn;
use crate::game::hunt;
use crate::game::rules::{GOLD, HP, MONSTER_HP, PLAYER_HP, PRIZE, TAKEN};
use purview_demo::players::{Role, Stage, play};

/// How long a run may take to show something.
const PATIENCE: Duration = Duration::from_secs(100);

/// What is wrong with the rules, or with the region that runs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bug {
    None,
    /// A monster that has gold vanishes, and its gold with it.
    GoldLost,
    GoldDoubled,
    TakenTwice,
    BeyondRange,
    Healed,
    /// A monster that the rules have removed is there again.
    DeadActs,
    /// The rules are not told what monsters have in sight.
    Untold,
}

/// Rules with a bug: those of `hunt` before the judge sees them, and the judged ones after that.
fn buggy(rules: Arc<dyn LogicFactory>, bug: Bug) -> Arc<dyn LogicFactory> {
    each_region(move |scene, region| {
        Some(Box::new(Buggy { rules: rules.make(scene, region)?, bug }))
    })
}

struct Buggy {
    rules: Box<dyn GameLogic>,
    bug: Bug,
}

impl GameLogic for Buggy {
    fn tick(&mut self, region: &Region, events: &[LogicEvent], commands: &mut Commands) {
        let is_told =
            |e: &&LogicEvent| self.bug != Bug::Untold || !matches!(e, LogicEvent::Sighted { .. });
        let events: Vec<LogicEvent> = events.iter().filter(is_told).cloned().collect();
        self.rules.tick(region, &events, commands);
        let is_due = region.current_tick().0.is_multiple_of(20);
        let monster = region.lives_here(MONSTER).next().filter(|_| is_due);
        match (self.bug, monster) {
            (Bug::GoldLost, Some(monster)) => drop(commands.despawn(monster.id)),
            (Bug::GoldDoubled, Some(monster)) => set(commands, monster.id, GOLD, 2 * PRIZE),
            (Bug::DeadActs, _) => revive(region, commands),
            (Bug::BeyondRange, Some(monster)) => set(commands, monster.id, HP, MONSTER_HP + 1),
            _ => {}
        }
        for player in region.lives_here(PLAYER).filter(|_| is_due) {
            match self.bug {
                Bug::TakenTwice => take(region, player, commands),
                Bug::Healed => set(commands, player.id, HP, PLAYER_HP),
                _ => {}
            }
        }
    }
}

/// The player has taken drop 9, too.
fn take(region: &Region, player: Known<'_>, commands: &mut Commands) {
    let is_taking = |command: &Command| match command {
        Command::Order(id, Order::Set(set)) => *id == player.id && set.id == TAKEN,
        _ => false,
    };
    if !commands.given().any(|(_, command)| is_taking(command)) {
        let mut taken: Vec<(u64, u64)> = player.properties.read(TAKEN);
        taken.retain(|(drop, _)| *drop != 9);
        taken.push((9, region.current_tick().0));
        commands.set(player.id, TAKEN, Value::of(&taken).unwrap());
    }
}

fn set(commands: &mut Commands, id: EntityId, property: PropertyId, value: i64) {
    commands.set(id, property, Value::of(&value).unwrap());
}

/// Creates a monster again that the rules have removed.
fn revive(region: &Region, commands: &mut Commands) {
    let removed = commands.given().find_map(|(_, command)| match command {
        Command::Despawn(id) => region.known(*id).filter(|e| e.kind == MONSTER),
        _ => None,
    });
    if let Some(monster) = removed {
        let spawn = Spawn {
            plane: monster.plane,
            facing: monster.facing,
            properties: monster.properties.clone(),
            ..spawn(monster.id.0, MONSTER, monster.pos)
        };
        commands.give(Command::Spawn(Box::new(spawn)));
    }
}

/// The example, a quarter of its size, so that hunters meet monsters at once.
fn small() -> String {
    let config = include_str!("../../../../examples/hunt/hunt.toml");
    config.replace("256m", "64m").replace("512m", "128m").replace("32m", "16m")
}

fn judged(bug: Bug, holds: impl Fn(&GameFigures) -> bool) -> (GameFigures, Vec<Example>) {
    judged_in(&Config::parse(&small()).unwrap(), holds, |judge| {
        let before = match bug {
            Bug::Untold => hunt(),
            Bug::DeadActs => buggy(hunt(), Bug::GoldLost),
            bug => buggy(hunt(), bug),
        };
        let watched = judge.watch(before);
        match bug {
            Bug::DeadActs | Bug::Untold => buggy(watched, bug),
            _ => watched,
        }
    })
}

/// What is found while hunters play in the first scene, until something holds, by rules that the judge watches.
fn judged_in(
    config: &Config,
    holds: impl Fn(&GameFigures) -> bool,
    rules: impl FnOnce(&LiveJudge) -> Arc<dyn LogicFactory>,
) -> (GameFigures, Vec<Example>) {
    let mut config = config.clone();
    // All hunters have one token.
    config.token.duplicate = Some(Duplicate::Allow);
    let judge = LiveJudge::of(&config.build_scenes().unwrap(), false).unwrap();
    let inside = Inside {
        logic: Some(rules(&judge)),
        observer: Some(Arc::new(judge.clone())),
        population: None,
    };
    let server = Background::start_observed(config, Tokens::dev(), inside).unwrap();
    let token = Tokens::dev().mint("hunter", Some(PATIENCE * 2)).unwrap();
    let url = server.reach().url().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (stage, (_goes_on, rests)) =
            (Stage { url, scene: "wood".into(), ground: None }, watch::channel(false));
        let players = tokio::spawn(play(stage, Role::Hunts, vec![token; 6], rests));
        let found = timeout(PATIENCE, async {
            while !holds(&judge.figures()) {
                sleep(Duration::from_millis(100)).await;
            }
        });
        let held = found.await.is_ok();
        let (figures, examples) = judge.end();
        assert!(held, "{figures:?} {examples:?}");
        players.abort();
        (figures, examples)
    })
}

#[test]
fn the_example_itself_has_no_faults() {
    let enough = |f: &GameFigures| f.faults() > 0 || f.won >= 4 * PRIZE && f.checks >= 400;
    let (figures, examples) = judged(Bug::None, enough);
    assert_eq!(figures.faults(), 0, "{figures:?} {examples:?}");
}

fn is_found(bug: Bug, kind: FaultKind) {
    let of_kind = |f: &GameFigures| match kind {
        FaultKind::Gold => f.gold,
        FaultKind::TakenTwice => f.taken_twice,
        FaultKind::HitPoints => f.hit_points,
        FaultKind::DeadActs => f.dead_acts.unwrap_or(0),
        FaultKind::Sighted => f.sighted.unwrap_or(0),
        FaultKind::Told => f.told.unwrap_or(0),
    };
    let (figures, examples) = judged(bug, |figures| of_kind(figures) > 0);
    assert!(examples.iter().any(|e| e.kind == kind.key()), "{bug:?}: {figures:?} {examples:?}");
    assert_eq!(figures.faults(), of_kind(&figures), "no other fault: {figures:?} {examples:?}");
}

#[test]
fn gold_that_is_lost_doubled_or_taken_twice_is_found() {
    is_found(Bug::GoldLost, FaultKind::Gold);
    is_found(Bug::GoldDoubled, FaultKind::Gold);
    is_found(Bug::TakenTwice, FaultKind::TakenTwice);
}

#[test]
fn hit_points_beyond_their_range_or_that_return_are_found() {
    is_found(Bug::BeyondRange, FaultKind::HitPoints);
    is_found(Bug::Healed, FaultKind::HitPoints);
}

#[test]
fn a_dead_monster_that_acts_and_one_that_is_not_told_of_players_are_found() {
    is_found(Bug::DeadActs, FaultKind::DeadActs);
    is_found(Bug::Untold, FaultKind::Sighted);
}

mod scenes;

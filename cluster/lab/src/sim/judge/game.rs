//! What must hold where regions run the rules of `hunt`: the promises of the game, and those of the layer that runs it.
//!
//! [`Watched`] stands between a region and its rules. It tells the judge what the logic is told and what it commands,
//! and gives commands of its own for entities anywhere. [`Judge::game_acted`] sees the entities of every region in every
//! tick. What must hold at rest is in `wealth`.

mod events;
mod wealth;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use purview::actor::logic::LogicFactory;
use purview::scene::messages::{Command, LogicEvent};
use purview::scene::properties::{Properties, PropertyId};
use purview::scene::region::{Commands, GameLogic, Known};
use purview::scene::{EntityId, Epoch, Kind, Region, RegionId, Scene, Tick};

use super::{Inner, Invariant, Judge};
use crate::game::rules::{self, DROP, GOLD, HP, LAIR, MINTED, MONSTER, PLAYER, TAKEN, TAKER};
use crate::rng::Rng;

/// How long after a region has got a new owner a command may be applied twice or stay unanswered.
const UPSET: Duration = Duration::from_secs(40);

/// How long after a region has got a new owner entities may be as they were before.
const UNDONE: Duration = Duration::from_secs(10);

/// Hit points that a player may lose in one tick, before or after it falls and stands up.
const ALMOST_DEAD: i64 = 50;

/// A region under an epoch.
type Owned = (RegionId, Epoch);

/// An entity as a region had it last.
#[derive(Debug, Clone)]
struct Seen {
    kind: Kind,
    place: Owned,
    epoch: Epoch,
    at: Duration,
    tick: Tick,
    hp: i64,
    gold: i64,
    minted: i64,
    taker: i64,
    taken: Vec<(u64, u64)>,
    properties: Properties,
    /// Since when each property has its value.
    since: BTreeMap<PropertyId, Duration>,
}

impl Seen {
    fn of(known: &Known<'_>, at: Duration, tick: Tick, place: Owned) -> Seen {
        let of = |id| known.properties.read::<i64>(id);
        Seen {
            kind: known.kind,
            place,
            epoch: known.epoch,
            at,
            tick,
            hp: of(HP),
            gold: of(GOLD),
            minted: of(MINTED),
            taker: of(TAKER),
            taken: known.properties.read(TAKEN),
            properties: known.properties.clone(),
            since: BTreeMap::new(),
        }
    }

    /// Notes which properties have changed since it was seen before.
    fn compare(&mut self, before: Option<&Seen>) {
        for level in self.properties.levels() {
            let was = before.and_then(|before| before.properties.get(level.id));
            let same = was.is_some_and(|was| was.value == level.value);
            let since = before.and_then(|before| before.since.get(&level.id)).filter(|_| same);
            self.since.insert(level.id, since.copied().unwrap_or(self.at));
        }
    }
}

/// A command of the judge's own.
#[derive(Debug, Clone, Copy)]
struct Probe {
    given: Duration,
    /// The region that has applied it first, and under which epoch.
    applied: Option<(RegionId, Epoch)>,
}

/// What the judge knows of the game.
#[derive(Debug, Default)]
pub(super) struct Game {
    entities: BTreeMap<EntityId, Seen>,
    /// Monsters that the rules have removed: under which epoch, and where.
    dead: BTreeMap<EntityId, (Epoch, Owned)>,
    /// Who has which drop.
    takers: BTreeMap<u64, EntityId>,
    /// What each region's logic believes to live there, by what it was told.
    residents: BTreeMap<(RegionId, Epoch), BTreeSet<EntityId>>,
    /// What each entity that watches has in its radius, by what logic was told.
    sighted: BTreeMap<EntityId, BTreeSet<EntityId>>,
    probes: BTreeMap<u64, Probe>,
    /// The probes by the region that has given them and the number of the command.
    given: BTreeMap<(RegionId, Epoch, u64), u64>,
    /// When a region has got a new owner last.
    upset: Duration,
    /// The properties in each client's view at rest.
    views: BTreeMap<EntityId, Vec<(EntityId, Properties)>>,
}

impl Judge {
    /// Whether a region of this epoch was deposed, or some process was betrayed: then two of them may act.
    fn is_outdated(&self, region: &Region) -> bool {
        let inner = self.inner();
        let owner = inner.regions.get(&region.id());
        !inner.betrayed.is_empty() || owner.is_some_and(|owner| region.epoch() < owner.epoch)
    }

    /// A region that runs the game has acted.
    pub(super) fn game_acted(&self, region: &Region) {
        let (now, tick) = (self.journal.now(), region.current_tick());
        for kind in [PLAYER, MONSTER, DROP, LAIR] {
            let here = region.lives_here(kind).chain(region.arriving().filter(|e| e.kind == kind));
            for known in here {
                let seen = Seen::of(&known, now, tick, (region.id(), region.epoch()));
                let wrong = {
                    let mut inner = self.inner();
                    let Inner { game, regions, .. } = &mut *inner;
                    let owner = |region| regions.get(&region).map(|owner| owner.epoch);
                    game.sees(known.id, seen, owner)
                };
                if let Err((invariant, who, text)) = wrong {
                    self.violated(invariant, who, format!("region {}: {text}", region.id()));
                }
            }
        }
    }

    /// A client at rest has these entities in view.
    pub fn sees_properties(
        &self,
        id: EntityId,
        view: impl IntoIterator<Item = (EntityId, Properties)>,
    ) {
        let view = view.into_iter().collect();
        self.inner().game.views.insert(id, view);
    }

    /// A client was told a property that no client may be told.
    pub fn told_a_secret(&self, id: EntityId, of: EntityId, what: &str) {
        let text = format!("{id} was told {what} of {of}, which is for the server");
        self.violated(Invariant::Audience, vec![id, of], text);
    }
}

type Wrong = (Invariant, Vec<EntityId>, String);

impl Game {
    /// Notes an entity that acts; what is wrong with it.
    fn sees(
        &mut self,
        id: EntityId,
        mut seen: Seen,
        owner: impl Fn(RegionId) -> Option<Epoch>,
    ) -> Result<(), Wrong> {
        // The next owner of a region does not know what was done after the last checkpoint.
        let is_undone = |(region, epoch): Owned| owner(region).is_some_and(|now| now > epoch);
        if let Some((epoch, place)) = self.dead.get(&id)
            && !epoch.is_of_a_life_before(seen.epoch)
            && !is_undone(*place)
        {
            return Err((Invariant::DeadActs, vec![id], format!("{id} is dead and acts")));
        }
        let before = self.entities.get(&id);
        if before.is_some_and(|before| seen.epoch < before.epoch) {
            return Ok(());
        }
        seen.compare(before);
        let before = before.filter(|before| !before.epoch.is_of_a_life_before(seen.epoch));
        // What a region does again that goes on from a checkpoint, it does to entities as they were.
        let calm = seen.at.saturating_sub(self.upset) > UNDONE;
        let before_hp =
            before.filter(|before| calm && !is_undone(before.place)).map(|before| before.hp);
        if let Some(was) = before_hp.filter(|was| seen.hp > *was) {
            let full = rules::PLAYER_HP - ALMOST_DEAD..=rules::PLAYER_HP;
            let stands_up = seen.kind == PLAYER && full.contains(&seen.hp);
            if !(stands_up && was <= ALMOST_DEAD) {
                let text = format!("{id} had {was} hit points and has {}", seen.hp);
                return Err((Invariant::HitPoints, vec![id], text));
            }
        }
        for (drop, _) in &seen.taken {
            let other = self.takers.insert(*drop, id).filter(|other| *other != id);
            let has = |seen: &Seen| seen.taken.iter().any(|(of, _)| of == drop);
            let lives = |at: Duration| seen.at.saturating_sub(at) < Duration::from_secs(1);
            let both = other.and_then(|other| Some((other, self.entities.get(&other)?)));
            if let Some((other, _)) = both.filter(|(_, other)| has(other) && lives(other.at)) {
                let text = format!("{id} and {other} both have drop {drop}");
                return Err((Invariant::TakenOnce, vec![id, other], text));
            }
        }
        self.entities.insert(id, seen);
        Ok(())
    }
}

/// Makes the rules of each region of a simulated process, seen by the judge.
#[derive(Debug)]
pub struct WatchedGame {
    /// The rules.
    pub rules: Arc<dyn LogicFactory>,
    /// The judge.
    pub eye: Arc<super::Eye>,
    /// What the judge's own commands are drawn from.
    pub seed: u64,
}

impl LogicFactory for WatchedGame {
    fn make(&self, scene: &Arc<Scene>, region: RegionId) -> Option<Box<dyn GameLogic>> {
        let rules = self.rules.make(scene, region)?;
        let rng = Rng::new(self.seed ^ u64::from(region.0) << 32);
        Some(Box::new(Watched { rules, rng, eye: self.eye.clone() }))
    }
}

/// The rules of one region, seen by the judge.
struct Watched {
    rules: Box<dyn GameLogic>,
    rng: Rng,
    eye: Arc<super::Eye>,
}

impl GameLogic for Watched {
    fn tick(&mut self, region: &Region, events: &[LogicEvent], commands: &mut Commands) {
        let judge = &self.eye.judge;
        let is_over = self.eye.closed.load(Relaxed);
        if !is_over && !judge.is_outdated(region) {
            judge.logic_is_told(region, events);
        }
        self.rules.tick(region, events, commands);
        if !is_over {
            judge.logic_commands(region, commands);
            if self.rng.one_in(4) {
                judge.probe(region, &mut self.rng, commands);
            }
        }
    }
}

impl Judge {
    /// The rules have given commands.
    fn logic_commands(&self, region: &Region, commands: &Commands) {
        for (_, command) in commands.given() {
            if let Command::Despawn(id) = command
                && let Some(monster) = region.known(*id).filter(|e| e.kind == MONSTER && e.is_real)
            {
                let place = (region.id(), region.epoch());
                self.inner().game.dead.insert(*id, (monster.epoch, place));
            }
        }
    }

    /// Gives a command for any entity of the scene, which is to be applied once.
    fn probe(&self, region: &Region, rng: &mut Rng, commands: &mut Commands) {
        let (now, mut inner) = (self.journal.now(), self.inner());
        let Inner { game, .. } = &mut *inner;
        let lives = |seen: &&Seen| now.saturating_sub(seen.at) < Duration::from_secs(1);
        let all: Vec<EntityId> =
            game.entities.iter().filter(|(_, seen)| lives(seen)).map(|(id, _)| *id).collect();
        let Some(id) = all.get((rng.unit() * all.len() as f64) as usize) else { return };
        let name = game.probes.len() as u64;
        // Longer than the numbers that clients act.
        let command = commands.act(*id, format!("probe {name:020}"));
        game.probes.insert(name, Probe { given: now, applied: None });
        game.given.insert((region.id(), region.epoch(), command), name);
    }
}

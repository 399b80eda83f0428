//! What must hold where regions run the rules of `hunt`: the promises of the game, and those of the layer that runs it.
//!
//! [`Watched`] stands between a region and its rules. It tells the judge what the logic is told and what it commands,
//! and gives commands of the judge's own for entities anywhere. [`Judge::game_acted`] sees the entities of every region
//! in every tick. What must hold at rest is in `wealth`.

mod commands;
mod events;
mod history;
mod hits;
mod watching;
mod wealth;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use purview::actor::logic::LogicFactory;
use purview::scene::messages::{Command, LogicEvent};
use purview::scene::properties::{Properties, PropertyId};
use purview::scene::region::{Commands, GameLogic, Known};
use purview::scene::{EntityId, Epoch, Kind, Region, RegionId};

use self::commands::Probes;
pub(super) use self::history::{History, When};
use self::hits::Hits;
use self::watching::Watching;
pub(super) use self::wealth::{FRESH, SETTLED};
use super::{Authority, Eye, Host, Inner, Invariant, Judge, TICK, Wrong};
use crate::game::accounts::Holding;
use crate::game::each_region;
use crate::game::rules::{DROP, LAIR, MONSTER, PLAYER};
use crate::rng::Rng;
use crate::sim::Logic;

/// An entity as a region had it last.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    what: Holding,
    epoch: Epoch,
    at: Duration,
    when: When,
    /// When it came to the region, and where it was seen last before.
    came: (When, Option<When>),
    pub(super) properties: Properties,
    pub(super) sighted: BTreeSet<u64>,
    pub(super) since: BTreeMap<PropertyId, Duration>,
}

impl Seen {
    fn of(known: &Known<'_>, at: Duration, when: When) -> Seen {
        Seen {
            what: Holding::of(known.kind, known.properties),
            epoch: known.epoch,
            at,
            when,
            came: (when, None),
            properties: known.properties.clone(),
            sighted: BTreeSet::new(),
            since: BTreeMap::new(),
        }
    }

    fn note_sights(&mut self, region: &Region, id: EntityId) {
        self.sighted = region.sighted_by(id).iter().map(|id| id.0).collect();
    }

    /// Notes which properties have changed since it was seen before.
    fn compare(&mut self, before: Option<&Seen>) {
        self.came = match before {
            Some(before) if before.when.region == self.when.region => before.came,
            Some(before) => (self.when, Some(before.when)),
            None => self.came,
        };
        for level in self.properties.levels() {
            let was = before.and_then(|before| before.properties.get(level.id));
            let same = was.is_some_and(|was| was.value == level.value);
            let since = before.and_then(|before| before.since.get(&level.id)).filter(|_| same);
            self.since.insert(level.id, since.copied().unwrap_or(self.at));
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Game {
    entities: BTreeMap<EntityId, Seen>,
    /// Monsters that the rules have removed, and where.
    dead: BTreeMap<EntityId, When>,
    takers: BTreeMap<u64, EntityId>,
    /// What each region's logic believes to live there, by what it was told.
    residents: BTreeMap<(RegionId, Epoch), BTreeSet<EntityId>>,
    watching: Watching,
    probes: Probes,
    history: History,
    hits: Hits,
    /// When a region has got a new owner last, and when one has gone on from a checkpoint.
    upset: Duration,
    pub(super) recovered: Duration,
    /// Processes one of whose regions has gone on from a checkpoint elsewhere.
    pub(super) dead_processes: BTreeSet<(Host, u64)>,
    views: BTreeMap<EntityId, Vec<(EntityId, Properties)>>,
}

impl Judge {
    /// Whether a region of this epoch was superseded, or some process was betrayed: then two of them may act.
    pub(super) fn is_outdated(&self, region: &Region) -> bool {
        let inner = self.inner();
        let owner = inner.regions.get(&region.id());
        !inner.double_granted.is_empty() || owner.is_some_and(|owner| region.epoch() < owner.epoch)
    }

    /// A region acts, perhaps by a new owner. Gives players that go on as their sessions alone know them: the region has
    /// died before a checkpoint had them, and so has the region where they were before.
    pub(super) fn game_begins(&self, region: &Region) -> Vec<EntityId> {
        let (now, mut inner) = (self.journal.now(), self.inner());
        let Inner { game, regions, .. } = &mut *inner;
        game.acts(region, now);
        let is_alive = |from: When| {
            let owner = regions.get(&from.region);
            let acts =
                |o: &&Authority| o.epoch == from.epoch && now.saturating_sub(o.at) <= TICK * 2;
            owner.filter(acts).is_some_and(|o| !game.dead_processes.contains(&o.process))
        };
        let players = region.lives_here(PLAYER).map(|known| known.id);
        let unsaved = players.filter_map(|id| Some((id, game.came_unsaved(id, region)?)));
        unsaved.filter(|(_, from)| !is_alive(*from)).map(|(id, _)| id).collect()
    }

    pub(super) fn game_acted(&self, region: &Region) {
        if self.is_outdated(region) {
            return;
        }
        let (now, when) = (self.journal.now(), When::now_in(region));
        // Even while it recovers: what others had of it since its checkpoint is undone from its first tick on.
        self.inner().game.acts(region, now);
        if region.is_recovering() {
            return;
        }
        for kind in [PLAYER, MONSTER, DROP, LAIR] {
            let here = region.lives_here(kind).chain(region.arriving().filter(|e| e.kind == kind));
            for known in here {
                let mut seen = Seen::of(&known, now, when);
                let unknown = self.inner().is_no_unknown(known.id, now);
                self.wrong_in(region, unknown);
                if self.logic == Some(Logic::Workers) {
                    seen.note_sights(region, known.id);
                    self.inner().game.notes(known.id, seen);
                    continue;
                }
                let mut inner = self.inner();
                let is_sound = inner.stores_keep_promises();
                let wrong = inner.game.sees(known.id, seen, is_sound);
                drop(inner);
                self.wrong_in(region, wrong);
            }
        }
    }

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

impl Game {
    /// Notes that a region acts, perhaps by a new owner.
    fn acts(&mut self, region: &Region, now: Duration) {
        if self.history.acts(region) {
            self.upset = now;
            if region.lost_since().is_some() {
                self.recovered = now;
            }
        }
    }

    pub(super) fn is_undone(&self, when: When) -> bool {
        self.history.is_undone(when)
    }

    /// When a player came to the region where it lives now, which has died before a checkpoint had the player, and where
    /// the player was before.
    fn came_unsaved(&self, id: EntityId, region: &Region) -> Option<When> {
        let seen = self.entities.get(&id).filter(|seen| seen.what.kind == PLAYER)?;
        let (came, from) = match seen.when.region == region.id() {
            true => (seen.came.0, seen.came.1?),
            // It was handed over after that tick, and may have come a tick later.
            false => (When { tick: seen.when.tick.next().next(), ..seen.when }, seen.when),
        };
        region.lost_since().filter(|since| *since < came.tick).map(|_| from)
    }

    /// Whether a player was in another region when it was seen last.
    pub(super) fn was_elsewhere(&self, id: EntityId, region: RegionId) -> bool {
        let seen = self.entities.get(&id).filter(|seen| seen.what.kind == PLAYER);
        seen.is_some_and(|seen| seen.when.region != region)
    }

    pub(super) fn lives(&self, id: EntityId, now: Duration) -> bool {
        self.entities.get(&id).is_some_and(|seen| now.saturating_sub(seen.at) <= FRESH)
    }

    pub(super) fn residents_of(
        &self,
        region: RegionId,
        now: Duration,
    ) -> BTreeMap<EntityId, &Seen> {
        let lives =
            |seen: &Seen| now.saturating_sub(seen.at) <= FRESH && seen.when.region == region;
        self.entities.iter().filter(|(_, seen)| lives(seen)).map(|(id, seen)| (*id, seen)).collect()
    }

    /// Notes an entity of a game whose rules are not known here.
    fn notes(&mut self, id: EntityId, mut seen: Seen) {
        let before = self.entities.get(&id);
        if before.is_none_or(|before| seen.epoch >= before.epoch) {
            seen.compare(before);
            self.entities.insert(id, seen);
        }
    }

    /// Notes an entity that acts; what is wrong with it. What was durable stays so only where stores keep their
    /// promises.
    fn sees(&mut self, id: EntityId, mut seen: Seen, is_sound: bool) -> Result<(), Wrong> {
        if let Some(died) = self.dead.get(&id).copied() {
            if is_sound && !self.history.is_undone(died) {
                let text = format!("{id} is dead since {died:?}, and acts");
                return Err((Invariant::DeadActs, vec![id], text));
            }
            self.dead.remove(&id);
        }
        let before = self.entities.get(&id);
        if before.is_some_and(|before| seen.epoch < before.epoch) {
            return Ok(());
        }
        seen.compare(before);
        if let Some(before) = before {
            self.hits.sees(id, (before, &seen), &self.history)?;
        }
        let once = self.takes_once(id, &seen);
        if is_sound {
            once?;
        }
        self.entities.insert(id, seen);
        Ok(())
    }

    fn takes_once(&mut self, id: EntityId, seen: &Seen) -> Result<(), Wrong> {
        for (drop, _) in &seen.what.taken {
            let other = self.takers.insert(*drop, id).filter(|other| *other != id);
            let has = |seen: &Seen| seen.what.taken.iter().any(|(of, _)| of == drop);
            let lives = |at: Duration| seen.at.saturating_sub(at) < Duration::from_secs(1);
            let both = other.and_then(|other| Some((other, self.entities.get(&other)?)));
            if let Some((other, _)) = both.filter(|(_, other)| has(other) && lives(other.at)) {
                let text = format!("{id} and {other} both have drop {drop}");
                return Err((Invariant::TakenOnce, vec![id, other], text));
            }
        }
        Ok(())
    }
}

/// The rules of each region of a simulated process, seen by the judge, whose own commands are drawn from the seed.
pub fn watched_game(
    rules: Arc<dyn LogicFactory>,
    eye: Arc<Eye>,
    seed: u64,
) -> Arc<dyn LogicFactory> {
    each_region(move |scene, region| {
        let (rules, eye) = (rules.make(scene, region)?, eye.clone());
        let probes = Rng::new(seed ^ u64::from(region.0) << 32);
        Some(Box::new(Watched { rules, eye, probes }))
    })
}

/// The rules of a region, and the judge that sees them.
struct Watched {
    rules: Box<dyn GameLogic>,
    eye: Arc<Eye>,
    /// The judge's own commands are drawn from this.
    probes: Rng,
}

impl GameLogic for Watched {
    fn kinds_of_each(&self) -> &[Kind] {
        self.rules.kinds_of_each()
    }

    fn each(&self, region: &Region, entity: Known<'_>, commands: &mut Commands) {
        self.rules.each(region, entity, commands);
    }

    fn closed(&mut self, region: &Region) {
        self.rules.closed(region);
    }

    fn is_at_rest(&self) -> bool {
        self.rules.is_at_rest()
    }

    fn save(&self) -> Vec<u8> {
        self.rules.save()
    }

    fn restore(&mut self, saved: &[u8], has_moved: bool) {
        self.rules.restore(saved, has_moved);
    }

    fn tick(&mut self, region: &Region, events: &[LogicEvent], commands: &mut Commands) {
        let (judge, is_over) = (&self.eye.judge, self.eye.closed.load(Relaxed));
        if !is_over && !judge.is_outdated(region) {
            judge.logic_is_told(region, events);
        }
        self.rules.tick(region, events, commands);
        if is_over {
            return;
        }
        judge.logic_commands(region, commands);
        if self.probes.one_in(4) {
            judge.probe(region, &mut self.probes, commands);
        }
    }
}

impl Judge {
    fn logic_commands(&self, region: &Region, commands: &Commands) {
        if self.is_outdated(region) {
            return;
        }
        self.sees_accounts(region);
        if self.logic == Some(Logic::Workers) {
            return self.worker_commands(region, commands);
        }
        let hits = self.inner().game.hits.commanded(region, commands, self.journal.now());
        self.wrong_in(region, hits);
        for (_, command) in commands.given() {
            if let Command::Despawn(id) = command
                && let Some(monster) = region.known(*id).filter(|e| e.kind == MONSTER && e.is_real)
            {
                self.inner().game.dead.insert(monster.id, When::now_in(region));
            }
        }
    }
}

//! The judge observes every region in every tick, and every frame and input of every client. It reports the first
//! violation of an [`Invariant`].
//!
//! Regions report through an [`Eye`] of their process, clients through `sights`. `quiescence` is checked at rest. The judge
//! never changes what it observes.

mod actions;
mod client;
mod excuses;
mod game;
mod invariant;
mod lingering;
mod messages;
mod portals;
mod quiescence;
mod rules;
mod scenes;
mod sessions;
mod sights;
mod things;
mod trails;
mod unseen;
mod walls;
mod workers;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use purview::actor::directory::Observer;
use purview::scene::inspect::ActingPlayer;
use purview::scene::{EntityId, Epoch, Region, RegionId, Scene, SceneId, Seq, Tick};
use purview_server::config::{Config, ConfigErrors};
use rustc_hash::FxHashMap;

use super::Logic;
use super::journal::{Journal, What};
use super::network::Host;
pub use client::Client;
pub use game::watched_game;
pub use invariant::{Invariant, Violation};
pub use lingering::LINGER_MS;
use portals::portals_take_once;
pub use rules::{Floor, PlacedAt, Scope};
use rules::{input_order, old_ghosts, one_authority, one_real};
pub use sessions::{WALKER, claims_of};
use trails::Trail;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acting {
    pub player: ActingPlayer,
    pub scene: SceneId,
    pub region: RegionId,
    pub region_epoch: Epoch,
    /// The process: its host, and its number among the processes of that host.
    pub process: (Host, u64),
    pub tick: Tick,
    pub at: Duration,
}

impl Acting {
    fn place(&self) -> PlacedAt {
        let ActingPlayer { plane, pos, .. } = self.player;
        (Floor { scene: self.scene, plane }, pos)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Authority {
    epoch: Epoch,
    process: (Host, u64),
    tick: Tick,
    at: Duration,
}

/// What is wrong: the entities concerned, and a text.
type Wrong = (Invariant, Vec<EntityId>, String);

/// A process, and what the store has granted to others behind its back: one region and epoch, or everything.
type DoubleGrant = ((Host, u64), Option<(RegionId, Epoch)>);

#[derive(Default)]
struct Inner {
    regions: BTreeMap<RegionId, Authority>,
    acting: BTreeMap<EntityId, Acting>,
    npcs: BTreeSet<EntityId>,
    trails: FxHashMap<EntityId, Trail>,
    moved: FxHashMap<EntityId, Duration>,
    /// The last recovery of an entity from an older state, after a crash.
    recovered: FxHashMap<EntityId, Duration>,
    clients: BTreeMap<EntityId, Client>,
    /// The first one.
    violation: Option<Violation>,
    /// Actions that clients were not shown, and those of which their players were told.
    missed: VecDeque<actions::Missed>,
    unconfirmed: BTreeSet<(EntityId, u64)>,

    acts_said: FxHashMap<(EntityId, u64), Duration>,
    /// The players whose pair registers the journal notes.
    asked: Vec<EntityId>,
    /// Until then views may lose entities that stay near.
    excused: Duration,
    /// Until then messages may be late, or lost with a process.
    cut: Duration,
    checkpoints_lost: Option<Duration>,
    without_checkpoints: Vec<(Duration, Duration)>,
    /// The double grants, and until when the first process may act all the same.
    double_granted: BTreeMap<DoubleGrant, Duration>,
    frames: u64,
    inputs: u64,
    game: game::Game,
    workers: workers::Answers,
    messages: messages::Messages,
    accounts: sessions::Accounts,
    lingering: lingering::Lingering,
    walls: walls::Walls,
    relations: scenes::Relations,
    things: things::Things,
    lives: u64,
}

impl Inner {
    /// Whether the entity recovers, or is about to: the region that acted for it last has a new owner.
    fn is_to_recover(&self, id: EntityId) -> bool {
        let acting = self.acting.get(&id);
        let owner = acting.and_then(|a| Some((a.region_epoch, self.regions.get(&a.region)?)));
        owner.is_some_and(|(epoch, owner)| owner.epoch > epoch)
    }

    /// Whether the store has granted a region and epoch of this process to others without telling the process.
    fn is_double_granted(
        &self,
        now: Duration,
        process: (Host, u64),
        one: (RegionId, Epoch),
    ) -> bool {
        let is = |what| self.double_granted.get(&(process, what)).is_some_and(|until| now < *until);
        !self.double_granted.is_empty() && (is(None) || is(Some(one)))
    }
}

pub struct Judge {
    journal: Journal,
    scope: Scope,
    /// Where regions run a game: within which radii monsters sight and lose players.
    watch_cm: Option<(i32, i32)>,
    logic: Option<Logic>,
    portals: Vec<Arc<Scene>>,
    /// The side of a tile, if kinds of entities block the way, centimetres.
    wall_cm: Option<i32>,
    /// The radii of kinds that are no players, where logic limits sights.
    circles: things::Circles,
    inner: Mutex<Inner>,
}

/// The time in which processes find each other: a region asks again for what it missed before there was a connection.
const STARTS: Duration = Duration::from_secs(10);

/// The greatest age of ghosts while every link works, ticks.
const STALEST_GHOST: u64 = 1;

/// The greatest age of ghosts at any time, ticks: the time for which regions keep ghosts of a silent neighbour, and one.
const EXPIRED_GHOST: u64 = 31;

/// How long after a teleport, a join or a fault a client may be told that a near entity has left.
const EXCUSE: Duration = Duration::from_secs(8);

const TICK: Duration = Duration::from_millis(100);

/// How late a client may be shown the messages of an owner that has crashed.
const LATE: Duration = Duration::from_secs(3);

/// How late a process may receive the news of the store.
const LINK_TIME: Duration = Duration::from_secs(2);

/// How far an entity may move while a client's view is late, centimetres.
const SLACK_CM: i32 = 600;

impl Judge {
    pub fn new(journal: Journal, scope: Scope) -> Judge {
        Judge {
            journal,
            scope,
            watch_cm: None,
            logic: None,
            portals: Vec::new(),
            wall_cm: None,
            circles: Vec::new(),
            inner: Mutex::default(),
        }
    }

    /// The same of scenes of this configuration, where regions have these rules, and monsters sight and lose players
    /// within these radii, centimetres.
    pub fn of_game(
        self,
        (logic, watch_cm): (Option<Logic>, (i32, i32)),
        config: &Config,
    ) -> Result<Judge, ConfigErrors> {
        let watch_cm = logic.is_some_and(Logic::is_game).then_some(watch_cm);
        let mut specs = config.scenes.iter().map(|scene| &scene.spec);
        let has_portals = specs.clone().any(|spec| !spec.portals.is_empty());
        let portals = if has_portals { config.build_scenes()? } else { Vec::new() };
        let limited = (logic == Some(Logic::Sights)).then(|| specs.clone().next()).flatten();
        let circles = limited.map(things::circles).unwrap_or_default();
        let walled = specs.find(|spec| spec.kinds.iter().any(|kind| kind.blocks));
        let wall_cm = walled.map(|spec| spec.moves.tile_cm);
        Ok(Judge { watch_cm, logic, portals, wall_cm, circles, ..self })
    }

    pub fn has_game(&self) -> bool {
        self.watch_cm.is_some()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    pub fn violation(&self) -> Option<Violation> {
        self.inner().violation.clone()
    }

    /// The numbers of frames and inputs so far.
    pub fn counts(&self) -> (u64, u64) {
        let inner = self.inner();
        (inner.frames, inner.inputs)
    }

    pub fn violated(&self, invariant: Invariant, who: Vec<EntityId>, text: String) {
        let violation =
            Violation { invariant, step: self.journal.steps(), at: self.journal.now(), who, text };
        self.inner().violation.get_or_insert(violation);
    }

    fn check(&self, invariant: Invariant, who: &[EntityId], result: Result<(), String>) {
        self.wrong_if(result.map_err(|text| (invariant, who.to_vec(), text)));
    }

    fn wrong_if(&self, result: Result<(), Wrong>) {
        if let Err((invariant, who, text)) = result {
            self.violated(invariant, who, text);
        }
    }

    fn wrong_in(&self, region: &Region, result: Result<(), Wrong>) {
        self.wrong_if(result.map_err(|(invariant, who, text)| {
            let (id, tick) = (region.id(), region.current_tick());
            (invariant, who, format!("region {id} in tick {tick}: {text}"))
        }));
    }

    fn acted(&self, process: (Host, u64), region: &Region) {
        let (id, epoch, tick) = (region.id(), region.epoch(), region.current_tick());
        let at = self.journal.now();
        self.note_positions(region);
        let before = self.inner().regions.get(&id).copied();
        let superseded = before.is_some_and(|before| epoch < before.epoch);
        if superseded && self.inner().is_double_granted(at, process, (id, epoch)) {
            return;
        }
        self.check(
            Invariant::OneAuthority,
            &[],
            one_authority(before.as_ref(), epoch, process)
                .map_err(|text| format!("region {id}: {text}")),
        );
        let is_new = before.is_none_or(|before| (before.epoch, before.process) != (epoch, process));
        if is_new {
            self.journal.note(What::Authority { region: id, epoch, host: process.0, tick });
            let died =
                before.filter(|before| before.process != process && region.lost_since().is_some());
            self.inner().game.dead_processes.extend(died.map(|before| before.process));
        }
        self.inner().regions.insert(id, Authority { epoch, process, tick, at });
        // A region that waits for a neighbour has not published this tick yet.
        let judged = region.is_closed() && at >= self.inner().excused.max(STARTS);
        for old in region.ghosts_older_than(STALEST_GHOST).filter(|_| judged) {
            let text = old_ghosts((id, tick), old, STALEST_GHOST);
            self.violated(Invariant::GhostAge, Vec::new(), text);
        }
        let gone = region.ghosts_silent_for(EXPIRED_GHOST).filter(|_| region.is_closed());
        for old in gone {
            let text = old_ghosts((id, tick), old, EXPIRED_GHOST);
            self.violated(Invariant::GhostAge, Vec::new(), text);
        }
        self.tell_registers(region);
        match self.logic {
            Some(Logic::Workers) if !region.is_recovering() => self.actions_applied(region),
            Some(Logic::Messages) => {
                self.messages_due(region, is_new);
                self.inner().relations.note(region);
            }
            Some(Logic::Sessions | Logic::Linger) => self.inner().accounts.acts(region),
            Some(Logic::Sights) => self.limits_last(region),
            _ => {}
        }
        if self.has_game() {
            self.game_acted(region);
        }
        if self.wall_cm.is_some() {
            self.inner().walls.note(process, region);
        }
        let scene = region.scene_id();
        let acting =
            |player| Acting { player, scene, region: id, region_epoch: epoch, process, tick, at };
        for player in region.acting_players() {
            self.entity_acted(acting(player));
        }
        for (beast, under, (plane, pos)) in region.acting_others() {
            self.inner().npcs.insert(beast);
            let last_applied = Seq::default();
            let player =
                ActingPlayer { id: beast, epoch: under, plane, pos, last_applied, session: None };
            self.entity_acted(acting(player));
        }
    }

    pub fn regions(&self) -> usize {
        self.inner().regions.len()
    }

    /// From now on the journal notes the pair registers of these players.
    pub fn ask_registers(&self, who: &[EntityId]) {
        self.inner().asked = who.to_vec();
    }

    /// Notes the positions of all entities that act here or were just handed off.
    fn note_positions(&self, region: &Region) {
        let here = region.acting_players().map(|player| (player.id, player.epoch, player.pos));
        let mut inner = self.inner();
        for (id, epoch, pos) in here.chain(region.handed_over()) {
            inner.trails.entry(id).or_default().note(epoch, pos);
        }
    }

    fn tell_registers(&self, region: &Region) {
        let asked = self.inner().asked.clone();
        if asked.is_empty() {
            return;
        }
        for (id, mut peers) in region.inspect_registers() {
            peers.retain(|peer| asked.contains(&peer.id));
            if asked.contains(&id) {
                let text = format!("in region {} {peers:?}", region.id());
                self.journal.note(What::Registers(id, text));
            }
        }
    }

    /// A portal takes a player that walks into it, and no player walks into a wall.
    fn keeps_off(&self, id: EntityId, before: &Acting, now: &Acting) {
        let inner = self.inner();
        if inner.npcs.contains(&id) {
            return;
        }
        // A client may teleport by less than a step; and its teleport is applied once more after a recovery.
        let teleported = |client: &Client| {
            let applied = (before.player.last_applied, now.player.last_applied);
            let is_applied = applied.0 < client.teleported_by && client.teleported_by <= applied.1;
            is_applied || now.at.saturating_sub(client.teleported_at) < EXCUSE
        };
        let was_put = inner.clients.get(&id).is_some_and(teleported);
        let tile_cm = self.wall_cm.filter(|_| !was_put);
        let enters = tile_cm.map_or(Ok(()), |tile_cm| inner.walls.check(before, now, tile_cm));
        drop(inner);
        self.check(Invariant::TilesHeld, &[id], enters);
        if !self.portals.is_empty() {
            let taken = portals_take_once(before, now, was_put, &self.portals);
            self.check(Invariant::PortalTakes, &[id], taken);
        }
    }

    fn entity_acted(&self, now: Acting) {
        let (id, process) = (now.player.id, now.process);
        let before = {
            let mut inner = self.inner();
            // A process counts no more where another one, to which the store granted it too, acts for the entity.
            let double_granted =
                inner.is_double_granted(now.at, process, (now.region, now.region_epoch));
            let others = |before: &Acting| before.process != process;
            if double_granted && inner.acting.get(&id).is_some_and(others) {
                return;
            }
            inner.acting.insert(id, now)
        };
        let place = |a: &Acting| (a.region, a.region_epoch, a.process, a.player.epoch);
        if let Some(before) = &before {
            self.check(Invariant::OneReal, &[id], one_real(before, &now));
            self.keeps_off(id, before, &now);
            self.check(Invariant::InputOrder, &[id], input_order(&before.player, &now.player));
            if before.region != now.region {
                self.inner().moved.insert(id, now.at);
            }
            if before.player.epoch.is_of_a_life_before(now.player.epoch) {
                self.inner().recovered.insert(id, now.at);
            }
        }
        if before.is_none_or(|before| place(&before) != place(&now)) {
            self.journal.note(What::Owner {
                id,
                epoch: now.player.epoch,
                region: now.region,
                region_epoch: now.region_epoch,
                host: process.0,
                tick: now.tick,
                applied: now.player.last_applied,
            });
        }
    }
}

/// The judge's view of one process. Its regions report to it.
pub struct Eye {
    pub judge: Arc<Judge>,
    pub process: (Host, u64),
    /// The process has ended; what its actors do while they stop does not count.
    pub closed: AtomicBool,
    /// The cost of a player in a tick, microseconds, where loads are simulated.
    pub player_us: Option<u64>,
}

impl fmt::Debug for Eye {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Eye({:?})", self.process)
    }
}

impl Observer for Eye {
    fn acted(&self, region: &Region) {
        if !self.closed.load(Relaxed) {
            self.judge.acted(self.process, region);
        }
    }

    fn tick_over(&self, region: &Region) {
        if self.closed.load(Relaxed) {
            return;
        }
        if self.judge.has_game() {
            self.judge.game_tick_over(region);
        }
        if self.judge.logic == Some(Logic::Sights) {
            self.judge.looks(region);
        }
    }

    fn cost_us(&self, region: &Region) -> Option<u64> {
        let counts = region.counts();
        Some(self.player_us? * (10 * counts.players + 7 * counts.ghosts) / 10)
    }
}

#[cfg(test)]
mod tests;

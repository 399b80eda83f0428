//! What must always hold, and who notices when it does not.
//!
//! | name | what must hold |
//! |---|---|
//! | `OneReal` | of an entity at most one acts: of two places the one of the newer epoch, from its first tick on |
//! | `OneAuthority` | of a region one process acts under each epoch, and none under an older one than has acted |
//! | `InputOrder` | inputs are applied in order and once, within a life of the entity |
//! | `ActOrder` | nobody is shown an act of a player twice or after a later one |
//! | `ActHeard` | who is shown somebody is shown all of its acts, but for what a fault costs |
//! | `AckHolds` | what was acknowledged to a client stays applied |
//! | `ViewSound` | no client is told that somebody comes who is there, or goes or moves who is not |
//! | `PlaceOrder` | nobody is shown a player where it never was, or where it was before the place that was shown last |
//! | `ViewContinuity` | nobody who stays near is told to be gone |
//! | `ViewCap` | no client is shown more players than the cap allows |
//! | `ClientStays` | no client loses its player |
//! | `GhostAge` | ghosts are no older than a tick while every link is up, and gone when nothing was heard for 31 |
//! | `Quiescence` | when nothing happens any more everybody is where it wants to be, and shown exactly to those near |
//! | `Bounded` | what waits for a peer stays within its bound |

mod client;
mod rules;
mod sights;
mod trails;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use purview::actor::directory::Witness;
use purview::scene::inspect::ActingPlayer;
use purview::scene::{EntityId, Epoch, Region, RegionId, SceneId, Seq, Tick};
use rustc_hash::FxHashMap;

use super::journal::{Journal, What};
use super::network::Host;
pub use client::Client;
pub use rules::{Floor, Place, Scope};
use rules::{
    input_order, old_ghosts, one_authority, one_real, overlap, shown_are_near, views_are_stable,
};
use trails::Trails;

/// The invariants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Invariant {
    /// See the module.
    OneReal,
    /// See the module.
    OneAuthority,
    /// See the module.
    InputOrder,
    /// See the module.
    ActOrder,
    /// See the module.
    ActHeard,
    /// See the module.
    AckHolds,
    /// See the module.
    ViewSound,
    /// See the module.
    PlaceOrder,
    /// See the module.
    ViewContinuity,
    /// See the module.
    ViewCap,
    /// See the module.
    GhostAge,
    /// See the module.
    ClientStays,
    /// See the module.
    Quiescence,
    /// See the module.
    Bounded,
}

/// Something that must not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// What should have held.
    pub invariant: Invariant,
    /// The step after which it was noticed.
    pub step: u64,
    /// When: time since the beginning.
    pub at: Duration,
    /// Whom it concerns.
    pub who: Vec<EntityId>,
    /// What was seen.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { invariant, step, at, text, .. } = self;
        write!(f, "{invariant:?} at step {step} ({:.3} s): {text}", at.as_secs_f64())
    }
}

/// A place where an entity acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acting {
    /// The entity as it is there.
    pub player: ActingPlayer,
    /// The scene.
    pub scene: SceneId,
    /// The region.
    pub region: RegionId,
    /// The region's epoch.
    pub region_epoch: Epoch,
    /// The process: a host, and which of its lives.
    pub process: (Host, u64),
    /// The tick in which it acted last.
    pub tick: Tick,
    /// When that was.
    pub at: Duration,
}

impl Acting {
    /// Where it is.
    fn place(&self) -> Place {
        let ActingPlayer { plane, pos, .. } = self.player;
        (Floor { scene: self.scene, plane }, pos)
    }
}

/// Who acts for a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Authority {
    epoch: Epoch,
    process: (Host, u64),
    tick: Tick,
    at: Duration,
}

/// A process, and what others have of it: a region that it holds under an epoch, or all.
type Betrayal = ((Host, u64), Option<(RegionId, Epoch)>);

#[derive(Default)]
struct Inner {
    regions: BTreeMap<RegionId, Authority>,
    acting: BTreeMap<EntityId, Acting>,
    /// Which of these no client steers.
    beasts: BTreeSet<EntityId>,
    trails: Trails,
    /// When a player has last come to another region.
    moved: FxHashMap<EntityId, Duration>,
    /// When an entity has last gone on from what was known of it before a death.
    reborn: FxHashMap<EntityId, Duration>,
    clients: BTreeMap<EntityId, Client>,
    violations: Vec<Violation>,
    /// Whose registers are to be told in the journal.
    asked: Vec<EntityId>,
    /// Until when views may be torn.
    excused: Duration,
    /// When checkpoints were lost last.
    shelf_lost: Option<Duration>,
    /// From when to when none could be kept.
    unkept: Vec<(Duration, Duration)>,
    /// Where the store has not told that others have what somebody holds, and until when that one may act all the same.
    betrayed: BTreeMap<Betrayal, Duration>,
    frames: u64,
    inputs: u64,
}

impl Inner {
    /// Whether the region that acted for an entity last has another owner by now, and the entity goes on from a checkpoint of
    /// that one's, or is about to.
    fn is_to_be_reborn(&self, id: EntityId) -> bool {
        let acting = self.acting.get(&id);
        let owner = acting.and_then(|a| Some((a.region_epoch, self.regions.get(&a.region)?)));
        owner.is_some_and(|(epoch, owner)| owner.epoch > epoch)
    }

    /// Whether the store has not told a process that others have a region that it holds under this epoch.
    fn is_betrayed(&self, now: Duration, process: (Host, u64), one: (RegionId, Epoch)) -> bool {
        let is = |what| self.betrayed.get(&(process, what)).is_some_and(|until| now < *until);
        !self.betrayed.is_empty() && (is(None) || is(Some(one)))
    }
}

/// Sees everything.
pub struct Judge {
    journal: Journal,
    scope: Scope,
    inner: Mutex<Inner>,
}

/// Until then processes find each other: what a region said before there was a connection is asked for.
const STARTS: Duration = Duration::from_secs(10);

/// How many ticks old ghosts may be while every link is up.
const STALEST_GHOST: u64 = 1;

/// How many ticks after a neighbour's last word there may be ghosts of it, whatever is broken: those that regions keep them
/// for, and one.
const EXPIRED_GHOST: u64 = 31;

/// After a jump, a join or a fault, for how long it may be that who is near is told to be gone.
const EXCUSE: Duration = Duration::from_secs(8);

/// A tick of the scene.
const TICK: Duration = Duration::from_millis(100);

/// How late a client may be shown what an owner of a life before has said.
const LATE: Duration = Duration::from_secs(3);

/// After how long a process has heard what the store tells it.
const HEARS: Duration = Duration::from_secs(2);

/// Ways to go in the time by which a client's picture may be late, centimetres.
const SLACK_CM: i32 = 600;

/// How long an entity or region that should act may take between two ticks at rest.
const FRESH: Duration = Duration::from_millis(1_500);

impl Judge {
    /// Nothing was seen yet.
    pub fn new(journal: Journal, scope: Scope) -> Judge {
        Judge { journal, scope, inner: Mutex::default() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first thing that must not be.
    pub fn violation(&self) -> Option<Violation> {
        self.inner().violations.first().cloned()
    }

    /// Frames and inputs so far.
    pub fn counts(&self) -> (u64, u64) {
        let inner = self.inner();
        (inner.frames, inner.inputs)
    }

    /// Something is not as it must be.
    pub fn violated(&self, invariant: Invariant, who: Vec<EntityId>, text: String) {
        let violation =
            Violation { invariant, step: self.journal.steps(), at: self.journal.now(), who, text };
        self.inner().violations.push(violation);
    }

    fn check(&self, invariant: Invariant, who: &[EntityId], result: Result<(), String>) {
        if let Err(text) = result {
            self.violated(invariant, who.to_vec(), text);
        }
    }

    /// For a while it may be that who is near is told to be gone.
    pub fn excuse(&self, lasts: Duration) {
        let until = self.journal.now() + lasts + EXCUSE;
        let mut inner = self.inner();
        inner.excused = inner.excused.max(until);
    }

    /// From now on it may not, but for what has just leapt.
    pub fn excuse_no_more(&self) {
        self.inner().excused = self.journal.now();
    }

    /// Checkpoints are lost, old or torn.
    pub fn checkpoints_are_lost(&self) {
        self.inner().shelf_lost = Some(self.journal.now());
    }

    /// For so long no checkpoints are kept.
    pub fn checkpoints_wait(&self, lasts: Duration) {
        let now = self.journal.now();
        self.inner().unkept.push((now, now + lasts));
    }

    /// For how much of the time since then no checkpoints were kept.
    pub fn unkept_since(&self, elapsed: Duration) -> Duration {
        let now = self.journal.now();
        overlap(&self.inner().unkept, (now.saturating_sub(elapsed), now))
    }

    /// Whether nobody may know a player any more whose session was lost this long ago: checkpoints were, too.
    pub fn may_be_forgotten(&self, since: Duration) -> bool {
        let (inner, now) = (self.inner(), self.journal.now());
        inner.shelf_lost.is_some_and(|at| now.saturating_sub(at) <= since + EXCUSE)
    }

    /// The store has granted to others what this process holds, and has not told it: it may act on until its end, and nobody
    /// may believe it any more where another one acts.
    pub fn betrayed(&self, process: (Host, u64)) {
        self.inner().betrayed.insert((process, None), Duration::MAX);
    }

    /// The same with one region that it has under this epoch, of which it is told after so long.
    pub fn betrayed_once(&self, process: (Host, u64), one: (RegionId, Epoch), lasts: Duration) {
        let until = self.journal.now() + lasts + HEARS;
        self.inner().betrayed.insert((process, Some(one)), until);
    }

    fn acted(&self, process: (Host, u64), region: &Region) {
        let (id, epoch, tick) = (region.id(), region.epoch(), region.current_tick());
        let at = self.journal.now();
        self.note_places(region);
        let before = self.inner().regions.get(&id).copied();
        let deposed = before.is_some_and(|before| epoch < before.epoch);
        if deposed && self.inner().is_betrayed(at, process, (id, epoch)) {
            return;
        }
        self.check(
            Invariant::OneAuthority,
            &[],
            one_authority(before.as_ref(), epoch, process)
                .map_err(|text| format!("region {id}: {text}")),
        );
        if before.is_none_or(|before| (before.epoch, before.process) != (epoch, process)) {
            self.journal.note(What::Authority { region: id, epoch, host: process.0, tick });
        }
        self.inner().regions.insert(id, Authority { epoch, process, tick, at });
        // One that waits for a neighbour has not told anybody of this tick yet.
        let judged = region.is_closed() && at >= self.inner().excused.max(STARTS);
        for old in region.ghosts_older_than(STALEST_GHOST).filter(|_| judged) {
            let text = old_ghosts((id, tick), old, STALEST_GHOST);
            self.violated(Invariant::GhostAge, Vec::new(), text);
        }
        let gone = region.ghosts_unheard_for(EXPIRED_GHOST).filter(|_| region.is_closed());
        for old in gone {
            let text = old_ghosts((id, tick), old, EXPIRED_GHOST);
            self.violated(Invariant::GhostAge, Vec::new(), text);
        }
        self.tell_registers(region);
        let scene = region.scene_id();
        let acting =
            |player| Acting { player, scene, region: id, region_epoch: epoch, process, tick, at };
        for player in region.acting_players() {
            self.entity_acted(acting(player));
        }
        for (beast, under, (plane, pos)) in region.acting_others() {
            self.inner().beasts.insert(beast);
            let last_applied = Seq::default();
            let player =
                ActingPlayer { id: beast, epoch: under, plane, pos, last_applied, session: None };
            self.entity_acted(acting(player));
        }
    }

    /// From now on the journal tells what some players have agreed on with each other.
    pub fn ask_registers(&self, who: &[EntityId]) {
        self.inner().asked = who.to_vec();
    }

    /// Where all are that act here, or have just gone on from here.
    fn note_places(&self, region: &Region) {
        let here = region.acting_players().map(|player| (player.id, player.epoch, player.pos));
        let mut inner = self.inner();
        for (id, epoch, pos) in here.chain(region.handed_over()) {
            inner.trails.note(id, epoch, pos);
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

    fn entity_acted(&self, now: Acting) {
        let (id, process) = (now.player.id, now.process);
        let before = {
            let mut inner = self.inner();
            // The store has granted to others what it holds: where one of these has the entity it acts for nobody.
            let betrayed = inner.is_betrayed(now.at, process, (now.region, now.region_epoch));
            let others = |before: &Acting| before.process != process;
            if betrayed && inner.acting.get(&id).is_some_and(others) {
                return;
            }
            inner.acting.insert(id, now)
        };
        let place = |a: &Acting| (a.region, a.region_epoch, a.process, a.player.epoch);
        if let Some(before) = &before {
            self.check(Invariant::OneReal, &[id], one_real(before, &now));
            self.check(Invariant::InputOrder, &[id], input_order(&before.player, &now.player));
            if before.region != now.region {
                self.inner().moved.insert(id, now.at);
            }
            if before.player.epoch.is_of_a_life_before(now.player.epoch) {
                self.inner().reborn.insert(id, now.at);
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

    /// Somebody has joined, or is back after its connection broke.
    pub fn joined(&self, id: EntityId, place: Place, acked: Seq) {
        let leapt = self.journal.now();
        let mut inner = self.inner();
        let client = inner.clients.entry(id).or_default();
        (client.place, client.acked, client.leapt) = (place, acked, leapt);
    }

    /// Whether an entity has gone on from what was known of it before a death, in a time until now, or just before; or is
    /// about to, in a region that has another owner than the one that acted for it last.
    pub fn is_reborn(&self, id: EntityId, within: Duration) -> bool {
        let (inner, now) = (self.inner(), self.journal.now());
        inner.is_to_be_reborn(id)
            || inner.reborn.get(&id).is_some_and(|at| now.saturating_sub(*at) <= within + LATE)
    }

    /// A client is told where it stands.
    pub fn placed(&self, id: EntityId, place: Place) {
        if let Some(client) = self.inner().clients.get_mut(&id) {
            client.place = place;
        }
    }

    /// A client is about to leave: others may be told so before it is.
    pub fn leaves(&self, id: EntityId) {
        let now = self.journal.now();
        if let Some(client) = self.inner().clients.get_mut(&id) {
            client.leapt = now;
        }
    }

    /// A client is no more: it has left, or has lost its player.
    pub fn gone(&self, id: EntityId) {
        self.inner().clients.remove(&id);
    }

    /// A client's connection is broken, or stands again.
    pub fn away(&self, id: EntityId, away: bool) {
        if let Some(client) = self.inner().clients.get_mut(&id) {
            client.away = away;
        }
    }

    /// A client has said an input, which puts it somewhere; with `leaps` it may see others then.
    pub fn said(&self, id: EntityId, seq: Seq, place: Place, leaps: bool) {
        let now = self.journal.now();
        let mut inner = self.inner();
        inner.inputs += 1;
        if let Some(client) = inner.clients.get_mut(&id) {
            (client.said, client.place) = (seq, place);
            if leaps {
                client.leapt = now;
            }
        }
    }

    /// What is not as it should be when everybody stands still, on a scene that is cut into these regions.
    pub fn unsettled(&self, regions: &[RegionId]) -> Option<(Vec<EntityId>, String)> {
        let (inner, now) = (self.inner(), self.journal.now());
        let fresh = |at: Duration| now.saturating_sub(at) <= FRESH;
        let acts = |id| inner.regions.get(id).is_some_and(|authority| fresh(authority.at));
        if let Some(id) = regions.iter().find(|id| !acts(*id)) {
            let last = inner.regions.get(id);
            return Some((Vec::new(), format!("region {id} does not act: {last:?}")));
        }
        // Nobody presents beasts: one that had come since the last checkpoint is gone where that is lost.
        let lives = |id: &&EntityId| inner.acting.get(id).is_some_and(|acting| fresh(acting.at));
        let gone = inner.beasts.iter().find(|id| !lives(id));
        if let Some(id) = gone.filter(|_| inner.shelf_lost.is_none()) {
            let last = inner.acting.get(id);
            return Some((vec![*id], format!("the beast {id} acts nowhere: {last:?}")));
        }
        let mut all = BTreeMap::new();
        let players = inner.acting.iter().filter(|(id, _)| !inner.beasts.contains(id));
        for (id, acting) in players.filter(|(_, acting)| fresh(acting.at)) {
            if !inner.clients.contains_key(id) {
                let text = format!("{id} has no client and is still there: {acting:?}");
                return Some((vec![*id], text));
            }
            all.insert(*id, acting.place());
        }
        let unsettled = inner.clients.iter().find_map(|(id, client)| {
            self.client_unsettled(*id, client, &inner, &all).err().map(|(other, text)| {
                let other = other.filter(|other| other != id);
                (std::iter::once(*id).chain(other).collect(), text)
            })
        });
        if unsettled.is_some() {
            return unsettled;
        }
        let shown = |client: &Client| client.shown(&inner.trails);
        let shown = inner.clients.iter().map(|(id, client)| (*id, shown(client))).collect();
        let stable = views_are_stable(&shown, &all, &self.scope);
        stable.err().map(|(one, other, text)| (vec![one, other], text))
    }

    fn client_unsettled(
        &self,
        id: EntityId,
        client: &Client,
        inner: &Inner,
        all: &BTreeMap<EntityId, Place>,
    ) -> Result<(), (Option<EntityId>, String)> {
        if client.away {
            return Err((None, format!("{id} has no connection")));
        }
        if !all.contains_key(&id) {
            return Err((None, format!("{id} acts nowhere")));
        }
        let acting = &inner.acting[&id];
        let applied = acting.player.last_applied;
        if applied != client.said || client.acked != client.said {
            let Client { said, acked, .. } = client;
            let text = format!("{id} has said {said}, {applied} is applied, {acked} acknowledged");
            return Err((None, text));
        }
        let place = acting.place();
        if place != client.place {
            return Err((None, format!("{id} is at {place:?}, not at {:?}", client.place)));
        }
        shown_are_near((id, place), &client.shown(&inner.trails), all, &self.scope)
            .map_err(|(other, text)| (Some(other), text))
    }

    /// What was acknowledged stays applied, whoever owns the entity by now. To be asked at rest.
    pub fn acks_hold(&self) {
        let inner = self.inner();
        let lost = inner.clients.iter().find_map(|(id, client)| {
            let applied = inner.acting.get(id)?.player.last_applied;
            (applied < client.acked).then_some((*id, applied, client.acked))
        });
        drop(inner);
        if let Some((id, applied, acked)) = lost {
            let text = format!("{id} was told that {acked} is applied; it is {applied}");
            self.violated(Invariant::AckHolds, vec![id], text);
        }
    }
}

/// What the judge sees of one process, while that lives.
pub struct Eye {
    /// Who judges.
    pub judge: Arc<Judge>,
    /// The process.
    pub process: (Host, u64),
    /// It is no more: what its actors do while they are taken down is heard by nobody.
    pub closed: AtomicBool,
}

impl fmt::Debug for Eye {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Eye({:?})", self.process)
    }
}

impl Witness for Eye {
    fn acted(&self, region: &Region) {
        if !self.closed.load(Relaxed) {
            self.judge.acted(self.process, region);
        }
    }
}

#[cfg(test)]
mod tests;

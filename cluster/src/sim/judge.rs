//! What must always hold, and who notices when it does not.
//!
//! | name | what must hold |
//! |---|---|
//! | `OneReal` | of an entity at most one acts: of two places the one of the newer epoch, from its first tick on |
//! | `OneAuthority` | of a region one process acts under each epoch, and none under an older one than has acted |
//! | `InputOrder` | inputs are applied in order and once, within a life of the entity |
//! | `ActOrder` | nobody is shown an act of a player twice or after a later one |
//! | `AckHolds` | what was acknowledged to a client stays applied |
//! | `ViewSound` | no client is told that somebody comes who is there, or goes or moves who is not |
//! | `ViewContinuity` | nobody who stays near is told to be gone |
//! | `ClientStays` | no client loses its player |
//! | `Quiescence` | when nothing happens any more everybody is where it wants to be, and shown exactly to those near |
//! | `Bounded` | what waits for a peer stays within its bound |

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use purview::actor::directory::Witness;
use purview::scene::inspect::ActingPlayer;
use purview::scene::{EntityId, Epoch, Pos, Region, RegionId, Seq, Tick};
use purview::wire::Frame;

use super::journal::{Journal, What};
use super::net::Host;

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
    AckHolds,
    /// See the module.
    ViewSound,
    /// See the module.
    ViewContinuity,
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

/// Who acts for a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Authority {
    epoch: Epoch,
    process: (Host, u64),
    tick: Tick,
    at: Duration,
    /// It has no ground any more, and may end.
    given_up: bool,
}

/// Which process speaks for a region: a newer epoch than that of whoever spoke before, or the same process.
fn one_authority(
    before: Option<&Authority>,
    epoch: Epoch,
    process: (Host, u64),
) -> Result<(), String> {
    let Some(before) = before else { return Ok(()) };
    match epoch.cmp(&before.epoch) {
        Ordering::Greater => Ok(()),
        Ordering::Equal if process == before.process => Ok(()),
        _ => Err(format!(
            "{process:?} acts under epoch {epoch}; {:?} has acted under {} in tick {}",
            before.process, before.epoch, before.tick
        )),
    }
}

/// Who acts for an entity: what goes before by its epoch, then by the region's, or the same one.
fn one_real(before: &Acting, now: &Acting) -> Result<(), String> {
    let same_region = now.region == before.region;
    let goes_on = match now.region_epoch.cmp(&before.region_epoch) {
        Ordering::Greater => same_region,
        Ordering::Equal => same_region && now.process == before.process,
        Ordering::Less => false,
    };
    let epoch = now.player.epoch.cmp(&before.player.epoch);
    if epoch == Ordering::Greater || (epoch == Ordering::Equal && goes_on) {
        return Ok(());
    }
    let place = |a: &Acting| {
        format!(
            "in region {} of {:?} under {} (region's {}), tick {}",
            a.region, a.process, a.player.epoch, a.region_epoch, a.tick
        )
    };
    Err(format!("{} acts {}, and acted {}", now.player.id, place(now), place(before)))
}

/// Inputs are applied in order within a life.
fn input_order(before: &ActingPlayer, now: &ActingPlayer) -> Result<(), String> {
    let born_anew = before.epoch.is_of_a_life_before(now.epoch);
    if born_anew || now.last_applied >= before.last_applied {
        return Ok(());
    }
    let (id, back) = (now.id, now.last_applied);
    Err(format!("{id} has applied input {back} after {}", before.last_applied))
}

/// A player's acts are shown in the order in which it did them.
fn act_order(before: Option<u64>, now: u64) -> Result<(), String> {
    match before {
        Some(before) if now <= before => Err(format!("act {now} is shown after act {before}")),
        _ => Ok(()),
    }
}

/// Who is shown to a client is exactly who is near: within `near` certainly, beyond `far` certainly not.
fn shown_are_near(
    me: (EntityId, Pos),
    shown: &BTreeMap<EntityId, Pos>,
    all: &BTreeMap<EntityId, Pos>,
    (near_cm, far_cm): (i32, i32),
) -> Result<(), (EntityId, String)> {
    for (id, pos) in all.iter().filter(|(id, _)| **id != me.0) {
        let far = me.1.dist2(*pos);
        let seen = shown.get(id);
        if seen.is_none() && far <= u64::from(near_cm.unsigned_abs()).pow(2) {
            return Err((*id, format!("{} is not shown {id}, who is near, at {pos:?}", me.0)));
        }
        if seen.is_some_and(|seen| seen != pos) {
            return Err((*id, format!("{} is shown {id} at {seen:?}, not at {pos:?}", me.0)));
        }
        if seen.is_some() && far > u64::from(far_cm.unsigned_abs()).pow(2) {
            return Err((*id, format!("{} is shown {id}, who is far, at {pos:?}", me.0)));
        }
    }
    match shown.keys().find(|id| !all.contains_key(id)) {
        Some(id) => Err((*id, format!("{} is shown {id}, who does not live", me.0))),
        None => Ok(()),
    }
}

/// What the judge knows of a client.
#[derive(Debug, Clone, Default)]
pub struct Client {
    /// Its last input.
    pub said: Seq,
    /// Where that puts it.
    pub pos: Pos,
    /// The last input that was acknowledged.
    pub acked: Seq,
    /// Who is shown to it, and where.
    pub shown: BTreeMap<EntityId, Pos>,
    /// The last act of each that it was shown, and when.
    acts: BTreeMap<EntityId, (u64, Duration)>,
    /// When it has joined or jumped last.
    pub leapt: Duration,
    /// It has no connection.
    pub away: bool,
}

#[derive(Default)]
struct Inner {
    regions: BTreeMap<RegionId, Authority>,
    acting: BTreeMap<EntityId, Acting>,
    /// When an entity has last gone on from what was known of it before a death.
    reborn: BTreeMap<EntityId, Duration>,
    clients: BTreeMap<EntityId, Client>,
    violations: Vec<Violation>,
    /// Whose registers are to be told in the journal.
    asked: Vec<EntityId>,
    /// Until when views may be torn.
    excused: Duration,
    frames: u64,
    inputs: u64,
}

/// Sees everything.
pub struct Judge {
    journal: Journal,
    near_cm: i32,
    far_cm: i32,
    inner: Mutex<Inner>,
}

/// After a jump, a join or a fault, for how long it may be that who is near is told to be gone.
const EXCUSE: Duration = Duration::from_secs(8);

/// For how long an entity has just gone on: so long a client may take to come back to it.
const REBORN: Duration = Duration::from_secs(20);

/// How late a client may be shown what an owner of a life before has said.
const LATE: Duration = Duration::from_secs(3);

/// Ways to go in the time by which a client's picture may be late, centimetres.
const SLACK_CM: i32 = 600;

/// How long an entity or region that should act may take between two ticks at rest.
const FRESH: Duration = Duration::from_millis(1_500);

impl Judge {
    /// Who is nearer than `near_cm` must be shown, who is farther than `far_cm` must not.
    pub fn new(journal: Journal, near_cm: i32, far_cm: i32) -> Judge {
        Judge { journal, near_cm, far_cm, inner: Mutex::default() }
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
        self.inner().excused = Duration::ZERO;
    }

    fn acted(&self, process: (Host, u64), region: &Region) {
        let (id, epoch, tick) = (region.id(), region.epoch(), region.current_tick());
        let given_up = region.is_given_up();
        let at = self.journal.now();
        let before = self.inner().regions.get(&id).copied();
        self.check(
            Invariant::OneAuthority,
            &[],
            one_authority(before.as_ref(), epoch, process)
                .map_err(|text| format!("region {id}: {text}")),
        );
        if before.is_none_or(|before| (before.epoch, before.process) != (epoch, process)) {
            self.journal.note(What::Authority { region: id, epoch, host: process.0, tick });
        }
        self.inner().regions.insert(id, Authority { epoch, process, tick, at, given_up });
        self.tell_registers(region);
        for player in region.acting_players() {
            let now = Acting { player, region: id, region_epoch: epoch, process, tick, at };
            self.entity_acted(now);
        }
    }

    /// From now on the journal tells what some players have agreed on with each other.
    pub fn ask_registers(&self, who: &[EntityId]) {
        self.inner().asked = who.to_vec();
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
        let before = self.inner().acting.insert(id, now);
        let place = |a: &Acting| (a.region, a.region_epoch, a.process, a.player.epoch);
        if let Some(before) = &before {
            self.check(Invariant::OneReal, &[id], one_real(before, &now));
            self.check(Invariant::InputOrder, &[id], input_order(&before.player, &now.player));
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
    pub fn joined(&self, id: EntityId, pos: Pos, acked: Seq) {
        let leapt = self.journal.now();
        let mut inner = self.inner();
        let client = inner.clients.entry(id).or_default();
        (client.pos, client.acked, client.leapt) = (pos, acked, leapt);
    }

    /// Whether an entity has just gone on from what was known of it before a death.
    pub fn is_reborn(&self, id: EntityId) -> bool {
        let (inner, now) = (self.inner(), self.journal.now());
        inner.reborn.get(&id).is_some_and(|at| now.saturating_sub(*at) <= REBORN)
    }

    /// A client is told where it stands.
    pub fn placed(&self, id: EntityId, pos: Pos) {
        if let Some(client) = self.inner().clients.get_mut(&id) {
            client.pos = pos;
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
    pub fn said(&self, id: EntityId, seq: Seq, pos: Pos, leaps: bool) {
        let now = self.journal.now();
        let mut inner = self.inner();
        inner.inputs += 1;
        if let Some(client) = inner.clients.get_mut(&id) {
            (client.said, client.pos) = (seq, pos);
            if leaps {
                client.leapt = now;
            }
        }
    }

    /// A client was shown a frame, after which these are in its view.
    pub fn shown(&self, id: EntityId, frame: &Frame, shown: BTreeMap<EntityId, Pos>) {
        let continuity = match frame.resync {
            true => Ok(()),
            false => frame.leaves.iter().try_for_each(|other| self.may_leave(id, *other)),
        };
        if let Err((other, text)) = continuity {
            self.violated(Invariant::ViewContinuity, vec![id, other], text);
        }
        for act in &frame.acts {
            let Ok(number) = <[u8; 8]>::try_from(&act.payload[..]) else { continue };
            self.act_shown(id, act.id, u64::from_be_bytes(number));
        }
        let mut inner = self.inner();
        inner.frames += 1;
        if let Some(client) = inner.clients.get_mut(&id) {
            client.shown = shown;
            client.acked = client.acked.max(frame.ack);
        }
    }

    fn act_shown(&self, to: EntityId, of: EntityId, number: u64) {
        let result = {
            let mut inner = self.inner();
            let reborn = inner.reborn.get(&of).copied().unwrap_or_default();
            let Some(client) = inner.clients.get_mut(&to) else { return };
            let before = client.acts.insert(of, (number, self.journal.now()));
            // What an owner that died had shown and not acknowledged is done again.
            let before = before.filter(|(_, at)| *at > reborn + LATE);
            act_order(before.map(|(number, _)| number), number)
        };
        let result = result.map_err(|text| format!("{to} sees {of}: {text}"));
        self.check(Invariant::ActOrder, &[to, of], result);
    }

    /// Whether it may be that somebody is told to be gone.
    fn may_leave(&self, me: EntityId, other: EntityId) -> Result<(), (EntityId, String)> {
        let (inner, now) = (self.inner(), self.journal.now());
        let (Some(client), Some(them)) = (inner.clients.get(&me), inner.clients.get(&other)) else {
            return Ok(());
        };
        let recent = |at: Duration| now.saturating_sub(at) < EXCUSE;
        if now < inner.excused || recent(client.leapt) || recent(them.leapt) {
            return Ok(());
        }
        let (Some(a), Some(b)) = (inner.acting.get(&me), inner.acting.get(&other)) else {
            return Ok(());
        };
        let near = u64::from((self.near_cm - SLACK_CM).unsigned_abs()).pow(2);
        let dist2 = a.player.pos.dist2(b.player.pos).max(client.pos.dist2(them.pos));
        if dist2 > near {
            return Ok(());
        }
        let text = format!(
            "{me} at {:?} is told that {other} at {:?} is gone",
            a.player.pos, b.player.pos
        );
        Err((other, text))
    }

    /// What is not as it should be when everybody stands still.
    pub fn unsettled(&self) -> Option<(Vec<EntityId>, String)> {
        let (inner, now) = (self.inner(), self.journal.now());
        let fresh = |at: Duration| now.saturating_sub(at) <= FRESH;
        let mut regions = inner.regions.iter().filter(|(_, authority)| !authority.given_up);
        let asleep = regions.find(|(_, authority)| !fresh(authority.at));
        if let Some((id, authority)) = asleep {
            return Some((Vec::new(), format!("region {id} does not act: {authority:?}")));
        }
        let mut all = BTreeMap::new();
        for (id, acting) in inner.acting.iter().filter(|(_, acting)| fresh(acting.at)) {
            if !inner.clients.contains_key(id) {
                let text = format!("{id} has no client and is still there: {acting:?}");
                return Some((vec![*id], text));
            }
            all.insert(*id, acting.player.pos);
        }
        inner.clients.iter().find_map(|(id, client)| {
            self.client_unsettled(*id, client, &inner, &all).err().map(|(other, text)| {
                let other = other.filter(|other| other != id);
                (std::iter::once(*id).chain(other).collect(), text)
            })
        })
    }

    fn client_unsettled(
        &self,
        id: EntityId,
        client: &Client,
        inner: &Inner,
        all: &BTreeMap<EntityId, Pos>,
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
        if acting.player.pos != client.pos {
            let text = format!("{id} is at {:?}, not at {:?}", acting.player.pos, client.pos);
            return Err((None, text));
        }
        shown_are_near((id, client.pos), &client.shown, all, (self.near_cm, self.far_cm))
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

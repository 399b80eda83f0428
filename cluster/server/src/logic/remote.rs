//! The logic of a region whose rules are those of a worker: in each tick it tells the worker what has happened, and
//! gives the commands that have come since.
//!
//! ```text
//!                       a worker is chosen: Started            push fails, Dropped
//!            Nobody ───────────────────────► Leased ─────────────────────────────► Nobody
//!              ▲                               │ ▲
//!              │  another worker, or none is   │ │ Events each tick; a Batch for each
//!              └───────── chosen: Ended ───────┘ └──────────────────────────────────┘
//! ```
//!
//! It decides alone who has the region, inside the tick. It must never wait: what a worker does not take is dropped,
//! and what a worker does not send is not given.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use purview::scene::messages::{Command, EnterCause, LogicEvent, NumberedCommand};
use purview::scene::mutants::{self, Mutant};
use purview::scene::region::{Commands, GameLogic};
use purview::scene::{EntityId, Epoch, Kind, Region, RegionId, Scene, Tick};
use purview::wire::peer::{LeaseNews, RegionNews, WorkerCommand};
use rustc_hash::FxHashSet;
use tokio::sync::mpsc;

use super::acks::{Acks, plane_reason, reason};
use super::acts::Acts;
use super::counted::Counted;
use super::events;
use super::hub::Hub;
use super::inbound::{Inbound, refused};
use super::outbox::encode;
use super::proto::{EndCause, Ended, Events, Recovered, Rect, Refusal, Started, response};
use super::worker::{Presence, Worker};

/// About how many bytes of entities a part of `Started` has.
const PART_BYTES: usize = 1 << 20;

/// Most acts in a part of `Started`: each has at most 1 KiB and a few bytes.
const PART_ACTS: usize = 1_000;

/// A worker has the region.
#[derive(Debug)]
struct Lease {
    worker: Arc<Worker>,
    number: u64,
    /// The worker's generation in which the lease holds.
    generation: u64,
    /// The ticks that were told and not handled.
    unhandled: VecDeque<Tick>,
}

/// What goes along with a region that moves.
#[derive(Clone, PartialEq, prost::Message)]
struct Saved {
    /// Actions that no worker has handled, and how many are missing.
    #[prost(message, optional, tag = "1")]
    acts: Option<Started>,
    /// The last batch of each worker.
    #[prost(uint64, repeated, tag = "2")]
    counted: Vec<u64>,
}

/// Ticks for which an entity that has come waits at most: whatever else, it is told then.
const LONGEST_HOLD: u64 = 100;

/// The logic of one region.
#[derive(Debug)]
pub struct RemoteLogic {
    hub: Arc<Hub>,
    scene: Arc<Scene>,
    region: RegionId,
    inbox: mpsc::Receiver<Inbound>,
    /// The hub's version by which the worker was chosen.
    version: u64,
    lease: Option<Lease>,
    /// The number of the last lease.
    leases: u64,
    epoch: Epoch,
    /// The tick of the last call.
    last: Option<Tick>,
    acts: Acts,
    /// The last batch of each worker.
    counted: Counted,
    acks: Acks,
    /// Events of entities whose old regions have not told yet that they left, and since when these wait.
    held: Vec<(Tick, LogicEvent)>,
    /// Commands that may have gone to other regions, by the numbers that the region gave them.
    sent: BTreeMap<u64, (u64, EntityId, u64)>,
}

impl Drop for RemoteLogic {
    fn drop(&mut self) {
        self.hub.close_lane(self.region, &mut self.inbox);
        self.end_lease(EndCause::Moved);
    }
}

impl GameLogic for RemoteLogic {
    fn tick(&mut self, region: &Region, events: &[LogicEvent], commands: &mut Commands) {
        let now = region.current_tick();
        self.epoch = region.epoch();
        if self.last.is_none() {
            self.announce(region);
        }
        let gives = self.take_batches(region, commands);
        self.note_results(events, now);
        let has = self.lease.as_ref().map(|lease| lease.worker.id);
        let early = mutants::has(Mutant::DurableEarly);
        let durable = if early { now } else { region.durable_tick() };
        self.acks.tell(&self.hub, self.says(LeaseNews::Same), (durable, has));
        self.divide(now);
        match self.lease.as_ref().map(|lease| lease.unhandled.is_empty() && lease.number == 0) {
            None => self.keep_acts(region, events),
            // What was given in this tick is not applied yet, and the next worker must know it: it begins a tick later.
            Some(true) if gives => self.keep_acts(region, events),
            Some(true) => self.start(region, events),
            Some(false) => self.tell(region, events),
        }
        self.last = Some(now);
    }

    fn save(&self, region: &Region, untold: &[LogicEvent]) -> Vec<u8> {
        let held = self.held.iter().map(|(_, event)| event).chain(untold);
        let acts = held.filter_map(|event| events::acted(region, event));
        let (mut acted, missed) = self.acts.all();
        acted.extend(acts);
        let acts = Some(Started { acted, missed, ..Started::default() });
        prost::Message::encode_to_vec(&Saved { acts, counted: self.counted.to_numbers() })
    }

    fn restore(&mut self, saved: &[u8]) {
        match <Saved as prost::Message>::decode(saved) {
            Ok(Saved { acts, counted }) => {
                let acts = acts.unwrap_or_default();
                self.acts = Acts::of(acts.acted, acts.missed);
                self.counted = Counted::from_numbers(&counted);
            }
            Err(error) => {
                tracing::error!(region = %self.region, %error, "actions were lost on the way of a region");
            }
        }
    }
}

impl RemoteLogic {
    /// The logic of a region that begins here.
    pub fn new(hub: Arc<Hub>, scene: Arc<Scene>, region: RegionId) -> RemoteLogic {
        let inbox = hub.open_lane(region);
        RemoteLogic {
            hub,
            scene,
            region,
            inbox,
            version: 0,
            lease: None,
            leases: 0,
            epoch: Epoch(0),
            last: None,
            acts: Acts::default(),
            counted: Counted::default(),
            acks: Acks::default(),
            held: Vec::new(),
            sent: BTreeMap::new(),
        }
    }

    /// If later states of the region may be lost, all workers of the scene are told.
    fn announce(&self, region: &Region) {
        let since = region.lost_since().filter(|_| !mutants::has(Mutant::RecoveredUntold));
        let Some(since) = since else { return };
        let (epoch, since) = (region.epoch().0, since.0);
        let recovered = Recovered { region: self.region.0, epoch, since };
        let told = encode(response::Message::Recovered(recovered));
        let of_scene = self.hub.all().into_iter().filter(|w| w.profile.scene == self.scene.id);
        for worker in of_scene {
            // A worker that takes nothing begins anew anyway.
            let _taken = worker.push_of(self.says(LeaseNews::Same), &told);
        }
    }

    fn says(&self, lease: LeaseNews) -> RegionNews {
        RegionNews { region: self.region, epoch: self.epoch, lease }
    }

    /// Gives the commands of the batches that have come; whether there were any.
    fn take_batches(&mut self, region: &Region, commands: &mut Commands) -> bool {
        let mut gives = false;
        while let Ok(batch) = self.inbox.try_recv() {
            let metrics = &self.hub.metrics;
            if let Err(why) = self.may_give(&batch) {
                batch.worker.conduct.batch_refused(metrics);
                batch.refuse(why);
                continue;
            }
            metrics.batches.fetch_add(1, Relaxed);
            metrics.commands.fetch_add(batch.commands.len() as u64, Relaxed);
            // Not more than there was: a worker that claims the future would never be late again.
            let handled = batch.handled.min(region.current_tick());
            self.acts.handled(handled);
            self.counted.set(batch.worker.id, (batch.epoch, batch.lease, handled));
            if let Some(lease) = &mut self.lease {
                while lease.unhandled.front().is_some_and(|told| *told <= handled) {
                    lease.unhandled.pop_front();
                }
            }
            gives |= !batch.commands.is_empty();
            self.give(batch, region, commands);
        }
        gives
    }

    fn may_give(&self, batch: &Inbound) -> Result<(), Refusal> {
        if mutants::has(Mutant::AnyLease) {
            return Ok(());
        }
        if batch.epoch != self.epoch {
            return Err(Refusal::Epoch);
        }
        let fits = |lease: &Lease| {
            lease.worker.id == batch.worker.id
                && (lease.number == batch.lease && batch.lease > 0)
                && lease.generation == batch.worker.generation()
        };
        self.lease.as_ref().is_some_and(fits).then_some(()).ok_or(Refusal::Lease)
    }

    fn give(&mut self, batch: Inbound, region: &Region, commands: &mut Commands) {
        let (source, at) = (batch.worker.id, (self.region, region.current_tick()));
        for given in batch.commands {
            match given {
                WorkerCommand::Scene { number, command } => {
                    if batch.worker.take_scene_command(number) {
                        let name = (source, EntityId(0), number);
                        self.sent.insert(commands.give(command), name);
                    }
                    self.acks.applied(source, (EntityId(0), number), at);
                }
                WorkerCommand::Plane { number, plane, subjects } => {
                    let is_new = batch.worker.take_scene_command(number);
                    let place = (self.scene.id, plane);
                    let set = if is_new { self.hub.set_plane(place, subjects) } else { Ok(()) };
                    if let Err(why) = set {
                        let result = refused(EntityId(0), number, plane_reason(why), why);
                        self.acks.refused(source, result, at);
                    }
                    self.acks.applied(source, (EntityId(0), number), at);
                }
                WorkerCommand::Entity(numbered) => {
                    let NumberedCommand { id, number, .. } = numbered;
                    let is_new = matches!(numbered.command, Some(Command::Spawn(_)));
                    let is_here = is_new || region.known(id).is_some_and(|known| known.is_real);
                    let given = commands.give(Command::Numbered(Box::new(numbered)));
                    if !is_here {
                        self.sent.insert(given, (source, id, number));
                    }
                }
            }
        }
    }

    /// What has become of commands. The region tells of every command that it has sent elsewhere.
    fn note_results(&mut self, events: &[LogicEvent], now: Tick) {
        let at = (self.region, now);
        for event in events {
            match event {
                LogicEvent::Numbered(result) => self.acks.note(result, at),
                LogicEvent::Done { command } => drop(self.sent.remove(command)),
                LogicEvent::Refused { command, why } => {
                    if let Some((source, id, number)) = self.sent.remove(command) {
                        self.acks.refused(source, refused(id, number, reason(why), why), at);
                    }
                }
                _ => {}
            }
        }
    }

    /// Chooses a worker, if it may be another one.
    fn divide(&mut self, now: Tick) {
        self.notice_late(now);
        let version = self.hub.version();
        let holds = |lease: &Lease| lease.generation == lease.worker.generation();
        if version == self.version && self.lease.as_ref().is_none_or(holds) {
            return;
        }
        self.version = version;
        let has = self.lease.as_ref().map(|lease| lease.worker.id);
        let chosen = self.hub.choose(self.scene.id, self.region, has);
        if self.lease.as_ref().is_some_and(holds) && has == chosen.as_ref().map(|w| w.id) {
            return;
        }
        if let Some(lease) = &self.lease {
            let is_lost = lease.worker.is_late() || lease.worker.presence() != Presence::Here;
            self.hub.metrics.taken_over.fetch_add(u64::from(is_lost), Relaxed);
            self.end_lease(if is_lost { EndCause::Late } else { EndCause::Divided });
        }
        if let Some(worker) = chosen.filter(|worker| !worker.is_dropped()) {
            let generation = worker.generation();
            self.lease = Some(Lease { worker, number: 0, generation, unhandled: VecDeque::new() });
        }
    }

    /// A worker that has not handled what it was told a while ago is late.
    fn notice_late(&self, now: Tick) {
        let Some(lease) = &self.lease else { return };
        let tick = Duration::from_millis(self.scene.tick_ms.into());
        let patience = self.hub.limits.takeover.div_duration_f64(tick).ceil().max(2.0) as u64;
        let oldest = lease.unhandled.front();
        if oldest.is_some_and(|told| told.0 + patience <= now.0) && lease.worker.is_late_now() {
            self.hub.metrics.late.fetch_add(1, Relaxed);
            let (worker, name) = (lease.worker.id, &lease.worker.profile.name);
            tracing::warn!(worker, %name, region = %self.region, "a logic worker does not answer in time");
            self.hub.divide_anew();
        }
    }

    fn end_lease(&mut self, cause: EndCause) {
        let Some(lease) = self.lease.take() else { return };
        if mutants::has(Mutant::EndUntold) {
            return;
        }
        let (region, epoch) = (self.region.0, self.epoch.0);
        let ended = Ended { region, epoch, lease: lease.number, cause: cause.into() };
        // A worker that takes nothing has lost all leases.
        let news = self.says(LeaseNews::Ended);
        let _taken = lease.worker.push_of(news, &encode(response::Message::Ended(ended)));
    }

    /// Nobody is told: actions wait for the next worker.
    fn keep_acts(&mut self, region: &Region, events: &[LogicEvent]) {
        let now = region.current_tick();
        let held = std::mem::take(&mut self.held);
        let events = held.iter().map(|(_, event)| event).chain(events);
        for act in events.filter_map(|event| events::acted(region, event)) {
            self.acts.add(now, act);
        }
    }

    /// The lease begins: the worker is told everything.
    fn start(&mut self, region: &Region, events: &[LogicEvent]) {
        self.keep_acts(region, events);
        let now = region.current_tick();
        let (acted, missed) = self.acts.tell_all(now);
        self.hub.metrics.missed.fetch_add(missed, Relaxed);
        self.hub.metrics.leases.fetch_add(1, Relaxed);
        let Some(lease) = &mut self.lease else { return };
        self.leases += 1;
        lease.number = self.leases;
        let (epoch, counted_lease, tick) = self.counted.of(lease.worker.id);
        let rect = region.rect();
        let rect = Rect { x0: rect.x0, z0: rect.z0, x1: rect.x1, z1: rect.z1 };
        let empty = Started {
            region: self.region.0,
            epoch: self.epoch.0,
            lease: lease.number,
            tick: now.0,
            rect: Some(rect),
            more: true,
            counted_epoch: epoch.0,
            counted_lease,
            counted_tick: tick.0,
            ..Started::default()
        };
        let source = lease.worker.id;
        let kinds = 0..=u8::try_from(self.scene.spec.kinds.len() - 1).unwrap_or(u8::MAX);
        let lives = kinds.flat_map(|kind| region.lives_here(Kind(kind)));
        let mut part = (empty.clone(), 0);
        let mut parts = Vec::new();
        for known in lives {
            let entity = events::entity(region, &known, source);
            part.1 += prost::Message::encoded_len(&entity);
            part.0.entities.push(entity);
            if part.1 >= PART_BYTES {
                parts.push(std::mem::replace(&mut part, (empty.clone(), 0)).0);
            }
        }
        parts.push(part.0);
        let acts = acted.chunks(PART_ACTS).map(|acted| {
            let acted = acted.to_vec();
            Started { acted, ..empty.clone() }
        });
        parts.extend(acts);
        if let Some(last) = parts.last_mut() {
            (last.more, last.missed) = (false, missed);
        }
        let (region, epoch) = (self.region, self.epoch);
        let news = RegionNews { region, epoch, lease: LeaseNews::Begins(lease.number, now) };
        let push = |part| lease.worker.push_of(news, &encode(response::Message::Started(part)));
        if parts.into_iter().all(push) {
            lease.unhandled.push_back(now);
        }
    }

    /// The worker is told what has happened in a tick.
    fn tell(&mut self, region: &Region, new: &[LogicEvent]) {
        let now = region.current_tick();
        let Some(lease) = &mut self.lease else { return };
        let (number, source, followed) =
            (lease.number, lease.worker.id, lease.worker.profile.followed);
        let mut told = Events {
            region: self.region.0,
            epoch: self.epoch.0,
            lease: number,
            tick: now.0,
            ..Events::default()
        };
        let mut waiting: FxHashSet<EntityId> = FxHashSet::default();
        let before = std::mem::take(&mut self.held);
        let new = new.iter().map(|event| (now, event));
        for (since, event) in before.iter().map(|(since, event)| (*since, event)).chain(new) {
            let subject = events::subject(event);
            let comes = match event {
                LogicEvent::Entered {
                    cause: EnterCause::HandedOff(from, left) | EnterCause::Teleported(from, left),
                    ..
                } => lease.worker.is_to_wait(*from, *left, self.hub.has_region(*from)),
                _ => false,
            };
            let comes = comes && since.0 + LONGEST_HOLD > now.0;
            let comes = comes && !mutants::has(Mutant::EnteredFirst);
            if comes || subject.is_some_and(|id| waiting.contains(&id)) {
                waiting.extend(subject);
                self.held.push((since, event.clone()));
                continue;
            }
            if let Some(act) = events::acted(region, event) {
                self.acts.add(now, act);
            }
            if let Some(event) = events::told(region, event, source) {
                events::add(&mut told, event);
            }
        }
        let since = self.last.unwrap_or(now);
        region.changes(since, followed, |change| events::add_change(&mut told, change));
        self.hub.metrics.events.fetch_add(told.events.len() as u64, Relaxed);
        let (region, epoch) = (self.region, self.epoch);
        // Other regions wait only for what has left. If they waited for arrivals, too, two entities that pass each
        // other on a border would wait for one another.
        let leaves = self.held.iter().filter(|(_, event)| matches!(event, LogicEvent::Left { .. }));
        let until = leaves.map(|(since, _)| Tick(since.0.saturating_sub(1))).min().unwrap_or(now);
        let push = |part: Events| {
            let told = if part.more { LeaseNews::Same } else { LeaseNews::Told(until) };
            let news = RegionNews { region, epoch, lease: told };
            lease.worker.push_of(news, &encode(response::Message::Events(part)))
        };
        if events::parts(told).into_iter().all(push) {
            lease.unhandled.push_back(now);
        }
    }
}

//! The logic of a region whose rules are those of a worker.
//!
//! ```text
//!             a worker is chosen                  the worker is late, gone, or another one is chosen
//!    Nobody ─────────────────────► Lease ───────────────────────────────────────────────────────► Nobody
//!                                    │ ▲
//!      at the end of a tick: Told    ▼ │   an Answer counts, in a tick: actions are handled, commands given
//!                                   worker
//! ```
//!
//! It decides alone who has the region, inside the tick, and must never wait. What must outlive it is the region's state
//! ([`GameLogic::save`]): actions that wait, which batches have counted, and refusals. *Absent on purpose:* how commands
//! reach entities of other regions, which the region does itself.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use purview::scene::messages::{Asked, CommandError, LogicEvent};
use purview::scene::mutants::{self, Mutant};
use purview::scene::region::{Commands, GameLogic, Terms};
use purview::scene::{Epoch, Region, RegionId, Scene, Tick};
use purview::wire::peer::{LeaseName, WorkerAnswer, WorkerCommand, WorkerWish};
use tokio::sync::mpsc;

use super::acts::Acts;
use super::hub::{Hub, Inbound};
use super::lease::Lease;
use super::ledger::{Ledger, SavedSession, batch};
use super::proto::{self, Acted, Refusal, response};
use super::told::{acted, encode, plane_reason, reason};

/// So often a region asks which worker it is to have, and repeats refusals, ticks.
const LOOK_TICKS: u64 = 10;

/// A session that was not listed for so many looks has ended.
const UNLISTED: u32 = 5;

/// What goes along with a region.
#[derive(Clone, PartialEq, prost::Message)]
struct Saved {
    #[prost(message, repeated, tag = "1")]
    acts: Vec<Acted>,
    #[prost(uint64, tag = "2")]
    missed: u64,
    #[prost(message, repeated, tag = "3")]
    sessions: Vec<SavedSession>,
}

#[derive(Debug)]
pub struct RemoteLogic {
    hub: Arc<Hub>,
    scene: Arc<Scene>,
    region: RegionId,
    inbox: mpsc::Receiver<Inbound>,
    /// The hub's version by which the worker was chosen.
    version: u64,
    lease: Option<Lease>,
    leases: u64,
    epoch: Epoch,
    /// How many of the events that the next call is told are noted already.
    noted: usize,
    acts: Acts,
    ledger: Ledger,
}

impl Drop for RemoteLogic {
    fn drop(&mut self) {
        self.hub.close_lane(self.region, &mut self.inbox);
        self.end_lease();
    }
}

impl GameLogic for RemoteLogic {
    fn tick(&mut self, region: &Region, events: &[LogicEvent], commands: &mut Commands) {
        self.epoch = region.epoch();
        let noted = std::mem::take(&mut self.noted);
        self.note(region, events.get(noted..).unwrap_or_default());
        self.take_answers(region.current_tick(), commands);
    }

    fn closed(&mut self, region: &Region) {
        self.epoch = region.epoch();
        let events = region.untold();
        self.note(region, events.get(self.noted..).unwrap_or_default());
        self.noted = events.len();
        self.ledger.saved(region.durable_tick());
        self.divide(region.current_tick());
        if let Some(lease) = &mut self.lease {
            lease.tell((region, &self.scene), (&self.acts, &self.ledger));
        }
        self.tell_refusals(region.current_tick());
    }

    fn is_at_rest(&self) -> bool {
        self.acts.is_empty()
    }

    fn save(&self) -> Vec<u8> {
        let (acts, missed) = self.acts.all();
        let saved = Saved { acts, missed, sessions: self.ledger.save() };
        prost::Message::encode_to_vec(&saved)
    }

    fn restore(&mut self, saved: &[u8], has_moved: bool) {
        match <Saved as prost::Message>::decode(saved) {
            Ok(Saved { acts, missed, sessions }) => {
                self.acts = Acts::of(acts, missed);
                self.ledger = Ledger::restored(sessions, has_moved);
            }
            Err(error) => {
                tracing::error!(region = %self.region, %error, "actions were lost on the way of a region");
            }
        }
    }
}

impl RemoteLogic {
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
            noted: 0,
            acts: Acts::default(),
            ledger: Ledger::default(),
        }
    }

    fn note(&mut self, region: &Region, events: &[LogicEvent]) {
        for event in events {
            self.acts_and_refusals(region, event);
            let Some(lease) = &mut self.lease else { continue };
            match *event {
                LogicEvent::Arrived { id }
                | LogicEvent::Disconnected { id }
                | LogicEvent::Resumed { id }
                | LogicEvent::Sighted { watcher: id, .. }
                | LogicEvent::Lost { watcher: id, .. } => lease.changes(id),
                LogicEvent::Left { id, cause, .. } if cause.is_final() => lease.ends(id),
                _ => {}
            }
        }
    }

    fn acts_and_refusals(&mut self, region: &Region, event: &LogicEvent) {
        if let Some(act) = acted(region, event) {
            let gave_way = self.acts.add(act);
            self.hub.metrics.missed.fetch_add(gave_way.into(), Relaxed);
        }
        if let LogicEvent::Refused { asked: Some(asked), why, .. } = event {
            self.refuse(*asked, (reason(why), why.to_string()));
        }
    }

    fn refuse(&mut self, asked: Asked, (reason, text): (proto::Reason, String)) {
        let Asked { session, epoch, lease: number, seq, place } = asked;
        let name = LeaseName { region: self.region, epoch, number };
        let refusal = Refusal { batch: Some(batch(name, seq)), place, reason: reason.into(), text };
        self.hub.metrics.refused_commands.fetch_add(1, Relaxed);
        if let Some(worker) = self.hub.worker(session) {
            worker.conduct.refused_commands.fetch_add(1, Relaxed);
        }
        self.ledger.refuse(session, refusal);
    }

    /// Counts the answer that has come, and gives its commands.
    fn take_answers(&mut self, now: Tick, commands: &mut Commands) {
        while let Ok(inbound) = self.inbox.try_recv() {
            match inbound {
                Inbound::Got(got) if got.epoch == self.epoch => {
                    self.ledger.got(got.worker, got.last);
                }
                Inbound::Got(_) => {}
                Inbound::Answer(answer) if self.counts(&answer) => {
                    self.count(answer, now, commands);
                }
                Inbound::Answer(answer) => {
                    self.hub.metrics.late_answers.fetch_add(1, Relaxed);
                    if let Some(worker) = self.hub.worker(answer.worker) {
                        worker.conduct.late_answers.fetch_add(1, Relaxed);
                    }
                }
            }
        }
    }

    fn counts(&self, answer: &WorkerAnswer) -> bool {
        let WorkerAnswer { worker, lease, seq, .. } = *answer;
        let fits = |now: &Lease| now.expects(worker, lease, seq) || mutants::has(Mutant::AnyLease);
        self.lease.as_ref().is_some_and(fits) && self.ledger.may_count(worker)
    }

    fn count(&mut self, answer: WorkerAnswer, now: Tick, commands: &mut Commands) {
        let WorkerAnswer { worker, lease: name, seq, commands: given } = answer;
        let patience = self.patience();
        if let Some(lease) = &mut self.lease {
            let (handled, took) = lease.answered(now, patience);
            self.acts.handled(handled);
            if lease.worker.answered(took) {
                self.hub.repace(&lease.worker);
            }
        }
        self.ledger.count(worker, batch(name, seq), now);
        self.hub.metrics.answers.fetch_add(1, Relaxed);
        self.hub.metrics.commands.fetch_add(given.len() as u64, Relaxed);
        // What is known of the command before: `None`: the region will say.
        let mut before = Some(Ok(()));
        for (place, WorkerCommand { held, wish, epoch, together, .. }) in (0..).zip(given) {
            let LeaseName { epoch: of, number: lease, .. } = name;
            let asked = Asked { session: worker, epoch: of, lease, seq, place };
            let result = match wish {
                _ if together && before.as_ref().is_some_and(Result::is_err) => {
                    let why = CommandError::NotTogether;
                    Some(Err((reason(&why), why.to_string())))
                }
                WorkerWish::Command(command) => {
                    let (asked, together) = (Some(asked), together && before.is_none());
                    commands.give_on(command, Terms { asked, held, epoch, together });
                    None
                }
                WorkerWish::Plane { plane, subjects } => {
                    let set = self.hub.set_plane((self.scene.id, plane), subjects);
                    Some(set.map_err(|why| (plane_reason(why), why.to_string())))
                }
                WorkerWish::Illegal(reason, text) => {
                    Some(Err((proto::Reason::try_from(reason).unwrap_or_default(), text)))
                }
            };
            if let Some(Err(why)) = &result {
                self.refuse(asked, why.clone());
            }
            before = result;
        }
    }

    /// How many ticks an answer may take.
    fn patience(&self) -> u64 {
        let tick = Duration::from_millis(self.scene.tick_ms.into());
        self.hub.limits.takeover.div_duration_f64(tick).ceil().max(2.0) as u64
    }

    fn is_look(&self, now: Tick) -> bool {
        now.0 % LOOK_TICKS == u64::from(self.region.0) % LOOK_TICKS
    }

    /// Ends the lease if it must, and begins another one.
    fn divide(&mut self, now: Tick) {
        let patience = self.patience();
        let mut is_lost = false;
        if let Some(Lease { worker, .. }) = &self.lease {
            let since = self.lease.as_ref().and_then(Lease::waits_since);
            is_lost = worker.is_gone();
            if !is_lost && since.is_some_and(|since| since.0 + patience <= now.0) {
                is_lost = true;
                self.hub.give_up(worker, self.region);
            }
        }
        let version = self.hub.version();
        if self.lease.is_some() && !is_lost && version == self.version && !self.is_look(now) {
            return;
        }
        self.version = version;
        let has = self.lease.as_ref().filter(|_| !is_lost).map(|lease| &lease.worker);
        let chosen = self.hub.choose(self.scene.id, self.region, has.map(|worker| worker.id));
        if let (Some(has), Some(chosen)) = (has, &chosen)
            && Arc::ptr_eq(has, chosen)
        {
            return;
        }
        if self.lease.is_some() {
            self.hub.metrics.taken_over.fetch_add(u64::from(is_lost), Relaxed);
            self.end_lease();
        }
        if let Some(worker) = chosen {
            self.leases += 1;
            self.hub.metrics.leases.fetch_add(1, Relaxed);
            let (region, epoch, number) = (self.region, self.epoch, self.leases);
            let most = self.hub.limits.keep / self.scene.map.regions.len().max(1);
            worker.has_one_more(1);
            self.lease = Some(Lease::new(worker, LeaseName { region, epoch, number }, most));
        }
    }

    fn end_lease(&mut self) {
        let Some(lease) = self.lease.take() else { return };
        self.acts.not_handled(lease.not_handled());
        lease.worker.has_one_more(-1);
        lease.worker.lease_ends(lease.name);
    }

    fn tell_refusals(&mut self, now: Tick) {
        if !self.is_look(now) {
            return;
        }
        let hub = &self.hub;
        let name = (self.region, self.epoch.0);
        for (session, refused) in
            self.ledger.refused(name, |session| hub.worker(session).is_some(), UNLISTED)
        {
            if let Some(worker) = hub.worker(session) {
                worker.refuse(self.region, encode(response::Message::Refused(refused)));
            }
        }
    }
}

//! Moves a region from this process to another one, and receives regions, while players walk.
//!
//! ```text
//! old owner                       new owner                all processes (both channels)
//!   Prepare ───────────────────────► what comes for it waits
//!   ◄────────────────────────── Ready
//!   a tick ends: frozen
//!   Moved ──────────────────────────────────────────────────► says it to the new one from now on
//!   Cargo (region, state) ─────────►
//!   ◄──────────────────────────────────────────────────────── Marked: nothing more by the old way
//!   what came by the old way, marks ►
//!                                  all marks are there: takes the grant over, goes on
//! ```
//!
//! A mark says two things: its sender has received all messages of the region from its old place,
//! and sends it no more there. So when all marks are there, no process can receive messages of the
//! old and the new owner in the wrong order, nor send in it. Until the grant is taken over the old
//! owner owns it: if that does not happen it keeps the frozen state as a checkpoint and releases
//! the region, and the rest is a fail-over with nothing lost but the moment.
//!
//! Regions that share no neighbour and no pair of nodes move at the same time (the leader says which). Let region A send
//! messages to region B while both move. A's old owner may have heard of B's move: then messages go to B's new place. A's
//! new owner may not: then later messages go to B's old place, and could overtake the earlier ones. So a region arrives
//! only where all moves are known that its old owner knew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::channel::oneshot;
use parking_lot::Mutex;
use purview::actor::messages::{Departure, ToRegion};
use purview::scene::mutants::{self, Mutant};
use purview::scene::region::RegionSnapshot;
use purview::scene::{Epoch, Region, RegionId};
use purview::wire::SnapshotError;
use purview::wire::peer::{ActorState, KnownMove, Mark, MoveMsg};
use tokio::sync::mpsc::{Receiver, channel};
use tokio::time::{Instant, MissedTickBehavior};

use super::handles::Handles;
use crate::peer::{Elsewhere, Kind, MOVE, Unsaid, follows};
use crate::storage::{Claim, Grant, Incarnation, RegionKey};

/// How long the new owner may take to be ready, and a tick to end.
const READY: Duration = Duration::from_secs(1);

/// Most messages about moving regions that wait: two marks of each process, of more processes than
/// there are. A message that finds no room is lost and counted (`moves_refused`): a region whose
/// move has not begun stays, and one whose move has begun recovers from what its old owner has
/// frozen.
const WAITING: usize = 4_096;

/// Time between two checks of progress.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

#[derive(Debug, thiserror::Error)]
enum MoveError {
    #[error("the new owner is not ready")]
    NotReady,
    #[error("the region does not run here")]
    NotHere,
    #[error("its tick did not end in time")]
    NoEnd,
    #[error("its new owner is not a member")]
    NoMember,
    #[error("its new owner did not take it over in time")]
    NotAccepted,
    #[error("process {0} could not be told: {1}")]
    NotTold(u64, Unsaid),
    #[error("a frozen region cannot be written: {0}")]
    NotWritten(#[source] SnapshotError),
}

#[derive(Debug)]
struct ArrivingRegion {
    from: u64,
    epoch: Epoch,
    since: Instant,
    marks: BTreeSet<Mark>,
    frozen: Option<FrozenRegion>,
}

/// What its old owner has sent of it.
#[derive(Debug)]
struct FrozenRegion {
    waits: Vec<Mark>,
    moves: Vec<KnownMove>,
    snapshot: Bytes,
    actor_state: ActorState,
}

#[derive(Debug, Default)]
struct State {
    /// The process that waits for the new owner's answer.
    ready: BTreeMap<RegionId, oneshot::Sender<()>>,
    leaving: BTreeSet<RegionId>,
    arriving: BTreeMap<RegionId, ArrivingRegion>,
    /// All marks are there, and the grant is asked for.
    taking_over: BTreeSet<RegionId>,
}

/// Moves regions. Cheap to clone.
#[derive(Clone)]
pub(super) struct Migrator(Arc<(Handles, Mutex<State>)>);

impl std::fmt::Debug for Migrator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Migrator").finish_non_exhaustive()
    }
}

impl Migrator {
    pub(super) fn start(handles: Handles) -> Migrator {
        let (tell, told) = channel(WAITING);
        handles.links.router().set_migrator(tell);
        let migrator = Migrator(Arc::new((handles, Mutex::default())));
        migrator.handles().executor.spawn(migrator.clone().run(told));
        migrator
    }

    fn handles(&self) -> &Handles {
        &self.0.0
    }

    pub(super) fn is_moving(&self, id: RegionId) -> bool {
        let state = self.0.1.lock();
        state.leaving.contains(&id)
            || state.arriving.contains_key(&id)
            || state.taking_over.contains(&id)
    }

    /// How many regions are on their way to another process, and to this one.
    pub(super) fn under_way(&self) -> (usize, usize) {
        let state = self.0.1.lock();
        (state.leaving.len(), state.arriving.len() + state.taking_over.len())
    }

    /// Moves a region that runs here under `epoch`; nothing happens if it is under way already.
    pub(super) fn depart(
        &self,
        id: RegionId,
        key: RegionKey,
        epoch: Epoch,
        to: (Incarnation, u64),
    ) {
        if !self.0.1.lock().leaving.insert(id) {
            return;
        }
        let migrator = self.clone();
        self.handles().executor.spawn(async move {
            let began = Instant::now();
            match migrator.send_off(id, &key, epoch, to.1).await {
                Ok(()) => {
                    tracing::info!(region = %id, to = %to.0, took = ?began.elapsed(), "a region has moved");
                }
                Err(error) => tracing::warn!(%error, region = %id, "a region did not move"),
            }
            migrator.0.1.lock().leaving.remove(&id);
        });
    }

    async fn send_off(
        &self,
        id: RegionId,
        key: &RegionKey,
        epoch: Epoch,
        to: u64,
    ) -> Result<(), MoveError> {
        let (links, directory) = (&self.handles().links, &self.handles().directory);
        let (tell, ready) = oneshot::channel();
        self.0.1.lock().ready.insert(id, tell);
        let (prepare, late) = (MoveMsg::Prepare { region: id, epoch }, Instant::now() + READY);
        let prepared = links.say(to, Kind::Regions, prepare, late).await;
        let ready = tokio::time::timeout_at(late, ready).await;
        self.0.1.lock().ready.remove(&id);
        if prepared.is_err() || !matches!(ready, Ok(Ok(()))) {
            return Err(MoveError::NotReady);
        }
        let members = links.processes();
        let remote = links.successor(to, id).ok_or(MoveError::NoMember)?;
        let departing = self.handles().local_regions.lock().depart(id, epoch, Some(remote));
        let departing = departing.ok_or(MoveError::NotHere)?;
        let departure = departing.unless(tokio::time::sleep(READY)).await;
        let departure = departure.ok_or(MoveError::NoEnd)?;
        let late = Instant::now() + MOVE;
        links.router().note_move(id, Elsewhere { epoch, to });
        let checkpoint = departure.checkpoint.clone();
        let told = self.tell(id, epoch, to, &members, departure, late).await;
        let why = match told {
            Ok(()) if self.is_accepted(id, key, epoch, to, late).await => return Ok(()),
            Ok(()) => MoveError::NotAccepted,
            Err(why) => why,
        };
        self.give_up(id, key, epoch, checkpoint).await;
        directory.left(id);
        Err(why)
    }

    /// Tells all processes that the region lives elsewhere, and sends the new owner its whole
    /// state, in time.
    async fn tell(
        &self,
        id: RegionId,
        epoch: Epoch,
        to: u64,
        members: &[u64],
        departure: Departure,
        late: Instant,
    ) -> Result<(), MoveError> {
        let links = &self.handles().links;
        let both = [false, true];
        let mark = |process: &u64| both.map(|sessions| Mark { process: *process, sessions });
        let mut waits: Vec<Mark> = members.iter().flat_map(mark).collect();
        // Sessions of this process receive the old owner's messages before any of the new owner.
        waits.push(Mark { process: links.process(), sessions: false });
        // A process without room delays no other process.
        let channels = members.iter().flat_map(|process| Kind::ALL.map(|kind| (*process, kind)));
        let told = channels.map(async |(process, kind)| {
            let moved = MoveMsg::Moved { region: id, epoch, to };
            (process, links.say(process, kind, moved, late).await)
        });
        for (process, told) in futures::future::join_all(told).await {
            match told {
                // A process that is no longer a member receives nothing, and is not waited for.
                Ok(()) | Err(Unsaid::NoMember) => {}
                Err(why @ Unsaid::Full) => return Err(MoveError::NotTold(process, why)),
            }
        }
        let snapshot = departure.snapshot.encode().map_err(MoveError::NotWritten)?.into();
        let actor_state = departure.actor_state;
        let moves = links.router().moves_of_others(id);
        let frozen = MoveMsg::Cargo { region: id, epoch, waits, moves, snapshot, actor_state };
        let told = links.say(to, Kind::Regions, frozen, late).await;
        told.map_err(|why| MoveError::NotTold(to, why))
    }

    /// Waits until the store shows a new owner.
    async fn is_accepted(
        &self,
        id: RegionId,
        key: &RegionKey,
        epoch: Epoch,
        to: u64,
        late: Instant,
    ) -> bool {
        while Instant::now() < late {
            tokio::time::sleep(POLL_INTERVAL).await;
            let view = self.handles().view.read();
            match view.owners.get(key) {
                Some(owner) if owner.epoch > epoch => return true,
                Some(_) if self.handles().links.knows(to) => {}
                _ => break,
            }
        }
        tracing::warn!(region = %id, to, "the new owner did not take the region over");
        false
    }

    /// A frozen region has no owner: its state is kept, and the process that claims it recovers it.
    async fn give_up(
        &self,
        id: RegionId,
        key: &RegionKey,
        epoch: Epoch,
        checkpoint: Option<RegionSnapshot>,
    ) {
        self.keep(key, checkpoint).await;
        match self.handles().store.release(&self.handles().me, key, epoch).await {
            Ok(released) => tracing::info!(region = %id, ?released, "a region is released"),
            Err(error) => tracing::warn!(%error, region = %id, "the region could not be released"),
        }
        self.handles().local_regions.lock().end(id);
    }

    pub(super) async fn keep(&self, key: &RegionKey, checkpoint: Option<RegionSnapshot>) {
        let (Some(store), Some(checkpoint)) = (&self.handles().checkpoints, checkpoint) else {
            return;
        };
        let Ok(bytes) = checkpoint.encode() else { return };
        let (epoch, tick) = (checkpoint.epoch(), checkpoint.tick());
        let saved = tokio::time::timeout(READY, store.save(key, epoch, tick, bytes.into())).await;
        if !matches!(saved, Ok(Ok(_))) {
            tracing::warn!(region = %key, "the region's last checkpoint could not be saved");
        }
    }

    async fn run(self, mut told: Receiver<(u64, MoveMsg)>) {
        let mut poll = tokio::time::interval(Duration::from_millis(50));
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let comes = !self.0.1.lock().arriving.is_empty();
            tokio::select! {
                biased;
                told = told.recv() => match told {
                    Some((from, msg)) => self.receive(from, msg).await,
                    None => return,
                },
                _ = poll.tick(), if comes => self.poll().await,
            }
        }
    }

    async fn receive(&self, from: u64, msg: MoveMsg) {
        match msg {
            MoveMsg::Prepare { region, epoch } => self.prepare(from, region, epoch).await,
            MoveMsg::Ready { region, .. } => {
                if let Some(waits) = self.0.1.lock().ready.remove(&region) {
                    // No process: it has waited for too long.
                    let _late = waits.send(()).is_err();
                }
            }
            MoveMsg::Cargo { region, epoch, waits, moves, snapshot, actor_state } => {
                if let Some(arrival) = self.0.1.lock().arriving.get_mut(&region)
                    && (arrival.from, arrival.epoch) == (from, epoch)
                {
                    arrival.frozen = Some(FrozenRegion { waits, moves, snapshot, actor_state });
                }
                self.arrive_if_complete(region).await;
            }
            MoveMsg::Marked { region, mark } => {
                if let Some(arrival) = self.0.1.lock().arriving.get_mut(&region)
                    && arrival.from == from
                {
                    arrival.marks.insert(mark);
                }
                self.arrive_if_complete(region).await;
            }
            MoveMsg::Moved { region, .. } | MoveMsg::Passed { region, .. } => {
                purview::log_limited!(error, %region, from, "the router should have handled this message");
            }
        }
    }

    async fn prepare(&self, from: u64, region: RegionId, epoch: Epoch) {
        let handles = self.handles();
        let may = handles.directory.may_act()
            && handles.maps.is_present(region)
            && self.handles().local_regions.lock().epoch(region).is_none()
            && !self.is_moving(region);
        if !may {
            return purview::log_limited!(warn, %region, from, "cannot receive an arriving region");
        }
        let (since, marks) = (Instant::now(), BTreeSet::new());
        let arrival = ArrivingRegion { from, epoch, since, marks, frozen: None };
        self.0.1.lock().arriving.insert(region, arrival);
        handles.directory.expect(region);
        let (ready, late) = (MoveMsg::Ready { region, epoch }, Instant::now() + READY);
        if let Err(why) = handles.links.say(from, Kind::Regions, ready, late).await {
            purview::log_limited!(warn, %region, from, %why, "cannot tell the old owner that its region may arrive");
        }
    }

    /// What is missing, and what has been waited for in vain.
    async fn poll(&self) {
        let all: Vec<RegionId> = self.0.1.lock().arriving.keys().copied().collect();
        for region in all {
            self.arrive_if_complete(region).await;
            let in_vain = |arrival: &ArrivingRegion| {
                arrival.since.elapsed() > READY + MOVE || !self.handles().links.knows(arrival.from)
            };
            let given_up = {
                let mut state = self.0.1.lock();
                let over = state.arriving.get(&region).is_some_and(in_vain);
                over && state.arriving.remove(&region).is_some()
            };
            if given_up {
                tracing::warn!(%region, "an expected region did not arrive");
                self.forget(region);
            }
        }
    }

    /// Messages for a region that does not arrive wait for its next owner.
    fn forget(&self, region: RegionId) {
        let directory = &self.handles().directory;
        let left: Vec<ToRegion> = directory.give_up(region);
        left.into_iter().filter(|m| follows(&m.input)).for_each(|m| directory.keep(region, m));
    }

    async fn arrive_if_complete(&self, region: RegionId) {
        let handles = self.handles();
        let arrival = {
            let mut state = self.0.1.lock();
            let is_gone = |mark: &Mark| {
                mark.process != handles.links.process() && !handles.links.knows(mark.process)
            };
            let complete = |arrival: &ArrivingRegion| {
                arrival.frozen.as_ref().is_some_and(|frozen| {
                    let unmarked = mutants::has(Mutant::NoMarks);
                    let unheard = mutants::has(Mutant::MovesUnheard);
                    frozen.waits.iter().all(|m| unmarked || arrival.marks.contains(m) || is_gone(m))
                        && (unheard
                            || frozen.moves.iter().all(|of| handles.links.router().has_heard(of)))
                })
            };
            if !state.arriving.get(&region).is_some_and(complete) {
                return;
            }
            state.taking_over.insert(region);
            state.arriving.remove(&region)
        };
        if let Some(ArrivingRegion { epoch, frozen: Some(frozen), .. }) = arrival
            && let Err(why) = self.arrive(region, epoch, frozen).await
        {
            purview::log_limited!(warn, %region, why, "an arriving region cannot run here");
            self.forget(region);
        }
        self.0.1.lock().taking_over.remove(&region);
    }

    /// All its state is here: it starts.
    async fn arrive(
        &self,
        region: RegionId,
        epoch: Epoch,
        frozen: FrozenRegion,
    ) -> Result<(), String> {
        let handles = self.handles();
        let scene = handles.maps.scene_of(region).ok_or("its scene is unknown")?;
        let snapshot = RegionSnapshot::decode(&frozen.snapshot).map_err(|e| e.to_string())?;
        let key = handles.maps.key(region).ok_or("its scene is unknown")?;
        let grant = self.take_over(&key, epoch).await?;
        if self.handles().local_regions.lock().epoch(region).is_some()
            && !mutants::has(Mutant::RunsTwice)
        {
            // The store had granted it here, too, and it has gone on from a checkpoint since.
            return Err("it already runs here".into());
        }
        // It sends under its new epoch from its first message on, whether or not the store has
        // shown it: processes that know it accept no older one.
        handles.links.router().set_epoch(region, grant.epoch);
        let mut fx = Vec::new();
        match Region::restore(scene.clone(), region, grant.epoch, snapshot, &mut fx) {
            Ok(restored) => {
                let (links, actor_state) = (&handles.links, frozen.actor_state);
                let came = self.handles().local_regions.lock().arrive(
                    &scene,
                    restored,
                    grant.epoch,
                    fx,
                    (actor_state, links),
                );
                if came {
                    tracing::info!(%region, epoch = %grant.epoch, "a region has arrived");
                    return Ok(());
                }
                Err("no thread is free for it".into())
            }
            Err(error) => {
                let released = handles.store.release(&handles.me, &key, grant.epoch).await;
                tracing::warn!(%region, ?released, "the region is released");
                Err(error.to_string())
            }
        }
    }

    async fn take_over(&self, key: &RegionKey, epoch: Epoch) -> Result<Grant, String> {
        let handles = self.handles();
        let begin = Instant::now();
        loop {
            match handles.store.take_over(&handles.me, key, epoch).await {
                Ok(Claim::Granted(grant)) => return Ok(grant),
                Ok(Claim::Refused(owner)) => {
                    return Err(format!("it has another owner by now: {owner:?}"));
                }
                Err(error) if begin.elapsed() > READY => return Err(error.to_string()),
                Err(error) => {
                    tracing::warn!(%error, region = %key, "cannot take the region over now")
                }
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

#[cfg(test)]
mod tests;

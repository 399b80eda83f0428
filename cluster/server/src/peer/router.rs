//! The router of messages from peers: to a local region, a session, the migrator, or a waiting
//! question. `serve` calls it for every received message. A message from a former owner must never
//! reach a region, and a full mailbox must never stop a channel.

#![expect(clippy::result_large_err, reason = "what is not taken is given back, as actix does")]

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use actix::dev::SendError;
use parking_lot::{Mutex, RwLock};
use purview::actor::address::{RegionAddress, SessionAddress};
use purview::actor::directory::{Directory, Lookup, NotDelivered, NotSent};
use purview::actor::messages::{Delivery, ToRegion};
use purview::scene::messages::{Claims, FrameBatch, Input, Notice};
use purview::scene::mutants::{self, Mutant};
use purview::scene::{Epoch, RegionId, SessionId};
use purview::wire::EncodedBatch;
use purview::wire::peer::{KnownMove, Mark, MoveMsg, PeerError, PeerMsg, speaker};
use rustc_hash::FxHashMap;
use tokio::sync::Notify;
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::Instant;

use super::backlog::{BacklogEntry, Backlogs, Brought, Marks};
use super::plausible::Known;
use super::{Kind, Links, MOVE, Member, WeakLinks};

#[derive(Debug, Default)]
pub struct RouterMetrics {
    /// Messages of regions from former owners; dropped.
    pub fenced: AtomicU64,
    /// Messages that their senders may not send; dropped.
    pub forbidden: AtomicU64,
    /// Messages that cannot be decoded; dropped.
    pub malformed: AtomicU64,
    /// Messages of kinds that only a newer release knows; dropped.
    pub unknown: AtomicU64,
    /// Messages for regions that are not local; forwarded if they must arrive, otherwise dropped.
    pub misrouted: AtomicU64,
    /// Frames for sessions that are not local or have a full mailbox.
    pub frames_lost: AtomicU64,
    /// Messages that were queued because a region's mailbox was full.
    pub backlogged: AtomicU64,
    /// Messages with impossible numbers; dropped.
    pub implausible: AtomicU64,
    /// Migration messages that found no room; those regions stay, or recover.
    pub moves_refused: AtomicU64,
}

/// The new place of a region that migrated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elsewhere {
    pub epoch: Epoch,
    pub to: u64,
}

/// Most members that peers may report as dead.
const MAX_SUSPECTED: usize = 1_024;

/// Time before a delivery without room is tried again.
const AGAIN: Duration = Duration::from_millis(2);

#[derive(Debug, Default)]
pub struct Router {
    /// A weak reference: the links own the router.
    links: OnceLock<WeakLinks>,
    directory: OnceLock<Weak<Directory>>,
    epochs: RwLock<FxHashMap<RegionId, Epoch>>,
    /// Regions that migrated, until the store reports it.
    moved: RwLock<FxHashMap<RegionId, Elsewhere>>,
    /// Suspected members: which process reported each, and when last.
    suspected: Mutex<FxHashMap<u64, FxHashMap<u64, Instant>>>,
    suspicion: Arc<Notify>,
    /// Notified when a local region has a newer owner elsewhere.
    superseded: Arc<Notify>,
    migrator: OnceLock<Sender<(u64, MoveMsg)>>,
    backlogs: Backlogs,
    /// The newest epoch known from the store; 0: none yet.
    newest: AtomicU64,
    /// The length of the shortest ticks of the scenes.
    tick_ms: OnceLock<u32>,
    metrics: RouterMetrics,
}

impl Router {
    pub fn metrics(&self) -> &RouterMetrics {
        &self.metrics
    }

    /// Sets the targets of messages; without them, or when the process has ended, messages are
    /// dropped.
    pub(super) fn connect(&self, links: &Links, directory: &Arc<Directory>) {
        if let Some(tick_ms) = directory.scenes().map(|scene| scene.tick_ms).min() {
            self.tick_ms.get_or_init(|| tick_ms);
        }
        let (links, directory) = (links.downgrade(), Arc::downgrade(directory));
        let first = self.directory.set(directory).is_ok() && self.links.set(links).is_ok();
        if !first {
            tracing::error!("the router was connected twice");
        }
    }

    /// The targets of messages, while the process runs.
    fn endpoints(&self) -> Option<(Links, Arc<Directory>)> {
        self.links.get()?.upgrade().zip(self.directory.get()?.upgrade())
    }

    /// A member of the cluster; `None` if the process is not one.
    pub(super) fn member(&self, process: u64) -> Option<Arc<Member>> {
        self.links.get().and_then(WeakLinks::upgrade)?.member(process)
    }

    /// Counts a message that cannot be decoded.
    pub(super) fn refused(&self, from: u64, error: &PeerError) {
        let counter = match error {
            PeerError::Unknown(_) => &self.metrics.unknown,
            _ => &self.metrics.malformed,
        };
        counter.fetch_add(1, Relaxed);
        purview::log_limited!(error, from, %error, "a message was skipped");
    }

    /// From now on only an owner with this epoch or a later one may send for a region.
    pub fn set_epoch(&self, region: RegionId, epoch: Epoch) {
        let mut epochs = self.epochs.write();
        let known = epochs.entry(region).or_default();
        *known = (*known).max(epoch);
    }

    pub fn epoch(&self, region: RegionId) -> Epoch {
        let epochs = self.epochs.read();
        epochs.get(&region).copied().unwrap_or_default()
    }

    /// Sets the receiver of those [`MoveMsg`] that the two owners send to each other.
    pub fn set_migrator(&self, migrator: Sender<(u64, MoveMsg)>) {
        if self.migrator.set(migrator).is_err() {
            tracing::error!("the migrator is set already");
        }
    }

    /// Handles one message of a channel; `bytes` is its size.
    pub(super) async fn take(
        self: &Arc<Self>,
        from: u64,
        channel: Kind,
        message: PeerMsg,
        bytes: usize,
    ) {
        let Some((links, directory)) = &self.endpoints() else { return };
        let (newest, now) = (self.newest.load(Relaxed), directory.uptime());
        let known = Known { newest, now, tick_ms: self.tick_ms.get().copied().unwrap_or(1) };
        if let Err(why) = known.check(&message) {
            self.metrics.implausible.fetch_add(1, Relaxed);
            return purview::log_limited!(warn, from, %why, "a message was dropped");
        }
        match message {
            PeerMsg::Region { to, epoch, input } => {
                self.supersede(
                    links,
                    directory,
                    speaker(&input).map(|region| (region, epoch)),
                    from,
                );
                if self.believes(&input, epoch, from) {
                    let client = links.session_of(directory, &input);
                    let entry = BacklogEntry::Say(ToRegion { input, client });
                    self.bring(links, directory, (from, to), entry, bytes).await;
                }
            }
            PeerMsg::Frames { from: region, batch } => {
                self.to_sessions(links, directory, from, region, *batch);
            }
            PeerMsg::Notice { notice: Notice::Resumed(found), .. }
                if self.is_none_any_more(directory, (from, found.region), found.epoch) =>
            {
                // The session asks again, and the current owner answers.
                self.metrics.fenced.fetch_add(1, Relaxed);
                purview::log_limited!(warn, region = %found.region, epoch = %found.epoch, from, "a former owner answered a search for a player");
            }
            PeerMsg::Notice { session, notice } => match directory.session(session) {
                Some(entry) => entry.to.send(Delivery::Notice(notice)).await,
                None => links.gone(from, vec![session]),
            },
            PeerMsg::Gone(sessions) => links.sessions_are_gone(from, &sessions),
            PeerMsg::Busy { region, busy } => links.is_busy(from, region, busy),
            PeerMsg::Suspect(suspect) => self.suspect(suspect, from),
            PeerMsg::Move(msg) => self.moving(links, directory, (from, channel), *msg, bytes).await,
            PeerMsg::Ask { ticket, question } => links.asked(from, ticket, question),
            PeerMsg::Answered { ticket, answer } => links.told(from, ticket, answer),
            PeerMsg::CommandResult(ended) => directory.answered(ended),
            PeerMsg::Worker(message) => links.worker_said(from, *message),
        }
    }

    /// Records that a member suspects another one to be dead.
    fn suspect(&self, suspect: u64, by: u64) {
        let mut suspected = self.suspected.lock();
        if suspected.len() >= MAX_SUSPECTED {
            suspected.clear();
        }
        suspected.entry(suspect).or_default().insert(by, Instant::now());
        drop(suspected);
        self.suspicion.notify_one();
    }

    /// Notified when a local region has a newer owner elsewhere.
    pub fn superseded(&self) -> Arc<Notify> {
        self.superseded.clone()
    }

    /// Notified when a member may be dead.
    pub fn suspicion(&self) -> Arc<Notify> {
        self.suspicion.clone()
    }

    /// How many members have reported within `limit` that a member may be dead.
    pub fn reporters(&self, suspect: u64, limit: Duration) -> usize {
        let suspected = self.suspected.lock();
        let said = suspected.get(&suspect);
        said.map_or(0, |said| said.values().filter(|at| at.elapsed() <= limit).count())
    }

    /// Records a newer owner of a region, whose first message arrived before the store reported it.
    /// From now on messages for the region go to that owner, not to a local actor, nor to a process
    /// that may not know of the change. (In a migration the former owner has announced it.)
    fn supersede(
        &self,
        links: &Links,
        directory: &Directory,
        speaker: Option<(RegionId, Epoch)>,
        from: u64,
    ) {
        let newer = |(region, epoch): &(RegionId, Epoch)| *epoch > self.epoch(*region);
        let Some((region, epoch)) = speaker.filter(newer) else { return };
        if mutants::has(Mutant::AnyEpoch) {
            return;
        }
        match directory.look_up(region) {
            Lookup::At(RegionAddress::Here(_)) => {
                purview::log_limited!(warn, %region, %epoch, from, "a region that runs here has another owner");
                directory.set_region(region, links.region(from, region));
                self.superseded.notify_one();
            }
            Lookup::At(RegionAddress::Remote(at)) if at.process().is_some_and(|at| at != from) => {
                tracing::debug!(%region, %epoch, from, "a region has another owner");
                directory.set_region(region, links.region(from, region));
            }
            _ => {}
        }
    }

    /// Whether a process that answers for a player in this epoch is no longer the owner: another
    /// owner has since continued the region from a checkpoint.
    fn is_none_any_more(
        &self,
        directory: &Directory,
        (from, region): (u64, RegionId),
        epoch: Epoch,
    ) -> bool {
        let owner = match directory.look_up(region) {
            Lookup::At(RegionAddress::Here(_)) => Some(directory.process()),
            Lookup::At(RegionAddress::Remote(at)) => at.process(),
            Lookup::Nowhere | Lookup::Gone => None,
        };
        let is_old = epoch < self.epoch(region).of_birth();
        is_old && owner.is_some_and(|owner| owner != from) && !mutants::has(Mutant::OwnerPassedOver)
    }

    /// Records the newest epoch up to which the store has reported every owner.
    pub fn knows_up_to(&self, epoch: Epoch) {
        self.newest.fetch_max(epoch.0, Relaxed);
    }

    /// Records the owner of a region as the store, complete up to `newest`, reports it. A later
    /// owner that a peer named, and that the store would know, does not exist.
    pub fn correct_epoch(&self, region: RegionId, owner: Epoch, newest: Epoch) {
        let mut epochs = self.epochs.write();
        if let Some(known) =
            epochs.get_mut(&region).filter(|known| owner < **known && **known <= newest)
        {
            tracing::error!(%region, claimed = %*known, %owner, "a peer named an owner that the store does not know");
            *known = owner;
        }
    }

    /// Whether the sender may be the owner.
    fn believes(&self, input: &Input, epoch: Epoch, from: u64) -> bool {
        let Some(region) = speaker(input) else { return true };
        let known = self.epoch(region);
        if epoch < known && !mutants::has(Mutant::AnyEpoch) {
            self.metrics.fenced.fetch_add(1, Relaxed);
            purview::log_limited!(warn, %region, %epoch, from, "a message of a former owner was dropped");
            return false;
        }
        if epoch > known {
            self.set_epoch(region, epoch);
        }
        true
    }

    /// Handles a message about a migrating region.
    async fn moving(
        self: &Arc<Self>,
        links: &Links,
        directory: &Arc<Directory>,
        (from, channel): (u64, Kind),
        msg: MoveMsg,
        bytes: usize,
    ) {
        match msg {
            MoveMsg::Moved { region, epoch, to } => {
                self.moved(links, directory, region, Elsewhere { epoch, to });
                // Everything that the sender sent before on this channel was received before.
                let mark = Mark { process: links.process(), sessions: channel == Kind::Sessions };
                let marks = self.backlogs.marks();
                if marks.is_empty() {
                    return self.say_marked(links, from, region, mark).await;
                }
                // Some of it is queued for regions with full mailboxes.
                let (me, known) = (self.clone(), links.clone());
                links.executor().spawn(async move {
                    if me.has_passed(&marks).await {
                        me.say_marked(&known, from, region, mark).await;
                    }
                });
            }
            MoveMsg::Passed { region, epoch, input } => {
                if !self.believes(&input, epoch, from) {
                    return;
                }
                let client = links.session_of(directory, &input);
                let entry = BacklogEntry::Passed(ToRegion { input, client });
                self.bring(links, directory, (from, region), entry, bytes).await;
            }
            // Queued after everything that was received before for the region.
            MoveMsg::Marked { region, mark } => {
                let entry = BacklogEntry::Marked(from, mark);
                self.bring(links, directory, (from, region), entry, bytes).await;
            }
            msg => self.to_migrator(from, msg),
        }
    }

    async fn say_marked(&self, links: &Links, from: u64, region: RegionId, mark: Mark) {
        let (late, marked) = (Instant::now() + MOVE, MoveMsg::Marked { region, mark });
        if let Err(why) = links.say(from, Kind::Regions, marked, late).await {
            purview::log_limited!(warn, %region, from, %why, "a migrating region could not be told that all messages were received");
        }
    }

    /// Waits until all entries up to these positions were delivered; false when that takes longer
    /// than a migration may take.
    async fn has_passed(&self, marks: &Marks) -> bool {
        let late = Instant::now() + MOVE;
        while !self.backlogs.have_passed(marks) {
            if Instant::now() >= late {
                return false;
            }
            tokio::time::sleep(AGAIN).await;
        }
        true
    }

    /// Passes a message to the migrator. A message without room is lost and counted: the region
    /// stays where it is, or recovers from its last checkpoint if its migration has begun.
    fn to_migrator(&self, from: u64, msg: MoveMsg) {
        match self.migrator.get().map(|migrator| migrator.try_send((from, msg))) {
            Some(Ok(())) => {}
            Some(Err(TrySendError::Full(_))) => {
                self.metrics.moves_refused.fetch_add(1, Relaxed);
                purview::log_limited!(warn, from, "too many migration messages; this one is lost");
            }
            Some(Err(TrySendError::Closed(_))) | None => {
                purview::log_limited!(
                    warn,
                    from,
                    "a migration message for a process without a migrator"
                );
            }
        }
    }

    /// Records the new place of a region; false if it is known already.
    pub fn note_move(&self, region: RegionId, at: Elsewhere) -> bool {
        let mut moved = self.moved.write();
        moved.insert(region, at) != Some(at)
    }

    /// Handles the news that a region now lives in another process, or will live here.
    fn moved(&self, links: &Links, directory: &Directory, region: RegionId, at: Elsewhere) {
        // The news may be old: the region may have had other owners since, which the store has
        // reported.
        let is_old = self.epoch(region) > at.epoch;
        if is_old || !self.note_move(region, at) {
            return;
        }
        match at.to == links.process() {
            true => drop(directory.wait_here(region)),
            false => directory.set_region(region, links.region(at.to, region)),
        }
    }

    /// Migrations of other regions that the store has not reported yet.
    pub fn moves_of_others(&self, region: RegionId) -> Vec<KnownMove> {
        let moved = self.moved.read();
        let others = moved.iter().filter(|(other, _)| **other != region);
        let known = |(region, at): (&RegionId, &Elsewhere)| KnownMove {
            region: *region,
            epoch: at.epoch,
            to: at.to,
        };
        let mut known: Vec<KnownMove> = others.map(known).collect();
        known.sort_unstable_by_key(|known| known.region);
        known
    }

    /// Whether messages go where a migration has led, or to a newer owner.
    pub fn has_heard(&self, of: &KnownMove) -> bool {
        self.elsewhere(of.region).is_some_and(|at| at.epoch >= of.epoch)
            || self.epoch(of.region) > of.epoch
    }

    /// The new place of a region, until the store reports it.
    pub fn elsewhere(&self, region: RegionId) -> Option<Elsewhere> {
        self.moved.read().get(&region).copied()
    }

    pub fn forget_move(&self, region: RegionId) {
        self.moved.write().remove(&region);
    }

    /// Delivers an entry to a region. If the mailbox is full, the entry is queued, and the channel
    /// goes on for other regions.
    async fn bring(
        self: &Arc<Self>,
        links: &Links,
        directory: &Arc<Directory>,
        (from, to): (u64, RegionId),
        mut entry: BacklogEntry,
        bytes: usize,
    ) {
        loop {
            let room = self.backlogs.room.notified();
            let give = |entry| self.give(directory, to, entry);
            match self.backlogs.bring((from, to), entry, bytes, give) {
                Brought::Delivered => return,
                Brought::Waits { first, busy } => {
                    self.metrics.backlogged.fetch_add(1, Relaxed);
                    if busy && links.tell_busy(from, to, true) {
                        self.backlogs.told(from, to);
                    }
                    if first {
                        links.executor().spawn(self.clone().empty_backlog(to));
                    }
                    return;
                }
                // The peer ignores that the region is busy: its channel waits.
                Brought::NoRoom(back) => entry = back,
            }
            // The room may have become free before the wait began.
            let _late = tokio::time::timeout(AGAIN * 10, room).await;
        }
    }

    /// Delivers a region's queued entries as its mailbox accepts them.
    async fn empty_backlog(self: Arc<Self>, region: RegionId) {
        loop {
            tokio::time::sleep(AGAIN).await;
            let Some((links, directory)) = self.endpoints() else { return };
            let give = |entry| self.give(&directory, region, entry);
            if !self.backlogs.empty(region, give, |peer| links.tell_busy(peer, region, false)) {
                return;
            }
        }
    }

    /// Delivers an entry; returns it while there is no room.
    fn give(
        &self,
        directory: &Directory,
        to: RegionId,
        entry: BacklogEntry,
    ) -> Result<(), BacklogEntry> {
        match entry {
            BacklogEntry::Say(msg) => match directory.send_from_peer(to, msg) {
                Ok(()) => {}
                Err(NotSent::Full(msg)) => return Err(BacklogEntry::Say(msg)),
                Err(other) => self.misrouted(directory, to, other.into_message()),
            },
            BacklogEntry::Passed(msg) => match directory.passed_on(to, msg) {
                Ok(()) => {}
                Err(SendError::Full(msg)) => return Err(BacklogEntry::Passed(msg)),
                Err(SendError::Closed(msg)) => self.misrouted(directory, to, msg),
            },
            // A marker from a sender to the old owner, whose actor forwards it after everything
            // received before.
            BacklogEntry::Marked(from, mark)
                if mark.process == from && directory.mark(to, mark) => {}
            BacklogEntry::Marked(from, mark) => {
                self.to_migrator(from, MoveMsg::Marked { region: to, mark });
            }
        }
        Ok(())
    }

    /// Messages for regions without an address that found no room in the queue.
    pub(super) fn kept_lost(&self) -> u64 {
        self.endpoints().map_or(0, |(_, directory)| directory.kept_lost())
    }

    /// Queued messages for regions with full mailboxes, and their bytes.
    pub fn backlog(&self) -> (usize, usize) {
        self.backlogs.waiting()
    }

    /// Handles a message for a region that is not local.
    fn misrouted(&self, directory: &Directory, to: RegionId, msg: ToRegion) {
        self.metrics.misrouted.fetch_add(1, Relaxed);
        if follows(&msg.input) {
            directory.keep(to, msg);
        }
    }

    fn to_sessions(
        &self,
        links: &Links,
        directory: &Directory,
        from: u64,
        region: RegionId,
        batch: FrameBatch,
    ) {
        let encoded = Arc::new(EncodedBatch::new(batch));
        let NotDelivered { lost, gone } = directory.deliver_frames(&encoded);
        for (id, session, told) in lost {
            self.metrics.frames_lost.fetch_add(1, Relaxed);
            links.tell(from, region, Input::Resync { id, session, told, question: 0 });
        }
        if !gone.is_empty() {
            links.gone(from, gone);
        }
    }
}

/// Whether a message is useful for the next owner of a region. Sessions repeat the inputs of
/// clients; ghosts and negotiation start anew.
pub fn follows(input: &Input) -> bool {
    !matches!(
        input,
        Input::Border(_)
            | Input::BorderLost(_)
            | Input::BorderRound(_)
            | Input::View(_)
            | Input::Client { .. }
    )
}

/// The message for the next owner of a region, from a message that a dead process did not
/// acknowledge. The dead process may have acted on it and told others the outcome.
pub fn bequeathed(input: Input) -> Option<Input> {
    // The mutants of the second line have an effect only together with the first.
    let broken = [Mutant::SaidToBoth, Mutant::LateHandoff, Mutant::OwnersUnknown];
    if broken.into_iter().any(mutants::has) {
        return follows(&input).then_some(input);
    }
    match input {
        // The entity may have moved on since. An owner that recovers from a checkpoint asks others
        // first.
        Input::Handoff(handoff) => {
            let (from, tick) = (handoff.from, handoff.tick);
            let (answer, lives, handed) = (None, Vec::new(), vec![handoff.alone()]);
            Some(Input::Claims(Box::new(Claims { from, answer, tick, lives, handed })))
        }
        // The session repeats it until it is confirmed.
        Input::Enter(spawn) if spawn.session.is_some() => None,
        // An entry comes again; a call would be applied twice.
        Input::Command(_) => None,
        input => follows(&input).then_some(input),
    }
}

fn session_of(input: &Input) -> Option<SessionId> {
    match input {
        Input::Enter(spawn) => spawn.session,
        Input::Handoff(handoff) => handoff.state.session,
        Input::Present(presented) => Some(presented.session),
        Input::Resume(resume) => Some(resume.session),
        _ => None,
    }
}

impl Links {
    /// The address of the session with which an entity arrives.
    pub fn session_of(&self, directory: &Directory, input: &Input) -> Option<SessionAddress> {
        self.session(directory, session_of(input)?)
    }

    pub fn session(&self, directory: &Directory, session: SessionId) -> Option<SessionAddress> {
        let process = Directory::process_of(session);
        if process == directory.process() {
            return directory.session(session).map(|entry| SessionAddress::Here(entry.to));
        }
        self.gateway(process).map(SessionAddress::Remote)
    }
}

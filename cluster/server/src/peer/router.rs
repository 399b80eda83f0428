//! Where what a peer says goes: to a region or a session of this process.

#![expect(clippy::result_large_err, reason = "what is not taken is given back, as actix does")]

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};
use std::time::Duration;

use actix::dev::SendError;
use purview::actor::address::{RegionAddress, SessionAddress};
use purview::actor::directory::{Directory, Lookup, NotSent};
use purview::actor::messages::{Delivery, ToRegion};
use purview::scene::messages::{Claims, FrameBatch, Input, Notice};
use purview::scene::mutants::{self, Mutant};
use purview::scene::region::Implausible;
use purview::scene::{Epoch, RegionId, SessionId};
use purview::wire::EncodedBatch;
use purview::wire::peer::{Mark, MoveMsg, PeerError, PeerMsg, speaker};
use rustc_hash::FxHashMap;
use tokio::sync::Notify;
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::Instant;

use super::backlog::{Backlogs, Brought, Entry, Places};
use super::{Kind, Links, MOVE, Member, WeakLinks};

/// What was heard from peers.
#[derive(Debug, Default)]
pub struct SwitchMetrics {
    /// Messages of regions by whoever owned them before; dropped.
    pub fenced: AtomicU64,
    /// Messages that their sender may not say; dropped.
    pub forbidden: AtomicU64,
    /// Messages that were not understood; dropped.
    pub malformed: AtomicU64,
    /// Messages of kinds that only a next release knows; dropped.
    pub unknown: AtomicU64,
    /// Messages for regions that are not here; passed on if they must arrive, else dropped.
    pub astray: AtomicU64,
    /// Frames for sessions that are not here, or whose mailbox was full.
    pub frames_lost: AtomicU64,
    /// Messages that waited since a region's mailbox was full.
    pub backlogged: AtomicU64,
    /// Messages of regions under epochs that cannot be true; dropped.
    pub implausible: AtomicU64,
    /// What is said of regions that move for which there was no room; those regions stay, or recover.
    pub moves_refused: AtomicU64,
}

/// Where a region has moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elsewhere {
    /// The epoch of the owner that it has left.
    pub epoch: Epoch,
    /// The new owner's process.
    pub to: u64,
}

/// Members of whom others may say that they are dead.
const MAX_SUSPECTED: usize = 1_024;

/// How far above the store's newest known epoch that of an owner may be of which the store has not told yet.
const EPOCHS_AHEAD: u64 = 1 << 24;

/// The highest epoch that is believed before the store was heard.
const EPOCH_MAX: u64 = 1 << 42;

/// How soon what found no room is tried again.
const AGAIN: Duration = Duration::from_millis(2);

/// Takes messages from peers.
#[derive(Debug, Default)]
pub struct Switch {
    /// Both know of this, too: they would keep each other for good.
    links: OnceLock<WeakLinks>,
    directory: OnceLock<Weak<Directory>>,
    /// The newest epoch that was heard of each region.
    epochs: RwLock<FxHashMap<RegionId, Epoch>>,
    /// Where regions have moved of which the store does not tell yet.
    moved: RwLock<FxHashMap<RegionId, Elsewhere>>,
    /// Who may be dead: who said so, and when last.
    suspected: Mutex<FxHashMap<u64, FxHashMap<u64, Instant>>>,
    suspicion: Arc<Notify>,
    /// Told when a region that runs here has another owner.
    deposed: Arc<Notify>,
    mover: OnceLock<Sender<(u64, MoveMsg)>>,
    /// What waits for regions whose mailboxes are full.
    backlogs: Backlogs,
    /// The store's newest epoch; 0: it was not heard yet.
    newest: AtomicU64,
    metrics: SwitchMetrics,
}

impl Switch {
    /// What was heard.
    pub fn metrics(&self) -> &SwitchMetrics {
        &self.metrics
    }

    /// Where messages go from now on; what comes before, or when the process is no more, is dropped.
    pub(super) fn connect(&self, links: &Links, directory: &Arc<Directory>) {
        let (links, directory) = (links.downgrade(), Arc::downgrade(directory));
        let first = self.directory.set(directory).is_ok() && self.links.set(links).is_ok();
        if !first {
            tracing::error!("links were connected twice");
        }
    }

    /// What messages are taken by, as long as the process is there.
    fn ends(&self) -> Option<(Links, Arc<Directory>)> {
        self.links.get()?.upgrade().zip(self.directory.get()?.upgrade())
    }

    /// What a process is, if it is a member of the cluster.
    pub(super) fn member(&self, process: u64) -> Option<Arc<Member>> {
        self.links.get().and_then(WeakLinks::upgrade)?.member(process)
    }

    /// A message was not understood.
    pub(super) fn refused(&self, from: u64, error: &PeerError) {
        let counter = match error {
            PeerError::Unknown(_) => &self.metrics.unknown,
            _ => &self.metrics.malformed,
        };
        counter.fetch_add(1, Relaxed);
        purview::log_limited!(error, from, %error, "a message was left out");
    }

    /// From now on nobody speaks for a region but its owner of this epoch or a later one.
    pub fn set_epoch(&self, region: RegionId, epoch: Epoch) {
        let mut epochs = self.epochs.write().unwrap_or_else(PoisonError::into_inner);
        let known = epochs.entry(region).or_default();
        *known = (*known).max(epoch);
    }

    /// The newest epoch that was heard of a region.
    pub fn epoch(&self, region: RegionId) -> Epoch {
        let epochs = self.epochs.read().unwrap_or_else(PoisonError::into_inner);
        epochs.get(&region).copied().unwrap_or_default()
    }

    /// Where those of [`MoveMsg`] go that the two owners say to each other.
    pub fn set_mover(&self, mover: Sender<(u64, MoveMsg)>) {
        if self.mover.set(mover).is_err() {
            tracing::error!("a process has two movers");
        }
    }

    /// Takes one message of a lane, of so many bytes.
    pub(super) async fn take(
        self: &Arc<Self>,
        from: u64,
        lane: Kind,
        message: PeerMsg,
        bytes: usize,
    ) {
        let Some((links, directory)) = &self.ends() else { return };
        match message {
            PeerMsg::Region { to, epoch, input } => {
                if speaker(&input).is_some_and(|region| !self.is_plausible(region, epoch, from)) {
                    return;
                }
                self.depose(links, directory, speaker(&input).map(|region| (region, epoch)), from);
                if self.believes(&input, epoch, from) {
                    let client = links.session_of(directory, &input);
                    let entry = Entry::Say(ToRegion { input, client });
                    self.bring(links, directory, (from, to), entry, bytes).await;
                }
            }
            PeerMsg::Frames { from: region, batch } => {
                self.to_sessions(links, directory, from, region, *batch);
            }
            PeerMsg::Notice { notice: Notice::Resumed(found), .. }
                if self.is_none_any_more(directory, (from, found.region), found.epoch) =>
            {
                // The session asks again, and the owner answers.
                self.metrics.fenced.fetch_add(1, Relaxed);
                purview::log_limited!(warn, region = %found.region, epoch = %found.epoch, from, "a former owner has found a player");
            }
            PeerMsg::Notice { session, notice } => match directory.session(session) {
                Some(entry) => drop(entry.to.send(Delivery::Notice(notice)).await),
                None => links.gone(from, vec![session]),
            },
            PeerMsg::Gone(sessions) => links.sessions_are_gone(from, &sessions),
            PeerMsg::Busy { region, busy } => links.is_busy(from, region, busy),
            PeerMsg::Suspect(suspect) => self.suspect(suspect, from),
            PeerMsg::Move(msg) => self.moving(links, directory, (from, lane), *msg, bytes).await,
            PeerMsg::Ask { ticket, question } => links.asked(from, ticket, question),
            PeerMsg::Told { ticket, answer } => links.told(from, ticket, answer),
        }
    }

    /// A member says that another one may be dead.
    fn suspect(&self, suspect: u64, by: u64) {
        let mut suspected = self.suspected.lock().unwrap_or_else(PoisonError::into_inner);
        if suspected.len() >= MAX_SUSPECTED {
            suspected.clear();
        }
        suspected.entry(suspect).or_default().insert(by, Instant::now());
        drop(suspected);
        self.suspicion.notify_one();
    }

    /// Told when a region that runs here has another owner.
    pub fn deposed(&self) -> Arc<Notify> {
        self.deposed.clone()
    }

    /// Told when somebody may be dead.
    pub fn suspicion(&self) -> Arc<Notify> {
        self.suspicion.clone()
    }

    /// How many others have said within `limit` that a member may be dead.
    pub fn witnesses(&self, suspect: u64, limit: Duration) -> usize {
        let suspected = self.suspected.lock().unwrap_or_else(PoisonError::into_inner);
        let said = suspected.get(&suspect);
        said.map_or(0, |said| said.values().filter(|at| at.elapsed() <= limit).count())
    }

    /// A region has another owner by now, as that one's first word says before the store does: from now on what is for it
    /// goes there, and not to one that runs here, nor to a process that may not have heard of it. (Where a region moves its
    /// former owner has said so before.)
    fn depose(
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
                self.deposed.notify_one();
            }
            Lookup::At(RegionAddress::Away(at)) if at.process().is_some_and(|at| at != from) => {
                tracing::debug!(%region, %epoch, from, "a region has another owner");
                directory.set_region(region, links.region(from, region));
            }
            _ => {}
        }
    }

    /// Whether a process that knows a player of a region under this epoch is not its owner any more: another one has it, which
    /// has gone on from a checkpoint since.
    fn is_none_any_more(
        &self,
        directory: &Directory,
        (from, region): (u64, RegionId),
        epoch: Epoch,
    ) -> bool {
        let owner = match directory.look_up(region) {
            Lookup::At(RegionAddress::Here(_)) => Some(directory.process()),
            Lookup::At(RegionAddress::Away(at)) => at.process(),
            Lookup::Nowhere | Lookup::Gone => None,
        };
        let is_old = epoch < self.epoch(region).of_birth();
        is_old && owner.is_some_and(|owner| owner != from) && !mutants::has(Mutant::OwnerPassedOver)
    }

    /// The store's newest epoch, up to which everything is known of who owns what.
    pub fn knows_up_to(&self, epoch: Epoch) {
        self.newest.fetch_max(epoch.0, Relaxed);
    }

    /// The store, which knows everything up to `newest`, says who owns a region. A later owner that somebody has named, and
    /// of which the store would know, does not exist.
    pub fn correct_epoch(&self, region: RegionId, owner: Epoch, newest: Epoch) {
        let mut epochs = self.epochs.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) =
            epochs.get_mut(&region).filter(|known| owner < **known && **known <= newest)
        {
            tracing::error!(%region, claimed = %*known, %owner, "somebody has named an owner that the store does not know");
            *known = owner;
        }
    }

    /// Whether the epoch under which somebody speaks for a region, or of it, can be true.
    fn is_plausible(&self, region: RegionId, epoch: Epoch, from: u64) -> bool {
        let newest = self.newest.load(Relaxed);
        let most = if newest == 0 { EPOCH_MAX } else { newest.saturating_add(EPOCHS_AHEAD) };
        if epoch.0 <= most {
            return true;
        }
        let why = Implausible::RegionEpoch { region, found: epoch, most: Epoch(most) };
        self.metrics.implausible.fetch_add(1, Relaxed);
        purview::log_limited!(warn, from, %why, "a message was dropped");
        false
    }

    /// Whether who speaks may be the owner.
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

    /// A region moves.
    async fn moving(
        self: &Arc<Self>,
        links: &Links,
        directory: &Arc<Directory>,
        (from, lane): (u64, Kind),
        msg: MoveMsg,
        bytes: usize,
    ) {
        match msg {
            MoveMsg::Moved { region, epoch, .. } if !self.is_plausible(region, epoch, from) => {}
            MoveMsg::Moved { region, epoch, to } => {
                self.moved(links, directory, region, Elsewhere { epoch, to });
                // Everything that it said before on this lane was taken before.
                let mark = Mark { process: links.process(), sessions: lane == Kind::Sessions };
                let places = self.backlogs.places();
                if places.is_empty() {
                    return self.say_marked(links, from, region, mark).await;
                }
                // Some of it waits for regions whose mailboxes are full.
                let (me, known) = (self.clone(), links.clone());
                links.home().spawn(async move {
                    if me.has_passed(&places).await {
                        me.say_marked(&known, from, region, mark).await;
                    }
                });
            }
            MoveMsg::Passed { region, epoch, input } => {
                let speaks = speaker(&input);
                if speaks.is_some_and(|region| !self.is_plausible(region, epoch, from))
                    || !self.believes(&input, epoch, from)
                {
                    return;
                }
                let client = links.session_of(directory, &input);
                let entry = Entry::Passed(ToRegion { input, client });
                self.bring(links, directory, (from, region), entry, bytes).await;
            }
            // After all that has come before for the region.
            MoveMsg::Marked { region, mark } => {
                let entry = Entry::Marked(from, mark);
                self.bring(links, directory, (from, region), entry, bytes).await;
            }
            msg => self.to_mover(from, msg),
        }
    }

    async fn say_marked(&self, links: &Links, from: u64, region: RegionId, mark: Mark) {
        let (late, marked) = (Instant::now() + MOVE, MoveMsg::Marked { region, mark });
        if let Err(why) = links.say(from, Kind::Regions, marked, late).await {
            purview::log_limited!(warn, %region, from, %why, "a region that moves is not told that all was heard");
        }
    }

    /// Waits until everything was taken that waits up to these places; false when that takes longer than a region may
    /// take to move.
    async fn has_passed(&self, places: &Places) -> bool {
        let late = Instant::now() + MOVE;
        while !self.backlogs.have_passed(places) {
            if Instant::now() >= late {
                return false;
            }
            tokio::time::sleep(AGAIN).await;
        }
        true
    }

    /// Says to who moves regions what is said of one. What it has no room for is lost and counted: a region that is to move
    /// stays where it is, or recovers from its last checkpoint when its move has begun.
    fn to_mover(&self, from: u64, msg: MoveMsg) {
        match self.mover.get().map(|mover| mover.try_send((from, msg))) {
            Some(Ok(())) => {}
            Some(Err(TrySendError::Full(_))) => {
                self.metrics.moves_refused.fetch_add(1, Relaxed);
                purview::log_limited!(
                    warn,
                    from,
                    "too much is said of regions that move; this is lost"
                );
            }
            Some(Err(TrySendError::Closed(_))) | None => {
                purview::log_limited!(
                    warn,
                    from,
                    "a region is to move, and nobody here can move regions"
                );
            }
        }
    }

    /// Notes that a region lives elsewhere from now on; false when that is known.
    pub fn note_move(&self, region: RegionId, at: Elsewhere) -> bool {
        let mut moved = self.moved.write().unwrap_or_else(PoisonError::into_inner);
        moved.insert(region, at) != Some(at)
    }

    /// A region lives in another process from now on, or is about to live here.
    fn moved(&self, links: &Links, directory: &Directory, region: RegionId, at: Elsewhere) {
        // Told late, it may have had other owners since, whom the store has told of.
        let is_old = self.epoch(region) > at.epoch;
        if is_old || !self.note_move(region, at) {
            return;
        }
        match at.to == links.process() {
            true => drop(directory.wait_here(region)),
            false => directory.set_region(region, links.region(at.to, region)),
        }
    }

    /// Where a region has moved of which the store does not tell yet.
    pub fn elsewhere(&self, region: RegionId) -> Option<Elsewhere> {
        self.moved.read().unwrap_or_else(PoisonError::into_inner).get(&region).copied()
    }

    /// The store tells.
    pub fn forget_move(&self, region: RegionId) {
        self.moved.write().unwrap_or_else(PoisonError::into_inner).remove(&region);
    }

    /// Brings something to a region. Where its mailbox is full it waits, and the lane goes on for others.
    async fn bring(
        self: &Arc<Self>,
        links: &Links,
        directory: &Arc<Directory>,
        (from, to): (u64, RegionId),
        mut entry: Entry,
        bytes: usize,
    ) {
        loop {
            let room = self.backlogs.room.notified();
            let give = |entry| self.give(directory, to, entry);
            match self.backlogs.bring((from, to), entry, bytes, give) {
                Brought::Taken => return,
                Brought::Waits { first, busy } => {
                    self.metrics.backlogged.fetch_add(1, Relaxed);
                    if busy && links.tell_busy(from, to, true) {
                        self.backlogs.told(from, to);
                    }
                    if first {
                        links.home().spawn(self.clone().empty_backlog(to));
                    }
                    return;
                }
                // A peer that does not heed that a region is busy waits.
                Brought::NoRoom(back) => entry = back,
            }
            // The room may have come before it was waited for.
            let _late = tokio::time::timeout(AGAIN * 10, room).await;
        }
    }

    /// Gives a region what waits for it, as it takes it.
    async fn empty_backlog(self: Arc<Self>, region: RegionId) {
        loop {
            tokio::time::sleep(AGAIN).await;
            let Some((links, directory)) = self.ends() else { return };
            let give = |entry| self.give(&directory, region, entry);
            if !self.backlogs.empty(region, give, |peer| links.tell_busy(peer, region, false)) {
                return;
            }
        }
    }

    /// Gives a region something; it is given back while there is no room.
    fn give(&self, directory: &Directory, to: RegionId, entry: Entry) -> Result<(), Entry> {
        match entry {
            Entry::Say(msg) => match directory.send_from_peer(to, msg) {
                Ok(()) => {}
                Err(NotSent::Full(msg)) => return Err(Entry::Say(msg)),
                Err(other) => self.astray(directory, to, other.into_message()),
            },
            Entry::Passed(msg) => match directory.passed_on(to, msg) {
                Ok(()) => {}
                Err(SendError::Full(msg)) => return Err(Entry::Passed(msg)),
                Err(SendError::Closed(msg)) => self.astray(directory, to, msg),
            },
            // From a sender to the old owner, whose actor passes it on after all that came before.
            Entry::Marked(from, mark) if mark.process == from && directory.mark(to, mark) => {}
            Entry::Marked(from, mark) => {
                self.to_mover(from, MoveMsg::Marked { region: to, mark });
            }
        }
        Ok(())
    }

    /// Messages that were to be kept for regions without an address and found no room.
    pub(super) fn kept_lost(&self) -> u64 {
        self.ends().map_or(0, |(_, directory)| directory.kept_lost())
    }

    /// Messages that wait for regions whose mailboxes are full, and their bytes.
    pub fn backlog(&self) -> (usize, usize) {
        self.backlogs.waiting()
    }

    /// A message for a region that lives here no more.
    fn astray(&self, directory: &Directory, to: RegionId, msg: ToRegion) {
        self.metrics.astray.fetch_add(1, Relaxed);
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
        let mut gone = Vec::new();
        for (i, frame) in encoded.batch().sessions.iter().enumerate() {
            let sent = directory.with_session(frame.session, |entry| {
                let sent = entry.to.try_send(Delivery::Frame(encoded.clone(), i as u32));
                if let Err(SendError::Full(_)) = &sent {
                    entry.lost.note(encoded.batch().tick);
                }
                sent.map_err(|error| (error, entry.entity))
            });
            match sent {
                Some(Ok(())) => {}
                Some(Err((SendError::Full(_), entity))) => {
                    self.metrics.frames_lost.fetch_add(1, Relaxed);
                    links.tell(from, region, Input::Resync(entity));
                }
                None | Some(Err((SendError::Closed(_), _))) => gone.push(frame.session),
            }
        }
        if !gone.is_empty() {
            links.gone(from, gone);
        }
    }
}

/// Whether a message is still of use to the next owner of a region: inputs of clients are sent again by
/// their sessions, ghosts and negotiation are told anew.
pub fn follows(input: &Input) -> bool {
    !matches!(
        input,
        Input::Border(_)
            | Input::BorderLost(_)
            | Input::Settle(_)
            | Input::View(_)
            | Input::Client { .. }
    )
}

/// What is left of a message that a process did not acknowledge before it died, for the next owner of the region that it
/// was for: the dead one may have acted on it, and told others what became of it.
pub fn bequeathed(input: Input) -> Option<Input> {
    // Those of the second line show only where this one is broken, too.
    let broken = [Mutant::SaidToBoth, Mutant::LateHandoff, Mutant::OwnersUnknown];
    if broken.into_iter().any(mutants::has) {
        return follows(&input).then_some(input);
    }
    match input {
        // It may have gone on since. Who goes on from a checkpoint asks others first.
        Input::Handoff(handoff) => {
            let (from, tick) = (handoff.from, handoff.tick);
            let (answer, lives, handed) = (None, Vec::new(), vec![handoff.alone()]);
            Some(Input::Claims(Box::new(Claims { from, answer, tick, lives, handed })))
        }
        // Its session says it again until it hears that it is there.
        Input::Enter(spawn) if spawn.session.is_some() => None,
        input => follows(&input).then_some(input),
    }
}

/// The session that an entity comes with.
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
    /// Where the session is reached that an entity comes with.
    pub fn session_of(&self, directory: &Directory, input: &Input) -> Option<SessionAddress> {
        self.session(directory, session_of(input)?)
    }

    /// Where a session is reached from here.
    pub fn session(&self, directory: &Directory, session: SessionId) -> Option<SessionAddress> {
        let process = Directory::process_of(session);
        if process == directory.process() {
            return directory.session(session).map(|entry| SessionAddress::Here(entry.to));
        }
        self.gateway(process).map(SessionAddress::Away)
    }
}

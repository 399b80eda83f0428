//! Where what a peer says goes: to a region or a session of this process.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};
use std::time::Duration;

use actix::dev::SendError;
use purview::actor::address::{RegionAddress, SessionAddress};
use purview::actor::directory::{Directory, Lookup, NotSent};
use purview::actor::messages::{Delivery, ToRegion};
use purview::scene::border::Claims;
use purview::scene::effects::{Input, Notice};
use purview::scene::frames::FrameBatch;
use purview::scene::mutants::{self, Mutant};
use purview::scene::{Epoch, RegionId, SessionId};
use purview::wire::EncodedBatch;
use purview::wire::peer::{Mark, MoveMsg, PeerError, PeerMsg, speaker};
use rustc_hash::FxHashMap;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

use super::{Kind, Links, MOVE, WeakLinks};

/// What was heard from peers.
#[derive(Debug, Default)]
pub struct SwitchMetrics {
    /// Messages of regions by whoever owned them before; dropped.
    pub fenced: AtomicU64,
    /// Messages that were not understood; dropped.
    pub malformed: AtomicU64,
    /// Messages of kinds that only a next release knows; dropped.
    pub unknown: AtomicU64,
    /// Messages for regions that are not here; passed on if they must arrive, else dropped.
    pub astray: AtomicU64,
    /// Frames for sessions that are not here, or whose mailbox was full.
    pub frames_lost: AtomicU64,
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
    mover: OnceLock<UnboundedSender<(u64, MoveMsg)>>,
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

    /// Whether a process is a member of the cluster.
    pub(super) fn knows(&self, process: u64) -> bool {
        self.links.get().and_then(WeakLinks::upgrade).is_some_and(|links| links.knows(process))
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
    pub fn set_mover(&self, mover: UnboundedSender<(u64, MoveMsg)>) {
        if self.mover.set(mover).is_err() {
            tracing::error!("a process has two movers");
        }
    }

    /// Takes one message of a lane; waits while the mailbox that it is for is full.
    pub(super) async fn take(&self, from: u64, lane: Kind, message: PeerMsg) {
        let Some((links, directory)) = &self.ends() else { return };
        match message {
            PeerMsg::Region { to, epoch, input } => {
                self.depose(links, directory, speaker(&input).map(|region| (region, epoch)), from);
                if self.believes(&input, epoch, from) {
                    self.to_region(links, directory, to, input).await;
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
            PeerMsg::Suspect(suspect) => self.suspect(suspect, from),
            PeerMsg::Move(msg) => self.moving(links, directory, (from, lane), *msg).await,
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
        &self,
        links: &Links,
        directory: &Arc<Directory>,
        (from, lane): (u64, Kind),
        msg: MoveMsg,
    ) {
        match msg {
            MoveMsg::Moved { region, epoch, to } => {
                self.moved(links, directory, region, Elsewhere { epoch, to });
                // Everything that it said before on this lane was taken before.
                let mark = Mark { process: links.process(), sessions: lane == Kind::Sessions };
                let late = Instant::now() + MOVE;
                if let Err(why) =
                    links.say(from, Kind::Regions, MoveMsg::Marked { region, mark }, late).await
                {
                    purview::log_limited!(warn, %region, from, %why, "a region that moves is not told that all was heard");
                }
            }
            MoveMsg::Passed { region, epoch, input } => {
                if !self.believes(&input, epoch, from) {
                    return;
                }
                let client = links.session_of(directory, &input);
                let mut msg = ToRegion { input, client };
                loop {
                    msg = match directory.passed_on(region, msg) {
                        Ok(()) => return,
                        Err(SendError::Full(msg)) => msg,
                        Err(SendError::Closed(msg)) => return self.astray(directory, region, msg),
                    };
                    tokio::time::sleep(AGAIN).await;
                }
            }
            // From a sender to the old owner, whose actor passes it on after all that came before.
            MoveMsg::Marked { region, mark } if mark.process == from => {
                if !directory.mark(region, mark) {
                    self.to_mover(from, MoveMsg::Marked { region, mark });
                }
            }
            msg => self.to_mover(from, msg),
        }
    }

    fn to_mover(&self, from: u64, msg: MoveMsg) {
        let taken = self.mover.get().is_some_and(|mover| mover.send((from, msg)).is_ok());
        if !taken {
            purview::log_limited!(
                warn,
                from,
                "a region is to move, and nobody here can move regions"
            );
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

    async fn to_region(
        &self,
        links: &Links,
        directory: &Arc<Directory>,
        to: RegionId,
        input: Input,
    ) {
        let client = links.session_of(directory, &input);
        let msg = ToRegion { input, client };
        let mut msg = msg;
        loop {
            msg = match directory.send_from_peer(to, msg) {
                Ok(()) => return,
                // The lane waits; what is sent on it meanwhile waits at the sender.
                Err(NotSent::Full(msg)) => msg,
                Err(other) => return self.astray(directory, to, other.into_message()),
            };
            tokio::time::sleep(AGAIN).await;
        }
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

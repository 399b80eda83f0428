//! Where what a peer says goes: to a region or a session of this process.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use actix::dev::SendError;
use purview::actor::address::{RegionAddress, SessionAddress};
use purview::actor::directory::{Directory, Lookup};
use purview::actor::messages::{Delivery, ToRegion};
use purview::scene::effects::Input;
use purview::scene::frames::FrameBatch;
use purview::scene::{Epoch, RegionId, SessionId};
use purview::wire::EncodedBatch;
use purview::wire::peer::{PeerMsg, speaker};
use rustc_hash::FxHashMap;

use super::Links;

/// What was heard from peers.
#[derive(Debug, Default)]
pub struct SwitchMetrics {
    /// Messages of regions by whoever owned them before; dropped.
    pub fenced: AtomicU64,
    /// Messages that were not understood; dropped.
    pub malformed: AtomicU64,
    /// Messages for regions that are not here; passed on if they must arrive, else dropped.
    pub astray: AtomicU64,
    /// Frames for sessions that are not here, or whose mailbox was full.
    pub frames_lost: AtomicU64,
}

/// Takes messages from peers.
#[derive(Debug, Default)]
pub struct Switch {
    links: OnceLock<Links>,
    directory: OnceLock<Arc<Directory>>,
    /// The newest epoch that was heard of each region.
    epochs: RwLock<FxHashMap<RegionId, Epoch>>,
    metrics: SwitchMetrics,
}

impl Switch {
    /// What was heard.
    pub fn metrics(&self) -> &SwitchMetrics {
        &self.metrics
    }

    /// Where messages go from now on; what came before waits.
    pub(super) fn connect(&self, links: Links, directory: Arc<Directory>) {
        let first = self.directory.set(directory).is_ok() && self.links.set(links).is_ok();
        if !first {
            tracing::error!("links were connected twice");
        }
    }

    /// Whether a process is a member of the cluster.
    pub(super) fn knows(&self, process: u64) -> bool {
        self.links.get().is_some_and(|links| links.knows(process))
    }

    /// A message was not understood.
    pub(super) fn refused(&self) {
        self.metrics.malformed.fetch_add(1, Relaxed);
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

    /// Takes one message; waits while the mailbox that it is for is full.
    pub(super) async fn take(&self, from: u64, message: PeerMsg) {
        let (Some(links), Some(directory)) = (self.links.get(), self.directory.get()) else {
            return;
        };
        match message {
            PeerMsg::Region { to, epoch, input } => {
                if let Some(region) = speaker(&input) {
                    if epoch < self.epoch(region) {
                        self.metrics.fenced.fetch_add(1, Relaxed);
                        tracing::warn!(%region, %epoch, from, "a message of a former owner was dropped");
                        return;
                    }
                    self.set_epoch(region, epoch);
                }
                self.to_region(links, directory, to, input).await;
            }
            PeerMsg::Frames { from: region, batch } => {
                self.to_sessions(links, directory, from, region, batch);
            }
            PeerMsg::Notice { session, notice } => match directory.session(session) {
                Some(entry) => drop(entry.to.send(Delivery::Notice(notice)).await),
                None => links.gone(from, vec![session]),
            },
            PeerMsg::Gone(sessions) => links.sessions_are_gone(from, &sessions),
        }
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
        match directory.look_up(to) {
            Lookup::At(RegionAddress::Here(region)) => match region.try_send(msg) {
                Ok(()) => {}
                // The lane waits; what is sent on it meanwhile waits at the sender.
                Err(SendError::Full(msg)) => drop(region.send(msg).await),
                Err(SendError::Closed(msg)) => self.astray(directory, to, msg).await,
            },
            Lookup::At(RegionAddress::Away(_)) | Lookup::Nowhere | Lookup::Gone => {
                self.astray(directory, to, msg).await;
            }
        }
    }

    /// A message for a region that lives here no more.
    async fn astray(&self, directory: &Directory, to: RegionId, msg: ToRegion) {
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
            let Some(entry) = directory.session(frame.session) else {
                gone.push(frame.session);
                continue;
            };
            match entry.to.try_send(Delivery::Frame(encoded.clone(), i as u32)) {
                Ok(()) => {}
                Err(SendError::Full(_)) => {
                    self.metrics.frames_lost.fetch_add(1, Relaxed);
                    links.tell(from, region, Input::Resync(entry.entity));
                }
                Err(SendError::Closed(_)) => gone.push(frame.session),
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

/// The session that an entity comes with.
fn session_of(input: &Input) -> Option<SessionId> {
    match input {
        Input::Enter(spawn) => spawn.session,
        Input::Handoff(handoff) => handoff.state.session,
        Input::Present(presented) => Some(presented.session),
        _ => None,
    }
}

impl Links {
    /// Where the session is reached that an entity comes with.
    pub fn session_of(&self, directory: &Directory, input: &Input) -> Option<SessionAddress> {
        self.session(directory, session_of(input)?)
    }

    /// Where a session is reached from here.
    fn session(&self, directory: &Directory, session: SessionId) -> Option<SessionAddress> {
        let process = Directory::process_of(session);
        if process == directory.process() {
            return directory.session(session).map(|entry| SessionAddress::Here(entry.to));
        }
        self.gateway(process).map(SessionAddress::Away)
    }
}

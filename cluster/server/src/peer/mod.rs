//! The links between the processes of a cluster: gRPC streams (tonic) from each process to each
//! other one, with MessagePack in them (docs/contributing/cluster.md). A process creates them once;
//! regions and sessions send through them.
//!
//! ```text
//!  region ──► RemoteRegion ──► Channel: numbered, kept ──► stream ──► Inbox: once, in order ──► Router ──► region
//!               (encodes)        ▲                                  │                        └──► session
//!                                '────────── acknowledgements ◄─────'
//! ```
//!
//! A process calls each other process twice: one channel for regions, one for sessions. A channel
//! outlives its connections; it ends when its peer is no longer a member of the cluster. The
//! messages of a channel arrive once and in order, as within one process.
//!
//! *Absent on purpose:* the ownership of regions (the module `node` decides), and any judgement of
//! a message's content.

mod accept;
mod backlog;
mod channel;
mod codec;
pub(crate) mod dial;
#[doc(hidden)]
pub mod fuzzing;
pub(crate) mod hello;
mod member;
mod plausible;
mod query;
mod received;
mod remote;
mod router;
mod serve;
mod simulated;
#[cfg(test)]
mod tests;
pub(crate) mod transport;
mod workers;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::RwLock;
use purview::actor::address::{RegionAddress, RemoteGateway, RemoteRegion};
use purview::actor::directory::Directory;
use purview::scene::messages::Input;
use purview::scene::{Epoch, RegionId, SessionId};
use purview::wire::peer::{MoveMsg, PeerMsg};
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tonic::transport::Server;

pub use channel::{CHANNEL_BYTES, ChannelError, ChannelFull, Receiving, Sending};
pub use dial::ChannelMetrics;
pub use hello::{Hello, HelloError, Kind, Versions};
pub use member::Member;
pub use plausible::Implausible;
pub use query::Respond;
pub use router::{Elsewhere, Router, RouterMetrics, bequeathed, follows};
pub use workers::TakeWorkerMsg;

use crate::executor::Executor;
use crate::tls::Tls;
use accept::callers;
use backlog::Busy;
use dial::{Channel, SharedReports};
use query::Enquiries;
use remote::{Gateway, Remote, encoded};
use serve::{Inboxes, Peers};
use transport::Transport;

/// How long a migrating region may have no owner: from the freeze until its new owner resumes it.
/// After that the old owner aborts.
pub const MOVE: Duration = Duration::from_secs(3);

/// The identity of a process in the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub cluster: String,
    pub process: u64,
    pub versions: Versions,
}

impl Identity {
    pub fn new(cluster: impl Into<String>, process: u64) -> Identity {
        Identity { cluster: cluster.into(), process, versions: Versions::OURS }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("cannot listen for peers on {addr}: {source}; choose another [cluster] listen")]
    Listen { addr: SocketAddr, source: std::io::Error },
}

/// Why a message about a migrating region was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unsaid {
    #[error("the process is not a member of the cluster")]
    NoMember,
    #[error("the channel had no room in time")]
    Full,
}

#[derive(Debug)]
struct Peer {
    member: Arc<Member>,
    channels: [Arc<Channel>; 2],
    gateway: Arc<Gateway>,
    busy: Arc<Busy>,
}

impl Peer {
    fn channel(&self, kind: Kind) -> &Arc<Channel> {
        &self.channels[kind as usize]
    }
}

#[derive(Debug)]
struct Inner {
    identity: Identity,
    executor: Executor,
    peers: RwLock<BTreeMap<u64, Arc<Peer>>>,
    router: Arc<Router>,
    inboxes: Arc<Inboxes>,
    transport: Transport,
    enquiries: Enquiries,
    stop: watch::Sender<bool>,
    /// Notified when a member may be dead.
    told: SharedReports,
}

/// The links of a process to all peers. Clones share them.
#[derive(Debug, Clone)]
pub struct Links(Arc<Inner>);

/// A weak reference, for parts that the links own.
#[derive(Debug, Clone)]
struct WeakLinks(Weak<Inner>);

impl WeakLinks {
    fn upgrade(&self) -> Option<Links> {
        self.0.upgrade().map(Links)
    }
}

impl Links {
    fn downgrade(&self) -> WeakLinks {
        WeakLinks(Arc::downgrade(&self.0))
    }

    /// Listens on `addr` (port 0: any free port) and serves peers from tasks of `executor`. Call it
    /// on that executor, which must outlive the links. No peer is accepted before [`Links::join`].
    /// With `tls` both sides must show certificates.
    pub async fn start(
        identity: Identity,
        addr: SocketAddr,
        directory: Arc<Directory>,
        executor: impl Into<Executor>,
        tls: Option<Tls>,
    ) -> Result<(Links, SocketAddr), LinkError> {
        let error = |source| LinkError::Listen { addr, source };
        let listener = TcpListener::bind(addr).await.map_err(error)?;
        let local = listener.local_addr().map_err(error)?;
        let links = Links::by(identity, Transport::Grpc(tls.clone()), directory, executor.into());
        let (inboxes, mut stopping) = (links.0.inboxes.clone(), links.0.stop.subscribe());
        links.0.executor.spawn(async move {
            let incoming =
                callers(listener, tls, inboxes.refusals.clone(), inboxes.connections.clone());
            let stopped = async move { drop(stopping.wait_for(|stop| *stop).await) };
            let server = Server::builder()
                .max_concurrent_streams(accept::STREAMS)
                .http2_keepalive_interval(Some(Duration::from_secs(1)))
                .http2_keepalive_timeout(Some(Duration::from_secs(2)))
                .initial_stream_window_size(4 << 20)
                .initial_connection_window_size(4 << 20);
            let served = server.serve_with_incoming_shutdown(Peers(inboxes), incoming, stopped);
            if let Err(error) = served.await {
                tracing::error!(%error, "the peer server has stopped");
            }
        });
        Ok((links, local))
    }

    /// Links of the only process of its cluster: nobody calls it.
    pub(crate) fn alone(
        identity: Identity,
        directory: Arc<Directory>,
        executor: Executor,
    ) -> Links {
        Links::by(identity, Transport::None, directory, executor)
    }

    /// Whether the process is the only one that its cluster can have.
    pub(crate) fn is_alone(&self) -> bool {
        matches!(self.0.transport, Transport::None)
    }

    fn by(
        identity: Identity,
        transport: Transport,
        directory: Arc<Directory>,
        executor: Executor,
    ) -> Links {
        let router = Arc::new(Router::default());
        let inboxes = Arc::new(Inboxes::new(identity.clone(), router.clone(), executor.clone()));
        let links = Links(Arc::new(Inner {
            identity,
            executor,
            peers: RwLock::default(),
            router: router.clone(),
            inboxes,
            transport,
            enquiries: Enquiries::default(),
            stop: watch::Sender::new(false),
            told: SharedReports { suspects: router.suspicion(), disowned: Arc::default() },
        }));
        router.connect(&links, &directory);
        links
    }

    pub fn process(&self) -> u64 {
        self.0.identity.process
    }

    pub fn router(&self) -> &Router {
        &self.0.router
    }

    /// Messages for regions without an address that found no room in the queue.
    pub fn kept_lost(&self) -> u64 {
        self.0.router.kept_lost()
    }

    /// The number of refused peers: without a certificate, of another cluster, or of an unsupported
    /// version.
    pub fn refused(&self) -> u64 {
        self.0.inboxes.refusals.count()
    }

    fn peer(&self, process: u64) -> Option<Arc<Peer>> {
        self.0.peers.read().get(&process).cloned()
    }

    /// Whether a process is a member of the cluster.
    pub fn knows(&self, process: u64) -> bool {
        self.member(process).is_some()
    }

    /// A member of the cluster; `None` if the process is not one.
    pub(crate) fn member(&self, process: u64) -> Option<Arc<Member>> {
        self.peer(process).map(|peer| peer.member.clone())
    }

    /// Adds a member without a name, which may own regions. With TLS it is not connected to.
    pub fn join(&self, process: u64, address: &str) {
        self.join_as(process, address, Member { name: String::new(), regions: true });
    }

    /// Adds a member of the cluster at `address`, host:port. A second call changes nothing. With
    /// TLS its certificate must belong to `member`.
    pub fn join_as(&self, process: u64, address: &str, member: Member) {
        if process == self.process() {
            return;
        }
        let mut peers = self.0.peers.write();
        peers.entry(process).or_insert_with(|| {
            let channels = Kind::ALL.map(|kind| {
                let hello = Hello {
                    cluster: self.0.identity.cluster.clone(),
                    versions: self.0.identity.versions,
                    from: self.process(),
                    to: process,
                    kind,
                };
                let channel = Arc::new(Channel::new(hello, member.clone(), self.0.told.clone()));
                let transport = self.0.transport.clone();
                self.0.executor.spawn(channel.clone().carry(address.to_owned(), transport));
                channel
            });
            let gateway = Gateway::new(process, channels[Kind::Sessions as usize].clone());
            Arc::new(Peer {
                member: Arc::new(member.clone()),
                channels,
                gateway: Arc::new(gateway),
                busy: Arc::default(),
            })
        });
    }

    /// Removes a member. Returns the messages from local regions and sessions that it did not
    /// acknowledge, oldest first.
    pub fn leave(&self, process: u64) -> Vec<PeerMsg> {
        let peer = {
            let mut peers = self.0.peers.write();
            peers.remove(&process)
        };
        self.0.inboxes.forget(process);
        let channels = peer.iter().flat_map(|peer| &peer.channels);
        let silent = channels.flat_map(|channel| channel.end());
        // This process encoded them, so decoding succeeds.
        silent.filter_map(|bytes| purview::wire::peer::decode(&bytes).ok()).collect()
    }

    /// The address of a region that a process owns; `None` if the process is unknown.
    pub fn region(&self, process: u64, region: RegionId) -> Option<RegionAddress> {
        Some(RegionAddress::Remote(self.successor(process, region)?))
    }

    pub fn gateway(&self, process: u64) -> Option<Arc<dyn RemoteGateway>> {
        Some(self.peer(process)?.gateway.clone())
    }

    /// Members whose machines refuse connections from this process.
    pub fn suspects(&self) -> Vec<u64> {
        let peers = self.0.peers.read();
        let refused = |peer: &Peer| peer.channels.iter().any(|channel| channel.is_refused());
        peers.iter().filter(|(_, peer)| refused(peer)).map(|(process, _)| *process).collect()
    }

    /// Notified when a member says that this process is no longer one.
    pub fn disowned(&self) -> Arc<Notify> {
        self.0.told.disowned.clone()
    }

    /// Whether all other processes agree that this process is no longer a member: none of them is
    /// connected, and at least one that had accepted it says so. A single one may be wrong while
    /// others stay connected.
    pub fn is_disowned(&self) -> bool {
        let peers = self.0.peers.read();
        let disowns = |peer: &Arc<Peer>| peer.channels.iter().any(|channel| channel.is_disowned());
        // An idle connection counts, too.
        let talks = |peer: &Arc<Peer>| peer.channels.iter().any(|channel| channel.is_connected());
        peers.values().any(disowns) && peers.values().all(|peer| disowns(peer) || !talks(peer))
    }

    /// Tells all peers that a member may be dead.
    pub fn tell_suspicion(&self, suspect: u64) {
        let peers = self.0.peers.read();
        for (_, peer) in peers.iter().filter(|(process, _)| **process != suspect) {
            // It is repeated.
            let _lost =
                peer.channel(Kind::Regions).push(encoded(&PeerMsg::Suspect(suspect))).is_err();
        }
    }

    /// The address of a region that migrates to a process.
    pub fn successor(&self, process: u64, region: RegionId) -> Option<Arc<dyn RemoteRegion>> {
        let peer = self.peer(process)?;
        let (channel, busy) = (peer.channel(Kind::Regions).clone(), peer.busy.clone());
        Some(Arc::new(Remote { channel, router: self.0.router.clone(), region, busy }))
    }

    pub fn processes(&self) -> Vec<u64> {
        self.0.peers.read().keys().copied().collect()
    }

    /// Sends a message about a migrating region; waits for room until `late`.
    ///
    /// # Errors
    /// The message was not sent and will not be.
    pub async fn say(
        &self,
        process: u64,
        kind: Kind,
        msg: MoveMsg,
        late: Instant,
    ) -> Result<(), Unsaid> {
        let bytes = encoded(&PeerMsg::Move(Box::new(msg)));
        let peer = self.peer(process).ok_or(Unsaid::NoMember)?;
        let channel = peer.channel(kind);
        while !channel.is_ended() {
            if channel.has_room() && channel.push(bytes.clone()).is_ok() {
                return Ok(());
            }
            if Instant::now() >= late {
                channel.count_refused();
                return Err(Unsaid::Full);
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Err(Unsaid::NoMember)
    }

    /// Sends a message to a process. Never waits.
    fn push(&self, process: u64, kind: Kind, message: &PeerMsg) -> Result<(), Unsaid> {
        let peer = self.peer(process).ok_or(Unsaid::NoMember)?;
        peer.channel(kind).push(encoded(message)).map_err(|_: ChannelFull| Unsaid::Full)
    }

    /// Sends an input that may be lost to a region of a process.
    fn tell(&self, process: u64, to: RegionId, input: Input) {
        let message = PeerMsg::Region { to, epoch: Epoch::default(), input };
        // It is repeated when the next frame is lost.
        let _lost = self.push(process, Kind::Regions, &message).is_err();
    }

    fn executor(&self) -> &Executor {
        &self.0.executor
    }

    /// Records that a region of a process is busy, or free again.
    fn is_busy(&self, process: u64, region: RegionId, busy: bool) {
        if let Some(peer) = self.peer(process) {
            peer.busy.set(region, busy);
        }
    }

    /// Tells a process that a local region is busy, or free again. False: the channel had no room.
    fn tell_busy(&self, process: u64, region: RegionId, busy: bool) -> bool {
        let told = self.push(process, Kind::Regions, &PeerMsg::Busy { region, busy });
        told != Err(Unsaid::Full)
    }

    fn gone(&self, process: u64, sessions: Vec<SessionId>) {
        // It is repeated with the next frame for them.
        let _lost = self.push(process, Kind::Sessions, &PeerMsg::Gone(sessions)).is_err();
    }

    fn sessions_are_gone(&self, process: u64, sessions: &[SessionId]) {
        if let Some(peer) = self.peer(process) {
            peer.gateway.are_gone(sessions);
        }
    }

    /// Calls `visit` for each channel: the peer's number, its kind, its counters, whether it is
    /// connected, and its unacknowledged bytes.
    pub fn each_channel(&self, mut visit: impl FnMut(u64, Kind, &ChannelMetrics, bool, usize)) {
        let peers = self.0.peers.read();
        for (process, peer) in peers.iter() {
            for kind in Kind::ALL {
                let channel = peer.channel(kind);
                let (connected, waiting) = (channel.is_connected(), channel.waiting_bytes());
                visit(*process, kind, &channel.metrics, connected, waiting);
            }
        }
    }

    /// Stops: accepts and opens no more connections.
    pub fn stop(&self) {
        self.0.stop.send_replace(true);
        let processes: Vec<u64> = {
            let peers = self.0.peers.read();
            peers.keys().copied().collect()
        };
        for process in processes {
            let silent = self.leave(process).len();
            if silent > 0 {
                tracing::debug!(process, silent, "links stop with unacknowledged messages");
            }
        }
    }
}

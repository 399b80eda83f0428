//! What the processes of a cluster say to each other: gRPC streams (tonic) directly from one to the
//! other, with MessagePack in them (DESIGN, ENGINE).
//!
//! ```text
//!  region ──► AwayRegion ──► Lane: numbered, kept ──► stream ──► Inbox: once, in order ──► Switch ──► region
//!               (encodes)        ▲                                  │                        └──► session
//!                                '────────── acknowledgements ◄─────'
//! ```
//!
//! A process calls each other one twice: a lane for regions, a lane for sessions. A lane outlives its
//! connections; it ends when its peer is no member of the cluster any more. What is said on one arrives
//! once and in the order in which it was said, as within one process.
//!
//! *Absent on purpose:* who owns which region (the module `node` tells), and any judgement of what is said.

mod accept;
mod backlog;
mod channel;
mod codec;
pub(crate) mod dial;
#[doc(hidden)]
pub mod fuzzing;
pub(crate) mod hello;
mod member;
mod query;
mod received;
mod remote;
mod router;
mod serve;
#[cfg(test)]
mod tests;
pub(crate) mod transport;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use purview::actor::address::{AwayGateway, AwayRegion, RegionAddress};
use purview::actor::directory::Directory;
use purview::scene::messages::Input;
use purview::scene::{Epoch, RegionId, SessionId};
use purview::wire::peer::{MoveMsg, PeerMsg};
use tokio::net::TcpListener;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tonic::transport::Server;

pub use channel::{LANE_BYTES, LaneError, LaneFull, Receiving, Sending};
pub use dial::LaneMetrics;
pub use hello::{Hello, Kind, Refused, Versions};
pub use member::Member;
pub use query::Respond;
pub use router::{Elsewhere, Switch, SwitchMetrics, bequeathed, follows};

use crate::executor::Home;
use crate::tls::Tls;
use accept::{Shown, callers};
use backlog::Busy;
use dial::{Lane, Told};
use query::Enquiries;
use remote::{Gateway, Remote, encoded};
use serve::{Inboxes, Peers};
use transport::Road;
use transport::{Dial, Offer};

/// How long a region that moves may be nowhere: from the freeze until its new owner goes on with it. After
/// that the old owner gives it up.
pub const MOVE: Duration = Duration::from_secs(3);

/// Who a process is among the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The cluster's name.
    pub cluster: String,
    /// The process's number.
    pub process: u64,
    /// What it can speak.
    pub versions: Versions,
}

impl Identity {
    /// A process of this release.
    pub fn new(cluster: impl Into<String>, process: u64) -> Identity {
        Identity { cluster: cluster.into(), process, versions: Versions::OURS }
    }
}

/// Why a process cannot be called.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The address cannot be listened on.
    #[error("cannot listen for peers on {addr}: {source}; choose another [cluster] listen")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Why something was not said of a region that moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unsaid {
    /// The process is no member, or none any more.
    #[error("it is no member of the cluster")]
    NoMember,
    /// It does not take what is said to it.
    #[error("there was no room for it in time")]
    Full,
}

/// A process that can be called.
#[derive(Debug)]
struct Peer {
    member: Arc<Member>,
    lanes: [Arc<Lane>; 2],
    gateway: Arc<Gateway>,
    /// Its regions that take nothing now.
    busy: Arc<Busy>,
}

impl Peer {
    fn lane(&self, kind: Kind) -> &Arc<Lane> {
        &self.lanes[kind as usize]
    }
}

#[derive(Debug)]
struct Inner {
    identity: Identity,
    home: Home,
    peers: RwLock<BTreeMap<u64, Arc<Peer>>>,
    switch: Arc<Switch>,
    inboxes: Arc<Inboxes>,
    road: Road,
    enquiries: Enquiries,
    stop: watch::Sender<bool>,
    /// Told when a member may be dead.
    told: Told,
}

/// The links of a process to all others. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Links(Arc<Inner>);

/// The same, for what the links know themselves.
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

    /// Listens on `addr` (port 0: any) and serves peers from tasks of `home`, on which it is to be
    /// called and which must outlive it. Nobody is taken in before [`Links::join`]; with `tls` only who
    /// shows a certificate, and only who does is called.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub async fn start(
        identity: Identity,
        addr: SocketAddr,
        directory: Arc<Directory>,
        home: impl Into<Home>,
        tls: Option<Tls>,
    ) -> Result<(Links, SocketAddr), LinkError> {
        let error = |source| LinkError::Listen { addr, source };
        let listener = TcpListener::bind(addr).await.map_err(error)?;
        let local = listener.local_addr().map_err(error)?;
        let links = Links::by(identity, Road::Grpc(tls.clone()), directory, home.into());
        let (inboxes, mut stopping) = (links.0.inboxes.clone(), links.0.stop.subscribe());
        links.0.home.spawn(async move {
            let incoming = callers(listener, tls, inboxes.refusals.clone());
            let stopped = async move { drop(stopping.wait_for(|stop| *stop).await) };
            let server = Server::builder()
                .http2_keepalive_interval(Some(Duration::from_secs(1)))
                .http2_keepalive_timeout(Some(Duration::from_secs(2)))
                .initial_stream_window_size(4 << 20)
                .initial_connection_window_size(4 << 20);
            let served = server.serve_with_incoming_shutdown(Peers(inboxes), incoming, stopped);
            if let Err(error) = served.await {
                tracing::error!(%error, "peers are not served any more");
            }
        });
        Ok((links, local))
    }

    /// The same over a simulated network: peers are called by `dial`, and those who call come by `offers`.
    pub(crate) fn simulated(
        identity: Identity,
        directory: Arc<Directory>,
        home: Home,
        (dial, mut offers): (Arc<dyn Dial>, UnboundedReceiver<Offer>),
    ) -> Links {
        let links = Links::by(identity, Road::Simulated(dial), directory, home);
        let inboxes = links.0.inboxes.clone();
        links.0.home.spawn(async move {
            while let Some(offer) = offers.recv().await {
                let Offer { hello, frames, mut acknowledge, answer } = offer;
                let opened = inboxes.clone().open(hello, Shown::default(), frames).await;
                let opened = opened.map(|(welcome, mut taken)| {
                    inboxes.home().spawn(async move {
                        while let Some(Ok(upto)) = taken.next().await {
                            if acknowledge.send(upto).await.is_err() {
                                return;
                            }
                        }
                    });
                    welcome
                });
                // Who called may be gone by now.
                let _heard = answer.send(opened).is_ok();
            }
        });
        links
    }

    fn by(identity: Identity, road: Road, directory: Arc<Directory>, home: Home) -> Links {
        let switch = Arc::new(Switch::default());
        let inboxes = Arc::new(Inboxes::new(&identity, switch.clone(), home.clone()));
        let links = Links(Arc::new(Inner {
            identity,
            home,
            peers: RwLock::default(),
            switch: switch.clone(),
            inboxes,
            road,
            enquiries: Enquiries::default(),
            stop: watch::Sender::new(false),
            told: Told { suspects: switch.suspicion(), disowned: Arc::default() },
        }));
        switch.connect(&links, &directory);
        links
    }

    /// The process's number.
    pub fn process(&self) -> u64 {
        self.0.identity.process
    }

    /// What takes messages from peers.
    pub fn switch(&self) -> &Switch {
        &self.0.switch
    }

    /// Messages that were to be kept for regions without an address and found no room.
    pub fn kept_lost(&self) -> u64 {
        self.0.switch.kept_lost()
    }

    /// How many callers were not let in: without a certificate, of another cluster, of a version that is not
    /// spoken here.
    pub fn refused(&self) -> u64 {
        self.0.inboxes.refusals.count()
    }

    fn peer(&self, process: u64) -> Option<Arc<Peer>> {
        self.0.peers.read().unwrap_or_else(PoisonError::into_inner).get(&process).cloned()
    }

    /// Whether a process is a member of the cluster.
    pub fn knows(&self, process: u64) -> bool {
        self.member(process).is_some()
    }

    /// What a process is, if it is a member of the cluster.
    pub(crate) fn member(&self, process: u64) -> Option<Arc<Member>> {
        self.peer(process).map(|peer| peer.member.clone())
    }

    /// A process without a name may own regions. Where there are certificates it is not talked with.
    pub fn join(&self, process: u64, address: &str) {
        self.join_as(process, address, Member { name: String::new(), regions: true });
    }

    /// A process is a member of the cluster, at `address`, host:port. To hear it twice changes nothing. Where there are
    /// certificates, its certificate must be that of `member`.
    pub fn join_as(&self, process: u64, address: &str, member: Member) {
        if process == self.process() {
            return;
        }
        let mut peers = self.0.peers.write().unwrap_or_else(PoisonError::into_inner);
        peers.entry(process).or_insert_with(|| {
            let lanes = Kind::ALL.map(|kind| {
                let hello = Hello {
                    cluster: self.0.identity.cluster.clone(),
                    versions: self.0.identity.versions,
                    from: self.process(),
                    to: process,
                    kind,
                };
                let lane = Arc::new(Lane::new(hello, member.clone(), self.0.told.clone()));
                let road = self.0.road.clone();
                self.0.home.spawn(lane.clone().carry(address.to_owned(), road));
                lane
            });
            let gateway = Gateway::new(process, lanes[Kind::Sessions as usize].clone());
            Arc::new(Peer {
                member: Arc::new(member.clone()),
                lanes,
                gateway: Arc::new(gateway),
                busy: Arc::default(),
            })
        });
    }

    /// A process is no member any more. What it did not acknowledge of what regions and sessions here
    /// said to it, oldest first.
    pub fn leave(&self, process: u64) -> Vec<PeerMsg> {
        let peer = {
            let mut peers = self.0.peers.write().unwrap_or_else(PoisonError::into_inner);
            peers.remove(&process)
        };
        self.0.inboxes.forget(process);
        let lanes = peer.iter().flat_map(|peer| &peer.lanes);
        let unheard = lanes.flat_map(|lane| lane.end());
        // They are what was encoded here.
        unheard.filter_map(|bytes| purview::wire::peer::decode(&bytes).ok()).collect()
    }

    /// The address of a region that a process owns; `None` when the process is not known.
    pub fn region(&self, process: u64, region: RegionId) -> Option<RegionAddress> {
        Some(RegionAddress::Away(self.successor(process, region)?))
    }

    /// The sessions that a process holds.
    pub fn gateway(&self, process: u64) -> Option<Arc<dyn AwayGateway>> {
        Some(self.peer(process)?.gateway.clone())
    }

    /// Members whose machines have said to this process that nobody listens there any more.
    pub fn suspects(&self) -> Vec<u64> {
        let peers = self.0.peers.read().unwrap_or_else(PoisonError::into_inner);
        let refused = |peer: &Peer| peer.lanes.iter().any(|lane| lane.is_refused());
        peers.iter().filter(|(_, peer)| refused(peer)).map(|(process, _)| *process).collect()
    }

    /// Told when a member says that this process is none any more.
    pub fn disowned(&self) -> Arc<Notify> {
        self.0.told.disowned.clone()
    }

    /// Whether this process is a member no more as far as the others are concerned: none of them talks with it, and of those
    /// that had let it in one says so at least. A single one may be wrong while others talk with it.
    pub fn is_disowned(&self) -> bool {
        let peers = self.0.peers.read().unwrap_or_else(PoisonError::into_inner);
        let disowns = |peer: &Arc<Peer>| peer.lanes.iter().any(|lane| lane.is_disowned());
        // A connection on which nothing is said does not end by that.
        let talks = |peer: &Arc<Peer>| peer.lanes.iter().any(|lane| lane.is_connected());
        peers.values().any(disowns) && peers.values().all(|peer| disowns(peer) || !talks(peer))
    }

    /// Tells all others that a member may be dead.
    pub fn tell_suspicion(&self, suspect: u64) {
        let peers = self.0.peers.read().unwrap_or_else(PoisonError::into_inner);
        for (_, peer) in peers.iter().filter(|(process, _)| **process != suspect) {
            // It is said again.
            let _lost = peer.lane(Kind::Regions).push(encoded(&PeerMsg::Suspect(suspect))).is_err();
        }
    }

    /// The address of a region that moves to a process.
    pub fn successor(&self, process: u64, region: RegionId) -> Option<Arc<dyn AwayRegion>> {
        let peer = self.peer(process)?;
        let (lane, busy) = (peer.lane(Kind::Regions).clone(), peer.busy.clone());
        Some(Arc::new(Remote { lane, switch: self.0.switch.clone(), region, busy }))
    }

    /// The processes that are members, but this one.
    pub fn processes(&self) -> Vec<u64> {
        self.0.peers.read().unwrap_or_else(PoisonError::into_inner).keys().copied().collect()
    }

    /// Says something of a region that moves; waits for room until `late`, and no longer.
    ///
    /// # Errors
    /// It was not said, and will not be.
    pub async fn say(
        &self,
        process: u64,
        kind: Kind,
        msg: MoveMsg,
        late: Instant,
    ) -> Result<(), Unsaid> {
        let bytes = encoded(&PeerMsg::Move(Box::new(msg)));
        let peer = self.peer(process).ok_or(Unsaid::NoMember)?;
        let lane = peer.lane(kind);
        while !lane.is_ended() {
            if lane.has_room() && lane.push(bytes.clone()).is_ok() {
                return Ok(());
            }
            if Instant::now() >= late {
                return Err(Unsaid::Full);
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Err(Unsaid::NoMember)
    }

    /// Tells a region of a process something that may be lost.
    fn tell(&self, process: u64, to: RegionId, input: Input) {
        if let Some(peer) = self.peer(process) {
            let message = PeerMsg::Region { to, epoch: Epoch::default(), input };
            // It is said again when the next frame is lost.
            let _lost = peer.lane(Kind::Regions).push(encoded(&message)).is_err();
        }
    }

    /// Where its tasks run.
    fn home(&self) -> &Home {
        &self.0.home
    }

    /// A process says that a region of its own takes nothing now, or does again.
    fn is_busy(&self, process: u64, region: RegionId, busy: bool) {
        if let Some(peer) = self.peer(process) {
            peer.busy.set(region, busy);
        }
    }

    /// Tells a process that a region here takes nothing now, or does again. False when there was no room to say it.
    fn tell_busy(&self, process: u64, region: RegionId, busy: bool) -> bool {
        let Some(peer) = self.peer(process) else { return true };
        peer.lane(Kind::Regions).push(encoded(&PeerMsg::Busy { region, busy })).is_ok()
    }

    /// Tells a process that sessions are no more.
    fn gone(&self, process: u64, sessions: Vec<SessionId>) {
        if let Some(peer) = self.peer(process) {
            // It is said again with the next frame for them.
            let gone = encoded(&PeerMsg::Gone(sessions));
            let _lost = peer.lane(Kind::Sessions).push(gone).is_err();
        }
    }

    /// A process says that sessions of its own are no more.
    fn sessions_are_gone(&self, process: u64, sessions: &[SessionId]) {
        if let Some(peer) = self.peer(process) {
            peer.gateway.are_gone(sessions);
        }
    }

    /// Calls `visit` with each lane: the peer's number, what it carries, what it has done, whether it
    /// is connected, and the bytes that are not acknowledged.
    pub fn each_lane(&self, mut visit: impl FnMut(u64, Kind, &LaneMetrics, bool, usize)) {
        let peers = self.0.peers.read().unwrap_or_else(PoisonError::into_inner);
        for (process, peer) in peers.iter() {
            for kind in Kind::ALL {
                let lane = peer.lane(kind);
                visit(*process, kind, &lane.metrics, lane.is_connected(), lane.waiting_bytes());
            }
        }
    }

    /// Takes no more connections and calls nobody.
    pub fn stop(&self) {
        self.0.stop.send_replace(true);
        let processes: Vec<u64> = {
            let peers = self.0.peers.read().unwrap_or_else(PoisonError::into_inner);
            peers.keys().copied().collect()
        };
        for process in processes {
            let unheard = self.leave(process).len();
            if unheard > 0 {
                tracing::debug!(process, unheard, "links stop with messages not acknowledged");
            }
        }
    }
}

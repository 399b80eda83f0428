//! The simulated network between the processes of a cluster and their clients.
//!
//! A `Wire` is a connection. Messages arrive in order, each after a delay, as long as the two ends
//! can reach each other. While they cannot, messages wait, like data that TCP sends again. An end
//! that receives nothing from the other end for about 3 s gives the connection up; then all
//! messages in flight are lost.
//!
//! What a process sent before a crash still arrives, or is lost with the connection: both cases occur.

mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, SinkExt, StreamExt};
use parking_lot::Mutex;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};
use tonic::Status;

use crate::rng::Rng;
use purview_server::simulation::peers::{ByteStream, Call, Dial, DialError, Frames, Hello, Offer};

use wire::{PacketQueue, Wire};
pub use wire::{Receiver, Sender, Silent};

pub type Host = u32;

/// The time limit of a connection attempt, as in production.
const CONNECT: Duration = Duration::from_secs(1);

/// After how long a silent connection is given up: one second until the keep-alive, and two for its answer.
const SILENCE: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delays {
    pub least: Duration,
    pub spread: Duration,
    /// One of so many messages takes ten times as long; 0: none.
    pub late_one_in: u64,
}

impl Delays {
    pub const QUIET: Delays = Delays {
        least: Duration::from_millis(1),
        spread: Duration::from_millis(1),
        late_one_in: 0,
    };

    pub const BUSY: Delays = Delays {
        least: Duration::from_millis(1),
        spread: Duration::from_millis(30),
        late_one_in: 50,
    };

    pub(super) fn draw(&self, rng: &mut Rng) -> Duration {
        let delay = self.least + self.spread.mul_f64(rng.unit());
        match self.late_one_in > 0 && rng.one_in(self.late_one_in) {
            true => delay * 10,
            false => delay,
        }
    }
}

/// An end of a connection.
pub(super) type End = (Sender, Receiver);

#[derive(Default)]
struct HostState {
    stopped: bool,
    peers: Option<UnboundedSender<Offer>>,
    clients: Option<UnboundedSender<End>>,
}

struct State {
    hosts: BTreeMap<Host, HostState>,
    /// The pairs of hosts whose messages are held, by direction.
    cuts: BTreeSet<(Host, Host)>,
    wires: BTreeMap<u64, Weak<Wire>>,
    next: u64,
}

/// The network. A clone is the same network.
#[derive(Clone)]
pub struct Net(Arc<NetInner>);

struct NetInner {
    began: Instant,
    state: Mutex<State>,
    packets: Mutex<PacketQueue>,
}

impl std::fmt::Debug for Net {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Net")
    }
}

impl State {
    fn is_cut(&self, from: Host, to: Host) -> bool {
        self.cuts.contains(&(from, to))
    }

    fn is_stopped(&self, host: Host) -> bool {
        self.hosts.get(&host).is_some_and(|host| host.stopped)
    }

    /// Whether the two ends of a connection cannot reach each other, there and back.
    fn passes_not(&self, [a, b]: [Host; 2]) -> [bool; 2] {
        [self.is_cut(a, b), self.is_cut(b, a)]
    }

    /// Whether one end of a connection receives nothing from the other one.
    fn is_silent(&self, [a, b]: [Host; 2]) -> bool {
        self.is_cut(a, b) || self.is_cut(b, a) || self.is_stopped(a) || self.is_stopped(b)
    }

    fn wires(&mut self) -> Vec<Arc<Wire>> {
        self.wires.retain(|_, wire| wire.strong_count() > 0);
        self.wires.values().filter_map(Weak::upgrade).collect()
    }
}

impl Net {
    pub fn new(seed: u64, delays: Delays) -> Net {
        let (hosts, cuts, wires) = Default::default();
        let state = Mutex::new(State { hosts, cuts, wires, next: 0 });
        let packets = Mutex::new(PacketQueue::new(seed, delays));
        Net(Arc::new(NetInner { began: Instant::now(), state, packets }))
    }

    fn began(&self) -> Instant {
        self.0.began
    }

    fn delay(&self) -> Duration {
        self.0.packets.lock().delay()
    }

    pub fn set_delays(&self, delays: Delays) {
        self.0.packets.lock().delays = delays;
    }

    /// A process listens on a host, to peers and to clients.
    pub(super) fn listen(
        &self,
        host: Host,
        peers: UnboundedSender<Offer>,
        clients: UnboundedSender<End>,
    ) {
        let mut state = self.0.state.lock();
        let there = state.hosts.entry(host).or_default();
        (there.peers, there.clients) = (Some(peers), Some(clients));
    }

    /// The process of a host has ended. With `lost` all its messages in flight are lost, too.
    pub fn silence(&self, host: Host, lost: bool) {
        let mut state = self.0.state.lock();
        state.hosts.insert(host, HostState::default());
        let wires = state.wires();
        drop(state);
        for wire in wires.iter().filter(|wire| lost && wire.ends.contains(&host)) {
            wire.break_off();
        }
    }

    /// Suspends the process of a host, or lets it go on.
    pub fn stop(&self, host: Host, stopped: bool) {
        self.0.state.lock().hosts.entry(host).or_default().stopped = stopped;
        self.changed();
    }

    /// Holds the messages from the first to the second host of each pair.
    pub fn cut(&self, pairs: &[(Host, Host)]) {
        self.0.state.lock().cuts.extend(pairs);
        self.changed();
    }

    /// Lets the messages of these pairs pass again.
    pub fn join(&self, pairs: &[(Host, Host)]) {
        self.0.state.lock().cuts.retain(|cut| !pairs.contains(cut));
        self.changed();
    }

    /// Lets all messages pass again.
    pub fn mend(&self) {
        self.0.state.lock().cuts.clear();
        self.changed();
    }

    /// Breaks the connections of a host with clients.
    pub fn lose_client(&self, host: Host) {
        let wires = self.0.state.lock().wires();
        let lost = |wire: &&Arc<Wire>| !wire.watched && wire.ends.contains(&host);
        wires.iter().filter(lost).for_each(|wire| wire.break_off());
    }

    /// Notes which connections are silent now, and later gives up those that still are.
    fn changed(&self) {
        let mut any = false;
        let wires = self.0.state.lock().wires();
        for wire in &wires {
            any |= self.note(wire);
            wire.set_silent(self.0.state.lock().passes_not(wire.ends));
        }
        if any {
            self.sweep_later();
        }
    }

    fn note(&self, wire: &Wire) -> bool {
        let silent = wire.watched && self.0.state.lock().is_silent(wire.ends);
        wire.note(silent);
        silent
    }

    fn sweep_later(&self) {
        let net = self.clone();
        let late = self.delay();
        tokio::spawn(async move {
            sleep(SILENCE + late).await;
            let wires = net.0.state.lock().wires();
            let lost = |wire: &&Arc<Wire>| wire.silent_for().is_some_and(|time| time >= SILENCE);
            wires.iter().filter(lost).for_each(|wire| wire.break_off());
        });
    }

    /// The route of a message from one host to another, if there is one.
    async fn trip(&self, from: Host, to: Host) -> bool {
        sleep(self.delay()).await;
        !self.0.state.lock().is_cut(from, to)
    }

    fn wire(&self, from: Host, to: Host, watched: bool) -> [End; 2] {
        let wire = {
            let mut state = self.0.state.lock();
            let wire = Arc::new(Wire::new([from, to], watched, state.passes_not([from, to])));
            let id = state.next;
            state.next += 1;
            state.wires.insert(id, Arc::downgrade(&wire));
            wire
        };
        if self.note(&wire) {
            self.sweep_later();
        }
        let end = |way: usize| {
            let sender = Sender { net: self.clone(), wire: wire.clone(), way };
            (sender, Receiver { wire: wire.clone(), way: 1 - way })
        };
        [end(0), end(1)]
    }

    /// Connects a client to the process on a host; `None` if no process listens there.
    pub async fn visit(&self, from: Host, to: Host) -> Option<End> {
        if !self.trip(from, to).await {
            sleep(CONNECT).await;
            return None;
        }
        let clients = self.0.state.lock().hosts.get(&to).and_then(|host| host.clients.clone())?;
        let [(sender, receiver), there] = self.wire(from, to, false);
        clients.send(there).ok()?;
        self.trip(to, from).await.then_some((sender, receiver))
    }
}

#[derive(Debug)]
pub struct Port {
    pub net: Net,
    pub host: Host,
}

pub fn address(host: Host) -> std::net::SocketAddr {
    let [_, b, c, d] = host.to_be_bytes();
    ([10, b, c, d], 7_790).into()
}

fn host_at(address: &str) -> Option<Host> {
    match address.parse().ok()? {
        std::net::SocketAddr::V4(v4) => {
            let [_, b, c, d] = v4.ip().octets();
            Some(u32::from_be_bytes([0, b, c, d]))
        }
        std::net::SocketAddr::V6(_) => None,
    }
}

fn frames(sender: Sender) -> Frames {
    Box::pin(sender.sink_map_err(|Silent| ()))
}

fn received(receiver: Receiver) -> ByteStream {
    receiver.map(Ok::<_, Status>).boxed()
}

impl Dial for Port {
    fn dial(&self, address: String, hello: Hello) -> BoxFuture<'static, Result<Call, DialError>> {
        let (net, from) = (self.net.clone(), self.host);
        async move { dial(net, from, &address, hello).await }.boxed()
    }
}

async fn dial(net: Net, from: Host, address: &str, hello: Hello) -> Result<Call, DialError> {
    let unreachable = || DialError::Unreachable(format!("no connection within {CONNECT:?}"));
    let to = host_at(address).ok_or_else(|| DialError::NoAddress {
        address: address.to_owned(),
        cause: "not an address of this network".into(),
    })?;
    if !net.trip(from, to).await || !net.trip(to, from).await {
        sleep(CONNECT).await;
        return Err(unreachable());
    }
    let listener = net.0.state.lock().hosts.get(&to).and_then(|host| host.peers.clone());
    let listener = listener.ok_or(DialError::NobodyListens)?;
    let [(sender, receiver), (back, there)] = net.wire(from, to, true);
    let wire = sender.wire.clone();
    let (answer, answered) = oneshot::channel();
    let (frames_there, acknowledge) = (received(there), frames(back));
    let offer = Offer { hello, frames: frames_there, acknowledge, answer };
    listener.send(offer).map_err(|_| DialError::NobodyListens)?;
    let answered = async {
        let answered = answered.await;
        let passes = net.trip(to, from).await;
        answered.ok().filter(|_| passes)
    };
    let answered = tokio::select! {
        biased;
        () = wire.broken() => None,
        answered = answered => answered,
    };
    let welcome = answered.ok_or_else(unreachable)??;
    Ok(Call { welcome, frames: frames(sender), acknowledgements: received(receiver) })
}

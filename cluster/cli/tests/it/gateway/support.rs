//! A fake region that does just enough, and clients over real sockets.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::{Actor, Arbiter, AsyncContext, Context, Handler};
use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use purview::actor::address::{LocalSession, SessionAddress};
use purview::actor::directory::Directory;
use purview::actor::messages::{Delivery, ToRegion};
use purview::scene::messages::{
    FrameBatch, Input, InputRefused, Moving, Notice, Order, Refusal, RouteNotice, SessionFrame,
    Speaker,
};
use purview::scene::{
    EntityId, Epoch, Facing, Plane, Pos, RegionId, Scene, SceneId, SceneSpec, Seq, SessionId,
    SubjectHash, Tick,
};
use purview::wire::client::{Act, Hello, Join, Joined, Leave, Move, Ping, Teleport};
use purview::wire::{ClientMsg, EncodedBatch, FirstProperty, PROTOCOL_VERSION, ServerMsg};
use purview_server::gateway::{Gateway, GatewayConfig, Tokens};
use purview_server::storage::ClusterId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::common::HOUR;

/// What the fake region does besides answering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flood {
    No,
    /// Sends big frames to all sessions all the time, except to sessions that are held back.
    Polite,
    /// The same, without exception.
    Stubborn,
}

struct TestPlayer {
    client: LocalSession,
    session: SessionId,
    subject: SubjectHash,
    id: EntityId,
    plane: Plane,
    pos: Pos,
    ack: Seq,
    held: bool,
    resync: bool,
    after: Tick,
}

/// Adds, moves and removes entities, and tells every client about every input.
struct FakeRegion {
    log: Log,
    tick: Tick,
    flood: Flood,
    here: Vec<TestPlayer>,
}

/// The messages that the region received, as short words.
#[derive(Debug, Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn add(&self, word: String) {
        self.0.lock().unwrap().push(word);
    }

    /// Whether the region received a message.
    pub fn has(&self, word: &str) -> bool {
        self.0.lock().unwrap().iter().any(|w| w == word)
    }
}

impl Actor for FakeRegion {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(256);
        if self.flood != Flood::No {
            ctx.run_interval(Duration::from_millis(2), |region, _| {
                let big = Bytes::from(vec![0; 1_024]);
                region.frames(&[], &vec![(EntityId(99), big); 30], None);
            });
        }
    }
}

impl Handler<ToRegion> for FakeRegion {
    type Result = ();

    fn handle(&mut self, ToRegion { input, client }: ToRegion, _: &mut Context<Self>) {
        self.tick = self.tick.next();
        match input {
            Input::Enter(spawn) => {
                self.log.add("enter".into());
                let Some(SessionAddress::Here(client)) = client else {
                    panic!("an enter comes with an address of this process");
                };
                self.here.push(TestPlayer {
                    client,
                    session: spawn.session.expect("a player has a session"),
                    subject: spawn.subject,
                    id: spawn.id,
                    plane: spawn.plane,
                    pos: spawn.pos,
                    ack: Seq(0),
                    held: false,
                    resync: false,
                    after: Tick(0),
                });
                self.route(self.here.len() - 1);
            }
            Input::Client { id, seq, order, .. } => self.client(id, seq, order),
            Input::Disconnected { id, ms: 0, .. } => {
                self.log.add("leave".into());
                if let Some(at) = self.here.iter().position(|r| r.id == id) {
                    let gone = self.here.swap_remove(at);
                    let (tick, epoch, properties) = (self.tick, Epoch(1), Default::default());
                    deliver(&gone, Delivery::Notice(Notice::Left { tick, epoch, properties }));
                }
            }
            Input::Hold { id, .. } => {
                self.log.add("hold".into());
                self.of(id, |r| r.held = true);
            }
            Input::Release { id, .. } => {
                self.log.add("release".into());
                self.of(id, |r| r.held = false);
            }
            Input::Resync { id, told, .. } => {
                self.log.add("resync".into());
                self.of(id, |r| (r.resync, r.after) = (true, told));
            }
            other => panic!("a gateway must not send {other:?}"),
        }
    }
}

fn deliver(to: &TestPlayer, what: Delivery) {
    // A full mailbox loses frames of the session, as with a real region.
    if to.client.try_send(what).is_err() {
        tracing::debug!("a delivery was lost");
    }
}

impl FakeRegion {
    fn of(&mut self, id: EntityId, change: impl FnOnce(&mut TestPlayer)) {
        if let Some(player) = self.here.iter_mut().find(|r| r.id == id) {
            change(player);
        }
    }

    fn client(&mut self, id: EntityId, seq: Seq, order: Order) {
        let Some(at) = self.here.iter().position(|r| r.id == id) else { return };
        if seq != self.here[at].ack.next() {
            return;
        }
        self.here[at].ack = seq;
        match order {
            Order::Walk(_) => {
                let why = Refusal::WrongForm;
                self.frames(&[], &[], Some((at, InputRefused { seq, why })));
            }
            Order::Move(pos) if pos.x < 0 => {
                let why = Refusal::OutOfBounds;
                self.frames(&[], &[], Some((at, InputRefused { seq, why })));
            }
            Order::Move(pos) => {
                self.here[at].pos = pos;
                self.frames(&[(id, pos)], &[], None);
            }
            Order::Act(action) => self.frames(&[], &[(id, action.payload)], None),
            Order::Face(_) | Order::Set(_) => self.frames(&[], &[], None),
            Order::Travel(_) => unreachable!("no client gives this order"),
            Order::Teleport(to) => {
                self.here[at].plane = to.plane;
                self.here[at].pos = to.pos;
                self.route(at);
            }
        }
    }

    fn route(&self, at: usize) {
        let r = &self.here[at];
        let route = RouteNotice {
            subject: r.subject,
            epoch: Epoch(1),
            last_applied: r.ack,
            tick: self.tick,
            plane: r.plane,
            pos: r.pos,
            arrived: true,
            ..RouteNotice::default()
        };
        deliver(r, Delivery::Notice(Notice::Route(route)));
    }

    fn frames(
        &mut self,
        moving: &[(EntityId, Pos)],
        acting: &[(EntityId, Bytes)],
        refused: Option<(usize, InputRefused)>,
    ) {
        let flood = self.flood;
        let mut batch = FrameBatch {
            tick: self.tick,
            moving: moving
                .iter()
                .map(|(id, pos)| Moving::standing(*id, *pos, Facing::EAST))
                .collect(),
            acting: acting.iter().map(|(id, act)| (*id, act.clone(), Speaker::Client)).collect(),
            refs: (0..moving.len() as u32).chain(0..acting.len() as u32).collect(),
            refused: refused.iter().map(|(_, r)| *r).collect(),
            ..FrameBatch::default()
        };
        for (at, r) in self.here.iter_mut().enumerate() {
            batch.sessions.push(SessionFrame {
                session: r.session,
                ack: r.ack,
                epoch: Epoch(1),
                resync: r.resync,
                after: r.after,
                moves: moving.len() as u32,
                acts: acting.len() as u32,
                refused: u32::from(refused.is_some_and(|(who, _)| who == at)),
                ..SessionFrame::default()
            });
        }
        let encoded = Arc::new(EncodedBatch::new(batch));
        for (index, r) in self.here.iter_mut().enumerate() {
            if !r.held || flood == Flood::Stubborn {
                r.resync = false;
                deliver(r, Delivery::Frame(Arc::clone(&encoded), index as u32));
            }
        }
    }
}

/// A gateway with one region behind it.
pub struct World {
    pub gateway: Gateway,
    pub directory: Arc<Directory>,
    pub log: Log,
    pub tokens: Tokens,
}

impl World {
    pub async fn new() -> World {
        World::with(GatewayConfig::default(), Flood::No).await
    }

    /// A world whose sessions check their deadlines often.
    pub async fn with(config: GatewayConfig, flood: Flood) -> World {
        let spec = SceneSpec {
            width_cm: 51_200,
            depth_cm: 51_200,
            spawn_x_cm: 100,
            spawn_z_cm: 100,
            client_teleports: true,
            ..SceneSpec::default()
        };
        let scene = Scene::new(SceneId(0), spec, 100, RegionId(0)).expect("a legal scene");
        let directory = Arc::new(Directory::new(vec![Arc::new(scene)]));
        let log = Log::default();
        let region = FakeRegion { log: log.clone(), tick: Tick(1), flood, here: Vec::new() };
        let address = FakeRegion::start_in_arbiter(&Arbiter::new().handle(), |_| region);
        directory.set_regions([(RegionId(0), address.recipient())].into_iter().collect());
        let any = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        let config = GatewayConfig {
            // The end of a session is visible at once; the grace period has its own tests.
            grace_period: Duration::ZERO,
            ws_addr: any,
            tcp_addr: any,
            check_every: Duration::from_millis(5),
            send_buffer: 4_096,
            ..config
        };
        let arbiters = vec![Arbiter::new().handle(), Arbiter::new().handle()];
        let tokens = Tokens::dev();
        let in_cluster = tokens.clone().in_cluster(ClusterId::new([7; 16]), &[7; 32]);
        let gateway = Gateway::start(config, Arc::clone(&directory), in_cluster, arbiters)
            .await
            .expect("port 0 is free");
        World { gateway, directory, log, tokens }
    }

    pub async fn ws(&self) -> Client {
        let addr = self.gateway.ws_addr().expect("a WebSocket address");
        let (socket, _) =
            client_async(format!("ws://{addr}/"), connect(addr).await).await.expect("a handshake");
        Client::Ws(Box::new(socket))
    }

    pub async fn tcp(&self) -> Client {
        Client::Tcp(connect(self.gateway.tcp_addr().expect("a TCP address")).await)
    }

    pub fn token(&self) -> String {
        // Of a subject of its own: a subject has few sessions.
        static TESTERS: AtomicU64 = AtomicU64::new(0);
        let subject = format!("tester {}", TESTERS.fetch_add(1, Ordering::Relaxed));
        self.tokens.mint(&subject, Some(HOUR)).expect("a token")
    }

    pub fn hello(&self) -> ClientMsg {
        let token = self.token();
        Hello { version: PROTOCOL_VERSION, token, crowd: false }.into()
    }

    /// Sends hello and join.
    pub async fn enter(&self, client: &mut Client) -> Joined {
        client.say(self.hello()).await;
        assert!(matches!(client.receive().await, Said::Msg(ServerMsg::Welcome(_))));
        client.say(join(None)).await;
        match client.receive().await {
            Said::Msg(ServerMsg::Joined(joined)) => *joined,
            other => panic!("wanted Joined, got {other:?}"),
        }
    }
}

/// A socket with a small receive buffer, so that a client that does not read is noticed soon.
async fn connect(addr: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4_096).expect("a buffer");
    socket.connect(addr).await.expect("a connection")
}

pub fn join(plane: Option<i32>) -> ClientMsg {
    let plane = plane.map(Plane);
    let properties = vec![FirstProperty::appearance(&[1]).unwrap()];
    Join { plane, properties, ..purview_client::join("meadow") }.into()
}

pub fn step(seq: u32, x: i32) -> ClientMsg {
    Move { seq: Seq(seq), pos: Pos::ground(x, 5) }.into()
}

pub fn act(seq: u32, payload: &[u8]) -> ClientMsg {
    Act { seq: Seq(seq), payload: payload.to_vec().into(), aim: None }.into()
}

pub fn teleport(seq: u32, scene: Option<&str>, plane: Option<i32>, x: i32) -> ClientMsg {
    let scene = scene.map(str::to_owned);
    Teleport { seq: Seq(seq), scene, plane: plane.map(Plane), pos: Pos::ground(x, 5) }.into()
}

pub fn ping(nonce: u64) -> ClientMsg {
    Ping { nonce }.into()
}

pub fn leave() -> ClientMsg {
    Leave {}.into()
}

#[derive(Debug)]
// A test holds only a few of them.
#[allow(clippy::large_enum_variant)]
pub enum Said {
    Msg(ServerMsg),
    /// The code of the WebSocket close frame, or the end of a TCP connection.
    Closed(Option<u16>),
}

/// A client over a real socket.
pub enum Client {
    Ws(Box<WebSocketStream<TcpStream>>),
    Tcp(TcpStream),
}

impl Client {
    pub async fn say(&mut self, msg: ClientMsg) {
        self.say_bytes(&msg.encode()).await;
    }

    pub async fn say_bytes(&mut self, bytes: &[u8]) {
        match self {
            Client::Ws(ws) => {
                ws.send(Message::binary(bytes.to_vec())).await.expect("a socket that takes it");
            }
            Client::Tcp(tcp) => {
                let framed = [&(bytes.len() as u32).to_be_bytes(), bytes].concat();
                tcp.write_all(&framed).await.expect("a socket that takes it");
            }
        }
    }

    /// The next message; a long silence fails the test.
    pub async fn receive(&mut self) -> Said {
        let word = tokio::time::timeout(Duration::from_secs(20), self.next());
        word.await.expect("the server sends something")
    }

    async fn next(&mut self) -> Said {
        match self {
            Client::Ws(ws) => match ws.next().await {
                Some(Ok(Message::Binary(bytes))) => decoded(&bytes),
                Some(Ok(Message::Close(frame))) => Said::Closed(frame.map(|f| f.code.into())),
                other => panic!("wanted a message or a close, got {other:?}"),
            },
            Client::Tcp(tcp) => {
                let Ok(len) = tcp.read_u32().await else { return Said::Closed(None) };
                let mut bytes = vec![0; len as usize];
                tcp.read_exact(&mut bytes).await.expect("a whole message");
                decoded(&bytes)
            }
        }
    }

    /// Reads until a message that `pick` accepts.
    pub async fn receive_until<T>(&mut self, mut pick: impl FnMut(ServerMsg) -> Option<T>) -> T {
        loop {
            match self.receive().await {
                Said::Msg(msg) => {
                    if let Some(found) = pick(msg) {
                        return found;
                    }
                }
                Said::Closed(code) => panic!("closed with {code:?}"),
            }
        }
    }

    /// Reads to the end. Returns the code of the closing message, which must equal that of the close frame.
    pub async fn closed(&mut self) -> u16 {
        let mut told = None;
        loop {
            match self.receive().await {
                Said::Msg(ServerMsg::Closing(closing)) => told = Some(u16::from(closing.code)),
                Said::Msg(_) => assert_eq!(told, None, "nothing comes after the closing message"),
                Said::Closed(code) => {
                    let told = told.expect("a closing message comes before the end");
                    assert_eq!(code.unwrap_or(told), told);
                    return told;
                }
            }
        }
    }
}

fn decoded(bytes: &[u8]) -> Said {
    Said::Msg(ServerMsg::decode(bytes).expect("a server speaks its protocol"))
}

/// Waits until a condition holds.
pub async fn until(what: &str, so: impl Fn() -> bool) {
    let wait = async {
        while !so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(20), wait).await.is_ok(), "never: {what}");
}

//! The gateway's ports under clients that mean harm, over real sockets.

use actix::{Arbiter, System};
use futures::{SinkExt, StreamExt};
use purview::scene::{RegionId, Scene, SceneId, SceneSpec};
use purview::wire::client::{Hello, Ping};
use purview::wire::{ClientMsg, PROTOCOL_VERSION, ServerMsg};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

use super::*;
use crate::admission::RefusalReason;
use crate::storage::ClusterId;

/// Far longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(20);

struct World {
    gateway: Gateway,
    tokens: Tokens,
}

type Socket = WebSocketStream<TcpStream>;

impl World {
    /// A gateway without regions: clients can greet.
    async fn with(config: GatewayConfig) -> World {
        let scene = Scene::new(SceneId(0), SceneSpec::default(), 100, RegionId(0)).unwrap();
        let directory = Arc::new(Directory::new(vec![Arc::new(scene)]));
        let ws_addr = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        let config = GatewayConfig { ws_addr, tcp_addr: None, ..config };
        let (tokens, arbiters) = (Tokens::dev(), vec![Arbiter::new().handle()]);
        let in_cluster = tokens.clone().in_cluster(ClusterId::new([7; 16]), &[7; 32]);
        let gateway = Gateway::start(config, directory, in_cluster, arbiters).await.unwrap();
        World { gateway, tokens }
    }

    async fn connect(&self) -> Socket {
        let addr = self.gateway.ws_addr().unwrap();
        let stream = TcpStream::connect(addr).await.unwrap();
        client_async(format!("ws://{addr}/"), stream).await.unwrap().0
    }

    /// A hello of a subject; the error is the code of the closing message.
    async fn greet(&self, socket: &mut Socket, subject: &str) -> Result<(), CloseCode> {
        let token = self.tokens.mint(subject, Some(Duration::from_secs(3_600))).unwrap();
        let hello = Hello { version: PROTOCOL_VERSION, token, crowd: false };
        say(socket, hello.into()).await;
        match hear(socket).await {
            ServerMsg::Welcome(_) => Ok(()),
            ServerMsg::Closing(closing) => Err(closing.code),
            other => panic!("{other:?}"),
        }
    }

    fn open(&self) -> u64 {
        self.gateway.metrics().admission.sessions_open.load(Ordering::Relaxed)
    }

    /// How many connections were closed for one of these reasons.
    fn closed(&self, codes: &[CloseCode]) -> u64 {
        let closes = self.gateway.metrics().closes();
        closes.filter(|(code, _)| codes.contains(code)).map(|(_, count)| count).sum()
    }

    /// Sends bytes until the gateway ends the connection. What comes while it does may reset the connection before the
    /// reason is read.
    async fn flood(&self, mut socket: Socket, bytes: &[u8]) {
        drop(socket.get_mut().write_all(bytes).await);
        let end = async { while let Some(Ok(_)) = socket.next().await {} };
        tokio::time::timeout(PATIENCE, end).await.expect("the gateway ends it");
    }

    fn refused(&self, why: RefusalReason) -> u64 {
        let mut refusals = self.gateway.metrics().admission.refusals();
        refusals.find(|(known, _)| *known == why).unwrap().1
    }
}

async fn say(socket: &mut Socket, message: ClientMsg) {
    socket.send(Message::binary(message.encode())).await.unwrap();
}

/// The next message, after any number of pongs of the WebSocket.
async fn hear(socket: &mut Socket) -> ServerMsg {
    loop {
        let next = tokio::time::timeout(PATIENCE, socket.next()).await;
        match next.expect("the gateway says something") {
            Some(Ok(Message::Binary(bytes))) => return ServerMsg::decode(&bytes).unwrap(),
            Some(Ok(Message::Pong(_))) => {}
            other => panic!("wanted a message, got {other:?}"),
        }
    }
}

#[test]
fn one_token_fills_a_few_sessions_and_not_all() {
    System::new().block_on(async {
        let (max_sessions, max_sessions_per_subject) = (20, 3);
        let config = GatewayConfig { max_sessions, max_sessions_per_subject, ..Default::default() };
        let world = World::with(config).await;
        let mut sockets = Vec::new();
        for number in 0..60 {
            let mut socket = world.connect().await;
            let greeted = world.greet(&mut socket, "mallory").await;
            let wanted = if number < 3 { Ok(()) } else { Err(CloseCode::SubjectFull) };
            assert_eq!(greeted, wanted, "{number}");
            sockets.push(socket);
        }
        assert_eq!((world.open(), world.refused(RefusalReason::Subject)), (3, 57));
        for number in 0..17 {
            let mut honest = world.connect().await;
            assert_eq!(world.greet(&mut honest, &format!("honest {number}")).await, Ok(()));
            sockets.push(honest);
        }
        // A session that ends makes room for another one of the subject.
        drop(sockets);
        let all_end = async {
            while world.open() > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, all_end).await.expect("all sessions end");
        assert_eq!(world.greet(&mut world.connect().await, "mallory").await, Ok(()));
    });
}

#[test]
fn frames_without_a_message_count_and_messages_in_two_frames_are_legal() {
    System::new().block_on(async {
        let world = World::with(GatewayConfig::default()).await;
        let mut honest = world.connect().await;
        world.greet(&mut honest, "honest").await.unwrap();
        // An empty fragment that is not the last one, again and again; the mask is 0.
        let empty = [0, 0x80, 0, 0, 0, 0].repeat(2_000);
        let fragments = [&[0x02, 0x80, 0, 0, 0, 0][..], &empty].concat();
        let mut flood = world.connect().await;
        world.greet(&mut flood, "flood").await.unwrap();
        world.flood(flood, &fragments).await;
        assert_eq!(world.closed(&[CloseCode::Rate]), 1);
        // The same right behind the handshake, and before a hello. On a full machine the time for a hello ends first.
        world.flood(world.connect().await, &fragments).await;
        assert_eq!(world.closed(&[CloseCode::Rate, CloseCode::Handshake]), 2);
        let message = ClientMsg::from(Ping { nonce: 7 }).encode();
        for _ in 0..100 {
            let (head, tail) = message.split_at(1);
            for (first, half) in [(0x02, head), (0x80, tail)] {
                let frame = [&[first, 0x80 | half.len() as u8, 0, 0, 0, 0], half].concat();
                honest.get_mut().write_all(&frame).await.unwrap();
            }
            let ServerMsg::Pong(pong) = hear(&mut honest).await else { panic!("a pong") };
            assert_eq!(pong.nonce, 7);
        }
    });
}

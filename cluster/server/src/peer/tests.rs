//! Messages of a newer release, over a real link.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use actix::{Actor, Context, Handler, System};
use bytes::Bytes;
use purview::actor::directory::Process;
use purview::actor::messages::ToRegion;
use purview::scene::messages::{Change, MapNews, Resume};
use purview::scene::{EntityId, Scene, SceneId, SceneSpec, Seq};
use serde::Serialize;

use crate::peer::*;

type Received = Arc<parking_lot::Mutex<Vec<u64>>>;

/// Notes a number of each input.
struct Taker(Received, fn(Input) -> u64);

impl Actor for Taker {
    type Context = Context<Self>;
}

impl Handler<ToRegion> for Taker {
    type Result = ();

    fn handle(&mut self, msg: ToRegion, _: &mut Context<Self>) {
        self.0.lock().push(self.1(msg.input));
    }
}

fn directory(number: u64) -> Arc<Directory> {
    let scene = Scene::new(SceneId(0), SceneSpec::default(), 100, RegionId(0)).unwrap();
    let process =
        Process { number, clock: Duration::from_secs(60), fence: None, checkpoint_writer: None };
    Arc::new(Directory::of_process(vec![Arc::new(scene)], process))
}

/// Two processes that do not know each other yet.
struct Pair {
    a: Links,
    b: Links,
    at_a: SocketAddr,
    at_b: SocketAddr,
    /// That of the first process.
    here: Arc<Directory>,
    runtime: tokio::runtime::Runtime,
}

impl Pair {
    async fn start() -> Pair {
        let built =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = built.unwrap();
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let start = |number, directory| {
            let handle = runtime.handle().clone();
            let identity = Identity::new("c", number);
            runtime.spawn(Links::start(identity, any, directory, handle, None))
        };
        let here = directory(1);
        let (a, at_a) = start(1, here.clone()).await.unwrap().unwrap();
        let (b, at_b) = start(2, directory(2)).await.unwrap().unwrap();
        Pair { a, b, at_a, at_b, here, runtime }
    }

    /// A region of the first process, and the channel to it from the second one, which is this member.
    fn region(&self, member: Member, number: fn(Input) -> u64) -> (Received, Arc<Channel>) {
        let received = Received::default();
        let region = Taker(received.clone(), number).start();
        self.here.set_region(RegionId(0), Some(region.recipient().into()));
        self.b.join(1, &self.at_a.to_string());
        self.a.join_as(2, &self.at_b.to_string(), member);
        let channel = self.b.peer(1).unwrap().channel(Kind::Regions).clone();
        (received, channel)
    }

    fn end(self) {
        self.a.stop();
        self.b.stop();
        self.runtime.shutdown_background();
    }
}

/// Waits until three inputs were received.
async fn three(received: &Received) -> Vec<u64> {
    let begin = Instant::now();
    while received.lock().len() < 3 {
        assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", received.lock());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    received.lock().clone()
}

/// Kinds of messages that this release does not know.
#[derive(Serialize)]
enum Next {
    Weather(u8),
    Region { to: u32, epoch: u64, input: NextInput, more: [u8; 2] },
}

#[derive(Serialize)]
enum NextInput {
    Rain { id: u64 },
    Tell { id: u64, payload: Bytes, why: &'static str },
}

/// A gateway that somebody has taken over: what it may not send is dropped and counted, and what it
/// may send goes on.
#[test]
fn a_gateway_speaks_for_its_own_sessions_alone_and_its_channel_goes_on() {
    System::new().block_on(async {
        let pair = Pair::start().await;
        let gateway = Member { name: "g".into(), regions: false };
        let session = |input: Input| input.session().map_or(0, |session| session.0);
        let (received, channel) = pair.region(gateway, session);
        let to_region = |epoch, input| PeerMsg::Region { to: RegionId(0), epoch, input };
        let id = EntityId(7);
        let of = |process: u64| SessionId(process << 32 | 5);
        let leaves =
            |process, ms| to_region(Epoch(0), Input::Disconnected { id, session: of(process), ms });
        let resume = |process, since_ms| {
            let (session, acked, asked) = (of(process), Seq(0), RegionId(0));
            let (subject, purpose) = Default::default();
            let resume = Resume { id, session, subject, acked, asked, since_ms, purpose };
            to_region(Epoch(0), Input::Resume(resume))
        };
        let map = MapNews { from: RegionId(0), version: 1, change: Change::Ended };
        let forbidden = [
            to_region(Epoch(0), Input::Tell { id, payload: Bytes::new() }),
            to_region(Epoch(0), Input::Leave(id)),
            to_region(Epoch(9), Input::Map(Box::new(map))),
            to_region(
                Epoch(0),
                Input::Resync { id, session: of(3), told: purview::scene::Tick(9), question: 1 },
            ),
            leaves(3, 0),
            resume(1, 1),
            PeerMsg::Gone(vec![of(2), of(3)]),
            PeerMsg::Busy { region: RegionId(0), busy: true },
        ];
        for message in [leaves(2, 1)].iter().chain(&forbidden).chain([&resume(2, 1)]) {
            channel.push(encoded(message)).unwrap();
        }
        // It would win against every later session for ever.
        channel.push(encoded(&resume(2, u64::MAX))).unwrap();
        channel.push(encoded(&leaves(2, 0))).unwrap();
        assert_eq!(three(&received).await, [of(2).0; 3]);
        let metrics = pair.a.router().metrics();
        assert_eq!(metrics.forbidden.load(Relaxed), forbidden.len() as u64);
        assert_eq!(metrics.implausible.load(Relaxed), 1);
        assert_eq!(channel.metrics.connections.load(Relaxed), 1);
        pair.end();
    });
}

#[test]
fn messages_of_the_next_release_are_read_or_skipped_and_the_channel_goes_on() {
    System::new().block_on(async {
        let pair = Pair::start().await;
        let node = Member { name: String::new(), regions: true };
        let (received, channel) = pair.region(node, |input| {
            let Input::Tell { id, .. } = input else { panic!("another input") };
            id.0
        });
        let region = |input| Next::Region { to: 0, epoch: 0, input, more: [1, 2] };
        let said = [
            region(NextInput::Tell { id: 1, payload: Bytes::new(), why: "a field more" }),
            Next::Weather(7),
            region(NextInput::Rain { id: 9 }),
            region(NextInput::Tell { id: 2, payload: Bytes::new(), why: "and on" }),
        ];
        for message in said {
            channel.push(rmp_serde::to_vec(&message).unwrap().into()).unwrap();
        }
        // Damaged data.
        channel.push(Bytes::from_static(&[0xc1, 7])).unwrap();
        let id = EntityId(3);
        let last = PeerMsg::Region {
            to: RegionId(0),
            epoch: Epoch(0),
            input: Input::Tell { id, payload: Bytes::new() },
        };
        channel.push(encoded(&last)).unwrap();
        assert_eq!(three(&received).await, [1, 2, 3]);
        let metrics = pair.a.router().metrics();
        assert_eq!((metrics.unknown.load(Relaxed), metrics.malformed.load(Relaxed)), (2, 1));
        assert_eq!(channel.metrics.connections.load(Relaxed), 1);
        pair.end();
    });
}

#[test]
fn silent_connections_keep_out_no_peer_and_a_peer_has_its_login_by_its_hello() {
    System::new().block_on(async {
        let pair = Pair::start().await;
        let Pair { a, b, at_a, at_b, .. } = &pair;
        crate::descriptors::raise();
        let mut silent = Vec::new();
        for _ in 0..1_200 {
            silent.push(tokio::net::TcpStream::connect(at_a).await.unwrap());
        }
        b.join(1, &at_a.to_string());
        a.join(2, &at_b.to_string());
        let begin = Instant::now();
        let open = |links: &Links| links.connections().sessions_open.load(Relaxed);
        while (open(a), open(b)) != (2, 2) {
            assert!(begin.elapsed() < Duration::from_secs(30), "{} and {}", open(a), open(b));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // All of them end in time.
        while a.connections().waiting.load(Relaxed) > 0 {
            assert!(begin.elapsed() < Duration::from_secs(60), "silent connections stay");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!((open(a), open(b)), (2, 2), "peers stay");
        for links in [a, b] {
            let peer = links.peer(3 - links.process()).unwrap();
            let connections = peer.channel(Kind::Regions).metrics.connections.load(Relaxed);
            assert_eq!(connections, 1, "and did not have to connect again");
        }
        pair.end();
    });
}

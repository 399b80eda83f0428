//! No bytes make the service panic. Strange and mutated requests, and bytes that are no HTTP/2 at all,
//! get an answer or an error, and a client that does everything right is served on.

use std::cell::{OnceCell, RefCell};
use std::fs::File;
use std::ops::Range;
use std::process::Stdio;

use bytes::Bytes;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};
use prost::Message;
use purview_server::interest::client::Stream;
use purview_server::interest::proto::{
    Batch, ByDistance, Cap, Change, Circle, Close, Create, CreateScene, Delete, DeleteScene,
    Everything, Kinds, Move, Open, PairRule, Patches, Reach, Rect, Request, SetBond, SetKind,
    SetObserved, SetPlane, SetReach, Tick, change, create_scene, reach, request,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tonic::Code;
use tonic::transport::Channel;

use super::support::{
    PATIENCE, Service, ask, both, circle, create, raw, runtime, scene, tick, walk,
};

/// What begins a connection of HTTP/2, with empty settings.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Numbers where a length, a coordinate or a kind may go wrong, and a few legal ones.
const NUMBERS: [i64; 16] = [
    0,
    0,
    1,
    1,
    2,
    3,
    50,
    999,
    -1,
    255,
    256,
    65_535,
    100_000,
    i32::MAX as i64,
    i32::MIN as i64,
    u32::MAX as i64,
];

/// Draws from a list of numbers; when it is used up, zeros.
struct Draws(std::vec::IntoIter<Index>);

impl Draws {
    fn below(&mut self, n: usize) -> usize {
        self.0.next().map_or(0, |index| index.index(n))
    }

    fn number(&mut self) -> i64 {
        NUMBERS[self.below(NUMBERS.len())]
    }

    fn some<T>(&mut self, make: impl Fn(&mut Draws) -> T) -> Option<T> {
        (self.below(3) > 0).then(|| make(self))
    }

    fn list<T>(&mut self, len: usize, make: impl Fn(i64) -> T) -> Vec<T> {
        (0..len).map(|_| make(self.number())).collect()
    }

    fn reach(&mut self) -> Reach {
        let circle = |draws: &mut Draws| Circle {
            enter_cm: draws.number() as u32,
            leave_cm: draws.number() as u32,
            height_cm: draws.some(|draws| draws.number() as u32),
        };
        Reach {
            reach: match self.below(4) {
                0 => Some(reach::Reach::Rings(self.number() as u32)),
                1 => Some(reach::Reach::Circle(circle(self))),
                2 => Some(reach::Reach::Everything(Everything {})),
                _ => None,
            },
        }
    }

    fn create_scene(&mut self) -> CreateScene {
        let rect = |draws: &mut Draws| {
            let [x0, z0, x1, z1] = [(); 4].map(|()| draws.number() as i32);
            Rect { x0, z0, x1, z1 }
        };
        let pair = |draws: &mut Draws| PairRule {
            observer: draws.number() as u32,
            subject: draws.number() as u32,
            reach: draws.some(Draws::reach),
        };
        CreateScene {
            ground: self.some(rect),
            mode: match self.below(4) {
                0 => Some(create_scene::Mode::Patches(Patches { side_cm: self.number() as u32 })),
                1 => Some(create_scene::Mode::ByDistance(ByDistance {})),
                2 => Some(create_scene::Mode::Everything(Everything {})),
                _ => None,
            },
            reach: self.some(Draws::reach),
            pairs: (0..self.below(3)).map(|_| pair(self)).collect(),
            cap: self.some(|draws| Cap {
                most: draws.number() as u32,
                margin_cm: draws.number() as u32,
            }),
            positions: self.below(2) == 1,
            tick_ms: self.number() as u32,
        }
    }

    /// A change of entities whose columns mostly fit.
    fn change_entities(&mut self) -> change::Change {
        let len = self.below(4);
        let ids: Vec<u64> = self.list(len, |n| n as u64);
        let column = |draws: &mut Draws| {
            let len = if draws.below(9) == 0 { draws.below(4) } else { len };
            draws.list(len, |n| n as i32)
        };
        let [x, y, z, other] = [(); 4].map(|()| column(self));
        let numbers = other.iter().map(|n| *n as u32).collect();
        match self.below(8) {
            0 | 1 => change::Change::Create(Create {
                ids,
                kinds: numbers,
                planes: y.clone(),
                x,
                y,
                z,
                reach: self.some(Draws::reach),
                observed: self.some(|draws| Kinds { kinds: draws.list(3, |n| n as u32) }),
            }),
            2 => change::Change::Move(Move { ids, x, y, z }),
            3 => change::Change::Delete(Delete { ids }),
            4 => change::Change::SetKind(SetKind { ids, kinds: numbers }),
            5 => change::Change::SetPlane(SetPlane { ids, planes: x }),
            6 => change::Change::SetReach(SetReach { ids, reach: self.some(Draws::reach) }),
            _ => change::Change::SetObserved(SetObserved { ids, observed: None }),
        }
    }

    fn change(&mut self) -> Change {
        let change = match self.below(8) {
            0 => Some(change::Change::CreateScene(self.create_scene())),
            1 => Some(change::Change::DeleteScene(DeleteScene {})),
            2 | 3 => Some(change::Change::Tick(Tick {})),
            4 => {
                let (ids, groups) = (self.list(2, |n| n as u64), self.list(2, |n| n as u64));
                Some(change::Change::SetBond(SetBond { ids, strength: 1, groups }))
            }
            _ => Some(self.change_entities()),
        };
        // Two scenes are there from the start.
        Change { scene: self.below(3) as u64, change }
    }

    fn requests(&mut self) -> Vec<Vec<u8>> {
        let open = Some(request::Message::Open(Open::default()));
        let mut begin = vec![scene(0, &circle()), scene(1, &circle())];
        begin.extend([0, 1].map(|scene| create(scene, &[(0, 0, 0), (1, 50, 50), (2, 3, 0)])));
        let mut messages = vec![open, batch(1, begin)];
        for number in 2..2 + self.below(4) as u64 {
            let changes = (0..self.below(6)).map(|_| self.change()).collect();
            messages.push(batch(number, changes));
        }
        if self.below(2) == 0 {
            messages.push(Some(request::Message::Close(Close {})));
        }
        messages.into_iter().map(|message| Request { message }.encode_to_vec()).collect()
    }
}

fn batch(sequence: u64, changes: Vec<Change>) -> Option<request::Message> {
    Some(request::Message::Batch(Batch { sequence, changes, received: 0 }))
}

/// A change of the bytes of a request.
#[derive(Debug, Clone)]
enum Mutation {
    Set(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, Index),
    Repeat(Index, Index),
}

impl Mutation {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let span = |a: &Index, b: &Index| -> Range<usize> {
            let (a, b) = (a.index(bytes.len() + 1), b.index(bytes.len() + 1));
            a.min(b)..a.max(b)
        };
        match self {
            Mutation::Set(at, byte) if !bytes.is_empty() => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            Mutation::Set(..) => {}
            Mutation::Insert(at, new) => {
                let at = at.index(bytes.len() + 1);
                bytes.splice(at..at, new.iter().copied());
            }
            Mutation::Remove(a, b) => drop(bytes.drain(span(a, b))),
            Mutation::Repeat(a, b) => bytes.extend_from_within(span(a, b)),
        }
    }
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let (at, to) = (any::<Index>, any::<Index>);
    prop_oneof![
        4 => (at(), any::<u8>()).prop_map(|(at, byte)| Mutation::Set(at, byte)),
        2 => (at(), prop::collection::vec(any::<u8>(), 1..12))
            .prop_map(|(at, new)| Mutation::Insert(at, new)),
        1 => (at(), to()).prop_map(|(a, b)| Mutation::Remove(a, b)),
        1 => (at(), to()).prop_map(|(a, b)| Mutation::Repeat(a, b)),
    ]
}

/// What a stream sends: numbers from which its requests follow, and mutations of them.
type Case = (Vec<Index>, Vec<(Index, Mutation)>);

fn cases() -> impl Strategy<Value = Case> {
    let draws = prop::collection::vec(any::<Index>(), 0..300);
    (draws, prop::collection::vec((any::<Index>(), mutation()), 0..4))
}

/// The status with which a stream of these requests ends; OK if the service closed it.
async fn status(channel: &Channel, requests: Vec<Vec<u8>>) -> Code {
    let requests = futures::stream::iter(requests.into_iter().map(Bytes::from));
    let all = async {
        let mut responses = match raw(channel.clone(), requests).await {
            Ok(responses) => responses,
            Err(status) => return status.code(),
        };
        loop {
            match responses.message().await {
                Ok(Some(_)) => {}
                Ok(None) => return Code::Ok,
                Err(status) => return status.code(),
            }
        }
    };
    tokio::time::timeout(PATIENCE, all).await.expect("the stream ends")
}

/// Sends bytes that are no request, and waits until the service closes the connection.
async fn connect_and_send(service: &Service, bytes: &[u8]) {
    let mut stream = TcpStream::connect(service.ready.listen.unwrap()).await.unwrap();
    // The service may have closed the connection already.
    drop(stream.write_all(bytes).await);
    drop(stream.shutdown().await);
    let mut answer = Vec::new();
    let end = stream.read_to_end(&mut answer);
    drop(tokio::time::timeout(PATIENCE, end).await.expect("the connection ends"));
}

/// A client that makes no mistakes: entity 2 walks away from entity 1 and back.
struct Good(Stream, bool);

impl Good {
    async fn begin(service: &Service) -> Good {
        let mut stream = service.address().begin().await.unwrap();
        let begin = vec![scene(1, &circle()), create(1, &[(1, 0, 0), (2, 50, 0)]), tick(1)];
        assert_eq!(ask(&mut stream, begin).await.events(1), both(1, 2, true));
        Good(stream, true)
    }

    async fn check(&mut self) {
        self.1 = !self.1;
        let x = if self.1 { 50 } else { 5_000 };
        let outcome = ask(&mut self.0, vec![walk(1, 2, x, 0), tick(1)]).await;
        assert_eq!(outcome.events(1), both(1, 2, self.1));
    }
}

/// Sends cases to a service of these arguments. It serves the good client after each, ends as usual, and has said nothing
/// of a panic.
fn survives<S: Strategy>(
    args: &[&str],
    (count, cases): (u32, S),
    send: impl Fn(&Service, &Runtime, S::Value) -> Result<(), TestCaseError>,
) {
    let folder = tempfile::tempdir().unwrap();
    let errors = folder.path().join("errors");
    let service = Service::with_errors_to(Stdio::from(File::create(&errors).unwrap()), args);
    let runtime = runtime();
    let good = RefCell::new(runtime.block_on(Good::begin(&service)));
    let config = Config { cases: count, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&cases, |case| {
        send(&service, &runtime, case)?;
        runtime.block_on(good.borrow_mut().check());
        Ok(())
    });
    let said = || std::fs::read_to_string(&errors).unwrap();
    outcome.unwrap_or_else(|error| panic!("{error}\nthe service said: {}", said()));
    assert_eq!(service.terminate(), Some(0));
    assert!(!said().contains("panic"), "{}", said());
}

#[test]
fn no_request_makes_the_service_panic() {
    let args = ["--listen", "127.0.0.1:0", "--resume-within", "100ms", "--sessions", "100000"];
    let (channel, codes) = (OnceCell::new(), RefCell::new(Vec::new()));
    survives(&args, (400, cases()), |service, runtime, (draws, mutations)| {
        let mut requests = Draws(draws.into_iter()).requests();
        for (at, mutation) in &mutations {
            let at = at.index(requests.len());
            mutation.apply(&mut requests[at]);
        }
        let connect = || runtime.block_on(service.address().channel()).unwrap();
        let code = runtime.block_on(status(channel.get_or_init(connect), requests));
        let is_known = matches!(code, Code::Ok | Code::InvalidArgument | Code::FailedPrecondition);
        prop_assert!(is_known, "{code}");
        codes.borrow_mut().push(code);
        Ok(())
    });
    for code in [Code::Ok, Code::InvalidArgument, Code::FailedPrecondition] {
        assert!(codes.borrow().contains(&code), "no stream ended with {code}");
    }
}

#[test]
fn bytes_that_are_no_http_do_no_harm() {
    let bytes = (any::<bool>(), prop::collection::vec(any::<u8>(), 0..200));
    survives(&["--listen", "127.0.0.1:0"], (100, bytes), |service, runtime, (is_begun, bytes)| {
        let bytes = if is_begun { [PREFACE, &bytes].concat() } else { bytes };
        runtime.block_on(connect_and_send(service, &bytes));
        Ok(())
    });
}

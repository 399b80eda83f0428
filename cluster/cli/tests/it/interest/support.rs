//! A running service, and a client that pairs batches with their updates.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use bytes::{Buf, BufMut, Bytes};
use purview::interest::{Entity, Event, Mode, Radii, Reach, Rules, Sight};
use purview::scene::{Pos, Rect};
use purview_server::interest::Ready;
use purview_server::interest::client::{Address, ClientError, Stream};
use purview_server::interest::encode::{self, change};
use purview_server::interest::proto::{Answer, Change, Refusal, SceneUpdate, Update, change};
use tonic::Code;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::Channel;

pub use crate::common::{PATIENCE, runtime};
use crate::common::{PROGRAM, tries};
use crate::end_to_end::process::run;

/// The ground of most tests.
pub const GROUND: Rect = Rect { x0: 0, z0: 0, x1: 10_000, z1: 10_000 };

/// Runs a test with a service of these arguments, and a stream.
pub fn with_stream<T>(args: &[&str], test: impl AsyncFnOnce(&Service, Stream) -> T) -> T {
    let service = Service::start(args);
    runtime().block_on(async {
        let stream = service.address().begin().await.unwrap();
        test(&service, stream).await
    })
}

/// A service. Dropping it kills the process.
pub struct Service {
    child: Child,
    pub ready: Ready,
}

impl Service {
    /// Starts the command on a free port, with `/metrics` on another.
    pub fn start(args: &[&str]) -> Service {
        let mut all = vec!["--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"];
        all.extend(args);
        Service::exactly(&all)
    }

    /// Starts the command with these arguments.
    pub fn exactly(args: &[&str]) -> Service {
        Service::with_errors_to(Stdio::inherit(), args)
    }

    /// The same; what it writes to its standard error goes elsewhere.
    pub fn with_errors_to(errors: Stdio, args: &[&str]) -> Service {
        let mut command = Command::new(PROGRAM);
        command.arg("interest").args(args).stdout(Stdio::piped()).stderr(errors);
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let json = line.strip_prefix("ready ").unwrap_or_else(|| panic!("{line:?}"));
        Service { child, ready: serde_json::from_str(json).unwrap() }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.ready.listen.unwrap())
    }

    /// Its address, without a token.
    pub fn address(&self) -> Address {
        Address::new(&self.url())
    }

    /// The text of its metrics.
    pub async fn metrics(&self) -> String {
        let console = format!("http://{}", self.ready.metrics.unwrap());
        let answer = purview_server::http::get_as(&console, "/metrics", None).await.unwrap();
        assert_eq!(answer.status, 200);
        String::from_utf8(answer.body.to_vec()).unwrap()
    }

    /// A metric, by its name and labels.
    pub async fn metric(&self, name: &str) -> f64 {
        let text = self.metrics().await;
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("no {name}: {text}")).parse().unwrap()
    }

    /// Waits until a metric fulfils a condition.
    pub async fn metric_when(&self, name: &str, holds: impl Fn(f64) -> bool) -> f64 {
        tries(name, async || {
            let value = self.metric(name).await;
            if holds(value) { Ok(value) } else { Err(value) }
        })
        .await
    }

    /// The most memory that the process has had, bytes.
    pub fn most_memory(&self) -> usize {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").trim().parse::<usize>().unwrap() << 10
    }

    /// Asks the process to end, and gives its exit code.
    pub fn terminate(mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may have ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// What the command says when it cannot start: exit code and errors.
pub fn refused(args: &[&str]) -> (i32, String) {
    let done = run(&[&["interest"], args].concat());
    (done.code.unwrap_or(-1), done.stderr)
}

/// Everything that a batch, or ticks, led to.
#[derive(Debug, Default, PartialEq)]
pub struct Outcome {
    pub scenes: Vec<SceneUpdate>,
    pub refused: Vec<Refusal>,
    pub answers: Vec<Answer>,
    /// The number of the last update.
    pub sequence: u64,
    pub applied: u64,
}

impl Outcome {
    /// The events of a scene.
    pub fn events(&self, scene: u64) -> Vec<Event> {
        self.scenes.iter().filter(|s| s.scene == scene).flat_map(encode::events).collect()
    }
}

/// The status of a call that failed.
pub fn status(error: Option<ClientError>) -> (Code, String) {
    match error {
        Some(ClientError::Status(status)) => (status.code(), status.message().to_owned()),
        other => panic!("{other:?}"),
    }
}

/// The updates of a stream up to one that ends an outcome.
pub async fn outcome(stream: &mut Stream) -> Result<Outcome, ClientError> {
    let mut outcome = Outcome::default();
    loop {
        let next = tokio::time::timeout(PATIENCE, stream.update()).await.expect("an update");
        let update: Update = next?.ok_or(ClientError::Ended("an update came"))?;
        outcome.scenes.extend(update.scenes);
        outcome.refused.extend(update.refused);
        outcome.answers.extend(update.answers);
        (outcome.sequence, outcome.applied) = (update.sequence, update.applied);
        if !update.more {
            return Ok(outcome);
        }
    }
}

/// Sends a batch and reads its outcome, which must not be empty.
pub async fn ask(stream: &mut Stream, changes: Vec<Change>) -> Outcome {
    let batch = stream.send(changes).await.unwrap();
    loop {
        let outcome = outcome(stream).await.unwrap();
        if outcome.applied >= batch {
            return outcome;
        }
    }
}

/// Rules in which all entities see each other within 1 m, until they are beyond 2 m.
pub fn circle() -> Rules {
    Rules::new(GROUND, Mode::Circle, Reach::Circle(Radii::new(100, 200)))
}

/// Creates a scene that the client ticks.
pub fn scene(id: u64, rules: &Rules) -> Change {
    change(id, change::Change::CreateScene(encode::scene(rules, None)))
}

/// Entities at places, as kind 0.
pub fn entities(at: &[(u64, i32, i32)]) -> Vec<Entity> {
    let entity = |(id, x, z): &(u64, i32, i32)| {
        let (pos, sight) = (Pos::ground(*x, *z), Sight::default());
        Entity { id: *id, kind: 0, plane: 0, pos, sight }
    };
    at.iter().map(entity).collect()
}

/// Creates entities at places.
pub fn create(scene: u64, at: &[(u64, i32, i32)]) -> Change {
    change(scene, encode::create(&entities(at)))
}

/// Moves an entity.
pub fn walk(scene: u64, id: u64, x: i32, z: i32) -> Change {
    change(scene, encode::moves(&[(id, Pos::ground(x, z))]))
}

/// Ends a tick.
pub fn tick(scene: u64) -> Change {
    change(scene, encode::tick())
}

/// An event.
pub fn event(observer: u64, subject: u64, appears: bool) -> Event {
    Event { observer, subject, appears }
}

/// The events by which two entities see each other, or no longer do.
pub fn both(a: u64, b: u64, appears: bool) -> [Event; 2] {
    [event(a, b, appears), event(b, a, appears)]
}

/// Calls the service with requests as bytes; the stream of its answers as bytes.
pub async fn raw(
    channel: Channel,
    requests: impl futures::Stream<Item = Bytes> + Send + 'static,
) -> Result<tonic::Streaming<Bytes>, tonic::Status> {
    let mut grpc = tonic::client::Grpc::new(channel);
    grpc.ready().await.expect("a connection");
    let path = http::uri::PathAndQuery::from_static("/purview.interest.v1.Interest/World");
    Ok(grpc.streaming(tonic::Request::new(requests), path, Plain).await?.into_inner())
}

/// Messages as bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Plain;

impl Codec for Plain {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Plain;
    type Decoder = Plain;

    fn encoder(&mut self) -> Plain {
        Plain
    }

    fn decoder(&mut self) -> Plain {
        Plain
    }
}

impl Encoder for Plain {
    type Item = Bytes;
    type Error = tonic::Status;

    fn encode(&mut self, item: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), tonic::Status> {
        to.put(item);
        Ok(())
    }
}

impl Decoder for Plain {
    type Item = Bytes;
    type Error = tonic::Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, tonic::Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

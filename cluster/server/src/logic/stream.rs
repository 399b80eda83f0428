//! The streams of workers: each serves one worker until it ends, and another one resumes the worker's session.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, Stream, StreamExt};
use purview::actor::directory::Directory;
use purview::scene::Scene;
use purview::scene::mutants::{self, Mutant};
use purview::scene::names::is_name;
use purview::scene::region::Followed;
use tokio::sync::mpsc;
use tokio_rustls::rustls::crypto::ring;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};

use super::hub::Hub;
use super::id_quota::{IDS, NoIds};
use super::inbound::Inbound;
use super::outbox::encode;
use super::proto::{self, Ids, Open, Opened, Request, request, response};
use super::worker::{Profile, Worker};
use super::{convert, events};

/// Responses that wait in a stream, beside those that the connection holds.
pub const QUEUE: usize = 4;

/// How long a stream may take for its first request.
const OPEN_WITHIN: Duration = Duration::from_secs(10);

/// Bytes of the name of a session.
const NAME: usize = 16;

/// Longest name that a worker gives itself, bytes.
const LONGEST_NAME: usize = 64;

/// Whether a worker may have this name.
pub(super) fn is_name_of_worker(name: &str) -> bool {
    name.is_empty() || is_name(name, LONGEST_NAME)
}

/// Responses of a stream.
pub type Answers = mpsc::Sender<Result<Bytes, Status>>;

/// How a stream ends.
enum End {
    /// The worker has ended its session.
    Session,
    /// The worker has closed its side of the stream, or the connection is broken.
    Stream,
    /// With a status.
    Status(Status),
}

/// Waits for the first request of a stream, and serves the worker.
pub async fn serve(
    hub: Arc<Hub>,
    mut requests: impl Stream<Item = Result<Request, Status>> + Unpin,
    answers: Answers,
    stop: CancellationToken,
) {
    let opened = match tokio::time::timeout(OPEN_WITHIN, requests.next()).await {
        Err(_) => Err(Status::deadline_exceeded("no request came within 10 s")),
        Ok(None) => Err(Status::invalid_argument("the stream has no requests")),
        Ok(Some(request)) => request.and_then(open_of),
    };
    let opened = opened.and_then(|open| open_session(&hub, open));
    let (worker, scene, opened) = match opened {
        Ok(opened) => opened,
        // An error means that the stream is gone.
        Err(status) => return drop(answers.send(Err(status)).await),
    };
    let end = worker.attach();
    worker.conduct.stream_begins();
    hub.divide_anew();
    let mut stream = WorkerStream { hub, worker, scene, requests, answers, delivery: None };
    let how = match stream.answers.send(Ok(encode(response::Message::Opened(opened)))).await {
        Ok(()) => stream.run(&end, &stop).await,
        Err(_) => End::Stream,
    };
    stream.end(how, &end).await;
}

fn open_of(request: Request) -> Result<Open, Status> {
    match request.message {
        Some(request::Message::Open(open)) => Ok(open),
        _ => Err(Status::invalid_argument("the first request of a stream must be `open`")),
    }
}

type Session = (Arc<Worker>, Arc<Scene>, Opened);

/// Finds the session that a worker wants, or begins one.
fn open_session(hub: &Hub, open: Open) -> Result<Session, Status> {
    let directory = hub.directory();
    let directory = directory.ok_or_else(|| Status::unavailable("the server is not ready"))?;
    let known = Some(&open.session).filter(|name| !name.is_empty());
    let worker = known.and_then(|session| hub.resumable(session));
    let Some(worker) = worker else {
        let reason = known.map_or("", |_| "no session has this name, or its time is over");
        return begin(hub, &directory, &open, reason);
    };
    let scene = directory.scene(worker.profile.scene);
    let scene = scene.ok_or_else(|| Status::not_found("the scene is gone"))?;
    let rewound = worker.rewind(open.received);
    if rewound.map_err(|error| Status::invalid_argument(error.to_string()))? {
        hub.tell_planes(&worker);
    }
    hub.metrics.resumed.fetch_add(1, Relaxed);
    let opened = opened(hub, &worker, &scene, (true, ""));
    Ok((worker, scene, opened))
}

fn begin(hub: &Hub, directory: &Directory, open: &Open, reason: &str) -> Result<Session, Status> {
    let no_scene = || Status::not_found(format!("there is no scene {:?}", open.scene));
    let scene = directory.scene_named(&open.scene).ok_or_else(no_scene)?;
    if !is_name_of_worker(&open.name) {
        let text = format!(
            "the worker's name is {:.80?}; it may have {LONGEST_NAME} bytes of printable text, or none",
            open.name
        );
        return Err(Status::invalid_argument(text));
    }
    let followed = match open.positions() {
        proto::Positions::Watched => Followed::Watched,
        proto::Positions::All => Followed::All,
        proto::Positions::None => Followed::Nothing,
    };
    let (name, answers) = (open.name.clone(), open.answers);
    let profile = Profile { scene: scene.id, name, answers, followed };
    let id = directory.new_session().0;
    let crowded = |error: super::hub::Crowded| Status::resource_exhausted(error.to_string());
    let no_ids = |error: NoIds| Status::resource_exhausted(error.to_string());
    let first = hub.ids.take(directory).map_err(no_ids)?;
    let worker = hub.begin((id, random_name()?), profile).map_err(crowded)?;
    worker.allot(first, IDS);
    hub.tell_planes(&worker);
    let opened = opened(hub, &worker, &scene, (false, reason));
    Ok((worker, scene, Opened { first_id: first.0, ids: IDS, ..opened }))
}

fn random_name() -> Result<Bytes, Status> {
    let mut name = [0; NAME];
    let random = ring::default_provider().secure_random.fill(&mut name);
    random.map_err(|_| Status::internal("the operating system provides no random bytes"))?;
    Ok(Bytes::copy_from_slice(&name))
}

fn opened(
    hub: &Hub,
    worker: &Worker,
    scene: &Arc<Scene>,
    (resumed, reason): (bool, &str),
) -> Opened {
    let resume = hub.limits.resume.as_millis();
    Opened {
        session: worker.session.clone(),
        resumed,
        resume_within_ms: u64::try_from(resume).unwrap_or(u64::MAX),
        reason: reason.into(),
        worker: worker.id,
        first_id: 0,
        ids: 0,
        scene: scene.id.0.into(),
        tick_ms: scene.tick_ms,
        kinds: events::kinds(scene),
        saves: hub.directory().is_some_and(|directory| directory.keeps_checkpoints()),
        version: env!("CARGO_PKG_VERSION").into(),
    }
}

/// What happens next in a stream.
enum Event {
    Request(Option<Result<Request, Status>>),
    /// The stream has taken a response.
    Sent,
    /// A region has taken a batch, or is gone.
    Delivered(Option<Inbound>),
    Ends(End),
}

/// A batch that waits until its region takes it; what is given back was not taken.
type Delivery = BoxFuture<'static, Option<Inbound>>;

struct WorkerStream<S> {
    hub: Arc<Hub>,
    worker: Arc<Worker>,
    scene: Arc<Scene>,
    requests: S,
    answers: Answers,
    delivery: Option<Delivery>,
}

impl<S: Stream<Item = Result<Request, Status>> + Unpin> WorkerStream<S> {
    async fn run(&mut self, end: &CancellationToken, stop: &CancellationToken) -> End {
        loop {
            let ends = match self.next(end, stop).await {
                Event::Request(request) => self.request(request),
                Event::Sent => None,
                Event::Delivered(refused) => {
                    self.delivery = None;
                    if let Some(batch) = refused {
                        self.worker.conduct.batch_refused(&self.hub.metrics);
                        batch.refuse(proto::Refusal::UnknownRegion);
                    }
                    None
                }
                Event::Ends(end) => Some(end),
            };
            if let Some(end) = ends {
                return end;
            }
        }
    }

    async fn next(&mut self, end: &CancellationToken, stop: &CancellationToken) -> Event {
        let (answers, worker) = (self.answers.clone(), self.worker.clone());
        let write = async {
            while !worker.has_unsent() {
                worker.more().await;
            }
            let Ok(room) = answers.reserve().await else { return Event::Ends(End::Stream) };
            // Taken only now: what waited may have been dropped while there was no room.
            if let Some(response) = worker.take_unsent() {
                room.send(Ok(response));
            }
            Event::Sent
        };
        let (requests, delivery) = (&mut self.requests, &mut self.delivery);
        let read = async {
            match delivery {
                // Nothing more is read until the batch is taken.
                Some(delivery) => Event::Delivered(delivery.await),
                None => Event::Request(requests.next().await),
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => {
                Event::Ends(End::Status(Status::unavailable("the server is being shut down")))
            }
            () = end.cancelled() => {
                Event::Ends(End::Status(Status::aborted("another stream has resumed the session")))
            }
            event = read => event,
            event = write => event,
            () = self.answers.closed() => Event::Ends(End::Stream),
        }
    }

    /// Takes a request; how the stream ends, if it does.
    fn request(&mut self, request: Option<Result<Request, Status>>) -> Option<End> {
        let request = match request {
            None => return Some(End::Stream),
            // What is malformed was found here; anything else came from the connection.
            Some(Err(status)) => return Some(End::Status(status)),
            Some(Ok(request)) => request.message,
        };
        let taken = match request {
            Some(request::Message::Batch(batch)) => self.batch(batch),
            Some(request::Message::Received(received)) => self.acknowledge(received.received),
            Some(request::Message::MoreIds(_)) => self.more_ids(),
            Some(request::Message::Answer(answer)) => {
                self.hub.answered(self.worker.id, answer);
                Ok(())
            }
            Some(request::Message::Close(_)) => return Some(End::Session),
            Some(request::Message::Open(_)) => Err(Status::invalid_argument(
                "the stream is open; only its first request is `open`",
            )),
            None => Err(Status::invalid_argument("a request without a message")),
        };
        taken.err().map(End::Status)
    }

    fn acknowledge(&self, received: u64) -> Result<(), Status> {
        let in_time = self.worker.acknowledge(received);
        if in_time.map_err(|error| Status::invalid_argument(error.to_string()))? {
            self.hub.tell_planes(&self.worker);
            self.hub.divide_anew();
        }
        Ok(())
    }

    fn batch(&mut self, batch: proto::Batch) -> Result<(), Status> {
        self.acknowledge(batch.received)?;
        let (inbound, decided) = convert::inbound(&self.worker, &self.scene, batch)?;
        if !decided.refused.is_empty() {
            self.worker.conduct.commands_refused(decided.refused.len(), &self.hub.metrics);
            // A worker that takes nothing sends its commands again.
            let _taken = self.worker.push(&encode(response::Message::Applied(decided)));
        }
        self.delivery = Some(deliver(&self.hub, inbound));
        Ok(())
    }

    fn more_ids(&self) -> Result<(), Status> {
        let directory = self.hub.directory();
        let directory = directory.ok_or_else(|| Status::unavailable("the server ends"))?;
        let again = self.worker.first_id().filter(|_| mutants::has(Mutant::IdsAgain));
        let no_ids = |error: NoIds| Status::resource_exhausted(error.to_string());
        let first = again.map_or_else(|| self.hub.ids.take(&directory), Ok).map_err(no_ids)?;
        self.worker.allot(first, IDS);
        let ids = response::Message::Ids(Ids { first_id: first.0, ids: IDS });
        // A worker that is told that responses were dropped asks again.
        let _taken = self.worker.push(&encode(ids));
        Ok(())
    }

    /// The stream ends; the session may be resumed for a while.
    async fn end(self, how: End, end: &CancellationToken) {
        let WorkerStream { hub, worker, answers, .. } = self;
        note_end(&hub, &worker, &how);
        if let End::Status(status) = &how {
            // An error means that the stream is gone.
            drop(answers.send(Err(status.clone())).await);
        }
        drop(answers);
        if matches!(how, End::Session) {
            return hub.end(&worker);
        }
        if worker.detach(end) {
            tracing::info!(worker = worker.id, name = %worker.profile.name, "a logic worker has lost its connection");
            let waits = wait(hub.clone(), worker);
            hub.spawn(waits);
        }
    }
}

/// For operators.
fn note_end(hub: &Hub, worker: &Worker, how: &End) {
    let metrics = &hub.metrics;
    let why = match how {
        End::Session => "the worker has ended its session",
        End::Stream => "the connection was closed or is broken",
        End::Status(status) => status.message(),
    };
    worker.conduct.stream_ended(why);
    let End::Status(status) = how else { return };
    match status.code() {
        Code::InvalidArgument | Code::OutOfRange => {
            metrics.malformed_streams.fetch_add(1, Relaxed);
            let (worker, name) = (worker.id, &worker.profile.name);
            tracing::warn!(worker, %name, %why, "a logic worker has sent a malformed request");
        }
        Code::Aborted => drop(metrics.replaced_streams.fetch_add(1, Relaxed)),
        _ => {}
    }
}

/// Gives a batch to its region, when the region has room for it.
fn deliver(hub: &Hub, inbound: Inbound) -> Delivery {
    let lane = hub.lane(inbound.region);
    let passed_on = lane.is_none() && hub.pass_on(&inbound);
    async move {
        match lane {
            Some(lane) => lane.send(inbound).await.err().map(|refused| refused.0),
            None => (!passed_on).then_some(inbound),
        }
    }
    .boxed()
}

/// Waits for a worker without a stream: its regions go to others, and then its session ends.
async fn wait(hub: Arc<Hub>, worker: Arc<Worker>) {
    let limits = hub.limits;
    tokio::time::sleep(limits.takeover).await;
    if !worker.is_away_now() {
        return;
    }
    hub.divide_anew();
    tokio::time::sleep(limits.resume.saturating_sub(limits.takeover)).await;
    if !worker.has_stream() {
        hub.end(&worker);
    }
}

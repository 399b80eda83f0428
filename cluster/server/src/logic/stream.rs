//! The streams of workers: each is the session of one worker.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use purview::actor::directory::Directory;
use purview::scene::mutants::{self, Mutant};
use purview::scene::names::is_name;
use purview::scene::region::Followed;
use purview::scene::{Epoch, RegionId, Scene};
use purview::wire::peer::WorkerGot;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};

use super::convert;
use super::hub::{Crowded, Hub};
use super::id_quota::{IDS, NoIds};
use super::proto::{self, Ids, Open, Opened, Request, request, response};
use super::told::{encode, kinds};
use super::worker::{Profile, Worker};
use crate::grpc::opening;

/// Responses that wait in a stream, beside those that the connection holds.
pub const QUEUE: usize = 4;

/// Longest name that a worker gives itself, bytes.
const LONGEST_NAME: usize = 64;

pub(super) fn is_name_of_worker(name: &str) -> bool {
    name.is_empty() || is_name(name, LONGEST_NAME)
}

pub type Answers = mpsc::Sender<Result<Bytes, Status>>;

enum End {
    Session,
    /// The worker has closed its side of the stream, or the connection is broken.
    Stream,
    Status(Status),
}

/// Waits for the first request of a stream, and serves the worker.
pub async fn serve(
    hub: Arc<Hub>,
    mut requests: impl Stream<Item = Result<Request, Status>> + Unpin,
    answers: Answers,
    stop: CancellationToken,
) {
    let open = opening(&mut requests, |request: Request| match request.message {
        Some(request::Message::Open(open)) => Some(open),
        _ => None,
    });
    let opened = open.await.and_then(|open| begin(&hub, &open));
    let (worker, scene, opened) = match opened {
        Ok(opened) => opened,
        // An error means that the stream is gone.
        Err(status) => return drop(answers.send(Err(status)).await),
    };
    hub.divide_anew();
    let mut stream = WorkerStream { hub, worker, scene, requests, answers };
    let how = match stream.answers.send(Ok(encode(response::Message::Opened(opened)))).await {
        Ok(()) => stream.run(&stop).await,
        Err(_) => End::Stream,
    };
    stream.end(how).await;
}

type Session = (Arc<Worker>, Arc<Scene>, Opened);

fn begin(hub: &Hub, open: &Open) -> Result<Session, Status> {
    let directory = hub.directory();
    let directory = directory.ok_or_else(|| Status::unavailable("the server is not ready"))?;
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
    let crowded = |error: Crowded| Status::resource_exhausted(error.to_string());
    let no_ids = |error: NoIds| Status::resource_exhausted(error.to_string());
    let first = hub.ids.take(&directory).map_err(no_ids)?;
    let worker = hub.begin(directory.new_session().0, profile).map_err(crowded)?;
    worker.allot(first, IDS);
    hub.tell_planes(&worker);
    let opened = opened(hub, &directory, (&worker, &scene));
    Ok((worker, scene, Opened { first_id: first.0, ids: IDS, ..opened }))
}

fn opened(hub: &Hub, directory: &Directory, (worker, scene): (&Worker, &Arc<Scene>)) -> Opened {
    Opened {
        worker: worker.id,
        first_id: 0,
        ids: 0,
        scene: scene.id.0.into(),
        tick_ms: scene.tick_ms,
        kinds: kinds(scene),
        saves: directory.keeps_checkpoints(),
        takeover_ms: u64::try_from(hub.limits.takeover.as_millis()).unwrap_or(u64::MAX),
        version: env!("CARGO_PKG_VERSION").into(),
    }
}

enum Event {
    Request(Option<Result<Request, Status>>),
    /// The stream has taken a response.
    Sent,
    Ends(End),
}

struct WorkerStream<S> {
    hub: Arc<Hub>,
    worker: Arc<Worker>,
    scene: Arc<Scene>,
    requests: S,
    answers: Answers,
}

impl<S: Stream<Item = Result<Request, Status>> + Unpin> WorkerStream<S> {
    async fn run(&mut self, stop: &CancellationToken) -> End {
        loop {
            let ends = match self.next(stop).await {
                Event::Request(request) => self.request(request),
                Event::Sent => None,
                Event::Ends(end) => Some(end),
            };
            if let Some(end) = ends {
                return end;
            }
            // Regions say one thing each; what is too much the process has said.
            if self.worker.unread_bytes() > self.hub.limits.keep {
                let text = "the worker does not read what it is told";
                return End::Status(Status::resource_exhausted(text));
            }
        }
    }

    async fn next(&mut self, stop: &CancellationToken) -> Event {
        let (answers, worker) = (self.answers.clone(), self.worker.clone());
        let write = async {
            while !worker.has_unsent() {
                worker.more().await;
            }
            let Ok(room) = answers.reserve().await else { return Event::Ends(End::Stream) };
            // Taken only now: it may have been replaced while there was no room.
            if let Some(response) = worker.take_unsent() {
                room.send(Ok(response));
            }
            Event::Sent
        };
        let requests = &mut self.requests;
        tokio::select! {
            biased;
            () = stop.cancelled() => {
                Event::Ends(End::Status(Status::unavailable("the server is being shut down")))
            }
            request = requests.next() => Event::Request(request),
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
            Some(request::Message::Answer(answer)) => self.answer(answer),
            Some(request::Message::Got(got)) => {
                let (worker, region) = (self.worker.id, RegionId(got.region));
                let (epoch, last) = (Epoch(got.epoch), got.last);
                self.hub.got(&self.worker, WorkerGot { worker, region, epoch, last });
                Ok(())
            }
            Some(request::Message::MoreIds(_)) => self.more_ids(),
            Some(request::Message::Verdict(verdict)) => {
                self.hub.decided(self.worker.id, verdict);
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

    fn answer(&self, answer: proto::Answer) -> Result<(), Status> {
        let answer = convert::answer(&self.worker, &self.scene, answer)?;
        self.hub.answer(&self.worker, answer);
        Ok(())
    }

    fn more_ids(&self) -> Result<(), Status> {
        let directory = self.hub.directory();
        let directory = directory.ok_or_else(|| Status::unavailable("the server ends"))?;
        let again = self.worker.first_id().filter(|_| mutants::has(Mutant::IdsAgain));
        let no_ids = |error: NoIds| Status::resource_exhausted(error.to_string());
        let first = again.map_or_else(|| self.hub.ids.take(&directory), Ok).map_err(no_ids)?;
        self.worker.allot(first, IDS);
        self.worker.say(encode(response::Message::Ids(Ids { first_id: first.0, ids: IDS })));
        Ok(())
    }

    async fn end(self, how: End) {
        let WorkerStream { hub, worker, answers, .. } = self;
        hub.end(&worker);
        note_end(&hub, &worker, &how);
        if let End::Status(status) = how {
            // An error means that the stream is gone.
            drop(answers.send(Err(status)).await);
        }
    }
}

fn note_end(hub: &Hub, worker: &Worker, how: &End) {
    let (id, name) = (worker.id, &worker.profile.name);
    match how {
        End::Session => tracing::info!(worker = id, %name, "a logic worker has ended its session"),
        End::Stream => tracing::info!(worker = id, %name, "a logic worker has lost its connection"),
        End::Status(status) => {
            let why = status.message();
            tracing::warn!(worker = id, %name, %why, "the session of a logic worker has ended");
            if matches!(status.code(), Code::InvalidArgument | Code::OutOfRange) {
                hub.metrics.malformed_streams.fetch_add(1, Relaxed);
            }
        }
    }
}

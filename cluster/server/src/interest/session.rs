//! The task of a session: passes batches from its stream to its state, and updates back. A session
//! without a stream stands still until a stream resumes it, or its time is over.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use bytes::Bytes;
use futures::{FutureExt, StreamExt};
use prost::Message;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use super::metrics::Metrics;
use super::outbox::{RewindError, WINDOW_BYTES};
use super::proto::{Opened, Request, Response, request, response};
pub use super::session_status::SessionStatus;
use super::state::{Shared, State};

/// Responses that wait in a stream, beside those that the connection holds.
pub const QUEUE: usize = 2;

/// Requests that are taken before other events have their turn.
const AT_ONCE: u32 = 64;

pub type Answers = mpsc::Sender<Result<Bytes, Status>>;

/// What a client has of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// Nothing: the session is new.
    New,
    /// The updates up to this one.
    UpTo(u64),
    /// Its name alone.
    Lost,
}

#[derive(Debug)]
pub struct Attach {
    pub received: Received,
    /// The client acknowledges updates.
    pub acknowledges: bool,
    /// Why the session that the client wanted to resume is not there. Empty: it is, or none was
    /// wanted.
    pub reason: String,
    pub requests: Streaming<Request>,
    pub answers: Answers,
}

#[derive(Debug)]
struct Link {
    requests: Streaming<Request>,
    answers: Answers,
    /// The client has sent all that it wants to, and whether it has ended its session.
    closing: Option<Closing>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closing {
    /// It may resume the session.
    Stream,
    /// It has ended the session.
    Session,
}

enum Event {
    Attached(Box<Attach>),
    /// The stream takes another update.
    Room,
    Acknowledged,
    Work,
    Request(Result<Request, Status>),
    /// The client has closed its side of the stream, or cancelled the call.
    Closed,
    Broken,
    Due,
    /// The session ends, and the service if `true`.
    Ends(bool),
}

pub struct Session {
    id: Bytes,
    shared: Shared,
    state: State,
    attach: mpsc::Receiver<Attach>,
    link: Option<Link>,
    status: Arc<SessionStatus>,
    /// When a session without a stream ends.
    ends: Instant,
    /// Since when the client does not read.
    blocked: Option<Instant>,
    /// Requests that were taken since all events were asked for.
    at_once: u32,
    stop: CancellationToken,
}

impl Session {
    pub fn new(
        id: Bytes,
        shared: Shared,
        (attach, status): (mpsc::Receiver<Attach>, Arc<SessionStatus>),
        stop: CancellationToken,
    ) -> Session {
        shared.metrics.waiting.fetch_add(1, Relaxed);
        Session {
            id,
            state: State::new(shared.clone()),
            attach,
            status,
            link: None,
            ends: Instant::now() + shared.limits.resume_within,
            shared,
            blocked: None,
            at_once: 0,
            stop,
        }
    }

    /// Runs until the client ends the session, its time is over, or the service stops.
    pub async fn run(mut self) {
        loop {
            let event = self.next().await;
            if !matches!(event, Event::Ends(true)) {
                self.unblock();
            }
            match event {
                Event::Attached(attach) => self.attach(*attach),
                Event::Room => {}
                Event::Acknowledged => self.forget_received(),
                Event::Work => self.busy(|state, now| state.work(now)),
                Event::Due => self.busy(State::tick_due),
                Event::Request(request) => self.request(request),
                Event::Closed => self.close(Closing::Stream),
                Event::Broken => self.detach(None),
                Event::Ends(service) => return self.end(service),
            }
        }
    }

    async fn next(&mut self) -> Event {
        let stopped = self.stop.clone();
        let (attach, status) = (&mut self.attach, &self.status);
        let Some(link) = &mut self.link else {
            return tokio::select! {
                attach = attach.recv() => attached(attach),
                () = tokio::time::sleep_until(self.ends.into()) => Event::Ends(false),
                () = status.gave_way.cancelled() => Event::Ends(false),
                () = stopped.cancelled() => Event::Ends(true),
            };
        };
        if let Some(update) = self.state.outbox.unsent() {
            let (answers, waits) = (link.answers.clone(), self.state.outbox.waits());
            if (waits || answers.capacity() == 0) && self.blocked.is_none() {
                self.blocked = Some(Instant::now());
                self.shared.metrics.blocked.fetch_add(1, Relaxed);
            }
            return tokio::select! {
                biased;
                () = stopped.cancelled() => Event::Ends(true),
                attach = attach.recv() => attached(attach),
                () = status.acknowledged.notified() => Event::Acknowledged,
                permit = answers.reserve(), if !waits => {
                    let Ok(permit) = permit else { return Event::Broken };
                    self.shared.metrics.sent_bytes.fetch_add(update.len() as u64, Relaxed);
                    // Before the client can have it.
                    status.sent.fetch_add(1, Relaxed);
                    permit.send(Ok(update.clone()));
                    self.state.outbox.sent();
                    Event::Room
                }
                () = answers.closed(), if waits => Event::Broken,
            };
        }
        if self.state.is_pending() {
            return Event::Work;
        }
        match link.closing {
            Some(Closing::Session) => return Event::Ends(false),
            Some(Closing::Stream) => return Event::Broken,
            None => {}
        }
        let due = self.state.next_due();
        if self.at_once < AT_ONCE && due.is_none_or(|due| due > Instant::now()) {
            // Most requests of a busy client are here already: nothing else has to be asked.
            if let Some(request) = link.requests.next().now_or_never() {
                self.at_once += 1;
                return request.map_or(Event::Closed, Event::Request);
            }
        }
        self.at_once = 0;
        tokio::select! {
            () = stopped.cancelled() => Event::Ends(true),
            attach = attach.recv() => attached(attach),
            request = link.requests.next() => request.map_or(Event::Closed, Event::Request),
            () = link.answers.closed() => Event::Broken,
            () = sleep_until(due) => Event::Due,
        }
    }

    /// The client reads again.
    fn unblock(&mut self) {
        if let Some(since) = self.blocked.take() {
            self.shared.metrics.blocked.fetch_sub(1, Relaxed);
            Metrics::spent(&self.shared.metrics.blocked_us, since.elapsed());
        }
    }

    /// Works, and lets other tasks use another thread if it may take long.
    fn busy(&mut self, work: impl FnOnce(&mut State, Instant)) {
        let begin = Instant::now();
        let state = &mut self.state;
        match state.is_heavy() {
            true => tokio::task::block_in_place(|| work(state, begin)),
            false => work(state, begin),
        }
        Metrics::spent(&self.shared.metrics.busy_us, begin.elapsed());
    }

    fn request(&mut self, request: Result<Request, Status>) {
        let request = match request {
            Ok(request) => request,
            // What is malformed was found here; anything else came from the connection.
            Err(status) => return self.detach(Some(status)),
        };
        let taken = match request.message {
            Some(request::Message::Batch(batch)) => {
                self.state.take(batch).map_err(|error| error_status(&error))
            }
            Some(request::Message::Close(_)) => return self.close(Closing::Session),
            Some(request::Message::Open(_)) => Err(Status::invalid_argument(
                "the stream is open; only its first request is `open`",
            )),
            None => Err(Status::invalid_argument("a request without `open` or `batch`")),
        };
        match taken {
            Ok(()) => self.busy(|state, now| state.work(now)),
            Err(status) => self.detach(Some(status)),
        }
    }

    fn close(&mut self, closing: Closing) {
        if let Some(link) = &mut self.link {
            link.closing = Some(closing);
        }
    }

    /// Leaves the stream, if there is one, with a status. The session can be resumed.
    fn detach(&mut self, status: Option<Status>) {
        let Some(link) = self.link.take() else { return };
        if let Some(status) = status {
            finish(link, status);
        }
        self.shared.metrics.connected.fetch_sub(1, Relaxed);
        self.shared.metrics.waiting.fetch_add(1, Relaxed);
        self.wait();
    }

    /// Waits for the client, if there is something to resume.
    fn wait(&mut self) {
        self.ends = Instant::now();
        if !self.state.is_blank() {
            self.ends += self.shared.limits.resume_within;
            self.status.wait();
        }
    }

    fn forget_received(&mut self) {
        let received = self.status.received.load(Relaxed);
        if let Err(error) = self.state.outbox.forget(received) {
            // The number was checked: a stream has gone back to an earlier one since.
            tracing::debug!(%error, "an acknowledgement came too late");
        }
    }

    /// Goes back to what a client has received; whether the session goes on.
    fn rewind(&mut self, received: Received, reason: &mut String) -> Result<bool, RewindError> {
        let number = match received {
            Received::New => return Ok(false),
            Received::Lost => {
                self.busy(State::forget_all);
                self.state.outbox.number() - 1
            }
            Received::UpTo(number) => number,
        };
        match self.state.outbox.rewind(number) {
            Ok(()) => {
                self.status.sent.store(number, Relaxed);
                Ok(true)
            }
            Err(error @ RewindError::Never { .. }) => Err(error),
            Err(error @ RewindError::Gone { .. }) => {
                *reason = error.to_string();
                self.state = State::new(self.shared.clone());
                self.status.sent.store(0, Relaxed);
                self.status.received.store(0, Relaxed);
                Ok(false)
            }
        }
    }

    fn attach(&mut self, attach: Attach) {
        let Attach { received, acknowledges, mut reason, requests, answers } = attach;
        let resumed = match self.rewind(received, &mut reason) {
            Ok(resumed) => resumed,
            Err(error) => {
                let status = Status::invalid_argument(error.to_string());
                return drop(answers.try_send(Err(status)));
            }
        };
        self.state.outbox.acknowledge(acknowledges);
        self.count_resume(resumed, &reason);
        let opened = self.opened(resumed, reason, received == Received::Lost);
        // The queue of a new stream has room.
        let is_there = answers.try_send(Ok(opened)).is_ok();
        self.detach(Some(Status::aborted("another stream has resumed the session")));
        if is_there {
            self.status.waiting.store(0, Relaxed);
            self.shared.metrics.waiting.fetch_sub(1, Relaxed);
            self.shared.metrics.connected.fetch_add(1, Relaxed);
            self.link = Some(Link { requests, answers, closing: None });
        } else {
            self.wait();
        }
    }

    fn count_resume(&self, resumed: bool, reason: &str) {
        if resumed {
            self.shared.metrics.resumed.fetch_add(1, Relaxed);
        } else if !reason.is_empty() {
            self.shared.metrics.restarted.fetch_add(1, Relaxed);
        }
    }

    fn opened(&self, resumed: bool, reason: String, lost: bool) -> Bytes {
        let resume_within = self.shared.limits.resume_within.as_millis();
        let opened = Opened {
            session: self.id.clone(),
            resumed,
            applied: self.state.applied(),
            resume_within_ms: u64::try_from(resume_within).unwrap_or(u64::MAX),
            reason,
            version: env!("CARGO_PKG_VERSION").into(),
            window_bytes: WINDOW_BYTES as u64,
            scenes: if resumed && lost { self.state.scenes() } else { Vec::new() },
        };
        let message = Some(response::Message::Opened(opened));
        Response { message }.encode_to_vec().into()
    }

    fn end(mut self, service: bool) {
        self.unblock();
        if let Some(link) = self.link.take() {
            self.shared.metrics.connected.fetch_sub(1, Relaxed);
            if service {
                finish(link, Status::unavailable("the service is being shut down"));
            }
        } else {
            self.shared.metrics.waiting.fetch_sub(1, Relaxed);
        }
        // A stream that came too late.
        self.attach.close();
        while let Ok(late) = self.attach.try_recv() {
            let status = Status::unavailable("the session has just ended: open another one");
            // An error means that the stream is gone.
            drop(late.answers.try_send(Err(status)));
        }
    }
}

fn attached(attach: Option<Attach>) -> Event {
    // The registry of sessions drops its end only when the service stops.
    attach.map_or(Event::Ends(true), |attach| Event::Attached(Box::new(attach)))
}

fn error_status(error: &super::state::BatchError) -> Status {
    match error {
        super::state::BatchError::Malformed(_) | super::state::BatchError::Received { .. } => {
            Status::invalid_argument(error.to_string())
        }
        super::state::BatchError::Missing { .. } => Status::failed_precondition(error.to_string()),
    }
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}

/// Ends a stream with a status, behind what waits in it.
fn finish(link: Link, status: Status) {
    let Link { requests, answers, .. } = link;
    tokio::spawn(async move {
        // An error means that the stream is gone.
        drop(answers.send(Err(status)).await);
        drop(requests);
    });
}

//! Keeps a lease alive: one keep-alive at a time, each with the time at which it was sent, over
//! streams that are reopened when they end.
//!
//! Each lease has a thread, a runtime and connections of its own, so that no other work of the
//! process delays a keep-alive: TLS handshakes, decoding and the encoding of checkpoints run
//! elsewhere. A process whose other tasks do not run must not own regions for ever: see [`STUCK`].

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio::time::timeout;

use super::client::{Client, Stream};
use super::request::Failed;
use super::rpc::{LeaseGrantRequest, LeaseKeepAliveRequest, LeaseKeepAliveResponse};
use super::{Shared, revision, unsigned};

use crate::storage::leases::Result;
use crate::storage::leases::store::{HeldLease, Lease, Loss};
use crate::storage::{Authority, LeaseError};

/// Longest time between two keep-alives.
const EVERY_MAX: Duration = Duration::from_secs(1);

/// Pause before the next endpoint is asked.
const PAUSE: Duration = Duration::from_millis(50);

/// The lease is not renewed if the runtime of the store has run no task for this long: the process
/// is stuck, and another node should own its regions.
const STUCK: Duration = Duration::from_secs(30);

pub async fn lease(shared: &Arc<Shared>, ttl: Duration) -> Result<HeldLease> {
    let seconds = i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX);
    let asked = "grant a lease";
    let granted = shared.ask(asked, |client| async move {
        let sent = Instant::now();
        let answer = client.grant(LeaseGrantRequest { ttl: seconds, id: 0 }).await?;
        Ok((revision(answer.header.as_ref()), (sent, answer)))
    });
    let ((sent, answer), _) = granted.await.map_err(|e| e.told(&shared.name, asked))?;
    let id = answer.id;
    // etcd grants more than is asked if its elections take longer.
    let ttl = Duration::from_secs(unsigned(answer.ttl));
    let authority = Authority::new(sent, ttl);
    let (tell, lost) = watch::channel(None);
    let lost_told = Arc::new(tell);
    let monitor = KeepAliveTask {
        shared: shared.clone(),
        clients: Vec::new(),
        at: 0,
        id,
        ttl,
        every: (ttl / 5).min(EVERY_MAX),
        authority: authority.clone(),
        lost: lost_told.clone(),
        pulse: Pulse::new(shared.runtime.clone()),
    };
    let (stop, stopped) = watch::channel(false);
    monitor.start(stopped).map_err(|cause| LeaseError::Refused {
        store: "the system".into(),
        asked: "start the thread that keeps the lease",
        cause: cause.to_string(),
    })?;
    let lease = KeptLease { id, shared: shared.clone(), stop, lost: lost_told };
    Ok(HeldLease { lease: Arc::new(lease), ttl, authority, lost })
}

/// Ends a lease; false: there is none.
pub async fn revoke(shared: &Shared, lease: i64) -> Result<bool> {
    let asked = "end a lease";
    let revoked = shared.ask(asked, |client| async move {
        let answer = client.revoke(lease).await?;
        Ok((revision(answer.header.as_ref()), ()))
    });
    match revoked.await {
        Ok(_) => Ok(true),
        Err(Failed::NoLease) => Ok(false),
        Err(e) => Err(e.told(&shared.name, asked)),
    }
}

struct KeptLease {
    id: i64,
    shared: Arc<Shared>,
    /// True, or dropped: stop keeping the lease alive.
    stop: watch::Sender<bool>,
    lost: Arc<watch::Sender<Option<Loss>>>,
}

#[async_trait]
impl Lease for KeptLease {
    fn id(&self) -> i64 {
        self.id
    }

    async fn leave(&self) -> Result<()> {
        self.stop.send_replace(true);
        lose(&self.lost, Loss::Left);
        revoke(&self.shared, self.id).await.map(|_| ())
    }
}

/// Records why the lease was lost; the first reason stays.
fn lose(lost: &watch::Sender<Option<Loss>>, loss: Loss) {
    lost.send_if_modified(|now| now.is_none() && now.replace(loss).is_none());
}

/// Keeps one lease alive until etcd says that it has ended.
struct KeepAliveTask {
    shared: Arc<Shared>,
    /// One client for each etcd; they belong to the thread of this task and end with it.
    clients: Vec<Client>,
    /// Index of the client to ask, modulo their number.
    at: usize,
    id: i64,
    ttl: Duration,
    every: Duration,
    authority: Authority,
    lost: Arc<watch::Sender<Option<Loss>>>,
    pulse: Pulse,
}

/// Detects whether a runtime runs tasks.
struct Pulse {
    runtime: Handle,
    beat: Option<JoinHandle<()>>,
    since: Instant,
}

impl Pulse {
    fn new(runtime: Handle) -> Pulse {
        Pulse { runtime, beat: None, since: Instant::now() }
    }

    /// Whether the runtime has run a task within [`STUCK`]. Call it more often than that.
    fn beats(&mut self) -> bool {
        if self.beat.as_ref().is_none_or(JoinHandle::is_finished) {
            self.since = Instant::now();
            self.beat = Some(self.runtime.spawn(std::future::ready(())));
        }
        self.since.elapsed() < STUCK
    }
}

type KeepAlives = Stream<LeaseKeepAliveRequest, LeaseKeepAliveResponse>;

enum KeepAliveReply {
    /// The lease lives so long from when it was asked.
    Renewed(Duration),
    Gone,
}

impl KeepAliveTask {
    /// Starts the thread, which runs until the lease has ended or `stopped`.
    fn start(self, mut stopped: watch::Receiver<bool>) -> std::io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let keep = move || {
            runtime.block_on(async {
                tokio::select! {
                    biased;
                    // An error means that the lease was dropped.
                    _ = stopped.wait_for(|stopped| *stopped) => {}
                    () = self.run() => {}
                }
            });
        };
        std::thread::Builder::new().name("purview-lease".into()).spawn(keep).map(drop)
    }

    async fn run(mut self) {
        loop {
            match self.round().await {
                Ok(KeepAliveReply::Gone) => break,
                Ok(KeepAliveReply::Renewed(_)) => {}
                Err(cause) => {
                    tracing::debug!(lease = self.id, cause, "keep-alive failed");
                    self.at = self.at.wrapping_add(1);
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
        self.authority.end();
        lose(&self.lost, Loss::Gone);
    }

    /// Renews through one etcd until that fails or the lease has ended.
    async fn round(&mut self) -> Result<KeepAliveReply, String> {
        if self.clients.is_empty() {
            self.clients = self.connect()?;
        }
        let client = self.clients[self.at % self.clients.len()].clone();
        let reply = self.stream(client.clone()).await?;
        let is_gone = matches!(reply, KeepAliveReply::Gone) && self.is_gone(client).await;
        Ok(if is_gone { KeepAliveReply::Gone } else { KeepAliveReply::Renewed(self.ttl) })
    }

    /// Connections of this thread: those of [`Shared`] do their work on another runtime.
    fn connect(&self) -> Result<Vec<Client>, String> {
        let endpoints = self.shared.endpoints.iter();
        let clients = endpoints.map(|endpoint| Client::to(endpoint, &self.shared.access));
        clients.collect::<Result<_, _>>().map_err(|e| e.to_string())
    }

    /// Renews over one stream until it fails or etcd says that there is no such lease.
    async fn stream(&mut self, client: Client) -> Result<KeepAliveReply, String> {
        let sent = Instant::now();
        let opened = timeout(self.limit(), self.open(&client)).await;
        let (mut stream, reply) = opened.map_err(|_| "no answer in time")??;
        let KeepAliveReply::Renewed(ttl) = reply else { return Ok(reply) };
        self.authority.renewed(sent, ttl);
        let mut next = sent + self.every;
        loop {
            tokio::time::sleep_until(next).await;
            next = Instant::now() + self.every;
            if !self.pulse.beats() {
                let for_s = self.pulse.since.elapsed().as_secs();
                tracing::error!(
                    for_s,
                    "this process is stuck and runs no tasks: its lease is not renewed"
                );
                continue;
            }
            match timeout(self.limit(), self.renew(&mut stream)).await {
                Ok(Ok(KeepAliveReply::Renewed(_))) => {}
                Ok(other) => return other,
                Err(_) => return Err("no answer in time".into()),
            }
        }
    }

    /// Opens a stream and renews the lease once.
    async fn open(&self, client: &Client) -> Result<(KeepAlives, KeepAliveReply), String> {
        let mut stream = client.keep_alive_with(self.request()).await.map_err(|e| e.to_string())?;
        let reply = self.receive(&mut stream).await?;
        Ok((stream, reply))
    }

    fn request(&self) -> LeaseKeepAliveRequest {
        LeaseKeepAliveRequest { id: self.id }
    }

    async fn renew(&self, stream: &mut KeepAlives) -> Result<KeepAliveReply, String> {
        let sent = Instant::now();
        stream.send(self.request()).map_err(|e| e.to_string())?;
        let reply = self.receive(stream).await?;
        if let KeepAliveReply::Renewed(ttl) = reply {
            self.authority.renewed(sent, ttl);
        }
        Ok(reply)
    }

    async fn receive(&self, stream: &mut KeepAlives) -> Result<KeepAliveReply, String> {
        let answer = stream.message().await.map_err(|e| e.to_string())?;
        let answer = answer.ok_or("the stream ended")?;
        let ttl = Duration::from_secs(unsigned(answer.ttl));
        Ok(if answer.ttl <= 0 { KeepAliveReply::Gone } else { KeepAliveReply::Renewed(ttl) })
    }

    /// Asks again by another request, because losing a lease is final.
    async fn is_gone(&self, client: Client) -> bool {
        match timeout(self.limit(), client.time_to_live(self.id)).await {
            Ok(Ok(answer)) => answer.ttl < 0,
            _ => false,
        }
    }

    /// How long to wait for one answer before another endpoint is asked.
    fn limit(&self) -> Duration {
        self.every.max(Duration::from_millis(300))
    }
}

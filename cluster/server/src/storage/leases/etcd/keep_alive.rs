//! A lease kept alive: one request at a time, each with its time of sending, over streams that are
//! opened again whenever they end.
//!
//! Each lease has a thread, a runtime and connections of its own, so that nothing else of the process
//! delays a keep-alive: TLS handshakes, decoding and the encoding of checkpoints run elsewhere.
//! A process whose other tasks do not run at all must not own regions for ever: see [`STUCK`].

use std::sync::Arc;
use std::time::Duration;

use etcd_client::{Client, Error, LeaseKeepAliveStream, LeaseKeeper};
use futures::future::{BoxFuture, FutureExt};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio::time::timeout;

use super::request::{self, Failed};
use super::{Shared, unsigned};
use crate::storage::leases::store::{Held, Lease, Loss};
use crate::storage::{Authority, LeaseError};

/// Longest time between two keep-alives.
const EVERY_MAX: Duration = Duration::from_secs(1);

/// Pause before the next endpoint is tried.
const PAUSE: Duration = Duration::from_millis(50);

/// The lease is not renewed while the runtime of the store has run no task for this long: the process is
/// stuck, and another should own its regions.
const STUCK: Duration = Duration::from_secs(30);

pub async fn lease(shared: &Arc<Shared>, ttl: Duration) -> Result<Held, LeaseError> {
    let seconds = i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX);
    let asked = "grant a lease";
    let granted = shared.ask(asked, |mut client| async move {
        let sent = Instant::now();
        let answer = client.lease_grant(seconds, None).await?;
        Ok((answer.header().map(|header| header.revision()), (sent, answer)))
    });
    let ((sent, answer), _) = granted.await.map_err(|e| e.told(&shared.name, asked))?;
    let id = answer.id();
    // etcd grants more than is asked if its elections take longer.
    let ttl = Duration::from_secs(unsigned(answer.ttl()));
    let authority = Authority::new(sent, ttl);
    let (tell, lost) = watch::channel(None);
    let lost_told = Arc::new(tell);
    let keeper = Keeper {
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
    keeper.start(stopped).map_err(|cause| LeaseError::Refused {
        store: "the system".into(),
        asked: "start the thread that keeps the lease",
        cause: cause.to_string(),
    })?;
    let lease = KeptLease { id, shared: shared.clone(), stop, lost: lost_told };
    Ok(Held { lease: Arc::new(lease), ttl, authority, lost })
}

/// Ends a lease; false: there was none.
pub async fn revoke(shared: &Shared, lease: i64) -> Result<bool, LeaseError> {
    let asked = "end a lease";
    let revoked = shared.ask(asked, |mut client| async move {
        let answer = client.lease_revoke(lease).await?;
        Ok((answer.header().map(|header| header.revision()), ()))
    });
    match revoked.await {
        Ok(_) => Ok(true),
        Err(Failed::NoLease) => Ok(false),
        Err(e) => Err(e.told(&shared.name, asked)),
    }
}

/// A lease of this process.
struct KeptLease {
    id: i64,
    shared: Arc<Shared>,
    /// True, or dropped: the lease is kept no more.
    stop: watch::Sender<bool>,
    lost: Arc<watch::Sender<Option<Loss>>>,
}

impl Lease for KeptLease {
    fn id(&self) -> i64 {
        self.id
    }

    fn leave(&self) -> BoxFuture<'_, Result<(), LeaseError>> {
        async move {
            self.stop.send_replace(true);
            lose(&self.lost, Loss::Left);
            revoke(&self.shared, self.id).await.map(|_| ())
        }
        .boxed()
    }
}

/// The first reason stays.
fn lose(lost: &watch::Sender<Option<Loss>>, loss: Loss) {
    lost.send_if_modified(|now| now.is_none() && now.replace(loss).is_none());
}

/// Keeps one lease alive until etcd says that it is gone.
struct Keeper {
    shared: Arc<Shared>,
    /// One for each etcd, made on the thread of the keeper, with which they end.
    clients: Vec<Client>,
    /// Which is asked, modulo their number.
    at: usize,
    id: i64,
    ttl: Duration,
    every: Duration,
    authority: Authority,
    lost: Arc<watch::Sender<Option<Loss>>>,
    pulse: Pulse,
}

/// Whether a runtime runs tasks.
struct Pulse {
    runtime: Handle,
    beat: Option<JoinHandle<()>>,
    since: Instant,
}

impl Pulse {
    fn new(runtime: Handle) -> Pulse {
        Pulse { runtime, beat: None, since: Instant::now() }
    }

    /// Whether the runtime has run a task within [`STUCK`]. To be asked more often than that.
    fn beats(&mut self) -> bool {
        if self.beat.as_ref().is_none_or(JoinHandle::is_finished) {
            self.since = Instant::now();
            self.beat = Some(self.runtime.spawn(std::future::ready(())));
        }
        self.since.elapsed() < STUCK
    }
}

/// What an answer said.
enum Said {
    Renewed,
    Gone,
}

impl Keeper {
    /// Runs on a thread of its own until the lease is gone or `stopped`.
    fn start(self, mut stopped: watch::Receiver<bool>) -> std::io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let keep = move || {
            runtime.block_on(async {
                tokio::select! {
                    biased;
                    // An error: nobody holds the lease any more.
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
                Ok(Said::Gone) => break,
                Ok(Said::Renewed) => {}
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

    /// Renews by one etcd until that fails; whether it says that the lease is gone.
    async fn round(&mut self) -> Result<Said, String> {
        if self.clients.is_empty() {
            self.clients = self.connect().await?;
        }
        let client = self.clients[self.at % self.clients.len()].clone();
        let said = self.stream(client.clone()).await?;
        let is_gone = matches!(said, Said::Gone) && self.is_gone(client).await;
        Ok(if is_gone { Said::Gone } else { Said::Renewed })
    }

    /// Connections of this thread: those of [`Shared`] do their work on another runtime.
    async fn connect(&self) -> Result<Vec<Client>, String> {
        let mut clients = Vec::new();
        for endpoint in &self.shared.endpoints {
            let connected = Client::connect([endpoint], Some(self.shared.connect.clone()));
            match timeout(self.limit(), connected).await {
                Ok(Ok(client)) => clients.push(client),
                // Where a password is asked for an etcd that is away cannot be connected to.
                Ok(Err(e)) => {
                    tracing::debug!(endpoint, cause = ?request::failed(&e), "no keep-alives by it")
                }
                Err(_) => tracing::debug!(endpoint, "no keep-alives by it: no answer in time"),
            }
        }
        if clients.is_empty() { Err("no etcd can be connected to".into()) } else { Ok(clients) }
    }

    /// Renews over one stream until it fails or says that there is no such lease.
    async fn stream(&mut self, client: Client) -> Result<Said, String> {
        let sent = Instant::now();
        let opened = timeout(self.limit(), client.lease_client().keep_alive(self.id)).await;
        let (mut keeper, mut answers) = match opened {
            Ok(Ok(stream)) => stream,
            // Also what is said of a lease that is unknown.
            Ok(Err(Error::LeaseKeepAliveError(_))) => return Ok(Said::Gone),
            Ok(Err(e)) => return Err(e.to_string()),
            Err(_) => return Err("no answer in time".into()),
        };
        self.authority.renewed(sent, self.ttl);
        let mut next = sent + self.every;
        loop {
            tokio::time::sleep_until(next).await;
            next = Instant::now() + self.every;
            if !self.pulse.beats() {
                let for_s = self.pulse.since.elapsed().as_secs();
                tracing::error!(for_s, "this process runs no tasks: its lease is not renewed");
                continue;
            }
            match timeout(self.limit(), self.renew(&mut keeper, &mut answers)).await {
                Ok(Ok(Said::Renewed)) => {}
                Ok(other) => return other,
                Err(_) => return Err("no answer in time".into()),
            }
        }
    }

    async fn renew(
        &self,
        keeper: &mut LeaseKeeper,
        answers: &mut LeaseKeepAliveStream,
    ) -> Result<Said, String> {
        let sent = Instant::now();
        keeper.keep_alive().await.map_err(|e| e.to_string())?;
        let answer = answers.message().await.map_err(|e| e.to_string())?;
        let answer = answer.ok_or("the stream ended")?;
        if answer.ttl() <= 0 {
            return Ok(Said::Gone);
        }
        self.authority.renewed(sent, Duration::from_secs(unsigned(answer.ttl())));
        Ok(Said::Renewed)
    }

    /// Asks again in another way: what is lost is lost for good.
    async fn is_gone(&self, client: Client) -> bool {
        let mut client = client.lease_client();
        match timeout(self.limit(), client.time_to_live(self.id, None)).await {
            Ok(Ok(answer)) => answer.ttl() < 0,
            _ => false,
        }
    }

    /// How long one answer is waited for, before another endpoint is asked.
    fn limit(&self) -> Duration {
        self.every.max(Duration::from_millis(300))
    }
}

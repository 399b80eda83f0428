//! A lease kept alive: one request at a time, each with its time of sending, over streams that are
//! opened again whenever they end.

use std::sync::Arc;
use std::time::Duration;

use etcd_client::{Client, Error, LeaseKeepAliveStream, LeaseKeeper};
use futures::future::{BoxFuture, FutureExt};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio::time::timeout;

use super::ask::Failed;
use super::{Shared, unsigned};
use crate::engine::leases::Loss;
use crate::engine::store::{Held, Lease};
use crate::engine::{Authority, LeaseError};

/// Longest time between two keep-alives.
const EVERY_MAX: Duration = Duration::from_secs(1);

/// Pause before the next endpoint is tried.
const PAUSE: Duration = Duration::from_millis(50);

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
        id,
        ttl,
        every: (ttl / 5).min(EVERY_MAX),
        authority: authority.clone(),
        lost: lost_told.clone(),
    };
    let task = shared.runtime.spawn(keeper.run()).abort_handle();
    let lease = KeptLease { id, shared: shared.clone(), task, lost: lost_told };
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
    task: AbortHandle,
    lost: Arc<watch::Sender<Option<Loss>>>,
}

impl Lease for KeptLease {
    fn id(&self) -> i64 {
        self.id
    }

    fn leave(&self) -> BoxFuture<'_, Result<(), LeaseError>> {
        async move {
            self.task.abort();
            lose(&self.lost, Loss::Left);
            revoke(&self.shared, self.id).await.map(|_| ())
        }
        .boxed()
    }
}

impl Drop for KeptLease {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The first reason stays.
fn lose(lost: &watch::Sender<Option<Loss>>, loss: Loss) {
    lost.send_if_modified(|now| now.is_none() && now.replace(loss).is_none());
}

/// Keeps one lease alive until etcd says that it is gone.
struct Keeper {
    shared: Arc<Shared>,
    id: i64,
    ttl: Duration,
    every: Duration,
    authority: Authority,
    lost: Arc<watch::Sender<Option<Loss>>>,
}

/// What an answer said.
enum Said {
    Renewed,
    Gone,
}

impl Keeper {
    async fn run(self) {
        loop {
            let (at, client) = self.shared.client();
            match self.stream(client.clone()).await {
                Ok(Said::Gone) if self.is_gone(client).await => break,
                Ok(_) => {}
                Err(cause) => {
                    tracing::debug!(lease = self.id, cause, "keep-alive failed");
                    self.shared.next(at);
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
        self.authority.end();
        lose(&self.lost, Loss::Gone);
    }

    /// Renews over one stream until it fails or says that there is no such lease.
    async fn stream(&self, client: Client) -> Result<Said, String> {
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
            tokio::time::sleep_until(next.into()).await;
            next = Instant::now() + self.every;
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

//! Connections to the PostgreSQL server that accepts writes: a small pool, each connection made on
//! demand.
//!
//! A request is repeated on a new connection if its connection ended or leads to a server that no
//! longer accepts writes (SQLSTATE 25006, after a fail-over). The address may name several hosts:
//! the first host that accepts writes is used. A cancelled request is cancelled on the server, too,
//! and its connection is closed, because its late answer would otherwise be taken for the answer to
//! the next request.

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{
    Connect, Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod,
    Runtime,
};
use futures::future::{BoxFuture, FutureExt};
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Error, Row};

use super::failure::Failed;
use super::tls_connector::Secure;
use super::{ANSWER_LIMIT, schema};
use crate::causes::whole;
use crate::storage::CheckpointError;

pub const CONNECTIONS: usize = 6;

/// How long one host may take to accept a connection.
const HOST_LIMIT: Duration = Duration::from_secs(3);

/// How long the rest of the login may take.
const LOGIN_LIMIT: Duration = Duration::from_secs(5);

/// The operating system closes a connection after this long without an answer.
const SILENCE_LIMIT: Duration = Duration::from_secs(10);

/// How long a cancel request may take.
const CANCEL_LIMIT: Duration = Duration::from_secs(5);

/// How often a request is tried before its failure is returned.
const TRIES: usize = 3;

#[derive(Clone)]
pub struct Connections {
    pool: Pool,
    name: Arc<str>,
    tls: Secure,
    /// Whether the tables have this release's schema.
    migrated: Arc<Mutex<bool>>,
    executor: Handle,
}

/// The kind of result that a request needs.
#[derive(Debug, Clone, Copy)]
enum Want {
    Rows,
    Count,
}

fn settings(url: &str, tls: &Secure) -> Result<Config, CheckpointError> {
    let illegal = |found: String, rule: &str| {
        let what = "the address of PostgreSQL".into();
        CheckpointError::Illegal { what, found, rule: rule.into() }
    };
    let form = "must be postgres://user:password@host:port/database";
    let mut config: Config = url.parse().map_err(|e: Error| illegal(whole(&e), form))?;
    // Other machines cannot read a Unix socket, so it needs no TLS.
    let remote = config.get_hosts().iter().any(|host| matches!(host, Host::Tcp(_)));
    match tls.is_there() {
        true if remote => _ = config.ssl_mode(SslMode::Require),
        false if config.get_ssl_mode() == SslMode::Require => {
            return Err(illegal(
                "sslmode=require".into(),
                "needs the certificates of [cluster.tls]",
            ));
        }
        false => _ = config.ssl_mode(SslMode::Disable),
        true => {}
    }
    config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    config.connect_timeout(HOST_LIMIT).tcp_user_timeout(SILENCE_LIMIT);
    config.keepalives_idle(SILENCE_LIMIT).application_name("purview");
    Ok(config)
}

impl Connections {
    /// Connects and migrates the tables to this release.
    pub async fn open(url: &str, tls: Secure) -> Result<Connections, CheckpointError> {
        let config = settings(url, &tls)?;
        let name: Arc<str> = name(&config).into();
        let executor = Handle::current();
        let limit = HOST_LIMIT * config.get_hosts().len().max(1) as u32 + LOGIN_LIMIT;
        let how = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let maker = Maker { tls: tls.clone(), executor: executor.clone() };
        let pool = Pool::builder(Manager::from_connect(config, maker, how))
            .max_size(CONNECTIONS)
            .create_timeout(Some(limit))
            .post_create(Hook::async_fn(|client, _| {
                limit_statements(client).map(|set| set.map_err(HookError::Backend)).boxed()
            }))
            .runtime(Runtime::Tokio1)
            .build();
        let pool = pool.map_err(|e| CheckpointError::Refused {
            store: name.to_string(),
            asked: "connect",
            cause: e.to_string(),
        })?;
        let opened = Connections { pool, name, tls, migrated: Arc::default(), executor };
        let ready = opened.ready().await;
        ready.map_err(|failed| failed.told(&opened.name, "connect"))?;
        Ok(opened)
    }

    pub async fn query(
        &self,
        asked: &'static str,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, CheckpointError> {
        self.ask(asked, sql, params, Want::Rows).await.map(|(rows, _)| rows)
    }

    pub async fn execute(
        &self,
        asked: &'static str,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, CheckpointError> {
        self.ask(asked, sql, params, Want::Count).await.map(|(_, count)| count)
    }

    async fn ask(
        &self,
        asked: &'static str,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
        want: Want,
    ) -> Result<(Vec<Row>, u64), CheckpointError> {
        let late = |_| Failed::Unreachable(format!("no answer within {ANSWER_LIMIT:?}"));
        let answer = timeout(ANSWER_LIMIT, self.try_often(sql, params, want)).await.map_err(late);
        answer.flatten().map_err(|failed| failed.told(&self.name, asked))
    }

    async fn try_often(
        &self,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
        want: Want,
    ) -> Result<(Vec<Row>, u64), Failed> {
        let mut tries = 1;
        loop {
            let failed = match self.try_once(sql, params, want).await {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            match &failed {
                Failed::ReadOnly(cause) => {
                    tracing::warn!(cause, "PostgreSQL refuses writes: connecting again");
                    self.pool.retain(|_, _| false);
                }
                Failed::NoTable(_) => *self.migrated.lock().await = false,
                Failed::Closed(_) => {}
                Failed::Unreachable(_) | Failed::Refused(_) => return Err(failed),
            }
            tries += 1;
            if tries > TRIES {
                return Err(failed);
            }
        }
    }

    async fn try_once(
        &self,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
        want: Want,
    ) -> Result<(Vec<Row>, u64), Failed> {
        self.ready().await?;
        let lent = self.lend().await?;
        let answer = match (lent.client.as_ref(), want) {
            (None, _) => return Err(Failed::Unreachable("no connection".into())),
            (Some(client), Want::Rows) => rows(client, sql, params).await.map(|rows| (rows, 0)),
            (Some(client), Want::Count) => {
                count(client, sql, params).await.map(|count| (Vec::new(), count))
            }
        };
        let answer = answer.map_err(|e| Failed::from(&e));
        match &answer {
            Ok(_) | Err(Failed::Refused(_) | Failed::NoTable(_)) => lent.give_back(),
            Err(_) => lent.close(),
        }
        answer
    }

    async fn lend(&self) -> Result<Lent, Failed> {
        let client = self.pool.get().await.map_err(|e| match e {
            PoolError::Backend(e) => Failed::from(&e),
            // The connection ended during the login; an immediate retry would not help.
            other => Failed::Unreachable(other.to_string()),
        });
        let client = client.map_err(|failed| match failed {
            Failed::Closed(cause) => Failed::Unreachable(cause),
            failed => failed,
        })?;
        let (tls, executor) = (self.tls.clone(), self.executor.clone());
        Ok(Lent { client: Some(client), tls, executor })
    }

    /// Migrates the tables to this release, unless that is done.
    async fn ready(&self) -> Result<(), Failed> {
        let mut migrated = self.migrated.lock().await;
        if *migrated {
            return Ok(());
        }
        let mut lent = self.lend().await?;
        let Some(client) = lent.client.take() else { return Ok(()) };
        // Removed from the pool: the lock is released when the connection ends.
        let mut client = Object::take(client);
        // A spawned task, so that a migration that has begun goes on even if its caller is dropped.
        let done = self.executor.spawn(async move { schema::migrate(&mut client).await }).await;
        done.map_err(|e| Failed::Refused(format!("the tables cannot be changed: {e}")))??;
        *migrated = true;
        Ok(())
    }
}

async fn rows(
    client: &Object,
    sql: &str,
    params: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, Error> {
    let statement = client.prepare_cached(sql).await?;
    client.query(&statement, params).await
}

async fn count(client: &Object, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<u64, Error> {
    let statement = client.prepare_cached(sql).await?;
    client.execute(&statement, params).await
}

/// Sets the server's own limit, so that it stops statements that no client waits for.
async fn limit_statements(client: &Client) -> Result<(), Error> {
    let set = format!("SET statement_timeout = {}", ANSWER_LIMIT.as_millis());
    client.batch_execute(&set).await
}

struct Lent {
    client: Option<Object>,
    tls: Secure,
    executor: Handle,
}

impl Lent {
    fn give_back(mut self) {
        drop(self.client.take());
    }

    fn close(mut self) {
        drop(self.client.take().map(Object::take));
    }
}

/// The caller was dropped before the answer.
impl Drop for Lent {
    fn drop(&mut self) {
        let Some(client) = self.client.take() else { return };
        let (cancel, tls) = (client.cancel_token(), self.tls.clone());
        let client = Object::take(client);
        self.executor.spawn(async move {
            let cancelled = timeout(CANCEL_LIMIT, cancel.cancel_query(tls)).await;
            if !matches!(cancelled, Ok(Ok(()))) {
                tracing::debug!(?cancelled, "a request to PostgreSQL could not be cancelled");
            }
            drop(client);
        });
    }
}

/// Makes connections that live on one runtime, whichever task asks for them.
struct Maker {
    tls: Secure,
    executor: Handle,
}

impl Connect for Maker {
    fn connect(&self, config: &Config) -> BoxFuture<'_, Result<(Client, JoinHandle<()>), Error>> {
        let (tls, config, executor) = (self.tls.clone(), config.clone(), self.executor.clone());
        async move {
            let (client, connection) = config.connect(tls).await?;
            let driver = executor.spawn(async move {
                if let Err(e) = connection.await {
                    tracing::warn!(cause = whole(&e), "a connection to PostgreSQL ended");
                }
            });
            Ok((client, driver))
        }
        .boxed()
    }
}

/// The address without the password.
fn name(config: &Config) -> String {
    let ports = config.get_ports();
    let host = |(i, host): (usize, &Host)| {
        let port = ports.get(i).or(ports.first()).copied().unwrap_or(5432);
        match host {
            Host::Tcp(host) => format!("{host}:{port}"),
            Host::Unix(path) => path.display().to_string(),
        }
    };
    let hosts: Vec<String> = config.get_hosts().iter().enumerate().map(host).collect();
    format!("PostgreSQL ({})", hosts.join(", "))
}

//! One connection to PostgreSQL that comes back by itself.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::timeout;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Error, Row, Socket};

use super::ANSWER_LIMIT;
use crate::engine::CheckpointError;

/// How long a connection may take to come about, with the tables.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// Shortest and longest pause before the connection is made again.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// After how long without an answer the system gives a connection up.
const SILENCE_LIMIT: Duration = Duration::from_secs(10);

/// The connection, or none for now. Clones share it; with the last the keeping ends.
#[derive(Clone)]
pub struct Connection {
    now: watch::Receiver<State>,
    name: Arc<str>,
    keeping: Arc<Keeping>,
}

#[derive(Clone)]
enum State {
    Up(Arc<Client>),
    /// Why there is none.
    Down(Arc<str>),
}

/// The task that keeps it, which ends with this.
struct Keeping {
    task: AbortHandle,
    /// Tells the task that the connection is of no use any more.
    broken: Arc<Notify>,
}

impl Drop for Keeping {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What makes encrypted connections, or plain ones.
pub trait Tls: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static {}

impl<T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static> Tls for T {}

/// The tables, and how to see whether they are there.
pub struct Schema {
    /// Gives a row with `true` if they are.
    pub there: &'static str,
    pub make: &'static str,
}

/// What connections must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demand {
    /// Its `sslmode`.
    AsTheAddressSays,
    Encrypted,
}

impl Connection {
    /// Connects, makes the tables, and stays connected from then on.
    pub async fn open<T: Tls>(
        url: &str,
        schema: &'static Schema,
        demand: Demand,
        tls: T,
    ) -> Result<Connection, CheckpointError>
    where
        T::Stream: Send,
        T::TlsConnect: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let mut config: Config = url.parse().map_err(|e: Error| CheckpointError::Illegal {
            what: "the address of PostgreSQL".into(),
            found: whole(&e),
            rule: "must be postgres://user:password@host:port/database".into(),
        })?;
        // A socket of this machine's own is nobody else's to read.
        let remote = config.get_hosts().iter().any(|host| matches!(host, Host::Tcp(_)));
        if demand == Demand::Encrypted && remote {
            config.ssl_mode(SslMode::Require);
        }
        config.connect_timeout(CONNECT_LIMIT).tcp_user_timeout(SILENCE_LIMIT);
        config.keepalives_idle(SILENCE_LIMIT).application_name("purview");
        let name: Arc<str> = name(&config).into();
        let first = connect(&config, schema, tls.clone()).await;
        let (client, mut driver) = first.map_err(|e| e.told(&name, "connect"))?;
        let (tell, now) = watch::channel(State::Up(Arc::new(client)));
        let broken = Arc::new(Notify::new());
        let given_up = broken.clone();
        let keeping = tokio::spawn(async move {
            loop {
                let cause = tokio::select! {
                    cause = driver.ended() => cause,
                    () = given_up.notified() => "it does not answer".into(),
                };
                drop(driver);
                tracing::warn!(cause, "the connection to PostgreSQL ended");
                tell.send_replace(State::Down(cause.into()));
                let again = reconnect(&config, schema, &tls, &tell).await;
                driver = again.1;
                tell.send_replace(State::Up(Arc::new(again.0)));
                tracing::info!("connected to PostgreSQL again");
            }
        });
        let keeping = Arc::new(Keeping { task: keeping.abort_handle(), broken });
        Ok(Connection { now, name, keeping })
    }

    pub fn is_up(&self) -> bool {
        matches!(&*self.now.borrow(), State::Up(client) if !client.is_closed())
    }

    pub async fn query(
        &self,
        asked: &'static str,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, CheckpointError> {
        self.ask(asked, |client| async move { client.query(sql, params).await }).await
    }

    pub async fn execute(
        &self,
        asked: &'static str,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, CheckpointError> {
        self.ask(asked, |client| async move { client.execute(sql, params).await }).await
    }

    async fn ask<T, F: Future<Output = Result<T, Error>>>(
        &self,
        asked: &'static str,
        request: impl FnOnce(Arc<Client>) -> F,
    ) -> Result<T, CheckpointError> {
        let state = self.now.borrow().clone();
        let failed = match state {
            State::Down(cause) => Failed::Unreachable(cause.to_string()),
            State::Up(client) => match timeout(ANSWER_LIMIT, request(client)).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(e)) => failed(&e),
                Err(_) => {
                    self.keeping.broken.notify_one();
                    Failed::Unreachable(format!("no answer within {ANSWER_LIMIT:?}"))
                }
            },
        };
        Err(failed.told(&self.name, asked))
    }
}

/// What reads and writes the connection; it ends with this.
struct Driver(JoinHandle<Result<(), Error>>);

impl Driver {
    /// Waits until it ends, and why it did.
    async fn ended(&mut self) -> String {
        match (&mut self.0).await {
            Ok(Ok(())) => "it was closed".into(),
            Ok(Err(e)) => whole(&e),
            Err(e) => e.to_string(),
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn connect<T: Tls>(
    config: &Config,
    schema: &Schema,
    tls: T,
) -> Result<(Client, Driver), Failed>
where
    T::Stream: Send,
    T::TlsConnect: Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    let connecting = async {
        let (client, connection) = config.connect(tls).await.map_err(|e| failed(&e))?;
        let driver = Driver(tokio::spawn(connection));
        let there = client.query_one(schema.there, &[]).await.map_err(|e| failed(&e))?;
        if !there.try_get::<_, bool>(0).map_err(|e| failed(&e))? {
            client.batch_execute(schema.make).await.map_err(|e| failed(&e))?;
        }
        Ok((client, driver))
    };
    let late = |_| Failed::Unreachable(format!("no connection within {CONNECT_LIMIT:?}"));
    timeout(CONNECT_LIMIT, connecting).await.map_err(late)?
}

/// Tries until there is a connection.
async fn reconnect<T: Tls>(
    config: &Config,
    schema: &Schema,
    tls: &T,
    tell: &watch::Sender<State>,
) -> (Client, Driver)
where
    T::Stream: Send,
    T::TlsConnect: Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    let mut pause = PAUSE.0;
    loop {
        match connect(config, schema, tls.clone()).await {
            Ok(connected) => return connected,
            Err(Failed::Unreachable(cause) | Failed::Refused(cause)) => {
                tracing::debug!(cause, "no connection to PostgreSQL");
                tell.send_replace(State::Down(cause.into()));
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE.1);
    }
}

/// Why a request failed.
enum Failed {
    /// It may do another time.
    Unreachable(String),
    Refused(String),
}

impl Failed {
    fn told(self, store: &str, asked: &'static str) -> CheckpointError {
        let store = store.to_owned();
        match self {
            Failed::Unreachable(cause) => CheckpointError::Unreachable { store, asked, cause },
            Failed::Refused(cause) => CheckpointError::Refused { store, asked, cause },
        }
    }
}

fn failed(error: &Error) -> Failed {
    let Some(said) = error.as_db_error() else { return Failed::Unreachable(whole(error)) };
    let code = said.code();
    // By class: connection, rolled back, resources, in use, ended by the operator, system.
    let passes = ["08", "40", "53", "55", "57", "58"];
    let cause = format!("{} ({})", said.message(), code.code());
    if passes.iter().any(|class| code.code().starts_with(class)) {
        Failed::Unreachable(cause)
    } else {
        Failed::Refused(cause)
    }
}

/// An error with its causes.
fn whole(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(e) = cause {
        text = format!("{text}: {e}");
        cause = e.source();
    }
    text
}

/// Where it is, without the password.
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

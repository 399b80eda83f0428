//! The lease store of a cluster: etcd, 3.4 or later.

mod forget;
mod keep_alive;
mod request;
mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::Duration;

use etcd_client::{
    Client, Compare, CompareOp, ConnectOptions, GetOptions, KeyValue, PutOptions, Txn, TxnOp,
    TxnOpResponse,
};
use purview::scene::Epoch;

pub use etcd_client::{Certificate, Identity, TlsOptions};

use super::names;
use super::store::{Entry, Follower, Guard, Held, Listing, Store, Swap, Swapped, Write};
use crate::storage::LeaseError;
use crate::storage::password::Password;
use request::Failed;

/// How long a connection may take to come about.
const CONNECT_LIMIT: Duration = Duration::from_secs(1);

/// How long one etcd is given for one answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);

/// How long a request is asked again, of each etcd in turn.
const REQUEST_LIMIT: Duration = Duration::from_secs(4);

/// How long a connection may be silent before it is probed, and how long a probe may take. Servers
/// close connections that probe more often than every 5 s.
const PROBE: (Duration, Duration) = (Duration::from_secs(6), Duration::from_secs(2));

/// Largest answer that is read, bytes: a snapshot of everything.
const ANSWER_MAX: usize = 64 << 20;

/// Below the root: what epochs are counted from.
const EPOCHS_ABOVE: &str = "epochs_above";

/// Where the etcds are and what this cluster is called there.
#[derive(Debug, Clone)]
pub struct EtcdOptions {
    /// One or more, `http://host:port`, or `https://host:port` with `tls`.
    pub endpoints: Vec<String>,
    /// The cluster's name, 1 to 255 bytes without a slash: clusters of different names do not see
    /// each other.
    pub cluster: String,
    /// Name and password, where etcd wants them.
    pub user: Option<(String, Password)>,
    /// The authority to trust and the own certificate.
    pub tls: Option<TlsOptions>,
    /// The highest epoch that checkpoints know. It counts when the cluster's first node comes to an
    /// etcd that does not know the cluster, for example because its data were lost.
    pub epochs_above: Epoch,
}

impl EtcdOptions {
    /// Plain, for a new cluster.
    pub fn new(endpoints: Vec<String>, cluster: impl Into<String>) -> EtcdOptions {
        let cluster = cluster.into();
        EtcdOptions { endpoints, cluster, user: None, tls: None, epochs_above: Epoch(0) }
    }
}

/// The lease store of a cluster. Clones share its connections.
#[derive(Clone)]
pub struct Etcd {
    shared: Arc<Shared>,
}

struct Shared {
    /// One client for each etcd: which is asked is decided here.
    clients: Vec<Client>,
    /// Which is asked first, modulo their number.
    at: AtomicUsize,
    /// As configured, for errors.
    name: String,
    /// In front of every key.
    root: String,
    /// The highest revision that was answered.
    seen: AtomicU64,
    epochs_above: u64,
    runtime: tokio::runtime::Handle,
    /// With what whoever needs connections of its own connects.
    endpoints: Vec<String>,
    connect: ConnectOptions,
}

impl Etcd {
    /// Finds the cluster, or founds it. All that goes on in the background goes on on the runtime
    /// on which this is called, which must live as long as the store is used.
    ///
    /// # Errors
    /// [`LeaseError::Illegal`]: the options; [`LeaseError::Unreachable`]: no etcd answers within
    /// 4 s; [`LeaseError::Refused`]: wrong password, for example.
    pub async fn connect(options: EtcdOptions) -> Result<Etcd, LeaseError> {
        check(&options)?;
        let name = options.endpoints.join(", ");
        let (mut clients, connect) = (Vec::new(), connect_options(&options));
        for endpoint in &options.endpoints {
            let client = Client::connect([endpoint], Some(connect.clone())).await;
            clients.push(client.map_err(|e| request::failed(&e).told(&name, "connect"))?);
        }
        let mut shared = Shared {
            clients,
            at: AtomicUsize::new(0),
            name,
            root: format!("purview/{}/", options.cluster),
            seen: AtomicU64::new(0),
            epochs_above: 0,
            runtime: tokio::runtime::Handle::current(),
            endpoints: options.endpoints,
            connect,
        };
        shared.epochs_above = shared.found(options.epochs_above).await?;
        Ok(Etcd { shared: Arc::new(shared) })
    }
}

fn check(options: &EtcdOptions) -> Result<(), LeaseError> {
    names::name("the cluster's name", &options.cluster)?;
    let illegal = |what: &str, found: &str, rule: &str| {
        Err(LeaseError::Illegal { what: what.into(), found: found.into(), rule: rule.into() })
    };
    if options.cluster.contains('/') {
        return illegal("the cluster's name", &options.cluster, "must have no slash");
    }
    if options.endpoints.is_empty() {
        return illegal("the list of etcds", "empty", "must name one: http://host:port");
    }
    let scheme = if options.tls.is_some() { "https://" } else { "http://" };
    for endpoint in &options.endpoints {
        if !endpoint.starts_with(scheme) {
            let rule = format!("must begin with {scheme}");
            return illegal("the address of an etcd", endpoint, &rule);
        }
    }
    Ok(())
}

fn connect_options(options: &EtcdOptions) -> ConnectOptions {
    let mut connect = ConnectOptions::new()
        .with_connect_timeout(CONNECT_LIMIT)
        .with_keep_alive(PROBE.0, PROBE.1)
        .with_require_leader(true)
        .with_auto_token_refresh(true);
    if let Some((name, password)) = &options.user {
        connect = connect.with_user(name, password.text());
    }
    if let Some(tls) = &options.tls {
        connect = connect.with_tls(tls.clone());
    }
    connect
}

impl Shared {
    fn key(&self, key: &str) -> String {
        format!("{}{key}", self.root)
    }

    /// What epochs are counted from: whoever comes first decides.
    async fn found(&self, epochs_above: Epoch) -> Result<u64, LeaseError> {
        let write = Write::Put { data: epochs_above.to_string().into(), lease: 0 };
        let (key, guard) = (EPOCHS_ABOVE.to_owned(), Guard::Absent);
        let swap = Swap { asked: "found the cluster", key, guard, write };
        match self.swap(swap).await? {
            Swapped::Done(_) => Ok(epochs_above.0),
            Swapped::Refused { found: Some(entry), .. } => {
                let text = std::str::from_utf8(&entry.data).ok();
                text.and_then(|text| text.parse().ok()).ok_or_else(|| LeaseError::BadData {
                    key: self.key(EPOCHS_ABOVE),
                    rule: format!("{:?}: want a number", entry.data),
                })
            }
            Swapped::Refused { .. } | Swapped::NoLease => Err(LeaseError::BadData {
                key: self.key(EPOCHS_ABOVE),
                rule: "is taken away while the cluster comes up: nothing else may write here"
                    .into(),
            }),
        }
    }

    async fn swap(&self, swap: Swap) -> Result<Swapped, LeaseError> {
        let key = self.key(&swap.key);
        let when = match swap.guard {
            Guard::Absent => Compare::create_revision(key.clone(), CompareOp::Equal, 0),
            Guard::At(revision) => {
                Compare::mod_revision(key.clone(), CompareOp::Equal, signed(revision))
            }
        };
        let then = match swap.write {
            Write::Put { data, lease } => {
                let options = PutOptions::new().with_lease(lease);
                TxnOp::put(key.clone(), data, Some(options))
            }
            Write::Delete => TxnOp::delete(key.clone(), None),
        };
        let txn = Txn::new().when([when]).and_then([then]).or_else([TxnOp::get(key, None)]);
        let asked = self.ask(swap.asked, |mut client| {
            let txn = txn.clone();
            async move {
                let answer = client.txn(txn).await?;
                Ok((answer.header().map(|header| header.revision()), answer))
            }
        });
        let (answer, again) = match asked.await {
            Ok(answered) => answered,
            Err(Failed::NoLease) => return Ok(Swapped::NoLease),
            Err(failed) => return Err(failed.told(&self.name, swap.asked)),
        };
        if answer.succeeded() {
            let revision = answer.header().map_or(0, |header| header.revision());
            return Ok(Swapped::Done(unsigned(revision)));
        }
        let found = match answer.op_responses().first() {
            Some(TxnOpResponse::Get(got)) => got.kvs().first().and_then(|kv| self.entry(kv)),
            _ => None,
        };
        Ok(Swapped::Refused { found, again })
    }

    async fn list(&self, prefix: &str) -> Result<Listing, LeaseError> {
        let prefix = self.key(prefix);
        let asked = self.ask("list keys", |client| {
            let options = GetOptions::new().with_prefix();
            let prefix = prefix.clone();
            async move {
                let mut kv = client.kv_client().max_decoding_message_size(ANSWER_MAX);
                let answer = kv.get(prefix, Some(options)).await?;
                Ok((answer.header().map(|header| header.revision()), answer))
            }
        });
        let (answer, _) = asked.await.map_err(|e| e.told(&self.name, "list keys"))?;
        let revision = answer.header().map_or(0, |header| header.revision());
        let entries = answer.kvs().iter().filter_map(|kv| self.entry(kv)).collect();
        Ok(Listing { revision: unsigned(revision), entries })
    }

    /// A key below the root. None: it is no text, and so nobody's here.
    fn entry(&self, kv: &KeyValue) -> Option<Entry> {
        let key = std::str::from_utf8(kv.key()).ok()?.strip_prefix(&self.root)?;
        Some(Entry {
            key: key.into(),
            data: kv.value().to_vec().into(),
            created: unsigned(kv.create_revision()),
            changed: unsigned(kv.mod_revision()),
            lease: kv.lease(),
        })
    }
}

impl Store for Etcd {
    fn epochs_above(&self) -> u64 {
        self.shared.epochs_above
    }

    async fn lease(&self, ttl: Duration) -> Result<Held, LeaseError> {
        keep_alive::lease(&self.shared, ttl).await
    }

    async fn revoke(&self, lease: i64) -> Result<bool, LeaseError> {
        keep_alive::revoke(&self.shared, lease).await
    }

    async fn swap(&self, swap: Swap) -> Result<Swapped, LeaseError> {
        self.shared.swap(swap).await
    }

    async fn list(&self, prefix: &str) -> Result<Listing, LeaseError> {
        self.shared.list(prefix).await
    }

    fn follow(&self, prefix: &str) -> Follower {
        watch::start(&self.shared, prefix)
    }
}

/// Revisions count from 1 and never come near the top.
fn unsigned(revision: i64) -> u64 {
    u64::try_from(revision).unwrap_or(0)
}

fn signed(revision: u64) -> i64 {
    i64::try_from(revision).unwrap_or(i64::MAX)
}

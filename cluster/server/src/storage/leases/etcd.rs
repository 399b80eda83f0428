//! The lease store of a cluster: etcd, 3.4 or later. A node connects once at its start.

mod client;
mod forget;
mod keep_alive;
mod request;
mod rpc;
mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::Duration;

use purview::scene::Epoch;

use super::store::{Follower, Guard, HeldLease, Listing, Store, StoreEntry, Swap, Swapped, Write};
use super::{Result, names};
use crate::storage::LeaseError;
use crate::storage::password::Password;
use crate::tls::Tls;
use client::{Access, Client};
use request::Failed;
use rpc::compare::{CompareTarget, TargetUnion};
use rpc::request_op::Request;
use rpc::response_op::Response;
use rpc::{
    Compare, DeleteRangeRequest, KeyValue, PutRequest, RangeRequest, RequestOp, ResponseHeader,
    TxnRequest,
};

/// How long one etcd may take for one answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);

/// How long a request is retried, at one etcd after the other.
const REQUEST_LIMIT: Duration = Duration::from_secs(4);

/// Below the root: what epochs are counted from.
const EPOCHS_ABOVE: &str = "epochs_above";

/// The addresses of etcd and the name of the cluster in it.
#[derive(Debug, Clone)]
pub struct EtcdOptions {
    /// One or more addresses: `http://host:port`, or `https://host:port` with `tls`.
    pub endpoints: Vec<String>,
    /// The cluster's name, 1 to 255 bytes without a slash. Clusters with different names do not see
    /// each other.
    pub cluster: String,
    pub user: Option<(String, Password)>,
    /// The certificates: the authority to trust and the own one.
    pub tls: Option<Tls>,
    /// The highest epoch that checkpoints know. It counts when the cluster's first node comes to an
    /// etcd that does not know the cluster, for example because its data were lost. `None`: this process begins no
    /// cluster.
    pub epochs_above: Option<Epoch>,
}

impl EtcdOptions {
    /// Options without TLS and user, for a new cluster.
    pub fn new(endpoints: Vec<String>, cluster: impl Into<String>) -> EtcdOptions {
        let cluster = cluster.into();
        EtcdOptions { endpoints, cluster, user: None, tls: None, epochs_above: Some(Epoch(0)) }
    }
}

/// The lease store of a cluster. Clones share the connections.
#[derive(Clone)]
pub struct Etcd {
    shared: Arc<Shared>,
}

struct Shared {
    /// One client for each etcd; the code here chooses the client for each request.
    clients: Vec<Client>,
    /// Index of the client to ask first, modulo their number.
    at: AtomicUsize,
    /// The configured addresses, for errors.
    name: String,
    /// The prefix of every key.
    root: String,
    /// The highest revision in any answer.
    seen: AtomicU64,
    epochs_above: u64,
    runtime: tokio::runtime::Handle,
    /// How the keep-alive task of a lease opens connections of its own.
    endpoints: Vec<String>,
    access: Access,
}

impl Etcd {
    /// Finds the cluster in etcd, or creates it. Background tasks run on the calling runtime, which
    /// must live as long as the store is used.
    ///
    /// # Errors
    /// [`LeaseError::Illegal`]: the options; [`LeaseError::Unreachable`]: no etcd answers within 4
    /// s; [`LeaseError::Refused`]: wrong password, for example.
    pub async fn connect(options: EtcdOptions) -> Result<Etcd> {
        check(&options)?;
        let name = options.endpoints.join(", ");
        let access = Access { user: options.user, tls: options.tls };
        let mut clients = Vec::new();
        for endpoint in &options.endpoints {
            let client = Client::to(endpoint, &access);
            clients
                .push(client.map_err(|e| Failed::Refused(e.to_string()).told(&name, "connect"))?);
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
            access,
        };
        shared.epochs_above = shared.found(options.epochs_above).await?;
        Ok(Etcd { shared: Arc::new(shared) })
    }
}

fn check(options: &EtcdOptions) -> Result<()> {
    names::name("the cluster's name", &options.cluster)?;
    let illegal = |what: &str, found: &str, rule: &str| {
        Err(LeaseError::Illegal { what: what.into(), found: found.into(), rule: rule.into() })
    };
    if options.cluster.contains('/') {
        return illegal("the cluster's name", &options.cluster, "must not contain a slash");
    }
    if options.endpoints.is_empty() {
        return illegal("the list of etcds", "empty", "must name at least one: http://host:port");
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

impl Shared {
    fn key(&self, key: &str) -> String {
        format!("{}{key}", self.root)
    }

    /// The number that epochs are counted from; the first node decides.
    async fn found(&self, epochs_above: Option<Epoch>) -> Result<u64> {
        // Read first: a gateway's user may not write it.
        let known = self.list(EPOCHS_ABOVE).await?;
        if let Some(entry) = known.entries.iter().find(|entry| entry.key == EPOCHS_ABOVE) {
            return self.epochs_above(entry);
        }
        let epochs_above = epochs_above.ok_or(LeaseError::NotBegun)?;
        let write = Write::Put { data: epochs_above.to_string().into(), lease: 0 };
        let (key, guard) = (EPOCHS_ABOVE.to_owned(), Guard::Absent);
        let swap = Swap { asked: "found the cluster", key, guard, write };
        match self.swap(swap).await? {
            Swapped::Done(_) => Ok(epochs_above.0),
            Swapped::Refused { found: Some(entry), .. } => self.epochs_above(&entry),
            Swapped::Refused { .. } | Swapped::NoLease => Err(LeaseError::BadData {
                key: self.key(EPOCHS_ABOVE),
                rule: "was removed while the cluster started: no other program may write here"
                    .into(),
            }),
        }
    }

    fn epochs_above(&self, entry: &StoreEntry) -> Result<u64> {
        let text = std::str::from_utf8(&entry.data).ok();
        text.and_then(|text| text.parse().ok()).ok_or_else(|| LeaseError::BadData {
            key: self.key(EPOCHS_ABOVE),
            rule: format!("{:?}: must be a number", entry.data),
        })
    }

    async fn swap(&self, swap: Swap) -> Result<Swapped> {
        let key = self.key(&swap.key);
        let txn = TxnRequest {
            compare: vec![compare(&key, &swap.guard)],
            success: vec![operation(&key, swap.write)],
            failure: vec![RequestOp { request: Some(Request::RequestRange(one(&key))) }],
        };
        let asked = self.ask(swap.asked, |client| {
            let txn = txn.clone();
            async move {
                let answer = client.txn(txn).await?;
                Ok((revision(answer.header.as_ref()), answer))
            }
        });
        let (answer, again) = match asked.await {
            Ok(answered) => answered,
            Err(Failed::NoLease) => return Ok(Swapped::NoLease),
            Err(failed) => return Err(failed.told(&self.name, swap.asked)),
        };
        if answer.succeeded {
            return Ok(Swapped::Done(revision(answer.header.as_ref())));
        }
        let found = match answer.responses.first().and_then(|op| op.response.as_ref()) {
            Some(Response::ResponseRange(got)) => got.kvs.first().and_then(|kv| self.entry(kv)),
            _ => None,
        };
        Ok(Swapped::Refused { found, again })
    }

    async fn list(&self, prefix: &str) -> Result<Listing> {
        let prefix = self.key(prefix);
        let asked = self.ask("list keys", |client| {
            let range = below(&prefix);
            async move {
                let answer = client.range(range).await?;
                Ok((revision(answer.header.as_ref()), answer))
            }
        });
        let (answer, _) = asked.await.map_err(|e| e.told(&self.name, "list keys"))?;
        let entries = answer.kvs.iter().filter_map(|kv| self.entry(kv)).collect();
        Ok(Listing { revision: revision(answer.header.as_ref()), entries })
    }

    /// A key below the root. `None`: the key is not UTF-8, so it does not belong to Purview.
    fn entry(&self, kv: &KeyValue) -> Option<StoreEntry> {
        let key = std::str::from_utf8(&kv.key).ok()?.strip_prefix(&self.root)?;
        Some(StoreEntry {
            key: key.into(),
            data: kv.value.clone().into(),
            created: unsigned(kv.create_revision),
            changed: unsigned(kv.mod_revision),
            lease: kv.lease,
        })
    }
}

impl Store for Etcd {
    fn epochs_above(&self) -> u64 {
        self.shared.epochs_above
    }

    async fn lease(&self, ttl: Duration) -> Result<HeldLease> {
        keep_alive::lease(&self.shared, ttl).await
    }

    async fn revoke(&self, lease: i64) -> Result<bool> {
        keep_alive::revoke(&self.shared, lease).await
    }

    async fn swap(&self, swap: Swap) -> Result<Swapped> {
        self.shared.swap(swap).await
    }

    async fn list(&self, prefix: &str) -> Result<Listing> {
        self.shared.list(prefix).await
    }

    fn follow(&self, prefix: &str) -> Follower {
        watch::start(&self.shared, prefix)
    }
}

/// What must be true of a key before it is changed.
fn compare(key: &str, guard: &Guard) -> Compare {
    let (target, union) = match guard {
        Guard::Absent => (CompareTarget::Create, TargetUnion::CreateRevision(0)),
        Guard::At(revision) => (CompareTarget::Mod, TargetUnion::ModRevision(signed(*revision))),
    };
    let key = key.as_bytes().to_vec();
    Compare { key, target: target.into(), target_union: Some(union), ..Compare::default() }
}

fn operation(key: &str, write: Write) -> RequestOp {
    let key = key.as_bytes().to_vec();
    let request = match write {
        Write::Put { data, lease } => {
            Request::RequestPut(PutRequest { key, value: data.to_vec(), lease })
        }
        Write::Delete => {
            Request::RequestDeleteRange(DeleteRangeRequest { key, ..DeleteRangeRequest::default() })
        }
    };
    RequestOp { request: Some(request) }
}

fn one(key: &str) -> RangeRequest {
    RangeRequest { key: key.as_bytes().to_vec(), ..RangeRequest::default() }
}

fn below(prefix: &str) -> RangeRequest {
    RangeRequest { range_end: end_of(prefix), ..one(prefix) }
}

/// The first key after all that begin with `prefix`, which is not empty and is text: its last byte is
/// below 255.
fn end_of(prefix: &str) -> Vec<u8> {
    let mut end = prefix.as_bytes().to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    end
}

fn revision(header: Option<&ResponseHeader>) -> u64 {
    unsigned(header.map_or(0, |header| header.revision))
}

/// Revisions count from 1 and never come near the top.
fn unsigned(revision: i64) -> u64 {
    u64::try_from(revision).unwrap_or(0)
}

fn signed(revision: u64) -> i64 {
    i64::try_from(revision).unwrap_or(i64::MAX)
}

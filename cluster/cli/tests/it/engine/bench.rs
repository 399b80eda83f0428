//! A lease store under test, the connections of nodes to it, and the passing of time.

use std::sync::Arc;
use std::time::Duration;

use purview::scene::Epoch;
use purview_server::launch::EtcdServer;
use purview_server::storage::leases::embedded::{Clock, Embedded, ManualClock};
use purview_server::storage::leases::etcd::{Etcd, EtcdOptions};
use purview_server::storage::{
    Authority, Claim, Event, Grant, Leases, Membership, NodeInfo, Owner, RegionKey, View, Watch,
};

use purview_lab::sim::store::LeaseWay;
use tokio::time::Instant;

use crate::etcd_admin;
use crate::proxy::Proxy;

/// The TTL of the leases in the tests.
pub const TTL: Duration = Duration::from_secs(2);

/// How long a test waits for a state that must come.
const PATIENCE: Duration = Duration::from_secs(60);

/// The step of passing time.
const STEP: Duration = Duration::from_millis(50);

/// A store.
pub enum Bench {
    Embedded {
        store: Embedded,
        clock: ManualClock,
        /// The store as a process of a simulated cluster reaches it.
        simulated: bool,
    },
    Etcd {
        server: Box<EtcdServer>,
        cluster: u32,
    },
}

/// The connection of a node to the store, which can be cut.
pub struct Way {
    leases: Arc<dyn Leases>,
    cut: Cut,
}

enum Cut {
    Embedded(Arc<Embedded>),
    Simulated(Arc<LeaseWay>),
    Etcd(Proxy),
}

impl std::ops::Deref for Way {
    type Target = dyn Leases;

    fn deref(&self) -> &(dyn Leases + 'static) {
        &*self.leases
    }
}

impl Way {
    /// The store, to be shared.
    pub fn leases(&self) -> Arc<dyn Leases> {
        self.leases.clone()
    }

    /// Cuts the connection: requests get no answer.
    pub fn cut(&self) {
        match &self.cut {
            Cut::Embedded(store) => store.cut(),
            Cut::Simulated(way) => way.cut(),
            Cut::Etcd(proxy) => proxy.open(false),
        }
    }

    /// Restores the connection.
    pub fn mend(&self) {
        match &self.cut {
            Cut::Embedded(store) => store.mend(),
            Cut::Simulated(way) => way.mend(),
            Cut::Etcd(proxy) => proxy.open(true),
        }
    }
}

impl Bench {
    pub async fn embedded() -> Bench {
        Bench::in_process(false)
    }

    pub async fn simulated() -> Bench {
        Bench::in_process(true)
    }

    pub async fn etcd() -> Bench {
        let server = tokio::task::spawn_blocking(|| EtcdServer::start(None)).await.unwrap();
        Bench::Etcd { server: Box::new(server.unwrap_or_else(|e| panic!("{e}"))), cluster: 0 }
    }

    /// An empty store instead; in etcd that of another cluster.
    pub fn renew(&mut self) {
        match self {
            Bench::Embedded { simulated, .. } => *self = Bench::in_process(*simulated),
            Bench::Etcd { cluster, .. } => *cluster += 1,
        }
    }

    fn in_process(simulated: bool) -> Bench {
        let clock = ManualClock::default();
        let store = Embedded::with_clock(Epoch(0), Clock::Manual(clock.clone()));
        Bench::Embedded { store, clock, simulated }
    }

    /// A new connection to the store.
    pub async fn way(&self) -> Way {
        match self {
            Bench::Embedded { store, simulated: true, .. } => {
                let way = Arc::new(LeaseWay::to(store, 1));
                Way { leases: way.clone(), cut: Cut::Simulated(way) }
            }
            Bench::Embedded { store, .. } => {
                let way = Arc::new(store.another());
                Way { leases: way.clone(), cut: Cut::Embedded(way) }
            }
            Bench::Etcd { server, cluster } => {
                let proxy = Proxy::to(server.url().trim_start_matches("http://").parse().unwrap());
                let options = EtcdOptions::new(vec![proxy.url()], format!("test-{cluster}"));
                let etcd = Etcd::connect(options).await.unwrap_or_else(|e| panic!("{e}"));
                Way { leases: Arc::new(etcd), cut: Cut::Etcd(proxy) }
            }
        }
    }

    /// A node that has joined.
    pub async fn node(&self, name: &str) -> (Way, Membership) {
        let way = self.way().await;
        let member = way.join(node(name), TTL).await.unwrap();
        (way, member)
    }

    /// Nodes `a` and `b`, which have joined.
    pub async fn two(&self) -> [(Way, Membership); 2] {
        [self.node("a").await, self.node("b").await]
    }

    /// The present time, for authorities.
    pub fn now(&self) -> Instant {
        match self {
            Bench::Embedded { clock, .. } => clock.now(),
            Bench::Etcd { .. } => Instant::now(),
        }
    }

    pub fn holds(&self, authority: &Authority) -> bool {
        authority.holds(self.now())
    }

    /// Lets time pass.
    pub async fn pass(&self, time: Duration) {
        match self {
            Bench::Embedded { clock, simulated, .. } => {
                clock.advance(time);
                // Tasks that wait for the time or for the connection run meanwhile; a simulated connection is slower.
                let runs = if *simulated { 30 } else { 2 };
                tokio::time::sleep(Duration::from_millis(runs)).await;
            }
            Bench::Etcd { .. } => tokio::time::sleep(time).await,
        }
    }

    /// Lets time pass until a state has come.
    pub async fn until(&self, what: &str, mut came: impl AsyncFnMut() -> bool) {
        let (begin, store_begin) = (Instant::now(), self.now());
        while !came().await {
            let late = begin.elapsed() > PATIENCE || self.now() - store_begin > PATIENCE;
            assert!(!late, "timed out after {PATIENCE:?}: {what}");
            self.pass(STEP).await;
        }
    }

    /// Lets time pass until something has come.
    pub async fn until_some<T>(&self, what: &str, mut find: impl AsyncFnMut() -> Option<T>) -> T {
        let mut found = None;
        self.until(what, async || {
            found = find().await;
            found.is_some()
        })
        .await;
        found.expect("it has come")
    }

    /// Suspends the whole store, which keeps its data.
    pub fn stop(&self, ways: &[&Way]) {
        match self {
            Bench::Embedded { .. } => ways.iter().for_each(|way| way.cut()),
            Bench::Etcd { server, .. } => server.pause(),
        }
    }

    /// Lets the store go on.
    pub fn go_on(&self, ways: &[&Way]) {
        match self {
            Bench::Embedded { .. } => ways.iter().for_each(|way| way.mend()),
            Bench::Etcd { server, .. } => server.resume(),
        }
    }

    /// Kills the store, lets `time` pass and starts it again, if it runs on its own.
    pub async fn crash(&mut self, ways: &[&Way], time: Duration) {
        match self {
            Bench::Embedded { .. } => {
                ways.iter().for_each(|way| way.cut());
                self.pass(time).await;
                ways.iter().for_each(|way| way.mend());
            }
            Bench::Etcd { server, .. } => {
                server.kill();
                tokio::time::sleep(time).await;
                tokio::task::block_in_place(|| server.restart()).unwrap_or_else(|e| panic!("{e}"));
            }
        }
    }

    /// Compacts the history of the store.
    pub async fn compact(&self, revision: u64) {
        match self {
            Bench::Embedded { store, .. } => store.compact(),
            Bench::Etcd { server, .. } => {
                etcd_admin::compact(&server.url(), revision).await;
            }
        }
    }
}

pub fn node(name: &str) -> NodeInfo {
    NodeInfo {
        name: name.into(),
        process: 1,
        address: format!("{name}:7000"),
        regions: true,
        gateway: false,
        capacity: 100,
        about: Default::default(),
    }
}

pub fn region(n: u32) -> RegionKey {
    RegionKey { scene: "city/old town".into(), region: n, planes: 3 }
}

pub fn granted(claim: Claim) -> Grant {
    match claim {
        Claim::Granted(grant) => grant,
        Claim::Refused(refusal) => panic!("{refusal:?}"),
    }
}

pub fn refused(claim: Claim) -> Option<Owner> {
    match claim {
        Claim::Refused(owner) => owner,
        Claim::Granted(grant) => panic!("{grant:?}"),
    }
}

/// Takes events until the view is as required. Each event must have a higher revision than the one before.
pub async fn watch_until(
    watch: &mut Watch,
    view: &mut View,
    mut wanted: impl FnMut(&View) -> bool,
) -> Vec<Event> {
    let mut events = Vec::new();
    let begin = Instant::now();
    while !wanted(view) {
        let next = tokio::time::timeout(PATIENCE, watch.next()).await;
        let next = next.unwrap_or_else(|_| panic!("timed out after {PATIENCE:?}: {view:#?}"));
        assert!(begin.elapsed() < PATIENCE, "{view:#?}");
        // The watch reports an outage and goes on.
        let Ok(event) = next.expect("the stream goes on") else { continue };
        match &event {
            Event::Snapshot(all) => {
                assert!(all.revision >= view.revision, "{all:#?} after {view:#?}");
                *view = all.clone();
            }
            Event::Change(change) => {
                assert!(change.revision > view.revision, "{change:#?} after {view:#?}");
                view.apply(change);
            }
        }
        events.push(event);
    }
    events
}
